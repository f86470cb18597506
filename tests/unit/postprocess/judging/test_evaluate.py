"""From launches to one verdict per planned case: the worst launch decides, and ReFrame must agree."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.judging import evaluate
from postprocess.judging.evaluate import (
    evaluate_case,
    evaluate_launches,
    format_rerun_command,
    select_median_launch,
    take_medians,
)
from postprocess.main import build_parser
from postprocess.model.conditions import circumstances_of, method_of
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.measurement import Measurement
from postprocess.model.plan import SkippedCase
from postprocess.model.reference import Reference
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.routines.mpicost import TRIAL_ROUNDS
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict, compute_exit_status
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.store import build_rows, read_sessions, write_session
from postprocess.stats.band import compute_band
from spack_envs.installation import BuiltBinary
from tests.support.factories.benchmark import measured
from tests.support.factories.launch import (
    CASES,
    book_of,
    case,
    catalog_of,
    entry,
    finished,
    finished_with_wrong_data,
    origin_of,
    planned,
    reframe_says,
    steady,
)
from tests.support.faults import Declared, plants

FAILURES = [LaunchOutcome(None, verdict, f"reason of {verdict}") for verdict in FAILED_LAUNCH]


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> FinishedLaunch:
    return finished(tmp_path_factory.mktemp("session"))


@plants("references", "a number too large for a band", "judging one case", "incorrect", 1,
        "cannot be judged: OverflowError: math range error; its trials are kept")  # fmt: skip
def test_a_case_that_cannot_be_judged_is_incorrect_and_others_are_judged(well, monkeypatch, declared: Declared):
    """A number too large for a band ended the session after its launches, with nothing stored."""
    real = evaluate.evaluate_case

    def overflow(of, *given):
        if of == CASES[0]:
            raise OverflowError("math range error")
        return real(of, *given)

    monkeypatch.setattr(evaluate, "evaluate_case", overflow)
    results = evaluate_launches([well], ReferenceCatalog(), "local")
    found = {result.case: result for result in results}
    assert {each: str(result.verdict) for each, result in found.items()} == dict.fromkeys(
        CASES, "no-reference"
    ) | {CASES[0]: "incorrect"}
    (kept,) = (row for row in build_rows("s", "", [well], results, "nightly") if row.case == CASES[0])
    assert kept.value == steady(well, CASES[0]) and kept.verdict == "incorrect"
    declared.check_case(found[CASES[0]].verdict, found[CASES[0]].reason)


def words(results: Sequence[CaseResult]) -> list[str]:
    return [str(result.verdict) for result in results]


def agreed(done: FinishedLaunch, catalog: ReferenceCatalog) -> FinishedLaunch:
    """The same launch, with ReFrame's assertion from the same bands."""
    return replace(done, asserted=reframe_says(done, catalog))


def test_every_planned_case_has_one_result_in_the_order_of_cases(well: FinishedLaunch):
    results = evaluate_launches([well], book_of(well), "local")
    assert [result.case for result in results] == sorted(CASES)
    assert words(results) == ["pass"] * len(CASES)
    assert all(result.launches == 1 for result in results)


def test_a_slow_case_regresses_and_no_other(well: FinishedLaunch):
    catalog = book_of(well)
    references = catalog.find_set(CASES[1]).references
    references[CASES[1]] = replace(references[CASES[1]], center=references[CASES[1]].center / 3)
    results = evaluate_launches([agreed(well, catalog)], catalog, "local")
    found = {result.case: str(result.verdict) for result in results}
    assert found == dict.fromkeys(CASES, "pass") | {CASES[1]: "regressed"}


@pytest.mark.parametrize("by", [1.0, 1.3])
def test_a_headline_beyond_its_own_limit_is_slow_and_reframe_asserts_values_alone(well, by):
    """Few trials are slow: the value, the steady time, is as ever, and so is what ReFrame says."""
    catalog = book_of(well)
    references = catalog.find_set(CASES[0]).references
    known = references[CASES[0]]
    slow = replace(known.headline, center=known.headline.center / by)
    references[CASES[0]] = replace(known, headline=slow)
    results = evaluate_launches([agreed(well, catalog)], catalog, "local")
    (found,) = (result for result in results if result.case == CASES[0])
    assert (found.verdict == Verdict.REGRESSED, found.by_headline) == (by > 1, by > 1)
    assert found.headline_limit == compute_band(slow).upper and not found.beyond
    assert found.reason.endswith("its fast trials are unchanged") == (by > 1)


