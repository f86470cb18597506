"""Find a common cause that slows many cases together, and narrow it down, so that it is reported once.

The cases of a launch are not independent: what disturbs a launch disturbs all of them. How far their median
moves from launch to launch is therefore taken from the launches of the calibration; independent cases would
move far less, and every second night would raise an alarm. What sessions have in common is added. Where the
launches behind the references are unknown, the cases count as one.

If everything on a partition is 7% slower, that is one fault and not a hundred. The search covers the cases of a
partition as a whole and of each environment, program, class of sizes and node set; no case need be outside its
band.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy

from postprocess.base.formats import compute_slowdown, find_better_direction
from postprocess.model.case import Case
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.model.routines.mpicost import is_control
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.references import provenance
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from postprocess.results.query import NIGHTS, read_headlines
from postprocess.results.store import StoreError
from postprocess.stats.launches import group_placements
from postprocess.stats.priors import ELSEWHERE, group_of
from postprocess.stats.sessions import DAY_SHARE, estimate_session_spread

FLOOR = math.log1p(0.03)  #: smaller shifts are not judged in one night
COMMON_SHARE = 0.2  #: share of slow cases above which there is a common cause
COMMON_CASES = 10  #: the fewest cases that make a common cause
#: Share of the variance between sessions that the median of all cases has: 0.16 to 0.58 in twelve nights of
#: three MPIs on a virtual machine
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
        return self.result.case

    @property
    def slow(self) -> bool:
        return self.result.verdict == Verdict.REGRESSED

    @property
    def firm(self) -> bool:
        """Whether its reference has enough launches for small shifts to mean anything."""
        return self.error > 0 and self.result.reference_launches >= ENOUGH_LAUNCHES


@dataclass(frozen=True)
class CommonShift:
    """What the slowdowns of some cases have in common: the median of their logarithms, and its probability."""

    log: float
    p: float  #: probability of a median this large if nothing has changed; 1 if unknown
    p_many: float  #: probability of a quantile this large, the one that a fifth of the cases exceed
    slow: int  #: cases that are slow by themselves
    cases: int

    def is_many(self, alpha: float) -> bool:
        """Return whether too many cases are slow for separate causes, at the level ``alpha``."""
        share = self.slow > COMMON_SHARE * self.cases
        return self.slow >= COMMON_CASES and share and self.p_many < alpha

    def is_clear(self, alpha: float) -> bool:
        """Return whether the median case is slower: by ``FLOOR`` in ln time, and significant at ``alpha``."""
        return self.cases >= COMMON_CASES and self.log >= FLOOR and self.p < alpha


def collect_slowdowns(
    results: Sequence[CaseResult], catalog: ReferenceCatalog, hosts: Mapping[Case, tuple[str, ...]]
) -> list[JudgedSlowdown]:
    """Collect the cases that were judged by measured references, controls included, but not exact times."""
    values: dict[int, dict[str, tuple[list[float], list[float | None]]]] = {}
    slowdowns = []
    for result in results:
        reference_set = catalog.find_set(result.case)
        reference = catalog.reference(result.case, result.core_latency)
        factor = result.slowdown
        if result.verdict not in JUDGED or not (reference_set and reference and factor) or reference.exact:
            continue
        by_case = values.setdefault(id(reference_set), {})
        if not by_case:
            by_case.update(collect_values(reference_set))
        spread = reference.moderated[0] if reference.launches > 1 else 0.0
        within = spread * math.sqrt(1.0 + 1.0 / reference.launches)
        between = 0.0
        if reference.session_prior and reference.launches > 1:
            apart = (1.0 + DAY_SHARE) * (1.0 + 1.0 / reference.sessions)
            between = estimate_session_spread(reference) * math.sqrt(apart)
        error = math.hypot(within, between)
        session = (between / error) ** 2 if error else 0.0
        earlier, latencies = by_case.get(result.case.key, ([], []))
        moves = compute_log_deviations(earlier, latencies, result.unit)
        there = hosts.get(result.case, ())
        slowdowns.append(JudgedSlowdown(result, there, math.log(factor), error, moves, session))
    return slowdowns


def collect_values(reference_set: ReferenceSet) -> dict[str, tuple[list[float], list[float | None]]]:
    """Collect the values (in their units) and core latencies (s) of all launches behind references, by case."""
    return {
        key: (list(values), provenance.find_core_latencies(calibration, key))
        for record in reference_set.provenance["programs"].values()
        for calibration in provenance.list_calibrations(record)
        for key, values in provenance.list_values(calibration).items()
    }


def compute_log_deviations(
    values: Sequence[float], latencies: Sequence[float | None], unit: str
) -> tuple[float, ...]:
    """Compute by how much (ln) each launch was slower than the mean of the launches with the same placement.

    :param latencies: core-to-core latency of each launch in seconds, or None
    """
    if len(values) < 2 or min(values) <= 0:
        return ()
    logs = np.array([math.log(compute_slowdown(value, 1.0, unit)) for value in values])
    for place in group_placements(latencies):
        members = list(place.members)
        logs[members] -= logs[members].mean()
    return tuple(map(float, logs))


def estimate_shift(some: Sequence[JudgedSlowdown]) -> CommonShift:
    """Estimate what the slowdowns of these cases have in common.

    The launches of references with few of them say nothing about small shifts; but their bands are so wide that
    many cases outside them mean something.
    """
    slow = sum(slowdown.slow for slowdown in some)
    firm = [slowdown for slowdown in some if slowdown.firm]
    log = float(np.median([slowdown.log for slowdown in firm or some])) if some else 0.0
    if len(firm) < COMMON_CASES:
        return CommonShift(log, 1.0, 0.0, slow, len(some))
    middle, upper = (compute_shift_probability(firm, share) for share in (0.5, 1.0 - COMMON_SHARE))
    return CommonShift(log, middle, upper, slow, len(some))


def compute_shift_probability(some: Sequence[JudgedSlowdown], share: float) -> float:
    """Compute how likely a quantile of the standardised logarithms this large is if nothing has changed.

    :param some: cases whose references have enough launches
    :param share: share of the cases below the quantile; 0.5 is the median
    """
    tonight = float(np.quantile([slowdown.log / slowdown.error for slowdown in some], share))
    launches, number = Counter(len(slowdown.moves) for slowdown in some).most_common(1)[0]
    if launches < ENOUGH_LAUNCHES or 2 * number <= len(some):
        least = min(slowdown.result.reference_launches for slowdown in some)
        return float(scipy.special.stdtr(least - 1.0, scipy.special.ndtri(share) - tonight))
    recorded = [slowdown for slowdown in some if len(slowdown.moves) == launches]
    tonight = float(np.quantile([slowdown.log / slowdown.error for slowdown in recorded], share))
    usual = np.quantile([standardise_deviations(slowdown) for slowdown in recorded], share, axis=0)
    beyond = tonight - usual.mean()
    session = float(np.median([slowdown.session for slowdown in recorded]))
    within = (1.0 - session) * float(usual.var(ddof=1)) * (1.0 + 1.0 / launches)
    between = session * COMMON_PART
    if within + between <= 0:
        return 1.0
    degrees = (within + between) ** 2 / (within**2 / (launches - 1.0) + between**2 / ELSEWHERE)
    return float(scipy.special.stdtr(degrees, -beyond / math.sqrt(within + between)))


def standardise_deviations(one: JudgedSlowdown) -> list[float]:
    """Standardise the launches of a calibration, which lie closer to their own mean than a new launch does."""
    launches = len(one.moves)
    within = one.error * math.sqrt(1.0 - one.session)
    error = within * math.sqrt((1.0 - 1.0 / launches) / (1.0 + 1.0 / launches))
    return [move / error for move in one.moves]


def exclude_controls(some: Sequence[JudgedSlowdown]) -> list[JudgedSlowdown]:
    return [slowdown for slowdown in some if not is_control(slowdown.case)]


LOOK_BACK = timedelta(days=60)  #: how far back history is searched for the onset
COLUMNS = ("session", "started_utc", "mode", "key", "verdict", "value", "unit", "hosts")


@dataclass(frozen=True)
class ShiftedNight:
    """How much slower the cases of a cause were in an earlier night, as a logarithm."""

    started_utc: str
    log: float
    hosts: tuple[str, ...]


def find_onset(cause: CommonCause, history: pl.DataFrame) -> str:
    """Find the onset of a cause, such as ``since 2026-11-20 (not yet 2026-11-19, on c, d)``; empty if unknown.

    :param history: earlier launches of these cases, from :func:`postprocess.results.query.read_headlines`
    """
    past = list_shifted_nights(cause, history)
    half = math.log1p(cause.shift) / 2
    shifted = list(takewhile(lambda night: night.log >= half, reversed(past)))
    before = past[: len(past) - len(shifted)]
    if not before:
        return f"since {format_night_date(shifted[-1])} or before" if shifted else ""
    last = before[-1]
    next_day = shifted[-1].started_utc[:10] if shifted else f"{datetime.now(timezone.utc):%Y-%m-%d}"
    timed = last.started_utc.startswith(next_day)
    first = f"since {format_night_date(shifted[-1], timed)}" if shifted else "since this night"
    other = "" if not last.hosts or last.hosts == cause.hosts else f", on {', '.join(last.hosts)}"
    return f"{first} (not yet {format_night_date(last, timed)}{other})"


def find_onset_in_store(store: Path, cause: CommonCause) -> str:
    """Find the onset in a store; empty if the store is damaged, which must not hide tonight's finding."""
    begin = (datetime.now(timezone.utc) - LOOK_BACK).strftime("%Y-%m-%d")
    keys = [case.key for case in cause.cases]
    try:
        return find_onset(cause, read_headlines(store, keys=keys, since=begin, columns=COLUMNS))
    except StoreError:
        return ""


