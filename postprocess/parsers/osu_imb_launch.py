"""Compare one start of OSU or IMB with its plan: its tables, and the records of its witness.

A start yields no values at all if a table, a size or a column is missing or was not planned.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import RATIO, SECONDS
from postprocess.base.strict_json import JsonObject
from postprocess.model.case import Case, format_case_names
from postprocess.model.measurement import CORE_LATENCIES, CoreLatency, LaunchProvenance, Measurement
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.benchmark import LEAST_ITERATIONS, PRINTED, ROTATED, THREADS, Benchmark
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers import mpicost, mpicost_schema
from postprocess.parsers.mpicost_schema import CORES
from postprocess.parsers.text_output import ROUNDING, OutputTable, ProgramOutput, TableRow
from site_configs.programs.program import PROGRAMS
from spack_envs.installation import read_program

LOADED = "loaded"  #: key in run records: what distinguishes the program and its libraries from other builds
LOADED_PARTS = ("program", "libraries")


@dataclass(frozen=True, eq=False)
class Witness(LaunchProvenance):
    """What one start of a benchmark ran on, whole and free of contradiction.

    Keys are those of the run record of mpicost if it has them.
    """

    end: dict[str, Any]  #: ``elapsed``: seconds from MPI_Init to MPI_Finalize on the slowest rank


def read_witness(path: Path, data: bytes | None = None) -> Witness:
    """Read the records of a witness, complete and consistent.

    :param data: contents of the file, if it was read before.
    :raises RecordError: incomplete if it is missing, empty, cut off or without its end; incorrect if it
    contradicts itself, or if several starts or worlds of processes wrote to the file.
    """
    if data is None and not path.exists():
        message = f"{path}: is not there; no MPI_Finalize of the MPI of this environment was reached"
        raise RecordError(Verdict.INCOMPLETE, message)
    reader = _Reader()
    mpicost.feed_records(path, reader.take, data)
    return reader.finish(path)


@dataclass
class _Reader:
    """The state of reading: the records taken, and which may come next."""

    run: JsonObject | None = None
    end: JsonObject | None = None

    def take(self, entry: JsonObject) -> None:
        """Add one record. Raises ValueError or RecordError if it is not allowed there."""
        kind = entry.word("record", ("run", "end"))
        if kind == "run":
            if self.run is not None:
                raise ValueError("record: a second run in one file: not one world of processes")
            self.run = _checked_run(entry)
        elif self.run is None:
            raise RecordError(Verdict.INCOMPLETE, "record: the run record before it is missing")
        elif self.end is not None:
            raise ValueError("record: a second end in one file")
        else:
            self.end = _checked_end(entry, self.run)

    def finish(self, path: Path) -> Witness:
        """Return both records at the end of the file. Raises RecordError if one is missing."""
        if self.run is None:
            raise RecordError(Verdict.INCOMPLETE, f"{path}: is empty; MPI_Finalize was not reached")
        if self.end is None:
            message = f"{path}: no end record; MPI_Finalize did not end well"
            raise RecordError(Verdict.INCOMPLETE, message)
        return Witness(dict(self.run.fields), dict(self.end.fields))


def _checked_run(entry: JsonObject) -> JsonObject:
    mpicost_schema.check_schema(entry)
    for key in ("program", "mpi_library", "date_utc"):
        entry.text(key)
    entry.object("witness").text("source_hash")
    mpicost_schema.check_surroundings(entry)
    mpicost_schema.check_places(entry)
    mpicost_schema.check_interposed(entry)
    mpicost_schema.check_standard_abi(entry)
    if LOADED in entry.fields:
        for key in LOADED_PARTS:
            entry.object(LOADED).text(key)
    least, most = CORE_LATENCIES
    if CORES in entry.fields and not least <= entry.number(CORES) <= most:
        raise ValueError(f"{CORES}: {entry.number(CORES)!r} is not {least:g} to {most:g}")
    return entry


def _checked_end(entry: JsonObject, run: JsonObject) -> JsonObject:
    arrived, processes = entry.integer("arrived"), run.integer("processes")
    if arrived != processes:
        raise ValueError(f"arrived: {arrived} of {processes} processes reached MPI_Finalize")
    entry.number("elapsed")
    mpicost_schema.check_end(entry)
    return entry


#: Factor from a column to the unit of a case, by the end of its header words.
SCALES = {
    **{"(us)": 1e-6, "[usec]": 1e-6, "(ms)": 1e-3, "(s)": 1.0},
    **{"MB/s": 1.0, "(MB/s)": 1.0, "Mbytes/sec": 1.0},
    RATIO: 1.0,
}
REPETITIONS = ("Iterations", "#repetitions")
#: Means over ranks, like the quantiles of a collective, beside the largest mean of a rank.
MEAN_OF_RANKS = "Avg Latency(us)"
#: Three quarters of the trials are not faster than the quantile, which OSU rounds to a whole trial.
NO_FASTER = 0.7
#: In run records, if there are any: the number of foreign lines in the output, and the first one.
FOREIGN, FIRST_FOREIGN = "foreign_lines", "first_foreign_line"


@dataclass(frozen=True, eq=False)
class BenchmarkRecords(LaunchProvenance):
    """The values of one start, whole and as planned.

    Its run record is the witness's, with facts on how the start was measured.
    """

    measurements: dict[str, Measurement]  #: by variable of the case
    end: dict[str, Any]  #: the last record of the witness

    def resolution(self, unit: str) -> float:
        """Return the resolution of printed values, in ``unit``."""
        return PRINTED[unit]


def read_benchmarks(launch: PlannedLaunch, session: Path, testimony: bytes | None = None) -> BenchmarkRecords:
    """Read the values of a planned start. The output comes first, so that wrong data is always reported.

    :param testimony: contents of the witness's file, if it was read before.
    :raises RecordError: with the verdict on all of its cases.
    """
    path = launch.output(session)
    try:
        text = files.read_regular(path).decode(errors="backslashreplace")
    except OSError as error:
        message = f"{path}: {error.strerror}; the program printed nothing"
        raise RecordError(Verdict.INCOMPLETE, message) from None
    try:
        output = find_parser(launch.program)(text)
        measurements = extract_measurements(launch, output)
    except RecordError as error:
        raise RecordError(error.verdict, f"{path}: {error}") from None
    witness = read_witness(launch.witness(session), testimony)
    check_command(launch, witness)
    check_rotation(launch, witness)
    run = witness.run | {
        "program": launch.program,
        "version": output.version,
        "method": {**launch.method, **read_build(launch, session)},
    }
    if launch.threads:
        run |= {THREADS: launch.threads}
    if output.foreign:
        run |= {FOREIGN: output.foreign, FIRST_FOREIGN: output.first_foreign}
    cores = CoreLatency(None, witness.run[CORES]) if CORES in witness.run else None
    placed = {name: replace(measurement, core_latency=cores) for name, measurement in measurements.items()}
    return BenchmarkRecords(run, placed, witness.end)


def find_parser(program: str) -> Callable[[str], ProgramOutput]:
    """Return the parser of a program's output: ``parse_osu`` of ``postprocess.parsers.osu``."""
    return getattr(import_module(f"{__package__}.{program}"), f"parse_{program}")


