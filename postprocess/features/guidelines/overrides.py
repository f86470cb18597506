"""The settings by which an MPI is told which algorithm of an operation it is to take.

Open MPI: parameters ``coll_tuned_*_algorithm`` of its component ``tuned``; MPICH: control variables
``MPIR_CVAR_*_INTRA_ALGORITHM``; Intel MPI: ``I_MPI_ADJUST_*``; SimGrid: ``smpi/*``. A setting that a
release does not know changes nothing, or fails its launches: either is seen, and it is not advised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from site_configs.mpi.family import SIMULATED_LIBRARY, identify_library

STAND_INS = "SMPI_STAND_INS"  #: further words for its launcher, which add up

#: Routines of mpicost, by what the MPIs call their operation.
OPERATIONS = {
    "barrier": "barrier",
    "bcast": "bcast",
    "scatter": "scatter",
    "gather": "gather",
    "allgather": "allgather",
    "alltoall": "alltoall",
    "reduce_sum": "reduce",
    "allreduce_sum": "allreduce",
    "scan_sum": "scan",
    "reduce_scatter_sum": "reduce_scatter",
    "reduce_scatter_block_sum": "reduce_scatter_block",
}

#: Algorithms of Open MPI 4 and 5, from 1 on (``ompi_info --param coll tuned --level 9``).
OPENMPI = {
    "barrier": ("linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"),
    "bcast": (
        *("basic_linear", "chain", "pipeline", "split_binary_tree", "binary_tree", "binomial"),
        *("knomial", "scatter_allgather", "scatter_allgather_ring"),
    ),
    "scatter": ("basic_linear", "binomial", "linear_nb"),
    "gather": ("basic_linear", "binomial", "linear_sync"),
    "allgather": ("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc"),
    "alltoall": ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
    "reduce": (*("linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner"),),
    "allreduce": (
        *("basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring"),
        "rabenseifner",
    ),
    "scan": ("linear", "recursive_doubling"),
    "reduce_scatter": ("non-overlapping", "recursive_halving", "ring", "butterfly"),
    "reduce_scatter_block": (*("basic_linear", "recursive_doubling", "recursive_halving", "butterfly"),),
}
#: Algorithms of MPICH 3.4 and later.
MPICH = {
    "barrier": ("k_dissemination", "recexch", "smp"),
    "bcast": (
        *("binomial", "smp", "scatter_recursive_doubling_allgather"),
        *("scatter_ring_allgather", "pipelined_tree", "tree"),
    ),
    "scatter": ("binomial",),
    "gather": ("binomial",),
    "allgather": ("brucks", "k_brucks", "recursive_doubling", "ring", "recexch_doubling"),
    "alltoall": ("brucks", "k_brucks", "pairwise", "pairwise_sendrecv_replace", "scattered"),
    "reduce": ("binomial", "smp", "reduce_scatter_gather"),
    "allreduce": (*("smp", "recursive_doubling", "reduce_scatter_allgather", "tree", "recexch", "ring"),),
    "scan": ("smp", "recursive_doubling"),
    "reduce_scatter": ("noncommutative", "pairwise", "recursive_doubling", "recursive_halving"),
    "reduce_scatter_block": (*("noncommutative", "pairwise", "recursive_doubling", "recursive_halving"),),
}
#: Algorithms of Intel MPI 2021 by number, as its developer reference counts them.
INTEL = {
    **{"barrier": 9, "bcast": 14, "scatter": 4, "gather": 4, "allgather": 6, "alltoall": 5},
    **{"reduce": 11, "allreduce": 12, "scan": 2, "reduce_scatter": 5, "reduce_scatter_block": 3},
}
#: Algorithms of SimGrid 3.32 that are right for any number of processes.
SIMGRID = {
    "bcast": ("binomial_tree", "flattree", "NTSB", "scatter_LR_allgather", "ompi_pipeline"),
    "scatter": ("ompi_basic_linear", "ompi_binomial"),
    "gather": ("ompi_basic_linear", "ompi_binomial", "ompi_linear_sync"),
    "allgather": ("bruck", "ring", "pair", "GB", "NTSLR"),
    "alltoall": ("basic_linear", "bruck", "ring", "pair_light_barrier"),
    "reduce": ("binomial", "flat_tree", "scatter_gather", "ompi_pipeline", "ompi_binary"),
    "allreduce": ("lr", "rdb", "redbcast", "ompi_ring_segmented"),
    "barrier": ("ompi_recursivedoubling", "ompi_bruck", "ompi_tree"),
    "reduce_scatter": ("ompi_basic_recursivehalving", "ompi_ring", "mpich_pair"),
}
#: Ends the search of an MPI for an algorithm that does not fit: it takes another one instead of an error.
FALL_BACK = {"MPIR_CVAR_COLLECTIVE_FALLBACK": "silent"}
DYNAMIC = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}


@dataclass(frozen=True)
class Override:
    """An algorithm of one operation, and the variables that choose it."""

    name: str  #: such as ``bcast binomial``
    variables: Mapping[str, str] = field(hash=False)


def list_overrides(library: str, routine: str) -> list[Override]:
    """List the overrides of a routine of mpicost, for the MPI that named itself; none for an unknown one."""
    operation = OPERATIONS.get(routine, "")
    if library.startswith(SIMULATED_LIBRARY):
        return [
            Override(f"{operation} {each}", {STAND_INS: f"--cfg=smpi/{operation}:{each}"})
            for each in SIMGRID.get(operation, ())
        ]
    family = identify_library(library)[0]
    if family == "openmpi":
        variable = f"OMPI_MCA_coll_tuned_{operation}_algorithm"
        return [
            Override(f"{operation} {each}", {**DYNAMIC, variable: str(number)})
            for number, each in enumerate(OPENMPI.get(operation, ()), 1)
        ]
    if family in ("mpich", "cray-mpich", "mvapich"):
        variable = f"MPIR_CVAR_{operation.upper()}_INTRA_ALGORITHM"
        return [
            Override(f"{operation} {each}", {**FALL_BACK, variable: each}) for each in MPICH.get(operation, ())
        ]
    if family == "intel-mpi":
        variable = f"I_MPI_ADJUST_{operation.upper()}"
        numbers = range(1, INTEL.get(operation, 0) + 1)
        return [Override(f"{operation} {each}", {variable: str(each)}) for each in numbers]
    return []


def merge_overrides(overrides: Sequence[Override]) -> dict[str, str]:
    """Merge the variables of overrides of different operations, which are in force together."""
    merged: dict[str, str] = {}
    for override in overrides:
        for name, value in override.variables.items():
            both = [merged[name], value] if name == STAND_INS and name in merged else [value]
            merged[name] = " ".join(both)
    return merged
