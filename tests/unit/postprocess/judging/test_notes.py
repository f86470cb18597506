"""Many cases that are suspiciously fast are a matter of their references, and the night says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.notes import describe_fast_cases, describe_interposed_libraries, describe_waivers
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.references.catalog import ReferenceCatalog
from tests.support.factories.launch import CASES, PLACE, book_of, case, catalog_of, finished, reframe_says

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


def test_a_site_and_its_partition_are_named():
    (line,) = describe_fast_cases(results(20, 30), catalog(), "big")
    assert "./plumbline calibrate --site big --partition cpu --environment " in line


def test_one_program_does_not_thin_out_another():
    others = [replace(each, case=replace(each.case, program="osu")) for each in results(0, 30)]
    both = [*MANY_CASES, *(each.case for each in others)]
    known = catalog_of(Reference(each, 1e-6, 0.1, 20) for each in both)
    assert len(list(describe_fast_cases([*results(6, 30), *others], known, "local"))) == 1


def test_in_simulated_time_it_is_the_programs_that_changed():
    assert not list(describe_fast_cases(results(30, 30), catalog(exact=True), "simulated"))


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