def check_command(launch: PlannedLaunch, witness: Witness) -> None:
    """Check that executable and options are as planned; most options leave no trace in the output.

    :raises RecordError: if they are not.
    """
    if witness.run["program"] != launch.executable:
        what = f"the witness saw {witness.run['program']!r} run, not {launch.executable}"
        raise RecordError(Verdict.INCORRECT, what)
    seen, wanted = (split_options(words) for words in (witness.run["command"][1:], launch.options))
    if seen != wanted:
        what = f"the witness saw the options {seen}, not {wanted}"
        raise RecordError(Verdict.INCORRECT, what)


def check_rotation(launch: PlannedLaunch, witness: Witness) -> None:
    """Check that rotating buffers exceed the last-level cache of the nodes.

    :raises RecordError: if they do not, or if the kernel does not list the caches.
    """
    if (megabytes := launch.method.get(ROTATED)) is None:
        return
    caches = [cache for cache in witness.run.get("caches", []) if cache["type"] != "Instruction"]
    if not caches:
        raise RecordError(
            Verdict.INCORRECT, "--cache rotate: the kernel reports no caches, so nothing proves it"
        )
    last = max(caches, key=lambda cache: cache["level"])
    sharing = min(launch.per_node, last["shared_by"])
    if int(megabytes) * 1_000_000 * sharing < last["bytes"]:
        what = (
            f"buffers of {sharing} processes rotate through {megabytes} MB each, and the last-level cache "
            f"holds {last['bytes'] / 1e6:.0f} MB; set imb.rotated_megabytes to more"
        )
        raise RecordError(Verdict.INCORRECT, what)


