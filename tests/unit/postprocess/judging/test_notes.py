"""Many cases that are suspiciously fast are a matter of their references, and the night says so."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.formats import MEGABYTES
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.notes import (
    LEAST_CASES,
    Disturbance,
    RequestedCases,
    assess_disturbance,
    describe_fast_cases,
    describe_interposed_libraries,
    describe_shell_effects,
    describe_waivers,
    doubt_beside_others,
    excuse_headlines,
    excuse_means,
    find_unplanned_cases,
    find_unplanned_environments,
    is_whole,
)
from postprocess.model.groups import group_cases
from postprocess.model.plan import SkippedCase
from postprocess.model.reference import Reference
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.references import reference_file
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from tests.support.factories.launch import (
    CASES,
    PLACE,
    book_of,
    case,
    catalog_of,
    finished,
    origin_of,
    planned,
    reframe_says,
    write_references,
)
from tests.support.faults import Declared, plants

MANY_CASES = [case(size=8 * (n + 1)) for n in range(30)]


def results(fast: int, judged: int) -> list[CaseResult]:
    """So many judged cases, of which so many are fast; and some that say nothing."""
    words = fast * [Verdict.FAST] + (judged - fast) * [Verdict.PASS]
    words += (len(MANY_CASES) - judged) * [Verdict.SKIPPED]
    return [CaseResult(each, word, value=1e-6) for each, word in zip(MANY_CASES, words, strict=True)]


def catalog(exact: bool = False) -> ReferenceCatalog:
    return catalog_of(Reference(each, 1e-6, 0.0, 20, exact=exact) for each in MANY_CASES)


@pytest.mark.parametrize(
    ("fast", "judged", "told"),
    [(5, 25, True), (4, 19, False), (4, 4, False), (5, 26, False), (5, 5, True), (30, 30, True)],
)
def test_a_fifth_and_at_least_five_are_told(fast: int, judged: int, told: bool):
    lines = list(describe_fast_cases(results(fast, judged), catalog(), "local"))
    assert len(lines) == told
    if told:
        (line,) = lines
        said = f"cpu, {PLACE[2]}, mpicost: {fast} of {judged} judged cases are fast: "
        assert line.startswith(said)
        command = f"./plumbline calibrate --environment {PLACE[2]} --program mpicost --afresh"
        assert line.endswith(f"recalibrate: {command}")
    assert compute_exit_status(results(fast, judged), strict=True) == (judged < len(MANY_CASES))


def test_a_site_and_its_partition_are_named_but_not_in_simulated_time():
    """There, it is the programs that changed."""
    (line,) = describe_fast_cases(results(20, 30), catalog(), "big")
    assert "./plumbline calibrate --site big --partition cpu --environment " in line
    assert not list(describe_fast_cases(results(30, 30), catalog(exact=True), "simulated"))


def test_one_program_does_not_thin_out_another():
    others = [replace(result, case=replace(result.case, program="osu")) for result in results(0, 30)]
    known = catalog_of(Reference(each.case, 1e-6, 0.1, 20) for each in [*results(6, 30), *others])
    assert len(list(describe_fast_cases([*results(6, 30), *others], known, "local"))) == 1


ACCEPTS = {"compiler": "gcc 13 was measured against 12 in May"}
OTHER = {"compiler": "gcc 13.1.0"}


def outcome(tmp_path: Path, accepts: dict[str, str]):
    catalog = book_of(finished(tmp_path / "before"))
    said = reframe_says(finished(tmp_path / "before"), catalog)
    done = finished(tmp_path / "now", said=said, run=OTHER, accepts=accepts)
    return evaluate_launches([done], catalog, PLACE[0]), describe_waivers([done], catalog)


def test_another_compiler_is_not_comparable_and_named(tmp_path: Path):
    results, notes = outcome(tmp_path, {})
    assert {str(result.verdict) for result in results} == {"not-comparable"}
    assert "compiler is 'gcc 13.1.0', and" in results[0].reason
    assert notes == []


def test_what_the_site_accepts_is_judged_and_told_once(tmp_path: Path):
    results, notes = outcome(tmp_path, ACCEPTS)
    assert {str(result.verdict) for result in results} == {"pass"}
    (line,) = notes
    assert line.startswith(f"{len(CASES)} cases compared although compiler is 'gcc 13.1.0', and")
    assert line.endswith(f"accepted by the site: {ACCEPTS['compiler']}")


def test_what_is_loaded_in_front_of_an_mpi_is_told_once(tmp_path: Path):
    loaded = {"interposed": [{"path": "/opt/libprof.so", "text": "0123456789abcdef"}]}
    some = [finished(tmp_path / str(number), run=loaded, number=number) for number in (1, 2)]
    found = describe_interposed_libraries([*some, finished(tmp_path / "plain")])
    assert found == [f"local:cpu, {PLACE[2]}: libprof.so (01234567) is loaded in front of the MPI"]


@plants(
    "environment", "`UCX_TLS=tcp` and another UCX by `LD_LIBRARY_PATH`, forgotten in a shell",
    "a first calibration", "", 0,
    "of the shell leads: the new references hold with that only | the shell sets …: the new references hold",
)  # fmt: skip
def test_what_the_shell_changes_in_new_references_is_told(tmp_path: Path, declared: Declared):
    """Settings of MPIs, and a library to which it leads; not one to which something else leads."""
    below = [
        {"name": "ucx", "path": "/opt/ucx/lib/libucp.so.0", "version": "1.18.1", "text": "0123456789abcdef"},
        {"name": "libfabric", "path": "/mpi/lib/libfabric.so.1", "version": "2.5", "text": "0123456789abcdef"},
    ]
    shell = {"UCX_TLS": "tcp", "FI_PROVIDER": "sockets"}
    plain = finished(tmp_path / "plain", run={"below": below})
    led = finished(tmp_path / "led", run={"below": below}, by_hand={"shell": shell})
    environ = {"LD_LIBRARY_PATH": "/opt/other:/opt/ucx/lib/"}
    settings, library = describe_shell_effects([plain, led], environ, {PLACE[2]: "/mpi"})
    declared.check((), 0, [settings, library])
    assert settings.startswith(
        "the shell sets FI_PROVIDER=sockets UCX_TLS=tcp: the new references hold with that only"
    )
    assert library.startswith(
        f"{PLACE[2]}: ucx 1.18.1 is /opt/ucx/lib/libucp.so.0, to which LD_LIBRARY_PATH of the"
    )
    assert describe_shell_effects([plain], {"LD_LIBRARY_PATH": ""}, {PLACE[2]: "/mpi"}) == []
    assert describe_shell_effects([plain], environ, {PLACE[2]: "/opt/ucx"}) == []
    assert describe_shell_effects([plain], environ, {}) == []  # of a site


CONTROL = next(iter(CONTROLS))


def busy_results(slow: int, judged: int = 60, controls: int = 0, **more) -> list[CaseResult]:
    """So many cases, of which so many are slow by their headline; and controls that are."""
    told = {"value": 1e-6, "reference": 1e-6, "band": (0.9e-6, 1.1e-6), "headline_limit": 1.2e-6}
    cases = [case(CONTROL, 8 * n) for n in range(controls)]
    cases += [case(size=8 * (n + 1)) for n in range(judged - controls)]
    words = (slow + controls) * [True] + (judged - controls - slow) * [False]
    return [
        CaseResult(
            each,
            Verdict.REGRESSED if late else Verdict.PASS,
            "slow" if late else "",
            headline=1.5e-6 if late else 1e-6,
            by_headline=late,
            **told | more,
        )
        for each, late in zip(cases, words, strict=True)
    ]


@pytest.mark.parametrize(
    ("slow", "judged", "controls", "busy"),
    [
        (5, 60, 0, False),  # few: of a routine
        (6, 60, 0, True),  # a tenth
        (LEAST_CASES - 1, 10, 0, False),
        (LEAST_CASES, 10, 0, True),
        (1, 60, 1, True),  # a control calls no MPI
        (0, 60, 1, True),
    ],
)
def test_headlines_say_nothing_where_controls_or_many_cases_are_slow(slow, judged, controls, busy):
    before = busy_results(slow, judged, controls)
    after, note = excuse_headlines(before)
    left = [result for result in after if result.by_headline]
    assert len(left) == (0 if busy else slow)
    words = {result.verdict for result in after}
    assert words == ({Verdict.PASS} if busy else {Verdict.PASS, Verdict.REGRESSED})
    assert note.startswith("other work disturbs the machine" if busy else "") and bool(note) is busy
    for was, now in zip(before, after, strict=True):
        assert now == was or (busy and was.by_headline)


def test_what_is_judged_by_its_value_stays_what_it_is():
    """Slow by its value, it is no sign of other work either; below its band it is fast."""
    slow = busy_results(30, value=1.3e-6)
    assert not assess_disturbance(slow).busy and excuse_headlines(slow) == (slow, "")
    several = [replace(result, by_headline=False) for result in busy_results(30)]
    assert assess_disturbance(several).busy and excuse_headlines(several) == (several, "")
    for nothing in ({"headline_limit": None}, {"headline": None}):  # no headline was judged
        blind = [replace(result, **nothing) for result in busy_results(0, 90)]
        assert assess_disturbance([*busy_results(6), *blind]) == Disturbance(6, 60, 0)
    (first, *_), _ = excuse_headlines(busy_results(30, value=0.8e-6))
    assert first.verdict == Verdict.FAST
    (first, *_), _ = excuse_headlines(busy_results(30, provisional=True))
    assert first.verdict == Verdict.PROVISIONAL and "some of its trials are slow" in first.reason


@pytest.mark.parametrize(("others", "slow_controls"), [(True, 0), (False, 1), (False, 0)])
def test_a_slow_mean_accuses_nothing_beside_other_work(others: bool, slow_controls: int):
    """Other work does not excuse a program that has fast trials, or whose times repeat exactly."""
    mean = CaseResult(case(program="imb"), Verdict.REGRESSED, "slow", value=3e-6, spread=0.1)
    others_of = (replace(mean, headline=3e-6), replace(mean, spread=None), replace(mean, verdict=Verdict.PASS))
    session = [mean, *others_of, *busy_results(0, 2, slow_controls)]
    after, note = excuse_means(session, others)
    busy = others or bool(slow_controls)
    assert after[0].verdict == (Verdict.PROVISIONAL if busy else Verdict.REGRESSED)
    assert after[0].provisional is busy and after[1:] == session[1:]
    assert note.startswith("other work disturbs the machine: 1 mean of imb" if busy else "")
    assert bool(note) is busy


SLOWER = CaseResult(case(), Verdict.REGRESSED, "slow", value=1.9e-6, reference=1e-6, spread=0.1)


@pytest.mark.parametrize(
    ("result", "doubted"),
    [
        (SLOWER, True),
        (replace(SLOWER, value=2.1e-6), False),
        (replace(SLOWER, spread=None), False),  # simulated time
        (replace(SLOWER, value=0.6e6, reference=1e6, unit="MB/s"), True),
        (replace(SLOWER, value=0.4e6, reference=1e6, unit="MB/s"), False),
        (replace(SLOWER, value=3e-6, headline=1.5e-6, headline_reference=1e-6, by_headline=True), True),
        (replace(SLOWER, verdict=Verdict.CRASHED), False),
    ],
)
def test_what_other_processes_may_have_slowed_is_suspect(result: CaseResult, doubted: bool):
    (after,), note = doubt_beside_others([result], 0.65)
    assert after == (replace(result, verdict=Verdict.SUSPECT) if doubted else result)
    assert (
        note.startswith("other processes used 65% of the machine: 1 slower case of less than 2 times")
        == doubted
    )


def test_slow_means_beside_other_work_are_one_group_whatever_their_values():
    means = [
        CaseResult(each, Verdict.REGRESSED, f"slow: {n}", value=3e-6, spread=0.1)
        for n, each in enumerate((case(program="imb"), case(program="imb", size=16)))
    ]
    (group,) = group_cases(excuse_means(means, beside_others=True)[0])
    assert group.verdict == Verdict.PROVISIONAL and len(group.results) == 2


EVERYTHING = RequestedCases(Selection(Path()))
UNREVIEWED = Path("unreviewed")


def asked(families: list[str] | None = None, environments: Sequence[str] = (), **choice) -> RequestedCases:
    return RequestedCases(Selection(Path(), environments=environments, choice=choice), families)


def gone_of(
    roots: list[Path], of: RequestedCases = EVERYTHING, root: Path = UNREVIEWED, **plan
) -> list[CaseResult]:
    """What is missed where one launch is planned, by default in another environment."""
    return find_unplanned_environments(roots, [planned(**plan or {"environment": "other"})], root, of)


def write(root: Path, program: str, *known: Reference) -> None:
    reference_file.write_references(reference_file.locate_references(root, *PLACE), known, origin_of(program))


@plants("builds", "an environment that is gone, with reviewed references",
        "MPIs of the machine", "incomplete", 1, "mpich-5_0_2")  # fmt: skip
def test_a_case_without_its_environment_is_incomplete(tmp_path: Path, declared: Declared):
    write_references(tmp_path)
    gone = gone_of([tmp_path])
    assert {result.case for result in gone} == set(CASES)
    status = compute_exit_status(gone, strict=False)
    declared.check((r.verdict for r in gone), status, (r.reason for r in gone))


def test_what_is_gone_keeps_its_unit_and_is_measured_again_by_its_program(tmp_path: Path):
    rate = Reference(case(program="osu"), 100.0, 0.1, 20, MEGABYTES)
    write(tmp_path, "osu", rate)
    (gone,) = gone_of([tmp_path])
    assert (gone.case, gone.reference, gone.unit) == (rate.case, 100.0, MEGABYTES)
    assert gone.rerun == f"./plumbline run --environment {PLACE[2]} --program osu"


def test_nothing_is_gone_where_every_environment_is_planned(tmp_path: Path):
    write_references(tmp_path)
    assert gone_of([tmp_path], environment=PLACE[2]) == gone_of([tmp_path / "none"]) == []


@pytest.mark.parametrize(
    ("of", "named"),
    [
        (case(routine="bcast_as_sends"), [{"routines": ["bcast_as_sends"]}]),
        *(
            (case(routine, 8, program="osu", cache="warm"), [{"routines": [routine]}])
            for routine in ("bcast.persistent", "iscatterv", "get_acc_latency")
        ),
        (
            case("sor_A", 8_000_000, program="kernels", cache="warm"),
            [{"programs": ["kernels"]}, {"routines": ["sor_A"]}],
        ),
    ],
)
def test_what_only_its_name_measures_is_not_missed_by_a_night_that_does_not_name_it(of, named):
    known = {of: Reference(of, 1.0, 0.1, 20)}
    for choice in ({}, {"sizes": [of.bytes]}, {"programs": ["mpicost"]}):
        assert asked(**choice).among(known) == []
    for choice in named:
        assert asked(**choice).among(known) == [known[of]]


@pytest.mark.parametrize("name", ["programs", "routines", "sizes", "processes", "cache", "sync"])
def test_a_choice_makes_a_night_partial(name: str):
    assert is_whole(Selection(Path()))
    assert is_whole(Selection(Path(), choice={"trials": 11, "iterations": 50}))
    assert not is_whole(Selection(Path(), choice={name: ["x"]}))
    assert not is_whole(Selection(Path(), environments=["mpich"]))


@plants("use", "a case with a reviewed reference that nothing measures any more",
        "tables of routines", "incomplete", 1, "is not measured any more")  # fmt: skip
def test_a_reviewed_case_that_is_not_planned_any_more_is_incomplete(tmp_path, declared):
    write_references(tmp_path / "reviewed")
    launch = planned()
    catalog = load_catalog([tmp_path / "reviewed"], [(launch.partition, launch.environment)])
    fewer = replace(launch, cases=launch.cases[1:])
    (found,) = find_unplanned_cases(catalog, [fewer], tmp_path / "provisional", EVERYTHING)
    assert (found.case, found.verdict) == (launch.cases[0], Verdict.INCOMPLETE)
    skipped = replace(fewer, skips=(SkippedCase(launch.cases[0], "too large"),))
    assert find_unplanned_cases(catalog, [skipped], tmp_path / "provisional", EVERYTHING) == []
    assert find_unplanned_cases(catalog, [launch], tmp_path / "provisional", EVERYTHING) == []
    declared.check_case(found.verdict, found.reason)


def test_an_unreviewed_case_of_enough_launches_is_missed_too(tmp_path: Path):
    """Few launches are no promise, and what only a calibration of its own had, no night ever measured."""
    root = tmp_path / "unreviewed"
    path = write_references(root)
    launch = planned()
    fewer = replace(launch, cases=launch.cases[1:])
    catalog = load_catalog([root], [(launch.partition, launch.environment)])
    (found,) = find_unplanned_cases(catalog, [fewer], root, EVERYTHING)
    assert (found.case, found.verdict) == (launch.cases[0], Verdict.INCOMPLETE)
    assert f"{path}: measure it again, or remove the row if it is given up" in found.reason
    warm = [replace(each, cache="warm") for each in launch.cases]
    assert find_unplanned_cases(catalog, [replace(launch, cases=tuple(warm))], root, EVERYTHING) == []
    other = replace(launch, cases=(case(program="osu"),))
    assert len(find_unplanned_cases(catalog, [other], root, EVERYTHING)) == len(launch.cases)
    (reference_set,) = catalog.sets.values()
    known = {of: replace(each, launches=9) for of, each in reference_set.references.items()}
    few = replace(catalog, sets={PLACE: replace(reference_set, references=known)})
    assert find_unplanned_cases(few, [fewer], root, EVERYTHING) == []
    (told,) = reference_set.provenance["programs"]["mpicost"]["calibrations"]
    told["options"] = {"oversubscribe": True}
    assert find_unplanned_cases(catalog, [fewer], root, EVERYTHING) == []


def test_a_whole_partition_that_left_the_site_is_missed(tmp_path: Path):
    reviewed, root = tmp_path / "reviewed", tmp_path / "unreviewed"
    path = write_references(reviewed)
    elsewhere = {"partition": "local:gpu"}
    gone = gone_of([reviewed, root], root=root, **elsewhere)
    assert {result.case for result in gone} == set(CASES)
    said = gone[0].reason
    assert f"of partition cpu nothing is measured now, and has references in {path}: " in said
    assert gone_of([reviewed], asked(partitions=["gpu"]), root, **elsewhere) == []
    assert gone_of([reviewed], root=root, partition="another:gpu") == []
    assert len(gone_of([reviewed], asked(partitions=["gpu", "cpu"]), root, **elsewhere)) == len(gone)
    assert len(gone_of([reviewed], root=reviewed, **elsewhere)) == len(gone)
    write(root, "mpicost", Reference(case(), 1e-6, 0.1, 9))
    assert gone_of([root], root=root, **elsewhere) == []
    assert len(gone_of([root], root=root)) == 1


@pytest.mark.parametrize(
    ("choice", "missed"),
    [
        *((choice, 4) for choice in ({}, {"trials": 11, "as_references": True, "programs": []})),
        *(({"programs": ["mpicost"]}, 4), ({"programs": ["osu"]}, 0)),
        ({"routines": ["bcast", "scatter"]}, 2),
        ({"sizes": [8, 123]}, 3),  # and the barrier, which has no size
        ({"sizes": [1_000_000]}, 2),
        *(({"partitions": ["cpu"]}, 4), ({"partitions": ["gpu"]}, 0)),
        *(({"processes": [2, 77]}, 4), ({"processes": [4]}, 0), ({"per_node": [1]}, 0)),
        *(({"peers": [1]}, 4), ({"peers": [3]}, 3)),
        *(({"cache": "evict"}, 4), ({"cache": "flush"}, 0), ({"cache": "warm"}, 0), ({"sync": "window"}, 0)),
        *(({"environments": [PLACE[2]]}, 4), ({"environments": ["other"]}, 0)),
        *(({"families": ["openmpi", "mpich"]}, 4), ({"families": ["openmpi"]}, 0)),
    ],
)
def test_a_partial_session_misses_what_it_would_have_measured(tmp_path: Path, choice, missed: int):
    write_references(tmp_path)
    of = asked(**choice)
    gone = gone_of([tmp_path], of)
    assert len(gone) == missed
    found = compute_exit_status([*gone, CaseResult(case("x"), Verdict.PASS)], False)
    assert found == (1 if missed else 0)
    if not {"environments", "families"} & {*choice}:
        catalog = load_catalog([tmp_path], [(planned().partition, PLACE[2])])
        here = [planned(cases=(case("x"),))]
        assert len(find_unplanned_cases(catalog, here, UNREVIEWED, of)) == missed


def test_an_empty_message_is_one_size_among_others_where_a_routine_has_several(tmp_path: Path):
    write(
        tmp_path,
        "imb",
        *(Reference(case(size=n, program="imb", sync="barrier"), 1e-6, 0.1, 20) for n in (0, 8)),
    )
    assert [result.case.bytes for result in gone_of([tmp_path], asked(sizes=[8]))] == [8]
    assert gone_of([tmp_path], asked(peers=[1])) == []  # of IMB and OSU what has no partner is left out then


def test_controls_have_no_size_that_is_chosen(tmp_path: Path):
    write(tmp_path, "mpicost", Reference(case("control_compute", 8), 1e-6, 0.1, 20))
    assert len(gone_of([tmp_path], asked(sizes=[1000]))) == 1


def test_a_damaged_file_of_what_was_not_asked_for_disturbs_nobody(tmp_path: Path):
    write_references(tmp_path).write_text("x")
    assert gone_of([tmp_path], asked(environments=["other"])) == []
    with pytest.raises(reference_file.ReferenceFileError):
        gone_of([tmp_path])