def list_shifted_nights(cause: CommonCause, history: pl.DataFrame) -> list[ShiftedNight]:
    """List the nights that measured at least half of the cases of a cause, the oldest first.

    Values are compared with today's references, whatever the reference was in that night.
    """
    centers = pl.DataFrame(
        {
            "key": [member.case.key for member in cause.members],
            "unit": [member.result.unit for member in cause.members],
            "center": [member.result.reference for member in cause.members],
            "sign": [
                1.0 if find_better_direction(member.result.unit) == "lower" else -1.0
                for member in cause.members
            ],
        }
    )
    nights = (
        history.filter(
            pl.col("mode").is_in(NIGHTS),
            pl.col("verdict").is_in([str(verdict) for verdict in JUDGED]),
            pl.col("value") > 0,
        )
        .join(centers, on=["key", "unit"])
        .with_columns((pl.col("sign") * (pl.col("value") / pl.col("center")).log()).alias("log"))
        .group_by("session")
        .agg(
            pl.col("started_utc").first(),
            pl.col("log").median(),
            pl.col("key").n_unique().alias("cases"),
            pl.col("hosts").unique(),
        )
        .filter(2 * pl.col("cases") >= len(cause.members))
        .sort("started_utc")
    )
    return [
        ShiftedNight(row["started_utc"], row["log"], list_node_names(row["hosts"]))
        for row in nights.iter_rows(named=True)
    ]


