"""A calibration becomes reference files. What exists is moved by the user's word alone."""

import json
import math
import re
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.calibration import update as references_update
from postprocess.calibration.ledger import CalibrationHeader, collect_launches
from postprocess.calibration.update import say_line
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.session import Session
from postprocess.model.verdict import Verdict
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import add_noise, read_provenance
from postprocess.references.comparability import read_all_placed
from postprocess.references.lint import find_unfounded
from tests.support.factories.benchmark import BUILD, METHOD, measured
from tests.support.factories.launch import CASES, PLACE, finished, headline, steady
from tests.support.factories.ledger import launch, launches_behind
from tests.support.faults import Declared, plants

FAILED = LaunchOutcome(None, Verdict.CRASHED, "the program ended with exit code 139")


def session(name: str = "20261121T090000Z-1") -> Session:
    return Session(Path("sessions") / name, "calibrate", "local", ["./plumbline"], False)


def update(root: Path, by: Session, done: list[FinishedLaunch], only: set | None) -> list[Path]:
    new = collect_launches(CalibrationHeader(by.name), by.directory, done)
    references_update.refuse_mixed(new)
    return references_update.update_references(root, new, only, only is not None)


def launches(root: Path, *scales: float, **changes: Any) -> list[FinishedLaunch]:
    return [
        finished(root / str(number), scale, number=number, **changes) for number, scale in enumerate(scales, 1)
    ]


def stored(path: Path) -> dict:
    return reference_file.load_references(path, *PLACE)


def told(path: Path, program: str = "mpicost") -> dict[str, Any]:
    """What the provenance tells of the last calibration of a program."""
    return provenance.list_calibrations(read_provenance(path)["programs"][program])[-1]


def values(path: Path, program: str = "mpicost") -> dict[str, list[float]]:
    """All judged values behind the references of a program."""
    some = provenance.list_calibrations(read_provenance(path)["programs"][program])
    return {key: values for each in some for key, values in provenance.list_values(each).items()}


def test_a_calibration_makes_one_reference_of_each_case(tmp_path: Path):
    done = launches(tmp_path, 1.0, 1.1, 1.3)
    (path,) = update(tmp_path / "references", session(), done, only=None)
    assert path == reference_file.locate_references(tmp_path / "references", *PLACE)
    found = stored(path)
    assert set(found) == set(CASES)
    for case, reference in found.items():
        logs = [math.log(steady(each, case)) for each in done]
        assert reference.center == pytest.approx(math.exp(statistics.mean(logs)))
        assert reference.spread == pytest.approx(statistics.stdev(logs))
        assert (reference.launches, reference.unit) == (3, "s")
    assert reference_file.lint_reference_file(path) == []


def test_the_provenance_tells_what_ran_and_every_value(tmp_path: Path):
    done = launches(tmp_path, 1.0, 1.1)
    (path,) = update(tmp_path / "references", session(), done, only=None)
    assert list(read_provenance(path)["programs"]) == ["mpicost"]
    found = told(path)
    assert found["mpi_library"] == done[0].run["mpi_library"]
    assert (found["version"], found["source_hash"]) == ("0.1.0", "0123456789abcdef")
    assert (found["spec"], found["sessions"]) == ("mpicost@0.1.0/abcdef", [session().name])
    assert found["method"]["trials"] == 51
    for case in CASES:
        assert values(path)[case.key] == [steady(each, case) for each in done]
        expected = [headline(each, case) for each in done]
        assert provenance.find_headlines(found, case.key) == expected


def test_a_launch_that_failed_spoils_no_other(tmp_path: Path):
    """Nothing is invented: a case has as many launches as ended well."""
    done = [*launches(tmp_path, 1.0, 1.1), finished(tmp_path, outcome=FAILED, number=3)]
    (path,) = update(tmp_path / "references", session(), done, only=None)
    assert {each.launches for each in stored(path).values()} == {2}
    assert update(tmp_path / "none", session(), done[2:], only=None) == []


def test_each_environment_has_its_own_file(tmp_path: Path):
    name = "openmpi-5_0_11"
    cases = tuple(replace(each, environment=name) for each in CASES)
    here = finished(tmp_path / "here")
    there = finished(tmp_path / "there", 2.0, environment=name, cases=cases)
    paths = update(tmp_path / "references", session(), [here, there], only=None)
    assert [path.stem for path in paths] == ["mpich-5_0_2", name]
    found = reference_file.load_references(paths[1], "local", "cpu", name)
    expected = {case: pytest.approx(steady(there, case)) for case in cases}
    assert {case: found[case].center for case in cases} == expected


