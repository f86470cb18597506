"""Stored sessions are compared without anything being measured, and never said to be the same."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.features.compare import data, page
from postprocess.features.compare.judge import Decision, JudgedComparison, judge_comparison
from postprocess.main import main
from postprocess.model.case import Case
from postprocess.model.routines import mpicost
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.results.store import StoreRow, write_session
from tests.support.factories.summary import leave_summary
from tests.support.paths import ROOT

OLD, NEW, ELSEWHERE = (f"202611{day}T010000Z-1" for day in (21, 22, 20))
ROUTINES = [routine.name for routine in mpicost.ROUTINES if routine.has_size(8)][:12]  # a group of kin
MPICH, OTHER = "mpich-4", "mpich-5"
LAUNCHES = 4


def row(
    session: str,
    routine: str,
    launch: int,
    value: float | None,
    environment: str = MPICH,
    verdict: Verdict = Verdict.PASS,
    system: str = "s",
    **run: str,
) -> StoreRow:
    case = Case(system, "cpu", environment, "mpicost", routine, 0, "evict", "barrier", 2, 2, 8)
    started = f"{session[:4]}-{session[4:6]}-{session[6:8]}T01:00:00Z"
    record = {"mpi_library": f"library of {environment}", "cpu_model": "chip", "hosts": []} | run
    told = {"mode": "nightly", "provenance": json.dumps(record)}
    return StoreRow(session, started, launch, case, verdict, "why", value=value, **told)


def session_rows(
    session: str, slow: dict[str, float] | None = None, seed: int = 0, **told: str
) -> list[StoreRow]:
    random = np.random.default_rng(seed)
    return [
        row(session, each, n, 1e-6 * (slow or {}).get(each, 1.0) * np.exp(random.normal(0, 0.01)), **told)
        for each in ROUTINES
        for n in range(1, LAUNCHES + 1)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Callable[[str, list[StoreRow]], None]:
    folder = tmp_path / "home" / "store"
    folder.mkdir(parents=True)
    return lambda name, rows: write_session(folder / f"{name}.parquet", rows)


@pytest.fixture
def compare(tmp_path: Path) -> Callable[..., int]:
    def command(*words: str, output: str = "out") -> int:
        where = ("--output", str(tmp_path / output))
        return main(str(ROOT), str(tmp_path / "home"), ["compare", "--stored", *words, *where])

    return command


def read(tmp_path: Path) -> JudgedComparison:
    return judge_comparison(data.read_comparison(tmp_path / "out" / data.FILE))


def judged(tmp_path: Path) -> dict[str, str]:
    return {case.case.routine: case.verdict for case in read(tmp_path).cases}


def test_two_nights_alike_are_not_safe_but_undecided(store, compare, tmp_path, capsys) -> None:
    store(OLD, session_rows(OLD))
    store(NEW, session_rows(NEW, seed=1))
    assert compare(OLD, "2026-11-22") == 3  # a day names its nights
    out = capsys.readouterr().out
    assert "Unpaired, so never proven safe: of 12 cases" in out
    assert set(judged(tmp_path).values()) == {"undecided"}
    told = json.loads((tmp_path / "out" / page.JSON).read_text())
    assert told["paired"] is False and told["exit_status"] == 3
    assert all(each["unpaired"] == [4, 4] for each in told["cases"])
    shown = out + (tmp_path / "out" / page.MARKDOWN).read_text()
    assert "on other machines" in shown  # no reference here tells how sessions differ
    cells = re.findall(r"\b(same|not slower)\b", shown.partition("How to read")[0])
    assert not cells and "unpaired" in shown


def test_what_became_half_as_fast_fails_or_is_missing_counts(store, compare, tmp_path, capsys) -> None:
    gone, crashed = ROUTINES[:2]
    rows = session_rows(NEW, {ROUTINES[3]: 2.0, ROUTINES[4]: 0.4}, seed=1)
    new = [
        replace(each, verdict=Verdict.CRASHED, value=None) if each.case.routine == crashed else each
        for each in rows
        if each.case.routine != gone
    ]
    store(OLD, session_rows(OLD))
    store(NEW, new)
    assert compare(OLD, NEW) == 1
    found = judged(tmp_path)
    assert (found[gone], found[crashed]) == ("only old", "broken")
    assert (found[ROUTINES[3]], found[ROUTINES[4]], found[ROUTINES[5]]) == ("slower", "faster", "undecided")
    assert "Unpaired, not safe" in capsys.readouterr().out


def test_what_one_side_skipped_has_its_reason_while_the_record_is_there(store, compare, tmp_path) -> None:
    gone, unplanned = ROUTINES[:2]
    there = [each for each in session_rows(NEW) if each.case.routine not in (gone, unplanned)]
    store(OLD, session_rows(OLD))
    store(NEW, there)
    case = replace(there[0].case, routine=gone)
    record = leave_summary(
        tmp_path / "home" / "sessions" / NEW, results=[CaseResult(case, Verdict.SKIPPED, "too few nodes")]
    )
    assert compare(OLD, NEW) == 1
    reasons = {each.case.routine: each.reason for each in read(tmp_path).cases if each.verdict == "only old"}
    assert reasons == {gone: "too few nodes", unplanned: "not in the plan of the new side"}
    record.unlink()
    assert compare(OLD, NEW, output="again") == 1
    again = judge_comparison(data.read_comparison(tmp_path / "again" / data.FILE))
    told = {each.reason for each in again.cases if each.verdict == "only old"}
    assert told == {f"not stored, and the record of session {NEW}, which would say why, is gone"}


def test_what_was_measured_otherwise_is_not_judged(store, compare, tmp_path) -> None:
    store(OLD, session_rows(OLD))
    store(NEW, session_rows(NEW, dict.fromkeys(ROUTINES, 2.0), cpu_model="other chip"))
    assert compare(OLD, NEW) == 3
    assert {case.reason for case in read(tmp_path).cases} == {"processor differs: chip and other chip"}


def test_two_mpis_of_one_session_are_chosen_by_name(store, compare, tmp_path, capsys) -> None:
    store(OLD, session_rows(OLD) + session_rows(OLD, {ROUTINES[3]: 3.0}, environment=OTHER))
    assert compare(f"{OLD}:{MPICH}", f"{OLD}:{OTHER}") == 1
    assert judged(tmp_path)[ROUTINES[3]] == "slower"
    assert "MPI library: library of mpich-4 -> library of mpich-5" in " ".join(capsys.readouterr().out.split())
    store(NEW, session_rows(NEW) + session_rows(NEW, environment=OTHER))
    assert compare(OLD, NEW, "--routine", ROUTINES[3], output="both") == 3
    told = json.loads((tmp_path / "both" / page.JSON).read_text())
    found = [each["key"] for each in told["cases"]]
    assert found == [f"cpu:{name}/mpicost/{ROUTINES[3]}/evict-barrier/2x2/8" for name in (MPICH, OTHER)]


@pytest.mark.parametrize(
    "run",
    [
        {"hosts": ["n1"]},
        {"hosts": {"name": "n1"}},
        {"mpi_library": 7},
        {"cpu_model": []},
        {"environment": [1]},
        {"caches": [{"level": 1}]},
        {"ranks": [{"host": "n1", "cpus": "0-99999999999"}]},
    ],
)
def test_a_run_record_with_another_inside_is_one_line(store, compare, capsys, run) -> None:
    store(OLD, session_rows(OLD))
    store(NEW, [replace(each, provenance=json.dumps(run)) for each in session_rows(NEW)])
    assert compare(OLD, NEW) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{NEW}.parquet: " in said and "; move it elsewhere" in said


def test_a_run_record_that_is_none_tells_nothing(store, compare) -> None:
    store(OLD, session_rows(OLD))
    store(NEW, [replace(each, provenance="[" * 100_000) for each in session_rows(NEW)])
    assert compare(OLD, NEW) == 3


def test_texts_of_a_session_do_nothing_to_a_terminal(store, compare, capsys) -> None:
    store(OLD, session_rows(OLD))
    failed = [row(NEW, each, 1, None, verdict=Verdict.CRASHED) for each in ROUTINES]
    store(NEW, [replace(each, reason="\x1b[31m\u202e<b>") for each in failed])
    assert compare(OLD, NEW) == 1
    said = capsys.readouterr().out
    assert r"\x1b[31m\u202e<b>" in said and said.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((OLD, "20261111T010000Z-1"), f"no such session in .*; the last ones are {NEW}, {OLD}, {ELSEWHERE}"),
        ((OLD, "2026-11-11"), "2026-11-11: no night of that day"),
        ((OLD, f"{NEW}:openmpi-9"), "has no such environment; it has mpich-4"),
        ((OLD, NEW, "--routine", "scan_max"), "has no case of those chosen"),
        ((OLD, ELSEWHERE), "are of s, t; ./plumbline papers compares machines"),
    ],
)
def test_wrong_use_is_told_in_one_line(store, compare, words, said, capsys) -> None:
    for name, system in ((OLD, "s"), (NEW, "s"), (ELSEWHERE, "t")):
        store(name, session_rows(name, system=system))
    assert compare(*words) == 2
    err = capsys.readouterr().err
    assert re.search(said, err) and err.count("\n") == 1


def test_stored_sessions_are_never_safe_even_if_all_is_faster(store, compare, tmp_path) -> None:
    store(OLD, session_rows(OLD))
    store(NEW, session_rows(NEW, dict.fromkeys(ROUTINES, 0.3)))
    assert compare(OLD, NEW) == 3
    found = read(tmp_path)
    assert found.decision == Decision.UNDECIDED and found.counts == {"faster": 12}
