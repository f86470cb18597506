"""The command line: which commands there are, and how they end."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from postprocess.base import os_errors
from postprocess.base.errors import UsageError
from postprocess.base.sanitize import check_folders, check_texts, sanitize_line, shorten_words
from postprocess.base.version import VERSION
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.extensions import find_extensions, load_named
from postprocess.cli.output_files import check_outputs
from postprocess.cli.parser import Command, Listed, Parser, add_commands

DESCRIPTION = (
    "MPI performance regression tests: build, run, judge against references, report.\n"
    "./plumbline help COMMAND describes one command."
)
EXAMPLE = "./plumbline nightly"
FAILS = "a case, a file or a machine is not as it should be (see the command)"
#: Commands under another name, where people look for them first.
ALIASES: dict[tuple[str, ...], list[str]] = {
    ("compare", verb): ["dossier", verb] for verb in ("sign", "verify")
}
INTERRUPTED = 130
STANDARD_ERROR = 2  #: as a descriptor: a signal may come in the middle of a print


#: Sections of ``--help``, by what people want, with their commands; extensions add theirs.
CORE: dict[str, dict[str, Listed]] = {
    "every night": {
        "nightly": Listed(
            "postprocess.commands.measure:NIGHTLY",
            "Build, run and judge all cases; calibrate first where references are missing.",
        ),
        "confirm": Listed(
            "postprocess.commands.measure:CONFIRM",
            "Measure again, in a session of its own, what the last night left suspect.",
        ),
        "run": Listed(
            "postprocess.commands.measure:RUN",
            "Measure and judge a selection of cases; not recorded as a nightly run.",
        ),
        "list": Listed(
            "postprocess.commands.list_cases", "List the cases that would run, with an estimate of the time."
        ),
        "report": Listed(
            "postprocess.commands.report", "Write the report of a session again, and print its verdicts."
        ),
        "history": Listed(
            "postprocess.commands.history",
            "Show what a case cost night after night, with its band and verdicts.",
        ),
        "calibrate": Listed(
            "postprocess.commands.measure:CALIBRATE", "Measure references; run the launches that are missing."
        ),
        "references": Listed(
            "postprocess.commands.references",
            "Propose new references from calibrations, list stale ones, plan a calibration.",
        ),
    },
    "before an upgrade": {
        "compare": Listed(
            "postprocess.features.compare.command",
            "Validate an MPI upgrade: compare two MPIs or settings by launches taken in turn.",
        ),
        "dossier": Listed(
            "postprocess.features.compare.dossier", "Sign the decision on a comparison, or verify a signed one."
        ),
    },
    "before a purchase, and after": {},
    "to look closer": {
        "links": Listed(
            "postprocess.features.links.command", "Measure all pairs of nodes; name slow nodes and slow links."
        ),
        "guidelines": Listed(
            "postprocess.features.guidelines.command",
            "Find operations that lose to other calls with the same result, and settings that help.",
        ),
        "drift": Listed("postprocess.commands.drift", "Find steps and slow trends over many nightly runs."),
        "alarms": Listed(
            "postprocess.commands.alarms",
            "Compare the number of past alarms with the number expected by chance; classify alarms.",
        ),
    },
    "data in and out": {
        "import": Listed(
            "postprocess.commands.measure:IMPORT",
            "Judge, store and report what a site's own ReFrame ran with our checks.",
        ),
        "export": Listed("postprocess.commands.export:EXPORT", "Write the results store as CSV."),
        "load": Listed(
            "postprocess.commands.export:LOAD",
            "Load the results store into PostgreSQL; add only sessions that are not there yet.",
        ),
    },
    "set-up": {
        "site": Listed(
            "postprocess.commands.site", "Write a site file of this machine, check one, or try one out."
        ),
        "setup": Listed(
            "postprocess.commands.setup:SETUP", "Find or install MPIs and Spack, and build all programs."
        ),
        "doctor": Listed(
            "postprocess.commands.setup:DOCTOR",
            "Report which MPIs, compilers and Spack were found and what is unusable; build nothing.",
        ),
        "lint": Listed("postprocess.commands.lint", "Check site files, reference files and check files."),
        "mirror": Listed(
            "postprocess.commands.mirror", "Create or verify a mirror for machines without a network."
        ),
        "where": Listed(
            "postprocess.commands.where", "Print the absolute path of a program of an environment."
        ),
        "test": Listed(
            "postprocess.commands.tests",
            "Run Plumbline's own tests: a short choice, --all, or those named; further words go to pytest.",
        ),
    },
}


def list_sections() -> dict[str, dict[str, Listed]]:
    """List the sections with the commands of the core, and behind them those of extensions."""
    sections = {title: dict(commands) for title, commands in CORE.items()}
    for extension in find_extensions():
        for command in extension.commands:
            sections.setdefault(command.section, {})[command.name] = Listed(command.module, command.help)
    return {title: commands for title, commands in sections.items() if commands}


SECTIONS = list_sections()

#: All commands, in the order of ``--help``.
COMMANDS = {name: listed for section in SECTIONS.values() for name, listed in section.items()}


def load_commands(names: Iterable[str] = tuple(COMMANDS)) -> dict[str, ModuleType | Command]:
    """Import the modules of some commands. All of them take seconds, for the libraries they use."""
    return {name: load_named(COMMANDS[name].module) for name in names}


def build_parser(names: Iterable[str] = tuple(COMMANDS)) -> Parser:
    """Create the parser of the command line, with what these commands accept; others are only listed."""
    parser = Parser(prog="plumbline", description=DESCRIPTION, example=EXAMPLE, fails=FAILS)
    parser.add_argument("--version", action="version", version=f"Plumbline {VERSION}")
    lines = {name: listed.help for name, listed in COMMANDS.items()}
    add_commands(parser, "name", load_commands(names), lines)
    parser.sections = SECTIONS
    parser.build_whole = build_parser
    return parser


def parse_words(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. Only the module of its own command is imported, and none for all else.

    :raises UsageError: for words that no command takes
    """
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    return build_parser([word for word in words if word in COMMANDS][:1]).parse_args(words)


