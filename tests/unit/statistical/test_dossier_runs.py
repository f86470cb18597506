"""A self-test of compare goes on after a busy moment, and ends where its time suffices for nothing."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from postprocess.features.compare.measure.bench import TooFewSecondsError
from tests.statistical.dossiers import measure as compare
from tests.unit.statistical.test_dossiers import HEADER


@dataclass(frozen=True)
class Notes:
    """Progress that keeps its notes."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def say(self, _: str) -> None: ...

    now = say

    def phase(self, _: str) -> Any:
        return nullcontext()


@dataclass(frozen=True)
class Context:
    """A session of which only the progress matters."""

    progress: Any = field(default_factory=Notes)

    @property
    def quiet(self) -> Context:
        return self


def measure_all_but(busy: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[str]]:
    """Run dossiers, of which one has no time; the numbers of those that were measured, and notes."""
    done: list[int] = []

    def measure(_context: Any, _begun: Any, _directory: Any, planned: Any) -> None:
        if planned.number == busy:
            raise TooFewSecondsError("--seconds 60: a pair takes 20 s; give 140 s")
        done.append(planned.number)

    monkeypatch.setattr(compare, "measure_dossier", measure)
    monkeypatch.setattr(compare, "read_dossier", lambda *_: None)
    monkeypatch.setattr(compare, "describe_dossier", lambda *_: "")
    context = Context()
    compare.run_dossiers(context, HEADER, Path("nowhere"))  # type: ignore[arg-type]
    return done, context.progress.notes


def test_a_dossier_that_met_a_busy_moment_is_left_for_the_next_call(monkeypatch):
    done, notes = measure_all_but(3, monkeypatch)
    assert done == [1, 2, *range(4, 23)]
    assert len(notes) == 1 and notes[0].startswith("dossier 3 is left for the next call: --seconds 60")


def test_too_little_time_for_the_first_dossier_is_wrong_use(monkeypatch):
    with pytest.raises(TooFewSecondsError):
        measure_all_but(1, monkeypatch)