def test_rows_that_were_not_measured_stay(tmp_path: Path):
    root = tmp_path / "references"
    (path,) = update(root, session("a"), launches(tmp_path / "a", 1.0, 1.1), only=set(CASES[:2]))
    before = stored(path)
    update(root, session("b"), launches(tmp_path / "b", 2.0, 2.1), only=set(CASES[2:]))
    after = stored(path)
    assert set(after) == set(CASES)
    assert {case: after[case] for case in CASES[:2]} == before
    assert set(values(path)) == {case.key for case in CASES}
    entry = read_provenance(path)["programs"]["mpicost"]
    for case in CASES:
        by = "a" if case in CASES[:2] else "b"
        assert provenance.find_case_calibration(entry, case.key)["sessions"] == [by]
        assert {each["session"] for each in launches_behind(entry, case.key)} == {by}


def test_a_calibration_that_was_asked_for_moves_rows(tmp_path: Path):
    root = tmp_path / "references"
    (path,) = update(root, session("a"), launches(tmp_path / "a", 1.0), only=None)
    before = stored(path)
    update(root, session("b"), launches(tmp_path / "b", 2.0), only=None)
    for case, reference in stored(path).items():
        assert reference.center == pytest.approx(2 * before[case].center)


def many(number: int = 20, value: float = 1.0, first: int = 1, **changes: Any) -> list:
    """Launches of so many days."""
    return [launch(value, day, **changes) for day in range(first, first + number)]


CACHES = {"binding": {"2x2": "2 ranks of 1 CPU"}, "caches": "of another node"}
BY_HAND = {"oversubscribe": True}
SHELL = {"shell": {"UCX_TLS": "tcp"}}


def after(root: Path, old: list, new: list) -> tuple[dict, list[str]]:
    """What stands in a file after two calibrations, and what was said in the second."""
    said: list[str] = []
    references_update.update_references(root, old)
    (path,) = references_update.update_references(root, old + new, say=say_line(said.append))
    assert reference_file.lint_reference_file(path) == []
    return stored(path), said


def test_few_odd_launches_do_not_replace_a_reference_of_many(tmp_path: Path):
    found, said = after(tmp_path, many(), many(9, 2.0, 21, circumstances=CACHES))
    assert {(each.launches, each.center) for each in found.values()} == {(20, 1.0)}
    assert said == [
        "mpich-5_0_2, mpicost: 20 earlier launches left out: another caches; until there are 10, "
        "the old reference stays"
    ]


def test_launches_that_scatter_beyond_all_bounds_make_no_reference(tmp_path: Path):
    """The reader refuses such a row; so the calibration must not write it."""
    said: list[str] = []
    some = [launch(1.0, 1), launch(1e6, 1)]
    assert references_update.update_references(tmp_path, some, say=say_line(said.append)) == []
    assert said == [f"mpich-5_0_2, mpicost: {references_update.SCATTERED}"]


@pytest.mark.parametrize(("before", "later"), [(20, 10), (9, 1)])
def test_a_reference_is_replaced_by_as_many_as_are_enough_or_where_it_was_provisional(
    tmp_path: Path, before: int, later: int
):
    found, said = after(tmp_path, many(before), many(later, 2.0, 21, circumstances=CACHES))
    assert {each.launches for each in found.values()} == {later} and said == []


def automatic(root: Path, new: list) -> Path:
    """The file after an automatic calibration of all cases, which may only add."""
    (path,) = references_update.update_references(root, new, set(CASES), only_new=True)
    assert reference_file.lint_reference_file(path) == []
    return path