def split_options(options: Iterable[str]) -> list[str]:
    """Split the words of a command line at colons: OSU prints ``-m 4:64`` as two words."""
    return [piece for word in options for piece in word.split(":")]


def read_build(launch: PlannedLaunch, session: Path) -> dict[str, str]:
    """Read compiler, flags and source of a start's program: another build is another program.

    :raises RecordError: if the session has no record of them.
    """
    try:
        program = read_program(session, launch.environment, launch.program)
    except UsageError as error:
        raise RecordError(Verdict.INCOMPLETE, str(error)) from None
    return {"compiler": program.compiler, "flags": program.flags, "source": program.source}


def extract_measurements(launch: PlannedLaunch, output: ProgramOutput) -> dict[str, Measurement]:
    """Extract the measurements of the planned cases, by variable.

    :raises RecordError: if the tables are not exactly those of the plan.
    """
    titles = {benchmark.title for benchmark in launch.benchmarks}
    for table in output.tables:
        if table.benchmark not in titles and not PROGRAMS[launch.program].whole:
            raise RecordError(Verdict.INCORRECT, f"{table.benchmark!r} was not planned")
    measurements: dict[str, Measurement] = {}
    for benchmark in launch.benchmarks:
        cases = {case.bytes: case for case in launch.cases if case.routine == benchmark.routine}
        table = find_table(benchmark, launch, output)
        for size, measurement in extract_table(benchmark, table, launch, cases):
            measurements[cases[size].variable] = measurement
    if missing := [case for case in launch.cases if case.variable not in measurements]:
        reasons = [*output.invalid, *(failure.reason for t in output.tables for failure in t.failures)]
        why = f" ({reasons[0]})" if reasons else ""
        raise RecordError(Verdict.INCOMPLETE, f"missing from the output: {format_case_names(missing)}{why}")
    return measurements


