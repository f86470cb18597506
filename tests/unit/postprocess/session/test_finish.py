"""How a session ends."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.session import finish
from spack_envs.layout import SpackLayout
from tests.support.factories.launch import case, finished, planned

FINE = CaseResult(case("bcast", 8), Verdict.PASS, value=1e-5)


@pytest.mark.parametrize(
    ("causes", "faults", "status"),
    [((), [], 0), (("cpu: everything 7% slower",), [], 1), ((), ["note on waivers"], 1)],
)
def test_a_confirmed_cause_or_a_fault_of_ours_fails_a_session_in_which_every_case_passes(
    monkeypatch: pytest.MonkeyPatch, causes: tuple[str, ...], faults: list[str], status: int
):
    told: list[tuple[int, tuple[str, ...]]] = []
    monkeypatch.setattr(
        finish, "build_session_summary", lambda *given: told.append((given[4], given[5]))
    )
    monkeypatch.setattr(finish, "is_main_session", lambda *_: False)
    monkeypatch.setattr(finish, "write_files", lambda *_: (Path("report.md"), Path("report.html")))
    monkeypatch.setattr(finish, "end_session", lambda *_: told[0][0])
    nothing = SimpleNamespace(
        progress=SimpleNamespace(phase=lambda _: nullcontext(), faults=faults),
        work=SimpleNamespace(store=Path("store")),
    )
    session = SimpleNamespace(strict=False)
    assert finish.finish_session(nothing, session, [], [FINE], causes) == status
    assert told == [(status, causes)]


def test_a_report_that_cannot_be_made_loses_no_trial_and_no_summary(monkeypatch, tmp_path: Path):
    done: list[str] = []

    def fail(*_):
        raise OverflowError("math range error")

    monkeypatch.setattr(finish, "store_trials", lambda *_: done.append("trials"))
    monkeypatch.setattr(finish, "write_summary", lambda *_: done.append("summary"))
    monkeypatch.setattr(finish, "keep_spack_locks", lambda *_: done.append("locks"))
    monkeypatch.setattr(finish, "build_report", fail)
    session = SimpleNamespace(directory=tmp_path)
    summary = SimpleNamespace(results=[], to_dict=dict)
    with pytest.raises(UsageError, match=r"no report: OverflowError.* trials and summary are kept"):
        finish.write_files(SimpleNamespace(), session, [], summary)
    assert done == ["trials", "summary", "locks"]


def test_an_analysis_that_fails_leaves_every_measured_case_incorrect(monkeypatch, tmp_path: Path):
    kept: list[CaseResult] = []
    monkeypatch.setattr(finish, "finish_session", lambda *given: kept.extend(given[3]) or 1)
    context = SimpleNamespace(request=SimpleNamespace(command=["./plumbline", "links"]))
    some = [finished(tmp_path)]
    assert finish.finish_unanalysed(context, SimpleNamespace(), some, ZeroDivisionError("x")) == 1
    assert {(each.verdict, each.rerun) for each in kept} == {
        (Verdict.INCORRECT, "./plumbline links")
    }
    assert {each.reason for each in kept} == {
        "cannot be judged: ZeroDivisionError: x; its trials are kept"
    }


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