@pytest.mark.parametrize("by_hand", [BY_HAND, SHELL], ids=str)
def test_options_by_hand_never_replace_a_reference_without_and_give_way_to_one(tmp_path: Path, by_hand):
    references_update.update_references(tmp_path / "a", many(1))
    said: list[str] = []
    new = many(25, 2.0, by_hand=by_hand)
    (path,) = references_update.update_references(tmp_path / "a", new, say=say_line(said.append))
    assert {each.launches for each in stored(path).values()} == {1}
    assert said == [
        "mpich-5_0_2, mpicost: the reference without options by hand stays; choose another place with --output"
    ]
    found, said = after(tmp_path / "b", many(20, 2.0, by_hand=by_hand), many(1, 1.0, 21))
    assert {(each.launches, each.center) for each in found.values()} == {(1, 1.0)} and said == []
    references_update.update_references(tmp_path / "c", many(20, 2.0, by_hand=by_hand))
    path = automatic(tmp_path / "c", many(5, 1.0, 21))
    assert {(each.launches, each.center) for each in stored(path).values()} == {(5, 1.0)}
    some = provenance.list_calibrations(read_provenance(path)["programs"]["mpicost"])
    assert [each.get("options") for each in some] == [None]


def test_an_automatic_calibration_with_options_replaces_those_with_others_only(tmp_path: Path):
    """The same, and none, are as good for its launches."""
    others = {"set_env": {"A": "1"}}
    for name, by_hand, center in (("none", {}, 2.0), ("same", BY_HAND, 2.0), ("other", others, 1.0)):
        references_update.update_references(tmp_path / name, many(5, 2.0, by_hand=by_hand))
        path = automatic(tmp_path / name, many(5, 1.0, 21, by_hand=BY_HAND))
        assert {each.center for each in stored(path).values()} == {center}, name


def test_an_automatic_calibration_never_moves_a_row_even_if_told_to(tmp_path: Path):
    """The caller may have looked for references elsewhere: what this file holds still stands."""
    root = tmp_path / "references"
    (path,) = update(root, session("a"), launches(tmp_path / "a", 1.0), only=set(CASES[:3]))
    before, kept = stored(path), values(path)
    update(root, session("b"), launches(tmp_path / "b", 2.0), only=set(CASES))
    after = stored(path)
    assert set(after) == set(CASES)
    assert {case: after[case] for case in CASES[:3]} == before
    for case in CASES[:3]:
        assert values(path)[case.key] == kept[case.key]
    files = path.read_bytes(), provenance.locate_provenance(path).read_bytes()
    update(root, session("c"), launches(tmp_path / "c", 3.0), only=set(CASES))  # of nothing new
    assert (path.read_bytes(), provenance.locate_provenance(path).read_bytes()) == files


@plants("references", "launches of another method, version or processor",
        "a calibration into references that are there", "", 2,
        "its references were measured with another …; move the file away, or choose another "
        "place with --output")  # fmt: skip