def exit_on_signal(number: int, _: object) -> None:
    """Come to an end in good order because of a signal."""
    text = "plumbline: terminated; what was measured so far is kept\n"
    os.write(STANDARD_ERROR, text.encode())
    sys.exit(128 + number)


def main(source: str, work: str, words: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. An error is one line, never a traceback."""
    signal.signal(signal.SIGTERM, exit_on_signal)
    words = sys.argv[1:] if words is None else words
    try:
        os_errors.check_memory_limit()
        check_texts([*words, work, source])
        check_folders([work, source])
        arguments = parse_words([*ALIASES.get(tuple(words[:2]), words[:2]), *words[2:]])
        place = WorkDirectory(Path(work), Path(source))
        check_outputs(place, arguments)
        return arguments.run(place, arguments)
    except UsageError as error:
        print(f"plumbline: {sanitize_line(shorten_words(str(error)))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("plumbline: interrupted; what was measured so far is kept", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        what = os_errors.describe_os_error(error, Path(work))
        print(f"plumbline: {sanitize_line(shorten_words(what))}", file=sys.stderr)
        return 2
    except Exception as error:
        if os_errors.is_lack_of_memory(error):
            print(f"plumbline: memory: {os_errors.describe_memory_limit()}", file=sys.stderr)
            return 2
        return tell_fault(Path(work) / os_errors.FOLDER, error)


def tell_fault(folder: Path, error: Exception) -> int:
    """Tell of a fault of Plumbline itself in one line, and keep its trace; the exit status."""
    trace = os_errors.keep_trace(folder, error)
    if trace is None:
        traceback.print_exception(error)
    what = f"{os_errors.describe_fault(error)}: a fault of Plumbline itself, please report it"
    print(f"plumbline: {sanitize_line(what)} (all of it: {trace or 'above'})", file=sys.stderr)
    return 1
