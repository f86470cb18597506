"""OSU Micro-Benchmarks 7.4: point to point, collectives, non-blocking collectives, one-sided, start-up.

Every size is one row of its tables. The fast quarter of the trials is judged, ``-z``, with the mean beside it:
for a collective the largest mean of a rank, ``-f``. Data consists of floats, and is verified wherever the
program can, in separate launches: sums of its default, a signed byte, saturate with some MPIs (open-mpi/ompi
issue 8045).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

import reframe as rfm
from reframe.core.builtins import fixture, variable

from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.model.case import Case
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines import requested
from postprocess.model.routines.benchmark import LOOP, QUANTILE, WHOLE_START, WINDOW_WARMUPS, Benchmark
from reframe_checks.common.build import BuildProgram
from reframe_checks.common.osu_imb import POWERS_OF_TWO, OsuImbCheck, Start, share_windows

#: The smallest payload is one float.
FLOATS = ("-T", "mpi_float")
#: For launches that verify data: new data is written before each call, and an extra call comes first.
VERIFYING = ("-c", "-u", "1")
#: What is judged: the time that a quarter of the trials do not exceed, or the rate that a quarter exceed. A
#: trial of a collective is the mean of its times over the ranks.
FASTEST = (25, "P25 Tail Lat(us)")
HIGHEST = (75, "P75 Tail BW(MB/s)")
#: ``osu_multi_lat`` prints the header words of quantiles without numbers; a fan prints the quantile of one
#: pair, and the mean of all
WITHOUT_QUANTILES = ("osu_multi_lat", "osu_init", "osu_hello", "osu_bw_fan_in", "osu_bw_fan_out")


def declare_osu(name: str, routine: str, title: str, column: str, **more) -> Benchmark:
    """Declare a benchmark of OSU, judged by a quantile of its trials if it prints any."""
    benchmark = Benchmark(name, routine, title, column, **more)
    if name in WITHOUT_QUANTILES:
        return benchmark
    percent, steady = FASTEST if benchmark.unit == SECONDS else HIGHEST
    return replace(benchmark, options=(*benchmark.options, f"-z{percent}"), steady=steady)


def declare_point_to_point(name: str, routine: str, title: str, column: str, **more) -> Benchmark:
    """Declare a loop of messages without a barrier in it; OSU 7.4 sends no empty ones."""
    more = {"sync": LOOP, "least": 4, "options": FLOATS, "verifies": True, **more}
    return declare_osu(f"osu_{name}", routine, title, column, **more)


def declare_osu_collective(routine: str, title: str, **more) -> Benchmark:
    """Declare a blocking collective, with a barrier after each call."""
    facts = {"least": 4, "options": ("-f", *FLOATS), "verifies": True, **more}
    name = f"osu_{routine.replace('_sum', '').replace('.', '_')}"
    return declare_osu(name, routine, title, "Max Latency(us)", **facts)


def declare_osu_non_blocking(routine: str, title: str, **more) -> Iterator[Benchmark]:
    """Declare a non-blocking collective: in total with simultaneous computation, and its communication alone.

    ``Overlap(%)``, the part that the computation hid, is printed with both. Quantiles are of the total.
    """
    name = f"osu_{routine.removesuffix('_sum')}"
    facts = {"least": 4, "options": ("-f", *FLOATS), "verifies": True, **more}
    whole = declare_osu(name, routine, title, "Overall(us)", **facts)
    yield whole
    yield replace(whole, routine=f"{routine}.pure", column="Max Comm.(us)", steady="")


def declare_osu_one_sided(routine: str, title: str, column: str, **more) -> Benchmark:
    """Declare a loop of accesses to a window, each flushed. Their data is not validated."""
    return declare_osu(f"osu_{routine}", routine, title, column, sync=LOOP, ranks="two", **more)


def declare_atomic(routine: str, title: str, datatype: str, **more) -> Benchmark:
    """Declare a loop of atomic operations on elements of four bytes in a window."""
    facts = {"least": 4, "options": ("-T", datatype), **more}
    return declare_osu_one_sided(routine, f"OSU MPI_{title} latency Test", "Latency (us)", **facts)


def declare_persistent() -> Iterator[Benchmark]:
    """Declare the benchmarks of persistent requests, initialised once and started in every call."""
    latency: dict[str, Any] = {"column": "Avg Latency(us)"}
    for name, routine, what, facts in (
        ("latency", "pingpong", "Latency", latency),
        ("bw", "bw", "Bandwidth", BANDWIDTH),
        ("bibw", "bibw", "Bi-Directional Bandwidth", BANDWIDTH),
    ):
        yield declare_point_to_point(
            f"{name}_persistent",
            f"{routine}.persistent",
            f"OSU MPI {what} Persistent Test",
            ranks="two",
            **facts,
        )
    barrier = "barrier.persistent"
    yield declare_osu_collective(
        barrier,
        "OSU MPI Barrier Persistent Latency Test",
        sync=LOOP,
        sizes=(0,),
        options=("-f",),
        verifies=False,
    )
    for routine in requested.PERSISTENT[requested.PERSISTENT.index(barrier) + 1 :]:
        operation = routine.partition(".")[0]
        yield declare_osu_collective(routine, f"OSU MPI {TITLES[operation]} Persistent Latency Test")


def declare_neighborhood() -> Iterator[Benchmark]:
    """Declare exchanges with the neighbours of a ring, blocking and non-blocking.

    With fewer than four processes the programs print ``ERROR`` and return 0.
    """
    facts = {"from_processes": 4}
    for routine in requested.NEIGHBORHOOD:
        title = NEIGHBORHOOD_TITLES.get(routine, f"Neighborhood {TITLES[routine[9:]]}")
        yield declare_osu_collective(routine, f"OSU MPI {title} Latency Test", **facts)
    for routine in requested.NON_BLOCKING_NEIGHBORHOOD:
        title = f"Non-blocking Neighborhood {routine[10:].capitalize()}"
        yield from declare_osu_non_blocking(routine, f"OSU MPI {title} Latency Test", **facts)


#: OSU's names of operations in its titles
TITLES = {
    "bcast": "Broadcast",
    "scatter": "Scatter",
    "scatterv": "Scatterv",
    "gather": "Gather",
    "gatherv": "Gatherv",
    "allgather": "Allgather",
    "allgatherv": "Allgatherv",
    "alltoall": "All-to-All Personalized Exchange",
    "alltoallv": "All-to-Allv Personalized Exchange",
    "alltoallw": "All-to-Allw Personalized Exchange",
    "reduce_sum": "Reduce",
    "allreduce_sum": "Allreduce",
    "reduce_scatter_sum": "Reduce_scatter",
    "reduce_scatter_block_sum": "Reduce_scatter_block",
}
#: Other names in neighbourhood programs
NEIGHBORHOOD_TITLES = {
    "neighbor_alltoall": "Neighborhood Alltoall",
    "neighbor_alltoallv": "Neighborhood All-to-Allv",
    "neighbor_alltoallw": TITLES["alltoallw"],
}
#: A start of the MPI and nothing else
STARTS = ("init", "hello")
#: Messages that every centre knows; a start takes many times as long for windows of them as for all smaller
#: ones.
LARGEST = 4 * 2**20
BANDWIDTH: dict[str, Any] = {"column": "Bandwidth (MB/s)", "unit": MEGABYTES, "window": True}

BW = declare_point_to_point("bw", "bw", "OSU MPI Bandwidth Test", ranks="two", **BANDWIDTH)
BIBW = declare_point_to_point("bibw", "bibw", "OSU MPI Bi-Directional Bandwidth Test", ranks="two", **BANDWIDTH)


class build_osu(BuildProgram):
    descr = "Build OSU Micro-Benchmarks"
    name_of_program = "osu"


@rfm.simple_test
class osu(OsuImbCheck):
    """OSU Micro-Benchmarks, each with its own start."""

    descr = "OSU Micro-Benchmarks"
    tags = {"nightly", "osu"}
    program = "osu"
    own_sizes = POWERS_OF_TWO
    table = (
        declare_point_to_point(
            "latency",
            "pingpong",
            "OSU MPI Latency Test",
            "Avg Latency(us)",
            ranks="two",
            larger=(LARGEST // 2, LARGEST),
        ),
        BW,
        BIBW,
        declare_point_to_point(
            "multi_lat", "multi_lat", "OSU MPI Multi Latency Test", "Avg Latency(us)", ranks="even"
        ),
        declare_point_to_point(
            "mbw_mr",
            "mbw_mr",
            "OSU MPI Multiple Bandwidth / Message Rate Test",
            "MB/s",
            unit=MEGABYTES,
            window=True,
            ranks="even",
        ),
        declare_point_to_point(
            "latency_mt", "latency_mt", "OSU MPI Multi-threaded Latency Test", "Avg Latency(us)", ranks="two"
        ),
        declare_point_to_point(
            "latency_mp", "latency_mp", "OSU MPI Multi-process Latency Test", "Avg Latency(us)", ranks="two"
        ),
        *(
            declare_point_to_point(
                name, name, "OSU MPI Bandwidth Test", from_nodes=3, verifies=False, **BANDWIDTH
            )
            for name in ("bw_fan_in", "bw_fan_out")
        ),
        declare_osu(
            "osu_barrier",
            "barrier",
            "OSU MPI Barrier Latency Test",
            "Max Latency(us)",
            sync=LOOP,
            sizes=(0,),
            options=("-f",),
        ),
        # Bytes are those of the whole vector, for both forms of reduce_scatter.
        *(
            declare_osu_collective(routine, f"OSU MPI {title} Latency Test")
            for routine, title in TITLES.items()
        ),
        *declare_osu_non_blocking("iallreduce_sum", "OSU MPI Non-blocking Allreduce Latency Test"),
        *declare_osu_non_blocking("ialltoall", "OSU MPI Non-blocking All-to-All Latency Test"),
        *declare_osu_non_blocking("ibcast", "OSU MPI Non-Blocking Broadcast Latency Test"),
        *(
            line
            for routine in requested.NON_BLOCKING
            for line in declare_osu_non_blocking(
                routine, f"OSU MPI Non-blocking {TITLES[routine[1:]]} Latency Test"
            )
        ),
        declare_osu(
            "osu_ibarrier",
            "ibarrier",
            "OSU MPI Non-blocking Barrier Latency Test",
            "Overall(us)",
            sync=LOOP,
            sizes=(0,),
            options=("-f",),
        ),
        declare_osu_one_sided("get_acc_latency", "OSU MPI_Get_accumulate latency Test", "Latency (us)"),
        declare_osu_one_sided("put_latency", "OSU MPI_Put Latency Test", "Latency (us)"),
        declare_osu_one_sided("get_latency", "OSU MPI_Get latency Test", "Latency (us)"),
        declare_osu_one_sided("put_bw", "OSU MPI_Put Bandwidth Test", **BANDWIDTH),
        declare_osu_one_sided("get_bw", "OSU MPI_Get Bandwidth Test", **BANDWIDTH),
        declare_osu_one_sided("put_bibw", "OSU MPI_Put Bi-directional Bandwidth Test", **BANDWIDTH),
        declare_atomic("acc_latency", "Accumulate", "mpi_float"),
        declare_atomic("fop_latency", "Fetch_and_op", "mpi_float", sizes=(4,)),
        declare_atomic("cas_latency", "Compare_and_swap", "mpi_int", sizes=(4,)),
        *(
            replace(line, routine=routine, sizes=(LARGEST,))
            for line, routine in zip((BW, BIBW), requested.LARGE, strict=True)
        ),
        *declare_persistent(),
        *declare_neighborhood(),
        declare_osu("osu_init", "init", "OSU MPI Init Test", "max (ms)", sync=LOOP, sizes=(0,)),
        declare_osu("osu_hello", "hello", "OSU MPI Hello World Test", WHOLE_START, sync=LOOP, sizes=(0,)),
    )

    #: Calls of each size before the timed ones; a fifth in bandwidth tests, whose call is a window of messages.
    #: Ten and two are OSU's own numbers above 8 KiB.
    #:
    #: :default: ``10``
    warmups = variable(int, value=10)

    built = fixture(build_osu, scope="environment")

    def method(self) -> dict[str, int]:
        osu_method = {"warmups": self.warmups, WINDOW_WARMUPS: share_windows(self.warmups)}
        osu_method |= {"validated": self.validates, QUANTILE: FASTEST[0]}
        return {**super().method(), **osu_method}

    def starts(self) -> Iterator[Start]:
        """Yield the starts: a benchmark runs through doubling sizes; other sizes need their own start."""
        chosen = self.chosen_benchmarks()
        for (name, is_large), group in groupby(
            chosen, key=lambda benchmark: (benchmark.name, benchmark.routine in requested.LARGE)
        ):
            benchmarks = list(group)
            chains = split_into_chains(
                sorted({size for benchmark in benchmarks for size in self.sizes_of(benchmark)})
            )
            for sizes in chains:
                start = f"osu_{benchmarks[0].routine}" if is_large else name
                yield Start(start if len(chains) == 1 else f"{start}_{sizes[0]}", benchmarks, sizes)

    def cases_of(self, benchmark: Benchmark, sizes: list[int]) -> Iterator[Case]:
        """Return the cases of a benchmark at its own sizes, because a start may have other benchmarks too."""
        own_sizes = self.sizes_of(benchmark)
        return super().cases_of(benchmark, [size for size in sizes if size in own_sizes])

    def options_of(self, start: PlannedLaunch) -> list[str]:
        """Return the options of a start of OSU; without warm-up calls if only data is verified."""
        if self.validates:
            return [*VERIFYING, *build_osu_options(start, 0)]
        return build_osu_options(start, self.warmups)


def build_osu_options(start: PlannedLaunch, warmups: int) -> list[str]:
    benchmark = start.benchmarks[0]
    words = list(benchmark.options)
    sizes = [case.bytes for case in start.all_cases]
    if benchmark.sizes is None or max(sizes) > benchmark.least:
        words += ["-m", f"{min(sizes)}:{max(sizes)}"]
    if benchmark.routine not in STARTS:
        untimed = share_windows(warmups) if benchmark.window else warmups
        words += ["-i", str(start.trials), "-x", str(untimed)]
    return words


def split_into_chains(sizes: list[int]) -> list[list[int]]:
    """Split ascending sizes into chains in which each is twice the one before."""
    chains: list[list[int]] = []
    for size in sorted(sizes):
        if chains and size == 2 * chains[-1][-1]:
            chains[-1].append(size)
        else:
            chains.append([size])
    return chains
