"""Levels, excesses and limits to which a pair of nodes is compared, on the logarithm of its time.

Arrays named ``log`` have the shape (launches, nodes, nodes), are symmetric, and are nan where there is no time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
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
    ordered = np.sort(np.moveaxis(values, axis, -1), axis=-1)  # nan goes last
    last = np.maximum(np.isfinite(ordered).sum(axis=-1, keepdims=True) - 1, 0)
    place = share * last
    below = np.floor(place).astype(int)
    lower, upper = (
        np.take_along_axis(ordered, each, axis=-1) for each in (below, np.minimum(below + 1, last))
    )
    return (lower + (place - below) * (upper - lower))[..., 0]


def compute_median(values: Matrix, axis: int = 0) -> Matrix:
    """Compute the median of the values that are not nan."""
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
