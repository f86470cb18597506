"""Which benchmarks OSU 7.4 and IMB 2021.11 have, and what of them an MPI or a launch is not able to run.

A declared list, so that a benchmark that fails is a failure and never taken for one that the MPI lacks. Every
benchmark below was run under MPICH 5.0.2, Open MPI 5.0.11 and Intel MPI 2021.19 with 2 and 4 processes on one
node. All of them work under all three, but for what PROCESSES, NODES and FLAWS say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

#: Benchmarks by executable, as ``-list`` of IMB prints them, and OSU's by folder.
BENCHMARKS = {
    "IMB-MPI1": (
        *("PingPong", "PingPongSpecificSource", "PingPongAnySource"),
        *("PingPing", "PingPingSpecificSource", "PingPingAnySource"),
        *("Sendrecv", "Exchange", "Uniband", "Biband", "Barrier", "Bcast"),
        *("Scatter", "Scatterv", "Gather", "Gatherv", "Allgather", "Allgatherv"),
        *("Alltoall", "Alltoallv", "Reduce", "Reduce_local", "Reduce_scatter"),
        *("Reduce_scatter_block", "Allreduce"),
    ),
    "IMB-NBC": (
        *("Ibarrier", "Ibarrier_pure", "Ibcast", "Ibcast_pure"),
        *("Iscatter", "Iscatter_pure", "Iscatterv", "Iscatterv_pure"),
        *("Igather", "Igather_pure", "Igatherv", "Igatherv_pure"),
        *("Iallgather", "Iallgather_pure", "Iallgatherv", "Iallgatherv_pure"),
        *("Ialltoall", "Ialltoall_pure", "Ialltoallv", "Ialltoallv_pure"),
        *("Ireduce", "Ireduce_pure", "Ireduce_scatter", "Ireduce_scatter_pure"),
        *("Iallreduce", "Iallreduce_pure"),
    ),
    "IMB-RMA": (
        *("Unidir_put", "Unidir_get", "Bidir_put", "Bidir_get"),
        *("Put_local", "Get_local", "Put_all_local", "Get_all_local"),
        *("One_put_all", "One_get_all", "All_put_all", "All_get_all"),
        *("Exchange_put", "Exchange_get", "Accumulate", "Get_accumulate"),
        *("Fetch_and_op", "Compare_and_swap", "Truly_passive_put"),
    ),
    "pt2pt": (
        *("osu_latency", "osu_latency_mp", "osu_latency_mt", "osu_multi_lat", "osu_bw"),
        *("osu_bibw", "osu_mbw_mr", "osu_bw_fan_in", "osu_bw_fan_out"),
        *("osu_latency_persistent", "osu_bw_persistent", "osu_bibw_persistent"),
    ),
    "collective": (
        *("osu_barrier", "osu_bcast", "osu_scatter", "osu_scatterv", "osu_gather", "osu_gatherv"),
        *("osu_allgather", "osu_allgatherv", "osu_alltoall", "osu_alltoallv", "osu_alltoallw"),
        *("osu_reduce", "osu_allreduce", "osu_reduce_scatter", "osu_reduce_scatter_block"),
        *("osu_ibarrier", "osu_ibcast", "osu_iscatter", "osu_iscatterv", "osu_igather"),
        *("osu_igatherv", "osu_iallgather", "osu_iallgatherv", "osu_ialltoall", "osu_ialltoallv"),
        *("osu_ialltoallw", "osu_ireduce", "osu_iallreduce", "osu_ireduce_scatter"),
        *("osu_ireduce_scatter_block", "osu_neighbor_allgather", "osu_neighbor_allgatherv"),
        *("osu_neighbor_alltoall", "osu_neighbor_alltoallv", "osu_neighbor_alltoallw"),
        *("osu_ineighbor_allgather", "osu_ineighbor_allgatherv", "osu_ineighbor_alltoall"),
        *("osu_ineighbor_alltoallv", "osu_ineighbor_alltoallw", "osu_barrier_persistent"),
        *("osu_bcast_persistent", "osu_scatter_persistent", "osu_scatterv_persistent"),
        *("osu_gather_persistent", "osu_gatherv_persistent", "osu_allgather_persistent"),
        *("osu_allgatherv_persistent", "osu_alltoall_persistent", "osu_alltoallv_persistent"),
        *("osu_alltoallw_persistent", "osu_reduce_persistent", "osu_allreduce_persistent"),
        "osu_reduce_scatter_persistent",
    ),
    "one-sided": (
        *("osu_put_latency", "osu_put_bw", "osu_put_bibw", "osu_get_latency", "osu_get_bw"),
        *("osu_acc_latency", "osu_get_acc_latency", "osu_fop_latency", "osu_cas_latency"),
    ),
    "startup": ("osu_init", "osu_hello"),
}
OF_IMB = ("IMB-MPI1", "IMB-NBC", "IMB-RMA")

#: Process counts, least and most, at which a benchmark prints numbers of all its processes. Beyond them OSU
#: refuses; IMB runs on two and lets the others wait, or prints nothing (Fetch_and_op, Compare_and_swap).
PROCESSES = {
    **dict.fromkeys(("PingPong*", "PingPing*", "Unidir_*", "Bidir_*", "Put_local"), (2, 2)),
    **dict.fromkeys(("Get_local", "Accumulate", "Get_accumulate", "Fetch_and_op"), (2, 2)),
    **dict.fromkeys(("Compare_and_swap", "Truly_passive_put"), (2, 2)),
    **dict.fromkeys(("osu_latency*", "osu_bw", "osu_bibw", "osu_b*w_persistent"), (2, 2)),
    **dict.fromkeys(("osu_put_*", "osu_get_latency", "osu_get_bw", "osu_*acc_latency"), (2, 2)),
    **dict.fromkeys(("osu_fop_latency", "osu_cas_latency"), (2, 2)),
    **dict.fromkeys(("osu_neighbor_*", "osu_ineighbor_*"), (3, None)),  #: prints ERROR, exit code 0
}
#: Benchmarks that refuse to run on one node.
NODES = {"osu_bw_fan_*": 2}


@dataclass(frozen=True)
class Standard:
    """A version of the MPI standard, and the first release of each family that has all of it."""

    number: str
    since: dict[str, tuple[int, ...]]


#: By the release notes of the families; older releases than those named above were not tried.
MPI_3 = Standard(
    "3.0",
    {
        "mpich": (3, 0),
        "openmpi": (1, 8),
        "intel-mpi": (5, 0),
        "mvapich": (2, 0),
        "cray-mpich": (7, 0),
    },
)
MPI_4 = Standard("4.0", {"mpich": (4, 0), "openmpi": (5, 0)})
#: What is called by the benchmarks of these patterns. The first that matches counts.
NEEDS = {
    "osu_*_persistent": MPI_4,  # but for those of the folder pt2pt, which MPI 1 has
    "osu_i*": MPI_3,
    "osu_neighbor_*": MPI_3,
    **dict.fromkeys((f"osu_{word}_*" for word in ("put", "get", "acc", "fop", "cas")), MPI_3),
    **dict.fromkeys(BENCHMARKS["IMB-NBC"], MPI_3),
    **dict.fromkeys(BENCHMARKS["IMB-RMA"], MPI_3),
}
OF_MPI_1 = ("osu_init", *(name for name in BENCHMARKS["pt2pt"] if name.endswith("_persistent")))


@dataclass(frozen=True)
class Flaw:
    """Something that releases of a family cannot do, from one release on up to another, which can."""

    family: str
    benchmarks: str  #: a pattern
    first: tuple[int, ...]
    fixed: tuple[int, ...] | None  #: None: in no release yet
    reason: str

    def has(self, family: str, release: tuple[int, ...], benchmark: str) -> bool:
        """Whether this release of a family has it in this benchmark."""
        there = self.first <= release and (self.fixed is None or release < self.fixed)
        return there and self.family == family and fnmatchcase(benchmark, self.benchmarks)


NO_FINALIZE = "a process ends without MPI_Finalize after the last size"
#: An entry needs the release it was seen in, and the reason.
FLAWS = (
    Flaw("openmpi", "osu_latency_mt", (5, 0, 11), None, NO_FINALIZE),
    Flaw("intel-mpi", "osu_latency_mt", (2021, 19), None, NO_FINALIZE),
    Flaw(
        "intel-mpi",
        "osu_allgather_persistent",
        (2021, 19),
        None,
        "ends in a segmentation fault at 4 processes",
    ),
    Flaw(
        "intel-mpi", "osu_scatter_persistent", (2021, 19), None, "aborts in MPI_Wait at 4 processes"
    ),
)


def unsupported(family: str, version: str, program: str, benchmark: str) -> str:
    """Why an MPI cannot run a benchmark; empty if it can, or if nothing is known against it.

    :param family: of the MPI, as environments have it.
    :param version: of the MPI, as it tells itself: ``5.0.11``.
    :param program: ``osu`` or ``imb``.
    :raises ValueError: if the program has no such benchmark.
    """
    if benchmark not in names(program):
        raise ValueError(f"{program} has no benchmark {benchmark!r}")
    release = numbers(version)
    standard = needed(benchmark)
    if standard and (since := standard.since.get(family)) and release < since:
        first = ".".join(map(str, since))
        return f"needs MPI {standard.number}, which {family} has since {first}"
    return next((flaw.reason for flaw in FLAWS if flaw.has(family, release, benchmark)), "")


def names(program: str) -> list[str]:
    """All benchmarks of a program."""
    executables = [each for each in BENCHMARKS if (each in OF_IMB) == (program == "imb")]
    return [name for each in executables for name in BENCHMARKS[each]]


def needed(benchmark: str) -> Standard | None:
    """The version of the standard that a benchmark needs, if not every MPI has it."""
    if benchmark in OF_MPI_1:
        return None
    return next((NEEDS[each] for each in NEEDS if fnmatchcase(benchmark, each)), None)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def runs_at(benchmark: str, processes: int, nodes: int) -> bool:
    """Whether a benchmark prints numbers at so many processes on so many nodes."""
    least, most = next(
        (PROCESSES[each] for each in PROCESSES if fnmatchcase(benchmark, each)), (2, None)
    )
    least_nodes = next((NODES[each] for each in NODES if fnmatchcase(benchmark, each)), 1)
    return least <= processes and (most is None or processes <= most) and nodes >= least_nodes