def find_table(benchmark: Benchmark, launch: PlannedLaunch, output: ProgramOutput) -> OutputTable:
    tables = [
        table
        for table in output.tables
        if table.benchmark == benchmark.title and (table.mode or "") in (benchmark.mode, "")
    ]
    if len(tables) != 1:
        what = f"{len(tables)} tables of {benchmark.title!r}, where one was planned"
        raise RecordError(Verdict.INCORRECT if tables else Verdict.INCOMPLETE, what)
    if tables[0].processes not in (None, launch.processes):
        what = f"{benchmark.title!r} ran on {tables[0].processes} processes, not {launch.processes}"
        raise RecordError(Verdict.INCORRECT, what)
    if tables[0].waiting:
        what = f"{tables[0].waiting} processes spun in a barrier beside {benchmark.title!r}"
        raise RecordError(Verdict.INCORRECT, what)
    pairs = int(tables[0].notes.get("pairs", launch.processes // 2))
    if pairs != launch.processes // 2:
        what = f"{benchmark.title!r} ran {pairs} pairs on {launch.processes} processes"
        raise RecordError(Verdict.INCORRECT, what)
    threads = int(tables[0].notes.get(THREADS, min(launch.threads, 1)))  # a single thread may not be printed
    if threads != launch.threads:
        what = f"{benchmark.title!r} ran {threads} threads in each process, not {launch.threads}"
        raise RecordError(Verdict.INCORRECT, what)
    if benchmark.datatype and tables[0].datatype != benchmark.datatype:
        what = f"{benchmark.title!r} sent {tables[0].datatype}, not {benchmark.datatype}"
        raise RecordError(Verdict.INCORRECT, what)
    return tables[0]


def extract_table(
    benchmark: Benchmark, table: OutputTable, launch: PlannedLaunch, cases: dict[int, Case]
) -> Iterator[tuple[int, Measurement]]:
    """Yield the planned sizes of a table with their measurements. An unplanned size is an error."""
    for column in {benchmark.column, benchmark.judged}:
        if column not in table.columns:
            raise RecordError(Verdict.INCOMPLETE, f"{benchmark.title!r} has no column {column!r}")
    for row in table.rows:
        size, rest = divmod(row.size or 0, int(table.notes.get(THREADS, 1)))
        if rest:
            what = f"{benchmark.title!r} has {row.size} bytes, which its threads cannot share"
            raise RecordError(Verdict.INCORRECT, what)
        if size in cases:
            check_row(benchmark, row, launch)
            yield size, build_measurement(benchmark, row)
        elif size not in {case.bytes for case in launch.all_cases}:
            raise RecordError(Verdict.INCORRECT, f"{benchmark.title!r} has {size} bytes, unplanned")


def check_row(benchmark: Benchmark, row: TableRow, launch: PlannedLaunch) -> None:
    """Check that data was verified if required, and that repetitions are as planned."""
    where = f"{benchmark.title!r} at {row.size or 0} bytes"
    if launch.validation and row.passed is not True:
        raise RecordError(Verdict.INCOMPLETE, f"{where} does not say that its data was verified")
    if benchmark.steady and launch.trials < LEAST_ITERATIONS and not launch.validation:
        what = f"{where} ran {launch.trials} repetitions, and has no quarter of fewer than {LEAST_ITERATIONS}"
        raise RecordError(Verdict.INCORRECT, what)
    if benchmark.steady and not launch.validation:
        check_quantile(benchmark, row, launch, where)
    for column in REPETITIONS:
        count = row.values.get(column, launch.trials)
        if count != launch.trials:
            what = f"{where} ran {count:.0f} repetitions, not {launch.trials}"
            raise RecordError(Verdict.INCORRECT, what)


def check_quantile(benchmark: Benchmark, row: TableRow, launch: PlannedLaunch, where: str) -> None:
    """Check that the judged quantile is consistent with the mean: most trials are not faster.

    With several pairs this cannot be checked: OSU prints the quantile of the first one, and the mean of all.
    """
    if benchmark.ranks == "even" and launch.processes > 2:
        return
    column = MEAN_OF_RANKS if MEAN_OF_RANKS in row.values else benchmark.column
    quantile, mean = row.values[benchmark.judged], row.values[column]
    lower, upper = (mean, quantile) if benchmark.unit == SECONDS else (quantile, mean)
    if NO_FASTER * (upper - ROUNDING) > lower + ROUNDING:
        what = f"{where} has {quantile:g} as {benchmark.judged!r}, which the mean {mean:g} contradicts"
        raise RecordError(Verdict.INCORRECT, what)


def build_measurement(benchmark: Benchmark, row: TableRow) -> Measurement:
    """Build the measurement of a row: the judged value, the mean beside it, and all columns.

    A mean printed as 0.00 counts as half a step, because a rate of that size is slow and must not count as
    unknown.
    """
    value, mean = (
        row.values[column] * find_unit_scale(column) for column in (benchmark.judged, benchmark.column)
    )
    headline = max(mean, PRINTED[benchmark.unit] / 2) if benchmark.steady else None
    return Measurement(value, benchmark.unit, figures=dict(row.values), headline=headline)


def find_unit_scale(column: str) -> float:
    """Return the factor from the unit of a column to that of a case.

    :raises ValueError: if the header words do not show it, a fault in the table of benchmarks.
    """
    factors = [factor for ending, factor in SCALES.items() if column.endswith(ending)]
    if not factors:
        raise ValueError(f"column {column!r} does not state its unit")
    return factors[0]
