"""How a session ends."""

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from postprocess.base.formats import parse_utc
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.reference_file import load_references
from postprocess.report import session_report
from postprocess.results import store
from postprocess.results import summary as summaries
from postprocess.results.store import build_rows
from postprocess.results.summary import SessionSummary
from postprocess.session.lifecycle import finish
from site_configs.schedulers.base import UsableNodes
from spack_envs.layout import SpackLayout
from tests.support.factories.launch import CASES, case, finished, planned
from tests.support.factories.summary import summarise
from tests.support.paths import ROOT

FINE = CaseResult(case("bcast", 8), Verdict.PASS, value=1e-5)


@dataclass
class Place:
    """What a session is finished in."""

    root: Path

    def __post_init__(self) -> None:
        self.progress = Progress(Console(file=io.StringIO()), traces=self.root / "faults")
        self.work = WorkDirectory(self.root, self.root)
        self.prepared = SimpleNamespace(inventory=None, built_with="cmake")
        self.session = Session(self.work.new_session(), "run", "local", [], False)
        self.request = Request("run", [], "local", Selection(Path("site.py")))

    def write(self, launches: list[FinishedLaunch], results: list[CaseResult]) -> SessionSummary:
        summary = summarise(self.session.directory, results=results)
        return finish.write_files(self, self.session, launches, summary)[0]

    def written(self) -> dict[str, Any]:
        return json.loads((self.session.directory / "summary.json").read_text())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def cases_of(environment: str) -> tuple[Case, ...]:
    return tuple(replace(each, environment=environment) for each in CASES)


def broken(*_, **__):
    raise OverflowError("math range error")


def judged(*launches: FinishedLaunch) -> list[CaseResult]:
    return [
        CaseResult(each, Verdict.PASS, value=1e-5, rerun="again")
        for launch in launches
        for each in launch.launch.cases
    ]


@pytest.mark.parametrize(
    ("causes", "faults", "status"),
    [((), [], 0), (("cpu: everything 7% slower",), [], 1), ((), ["note on waivers"], 1)],
)
def test_a_confirmed_cause_or_a_fault_of_ours_fails_a_session_in_which_every_case_passes(
    place: Place, causes: tuple[str, ...], faults: list[str], status: int
):
    place.progress.faults += faults
    assert finish.finish_session(place, place.session, [], [FINE], causes) == status
    assert (place.written()["exit_status"], place.written()["causes"]) == (status, [*causes])


def test_a_fault_in_storing_leaves_the_summary_which_tells_it(monkeypatch, place: Place):
    monkeypatch.setattr(finish, "store_trials", broken)
    monkeypatch.setattr(session_report, "build_report", lambda *_: (Path("a"), Path("b")))
    launch = finished(place.root)
    assert place.write([launch], judged(launch)).exit_status == place.written()["exit_status"] == 1
    assert place.written()["notes"][0].startswith("store: OverflowError: math range error")


def test_a_table_that_cannot_be_shown_ends_the_session_all_the_same(monkeypatch, place: Place):
    monkeypatch.setattr(finish, "print_verdict_table", broken)
    assert finish.finish_session(place, place.session, [], [FINE]) == 1


def test_a_report_that_cannot_be_made_loses_no_trial_and_no_summary(monkeypatch, place: Place):
    monkeypatch.setattr(session_report, "build_report", broken)
    launch = finished(place.root)
    summary = place.write([launch], judged(launch))
    assert store.read_sessions(place.work.store, [place.session.name]).height
    assert place.written()["exit_status"] == summary.exit_status == 1
    (note,) = place.written()["notes"]
    assert note.startswith("report (./plumbline report tries again): OverflowError: math range")
    (trace,) = (place.root / "faults").iterdir()
    assert str(trace) in note and "in broken" in trace.read_text()


def test_a_summary_that_cannot_be_written_for_a_fault_of_ours_leaves_trials_and_report(monkeypatch, place):
    made: list[SessionSummary] = []
    monkeypatch.setattr(finish, "write_summary", broken)
    monkeypatch.setattr(session_report, "build_report", lambda *told: made.append(told[1]))
    launch = finished(place.root)
    assert place.write([launch], judged(launch)).exit_status == 1
    assert store.read_sessions(place.work.store, [place.session.name]).height
    assert len(made) == 1


def test_a_note_on_drift_that_fails_ends_the_session_all_the_same(monkeypatch, place: Place):
    monkeypatch.setattr(finish, "drift_note", broken)
    place.session, place.request = (replace(each, mode="nightly") for each in (place.session, place.request))
    summary = summarise(place.session.directory, results=[FINE])
    assert finish.end_session(place, place.session, summary, "") == 1
    assert place.progress.faults == ["drift"]


