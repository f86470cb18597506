"""Detect slow nodes and links by comparing all pairs of nodes with each other.

Nothing is known of the network, so every comparison is with peers, on the logarithm of the time. A *node*
is held against the ordinary partners of each of its partners; it is named if it is slow with nearly all of
them. A *pair* is held against what both of its nodes need with their other partners; it is named if it is
slower than the worst pair that an ordinary node has anyway (a partner far away, a crowded switch). Both must be
so in every launch: a passing disturbance is not.

What is named is slower by a least share. That share is larger where the machine's own nodes or pairs differ by
more. The p-value is multiplied by all that was looked at (Bonferroni). So a sweep of a healthy machine names
anything at all with a probability of at most ``ALPHA``. Simulations confirm that; with few healthy nodes that
differ for good by a standard deviation of 5% the probability is up to 2%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

SIGMA = 1.4826  #: standard deviations of a normal distribution in its median absolute deviation
NODE_SPREADS = 6.0  #: robust standard deviations of the nodes among each other that are ordinary
#: share of a node's partners that are ordinary; more slow ones would hide each other
ORDINARY_PARTNERS = 0.75
#: share of the nodes whose worst pair is ordinary; the others may use a bad cable
ORDINARY_NODES = 0.35
SLACK = 4.0  #: room above the worst pair of an ordinary node, in its distance from the median pair
MOST_SLACK = math.log(2)  #: twice as slow as the worst ordinary pair is never ordinary


def compute_quantile(values: Matrix, share: float, axis: int = 0) -> Matrix:
    """Compute a quantile of the values that are not nan, interpolated linearly; nan where there is none."""
    *shape, number = np.moveaxis(values, axis, -1).shape
    rows = np.sort(np.moveaxis(values, axis, -1), axis=-1).reshape(-1, number)  # nan goes last
    last = np.maximum(np.isfinite(rows).sum(axis=-1) - 1, 0)
    place = share * last
    below = np.floor(place).astype(int)
    lower, upper = (rows[np.arange(len(rows)), each] for each in (below, np.minimum(below + 1, last)))
    return (lower + (place - below) * (upper - lower)).reshape(shape)[()]


def compute_median(values: Matrix, axis: int = 0) -> Matrix:
    return compute_quantile(values, 0.5, axis)


def select_finite(values: Matrix) -> Matrix:
    """Select all values that are not nan, in one row."""
    return values[np.isfinite(values)]


def compute_node_excess(log: Matrix) -> Matrix:
    """Compute by how much (log) each node (row) is slower with a partner (column) than the partner's median."""
    return log - compute_median(log, axis=2)[:, None, :]


def compute_node_excess_beyond(log: Matrix) -> Matrix:
    """Compute each node's excess over the slowest ordinary pair of a partner, however far away that is."""
    ordered = np.sort(log, axis=2)
    count = np.isfinite(ordered).sum(axis=2, keepdims=True)
    place = np.floor(ORDINARY_PARTNERS * np.maximum(count - 1, 0)).astype(int)
    return log - np.take_along_axis(ordered, place, axis=2)[:, :, 0][:, None, :]


def reduce_to_nodes(excess: Matrix) -> Matrix:
    """Reduce to the median of each node over its partners and the launches."""
    return compute_median(np.swapaxes(excess, 0, 1).reshape(excess.shape[1], -1), axis=1)


def compute_node_limit(excess: Matrix, least: float) -> float:
    """Compute the excess beyond the slowest ordinary pair, in ln time, above which a node is not ordinary."""
    effects = reduce_to_nodes(excess)
    spread = SIGMA * float(compute_median(np.abs(effects - compute_median(effects))))
    return max(least, NODE_SPREADS * spread)


def compute_pair_excess(log: Matrix) -> Matrix:
    """Compute by how much (log) each pair is slower than both of its nodes are with their other partners.

    A node's level comes from its faster partners, moved up to the median of an ordinary node: half of a
    node's pairs may pass over a bad cable, and still be seen to be slow.
    """
    low = compute_quantile(log, 0.25, axis=2)
    level = low + compute_median(compute_median(log, axis=2) - low, axis=1)[:, None]
    return log - np.maximum(level[:, :, None], level[:, None, :])


def compute_pair_limit(excess: Matrix, least: float) -> float:
    """Compute the excess, in ln time, above which a pair is not an ordinary one.

    That is the worst pair of an ordinary node and some room, the more the more pairs differ anyway.
    """
    lasting = compute_median(excess)
    centre = float(compute_median(lasting.ravel()))
    worst = float(compute_quantile(compute_quantile(lasting, 1.0, axis=1), ORDINARY_NODES))
    structure = max(0.0, worst - centre)
    return centre + structure + max(least, min(SLACK * structure, MOST_SLACK))


def compute_pair_ratios(log: Matrix) -> Matrix:
    """Compute each pair's time over that of the faster of its two nodes with its median partner.

    A slow node shows with all its partners, a far one with those that are far. Shape (nodes, nodes).
    """
    typical = compute_median(log, axis=2)
    return np.exp(compute_median(log - np.minimum(typical[:, :, None], typical[:, None, :])))