def test_a_suspiciously_fast_launch_is_fast_and_reframe_need_not_mind(well: FinishedLaunch):
    catalog = book_of(well, factor=10.0)
    assert set(words(evaluate_launches([agreed(well, catalog)], catalog, "local"))) == {"fast"}


@plants("output", "a regression that ReFrame passes", "ReFrame's report", "incorrect", 1,
        "Plumbline says regressed, ReFrame says …: one of them is wrong")  # fmt: skip
@pytest.mark.parametrize("said", ["pass", "xfail", "xpass", None, ""])
def test_a_regression_that_reframe_does_not_see_is_incorrect(well, said, declared):
    catalog = book_of(well, factor=0.1)
    results = evaluate_launches([replace(well, asserted={CASES[0].variable: said})], catalog, "local")
    assert set(words(results)) == {"incorrect"}
    first = next(result for result in results if result.case == CASES[0])
    assert first.reason == (f"Plumbline says regressed, ReFrame says {said}: one of them is wrong")
    declared.check_case(first.verdict, first.reason)


@plants("output", "a good case that ReFrame does not pass", "ReFrame's report", "incorrect", 1,
        "ReFrame says …: one of them is wrong")  # fmt: skip
@pytest.mark.parametrize("said", ["fail", "xfail", "xpass", None, ""])
@pytest.mark.parametrize("launches", [5, 20])
def test_a_case_inside_its_band_that_reframe_does_not_pass_is_incorrect(
    well, said, launches, declared: Declared
):
    asserted = entry().results | {CASES[0].variable: said}
    catalog = book_of(well, launches=launches)
    results = evaluate_launches([replace(well, asserted=asserted)], catalog, "local")
    (found,) = [result for result in results if result.verdict == Verdict.INCORRECT]
    assert found.case == CASES[0]
    declared.check_case(found.verdict, found.reason)


@pytest.mark.parametrize("said", ["no-reference", "not-comparable"])
def test_what_reframe_held_against_nothing_is_judged_by_a_reference_of_later(well, said):
    asserted = {case.variable: said for case in CASES}
    results = evaluate_launches([replace(well, asserted=asserted)], book_of(well, factor=0.1), "local")
    assert set(words(results)) == {"regressed"}


def test_options_by_hand_of_the_launch_are_held_against_those_of_its_reference(well):
    """Without them a launch is no night of a reference that was made with them; with them it is one."""
    by_hand = {"set_env": {"A": "1"}}
    catalog = book_of(well)
    for reference_set in catalog.sets.values():
        for told in reference_set.provenance["programs"].values():
            told["calibrations"][0]["options"] = by_hand
    found = set(words(evaluate_launches([agreed(well, catalog)], catalog, "local")))
    assert found == {"not-comparable"}
    alike = replace(well, launch=replace(well.launch, by_hand=by_hand))
    assert set(words(evaluate_launches([agreed(alike, catalog)], catalog, "local"))) == {"pass"}


@plants("references", "measured with other trials, on another processor or by another version",
        "a reference", "not-comparable", 1, " is …, and … in mpich-5_0_2.tsv; calibrate again")  # fmt: skip
@pytest.mark.parametrize("method", [{"trials": 11}, {"cpu_model": "another"}, {"suite_version": "9"}], ids=str)
def test_a_reference_of_another_method_is_not_comparable(well: FinishedLaunch, method, declared):
    catalog = book_of(well, cases=CASES[1:], **method)
    results = {result.case: result for result in evaluate_launches([well], catalog, "local")}
    unknown = results[CASES[0]]
    assert (unknown.verdict, unknown.value) == (Verdict.NO_REFERENCE, steady(well, CASES[0]))
    for case_ in CASES[1:]:
        result = results[case_]
        assert (result.verdict, result.band) == (Verdict.NOT_COMPARABLE, None)
        assert result.slowdown  # what it is held against is shown, and judges nothing
        assert result.value == steady(well, case_)
        assert next(iter(method)) in result.reason
        declared.check_case(result.verdict, result.reason)


