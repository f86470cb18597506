"""Made-up nights before a session, for the pages that show them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from postprocess.model.verdict import CaseResult
from postprocess.report.past import Past, Step
from postprocess.results.nights import Night

LAST = date(2026, 11, 21)


def make_past(results: Sequence[CaseResult], nights: int = 60, seed: int = 7) -> Past:
    """A past of so many nights, in which every tenth case stepped and every seventh had another MPI before.

    The last night is the session's own.
    """
    random = np.random.default_rng(seed)
    found: dict[str, tuple[Night, ...]] = {}
    steps: dict[str, list[Step]] = {}
    measured = [each for each in results if each.value and each.reference]
    for number, result in enumerate(measured):
        center = float(result.reference or 1.0)
        values = center * random.lognormal(0, 0.02, nights)
        values[: nights // 3] *= 1.15 if number % 7 == 0 else 1.0
        values[nights // 2 :] *= 1.08 if number % 10 == 0 else 1.0
        values[-1] = result.value
        found[result.case.key] = tuple(
            make_night(result, nights - 1 - n, float(values[n]), earlier=n < nights // 3 and number % 7 == 0)
            for n in range(nights)
        )
        if number % 10 == 0:
            begun = found[result.case.key][nights // 2]
            steps[result.case.key] = [Step(begun.session, f"step of +8.0% in time from {begun.day}")]
    return Past(found, steps)


def make_night(result: CaseResult, ago: int, value: float, earlier: bool = False) -> Night:
    """One night so many days ago; an earlier one is of another MPI and reference."""
    day = str(LAST - timedelta(days=ago))
    verdict = str(result.verdict) if ago == 0 else "suspect" if ago == 5 else "pass"
    scale = 1.15 if earlier else 1.0
    low, high = result.band or (0.9 * value, 1.1 * value)
    return Night(
        day,
        verdict,
        result.unit,
        value,
        scale * float(result.reference or value),
        (scale * low, scale * high),
        f"{day}-1",
        "before" if earlier else "now",
    )
