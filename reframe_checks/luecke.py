"""The tests of Luecke et al.: eleven of 2001 and seven of 2003, at the sizes of both papers; and the controls.

2001: Luecke et al., comparison of an NT, a Myrinet Linux and an Ethernet Linux cluster with the Cray
T3E-600 and the SGI Origin 2000. 2003: Luecke, Kraeva and Ju, "Comparing the performance of MPICH with
Cray's MPI and with SGI's MPI".
"""

from __future__ import annotations

import reframe as rfm

from postprocess.model.routines.mpicost import CONTROLS
from reframe_checks.common.mpicost import MpicostCheck

POINT_TO_POINT = [8, 10_000, 1_000_000]
SCATTERED = [8, 1_000, 10_000, 100_000]  #: per rank pair, or per block
GATHERED_BY_ALL = [8, 10_000]
WHOLE_VECTOR = [8, 1_000_000]


@rfm.simple_test
class luecke(MpicostCheck):
    """Every routine of both papers, and beside them in the same launch what no MPI has a part in.

    A size is the bytes of one message or block, or of the vector.
    """

    descr = "MPI routines as Luecke et al. measured them"
    table = {
        "pingpong": POINT_TO_POINT,
        "rightshift": POINT_TO_POINT,
        "barrier": [0],
        "bcast": POINT_TO_POINT,
        "scatter": SCATTERED,
        "gather": SCATTERED,
        "allgather": GATHERED_BY_ALL,
        "alltoall": SCATTERED,
        **{f"reduce_{operation}": POINT_TO_POINT for operation in ("sum", "min", "max")},
        **{f"allreduce_{operation}": WHOLE_VECTOR for operation in ("sum", "min", "max")},
        **{f"scan_{operation}": WHOLE_VECTOR for operation in ("sum", "min", "max")},
        **CONTROLS,
    }
