"""Cases of which the same is said, together: a reader reads each reason once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from postprocess.base.formats import format_significant
from postprocess.model.verdict import CaseResult, Verdict


@dataclass(frozen=True)
class CaseGroup:
    """Cases with one verdict for one reason, or with one cause in common."""

    verdict: Verdict
    reason: str
    results: tuple[CaseResult, ...]

    @property
    def at_one_place(self) -> bool:
        """Whether all are of one environment and process count, so that naming those of the first is no lie."""
        return len({(r.case.environment, r.case.layout) for r in self.results}) == 1


def group_cases(results: Iterable[CaseResult]) -> list[CaseGroup]:
    """Group cases by common cause, else by verdict and reason, in the order of the first of each group."""
    found: dict[tuple[object, ...], list[CaseResult]] = {}
    for result in results:
        same = (result.cause,) if result.cause else (result.verdict, result.reason)
        found.setdefault(same, []).append(result)
    return [
        CaseGroup(same[0].verdict, same[0].cause or describe_reason(same), tuple(same))
        for same in found.values()
    ]


def describe_reason(same: Sequence[CaseResult]) -> str:
    """Describe the reason that some cases share, with the range of what differs between them."""
    reason = same[0].reason
    ratios = sorted(each.latency_ratio for each in same if each.latency_ratio is not None)
    if not ratios:
        return reason
    ends = dict.fromkeys(format_significant(ratio, 2) for ratio in (ratios[0], ratios[-1]))
    return f"{reason}; from rank to rank a word takes {' to '.join(ends)} times as long as in the reference"


def count_lines(lines: Iterable[str]) -> list[str]:
    """Return each of some lines once, in their order, with how often it stands there if it does so again."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
    return [f"{line} ({count} times)" if count > 1 else line for line, count in counts.items()]
