"""What Taboada et al. measure, with their definition of the size n, and how often.

Their section 3: 150 trials, of which the minimum counts, each after a barrier; sizes 0 and powers of four, and
20 random ones to test the models. n is the whole vector for bcast, reduce, allreduce and scan; what all
processes have together for scatter, gather and allgather; what one process sends to all for alltoall; and the
vector before it is scattered for reduce-scatter. mpicost counts blocks: n divided by the processes.
"""

from collections.abc import Iterable

from postprocess.model.routines.mpicost import BARRIER, PINGPONG, find_routine

TABOADA = "taboada"  #: the family
TRIALS = 151  #: the first is dropped
TOTALS = (0, *(4**power for power in range(11)))  #: n in bytes, to a mebibyte
HELD_OUT = (  #: n that test the models; drawn once at random, uniformly in their logarithm
    *(24, 72, 120, 216, 376, 680, 1208, 2184, 3400, 5504),
    *(9776, 15672, 27048, 45800, 81224, 140288, 236104, 390432, 650120, 900176),
)
#: The composition of mpicost by which the paper replaces an operation
REPLACED_BY = {
    "bcast": "bcast_as_scatter_allgather",
    "allgather": "allgather_as_gather_bcast",
    "allreduce_sum": "allreduce_sum_as_reduce_bcast",
    "reduce_scatter_sum": "reduce_scatter_sum_as_reduce_scatterv",
}

WHOLE = (PINGPONG, "bcast", "reduce_sum", "allreduce_sum", "scan_sum")  #: their bytes are n
SHARED = ("scatter", "gather", "allgather", "alltoall", "reduce_scatter_sum")  #: their bytes are n / p
ROUTINES = (PINGPONG, BARRIER, *WHOLE[1:], *SHARED)
MEASURED = (*ROUTINES, *REPLACED_BY.values())  #: routines that the family measures


def convert_totals(routine: str, totals: Iterable[int], processes: int) -> list[int]:
    """Convert sizes n of the paper to bytes of mpicost, without those that the processes cannot share evenly.

    Reductions use numbers of 8 bytes; sizes that are not a whole number of them are left out.
    """
    if routine == BARRIER:
        return [0]
    shares = processes if routine.partition("_as_")[0] in SHARED else 1
    sizes = [total // shares for total in totals if total % shares == 0]
    return [size for size in sizes if find_routine(routine).has_size(size)]
