"""What a reader wants to know first: the verdict on the whole, what failed, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.formats import plural
from postprocess.summaries import SessionSummary
from postprocess.verdicts import CaseResult, Verdict, count, is_healthy

WORST_FIRST = (
    Verdict.INCORRECT,
    Verdict.CRASHED,
    Verdict.TIMEOUT,
    Verdict.INCOMPLETE,
    Verdict.REGRESSED,
    Verdict.NOT_COMPARABLE,
    Verdict.NO_REFERENCE,
    Verdict.PROVISIONAL,
    Verdict.SKIPPED,
    Verdict.FAST,
    Verdict.CLEARED,
    Verdict.PASS,
)


@dataclass(frozen=True)
class Cell:
    """The cases of one environment and routine, counted by verdict."""

    counts: dict[str, int]
    failed: int

    @property
    def text(self) -> str:
        """Such as ``11 pass, 1 regressed``."""
        return counts_text(self.counts)

    @property
    def tone(self) -> str:
        """``bad`` if a case failed, ``good`` if some passed, ``fair`` if there is nothing to say."""
        if self.failed:
            return "bad"
        return "fair" if set(self.counts) <= {"skipped", "provisional"} else "good"


@dataclass(frozen=True)
class Grid:
    """Counts per routine (rows) and environment (columns); None where there is no such case."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


@dataclass(frozen=True)
class Trouble:
    """Failed cases that have one cause: a launch that yielded nothing, or a single measured case."""

    verdict: Verdict
    reason: str
    results: tuple[CaseResult, ...]


def troubles(results: Sequence[CaseResult]) -> list[Trouble]:
    """Gather cases without a value by environment, processes, verdict and reason, the worst first."""
    found: dict[tuple[object, ...], list[CaseResult]] = {}
    for result in worst_first(results):
        shared = (result.verdict, result.reason, result.case.environment, result.case.processes)
        place = shared if result.value is None else (result.case,)
        found.setdefault(place, []).append(result)
    return [Trouble(same[0].verdict, same[0].reason, tuple(same)) for same in found.values()]


def worst_first(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Cases in the order of gravity; among equals the largest ratio to the reference first."""
    rank = {verdict: n for n, verdict in enumerate(WORST_FIRST)}
    return sorted(results, key=lambda r: (rank[r.verdict], -_ratio(r), r.case))


def grid(summary: SessionSummary) -> Grid:
    """Count the cases of a session by routine and environment."""
    row_names = (*varying(summary.results, ("program",)), "routine")
    column_names = (*varying(summary.results, ("system", "partition")), "environment")
    found: dict[tuple[str, str], list[CaseResult]] = {}
    for result in summary.results:
        place = (_name(result, row_names), _name(result, column_names))
        found.setdefault(place, []).append(result)
    columns = tuple(sorted({column for _, column in found}))
    rows = tuple(
        (row, tuple(_cell(found.get((row, column)), summary.strict) for column in columns))
        for row in sorted({row for row, _ in found})
    )
    return Grid(columns, rows)


def headline(summary: SessionSummary) -> str:
    """The verdict on the session in one sentence that promises no more than was asserted."""
    counts = count(summary.results)
    skipped, provisional = counts.get("skipped", 0), counts.get("provisional", 0)
    total = len(summary.results)
    judged = plural(total - skipped, "case")
    if total == skipped:
        return f"Nothing was measured: {skipped} skipped" if skipped else "Nothing was measured"
    if summary.failed:
        return f"{len(summary.failed)} of {plural(total, 'case')} failed"
    if summary.exit_status:
        return "No case failed, but the session did"
    rest = f", {skipped} skipped" if skipped else ""
    if provisional == total - skipped:
        return f"No gross change in {judged}, all provisional{rest}"
    if provisional:
        return f"No failure in {judged}, {provisional} of them provisional{rest}"
    return f"No failure in {judged}{rest}"


def last_line(summary: SessionSummary) -> str:
    """Such as ``135 cases: 133 pass, 2 regressed (exit status 1)``."""
    counts = counts_text(count(summary.results)) or "nothing was measured"
    strict = "strict, " if summary.strict else ""
    total = plural(len(summary.results), "case")
    return f"{total}: {counts} ({strict}exit status {summary.exit_status})"


def contradiction(summary: SessionSummary) -> str:
    """One line if the exit status says that all is well and the cases do not; else empty."""
    if summary.exit_status == 0 and not summary.good:
        return "the session ended with exit status 0 although its cases do not allow that"
    return ""


def reasons(summary: SessionSummary, verdict: Verdict) -> list[tuple[str, int]]:
    """Reasons given for one verdict with the number of cases, the most frequent first."""
    found = Counter(r.reason for r in summary.results if r.verdict is verdict)
    return found.most_common()


def counts_text(counts: dict[str, int]) -> str:
    """Such as ``133 pass, 2 regressed``."""
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def varying(results: Sequence[CaseResult], names: Sequence[str]) -> tuple[str, ...]:
    """The fields among ``names`` in which the cases differ: a reader must see them."""
    return tuple(name for name in names if len({getattr(r.case, name) for r in results}) > 1)


def _ratio(result: CaseResult) -> float:
    return result.value / result.reference if result.value and result.reference else 0.0


def _name(result: CaseResult, names: Sequence[str]) -> str:
    return ":".join(getattr(result.case, name) for name in names)


def _cell(results: list[CaseResult] | None, strict: bool) -> Cell | None:
    if not results:
        return None
    failed = sum(not is_healthy(r.verdict, strict) for r in results)
    return Cell(count(results), failed)
