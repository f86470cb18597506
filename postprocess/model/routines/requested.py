"""Routines of OSU and IMB that no night measures: families, and routines asked for by name."""

WEEKLY = "weekly"  #: the family

PERSISTENT = tuple(
    f"{routine}.persistent"
    for routine in (
        *("pingpong", "bw", "bibw", "barrier", "bcast", "scatter", "scatterv", "gather", "gatherv"),
        *("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"),
        *("reduce_sum", "allreduce_sum", "reduce_scatter_sum"),
    )
)
NON_BLOCKING = (
    *("iallgather", "iallgatherv", "ialltoallv", "ialltoallw", "igather", "igatherv"),
    *("iscatter", "iscatterv", "ireduce_sum", "ireduce_scatter_sum", "ireduce_scatter_block_sum"),
)
EXCHANGES = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
NEIGHBORHOOD = tuple(f"neighbor_{exchange}" for exchange in EXCHANGES)
NON_BLOCKING_NEIGHBORHOOD = tuple(f"i{routine}" for routine in NEIGHBORHOOD)

LARGE = ("bw.large", "bibw.large")  #: messages of 4 MiB
LONG_ONE_SIDED = ("accumulate", "truly_passive_put", "truly_passive_put.pure")  #: slow routines of IMB

#: Routines of ``--family weekly``: rarely used, or too long for a night.
WEEKLY_ROUTINES = (
    *LARGE,
    *LONG_ONE_SIDED,
    *PERSISTENT,
    *NEIGHBORHOOD,
    *(f"{routine}{part}" for routine in (*NON_BLOCKING, *NON_BLOCKING_NEIGHBORHOOD) for part in ("", ".pure")),
)

IMB_MT = "imb-mt"  #: the family of IMB benchmarks with several threads per process
MT_ROUTINES = (
    *("pingpong_mt", "pingping_mt", "sendrecv_mt", "exchange_mt", "uniband_mt", "biband_mt"),
    *("barrier_mt", "bcast_mt", "reduce_sum_mt", "allreduce_sum_mt"),
)

IMB_IO = "imb-io"  #: the family of IMB benchmarks with files
READS = tuple(
    f"{who}_read_{place}"
    for who, places in (("p", ("indv", "expl", "shared", "priv")), ("c", ("indv", "expl", "shared")))
    for place in places
)
WRITES = tuple(routine.replace("read", "write") for routine in READS)
IO_ROUTINES = (*READS, *(f"{routine}{part}" for routine in WRITES for part in ("", ".aggregate")), "open_close")

#: Routines of OSU and IMB by family.
FAMILIES = {WEEKLY: WEEKLY_ROUTINES, IMB_MT: MT_ROUTINES, IMB_IO: IO_ROUTINES}

#: Routines that are measured only if they or their families are asked for by name.
REQUESTED = frozenset(("ibarrier", "get_acc_latency")).union(*FAMILIES.values())
