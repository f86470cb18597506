"""Intel MPI Benchmarks: MPI-1, non-blocking collectives and one-sided, one start per executable.

On request also those with several threads per process, and those on files. Sizes and repetitions are fixed, so
that a night repeats the last one; ``-npmin`` keeps idle processes from spinning beside the measured ones. For a
collective the largest mean of a rank, ``t_max``, is judged.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import fixture, run_before, variable

from postprocess.base.formats import MEGABYTES
from postprocess.model.options import APART, VALIDATION
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.benchmark import (
    CHECKED,
    LOOP,
    ROTATE,
    ROTATED,
    WINDOW,
    WINDOW_MESSAGES,
    Benchmark,
)
from postprocess.model.routines.requested import NON_BLOCKING, READS, WRITES
from reframe_checks.common.build import BuildProgram
from reframe_checks.common.mpi_support import explain_no_file_access
from reframe_checks.common.osu_imb import POWERS_OF_TWO, OsuImbCheck, Start
from reframe_checks.common.user_options import read_choice
from site_configs.programs.installed import SITE, WHEEL, explain_unloadable, find_program_source
from site_configs.schema.reframe_request import current_request
from site_configs.topology.machine import compute_flush_bytes, read_machine

MPI1, NBC, RMA, MT, IO = "IMB-MPI1", "IMB-NBC", "IMB-RMA", "IMB-MT", "IMB-IO"
ON_REQUEST = (MT, IO)  #: they keep their buffers, and not every installed IMB has them
WARMUPS = 10  #: untimed calls of IMB-MT
FILES = "IMB_out IMB_out_*"  #: files of IMB-IO, in the directory where it is started
#: IMB-IO reads as many times before it starts the clock as after, from a file of at most 50 calls of the
#: largest size. A read beyond the end of the file returns nothing, in less than a microsecond.
CALLS_OF_A_FILE = 50
MOST_CALLS = 20
MOST_OF_A_FILE = 2**31 - 1  #: bytes, which IMB counts as an int
INT = 4  #: bytes of IMB-MT's elements
FLOAT = 4  #: bytes; the least for a reduction
LEAST_ROTATION = 64  #: megabytes
MEBIBYTE = 1 << 20
#: IMB has no such benchmarks; its Ireduce_scatter defines bytes differently.
OF_OSU_ALONE = ("ialltoallw", "ireduce_scatter_sum", "ireduce_scatter_block_sum")


def declare_messages(name: str, routine: str, column: str = "t_max[usec]", **more) -> Benchmark:
    """Declare a loop of messages without a barrier in it."""
    facts = {"ranks": "even", "least": 0, "verifies": True, **more}
    return Benchmark(name, routine, name, column, sync=LOOP, executable=MPI1, **facts)


def declare_windows(name: str) -> Benchmark:
    """Declare a loop of windows of 64 messages, judged by its bandwidth."""
    facts = {"unit": MEGABYTES, "least": 1, "window": True, "verifies": False}
    return declare_messages(name, name.lower(), "Mbytes/sec", **facts)


def declare_collective(name: str, routine: str = "", **more) -> Benchmark:
    """Declare a blocking collective, with a barrier after each call."""
    facts = {"verifies": True, **more}
    return Benchmark(name, routine or name.lower(), name, "t_max[usec]", executable=MPI1, **facts)


def declare_non_blocking(name: str, routine: str = "", least: int = 1) -> Iterator[Benchmark]:
    """Declare a non-blocking collective: in total with computation, and its communication alone."""
    routine = routine or name.lower()
    facts: dict[str, Any] = {"executable": NBC, "least": least, "verifies": True}
    yield Benchmark(name, routine, name, "t_ovrl[usec]", **facts)
    yield Benchmark(name, f"{routine}.pure", name, "t_pure[usec]", **facts)


def declare_one_sided(name: str, column: str, **more) -> Benchmark:
    """Declare a loop of accesses to windows, with a flush after each."""
    return Benchmark(name, name.lower(), name, column, sync=LOOP, executable=RMA, **more)


def declare_between_two(name: str, **more) -> Benchmark:
    """Declare accesses of one process to another; also printed in aggregate, with one flush after all."""
    facts = {"ranks": "two", "mode": "NON-AGGREGATE", "verifies": True, **more}
    return declare_one_sided(name, "t[usec]", **facts)


def declare_passive_put() -> Iterator[Benchmark]:
    """Declare a put to a computing and to a waiting process; the difference is the help that it needs."""
    whole = declare_one_sided("Truly_passive_put", "t_ovrl[usec]", ranks="two")
    yield whole
    yield replace(whole, routine=f"{whole.routine}.pure", column="t_pure[usec]")


def declare_threads(name: str, routine: str, column: str = "t_max[usec]", **more) -> Benchmark:
    """Declare what each process does in several threads at once; the slowest of all is judged."""
    return Benchmark(name, f"{routine}_mt", name, column, executable=MT, **{"least": INT, **more})


def declare_thread_windows(name: str) -> Benchmark:
    """Declare a loop of windows of 64 messages in each thread, judged by their total bandwidth."""
    more: dict[str, Any] = {"sync": LOOP, "ranks": "even", "unit": MEGABYTES, "window": True}
    return declare_threads(name, name.removesuffix("MT").lower(), "Mbytes/sec", **more)


def declare_file_access(routine: str) -> Iterator[Benchmark]:
    """Declare accesses to a file. A write is also timed without the wait for the file system."""
    who, what, place = routine.split("_")
    name = f"{who.upper()}_{what.capitalize()}_{place.capitalize()}"
    line = Benchmark(name, routine, name, "t_max[usec]", sync=LOOP, executable=IO, mode="AGGREGATE")
    if what == "read":
        yield line
    else:
        yield replace(line, mode="NON-AGGREGATE")
        yield replace(line, routine=f"{routine}.aggregate")


class build_imb(BuildProgram):
    descr = "Build Intel MPI Benchmarks"
    name_of_program = "imb"


@rfm.simple_test
class imb(OsuImbCheck):
    descr = "Intel MPI Benchmarks"
    tags = {"nightly", "imb"}
    program = "imb"
    own_sizes = [0, *POWERS_OF_TWO]
    table = (
        declare_messages("PingPong", "pingpong", "t[usec]", ranks="two"),
        declare_messages("PingPing", "pingping", "t[usec]", ranks="two"),
        declare_messages("Sendrecv", "sendrecv"),
        declare_messages("Exchange", "exchange"),
        declare_windows("Uniband"),
        declare_windows("Biband"),
        declare_collective("Barrier", sync=LOOP, sizes=(0,), verifies=False),
        *map(declare_collective, ("Bcast", "Scatter", "Scatterv", "Gather", "Gatherv")),
        *map(declare_collective, ("Allgather", "Allgatherv", "Alltoall", "Alltoallv")),
        declare_collective("Reduce", "reduce_sum", least=FLOAT),
        declare_collective("Allreduce", "allreduce_sum", least=FLOAT),
        # Bytes are those that each rank receives; in OSU those of the whole vector.
        declare_collective("Reduce_scatter", "reduce_scatter_sum.block", least=FLOAT),
        declare_collective("Reduce_scatter_block", "reduce_scatter_block_sum.block", least=FLOAT),
        *declare_non_blocking("Iallreduce", "iallreduce_sum", least=FLOAT),
        *declare_non_blocking("Ialltoall"),
        *declare_non_blocking("Ibcast"),
        *(
            line
            for routine in NON_BLOCKING
            if routine not in OF_OSU_ALONE
            for line in declare_non_blocking(
                routine.removesuffix("_sum").capitalize(),
                routine,
                least=FLOAT if routine.endswith("_sum") else 1,
            )
        ),
        *map(declare_between_two, ("Unidir_put", "Unidir_get", "Bidir_put", "Bidir_get")),
        declare_one_sided("All_put_all", "t_max[usec]"),
        declare_one_sided("All_get_all", "t_max[usec]"),
        declare_one_sided("Exchange_get", "t_max[usec]"),
        *declare_passive_put(),
        declare_between_two("Accumulate", least=FLOAT, verifies=False),
        declare_between_two("Fetch_and_op", sizes=(FLOAT,), verifies=False),
        declare_between_two("Compare_and_swap", sizes=(FLOAT,), verifies=False),
        *(
            declare_threads(f"{name}MT", name.lower(), sync=LOOP, ranks="even")
            for name in ("PingPong", "PingPing", "SendRecv", "Exchange")
        ),
        *map(declare_thread_windows, ("UniBandMT", "BiBandMT")),
        declare_threads("BarrierMT", "barrier", sizes=(0,)),
        declare_threads("BcastMT", "bcast"),
        declare_threads("ReduceMT", "reduce_sum"),
        declare_threads("AllReduceMT", "allreduce_sum"),
        *(line for routine in (*READS, *WRITES) for line in declare_file_access(routine)),
        Benchmark(
            "Open_Close", "open_close", "Open_Close", "t_max[usec]", sync=LOOP, sizes=(0,), executable=IO
        ),
    )

    #: Megabytes through which the buffers of a process move with ``--cache rotate``. All processes of a node
    #: must move through more than its last-level cache holds, or a launch is ``incorrect``.
    #:
    #: :default: ``0``: as much as mpicost walks in a flush on the machine where the session runs
    rotated_megabytes = variable(int, value=0)

    built = fixture(build_imb, scope="environment")

    def starts(self) -> Iterator[Start]:
        """Yield a start for each executable, set of sizes and number of iterations.

        IMB rounds sizes up to whole floats, so those of reductions form their own set. To find out whose data
        is wrong, each benchmark has its own start.
        """
        benchmarks = [benchmark for benchmark in self.chosen_benchmarks() if self.sizes_of(benchmark)]
        if self.validates:
            benchmarks = [
                replace(benchmark, executable=benchmark.executable + CHECKED) for benchmark in benchmarks
            ]
        groups: dict[tuple[str, tuple[int, ...], bool, str], list[Benchmark]] = {}
        for benchmark in benchmarks:
            alone = benchmark.name if read_choice(VALIDATION) == APART else ""
            key = benchmark.executable, tuple(self.sizes_of(benchmark)), benchmark.window, alone
            groups.setdefault(key, []).append(benchmark)
        for number, ((executable, sizes, *_), group) in enumerate(groups.items(), 1):
            yield Start(f"{executable}-{number}", group, list(sizes))

    @run_before("run")
    def write_sizes(self):
        for start in self.started():
            write_sizes(start, self.session)

    def method(self) -> dict[str, int]:
        rotated = {ROTATED: self.rotation()} if self.cache == ROTATE else {}
        return {**super().method(), WINDOW: WINDOW_MESSAGES, **rotated}

    def count_calls(self, start: Start) -> int:
        """Count the timed calls of each size in a start: so many that reads end before the file does."""
        calls = super().count_calls(start)
        return min(calls, MOST_CALLS) if is_of_files(start.benchmarks) else calls

    def planned_start(self, start: Start, reason: str, foreseen: bool = False) -> PlannedLaunch:
        launch = super().planned_start(start, reason, foreseen)
        if is_of_files(start.benchmarks) and CALLS_OF_A_FILE * max(start.sizes) > MOST_OF_A_FILE:
            return launch.skip_all(f"IMB-IO's files of {CALLS_OF_A_FILE} calls would be larger than 2 GiB")
        several = any(benchmark.executable == MT for benchmark in start.benchmarks)
        return replace(launch, threads=self.count_threads()) if several else launch

    def count_threads(self) -> int:
        """Count the threads of a process: two on one core would wait for each other's time slices."""
        room = self.facts.cores_per_node // self.num_tasks_per_node
        return max(1, min(2, room))

    def explain_unmeasured(self, benchmark: Benchmark) -> str:
        """Explain why a benchmark cannot run, also if an installed IMB lacks its executable or a library.

        IMB-IO is not built for an MPI without MPI-IO.
        """
        if benchmark.executable == IO and (why := explain_no_file_access(self.current_environ)):
            return why
        extras = self.current_environ.extras
        source = find_program_source(self.program, extras, current_request().spack)
        if benchmark.executable not in ON_REQUEST or source not in (SITE, WHEEL):
            return super().explain_unmeasured(benchmark)
        env = None if self.current_environ.modules else extras.get("program_env", {}).get(self.program, {})
        return explain_unloadable(extras["programs"][self.program], benchmark.executable, env)

    def chosen_benchmarks(self) -> list[Benchmark]:
        """Return the benchmarks measured at this process count. Not all of them can rotate their buffers."""
        rotates = self.cache == ROTATE
        return [
            benchmark
            for benchmark in super().chosen_benchmarks()
            if not (rotates and benchmark.executable in ON_REQUEST)
        ]

    def lines_of(self, start: PlannedLaunch, launch_words: str) -> Iterator[str]:
        """Return the commands of one start. Its files are in the job's directory, and removed afterwards."""
        cleanup = [f"rm -f {FILES}"] if start.executable == IO else []
        yield from (*cleanup, *super().lines_of(start, launch_words), *cleanup)

    def variables_of(self, start: PlannedLaunch) -> dict[str, str]:
        """Return the variables that a start needs, with the number of its threads."""
        threads = {"OMP_NUM_THREADS": str(self.count_threads())} if start.executable == MT else {}
        return super().variables_of(start) | threads

    def rotation(self) -> int:
        """Return the megabytes through which the buffers of a process move."""
        needed = compute_flush_bytes(read_machine(), self.num_tasks_per_node)
        return self.rotated_megabytes or max(LEAST_ROTATION, -(-needed // 1_000_000))

    def options_of(self, start: PlannedLaunch) -> list[str]:
        """Return the options of a start of IMB, including the memory that its buffers rotate through."""
        if start.executable == MT:
            return build_thread_options(start)
        rotated = ["-off_cache", str(self.rotation())] if self.cache == ROTATE else []
        return [*build_imb_options(start, self.session), *rotated]


def is_of_files(benchmarks: Iterable[Benchmark]) -> bool:
    return any(benchmark.executable == IO for benchmark in benchmarks)


def build_imb_options(start: PlannedLaunch, session: Path) -> list[str]:
    """Build the benchmarks of a start by name, followed by IMB's options.

    IMB has sent windows of 256 messages since 2021.1, and of 64 before, as OSU does.
    """
    names = dict.fromkeys(benchmark.name for benchmark in start.benchmarks)  # each once
    words = [*names, "-npmin", str(start.processes)]
    if any(benchmark.window for benchmark in start.benchmarks):
        words += ["-window_size", str(WINDOW_MESSAGES)]
    calls = str(start.trials)
    if is_of_files(start.benchmarks):
        largest = max(case.bytes for case in start.all_cases)
        calls += f",{-(-CALLS_OF_A_FILE * largest // MEBIBYTE)}"  # the size of a file
    words += ["-iter", calls, "-iter_policy", "off"]
    return [*words, "-msglen", str(locate_sizes_file(start, session))]


def build_thread_options(start: PlannedLaunch) -> list[str]:
    """Build the benchmarks of a start of IMB-MT by name, and its options; sizes are counts of integers."""
    names = dict.fromkeys(benchmark.name for benchmark in start.benchmarks)
    counts = sorted({max(1, case.bytes // INT) for case in start.all_cases})
    words = [*names, "-thread_level", "multiple", "-repeat", str(start.trials), "-warmup", str(WARMUPS)]
    words += ["-window_size", str(WINDOW_MESSAGES)]
    return [*words, "-datatype", "int", "-count", ",".join(map(str, counts))]


def write_sizes(start: PlannedLaunch, session: Path) -> None:
    sizes = sorted({case.bytes for case in start.all_cases})
    locate_sizes_file(start, session).write_text("".join(f"{size}\n" for size in sizes))


def locate_sizes_file(start: PlannedLaunch, session: Path) -> Path:
    return start.output(session).with_suffix(".sizes")