def find_nodes_without_peers(switch: Sequence[int]) -> list[int]:
    """Find nodes whose pairs have none to be compared with, such as the only node outside a single switch."""
    sizes = {number: list(switch).count(number) for number in switch}
    return [node for node, number in enumerate(switch) if len(sizes) == 2 and sizes[number] == 1]


def remove_switch_levels(log: Matrix, switch: Sequence[int]) -> Matrix:
    """Subtract the level (log) from pairs within a switch and across; ``switch``: its number for every node.

    One of the two kinds may have no pair: a single switch, or every node on one of its own.
    """
    number = np.asarray(switch)
    near = number[:, None] == number[None, :]
    moved = log.copy()
    for kind in (near, ~near):
        if not kind.any():
            continue
        level = compute_median(log[:, kind], axis=1)
        moved[:, kind] -= np.where(np.isnan(level), 0.0, level)[:, None]
    return moved


ALPHA = 0.01  #: probability that a sweep of a healthy machine names anything at all
LEAST = 0.10  #: the smallest slowdown that is named
NEARLY_ALL = 0.75  #: of its partners: a node that is slow with fewer has bad links
FEWEST_NODES = 4  #: with three, a sick node and a bad link look alike
CONFIDENCE = 0.95
#: Share of the pairs that other causes may slow down in a launch.
DISTURBED = 0.01
SEEN = 0.9  #: with this probability a fault as large as the detectable one is named


@dataclass(frozen=True, eq=False)
class PairTimes:
    """One time of every pair in every launch, in one way of measuring.

    ``times``: seconds, shape (launches, nodes, nodes), symmetric, nan where there is none.
    """

    bytes: int
    statistic: str  #: of a launch's trials: ``median`` or ``mean``
    times: Matrix
    switch: tuple[int, ...] = ()  #: of each node, by number, where that is known

    @property
    def log(self) -> Matrix:
        """Natural logarithm of the times; where switches are known, over the median of their kind."""
        log = np.log(self.times)
        return remove_switch_levels(log, self.switch) if self.switch else log

    def without(self, nodes: Sequence[int]) -> PairTimes:
        """Return the measure without any pair of these nodes."""
        times = self.times.copy()
        times[:, nodes, :] = np.nan
        times[:, :, nodes] = np.nan
        return replace(self, times=times)


@dataclass(frozen=True)
class SlowItem:
    """A node or a pair that stands out in one measure. Factors: times as slow as its peers."""

    who: tuple[int, ...]  #: one node, or the two of a pair
    measure: PairTimes
    factor: float
    low: float  #: of a node the 95% interval, of a pair the least and most over the launches
    high: float
    slow: int  #: partners with which a node is slow; launches in which a pair is
    of: int
    chance: float  #: p-value, not yet corrected for the number of nodes and pairs


@dataclass(frozen=True)
class DetectionLimits:
    """The smallest detectable slowdowns of a node and a pair in one measure, as fractions; inf if none is."""

    measure: PairTimes
    node: float
    pair: float


@dataclass(frozen=True)
class SweepAnalysis:
    nodes: tuple[SlowItem, ...]
    pairs: tuple[SlowItem, ...]
    suspects: tuple[SlowItem, ...]  #: slow enough, but not significant
    limits: tuple[DetectionLimits, ...]
    looked_at: int  #: nodes and pairs, in all measures together
    exact: bool  #: whether time is simulated and without noise; nothing is left to chance then

    def p(self, slow: SlowItem) -> float:
        """Return the corrected p-value."""
        return min(1.0, slow.chance * self.looked_at)


def analyse_sweep(measures: Sequence[PairTimes], least: float = LEAST, exact: bool = False) -> SweepAnalysis:
    """Name what is slow. ``least``: nothing that is slower by a smaller share is named."""
    found = SweepAnalysis((), (), (), (), sum(map(list_testable, measures)), exact)
    floor = math.log1p(least)
    for measure in measures:
        nodes, doubtful = split_by_significance(found, find_slow_nodes(measure, floor))
        rest = measure.without([node.who[0] for node in nodes])
        pairs, doubtful_pairs = split_by_significance(found, find_slow_pairs(rest, floor))
        found = replace(
            found,
            nodes=found.nodes + nodes,
            pairs=found.pairs + pairs,
            suspects=found.suspects + doubtful + doubtful_pairs,
            limits=(*found.limits, compute_detection_limits(rest, floor, found)),
        )
    return found


def count_launches_needed(nodes: int, measures: int) -> int:
    """Count the launches needed to name a node or a link although some pairs are disturbed in each."""
    pairs = math.comb(nodes, 2)
    most = ALPHA / (measures * (nodes + pairs))
    disturbed = max(1 / nodes, 2 / (1 + pairs), DISTURBED)
    return max(3, math.ceil(math.log(most) / math.log(disturbed)))


def list_testable(measure: PairTimes) -> int:
    """List the nodes and pairs that are tested in a measure."""
    measured = np.asarray(np.isfinite(measure.times).any(axis=0))
    return int(measured.any(axis=1).sum()) + int(np.triu(measured, 1).sum())


