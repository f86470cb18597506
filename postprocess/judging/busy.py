"""Tell a machine that other work disturbs from calls of which a few trials are slow.

Other work makes some trials of everything slow: of the controls, which call no MPI, and of many cases at once.
Then the headlines of this session say nothing of an MPI, and the steady times, which other work hardly moves,
are judged alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from postprocess.base.formats import plural
from postprocess.model.routines.mpicost import is_control
from postprocess.model.verdict import CaseResult, Verdict

SHARE = 0.1  #: of the cases with a headline; no routine has so many
LEAST_CASES = 5  #: that are slow by their headline, where no control is


@dataclass(frozen=True)
class Disturbance:
    """How many headlines of a session are slow, of how many that were judged."""

    slow: int
    judged: int
    controls: int  #: of the slow ones

    @property
    def busy(self) -> bool:
        """Whether other work disturbs the machine."""
        return self.controls > 0 or self.slow >= max(LEAST_CASES, SHARE * self.judged)


def assess_disturbance(results: Sequence[CaseResult]) -> Disturbance:
    """Assess how many headlines of a session are slow."""
    judged = [result for result in results if result.headline and result.headline_limit]
    slow = [result for result in judged if result.slow_headline]
    own = [result for result in slow if not result.too_slow]
    return Disturbance(len(own), len(judged), sum(is_control(result.case) for result in own))


def excuse_headlines(results: Sequence[CaseResult]) -> tuple[list[CaseResult], str]:
    """Judge by steady times alone where other work disturbs the machine; return that as a note, or nothing."""
    found = assess_disturbance(results)
    excused = [result for result in results if result.by_headline]
    if not found.busy or not excused:
        return list(results), ""
    note = (
        f"other work disturbs the machine: some trials are slow in {found.slow} of "
        f"{plural(found.judged, 'case')}, "
        f"{found.controls} of them without MPI; the fast trials are judged, the mean of all is not"
    )
    return [judge_by_value(result) if result.by_headline else result for result in results], note


def judge_by_value(result: CaseResult) -> CaseResult:
    """Return the verdict of a case by its value, which lies inside its band or below it."""
    verdict = Verdict.PROVISIONAL if result.provisional else Verdict.PASS
    verdict = Verdict.FAST if result.beyond else verdict
    reason = "some of its trials are slow, as other work on the machine makes them"
    return replace(result, verdict=verdict, reason=reason, by_headline=False)
