"""Estimate the common shift of some cases, and test it against the scatter of launches.

The cases of a launch are not independent: what disturbs a launch disturbs all of them. How far their median
moves from launch to launch is therefore taken from the launches of the calibration, as it moved there; of
independent cases it would be far less, and every second night an alarm. What sessions have in common comes on
top, for the launches of one burst do not show it. Where the launches behind the
references are not told, the cases count as one: then the median is as uncertain as a single typical case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr

from postprocess.base.units import compute_slowdown
from postprocess.model.case import Case
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.model.routines.mpicost import is_control
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.references import provenance
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from postprocess.stats.placement import group_placements
from postprocess.stats.session_prior import ELSEWHERE
from postprocess.stats.sessions import DAY_SHARE, estimate_session_spread

FLOOR = math.log1p(0.03)  #: smaller shifts are not judged in one night
COMMON_SHARE = 0.2  #: share of slow cases above which there is a common cause
COMMON_CASES = 10  #: at least, before one cause is spoken of
#: Of the variance between sessions, what the median of all cases has: 0.16 to 0.58 in twelve nights of three
#: MPIs on a virtual machine
COMMON_PART = 0.5


@dataclass(frozen=True)
class JudgedSlowdown:
    """A judged case of a night: how slow it is, and how slow it was in each launch of its calibration."""

    result: CaseResult
    hosts: tuple[str, ...]
    log: float  #: ln of the slowdown; above 0 is slower
    error: float  #: standard deviation of ``log`` if nothing has changed, for this case alone
    moves: tuple[float, ...] = ()  #: ``log`` of each calibration launch; empty if unknown
    session: float = 0.0  #: share of the variance of ``log`` that is between sessions

    @property
    def case(self) -> Case:
        """The case."""
        return self.result.case

    @property
    def slow(self) -> bool:
        """Whether it is slow by itself."""
        return self.result.verdict == Verdict.REGRESSED

    @property
    def firm(self) -> bool:
        """Whether enough launches are behind its reference for small shifts to mean anything."""
        return self.error > 0 and self.result.reference_launches >= ENOUGH_LAUNCHES


@dataclass(frozen=True)
class CommonShift:
    """The common shift of some cases: the median of their logarithms of slowdown, and its probability."""

    log: float
    p: float  #: probability of so large a median if nothing has changed; 1 if unknown
    p_many: float  #: probability of so large a quantile, the one that a fifth of the cases exceed
    slow: int  #: cases that are slow by themselves
    cases: int

    def is_many(self, alpha: float) -> bool:
        """Return whether too many are slow for each to have a cause of its own, at the level ``alpha``."""
        share = self.slow > COMMON_SHARE * self.cases
        return self.slow >= COMMON_CASES and share and self.p_many < alpha

    def is_clear(self, alpha: float) -> bool:
        """Return whether the median case is slower: by ``FLOOR`` in ln time, and significant at ``alpha``."""
        return self.cases >= COMMON_CASES and self.log >= FLOOR and self.p < alpha


def collect_slowdowns(
    results: Sequence[CaseResult], catalog: ReferenceCatalog, hosts: Mapping[Case, tuple[str, ...]]
) -> list[JudgedSlowdown]:
    """Collect the cases that were judged by measured references, controls too; simulated time has no spread."""
    values: dict[int, dict[str, tuple[list[float], list[float | None]]]] = {}
    found = []
    for result in results:
        reference_set = catalog.find_set(result.case)
        reference = catalog.reference(result.case, result.core_latency)
        factor = result.slowdown
        if result.verdict not in JUDGED or not (reference_set and reference and factor) or reference.exact:
            continue
        known = values.setdefault(id(reference_set), {})
        if not known:
            known.update(collect_values(reference_set))
        spread = reference.moderated[0] if reference.launches > 1 else 0.0
        own = spread * math.sqrt(1.0 + 1.0 / reference.launches)
        between = 0.0
        if reference.session_prior and reference.launches > 1:
            apart = (1.0 + DAY_SHARE) * (1.0 + 1.0 / reference.sessions)
            between = estimate_session_spread(reference) * math.sqrt(apart)
        error = math.hypot(own, between)
        session = (between / error) ** 2 if error else 0.0
        earlier, latencies = known.get(result.case.key, ([], []))
        moves = compute_log_deviations(earlier, latencies, result.unit)
        there = hosts.get(result.case, ())
        found.append(JudgedSlowdown(result, there, math.log(factor), error, moves, session))
    return found


def collect_values(reference_set: ReferenceSet) -> dict[str, tuple[list[float], list[float | None]]]:
    """Collect values (in their units) and core latencies (s) of all launches behind references, by case."""
    return {
        key: (list(values), provenance.find_core_latencies(calibration, key))
        for told in reference_set.provenance["programs"].values()
        for calibration in provenance.list_calibrations(told)
        for key, values in provenance.list_values(calibration).items()
    }


def compute_log_deviations(
    values: Sequence[float], latencies: Sequence[float | None], unit: str
) -> tuple[float, ...]:
    """Compute by how much (log) each launch was slower than the mean of those whose ranks lay alike.

    :param latencies: time from core to core of each launch, in seconds, or None
    :param unit: of the values
    """
    if len(values) < 2 or min(values) <= 0:
        return ()
    logs = np.array([math.log(compute_slowdown(value, 1.0, unit)) for value in values])
    for place in group_placements(latencies):
        some = list(place.members)
        logs[some] -= logs[some].mean()
    return tuple(map(float, logs))


def estimate_shift(some: Sequence[JudgedSlowdown]) -> CommonShift:
    """Estimate what these cases have in common.

    The launches of a reference of few say nothing of small shifts; but their bands are so wide that many
    cases beyond them are many.
    """
    slow = sum(slowdown.slow for slowdown in some)
    firm = [slowdown for slowdown in some if slowdown.firm]
    log = float(np.median([slowdown.log for slowdown in firm or some])) if some else 0.0
    if len(firm) < COMMON_CASES:
        return CommonShift(log, 1.0, 0.0, slow, len(some))
    middle, upper = (compute_shift_probability(firm, share) for share in (0.5, 1.0 - COMMON_SHARE))
    return CommonShift(log, middle, upper, slow, len(some))


def compute_shift_probability(some: Sequence[JudgedSlowdown], share: float) -> float:
    """Compute how likely so large a quantile of the standardised logarithms is if nothing has changed.

    :param some: cases of references of enough launches
    :param share: of the cases that lie below the quantile; 0.5 is the median
    """
    tonight = float(np.quantile([slowdown.log / slowdown.error for slowdown in some], share))
    launches, number = Counter(len(slowdown.moves) for slowdown in some).most_common(1)[0]
    if launches < ENOUGH_LAUNCHES or 2 * number <= len(some):
        least = min(slowdown.result.reference_launches for slowdown in some)
        return float(stdtr(least - 1.0, ndtri(share) - tonight))
    told = [slowdown for slowdown in some if len(slowdown.moves) == launches]
    tonight = float(np.quantile([slowdown.log / slowdown.error for slowdown in told], share))
    usual = np.quantile([standardise_deviations(slowdown) for slowdown in told], share, axis=0)
    beyond = tonight - usual.mean()
    session = float(np.median([slowdown.session for slowdown in told]))
    own = (1.0 - session) * float(usual.var(ddof=1)) * (1.0 + 1.0 / launches)
    between = session * COMMON_PART
    if own + between <= 0:
        return 1.0
    degrees = (own + between) ** 2 / (own**2 / (launches - 1.0) + between**2 / ELSEWHERE)
    return float(stdtr(degrees, -beyond / math.sqrt(own + between)))


def standardise_deviations(one: JudgedSlowdown) -> list[float]:
    """Standardise launches of a calibration, which lie closer to their own mean than a new launch does."""
    launches = len(one.moves)
    own = one.error * math.sqrt(1.0 - one.session)
    error = own * math.sqrt((1.0 - 1.0 / launches) / (1.0 + 1.0 / launches))
    return [move / error for move in one.moves]


def exclude_controls(some: Sequence[JudgedSlowdown]) -> list[JudgedSlowdown]:
    """Exclude the cases that an MPI has a part in."""
    return [slowdown for slowdown in some if not is_control(slowdown.case)]
