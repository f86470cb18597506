"""``agree --bindings``: languages started in rounds of drawn order, compared in each round; their table."""

import argparse
import json
import math
import os
import random
import secrets
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.files import write_text
from postprocess.base.formats import DASH, TextTable, factor, microseconds, plural, render_text, size, utc_now
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.extensions.agreement.compare import FEWEST_LAUNCHES, compute_ratio_interval
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.bindings import Exchange, read_exchange
from site_configs.mpi import exchange
from site_configs.mpi.exchange import C as BASIS
from site_configs.mpi.family import is_used_otherwise, parse_mpi_word
from site_configs.mpi.inventory import take_inventory
from site_configs.mpi.languages import CONTROL, KINDS, Bench, Language, prepare_languages, select_languages
from site_configs.mpi.probe import extract_identity
from spack_envs.mirror.use import choose_mirror

SCHEMA = 1


@dataclass(frozen=True)
class LanguageRatio:
    """The time of a call in a language over that in C."""

    environment: str
    language: str
    title: str
    level: str  #: of threads that was provided
    routine: str
    bytes: int
    launches: int
    ratio: float
    low: float
    high: float
    seconds: float  #: of a call, median over launches
    extra: float  #: seconds over C, median of the differences within the rounds


@dataclass(frozen=True)
class LanguageFault:
    """A language that was skipped, or that did something wrong."""

    environment: str
    language: str
    title: str
    reason: str


@dataclass
class BindingsResult:
    machine: str
    seed: int
    libraries: dict[str, str] = field(default_factory=dict)  #: by environment
    rows: list[LanguageRatio] = field(default_factory=list)
    skipped: list[LanguageFault] = field(default_factory=list)
    failures: list[LanguageFault] = field(default_factory=list)
    schema: int = SCHEMA

    @property
    def compared(self) -> set[tuple[str, str]]:
        """MPI and language of each comparison; C again is a control, and none."""
        measured = {(row.environment, row.language) for row in self.rows}
        return {(environment, name) for environment, name in measured if name not in (BASIS, CONTROL)}

    @property
    def status(self) -> int:
        """The exit status: 1 for any failure, and where nothing was compared."""
        return 1 if self.failures or not self.compared else 0

    def as_json(self) -> dict[str, Any]:
        """Return what is written into files."""
        return asdict(self)


Say = Callable[[str], None]


def measure_mpi(
    bench: Bench,
    languages: Sequence[Language],
    sizes: Sequence[int],
    rounds: int,
    result: BindingsResult,
    say: Say,
) -> None:
    """Measure the languages with an MPI, and add what was found to the result."""
    name = bench.mpi.name
    result.libraries[name] = bench.mpi.library
    draw = random.Random(f"{result.seed} {name}")
    ready = prepare_languages(bench, languages, say)
    found: dict[Language, list[Exchange]] = {}
    for language in languages:
        if why := ready.lacking.get(language.name):
            result.skipped.append(LanguageFault(name, language.name, language.title, why))
        else:
            found[language] = []
    for number in range(rounds):
        say(f"{name}: round {number + 1} of {rounds}")
        for language in draw.sample([*found], len(found)):
            try:
                library = extract_identity(bench.mpi.library)
                program = ready.programs[language.name]
                started = start_exchange(program, bench.mpi.launcher, library, sizes, bench.env)
            except RecordError as error:
                fault = LanguageFault(name, language.name, language.title, str(error))
                result.failures.append(fault)
                del found[language]
            else:
                found[language].append(started)
    result.rows += compare_with_c(name, found)


def start_exchange(
    program: exchange.Program,
    launcher: Sequence[str],
    library: str,
    sizes: Sequence[int],
    env: Mapping[str, str],
) -> Exchange:
    """Start a program and read what it measured.

    :param launcher: of the MPI, without its number of ranks
    :param library: what MPI_Get_library_version has to say in it
    :param sizes: in bytes, rising
    :raises RecordError: for whatever is wrong, in one line
    """
    ran = exchange.run_exchange(
        program, (*launcher, "-n", str(exchange.RANKS)), exchange.list_options(sizes), env
    )
    if ran.code in (exchange.NOT_FOUND, exchange.TIMED_OUT):
        raise RecordError(Verdict.CRASHED, ran.errors)
    try:
        read = read_exchange(ran.output, program.library or library, sizes)
    except RecordError as error:
        raise RecordError(error.verdict, ": ".join(filter(None, [str(error), ran.errors]))) from None
    if ran.code:
        raise RecordError(Verdict.CRASHED, ": ".join(filter(None, [f"exit code {ran.code}", ran.errors])))
    return read


def compare_with_c(environment: str, found: dict[Language, list[Exchange]]) -> list[LanguageRatio]:
    """Compare each language with C, round by round; nothing without C."""
    basis = next((runs for language, runs in found.items() if language.name == BASIS), None)
    if not basis:
        return []
    cases = sorted(basis[0].seconds, key=lambda case: (exchange.ROUTINES.index(case[0]), case[1]))
    rows = []
    for language, runs in found.items():
        for case in cases:
            pairs = [(own.seconds[case], c.seconds[case]) for own, c in zip(runs, basis, strict=True)]
            logs = [math.log(own / c) for own, c in pairs]
            ratio = math.exp(statistics.fmean(logs))
            low, high = compute_ratio_interval(logs) or (0.0, math.inf)
            rows.append(
                LanguageRatio(
                    *(environment, language.name, language.title, runs[0].level, *case, len(pairs)),
                    *(ratio, low, high, statistics.median(own for own, _ in pairs)),
                    statistics.median(own - c for own, c in pairs),
                )
            )
    return rows


MPI4PY = "mpi4py: thread level single as C's, or its default; in brackets what the MPI provided"


