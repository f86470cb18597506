"""Starts of OSU and IMB: their plan, what they print and what their witness writes, for tests to damage."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from postprocess.base.formats import MEGABYTES
from postprocess.judging.outcome import assess_launch
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch, write_launch
from postprocess.model.routines.benchmark import Benchmark
from spack_envs.installation import BuiltBinary, write_program
from tests.support.factories import record
from tests.support.factories.launch import case, planned
from tests.support.factories.output import BANNERS, imb_head

ITERATIONS = 200
METHOD = {"iterations": ITERATIONS, "warmups": 20}
BUILD = {"compiler": "gcc 12.2.0", "flags": "-O2", "source": "official"}
ALLREDUCE = Benchmark(
    "osu_allreduce",
    "allreduce_sum",
    "OSU MPI Allreduce Latency Test",
    "Max Latency(us)",
    least=4,
    options=("-f", "-z25", "-c", "-T", "mpi_float"),
    steady="P25 Tail Lat(us)",
)
BW = Benchmark(
    "osu_bw",
    "bw",
    "OSU MPI Bandwidth Test",
    "Bandwidth (MB/s)",
    MEGABYTES,
    sync="loop",
    ranks="two",
    options=("-c",),
)
IBCAST = tuple(
    Benchmark("osu_ibcast", routine, "OSU MPI Non-Blocking Broadcast Latency Test", column)
    for routine, column in (("ibcast", "Overall(us)"), ("ibcast.pure", "Max Comm.(us)"))
)
INIT = Benchmark("osu_init", "init", "OSU MPI Init Test", "max (ms)", sync="loop", sizes=(0,))
PINGPONG = Benchmark("PingPong", "pingpong", "PingPong", "t[usec]", sync="loop", ranks="two", least=0)
UNIBAND = Benchmark("Uniband", "uniband", "Uniband", "Mbytes/sec", MEGABYTES, sync="loop")
BARRIER = Benchmark("Barrier", "barrier", "Barrier", "t_max[usec]", sync="loop", sizes=(0,))

#: Columns that IMB prints after the repetitions.
IMB_COLUMNS = {
    "PingPong": ("t[usec]", "Mbytes/sec"),
    "Uniband": ("Mbytes/sec", "Msg/sec"),
    "Barrier": ("t_min[usec]", "t_max[usec]", "t_avg[usec]"),
}
FULL = ("Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations", "Validation")
TAILS = ("P25 Tail Lat(us)",)


def cases_of(program: str, benchmark: Benchmark, sizes: Sequence[int], **changes: Any) -> list[Case]:
    """The planned cases of a benchmark at these sizes."""
    facts = {"program": program, "cache": "warm", "sync": benchmark.sync} | changes
    return [case(benchmark.routine, size, benchmark.peer, **facts) for size in sizes]


def start(
    program: str = "osu",
    benchmarks: Sequence[Benchmark] = (ALLREDUCE,),
    sizes: Sequence[int] = (4, 8, 16),
    **changes: Any,
) -> PlannedLaunch:
    """The plan of a start of two processes, all benchmarks of which are at the same sizes."""
    cases = [each for line in benchmarks for each in cases_of(program, line, sizes)]
    facts = {"test": f"{program}_0", "program": program, "trials": ITERATIONS}
    facts |= {"cases": tuple(cases), "benchmarks": tuple(benchmarks)}
    facts |= {"method": METHOD if program == "osu" else {"iterations": ITERATIONS}}
    facts |= {"start": benchmarks[0].name, "job_limit": 600.0}
    return planned(**facts | changes)


def osu_job(routine: str, number: int = 1, **changes: Any) -> PlannedLaunch:
    """A start of a job of OSU, of a benchmark at twenty sizes."""
    cases = tuple(case(routine, 2**n, program="osu", cache="warm") for n in range(20))
    more = {"test": "osu", "program": "osu", "trials": 1000, "start": routine, "cases": cases}
    more["benchmarks"] = (Benchmark(f"osu_{routine}", routine, "title", "Latency (us)"),)
    return planned(number=number, **more | changes)


def osu_text(
    title: str = ALLREDUCE.title,
    columns: Sequence[str] = (*FULL, *TAILS),
    rows: Mapping[int, Sequence[object]] | None = None,
) -> str:
    """What OSU prints; of an allreduce with everything if not told otherwise."""
    if rows is None:
        rows = {size: allreduce_row(size) for size in (4, 8, 16)}
    lines = ["", f"# {title} v7.4", "# Datatype: MPI_FLOAT.", "  ".join(["# Size", *columns])]
    lines += [" ".join(map(str, [size, *cells])) for size, cells in rows.items()]
    return "\n".join([*lines, ""])


def allreduce_row(size: int, factor: float = 1.0) -> list[str]:
    """Its largest mean is ``size / 4 + 1`` microseconds times a factor, its fast quarter half of that."""
    slowest = factor * (size / 4 + 1)
    times = [f"{slowest * share:.2f}" for share in (0.8, 0.6, 1.0)]
    tails = [f"{slowest * 0.5:.2f}"]
    return [*times, str(ITERATIONS), "Pass", *tails]


def imb_text(
    tables: Mapping[str, Mapping[int, Sequence[object]]], processes: int = 2, repetitions: int = ITERATIONS
) -> str:
    """What IMB prints: a table of each benchmark, a row for each size; one with size 0 alone shows none."""
    lines = imb_head(BANNERS[0][0], list(tables), old=False)
    for name, rows in tables.items():
        sized = name != "Barrier"
        rule = "#" + "-" * 60
        lines += ["", rule, f"# Benchmarking {name} ", f"# #processes = {processes} ", rule]
        lines.append(" ".join(["#bytes"] * sized + ["#repetitions", *IMB_COLUMNS[name]]))
        for size, cells in rows.items():
            words = [*([size] if sized else []), *([repetitions] if len(cells) > 1 else []), *cells]
            lines.append(" ".join(map(str, words)))
    return "\n".join([*lines, "", "", "# All processes entering MPI_Finalize", "", ""])


def witnessed(**changes: Any) -> list[dict[str, Any]]:
    """What the witness writes of a start of two processes; ``changes`` go to its run record."""
    run = record.run_record(0, changes.pop("processes", 2), program=ALLREDUCE.name)
    for key in ("suite_version", "source_hash", "compiler", "compiler_flags"):
        del run[key]
    run["command"] = [ALLREDUCE.name]
    run |= {"witness": {"suite_version": "0.1.0", "source_hash": "0123456789abcdef"}} | changes
    end = {"record": "end", "token": "", "ended_utc": "2026-11-21T09:00:02Z"}
    return [run, end | {"arrived": run["processes"], "elapsed": 1.5}]


def leave(
    session: Path,
    launch: PlannedLaunch,
    text: str | None,
    witness: Sequence[dict[str, Any]] | None = None,
    code: str | None = "0\n",
) -> None:
    """Write what a start leaves; None for no output or no exit code, an empty list for no testimony."""
    write_launch(session, launch)
    place = (launch.environment, launch.program, "/opt/bin", "spec/abc")
    write_program(session, BuiltBinary(*place, version="7.4", **BUILD))
    if text is not None:
        launch.output(session).write_text(text)
    records = witnessed(program=launch.executable) if witness is None else list(witness)
    if records:
        record.write(launch.witness(session), records)
    if code is not None:
        launch.ending(session).write_text(code)


def measured(session: Path, factor: float = 1.0, **changes: Any) -> FinishedLaunch:
    """A start of OSU that ended well, ``factor`` times as slow as the sample; ReFrame is content with it."""
    launch = start(**changes)
    rows = {each.bytes: allreduce_row(each.bytes, factor) for each in launch.cases}
    leave(session, launch, osu_text(rows=rows))
    outcome = assess_launch(launch, session)
    assert outcome.records, outcome.reason
    said = {each.variable: "pass" for each in launch.cases}
    return FinishedLaunch(launch, outcome, 1.5, "stage", said, "osu-micro-benchmarks@7.4/abcdef")
