"""A night that is ended while it measures again keeps what it has measured, and logs what it was alarmed by."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from launch_samples import case
from rich.console import Console

from postprocess import night as module
from postprocess.measure import Pass
from postprocess.progress import Progress
from postprocess.reference_book import ReferenceBook
from postprocess.verdicts import CaseResult, Verdict

SLOW = CaseResult(case(), Verdict.REGRESSED, "slow", value=1.0)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path) -> list[list[CaseResult]]:
    """What a night keeps that measures nothing and finds one slow case."""
    found: list[list[CaseResult]] = []
    session = SimpleNamespace(name="s", started_utc="2026-11-03T01:00:00Z", site="local")
    desk = SimpleNamespace(
        reference_roots=[],
        open_session=lambda _: (session, None),
        progress=PROGRESS,
        work=SimpleNamespace(root=tmp_path),
    )
    stand_ins = {
        "open_desk": lambda *_: desk,
        "make_plan": lambda *_: [],
        "open_book": lambda *_: ReferenceBook(),
        "is_whole": lambda _: False,
        "say_plan": lambda *_: None,
        "calibrate_unknown": lambda _, __, book: book,
        "run_plan": lambda *_: Pass([], 0.0),
        "verdicts": lambda *_: [SLOW],
        "keep": lambda _, __, ___, results: found.append(list(results)) or 1,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(module, name, stand_in)
    return found


PROGRESS = Progress(Console(quiet=True))


def begin(tmp_path) -> int:
    work = SimpleNamespace(held=nullcontext, provisional=None, store=tmp_path, root=tmp_path)
    request = SimpleNamespace(
        mode="nightly", selection=None, families=None, strict=False, site="local", rerun_options=[]
    )
    return module.night(work, request, PROGRESS)


def test_what_was_measured_is_kept_and_what_looked_slow_stands(kept, monkeypatch, tmp_path):
    def ended(*_):
        raise SystemExit(143)

    monkeypatch.setattr(module, "confirmed", ended)
    with pytest.raises(SystemExit):
        begin(tmp_path)
    assert kept == [[SLOW]]
    assert PROGRESS.notes[-1].startswith("ended before what looked slow was measured again")


def test_a_night_logs_its_alarms(kept, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "confirmed", lambda results, *_: results)
    assert begin(tmp_path) == 1
    (line,) = (tmp_path / module.alarms.FILE).read_text().splitlines()
    assert SLOW.case.key in line
    assert kept == [[SLOW]]