def format_bindings(result: BindingsResult) -> str:
    """Format all of it for a terminal, with a line at the end that counts."""
    tables = [
        build_language_table(environment, [*rows])
        for environment, rows in groupby(result.rows, key=lambda row: row.environment)
    ]
    lines = [
        f"{word}: {fault.environment}: {fault.title}: {fault.reason}"
        for word, faults in (("skipped", result.skipped), ("error", result.failures))
        for fault in faults
    ]
    lines.append(
        f"{plural(len(result.compared), 'comparison')} with C, {len(result.skipped)} skipped, "
        f"{plural(len(result.failures), 'error')}"
    )
    return "\n".join([*map(render_text, tables), ""]) + "".join(f"{line}\n" for line in lines)


def build_language_table(environment: str, rows: list[LanguageRatio]) -> TextTable:
    sizes = sorted({row.bytes for row in rows})
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        title = row.title + (f" ({row.level})" if row.language.startswith("mpi4py") else "")
        cells.setdefault((row.routine, title), {})[row.bytes] = format_cost(row)
    return TextTable(
        f"{environment}: time of a call over that in C",
        ("routine", "language"),
        tuple(size(each) for each in sizes),
        tuple((*about, *(found.get(each, DASH) for each in sizes)) for about, found in order(cells)),
        (
            f"ratio within the round, with its 95 % interval over {plural(rows[0].launches, 'launch', 'es')}, "
            f"and microseconds over C; a launch counts by the least of {exchange.BATCHES} batches",
            "C: microseconds of a call; C again: the same program once more, and so what cannot be told apart",
            *([MPI4PY] if any(row.language.startswith("mpi4py") for row in rows) else []),
        ),
    )


def order(cells: dict[tuple[str, str], dict[int, str]]) -> Iterator[tuple[tuple[str, str], dict[int, str]]]:
    """Order rows by routine, the languages of each as they were measured."""
    routines = [*dict.fromkeys(routine for routine, _ in cells)]
    yield from sorted(cells.items(), key=lambda item: routines.index(item[0][0]))


def format_cost(row: LanguageRatio) -> str:
    """Format a ratio with its interval and the time over C; of C itself its time."""
    if row.language == BASIS:
        return microseconds(row.seconds)
    extra = f"{'+' if row.extra >= 0 else '-'}{microseconds(abs(row.extra))}"
    return f"{factor(row.ratio)} ({factor(row.low)} to {factor(row.high)}), {extra}"


ALL = "all"
FOLDER = "bindings"  #: of the work directory
OTHERS = ("routine", "processes", "boundaries", "per_node", "partition")  #: have no meaning here


def measure_bindings(work: WorkDirectory, arguments: argparse.Namespace, progress: Progress) -> int:
    """Measure what languages cost over C on this node. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend.
    """
    kinds = check_bindings_options(arguments)
    sizes = sorted({*(arguments.bytes or exchange.SIZES)})
    with work.held(), tempfile.TemporaryDirectory(dir=work.root, prefix="bindings-") as scratch:
        with progress.phase("set-up"):
            mirror = choose_mirror(work.root, None, progress)
            folder = mirror.wheels if mirror else None
            there = take_inventory(work, arguments.mpis, progress, False, folder)
        if there.machine.cores < 2:
            raise UsageError("--bindings: needs two cores, one a rank; choose another node")
        wanted = arguments.environment
        if unknown := {*wanted} - {mpi.name for mpi in there.mpis}:
            names = ", ".join(mpi.name for mpi in there.mpis)
            raise UsageError(f"--environment {min(unknown)}: is not on this machine; there are {names}")
        result = BindingsResult(there.machine.cpu_model, secrets.randbelow(2**31))
        with progress.phase("running"):
            for mpi in there.mpis:
                if not wanted or mpi.name in wanted:
                    own = Path(scratch, mpi.name)
                    own.mkdir()
                    bench = Bench(mpi, own, work.root / "mpi", folder, mirror.jars if mirror else None)
                    measure_mpi(bench, select_languages(kinds), sizes, arguments.launches, result, progress.now)
        written = json.dumps(result.as_json(), indent=1) + "\n"
        stamp = utc_now().replace(":", "").replace("-", "")
        file = work.root / FOLDER / f"{stamp}-{os.getpid()}.json"
        file.parent.mkdir(exist_ok=True)
        write_text(file, written)
    if arguments.json:
        write_text(arguments.json, written)
    print(format_bindings(result), end="", flush=True)
    progress.say(f"written: {file}")
    return result.status


def check_bindings_options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Check the options; return the kinds of languages that were chosen, none for all.

    :raises UsageError: naming the option.
    """
    if asked := [word for word in arguments.mpis or () if is_used_otherwise(word)]:
        plain = parse_mpi_word(asked[0]).plain
        raise UsageError(f"--mpis {asked[0]}: bindings are those of the MPI as it is; write {plain}")
    kinds = () if arguments.bindings == ALL else tuple(arguments.bindings.split(","))
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise UsageError(f"--bindings {unknown[0]}: is none of {', '.join(KINDS)}")
    for name in OTHERS:
        if getattr(arguments, name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag}: has no meaning with --bindings; leave it out")
    if arguments.site != "local":
        raise UsageError(
            f"--site {arguments.site}: --bindings measures on the node where it is called; leave it out and "
            "call it in a job"
        )
    if arguments.launches < FEWEST_LAUNCHES:
        raise UsageError(
            f"--launches {arguments.launches}: there is no interval of fewer than {FEWEST_LAUNCHES}"
        )
    if odd := [size for size in arguments.bytes if size % exchange.ELEMENT or not size]:
        raise UsageError(f"--bytes {odd[0]}: choose multiples of {exchange.ELEMENT}, above 0")
    return kinds