def test_one_launch_of_another_method_is_enough_not_to_compare(well: FinishedLaunch, tmp_path):
    other = finished(tmp_path, number=2, run={"cpu_model": "another"})
    for launches in ([well, other], [other, well]):
        assert set(words(evaluate_launches(launches, book_of(well), "local"))) == {"not-comparable"}


@pytest.mark.parametrize("outcome", FAILURES, ids=lambda each: str(each.verdict))
@pytest.mark.parametrize("first", [True, False])
def test_a_launch_that_failed_decides(well: FinishedLaunch, tmp_path: Path, outcome, first: bool):
    bad = finished(tmp_path, outcome=outcome, number=2)
    launches = [bad, well, well] if first else [well, well, bad]
    results = evaluate_launches(launches, book_of(well), "local")
    for result in results:
        assert (result.verdict, result.reason, result.value) == (outcome.verdict, outcome.reason, None)
    (row,) = (row for row in build_rows("s1", "", [bad], results) if row.case == CASES[0])
    assert (row.verdict, row.reason, len(row.t_max)) == (outcome.verdict, outcome.reason, 0)


@plants("data", "one wrong element in one of two launches", "records of mpicost", "incorrect", 1,
        "wrong data: bcast with 1000000 bytes: rank 1 received -1")  # fmt: skip
@pytest.mark.parametrize("first", [True, False])
def test_wrong_data_decides_its_own_case_and_no_other(well, tmp_path, first, declared):
    """In one of several launches, and in the only one."""
    bad = finished_with_wrong_data(tmp_path, place=2, number=2)
    for launches in ([bad], [bad, well] if first else [well, bad]):
        results = evaluate_launches(launches, book_of(well), "local")
        found = {result.case: str(result.verdict) for result in results}
        assert found == {each: "incorrect" if each == CASES[1] else "pass" for each in CASES}
        (wrong,) = [result for result in results if result.case == CASES[1]]
        status = compute_exit_status(results, strict=False)
        declared.check([wrong.verdict], status, [wrong.reason])


@given(st.lists(st.sampled_from(FAILURES), min_size=1))
def test_the_worst_of_several_failures_decides(outcomes: list[LaunchOutcome]):
    launches = [finished(Path(), outcome=outcome) for outcome in outcomes]
    worst = min(outcomes, key=lambda each: FAILED_LAUNCH.index(each.verdict))
    results = evaluate_launches(launches, ReferenceCatalog(), "local")
    assert {(result.verdict, result.reason) for result in results} == {(worst.verdict, worst.reason)}


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - {*FAILED_LAUNCH, Verdict.SKIPPED}))
def test_an_outcome_of_an_unforeseen_kind_is_never_a_pass(well: FinishedLaunch, verdict: Verdict):
    odd = finished(Path(), outcome=LaunchOutcome(None, verdict, "?"))
    assert set(words(evaluate_launches([odd], ReferenceCatalog(), "local"))) == {"incomplete"}
    assert set(words(evaluate_launches([well, odd], book_of(well), "local"))) == {"incomplete"}


def test_the_median_launch_is_judged(well: FinishedLaunch, tmp_path: Path):
    """Three launches, one of them slow: the case is not. Two of them slow: it is."""
    catalog = book_of(well)
    slow = agreed(finished(tmp_path, scale=10.0, number=2), catalog)
    assert set(words(evaluate_launches([slow, well, well], catalog, "local"))) == {"pass"}
    results = evaluate_launches([well, slow, slow], catalog, "local")
    assert set(words(results)) == {"regressed"}
    assert {result.launches for result in results} == {3}
    assert ", the median of 3 launches, is " in results[0].reason
    assert results[0].value == steady(slow, results[0].case)


