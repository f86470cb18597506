"""What it costs to flush the caches by a walk through memory, as mpicost does with ``--cache flush``."""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

from site_configs.topology.machine import Machine, read_machine

WORDS_PER_LINE = 8  #: of 8 bytes
UNKNOWN_SECONDS = 0.1  #: of a flush where the kernel does not tell the caches


def compute_flush_bytes(machine: Machine, ranks: int = 1) -> int:
    """Compute the bytes that each rank of a node walks through to flush its caches; 0 if unknown.

    Its share of twice the last-level cache, and twice the second level, as ``flush_needed`` of the suite has it
    for ranks that are spread over the node.
    """
    last = max(machine.caches, key=lambda each: each.level, default=None)
    if last is None:
        return 0
    sharing = max(1, ranks * last.shared_by // machine.hardware_threads)
    second = sum(each.bytes for each in machine.caches if each.level == 2 and last.level > 2)
    return -(-2 * last.bytes // sharing) + 2 * second


@cache
def measure_flush_seconds() -> float:
    """Walk once as a trial of mpicost does, on this machine. Takes up to some tenths of a second."""
    size = compute_flush_bytes(read_machine())
    if not size:
        return UNKNOWN_SECONDS
    words = np.ones(size // 8, dtype=np.uint64)  # ones: pages of zeros would share one page
    begin = perf_counter()
    words[::WORDS_PER_LINE] += np.uint64(1)
    return perf_counter() - begin