def test_a_launch_of_which_no_row_can_be_made_costs_its_own_cases(monkeypatch, place: Place):
    monkeypatch.setattr(session_report, "build_report", lambda *_: (Path("a"), Path("b")))
    bad, good = (finished(place.root, environment=name, cases=cases_of(name)) for name in ("bad", "good"))

    def build_all_but_bad(name, begun, launches, *told):
        return broken() if bad in launches else build_rows(name, begun, launches, *told)

    monkeypatch.setattr(finish, "build_rows", build_all_but_bad)
    summary = place.write([bad, good], judged(bad, good))
    verdicts = {(result.case.environment, str(result.verdict)) for result in summary.results}
    assert verdicts == {("bad", "incorrect"), ("good", "pass")}
    assert place.written()["exit_status"] == 1
    kept = store.read_sessions(place.work.store, [place.session.name])
    assert set(kept["environment"]) == {"good"}
    reasons = {result.reason for result in summary.results if result.case.environment == "bad"}
    assert all(reason.startswith("cannot be judged: ") for reason in reasons)


def test_a_summary_that_cannot_tell_of_launches_has_every_case(monkeypatch, place: Place):
    launch = finished(place.root)
    monkeypatch.setattr(summaries, "programs", lambda launches: broken() if launches else [])
    monkeypatch.setattr(summaries, "environments", lambda *_: [])
    told = finish.build_session_summary(place, place.session, [launch], judged(launch), 0)
    assert (told.exit_status, told.launches) == (1, ())
    assert len(told.results) == len(launch.launch.cases)
    assert told.notes[0].startswith("summary of the launches: OverflowError")


def test_an_analysis_that_fails_leaves_every_measured_case_incorrect(monkeypatch, tmp_path: Path):
    kept: list[CaseResult] = []
    monkeypatch.setattr(finish, "finish_session", lambda *given: kept.extend(given[3]) or 1)
    context = SimpleNamespace(request=SimpleNamespace(command=["./plumbline", "links"]))
    some = [finished(tmp_path)]
    assert finish.finish_unanalysed(context, SimpleNamespace(), some, ZeroDivisionError("x")) == 1
    found = {(result.verdict, result.rerun) for result in kept}
    assert found == {(Verdict.INCORRECT, "./plumbline links")}
    found = {result.reason for result in kept}
    assert found == {"cannot be judged: ZeroDivisionError: x; its trials are kept"}


def test_solutions_of_every_environment_are_kept_with_the_session(tmp_path: Path):
    """Of one that Spack did not build there is none."""
    work, session = SimpleNamespace(root=tmp_path), SimpleNamespace(directory=tmp_path / "session")
    for name in ("mpich-1", "openmpi-1"):
        lock = SpackLayout(tmp_path).environment(name) / "spack.lock"
        lock.parent.mkdir(parents=True)
        lock.write_text(f"solution of {name}")
    finished = [
        SimpleNamespace(launch=planned(environment=name))
        for name in ("mpich-1", "by-cmake", "openmpi-1", "mpich-1")
    ]
    finish.keep_spack_locks(work, session, finished)
    kept = {path.name: path.read_text() for path in (tmp_path / "session" / "spack").iterdir()}
    assert kept == {f"{name}.lock": f"solution of {name}" for name in ("mpich-1", "openmpi-1")}


FILE = ROOT / "reference_data" / "simulated" / "fattree" / "simgrid-mpich.tsv"


def test_the_moment_of_a_reference_and_the_nodes_that_are_away_are_exported(monkeypatch) -> None:
    """Beside the verdicts, to whoever monitors nights."""
    known = list(load_references(FILE, "simulated", "fattree", "simgrid-mpich").values())[:2]
    results = [CaseResult(reference.case, Verdict.PASS, value=1.0, reference=1.0) for reference in known]
    results.append(CaseResult(known[0].case, Verdict.NO_REFERENCE, value=1.0))
    prepared = SimpleNamespace(usable_nodes={"cpu": UsableNodes(3, "n4 (drained: fan)", 1)})
    context = SimpleNamespace(reference_roots=[ROOT / "reference_data"], prepared=prepared)
    date = "2026-01-02T03:04:05Z"
    monkeypatch.setattr(finish, "find_calibration_date", lambda told, _: date if told else "")
    moments = finish.find_calibration_moments(context, results)
    assert moments == dict.fromkeys((reference.case for reference in known), parse_utc(date).timestamp())
    said: list[object] = []
    monkeypatch.setattr(finish, "format_openmetrics", lambda *each: said.extend(each) or "")
    finish.format_monitored(context, SimpleNamespace(results=results))
    assert said[1] == {"cpu": finish.PartitionNodes(3, 1)} and said[2] == moments
