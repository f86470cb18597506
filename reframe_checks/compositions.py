"""Operations composed of other calls, and MPI_Reduce_local, measured if asked for by name.

``./plumbline run --family compositions``, or ``--routine bcast,bcast_as_scatter_allgather``. The operations
that they replace are measured by ``mpicost``.
"""

import reframe as rfm

from postprocess.model.routines.mpicost import FAMILIES, REDUCE_LOCAL
from reframe_checks.common.mpicost import RequestedCheck

WHOLE_VECTOR = [8, 10_000, 1_000_000]
BLOCK = [8, 10_000]
#: Replaced operations, and the arithmetic of a reduction
VECTORS = ("bcast", "reduce_sum", "allreduce_sum", "scan_sum", REDUCE_LOCAL)


@rfm.simple_test
class compositions(RequestedCheck):
    """The routines of this family that were named; none in a session that names no routine."""

    descr = "MPI operations put together from others"
    table = {
        routine: WHOLE_VECTOR if routine.partition("_as_")[0] in VECTORS else BLOCK
        for routine in FAMILIES["compositions"]
    }