def split_by_significance(
    found: SweepAnalysis, slow: Sequence[SlowItem]
) -> tuple[tuple[SlowItem, ...], tuple[SlowItem, ...]]:
    """Split suspects into significant and insignificant ones."""
    sure = tuple(item for item in slow if found.exact or found.p(item) <= ALPHA)
    return sure, tuple(item for item in slow if item not in sure)


def find_slow_nodes(measure: PairTimes, least: float) -> list[SlowItem]:
    """Find every node that is slow in every launch with nearly all of its partners, significant or not.

    :param least: least excess that counts, in ln time
    """
    excess, beyond = (compute_node_excess(measure.log), compute_node_excess_beyond(measure.log))
    limit = compute_node_limit(excess, least)
    launches = compute_median(beyond, axis=2)
    slow = find_persistent_excess(launches, limit)
    chances = compute_p_values(launches, slow, limit)
    found = []
    for node in np.flatnonzero(slow):
        partners = select_finite(compute_median(beyond)[node])
        with_slow = int((partners > limit).sum())
        if with_slow >= NEARLY_ALL * partners.size:
            values = select_finite(excess[:, node])
            logs = (np.median(values), *compute_median_interval(values))
            ratio, low, high = map(math.exp, logs)
            who, counts = (int(node),), (with_slow, partners.size)
            found.append(SlowItem(who, measure, ratio, low, high, *counts, chances[node]))
    return found


def compute_median_interval(values: Matrix) -> tuple[float, float]:
    """Compute the 95% interval of the median by the sign test, in the unit of the values (n,).

    Of fewer than six values it is their range.
    """
    ordered = np.sort(values)
    skipped = max(int(scipy.stats.binom.ppf((1 - CONFIDENCE) / 2, ordered.size, 0.5)) - 1, 0)
    return float(ordered[skipped]), float(ordered[-1 - skipped])


def find_slow_pairs(measure: PairTimes, least: float) -> list[SlowItem]:
    """Find every pair that is slow in every launch, significant or not.

    :param least: least excess that counts, in ln time
    """
    excess = compute_pair_excess(measure.log)
    limit = compute_pair_limit(excess, least)
    first, second = np.triu_indices(excess.shape[1], 1)
    launches = excess[:, first, second]
    slow = find_persistent_excess(launches, limit)
    chances = compute_p_values(launches, slow, limit)
    found = []
    for pair in np.flatnonzero(slow):
        values = select_finite(launches[:, pair])
        who = (int(first[pair]), int(second[pair]))
        ratio, low, high = map(math.exp, (np.median(values), values.min(), values.max()))
        counts = (values.size, values.size)
        found.append(SlowItem(who, measure, ratio, low, high, *counts, chances[pair]))
    return found


def find_persistent_excess(excess: Matrix, limit: float) -> NDArray[np.bool_]:
    """Find what is above the limit in every launch that has it. ``excess``: (launches, nodes or pairs)."""
    missing = np.isnan(excess)
    return np.asarray(((excess > limit) | missing).all(axis=0) & ~missing.all(axis=0))


def compute_p_values(excess: Matrix, slow: NDArray[np.bool_], limit: float) -> list[float]:
    """Compute the probability that a node or pair like the others is above the limit in each launch.

    Of the others a passing disturbance lifts some: so many in each launch, and one for the one that is
    looked at. It needs launches to be independent, and no more.
    """
    others = excess[:, ~slow]
    count = np.isfinite(others).sum(axis=1)
    disturbed = (1 + (others > limit).sum(axis=1)) / (1 + count)
    return np.where(np.isnan(excess), 1.0, disturbed[:, None]).prod(axis=0).tolist()


def compute_detection_limits(rest: PairTimes, least: float, found: SweepAnalysis) -> DetectionLimits:
    """Compute the detection limits, as factors of the time.

    :param rest: times without the nodes that were named
    :param least: least excess that counts, in ln time
    """
    nodes, beyond = (compute_node_excess(rest.log), compute_node_excess_beyond(rest.log))
    pairs = compute_pair_excess(rest.log)
    of_nodes = find_smallest_detectable(compute_median(beyond, axis=2), compute_node_limit(nodes, least), found)
    upper = np.triu(np.ones(pairs.shape[1:], bool), 1)
    of_pairs = find_smallest_detectable(pairs[:, upper], compute_pair_limit(pairs, least), found)
    return DetectionLimits(rest, of_nodes, of_pairs)


def find_smallest_detectable(excess: Matrix, limit: float, found: SweepAnalysis) -> float:
    """Find the smallest slowdown (a fraction) of a node or pair that is detected with probability ``SEEN``."""
    measured = excess[:, np.isfinite(excess).any(axis=0)]
    if not measured.size:
        return math.inf
    one = np.arange(measured.shape[1]) == 0  # whichever is slow is none of the others
    if not found.exact and max(compute_p_values(measured, one, limit)) * found.looked_at > ALPHA:
        return math.inf
    in_each = SEEN ** (1 / measured.shape[0])
    return math.expm1(limit - float(compute_quantile(select_finite(measured), 1 - in_each)))