def test_a_median_is_held_against_the_band_of_a_median(well: FinishedLaunch, tmp_path: Path):
    """Slower by what a launch may be and the median of five may not; in a calibration it may."""
    catalog = book_of(well, spread=0.06)
    (known_set,) = catalog.sets.values()
    bands = {each: compute_band(known, median_of=5) for each, known in known_set.references.items()}
    scale = max(bands[each].upper / known.center for each, known in known_set.references.items())
    one, *others = (
        agreed(finished(tmp_path / str(number), scale * 1.01, number=number), catalog) for number in range(1, 6)
    )
    assert set(words(evaluate_launches([one], catalog, "local"))) == {"pass"}
    five = evaluate_launches([one, *others], catalog, "local")
    assert set(words(five)) == {"regressed"}
    for each in five:
        assert each.band == (bands[each.case].lower, bands[each.case].upper)
        assert each.detectable < evaluate_case(each.case, [one], catalog).detectable
    own = evaluate_launches([one, *others], catalog, "local", calibrating=True)
    assert set(words(own)) == {"provisional"}  # judged by none


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_reframe_must_agree_on_each_launch_of_a_median(well: FinishedLaunch, tmp_path, wrong: int):
    catalog = book_of(well)
    slow = agreed(finished(tmp_path, scale=10.0, number=2), catalog)
    launches = [well, slow, well]
    assert set(words(evaluate_launches(launches, catalog, "local"))) == {"pass"}
    said = {"pass": "fail", "fail": "pass"}[launches[wrong].asserted[CASES[0].variable]]
    asserted = {**launches[wrong].asserted, CASES[0].variable: said}
    launches[wrong] = replace(launches[wrong], asserted=asserted)
    results = evaluate_launches(launches, catalog, "local")
    assert {result.case for result in results if result.verdict == Verdict.INCORRECT} == {CASES[0]}


@given(st.lists(st.tuples(st.floats(1, 9), st.floats(1, 9)), min_size=1, max_size=6), st.booleans())
def test_values_and_headlines_have_medians_of_their_own(told, all_tell):
    some = [Measurement(value, headline=headline) for value, headline in told]
    if not all_tell:
        some[0] = replace(some[0], headline=None)
    found = take_medians(some[0], some)
    assert found.value == median(value for value, _ in told)
    assert found.headline == (median(each for _, each in told) if all_tell else None)


