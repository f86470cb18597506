"""Nights of a self-test, and what was planted in them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from postprocess.base.progress import Progress
from postprocess.extensions.selftest.data import CaseNight, FinishedNight, SelftestHeader
from postprocess.extensions.selftest.night import SelftestBench
from postprocess.extensions.selftest.score import SelftestScores, score_nights
from postprocess.model.case import Case
from postprocess.model.session import Selection
from tests.support.factories.launch import case as a_case

SIZES = {
    "barrier": [0],
    "bcast": [8, 10_000, 1_000_000],
    "alltoall": [8, 1_000, 10_000, 100_000],
    "allreduce_sum": [8, 1_000_000],
    "pingpong": [8, 10_000, 1_000_000],
}
MPIS = ("a-1", "b-2", "c-3")
QUIET = Progress(Console(quiet=True))


def quick(environments: tuple[str, ...] = MPIS) -> list[Case]:
    return sorted(
        a_case(routine, size, int(routine == "pingpong"), environment=name)
        for name in environments
        for routine, sizes in SIZES.items()
        for size in sizes
    )


def a_bench(**context: Any) -> SelftestBench:
    return SelftestBench(SimpleNamespace(**context), Selection(Path("site.py")))


def row(**changes: Any) -> CaseNight:
    """A case of a night in which all is well: a band of 10%, launches that differ by 1%."""
    values: dict[str, Any] = {"key": "k", "environment": "a-1", "routine": "bcast", "plant": ""}
    values |= {"of": "", "target": False, "delayed": False, "verdict": "pass", "first": "pass"}
    values |= {"value": 1.0, "median": 1.0, "reference": 1.0, "upper": 1.1, "spread": 0.01}
    values |= {"degrees": 19.0, "launches": 20, "again": ()}
    return CaseNight(**values | changes)


def night(number: int, *rows: CaseNight) -> FinishedNight:
    return FinishedNight(number, f"s{number}", 1.5, ("note",), rows)


KEYS = tuple(case.key for case in quick())


BEGUN = SelftestHeader("local", 7, 10, 40, ("slower-5",), KEYS, "references of the site")


def planted(plant: str = "slower-50", by: float = 1.5, **changes: Any) -> CaseNight:
    """A target that was delayed, caught unless something else is said."""
    caught = {"verdict": "regressed", "first": "regressed", "again": (by,) * 5}
    values = {"plant": plant, "of": "bcast", "target": True, "delayed": True, "value": by}
    return row(**caught | values | {"median": by} | changes)


def score(nights: list[FinishedNight]) -> SelftestScores:
    """Score a self-test that planted what is in these nights and came to its end."""
    names = {row.plant for night in nights for row in night.rows if row.plant}
    return score_nights(nights, sorted(names), len(nights))


MISSED = {"verdict": "pass", "first": "pass", "again": ()}
