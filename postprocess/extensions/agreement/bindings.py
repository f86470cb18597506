"""``agree --bindings``: languages started in rounds of drawn order, and compared with C in each round.

Each round is a line of a journal. A call that was cut off shows what it has, and the same command goes on.
"""

import argparse
import json
import math
import os
import random
import secrets
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.files import write_text
from postprocess.base.formats import DASH, TextTable, factor, microseconds, plural, render_text, size, utc_now
from postprocess.base.progress import Progress
from postprocess.base.records import Journal, Positive, find_other_field, parse_record
from postprocess.base.workdir import WorkDirectory
from postprocess.extensions.agreement.compare import FEWEST_LAUNCHES, compute_ratio_interval
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.bindings import Exchange, read_exchange
from site_configs.mpi import exchange
from site_configs.mpi.exchange import C as BASIS
from site_configs.mpi.family import Mpi, is_used_otherwise, parse_mpi_word
from site_configs.mpi.inventory import Inventory, take_inventory
from site_configs.mpi.languages import (
    CONTROL,
    KINDS,
    Bench,
    Language,
    hash_sources,
    prepare_languages,
    select_languages,
)
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
    """All that was found, as it is written."""

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


def compare_with_c(
    environment: str, language: Language, pairs: Sequence[tuple[Exchange, Exchange]]
) -> Iterator[LanguageRatio]:
    """Compare a language with C, round by round.

    :param pairs: what both measured in each round, ``FEWEST_LAUNCHES`` at least
    """
    cases = sorted(pairs[0][1].seconds, key=lambda case: (exchange.ROUTINES.index(case[0]), case[1]))
    for case in cases:
        seconds = [(own.seconds[case], c.seconds[case]) for own, c in pairs]
        logs = [math.log(own / c) for own, c in seconds]
        interval = compute_ratio_interval(logs)
        assert interval  # there are enough
        yield LanguageRatio(
            *(environment, language.name, language.title, pairs[0][0].level, *case, len(pairs)),
            *(math.exp(statistics.fmean(logs)), *interval, statistics.median(own for own, _ in seconds)),
            statistics.median(own - c for own, c in seconds),
        )


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
    """Build a row for each language and routine, a column for each size."""
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
            "C: microseconds of a call; C again: the same program once more, so its difference is noise",
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


@dataclass(frozen=True)
class BindingsHeader:
    """The first line of a journal: what the call was to measure, and on what machine, MPIs and sources."""

    machine: str
    languages: tuple[str, ...]
    sizes: tuple[int, ...]
    launches: int
    libraries: Mapping[str, str]  #: by environment
    sources: str  #: hash of all programs
    seed: int = 0


@dataclass(frozen=True)
class LanguageRound:
    """A round that is over: of each language what it measured, or what it did wrong."""

    environment: str
    found: Mapping[str, tuple[str, tuple[tuple[str, int, Positive], ...]]]
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def exchanges(self) -> dict[str, Exchange]:
        """Return what the round measured, by language."""
        return {
            name: Exchange(level, {(routine, bytes_): seconds for routine, bytes_, seconds in times})
            for name, (level, times) in self.found.items()
        }


#: What must be asked for again, of the same MPIs, to go on.
SAME_AGAIN = tuple(each.name for each in fields(BindingsHeader) if each.name != "seed")
Say = Callable[[str], object]
Keep = Callable[[LanguageRound], object]


def measure_mpi(
    bench: Bench,
    languages: Sequence[Language],
    sizes: Sequence[int],
    rounds: int,
    result: BindingsResult,
    say: Say,
    known: Sequence[LanguageRound] = (),
    keep: Keep = str,
) -> None:
    """Measure the languages with an MPI, and add what was found to the result, also where it is cut off.

    A language that fails ends there, and where C does, all do; what they measured before counts.

    :param known: rounds that an earlier call has
    :param keep: keeps a round that is over
    """
    name = bench.mpi.name
    result.libraries[name] = bench.mpi.library
    done = [each for each in known if each.environment == name]
    try:
        ready = prepare_languages(bench, languages, say)
        for language in languages:
            if why := ready.lacking.get(language.name):
                result.skipped.append(LanguageFault(name, language.name, language.title, why))
        library = extract_identity(bench.mpi.library)
        for number in range(len(done), rounds):
            failed = {language for each in done for language in each.failed}
            going = [each for each in ready.programs if each not in failed]
            if BASIS not in going:
                break
            say(f"{name}: round {number + 1} of {rounds}")
            starts = {}
            for each in random.Random(f"{result.seed} {name} {number}").sample(going, len(going)):
                program = ready.programs[each]
                starts[each] = try_exchange(program, bench.mpi.launcher, library, sizes, bench.env)
            done.append(build_round(name, starts))
            keep(done[-1])
    finally:
        add_rounds(result, name, languages, done)


def try_exchange(program: exchange.Program, *words: Any) -> Exchange | RecordError:
    """Start a program as :func:`start_exchange` does; return what is wrong, too."""
    try:
        return start_exchange(program, *words)
    except RecordError as error:
        return error


def build_round(environment: str, starts: Mapping[str, Exchange | RecordError]) -> LanguageRound:
    found = {
        name: (each.level, tuple((*case, seconds) for case, seconds in each.seconds.items()))
        for name, each in starts.items()
        if isinstance(each, Exchange)
    }
    failed = {name: str(each) for name, each in starts.items() if not isinstance(each, Exchange)}
    return LanguageRound(environment, found, failed)


