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
from postprocess.cli.parser import Command, Parser, add_commands

DESCRIPTION = (
    "MPI performance regression tests: build, run, judge against references, report.\n"
    "./plumbline help COMMAND tells of one command."
)
EXAMPLE = "./plumbline nightly"
FAILS = "a case, a file or a machine is not as it should be (see the command)"
#: Commands under another name, where people look for them first.
ALIASES: dict[tuple[str, ...], list[str]] = {
    ("compare", verb): ["dossier", verb] for verb in ("sign", "verify")
}
INTERRUPTED = 130
STANDARD_ERROR = 2  #: as a descriptor: a signal may come in the middle of a print


#: Sections of ``--help``, by what people want, with the module of each command, or ``module:NAME``;
#: extensions add theirs.
CORE: dict[str, dict[str, str]] = {
    "every night": {
        "nightly": "postprocess.commands.measure:NIGHTLY",
        "confirm": "postprocess.commands.measure:CONFIRM",
        "run": "postprocess.commands.measure:RUN",
        "list": "postprocess.commands.list_cases",
        "report": "postprocess.commands.report",
        "history": "postprocess.commands.history",
        "calibrate": "postprocess.commands.measure:CALIBRATE",
        "references": "postprocess.commands.references",
    },
    "before an upgrade": {
        "compare": "postprocess.features.compare.command",
        "dossier": "postprocess.features.compare.dossier",
    },
    "before a purchase, and after": {},
    "to look closer": {
        "links": "postprocess.features.links.command",
        "guidelines": "postprocess.features.guidelines.command",
        "drift": "postprocess.commands.drift",
        "alarms": "postprocess.commands.alarms",
    },
    "data in and out": {
        "import": "postprocess.commands.measure:IMPORT",
        "export": "postprocess.commands.export:EXPORT",
        "load": "postprocess.commands.export:LOAD",
    },
    "set-up": {
        "site": "postprocess.commands.site",
        "setup": "postprocess.commands.setup:SETUP",
        "doctor": "postprocess.commands.setup:DOCTOR",
        "lint": "postprocess.commands.lint",
        "mirror": "postprocess.commands.mirror",
        "where": "postprocess.commands.where",
        "test": "postprocess.commands.tests",
    },
}


def list_sections() -> dict[str, dict[str, str]]:
    """List the sections with the commands of the core, and behind them those of extensions."""
    sections = {title: dict(commands) for title, commands in CORE.items()}
    for extension in find_extensions():
        for command in extension.commands:
            sections.setdefault(command.section, {})[command.name] = command.module
    return {title: commands for title, commands in sections.items() if commands}


SECTIONS = list_sections()

#: The module of each command, in the order of ``--help``.
COMMANDS = {name: module for section in SECTIONS.values() for name, module in section.items()}


def load_commands(names: Iterable[str] = tuple(COMMANDS)) -> dict[str, ModuleType | Command]:
    """Import the modules of some commands. All of them take seconds, for the libraries they use."""
    return {name: load_named(COMMANDS[name]) for name in names}


def build_parser(names: Iterable[str] = tuple(COMMANDS)) -> Parser:
    """Create the parser of the command line, with these commands."""
    parser = Parser(prog="plumbline", description=DESCRIPTION, example=EXAMPLE, fails=FAILS)
    parser.add_argument("--version", action="version", version=f"Plumbline {VERSION}")
    add_commands(parser, "name", load_commands(names))
    parser.sections = SECTIONS
    return parser


def parse_words(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line by the parser of its command alone; the whole one knows what is wrong with it.

    :raises UsageError: for words that no command takes
    """
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if words and words[0] in COMMANDS:
        try:
            return build_parser(words[:1]).parse_args(words)
        except UsageError:
            pass
    return build_parser().parse_args(words)


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
