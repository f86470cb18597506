"""How much memory the buffers of a case take, where all processes of a launch share one machine's."""


def buffer_bytes(routine: str, processes: int, size: int) -> int:
    """Bytes of the send and receive buffers of all processes together.

    :param size: bytes by the routine's convention: of a block between two processes, or of a vector.
    """
    if routine == "alltoall":
        blocks = 2 * processes**2
    elif routine == "allgather":
        blocks = processes * (1 + processes)
    else:
        blocks = 2 * processes  # what the root has, and one block or vector on each
    return blocks * size
