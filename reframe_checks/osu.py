"""OSU Micro-Benchmarks 7.4: point to point, collectives, non-blocking collectives, one-sided, start-up.

Every size is one row of its tables. Of a collective the largest mean of a rank is judged, ``-f``; data
is validated wherever the program can, as floats: sums of its default, a signed byte, saturate with
some MPIs (open-mpi/ompi issue 8045).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import reframe as rfm
from reframe.core.builtins import fixture, variable

from postprocess.base.units import MEGABYTES
from postprocess.model.case import Case
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.benchmark import LOOP, WINDOW_WARMUPS, Benchmark
from reframe_checks.common.build import build_osu
from reframe_checks.common.osu_imb import POWERS_OF_TWO, OsuImbCheck, Start, count_iterations

#: Validated, with one untimed call before each timed one, since new data is written before it; the smallest
#: payload is one float.
FLOATS = ("-c", "-u", "1", "-T", "mpi_float")
TAILS = "-z"  #: quantiles of the trials, of which the median is evidence beside the mean
P50 = "P50 Tail Lat(us)"


def declare_point_to_point(name: str, routine: str, title: str, **more) -> Benchmark:
    """Declare a loop of messages without a barrier in it; OSU 7.4 sends no empty ones."""
    return Benchmark(f"osu_{name}", routine, title, sync=LOOP, least=4, **more)


def declare_osu_collective(routine: str, title: str) -> Benchmark:
    """Declare a blocking collective, with a barrier after each call."""
    name = f"osu_{routine.removesuffix('_sum')}"
    column, options = "Max Latency(us)", ("-f", TAILS, *FLOATS)
    return Benchmark(name, routine, title, column, least=4, options=options, median=P50)


def declare_osu_non_blocking(routine: str, title: str) -> Iterator[Benchmark]:
    """Declare a non-blocking collective: the whole with computation beside it, and the communication alone.

    How much of it the computation hid, ``Overlap(%)``, stands beside both.
    """
    name, options = f"osu_{routine.removesuffix('_sum')}", ("-f", *FLOATS)
    yield Benchmark(name, routine, title, "Overall(us)", least=4, options=options)
    yield Benchmark(name, f"{routine}.pure", title, "Max Comm.(us)", least=4, options=options)


def declare_osu_one_sided(routine: str, title: str, column: str, **more) -> Benchmark:
    """Declare a loop of accesses to a window, each flushed. The program cannot validate them."""
    return Benchmark(f"osu_{routine}", routine, title, column, sync=LOOP, ranks="two", **more)


BANDWIDTH = {"column": "Bandwidth (MB/s)", "unit": MEGABYTES, "window": True}


@rfm.simple_test
class osu(OsuImbCheck):
    """OSU Micro-Benchmarks, each a start of its own."""

    descr = "OSU Micro-Benchmarks"
    tags = {"nightly", "osu"}
    program = "osu"
    own_sizes = POWERS_OF_TWO
    table = (
        declare_point_to_point(
            "latency",
            "pingpong",
            "OSU MPI Latency Test",
            column="Avg Latency(us)",
            ranks="two",
            options=(TAILS, *FLOATS),
            median=P50,
        ),
        declare_point_to_point(
            "bw", "bw", "OSU MPI Bandwidth Test", ranks="two", options=FLOATS, **BANDWIDTH
        ),
        declare_point_to_point(
            "bibw",
            "bibw",
            "OSU MPI Bi-Directional Bandwidth Test",
            ranks="two",
            options=FLOATS,
            **BANDWIDTH,
        ),
        declare_point_to_point(
            "multi_lat",
            "multi_lat",
            "OSU MPI Multi Latency Test",
            column="Avg Latency(us)",
            ranks="even",
            options=FLOATS,
        ),
        declare_point_to_point(
            "mbw_mr",
            "mbw_mr",
            "OSU MPI Multiple Bandwidth / Message Rate Test",
            column="MB/s",
            unit=MEGABYTES,
            window=True,
            ranks="even",
            options=FLOATS,
        ),
        Benchmark(
            "osu_barrier",
            "barrier",
            "OSU MPI Barrier Latency Test",
            "Max Latency(us)",
            sync=LOOP,
            sizes=(0,),
            options=("-f", TAILS),
            median=P50,
        ),
        declare_osu_collective("bcast", "OSU MPI Broadcast Latency Test"),
        declare_osu_collective("scatter", "OSU MPI Scatter Latency Test"),
        declare_osu_collective("gather", "OSU MPI Gather Latency Test"),
        declare_osu_collective("allgather", "OSU MPI Allgather Latency Test"),
        declare_osu_collective("alltoall", "OSU MPI All-to-All Personalized Exchange Latency Test"),
        declare_osu_collective("reduce_sum", "OSU MPI Reduce Latency Test"),
        declare_osu_collective("allreduce_sum", "OSU MPI Allreduce Latency Test"),
        declare_osu_collective("reduce_scatter_sum", "OSU MPI Reduce_scatter Latency Test"),
        *declare_osu_non_blocking("iallreduce_sum", "OSU MPI Non-blocking Allreduce Latency Test"),
        *declare_osu_non_blocking("ialltoall", "OSU MPI Non-blocking All-to-All Latency Test"),
        *declare_osu_non_blocking("ibcast", "OSU MPI Non-Blocking Broadcast Latency Test"),
        Benchmark(
            "osu_ibarrier",
            "ibarrier",
            "OSU MPI Non-blocking Barrier Latency Test",
            "Overall(us)",
            sync=LOOP,
            sizes=(0,),
            options=("-f",),
            on_request=True,
        ),
        declare_osu_one_sided(
            "get_acc_latency",
            "OSU MPI_Get_accumulate latency Test",
            "Latency (us)",
            on_request=True,
        ),
        declare_osu_one_sided("put_latency", "OSU MPI_Put Latency Test", "Latency (us)"),
        declare_osu_one_sided("get_latency", "OSU MPI_Get latency Test", "Latency (us)"),
        declare_osu_one_sided("put_bw", "OSU MPI_Put Bandwidth Test", **BANDWIDTH),
        declare_osu_one_sided("get_bw", "OSU MPI_Get Bandwidth Test", **BANDWIDTH),
        Benchmark("osu_init", "init", "OSU MPI Init Test", "max (ms)", sync=LOOP, sizes=(0,)),
    )

    #: Calls of each size before the timed ones; a fifth in bandwidth tests, whose call is a window of messages.
    #: Ten and two are OSU's own numbers above 8 KiB; validating larger ones takes most of a launch.
    #:
    #: :default: ``10``
    warmups = variable(int, value=10)

    built = fixture(build_osu, scope="environment")

    def method(self) -> dict[str, int]:
        """Return the method of every benchmark, and the warm-up calls."""
        windows = count_iterations(self.warmups, windows=True)
        return {**super().method(), "warmups": self.warmups, WINDOW_WARMUPS: windows}

    def starts(self) -> Iterator[Start]:
        """Yield the starts: a benchmark goes through sizes that double; others need a start of their own."""
        chosen = self.chosen_benchmarks()
        for name, group in groupby(chosen, key=lambda benchmark: benchmark.name):
            benchmarks = list(group)
            chains = split_into_chains(
                sorted({size for each in benchmarks for size in self.sizes_of(each)})
            )
            for sizes in chains:
                yield Start(name if len(chains) == 1 else f"{name}_{sizes[0]}", benchmarks, sizes)

    def cases_of(self, benchmark: Benchmark, sizes: list[int]) -> Iterator[Case]:
        """Two lines of the table may be of one start, and a site's limit of one of them."""
        own = self.sizes_of(benchmark)
        return super().cases_of(benchmark, [size for size in sizes if size in own])

    def options_of(self, start: PlannedLaunch) -> list[str]:
        """Return the options of a start of OSU."""
        return build_osu_options(start, self.warmups)


def build_osu_options(start: PlannedLaunch, warmups: int) -> list[str]:
    """Build the benchmark's options and the sizes of the start."""
    benchmark = start.benchmarks[0]
    words = list(benchmark.options)
    sizes = [case.bytes for case in start.all_cases]
    if benchmark.sizes is None:
        words += ["-m", f"{min(sizes)}:{max(sizes)}"]
    if benchmark.routine != "init":
        words += ["-i", str(start.trials), "-x", str(count_iterations(warmups, benchmark.window))]
    return words


def split_into_chains(sizes: list[int]) -> list[list[int]]:
    """Split sizes, ascending, as chains in which each is twice the one before."""
    chains: list[list[int]] = []
    for size in sorted(sizes):
        if chains and size == 2 * chains[-1][-1]:
            chains[-1].append(size)
        else:
            chains.append([size])
    return chains
