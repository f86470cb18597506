"""How much memory a case takes where the processes of a launch are simulated, and share one machine's."""

from __future__ import annotations


def shared_bytes(routine: str, processes: int, size: int) -> int:
    """Bytes of the send and receive buffers of all processes together, and of messages on their way.

    SimGrid's scan sends to all higher ranks at once: 2.1 GB were measured for 1 MB and 64 processes.

    :param size: bytes by the routine's convention: of a block between two processes, or of a vector.
    """
    if routine == "alltoall":
        blocks = 2 * processes**2
    elif routine == "allgather":
        blocks = processes * (1 + processes)
    else:
        blocks = 2 * processes  # what the root has, and one block or vector on each
    if routine.startswith("scan_"):
        blocks += processes * (processes - 1) // 2
    return blocks * size