@given(st.permutations([1.0, 2.0, 3.0, 4.0]), st.integers(1, 4))
def test_the_lower_of_the_middle_two_launches_stands_for_an_even_number(order, number):
    measured = [(Measurement(value), None) for value in order[:number]]
    chosen, _ = select_median_launch(measured)
    assert chosen.value == sorted(order[:number])[(number - 1) // 2]


def test_a_skipped_case_has_its_reason_and_fails_only_a_strict_night(well: FinishedLaunch):
    other = case(size=10**9)
    skipping = replace(well, launch=replace(well.launch, skips=(SkippedCase(other, "too large"),)))
    results = evaluate_launches([skipping], book_of(well), "local")
    (skipped,) = [result for result in results if result.case == other]
    assert (skipped.verdict, skipped.reason) == (Verdict.SKIPPED, "too large")
    assert len(results) == len(CASES) + 1
    found = (compute_exit_status(results, strict=False), compute_exit_status(results, strict=True))
    assert found == (0, 1)


# The command that measures a case again.


@pytest.mark.parametrize(
    ("changes", "trials", "expected"),
    [
        ({}, 51, "--routine bcast --processes 2 --bytes 8"),
        ({"routine": "barrier", "bytes": 0}, 51, "--routine barrier --processes 2"),
        (
            *({"cache": "warm", "sync": "window"}, 11),
            "--routine bcast --processes 2 --bytes 8 --cache warm --sync window --trials 11",
        ),
        (
            *({"routine": "pingpong", "peer": 3, "processes": 4}, 51),
            "--routine pingpong --processes 4 --per-node 2 --peers 3 --bytes 8",
        ),
    ],
)
def test_the_rerun_command_names_the_case(changes, trials, expected):
    command = format_rerun_command(planned(trials=trials, rounds=TRIAL_ROUNDS), case(**changes), "local")
    start = "./plumbline run --environment mpich-5_0_2 --program mpicost "
    assert command == start + expected
    build_parser().parse_args(shlex.split(command)[1:])


BCAST = Benchmark("osu_bcast", "bcast", "t", "Max Latency(us)")
BARRIER = Benchmark("osu_barrier", "barrier", "t", "Max Latency(us)", sync="loop", sizes=(0,))
PINGPONG = Benchmark("PingPong", "pingpong", "PingPong", "t[usec]", sync="loop", ranks="two")


@pytest.mark.parametrize(
    ("benchmark", "changes", "iterations", "expected"),
    [
        (BCAST, {}, 100, "--bytes 8"),
        (BCAST, {}, 20, "--bytes 8 --iterations 20"),
        (BARRIER, {"size": 0, "sync": "loop"}, 100, ""),
        (PINGPONG, {"peer": 1, "size": 0}, 100, "--peers 1 --bytes 0"),
        (PINGPONG, {"peer": 1, "cache": "rotate"}, 100, "--peers 1 --bytes 8 --cache rotate"),
    ],
)
def test_the_rerun_command_of_a_reference_benchmark(benchmark, changes, iterations, expected):
    """It has no trials, and its cases say themselves what is between two calls."""
    about = {"program": "osu", "cache": "warm", "sync": "barrier", "routine": benchmark.routine}
    wanted = case(**about | changes)
    launch = planned(trials=iterations, benchmarks=(benchmark,), cases=(wanted,), program="osu")
    line = format_rerun_command(launch, wanted, "local")
    start = "./plumbline run --environment mpich-5_0_2 --program osu"
    assert line == f"{start} --routine {benchmark.routine} --processes 2 {expected}".rstrip()
    build_parser().parse_args(shlex.split(line)[1:])
    elsewhere = format_rerun_command(launch, wanted, "cluster")
    assert elsewhere.endswith(f"--cache {wanted.cache} --iterations {iterations}")
    assert "--sync" not in elsewhere and "--trials" not in elsewhere


def test_the_rerun_command_has_iterations_that_were_asked_for_and_options_that_concern_the_case():
    wanted = replace(case(program="osu", cache="warm", sync="loop", routine="bw"), environment="mpich")
    launch = planned(trials=8, cases=(wanted,), program="osu", method={"iterations": 40})
    options = ["--oversubscribe", "--set-env=mpich:A=1 2", "--set-env=openmpi:B=3"]
    words = shlex.split(format_rerun_command(launch, wanted, "local", options))
    assert words[-4:] == ["--iterations", "40", "--oversubscribe", "--set-env=mpich:A=1 2"]
    build_parser().parse_args(words[1:])


def test_each_result_carries_its_rerun_command(well: FinishedLaunch):
    site = "my 'site'; $(rm x)"
    for result in evaluate_launches([well], book_of(well), site):
        assert result.rerun == format_rerun_command(well.launch, result.case, site)
        start, *words = shlex.split(result.rerun)
        assert (start, build_parser().parse_args(words).site) == ("./plumbline", site)


# What is stored.


def test_every_trial_of_every_launch_is_stored(well: FinishedLaunch, tmp_path: Path):
    launches = [well, finished(tmp_path, scale=2.0, number=2)]
    results = evaluate_launches(launches, book_of(well), "local")
    results = [replace(result, q=0.5, detectable=0.1, expected="known") for result in results]
    stored = build_rows("s1", "2026-11-21T09:00:00Z", launches, results, "nightly")
    write_session(tmp_path / "s1.parquet", stored)
    frame = read_sessions(tmp_path, ["s1"])
    assert frame.height == 2 * len(CASES)
    expected = {"unit": "s", "figures": "{}", "q": 0.5, "detectable": 0.1, "expected": "known"}
    expected |= {"spec_hash": "mpicost@0.1.0/abcdef", "mode": "nightly"}
    for done, each in product(launches, CASES):
        (row,) = frame.filter(key=each.key, launch=done.launch.number).to_dicts()
        record = done.records[each.variable]
        told = {"t_max": record.t_max.tolist(), "skew": record.skew.tolist()}
        told |= {"headline": record.summary.headline, "value": record.summary.steady}
        told |= {"mpi_library": done.run["mpi_library"]}
        told |= {"hosts": ",".join(sorted(host["name"] for host in done.run["hosts"]))}
        assert row == row | expected | told


def test_how_a_program_was_built_is_stored(well: FinishedLaunch):
    """What the build does not tell, the running program does; what nobody told is unknown."""
    results = evaluate_launches([well], book_of(well), "local")
    built = BuiltBinary("e", "mpicost", "/x", "cmake", compiler="gcc 12.2.0", flags="-O3")
    silent = replace(well, built=None, outcome=LaunchOutcome(None, Verdict.CRASHED, "exit code 1"))
    launches = [replace(well, built=built), replace(well, built=None), silent]
    rows = [build_rows("s1", "", [launch], results)[0] for launch in launches]
    expected = [("gcc 12.2.0", "-O3"), ("gcc 12.2.0", "-O2"), ("unknown", "unknown")]
    assert [(row.compiler, row.flags) for row in rows] == expected


def test_a_start_of_a_reference_benchmark_is_judged_and_stored_with_all_its_figures(tmp_path: Path):
    """It has no trials: what a mean hides is lost, and nothing pretends that it is there."""
    done = measured(tmp_path)
    results = evaluate_launches([done], osu_book(done), "local")
    assert words(results) == ["pass"] * len(done.launch.cases)
    stored = build_rows("s1", "2026-11-21T09:00:00Z", [done], results)
    write_session(tmp_path / "s1.parquet", stored)
    frame = read_sessions(tmp_path, ["s1"])
    expected = {"unit": "s", "headline": None, "t_max": [], "spec_hash": done.spec}
    expected |= {"mpi_library": done.run["mpi_library"]}
    for result in results:
        (row,) = frame.filter(key=result.case.key).to_dicts()
        found = done.measurements[result.case.variable]
        assert row == row | expected | {"value": found.value}
        assert json.loads(row["figures"]) == result.figures == found.figures


def osu_book(done: FinishedLaunch, factor: float = 1.0, launches: int = 20, **method) -> ReferenceCatalog:
    """References of a start of OSU, ``factor`` above what it measured."""
    known = [
        Reference(each, factor * done.measurements[each.variable].value, 0.05, launches)
        for each in done.launch.cases
    ]
    method = method_of(done.run, exact=False) | method
    return catalog_of(known, origin_of("osu", method=method, circumstances=circumstances_of(done.run)))


@plants("references", "measured with another number of iterations",
        "a reference of OSU", "not-comparable", 1, "iterations is 200, and 100 in mpich-5_0_2.tsv")  # fmt: skip
def test_a_start_of_another_method_is_not_comparable_and_keeps_its_value(tmp_path, declared):
    done = measured(tmp_path)
    for result in evaluate_launches([done], osu_book(done, iterations=100), "local"):
        declared.check_case(result.verdict, result.reason)
        found = done.measurements[result.case.variable]
        assert (result.value, result.unit, result.figures) == (found.value, "s", found.figures)


@pytest.mark.parametrize("said", ["pass", "fail"])
def test_a_rate_that_is_printed_as_nothing_is_incomplete_and_no_wrong_data(tmp_path: Path, said):
    """As of single bytes on a busy machine; whatever ReFrame says of it."""
    done = measured(tmp_path)
    catalog = osu_book(done)
    first, *others = done.launch.cases
    done.measurements[first.variable] = replace(done.measurements[first.variable], value=0.0, unit="MB/s")
    done = replace(done, asserted=done.asserted | {first.variable: said})
    results = evaluate_launches([done], catalog, "local")
    found = {result.case: (str(result.verdict), result.reason) for result in results}
    nothing = ("incomplete", "printed as 0.00: below the printed resolution")
    assert found == dict.fromkeys(others, ("pass", "")) | {first: nothing}


def test_what_reframe_is_not_to_assert_it_need_not_agree_on(well: FinishedLaunch):
    silent = replace(well, launch=replace(well.launch, asserted=False), asserted={})
    assert set(words(evaluate_launches([silent] * 3, ReferenceCatalog(), ""))) == {"no-reference"}
