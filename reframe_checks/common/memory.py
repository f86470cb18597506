"""How much memory a case takes where the processes of a launch are simulated, and share one machine's."""

from __future__ import annotations

from postprocess.model.routines.mpicost import find_routine


def estimate_shared_bytes(routine: str, processes: int, size: int) -> int:
    """Estimate the bytes of all processes' send and receive buffers, and of messages on their way.

    :param size: bytes by the routine's convention: of a block between two processes, or of a vector.
    :raises ValueError: if mpicost has no such routine.
    """
    return find_routine(routine).count_blocks(processes) * size
