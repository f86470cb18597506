"""What RUS Stuttgart's report measures: the mean of a loop of calls, with its definition of the buffer.

The buffer is what the root sends for bcast, the vector for reduce and allreduce, the whole array at the root
for gather and scatter, and the whole send buffer of one process for alltoall. mpicost counts blocks: the buffer
divided by the processes.
"""

from postprocess.model.routines.mpicost import BARRIER, FAMILIES, REDUCE_LOCAL, SENDS, find_routine

RUS = "rus"  #: the family
TRIALS = 11  #: loops, of which the first is dropped
COSTS = ("bcast", "gather", "scatter", "alltoall", "reduce_sum", "allreduce_sum")  #: routines in its tables
IN_ALL = ("gather", "scatter", "alltoall")  #: the buffer is the blocks of all processes together
#: How mpicost builds an operation from single sends
AS_SENDS = {
    "bcast": "bcast_as_sends",
    "gather": "gather_as_sends",
    "scatter": "scatter_as_sends",
    "alltoall": "alltoall_as_sendrecv",
}
LATENCY = 8  #: bytes in the table of latencies: a block, or a vector
BUFFERS = (1024, 4096, 16384, 65536, 262144, 1048576)
MESSAGES = tuple(2**power for power in range(22))  #: sizes of sends, from one byte to two mebibytes
ROUTINES = (BARRIER, *FAMILIES[SENDS], *COSTS, *AS_SENDS.values(), REDUCE_LOCAL)


def convert_buffers(routine: str, processes: int) -> list[int]:
    """Convert the buffers to bytes of mpicost, without those that the processes cannot share evenly."""
    if routine == BARRIER:
        return [0]
    if routine in FAMILIES[SENDS]:
        return [*MESSAGES]
    shares = processes if routine.partition("_as_")[0] in IN_ALL else 1
    sizes = [LATENCY, *(buffer // shares for buffer in BUFFERS if buffer % shares == 0)]
    return [size for size in dict.fromkeys(sizes) if find_routine(routine).has_size(size)]
