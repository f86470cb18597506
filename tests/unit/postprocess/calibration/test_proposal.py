"""A proposal shows what would change, and marks what a person should not take without a look."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger, proposal
from postprocess.calibration.machine_load import BUSY_SHARE, MarkKind, compute_mode_gap
from postprocess.calibration.proposal import ABSORBS, propose_references
from postprocess.calibration.samples import collect_samples
from postprocess.calibration.update import update_references
from postprocess.commands.references import propose_all
from postprocess.references import reference_file
from tests.support.factories.launch import CASES, PLACE, case
from tests.support.factories.ledger import METHOD, launch
from tests.support.faults import Declared, plants

NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 0.99, 1.01, 1.0, 1.002, 0.998)


def days(factor: float = 1.0, noise=NOISE, cases=CASES, **changes):
    """A launch on each day, scattered by a percent."""
    return [launch(factor * each, day, cases=cases, **changes) for day, each in enumerate(noise, 1)]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    (path,) = update_references(tmp_path / "reference_data", days())
    return path


def changes(launches, stored: Path | None):
    found = propose_references(PLACE, collect_samples(launches), stored)
    return {change.case: change for change in found.changes}


def texts(change) -> tuple[str, ...]:
    """The marks of a change as people read them."""
    return tuple(mark.text for mark in change.marks)


def test_what_is_not_stored_is_new_and_what_did_not_move_is_the_same(stored: Path):
    found = changes(days(), None)
    assert {(each.kind, each.marks) for each in found.values()} == {("new", ())}
    assert {each.kind for each in changes(days(), stored).values()} == {"same"}


def test_what_moved_tells_by_how_much_and_by_how_many_old_bands(stored: Path):
    found = changes(days(1.02), stored)[CASES[0]]
    assert (found.kind, found.marks) == ("moved", ())
    assert found.slowdown == pytest.approx(1.02)
    assert found.bands == pytest.approx(math.log(1.02) / math.log(1.05))
    assert changes(days(0.5), stored)[CASES[0]].bands < -1


def test_a_slowdown_beyond_the_old_band_is_marked_and_comes_first(stored: Path):
    worse = {case: (1.3 if case == CASES[2] else 0.2) for case in CASES}
    some = [launch({c: worse[c] * n for c in CASES}, d) for d, n in enumerate(NOISE, 1)]
    found = propose_references(PLACE, collect_samples(some), stored)
    assert found.changes[0].case == CASES[2] and ABSORBS in found.changes[0].marks
    assert sum(ABSORBS in change.marks for change in found.changes) == 1
    lines = proposal.format_proposal(found, 40)
    at = lines.index(f"  ABSORBS A SLOWDOWN  {CASES[2].key}")
    assert "+30.0%, +5.38 of" in lines[at + 1]
    assert any(line.startswith("  WARNING: a slowdown is absorbed in 1 case") for line in lines)


@pytest.mark.parametrize("launches", [1, 5])
def test_a_slowdown_is_seen_against_a_provisional_reference_too(tmp_path: Path, launches: int):
    (path,) = update_references(tmp_path, days()[:launches])
    assert ABSORBS in changes(days(1.3), path)[CASES[0]].marks
    assert ABSORBS not in changes(days(1.02), path)[CASES[0]].marks


@pytest.mark.parametrize(
    ("launches", "mark"),
    [
        (days(by_hand={"oversubscribe": True, "set_env": {"A": "1"}}),
         "set by hand, which no night has: oversubscribe, A=1"),
        (days(by_hand={"shell": {"UCX_TLS": "tcp"}}),
         "measured with UCX_TLS=tcp in the shell, which every night must have then"),
        (days(noise=[*NOISE[:-1], 12.0]), "disturbed: 1 of 12 launches are far off; one is 12 times as slow "
         "as the median (20261112T010000Z-1 on n1)"),
        (days(noise=(1.0, 1.0, 12.0)), "disturbed: 1 of 3 launches are far off; "),
        (days(noise=[1.0, 1.01, 0.99, 1.0, 1.0, 1.01] + 6 * [1.6]),
         "disturbed: two groups of launches, 1.58 times apart"),
        ([launch(each, 1, session=f"s{n}") for n, each in enumerate(NOISE)],
         "all 12 launches within 1 min: differences between days are not in it"),
        (days(hosts=("n2", "n1")),
         "nodes: one node set in all 12 launches (n1, n2): differences between nodes are not in it"),
        (days(noise=NOISE[:9]), "provisional: 9 of 10 launches"),
        (days(noise=(1.0,)), "one launch: its noise is unknown"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_what_a_person_should_look_at_is_marked(launches, mark: str):
    assert any(each.startswith(mark) for each in texts(changes(launches, None)[CASES[0]]))


def test_launches_on_two_node_sets_are_of_no_set():
    some = [*days(hosts=("n2", "n1")), launch(1.0, 13, hosts=("n3", "n1"))]
    assert changes(some, None)[CASES[0]].marks == ()


@given(st.lists(st.floats(0.95, 1.05), max_size=30))
def test_launches_of_one_group_are_no_two(values):
    assert compute_mode_gap(values) == 0


@pytest.mark.parametrize(("low", "high", "two"), [(3, 3, True), (2, 9, False), (9, 2, False)])
def test_a_group_has_three_launches_at_least(low: int, high: int, two: bool):
    values = [1 + 0.001 * n for n in range(low)] + [1.6 + 0.001 * n for n in range(high)]
    assert (compute_mode_gap(values) > 1) is two


def test_launches_beside_other_work_are_named():
    some = [replace(each, others=0.08 * day) for day, each in enumerate(days())]
    some[0] = replace(some[0], others=None)
    (mark,) = texts(changes(some, None)[CASES[0]])
    assert mark == (
        "beside other work, which kept up to 88% of the machine busy: 10 of 12 launches are disturbed"
    )
    lines = proposal.format_proposal(propose_references(PLACE, collect_samples(some), None), 40)
    assert sum("beside other work" in line for line in lines) == 1
    some = [replace(each, others=BUSY_SHARE) for each in days()]
    assert changes(some, None)[CASES[0]].marks == ()


def test_noise_that_hides_a_tenth_is_named():
    noise = [math.exp(0.1 * (-1) ** day * (1 + day / 10)) for day in range(12)]
    found = changes(days(noise=noise), None)[CASES[0]]
    (mark,) = [each for each in found.marks if each.kind is MarkKind.BLIND]
    assert (
        mark.text == f"not sensitive below {found.width:+.0%}: "
        f"the noise is {found.width / 0.05:.0f} times the floor of 5%"
    )


def test_what_was_not_measured_stays_with_its_provenance(stored: Path, tmp_path: Path):
    found = propose_references(PLACE, collect_samples(days(1.5, cases=CASES[:1])), stored)
    kinds = [change.kind for change in found.changes]
    assert kinds.count("not measured") == len(CASES) - 1
    path = found.write(tmp_path / "out")
    assert set(reference_file.load_references(path, *PLACE)) == set(CASES)
    assert reference_file.lint_reference_file(path) == []


def test_another_method_replaces_a_program_and_tells_what_vanishes(stored: Path, tmp_path: Path):
    other = {"method": METHOD | {"trials": 7}}
    found = propose_references(PLACE, collect_samples(days(cases=CASES[:1], facts=other)), stored)
    assert [change.kind for change in found.changes].count("vanishes") == len(CASES) - 1
    assert any("would have no reference any more" in line for line in proposal.format_proposal(found, 40))
    assert set(reference_file.load_references(found.write(tmp_path / "out"), *PLACE)) == set(CASES[:1])


def test_a_rate_that_fell_is_a_slowdown(tmp_path: Path):
    units = {case.key: "MB/s" for case in CASES}
    (path,) = update_references(tmp_path, days(1000.0, units=units))
    found = changes(days(800.0, units=units), path)[CASES[0]]
    assert ABSORBS in found.marks and found.slowdown == pytest.approx(1.25)


@pytest.mark.parametrize("wording", ["{} disturbed", "disturbed {}"])
def test_marks_are_told_by_their_kind_however_they_are_worded(wording: str):
    """Each of its own case is told with the case, those of the calibration are counted by kind."""
    far_off = days(noise=[*NOISE[:-1], 12.0], cases=CASES[:2], by_hand={"oversubscribe": True})
    found = propose_references(PLACE, collect_samples(far_off), None)
    reworded = replace(
        found,
        changes=tuple(
            replace(
                change, marks=tuple(replace(mark, text=wording.format(mark.kind.name)) for mark in change.marks)
            )
            for change in found.changes
        ),
    )
    lines = proposal.format_proposal(reworded, 40)
    own, counted = wording.format("DISTURBED"), wording.format("BY_HAND")
    heads = [lines.index(f"  new  {change.case.key}") for change in found.changes]
    assert [n for n, line in enumerate(lines) if line == f"      {own}"] == [head + 2 for head in heads]
    assert [line for line in lines if counted in line] == [f"  2 cases: {counted}"]


# The command.


@pytest.fixture
def work(tmp_path: Path, stored: Path) -> WorkDirectory:
    made = WorkDirectory(tmp_path / "home", tmp_path)
    for each in days(1.3):
        ledger.append_launches(made.root, each.session, [each])
    return made


def test_a_proposal_is_written_beside_and_never_over_the_references(work, stored, capsys):
    before = stored.read_bytes()
    assert propose_all(work, None, None, None, Progress()) == 0
    first = capsys.readouterr().out
    assert stored.read_bytes() == before
    written = reference_file.locate_references(work.root / "proposal", *PLACE)
    assert reference_file.load_references(written, *PLACE)[CASES[0]].center > 1.2
    assert f"cp -r {work.root}/proposal/local {work.source}/reference_data" in first
    assert "--- a/local/cpu/mpich-5_0_2.tsv" in first and "+mpicost" in first
    assert propose_all(work, None, None, None, Progress()) == 0
    assert capsys.readouterr().out == first


def test_all_changes_are_told_to_programs(work: WorkDirectory, tmp_path: Path):
    report = tmp_path / "stdout"
    report.symlink_to(tmp_path / "report.json")
    propose_all(work, "local", tmp_path / "out", report, Progress())
    assert report.is_symlink()  # as /dev/stdout, which is not ours to replace
    (only,) = json.loads(report.read_text())["proposals"]
    assert only["place"] == list(PLACE)
    assert {case["key"] for case in only["cases"]} == {case.key for case in CASES}
    assert all(case["slower"] == pytest.approx(0.3) for case in only["cases"])
    assert all(ABSORBS.text in case["marks"] for case in only["cases"])


def test_launches_that_do_not_count_are_told(work: WorkDirectory, capsys):
    ledger.append_launches(work.root, "z", [launch(1.0, 20, facts={"source_hash": "new"})])
    propose_all(work, None, None, None, Progress())
    said = " ".join(capsys.readouterr().out.split())
    assert "12 earlier launches left out: another source_hash than the last one" in said


@plants("use", "a site that nobody calibrated", "`references propose`", "", 2,
        "no launch of site elsewhere; ./plumbline calibrate")  # fmt: skip
def test_without_a_calibration_there_is_nothing_to_propose(work: WorkDirectory, declared: Declared):
    with declared.raises(UsageError):
        propose_all(work, "elsewhere", None, None, Progress())


@pytest.mark.parametrize("most", [40, 1])
def test_all_but_keys_and_paths_fits_80_columns(stored: Path, most: int):
    slow = days(noise=[*NOISE[:-1], 12.0], by_hand={"oversubscribe": True}, cases=[*CASES, case("barrier", 0)])
    for against in (stored, None):
        lines = proposal.format_proposal(propose_references(PLACE, collect_samples(slow), against), most)
        long = [line for line in lines if len(line) > 80 and ":mpicost:" not in line]
        assert [line for line in long if str(against) not in line] == []


def test_the_table_ends_where_nobody_reads_on(stored: Path):
    found = propose_references(PLACE, collect_samples(days(1.02)), stored)
    lines = proposal.format_proposal(found, 1)
    assert any(line.startswith("  and 3 cases more") for line in lines)
    assert sum(line.endswith(tuple(each.key for each in CASES)) for line in lines) == 1


def test_many_new_cases_are_summarised_by_program_and_class_of_sizes():
    """A first proposal of a machine has thousands."""
    many = [case("bcast", size) for size in (1, 8, 1000, 1001, 100_000, 1_000_000)]
    found = propose_references(PLACE, collect_samples(days(cases=[*many, case("barrier", 0)])), None)
    lines = proposal.format_proposal(found, 6)
    told = [line.split()[:5] for line in lines if line.startswith("  mpicost ")]
    assert told == [
        ["mpicost", "none", "1", "12", told[0][4]],
        ["mpicost", "to", "1", "kB", "3"],
        ["mpicost", "to", "100", "kB", "2"],
        ["mpicost", "above", "1", "12", told[3][4]],
    ]
    assert "  --json FILE lists each case" in lines and len(lines) < 14
    rows = proposal.format_proposal(found, 7)
    assert sum(line.split()[0] == "new" for line in rows) == 7