@pytest.mark.parametrize(
    "other", [{"suite_version": "0.2.0"}, {"cpu_model": "another"}, {"relative_error": 0.1}], ids=str
)
@pytest.mark.parametrize("only", [None, set(CASES[2:])])
def test_another_method_is_refused_and_changes_nothing(tmp_path, other, only, declared):
    root = tmp_path / "references"
    (path,) = update(root, session("a"), launches(tmp_path / "a", 1.0), only=set(CASES[:2]))
    before = path.read_bytes()
    with declared.raises(UsageError) as refused:
        update(root, session("b"), launches(tmp_path / "b", 1.0, run=other), only=only)
    assert str(refused.value) == (
        f"{path}: its references were measured with another {next(iter(other))}; "
        "move the file away, or choose another place with --output"
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("other", [{"trials": 7}, {"rounds": 3}], ids=str)
def test_other_trials_are_refused_before_anything_is_launched(tmp_path: Path, other: dict[str, int]):
    root = tmp_path / "references"
    done = launches(tmp_path / "a", 1.0)
    (path,) = update(root, session("a"), done, only=None)
    planned = done[0].launch
    references_update.check_planned_trials(root, [planned])
    said = rf"{re.escape(str(path))}: its references were measured with \d+ trials in 1 round, not "
    with pytest.raises(UsageError, match=said):
        references_update.check_planned_trials(root, [replace(planned, **other)])


@plants("references", "a provenance without its method", "the file that a calibration would add to", "",
        2, "method: is missing")  # fmt: skip
def test_a_file_that_tells_no_method_cannot_be_added_to(tmp_path: Path, declared: Declared):
    root = tmp_path / "references"
    (path,) = update(root, session("a"), launches(tmp_path / "a", 1.0), only=set(CASES[:2]))
    sidecar = provenance.locate_provenance(path)
    known = read_provenance(path)
    del known["programs"]["mpicost"]["calibrations"][0]["method"]
    sidecar.write_text(json.dumps(known))
    with declared.raises(UsageError, match="programs: mpicost: calibration 1: method: is missing"):
        update(root, session("b"), launches(tmp_path / "b", 1.0), only=set(CASES[2:]))


@plants("references", "launches on several kinds of processors", "one calibration", "", 2,
        "launches differ in ")  # fmt: skip
def test_launches_on_different_processors_make_no_reference(tmp_path: Path, declared: Declared):
    one = launches(tmp_path / "a", 1.0)
    other = finished(tmp_path / "b", 1.0, number=2, run={"cpu_model": "another"})
    with declared.raises(UsageError) as refused:
        update(tmp_path / "references", session(), [*one, other], only=None)
    expected = "mpich-5_0_2: launches differ in cpu_model; calibrate nodes of one kind at a time"
    assert str(refused.value) == expected
    assert not (tmp_path / "references").exists()


def test_launches_of_one_session_that_were_bound_differently_make_no_reference():
    bound = {"binding": {"2x2": "2 ranks of 2 CPUs"}, "caches": "L1"}
    with pytest.raises(UsageError, match="launches differ in binding; calibrate nodes of one kind at a time"):
        references_update.refuse_mixed([launch(1.0, 1), launch(1.0, 1, circumstances=bound)])


@plants("references", "an unknown unit", "the file that a calibration would write anew", "", 2,
        "row 2: unit")  # fmt: skip
def test_a_damaged_file_is_refused_and_not_overwritten(tmp_path: Path, declared: Declared):
    root = tmp_path / "references"
    (path,) = update(root, session("a"), launches(tmp_path / "a", 1.0), only=None)
    path.write_text(path.read_text().replace("\ts\t", "\tus\t", 1))
    before = path.read_bytes()
    with declared.raises(UsageError):
        update(root, session("b"), launches(tmp_path / "b", 2.0), only=None)
    assert path.read_bytes() == before


@plants("references", "simulated times that differ", "launches of a calibration", "", 2,
        "nothing is written; calibrate --afresh")  # fmt: skip
def test_simulated_time_that_does_not_repeat_makes_no_reference(tmp_path: Path, declared: Declared):
    done = launches(tmp_path, 1.0, 2.0, exact=True)
    with declared.raises(UsageError, match=r"not repeat.*nothing is written; calibrate --afresh"):
        update(tmp_path / "references", session(), done, only=None)
    assert not list(tmp_path.rglob("*.tsv"))


def test_a_simulated_reference_tells_nothing_of_the_machine_that_simulated(tmp_path: Path):
    done = launches(tmp_path, 1.0, 1.0, exact=True)
    (path,) = update(tmp_path / "references", session(), done, only=None)
    assert {reference.exact for reference in reference_file.load_references(path, *PLACE).values()} == {True}
    assert "cpu_model" not in told(path)["method"]
    assert set(read_provenance(path)["machine"]) == {"simulated"}


# Several programs in one file.


def test_two_programs_stand_in_one_file_and_each_is_told_of(tmp_path: Path):
    done = [finished(tmp_path / "a"), measured(tmp_path / "b")]
    (path,) = update(tmp_path / "references", session(), done, only=None)
    osu = done[1].launch.cases
    assert set(stored(path)) == {*CASES, *osu}
    assert reference_file.lint_reference_file(path) == []
    assert list(read_provenance(path)["programs"]) == ["mpicost", "osu"]
    found = told(path, "osu")
    assert found["method"] == METHOD | BUILD | {"version": "7.4", "cpu_model": "a processor"}
    assert (found["version"], found["spec"]) == ("7.4", "osu-micro-benchmarks@7.4/abcdef")
    expected = {case.key: [done[1].measurements[case.variable].value] for case in osu}
    assert values(path, "osu") == expected
    assert set(values(path)) == {case.key for case in CASES}
    assert told(path)["spec"] == "mpicost@0.1.0/abcdef"


def test_a_rate_is_a_reference_in_its_unit_of_the_launches_that_printed_it(tmp_path: Path):
    """The rate of single bytes on a busy machine may be printed as nothing, in one launch of several."""
    done = [measured(tmp_path / "a"), measured(tmp_path / "b", number=2)]
    first, *others = done[0].launch.cases
    for each, factor in zip(done, (1.0, 0.0), strict=True):
        rate = each.measurements[first.variable]
        each.measurements[first.variable] = replace(rate, value=factor * rate.value, unit="MB/s")
    (path,) = update(tmp_path / "references", session(), done, only=None)
    expected = {first: ("MB/s", 1)} | dict.fromkeys(others, ("s", 2))
    assert {each: (known.unit, known.launches) for each, known in stored(path).items()} == expected


def test_a_program_that_comes_later_joins_the_others(tmp_path: Path):
    root = tmp_path / "references"
    (path,) = update(root, session("a"), launches(tmp_path / "a", 1.0, 1.1), only=None)
    before, kept = stored(path), told(path)
    update(root, session("b"), [measured(tmp_path / "b")], only=None)
    assert {case: stored(path)[case] for case in CASES} == before
    assert told(path) == kept
    assert told(path, "osu")["sessions"] == ["b"]
    update(root, session("c"), [measured(tmp_path / "c", 2.0)], only=None)
    assert told(path) == kept
    assert told(path, "osu")["sessions"] == ["c"]
    assert {each.launches for each in stored(path).values() if each.case.program == "osu"} == {1}
    assert reference_file.lint_reference_file(path) == []


@plants("references", "another method of OSU alone", "launches of a calibration", "", 2,
        "its references were measured with another warmups; ")  # fmt: skip
def test_another_method_of_one_program_is_refused_and_changes_nothing(tmp_path, declared):
    root = tmp_path / "references"
    done = [finished(tmp_path / "a"), measured(tmp_path / "b")]
    (path,) = update(root, session("a"), done, only=None)
    before = path.read_bytes(), provenance.locate_provenance(path).read_bytes()
    other = measured(tmp_path / "c", method=METHOD | {"warmups": 0})
    with declared.raises(UsageError):
        update(root, session("b"), [finished(tmp_path / "d"), other], only=None)
    assert (path.read_bytes(), provenance.locate_provenance(path).read_bytes()) == before


@plants("references", "launches with several numbers of iterations", "one calibration", "", 2,
        "launches differ in iterations; ")  # fmt: skip
def test_starts_of_one_program_must_be_measured_alike_and_of_two_need_not(tmp_path, declared):
    alike = [finished(tmp_path / "a"), measured(tmp_path / "b")]
    assert alike[0].run["trials"] != METHOD["iterations"]
    other = measured(tmp_path / "c", number=2, method=METHOD | {"iterations": 100})
    with declared.raises(UsageError, match="mpich-5_0_2: launches differ in iterations; "):
        update(tmp_path / "references", session(), [*alike, other], only=None)
    assert update(tmp_path / "references", session(), alike, only=None)


@pytest.mark.parametrize(("gap", "sessions"), [(20, 2), (60, 1)])
def test_a_site_says_how_far_apart_sessions_are_and_references_keep_it(tmp_path, gap, sessions):
    """A reference of other sessions would not follow from its launches, and compare with nothing."""
    moments = ("01:00:00", "01:01:00", "01:40:00", "01:41:00")
    some = [
        launch(value, ended_utc=f"2026-11-01T{moment}Z", session_gap_minutes=gap)
        for value, moment in zip((1e-6, 1.2e-6, 2e-6, 2.5e-6), moments, strict=True)
    ]
    (path,) = references_update.update_references(tmp_path, some)
    known = reference_file.load_references(path, *PLACE)
    origin = read_provenance(path)
    (told,) = provenance.list_calibrations(origin["programs"]["mpicost"])
    assert told.get("session_gap_minutes") == (None if gap == 20 else gap)
    launches = read_all_placed(known, origin)
    assert not list(find_unfounded(known, launches))
    assert {reference.sessions for reference in add_noise(known, launches).values()} == {sessions}
    told["session_gap_minutes"] = 80 - gap
    unfounded = dict(find_unfounded(known, read_all_placed(known, origin)))
    assert len(unfounded) == (len(known) if gap == 20 else 0)
    told["session_gap_minutes"] = "soon"
    (fault, *_) = provenance.find_provenance_faults(origin)
    assert "session_gap_minutes" in fault
