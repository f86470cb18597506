"""``agree --bindings``: languages started in rounds of drawn order, and compared in each round.

Each round is a line of a journal. A call that was cut off shows what it has, and the same command goes on.
"""

import argparse
import json
import os
import random
import secrets
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.files import write_text
from postprocess.base.formats import plural, utc_now
from postprocess.base.progress import Progress
from postprocess.base.records import Journal, Positive, find_other_field, parse_record
from postprocess.base.workdir import WorkDirectory
from postprocess.extensions.agreement.compare import FEWEST_LAUNCHES
from postprocess.extensions.agreement.language_costs import (
    BindingsResult,
    LanguageFault,
    compare_with_c,
    format_bindings,
)
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.bindings import Exchange, read_exchange
from site_configs.mpi.exchange import (
    ELEMENT,
    NOT_FOUND,
    RANKS,
    SIZES,
    TIMED_OUT,
    Program,
    list_options,
    run_exchange,
)
from site_configs.mpi.exchange import C as BASIS
from site_configs.mpi.family import Mpi, is_used_otherwise, parse_mpi_word
from site_configs.mpi.inventory import Inventory, take_inventory
from site_configs.mpi.languages import KINDS, Bench, Language, hash_sources, prepare_languages, select_languages
from site_configs.mpi.probe import extract_identity
from spack_envs.mirror.use import choose_mirror


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


def try_exchange(program: Program, *words: Any) -> Exchange | RecordError:
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
    program: Program, launcher: Sequence[str], library: str, sizes: Sequence[int], env: Mapping[str, str]
) -> Exchange:
    """Start a program and read what it measured.

    :param launcher: of the MPI, without its number of ranks
    :param library: what MPI_Get_library_version has to say in it
    :param sizes: in bytes, rising
    :raises RecordError: for whatever is wrong, in one line
    """
    ran = run_exchange(program, (*launcher, "-n", str(RANKS)), list_options(sizes), env)
    if ran.code in (NOT_FOUND, TIMED_OUT):
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
    sizes = sorted({*(arguments.bytes or SIZES)})
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
                tuple(each.name for each in languages),
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
            progress.say(f"cut off; {journal.path} has each round, go on: {again}")
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
    if odd := [size for size in arguments.bytes if size % ELEMENT or not size]:
        raise UsageError(f"--bytes {odd[0]}: choose multiples of {ELEMENT}, above 0")
    return kinds
