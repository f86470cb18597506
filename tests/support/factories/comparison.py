"""A comparison of two versions of an MPI, for tests that run, store and judge it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postprocess.features.compare import data

SIDES = (data.ComparedSide("a", "mpich-4_3_2"), data.ComparedSide("b", "mpich-5_0_2"))
FACTS = (("MPI library", "4.3.2", "5.0.2"),)
HEADER = data.ComparisonHeader(
    *("local", *SIDES, {}, (0.05, 0.05, 0.05), None, False, 7, FACTS),
    *("2026-11-23T00:00:00Z", ("./plumbline", "compare")),
)
PLACE = {"nodes": "n1"}


def make_pass(
    block: int,
    position: int,
    side: str,
    cases: Mapping[str, data.CaseValue],
    seconds: float = 1.0,
    place: Mapping[str, str] = PLACE,
) -> data.ComparisonPass:
    return data.ComparisonPass(block, position, side, "s", seconds, (data.LaunchValues("l", place, cases),))


def failing(verdict: str, reason: str = "", **more: Any) -> data.CaseValue:
    """A launch without a value."""
    return data.CaseValue(None, "s", verdict, reason, **more)


def write_comparison(path: Path, stored: data.StoredComparison) -> None:
    """Write header, looks and passes as a comparison does."""
    for record in (stored.header, data.PlannedLooks(stored.looks), *stored.passes):
        data.append_record(path, record)