def list_node_names(sets: list[str]) -> tuple[str, ...]:
    """List the nodes that occur in some node sets, which are lists joined by commas."""
    return tuple(sorted({name for node_set in sets for name in (node_set or "").split(",") if name}))


def format_night_date(night: ShiftedNight, timed: bool = False) -> str:
    """Format the date on which a night began; with the minute if ``timed``."""
    day, _, clock = night.started_utc.partition("T")
    return f"{day} {clock[:5]} UTC" if timed else day


#: Probability that a healthy night shows a cause in its own launches, over all ways of looking, if what
#: launches have in common is normally distributed; with heavy tails it is a few times that
#: (``tests/statistical/simulated_causes.py``).
ALPHA = 0.001
PROBE_CASES = 10  #: cases that are measured again, for all that share the cause
LEFT_OUT = 10  #: one in this many, the slowest, is never measured again
MOST_CAUSES = 3  #: on a partition; more would be noise
DIMENSIONS: Mapping[str, Callable[[JudgedSlowdown], Hashable]] = {
    "environments": lambda slowdown: slowdown.case.environment,
    "programs": lambda slowdown: slowdown.case.program,
    "sizes": lambda slowdown: group_of(slowdown.case)[1],
    "nodes": lambda slowdown: slowdown.hosts,
}


