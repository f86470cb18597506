"""What RUS Stuttgart's report on MPI on its T3E-512 derives from a time per call.

``size`` is that report's buffer: what the root sends for bcast, the whole send buffer of one process for
alltoall, the whole array at the root for gather and scatter. Its times are means over a loop of calls, which
overlap: they are no times of single calls. Seconds and bytes.
"""

from __future__ import annotations

import math

#: Operations of which it gives an aggregated bandwidth, and whether each process moves the buffer
MOVED_BY_ALL = {"bcast": True, "alltoall": True, "gather": False, "scatter": False}


def compute_aggregated_bandwidth(routine: str, size: int, processes: int, time: float) -> float:
    """Compute bytes/s over all processes. Raises KeyError for an operation of which the report gives none."""
    return size * (processes if MOVED_BY_ALL[routine] else 1) / time


def compute_tree_time(send: float, processes: int) -> float:
    """Compute what a broadcast by a binary tree of messages takes, of the time of one message."""
    return math.ceil(math.log2(processes)) * send


def compute_exchange_bound(latency: float, processes: int) -> float:
    """Compute the least that an all-to-all by single messages takes: a latency for each other process."""
    return (processes - 1) * latency
