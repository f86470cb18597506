"""Group cases that share a verdict and reason, so that readers see each reason once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from postprocess.base.formats import format_significant
from postprocess.model.verdict import CaseResult, Verdict


@dataclass(frozen=True)
class CaseGroup:
    """Cases with one verdict and reason, or with one common cause."""

    verdict: Verdict
    reason: str
    results: tuple[CaseResult, ...]

    @property
    def at_one_place(self) -> bool:
        """Whether all cases have the same environment and layout, so that those of the first stand for all."""
        return len({(r.case.environment, r.case.layout) for r in self.results}) == 1


def group_cases(results: Iterable[CaseResult]) -> list[CaseGroup]:
    """Group cases by common cause, else by verdict and reason, in the order of first appearance."""
    groups: dict[tuple[object, ...], list[CaseResult]] = {}
    for result in results:
        same = (result.cause,) if result.cause else (result.verdict, result.reason)
        groups.setdefault(same, []).append(result)
    return [
        CaseGroup(same[0].verdict, same[0].cause or describe_reason(same), tuple(same))
        for same in groups.values()
    ]


def describe_reason(same: Sequence[CaseResult]) -> str:
    """Describe the reason that cases share, with the range of the values in which they differ."""
    reason = same[0].reason
    ratios = sorted(result.latency_ratio for result in same if result.latency_ratio is not None)
    if not ratios:
        return reason
    ends = dict.fromkeys(format_significant(ratio, 2) for ratio in (ratios[0], ratios[-1]))
    return f"{reason}; from rank to rank a word takes {' to '.join(ends)} times as long as in the reference"


def count_lines(lines: Iterable[str]) -> list[str]:
    """Return the distinct lines in their order, with a count behind those that occur several times."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
    return [f"{line} ({count} times)" if count > 1 else line for line, count in counts.items()]