@dataclass(frozen=True)
class CommonCause:
    """Cases of one partition that are slower together, by ``shift``. An empty tuple of parts means all."""

    partition: str
    shift: float  #: as a fraction: 0.07 is 7% slower
    #: every judged case that it affects, slow by itself or not
    members: tuple[JudgedSlowdown, ...]
    controls: tuple[JudgedSlowdown, ...]  #: those judged at the same place
    clear: bool  #: the median case is slower; otherwise many are, by a median of ``shift``
    environments: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    #: classes of sizes, as :func:`postprocess.stats.priors.group_of` numbers them
    sizes: tuple[int, ...] = ()
    nodes: tuple[tuple[str, ...], ...] = ()  #: node sets
    since: str = field(default="", compare=False)  #: its onset, from the history

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every judged case that it affects."""
        return tuple(member.case for member in self.members)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The nodes on which it was seen."""
        return tuple(sorted({host for member in self.members for host in member.hosts}))

    @property
    def slow(self) -> tuple[Case, ...]:
        """Its cases that are outside their bands."""
        return tuple(member.case for member in self.members if member.slow)

    @property
    def explained(self) -> tuple[Case, ...]:
        """The cases that are outside their bands because of it alone."""
        return tuple(member.case for member in self.members if member.slow and self.explains(member))

    @cached_property
    def probe_cases(self) -> tuple[Case, ...]:
        """Cases drawn at random from those that it would explain, without the slowest.

        A case that is slow by itself, or that happened to be the slowest of a night, says nothing about a
        cause. The draw depends on the cases alone: it is the same every time.
        """
        candidates = [member for member in self.members if member.error > 0]
        if not self.clear:
            candidates = [member for member in candidates if member.slow and self.explains(member)]
        candidates.sort(key=lambda slowdown: (slowdown.log, slowdown.case))
        ordinary = sorted(member.case for member in candidates[: len(candidates) - len(candidates) // LEFT_OUT])
        draw = random.Random("\n".join(case.key for case in ordinary))
        return tuple(sorted(draw.sample(ordinary, min(PROBE_CASES, len(ordinary)))))

    def explains(self, one: JudgedSlowdown) -> bool:
        """Return whether a case would be inside its band if it were faster by the shift."""
        if one.result.band is None or not one.result.reference:
            return False
        center, unit = one.result.reference, one.result.unit
        limit = max(compute_slowdown(edge, center, unit) for edge in one.result.band if edge > 0)
        return one.log - math.log1p(self.shift) <= math.log(limit)


def find_common_causes(
    results: Sequence[CaseResult], catalog: ReferenceCatalog, hosts: Mapping[Case, tuple[str, ...]]
) -> list[CommonCause]:
    """Find what slows many cases of a night together, the largest causes first; empty if nothing does.

    :param hosts: hosts on which each case ran, as far as known
    """
    everything = sorted(collect_slowdowns(results, catalog, hosts), key=lambda slowdown: slowdown.case)
    places = [list(group) for _, group in groupby(everything, key=lambda e: (e.case.system, e.case.partition))]
    looks = sum(1 + len(list(list_parts(exclude_controls(place)))) for place in places)
    causes = [cause for place in places for cause in find_partition_causes(place, ALPHA / max(looks, 1))]
    return sorted(causes, key=lambda cause: (-len(cause.members), cause.partition))


def find_partition_causes(some: Sequence[JudgedSlowdown], alpha: float) -> Iterator[CommonCause]:
    """Find the causes on one partition: the first, then others among the cases that it does not affect."""
    controls = [slowdown for slowdown in some if is_control(slowdown.case)]
    rest = exclude_controls(some)
    for _ in range(MOST_CAUSES):
        group, parts = narrow_cause(rest, alpha, {})
        if not is_common_cause(estimate_shift(group), alpha):
            return
        yield build_cause(group, parts, controls, alpha)
        members = {slowdown.case for slowdown in group}
        rest = [slowdown for slowdown in rest if slowdown.case not in members]


def is_common_cause(shift: CommonShift, alpha: float) -> bool:
    """Return whether cases with this in common have one cause."""
    return shift.is_clear(alpha) or shift.is_many(alpha)


def list_parts(some: Sequence[JudgedSlowdown]) -> Iterator[tuple[str, Hashable, list[JudgedSlowdown]]]:
    """Yield the parts that are large enough to be examined, for each way of dividing these cases."""
    for name, value_of in DIMENSIONS.items():
        values = sorted({value_of(slowdown) for slowdown in some}, key=str)
        for value in values if len(values) > 1 else ():
            part = [slowdown for slowdown in some if value_of(slowdown) == value]
            if len(part) >= COMMON_CASES:
                yield name, value, part


def narrow_cause(
    some: Sequence[JudgedSlowdown], alpha: float, parts: dict[str, tuple]
) -> tuple[list[JudgedSlowdown], dict[str, tuple]]:
    """Narrow a cause to the fewest parts that leave the other cases unshifted; return cases and parts."""
    whole = is_common_cause(estimate_shift(some), alpha)
    by_name: dict[str, list[tuple[Hashable, list[JudgedSlowdown], bool]]] = {}
    for name, value, part in list_parts(some):
        by_name.setdefault(name, []).append((value, part, is_common_cause(estimate_shift(part), alpha)))
    for name, divided in by_name.items():
        slower = [(value, part) for value, part, is_slower in divided if is_slower]
        group = [slowdown for _, part in slower for slowdown in part]
        members = {slowdown.case for slowdown in group}
        rest = [slowdown for slowdown in some if slowdown.case not in members]
        if slower and len(slower) < len(divided) and (not whole or is_unshifted(rest, group, alpha)):
            return narrow_cause(group, alpha, {**parts, name: tuple(value for value, _ in slower)})
    return list(some), parts


def is_unshifted(rest: Sequence[JudgedSlowdown], group: Sequence[JudgedSlowdown], alpha: float) -> bool:
    """Return whether the cases that a cause does not affect are as they always were."""
    left = estimate_shift(rest)
    return not left.is_many(alpha) and left.log < estimate_shift(group).log / 2


def build_cause(
    group: Sequence[JudgedSlowdown], parts: Mapping[str, Any], controls: Sequence[JudgedSlowdown], alpha: float
) -> CommonCause:
    shift = estimate_shift(group)
    clear = shift.is_clear(alpha)
    log = shift.log if clear else float(np.median([slowdown.log for slowdown in group if slowdown.slow]))
    places = {(slowdown.case.environment, slowdown.hosts) for slowdown in group}
    beside = [slowdown for slowdown in controls if (slowdown.case.environment, slowdown.hosts) in places]
    partition = group[0].case.partition
    cause = CommonCause(partition, math.expm1(log), tuple(group), tuple(beside), clear)
    return replace(cause, **parts)
