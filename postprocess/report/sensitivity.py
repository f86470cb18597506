"""Detection limits of a session: detectable slowdowns, and the worst cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import format_slowdown, format_whole, plural
from postprocess.model.reference import MOST_SESSIONS
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.results.summary import SessionSummary
from postprocess.stats.shrinkage import SIZES, group_of

BOUNDS = (0.05, 0.10, 0.20, 0.50, 1.00)  #: of detectable slowdowns, beyond which is the next class
CLASSES = (*(f"{bound:.0%}" for bound in BOUNDS), "more", "nothing")
MOST_WORST = 15
TARGET = 0.10  #: slowdown that every case ought to see
STEPS = (1.0, 0.5, 0.2, 0.1)  #: slowdowns whose detection is told


@dataclass(frozen=True)
class SensitivityRow:
    """Cases of one kind with their detection limits: slowdowns as fractions, None if none is detected."""

    name: tuple[str, ...]  #: program, environment, and class of sizes
    cases: int
    shares: tuple[int, ...]  #: cases by the classes of :data:`CLASSES`
    seen: int  #: cases that see :data:`TARGET`
    median: float | None
    most: float | None  #: that nine cases in ten see


@dataclass(frozen=True)
class Sensitivity:
    """The section on detection limits."""

    line: str  #: the whole in one line
    programs: tuple[SensitivityRow, ...]  #: by program and environment
    rows: tuple[SensitivityRow, ...]  #: and by class of sizes
    worst: tuple[CaseResult, ...]


def assess_sensitivity(summary: SessionSummary) -> Sensitivity | None:
    """Assess which slowdowns this session would miss; None if no case was judged with known scatter."""
    known = select_with_power(summary.results)
    if not known:
        return None
    return Sensitivity(
        summarise_sensitivity(summary.results),
        tuple(build_sensitivity_rows(known, lambda each: (each.case.program, each.case.environment))),
        tuple(build_sensitivity_rows(known, _kind)),
        tuple(list_least_sensitive(known)),
    )


def summarise_sensitivity(results: Sequence[CaseResult]) -> str:
    """Summarise, in one line, in how many cases a slowdown from now on would be called; empty if unknown."""
    known = select_with_power(results)
    if not known:
        return ""
    tonight = describe_tonight(known)
    soon = describe_steps(STEPS[1:], [result.detectable_soon for result in known])
    learned = describe_steps(STEPS[1:], [result.detectable_learned for result in known])
    line = (
        f"called from tonight on, of {count_known(known, results)}: {tonight}; if it lasts three nights: {soon}"
    )
    return line if learned == soon else f"{line}; by references of {MOST_SESSIONS} nights: {learned}"


def count_known(known: Sequence[CaseResult], results: Sequence[CaseResult]) -> str:
    """Count the cases that were judged by a reference of known scatter, and say if those are not all."""
    cases = plural(len(known), "case")
    ran = sum(result.verdict is not Verdict.SKIPPED for result in results)
    return cases if ran == len(known) else f"{cases} that a reference judged ({format_whole(ran)} were to run)"


def describe_tonight(known: Sequence[CaseResult]) -> str:
    """Describe what would be called tonight; if not even twice the time, what is called at best."""
    limits = [result.detectable for result in known]
    told = describe_steps(STEPS, limits)
    seen = sorted(limit for limit in limits if limit is not None)
    if not seen or seen[0] <= STEPS[0]:
        return told
    return f"{told}, {format_slowdown(1 + seen[0])} at best"


def describe_steps(steps: Sequence[float], limits: Sequence[float | None]) -> str:
    """Describe in how many cases slowdowns of these sizes, the largest first, would be called."""
    told: list[str] = []
    for step in steps:
        name = f"{1 + step:.0f} times slower" if step >= 1 else f"{step:.0%}"
        if not (seen := sum(limit is not None and limit <= step for limit in limits)):
            return ", ".join([*told, f"{name} in none"])
        told.append(f"{name} in {'all' if seen == len(limits) else format_whole(seen)}")
    return ", ".join(told)


def select_sensitive(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Select the results that call a slowdown of ``TARGET`` within three nights."""
    return [result for result in results if (result.detectable_soon or np.inf) <= TARGET]


def select_with_power(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Select the results that were judged by a reference of known scatter."""
    return [result for result in results if result.reference and _is_known(result)]


def _is_known(result: CaseResult) -> bool:
    return result.detectable is not None or result.spread is not None or _is_blind(result)


def _is_blind(result: CaseResult) -> bool:
    return result.reference_launches == 1


def _kind(result: CaseResult) -> tuple[str, ...]:
    return result.case.program, result.case.environment, SIZES[group_of(result.case)[1]]


def build_sensitivity_rows(
    results: Sequence[CaseResult], name: Callable[[CaseResult], tuple[str, ...]]
) -> list[SensitivityRow]:
    """Build a row for each name, in their order."""
    found: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in results:
        found.setdefault(name(result), []).append(result)

    def order(key: tuple[str, ...]) -> tuple[object, ...]:
        return program_sort_key(key[0]), key[1], SIZES.index(key[2]) if key[2:] else 0

    return [build_sensitivity_row(key, found[key]) for key in sorted(found, key=order)]


def build_sensitivity_row(name: tuple[str, ...], results: Sequence[CaseResult]) -> SensitivityRow:
    """Build the row of these cases."""
    values = [np.inf if result.detectable is None else result.detectable for result in results]
    counts = Counter(classify_detectable(result.detectable) for result in results)
    median, most = np.quantile(values, (0.5, 0.9), method="inverted_cdf")
    return SensitivityRow(
        name,
        len(results),
        tuple(counts[n] for n in range(len(CLASSES))),
        len(select_sensitive(results)),
        *(float(value) if np.isfinite(value) else None for value in (median, most)),
    )


def classify_detectable(detectable: float | None) -> int:
    """Classify a detectable slowdown, a fraction of the time, into :data:`CLASSES`; a bound is inside."""
    if detectable is None:
        return len(CLASSES) - 1
    return int(np.searchsorted(BOUNDS, detectable))


def list_least_sensitive(results: Sequence[CaseResult]) -> list[CaseResult]:
    """List the least sensitive cases, those that detect nothing first."""

    def sight(result: CaseResult) -> tuple[float, object]:
        return -np.inf if result.detectable is None else -result.detectable, result.case

    short = [each for each in results if classify_detectable(each.detectable) > BOUNDS.index(TARGET)]
    return sorted(short, key=sight)[:MOST_WORST]