def add_rounds(
    result: BindingsResult, environment: str, languages: Sequence[Language], rounds: Sequence[LanguageRound]
) -> None:
    """Add the rounds of an MPI to the result: its failures, and a row of what has enough launches beside C."""
    for language in languages:
        for why in (each.failed[language.name] for each in rounds if language.name in each.failed):
            result.failures.append(LanguageFault(environment, language.name, language.title, why))
    beside_c = [each.exchanges for each in rounds if BASIS in each.found]
    for language in languages:
        pairs = [(each[language.name], each[BASIS]) for each in beside_c if language.name in each]
        if len(pairs) >= FEWEST_LAUNCHES:
            result.rows += compare_with_c(environment, language, pairs)


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


ALL = "all"
FOLDER = "bindings"  #: of the work directory
ROUNDS = ".jsonl"  #: ending of a journal; what came of it has the same name, and ``.json``
OTHERS = ("routine", "processes", "boundaries", "per_node", "partition")  #: have no meaning here


def measure_bindings(work: WorkDirectory, arguments: argparse.Namespace, progress: Progress) -> int:
    """Measure what languages cost over C on this node. Returns the exit status."""
    languages = select_languages(check_bindings_options(arguments))
    sizes = sorted({*(arguments.bytes or exchange.SIZES)})
    with work.held(), tempfile.TemporaryDirectory(dir=work.root, prefix="bindings-") as scratch:
        with progress.phase("set-up"):
            mirror = choose_mirror(work.root, None, progress)
            folder = mirror.wheels if mirror else None
            there = take_inventory(work, arguments.mpis, progress, False, folder)
        mpis = select_mpis(there, arguments.environment)
        journal, header, known = find_or_begin(
            work.root / FOLDER,
            BindingsHeader(
                there.machine.cpu_model,
                tuple(language.name for language in languages),
                tuple(sizes),
                arguments.launches,
                {mpi.name: mpi.library for mpi in mpis},
                hash_sources(),
                secrets.randbelow(2**31),
            ),
            progress,
        )
        result = BindingsResult(header.machine, header.seed)

        def keep(done: LanguageRound) -> None:
            journal.append({"record": "round", **asdict(done)})

        try:
            with progress.phase("running"):
                for mpi in mpis:
                    own = Path(scratch, mpi.name)
                    own.mkdir()
                    jars = mirror.jars if mirror else None
                    bench = Bench(mpi, own, work.root / "mpi", folder, jars, progress.say)
                    asked = (languages, sizes, arguments.launches, result, progress.now, known, keep)
                    measure_mpi(bench, *asked)
        except BaseException:  # interrupted, too: what was measured is shown, and not lost
            print(format_bindings(result), end="", flush=True)
            again = shlex.join(["./plumbline", *sys.argv[1:]])
            progress.say(f"cut off; {journal.path} has each round, go on", command=again)
            raise
        written = json.dumps(asdict(result), indent=1) + "\n"
        file = journal.path.with_suffix(".json")
        write_text(file, written)
    if arguments.json:
        write_text(arguments.json, written)
    print(format_bindings(result), end="", flush=True)
    progress.say(f"written: {file}; every round: {journal.path}")
    return result.status


def select_mpis(there: Inventory, wanted: Sequence[str]) -> list[Mpi]:
    """Select the MPIs of this machine that are measured: all, or those of these names.

    :raises UsageError: if one is not there, or if two ranks have no core each
    """
    if there.machine.cores < 2:
        raise UsageError("--bindings: needs two cores, one a rank; choose another node")
    if unknown := {*wanted} - {mpi.name for mpi in there.mpis}:
        names = ", ".join(mpi.name for mpi in there.mpis)
        raise UsageError(f"--environment {min(unknown)}: is not on this machine; there are {names}")
    return [mpi for mpi in there.mpis if not wanted or mpi.name in wanted]


def find_or_begin(
    folder: Path, asked: BindingsHeader, progress: Progress
) -> tuple[Journal, BindingsHeader, list[LanguageRound]]:
    """Find what an earlier call of the same command left when it was cut off, or begin anew.

    What is damaged is left alone. A call that came to its end is not gone on with: another measures again.
    """
    for path in sorted(folder.glob(f"*{ROUNDS}"), reverse=True):
        journal = open_journal(path)
        if path.with_suffix(".json").exists():
            continue
        try:
            with journal.reading():
                header, entries = journal.read(BindingsHeader)
                known = [
                    parse_record(entry, LanguageRound) for entry in entries if entry.pop("record") == "round"
                ]
        except UsageError:
            continue
        if not find_other_field(header, asked, SAME_AGAIN):
            journal.truncate_unfinished()
            progress.say(f"going on with {path}: {plural(len(known), 'round')} done")
            return journal, header, known
    stamp = utc_now().replace(":", "").replace("-", "")
    journal = open_journal(folder / f"{stamp}-{os.getpid()}{ROUNDS}")
    journal.append({"record": "begun", **asdict(asked)})
    return journal, asked, []


def open_journal(path: Path) -> Journal:
    return Journal(path, "make room, or remove it", missing="measure again")


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
