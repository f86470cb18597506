"""Confirm a common cause by fresh launches, and fail the cases that it slows.

A few precise cases and the controls stand for all: measuring everything again would cost another night.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from postprocess.judging.common_cause import CommonCause
from postprocess.judging.common_cause_text import describe_cause_briefly
from postprocess.judging.evaluate import evaluate_case
from postprocess.judging.retest import select_launches_of_value
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import FinishedLaunch
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.stats import confirmation_rule


@dataclass
class CommonCauseRetest:
    """A common cause, and how many fresh values of its probe cases show it or do not.

    A fresh value is as the first one: of a launch, or the median of as many.
    """

    cause: CommonCause
    slow: int = 0
    fine: int = 0

    @property
    def refuted(self) -> bool:
        """Whether enough fresh values say that it is not there."""
        return confirmation_rule.is_cleared(self.fine)

    @property
    def decided(self) -> bool:
        """Whether another launch could change nothing, or there is nothing to measure."""
        return not self.cause.probe_cases or confirmation_rule.is_decided(self.slow, self.fine)

    def count_value(self, factors: Sequence[float]) -> None:
        """Count a fresh value by how much its probe cases are slower, as far as they have a value.

        What did not arrive refutes nothing: it counts as slow.
        """
        missing = len(self.cause.probe_cases) - len(factors)
        middle = median([*factors, *missing * [math.inf]]) if self.cause.probe_cases else math.inf
        if math.log(middle) < math.log1p(self.cause.shift) / 2:
            self.fine += 1
        else:
            self.slow += 1

    def record_values(
        self,
        values: int,
        fresh: Sequence[FinishedLaunch],
        catalog: ReferenceCatalog,
        counts: Mapping[LaunchPlace, int],
    ) -> None:
        """Let each of so many fresh values say what it has to say.

        :param counts: launches behind a value at each place
        """
        for value in range(values):
            factors = []
            for case in self.cause.probe_cases:
                median_of = counts.get(LaunchPlace.of(case), 1)
                some = select_launches_of_value(case, fresh, value, median_of)
                outcome = evaluate_case(case, some, catalog) if some else None
                if outcome and outcome.slowdown:
                    factors.append(outcome.slowdown)
            self.count_value(factors)


def apply_confirmed_causes(
    results: Sequence[CaseResult], causes: Sequence[CommonCause]
) -> list[CaseResult]:
    """Fail the cases that are slow by a cause that fresh launches have confirmed; return all results.

    What is worse than slow, as wrong data in a fresh launch, stays what it is. Where the median case is slower
    but hardly one is beyond its own band, the probe cases fail for all.
    """
    shared: dict[Case, str] = {}
    for cause in causes:
        marked = {*cause.explained, *(cause.probe_cases if cause.clear else ())}
        shared |= {case: f"common cause: {describe_cause_briefly(cause)}" for case in marked}
    return [_because(each, shared) for each in results]


def _because(result: CaseResult, shared: Mapping[Case, str]) -> CaseResult:
    if result.case not in shared or result.verdict in FAILED_LAUNCH:
        return result
    own = result.reason or "within its own band"
    cause = shared[result.case]
    return replace(result, verdict=Verdict.REGRESSED, reason=f"{cause}; {own}", cause=cause)
