"""Measure a common cause again, and describe causes.

A cause accuses no case: each case that is called regressed has fresh launches of its own. The cause is a
finding of the session.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from postprocess.base.formats import first_of, plural
from postprocess.judging.common_cause import CommonCause, JudgedSlowdown
from postprocess.judging.evaluate import evaluate_case
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.stats import detection
from postprocess.stats.priors import SIZES
from site_configs.schedulers.registry import SCHEDULERS


def select_launches_of_value(
    case: Case, fresh: Iterable[FinishedLaunch], value: int, median_of: int
) -> list[FinishedLaunch]:
    """Select the fresh launches whose median is one value of a case; empty if any of them is missing.

    :param value: number of the value, from 0
    :param median_of: launches behind a value
    """
    launches = sorted((run for run in fresh if case in run.launch.cases), key=lambda one: one.launch.number)
    chosen = launches[value * median_of : (value + 1) * median_of]
    return chosen if len(chosen) == median_of else []


def describe_unavoidable_nodes(launches: Iterable[PlannedLaunch]) -> list[str]:
    """Describe the partitions whose confirmation run could not exclude the slow nodes, a line for each."""
    able = " and ".join(scheduler.title for scheduler in SCHEDULERS if scheduler.exclude_option)
    return [
        f"{partition}: confirmation runs may have used the same nodes: excluding nodes is supported on "
        f"{able} only"
        for partition in sorted({launch.partition for launch in launches if launch.anywhere})
    ]


TELLING = 2.0  #: standard deviations by which a control must be slower to count
MOST_HOSTS = 8  #: most hosts that are named
EVERYTHING = 0.8  #: share of the cases; if fewer are slower, it is "most cases"


def describe_cause(cause: CommonCause) -> str:
    """Describe a cause: ``cpu: everything 7% slower (median of 135 cases) on a, b: the machine, ...``."""
    since = f", {cause.since}" if cause.since else ""
    return f"{describe_cause_briefly(cause)}{describe_cause_nodes(cause)}{since}: {describe_controls(cause)}"


def describe_cause_briefly(cause: CommonCause) -> str:
    return f"{cause.partition}: {describe_cause_cases(cause)}"


def describe_cause_cases(cause: CommonCause) -> str:
    """Describe which cases are slower, and by how much."""
    parts = []
    if cause.programs:
        parts.append(f"of {' and '.join(cause.programs)}")
    if cause.environments:
        parts.append(f"with {' and '.join(cause.environments)}")
    if cause.sizes:
        parts.append(" and ".join(SIZES[size] for size in cause.sizes))
    of = f" {' '.join(parts)}" if parts else ""
    number = plural(len(cause.members), "case")
    if cause.clear:
        which = "everything" if describe_affected_share(cause) >= EVERYTHING else "most cases"
        return f"{which}{of} {cause.shift:.0%} slower (median of {number})"
    slow = f"{len(cause.slow)} of {number}{of}"
    return f"{slow} beyond their bands, {cause.shift:.0%} slower in their median"


def describe_affected_share(cause: CommonCause) -> float:
    """Return the share of the judged cases that are slower by at least half the shift."""
    half = math.log1p(cause.shift) / 2
    return sum(member.log >= half for member in cause.members) / len(cause.members)


def describe_cause_nodes(cause: CommonCause) -> str:
    """Describe the nodes, or the first of them if they are many; empty if unknown."""
    hosts = cause.hosts
    if not hosts:
        return ""
    only = "only " if cause.nodes else ""
    return f", {only}on {first_of(hosts, MOST_HOSTS)}"


def describe_controls(cause: CommonCause) -> str:
    """Describe whether the routines that do not call MPI are slower too: then the machine is the cause."""
    if not cause.controls:
        return "no control was judged, so it may be the machine or MPI"
    half = math.log1p(cause.shift) / 2
    slower, same, unsure = [], [], []
    for routine in sorted({control.case.routine for control in cause.controls}):
        controls = [control for control in cause.controls if control.case.routine == routine]
        log, error = compute_common_slowdown(controls)
        if log >= half and error > 0 and log >= TELLING * error:
            slower.append(f"{routine} is {math.expm1(log):.0%} slower")
        elif log < half and 0 < error <= half:
            same.append(routine)
        else:
            unsure.append(routine)
    if slower:
        return f"the machine, not MPI: {', '.join(slower)}"
    doubt = f"; undecided: {', '.join(unsure)}" if unsure else ""
    if same:
        verb = "are" if len(same) > 1 else "is"
        return f"MPI or the network, not the processors: {', '.join(same)} {verb} unchanged{doubt}"
    return f"the machine or MPI; the scatter of {', '.join(unsure)} is too large to decide"


def compute_common_slowdown(some: Sequence[JudgedSlowdown]) -> tuple[float, float]:
    """Compute the median ln slowdown of a control over its launches, and the error of one of them."""
    logs, errors = [slowdown.log for slowdown in some], [slowdown.error for slowdown in some]
    return float(np.median(logs)), float(np.median(errors))


@dataclass
class CommonCauseRetest:
    """A common cause, and how many fresh values of its probe cases confirm or refute it.

    A fresh value is like the first one: from one launch, or the median of as many.
    """

    cause: CommonCause
    slow: int = 0
    fine: int = 0

    @property
    def refuted(self) -> bool:
        """Whether enough fresh values show that it is not there."""
        return detection.is_cleared(self.fine)

    @property
    def decided(self) -> bool:
        """Whether another launch could change nothing, or there is nothing to measure."""
        return not self.cause.probe_cases or detection.is_decided(self.slow, self.fine)

    def count_value(self, factors: Sequence[float]) -> None:
        """Count a fresh value by how much slower its probe cases are.

        A missing value refutes nothing: it counts as slow.
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
        """Count each of ``values`` fresh values for or against the cause.

        :param counts: launches behind a value at each place
        """
        for value in range(values):
            factors = []
            for case in self.cause.probe_cases:
                median_of = counts.get(LaunchPlace.of(case), 1)
                launches = select_launches_of_value(case, fresh, value, median_of)
                outcome = evaluate_case(case, launches, catalog) if launches else None
                if outcome and outcome.slowdown:
                    factors.append(outcome.slowdown)
            self.count_value(factors)


def name_confirmed_causes(results: Sequence[CaseResult], causes: Sequence[CommonCause]) -> list[CaseResult]:
    """Name the confirmed cause of each case that is slow because of it, decided or not; return all results."""
    shared: dict[Case, str] = {}
    for cause in causes:
        text = f"common cause: {describe_cause_briefly(cause)}"
        shared |= dict.fromkeys(cause.explained, text)
    return [
        replace(result, reason=f"{shared[result.case]}; {result.reason}", cause=shared[result.case])
        if result.verdict in (Verdict.REGRESSED, Verdict.SUSPECT) and result.case in shared
        else result
        for result in results
    ]
