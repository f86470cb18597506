"""Confirm a common cause by fresh launches of a few of its cases, and name it where a case is slow by it.

A cause accuses no case: each that is called regressed has fresh launches of its own. The cause is a finding of
the session.
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
from postprocess.model.verdict import CaseResult, Verdict
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


def name_confirmed_causes(
    results: Sequence[CaseResult], causes: Sequence[CommonCause]
) -> list[CaseResult]:
    """Name the confirmed cause of each case that is slow by it, called or not yet; return all results."""
    shared: dict[Case, str] = {}
    for cause in causes:
        told = f"common cause: {describe_cause_briefly(cause)}"
        shared |= dict.fromkeys(cause.explained, told)
    return [
        replace(each, reason=f"{shared[each.case]}; {each.reason}", cause=shared[each.case])
        if each.verdict in (Verdict.REGRESSED, Verdict.SUSPECT) and each.case in shared
        else each
        for each in results
    ]
