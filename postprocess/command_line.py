"""The command line: what each command accepts, and which function does it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from postprocess import commands, options
from postprocess.alarms_command import add as add_alarms
from postprocess.drift_commands import add as add_drift
from postprocess.errors import UsageError
from postprocess.harmless import one_line
from postprocess.mirror_commands import add as add_mirror_commands
from postprocess.option_types import count
from postprocess.references_commands import add as add_references_commands
from postprocess.selftest_command import add as add_selftest
from postprocess.site_commands import add as add_site_commands
from postprocess.store_commands import COMMANDS as STORE_COMMANDS
from postprocess.workdir import WorkDirectory

DESCRIPTION = "MPI performance regression tests: build, run, judge against references, report."
EXIT_STATUS = "Exit status: 0 all well, 1 some case is not, 2 wrong use or configuration."
INTERRUPTED = 130
STANDARD_ERROR = 2  #: as a descriptor: a signal may come in the middle of a print


class Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} ({self.prog} --help)")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = Parser(prog="plumbline", description=DESCRIPTION, epilog=EXIT_STATUS)
    found = parser.add_subparsers(
        dest="name", required=True, metavar="COMMAND", parser_class=Parser
    )

    def command(name: str, run: commands.Command, text: str) -> argparse.ArgumentParser:
        added = found.add_parser(name, help=text, description=text, epilog=EXIT_STATUS)
        added.set_defaults(run=run)
        return added

    for name, text in (
        (
            "nightly",
            "Build, run and judge everything; calibrate first where no reference is known.",
        ),
        ("run", "The same for a choice of environments, routines, counts and sizes."),
    ):
        session = command(name, commands.nightly, text)
        options.add_site(session)
        options.add_selection(session)
        options.add_session(session)
    session = command(
        "calibrate", commands.calibrate, "Measure references; take the launches that are missing."
    )
    options.add_site(session)
    options.add_selection(session)
    options.add_calibration(session)
    text = "Compare all pairs of nodes with each other: names sick nodes and bad links."
    session = command("links", commands.links, text)
    options.add_site(session)
    options.add_links(session)
    text = "Compare mpicost, OSU and IMB with each other: names the one that differs."
    session = command("agree", commands.agree, text)
    options.add_site(session)
    options.add_agree(session)
    text = "What became slower over many nights: steps that stay, and slow creep."
    add_drift(found.add_parser("drift", help=text, description=text, epilog=EXIT_STATUS))
    text = "Plant slowdowns into nights of its own: which are caught, missed, and what else is accused."
    session = found.add_parser("selftest", help=text, description=text, epilog=EXIT_STATUS)
    options.add_site(session)
    add_selftest(session)
    session = command("list", commands.list_cases, "The cases that would run, and about how long.")
    options.add_site(session)
    options.add_selection(session)
    for name, run, text in (
        ("setup", commands.setup, "Find or fetch MPIs and Spack; measure nothing."),
        ("doctor", commands.doctor, "The same: what was found, and why something is not usable."),
    ):
        session = command(name, run, text)
        options.add_site(session)
        session.add_argument(
            "--mirror",
            metavar="DIR",
            help="take everything from this mirror, now and later; none: from where it is",
        )
    text = "Make a mirror for machines without a network, or verify one."
    add_mirror_commands(found.add_parser("mirror", help=text, description=text, epilog=EXIT_STATUS))
    session = command("report", commands.report, "Write the report of a session again.")
    session.add_argument("session", nargs="?", help="name of the session (default: the last one)")
    for name, text, add in STORE_COMMANDS:
        add(found.add_parser(name, help=text, description=text, epilog=EXIT_STATUS))
    session = command("papers", commands.papers, "A session as the papers show it.")
    session.add_argument("session", nargs="?", help="name of the session (default: the last one)")
    session.add_argument(
        "--against",
        metavar="PARTITION",
        help="that the others are held against (default: the T3E's, else the first)",
    )
    session.add_argument(
        "--processes",
        type=count,
        help="at which machines are compared (default: the papers' 128, else the largest)",
    )
    text = (
        "Propose new reference files from the calibrations, list what is stale, plan what to spend."
    )
    add_references_commands(
        found.add_parser("references", help=text, description=text, epilog=EXIT_STATUS)
    )
    session = command("lint", commands.lint, "Check site files, reference files and check files.")
    session.add_argument("paths", nargs="*", type=Path, help="files or directories (default: all)")
    text = "Alarms of past nights against those that chance alone would have raised."
    add_alarms(found.add_parser("alarms", help=text, description=text, epilog=EXIT_STATUS))
    text = "Write a site file of this machine, check one, or try one out."
    add_site_commands(found.add_parser("site", help=text, description=text, epilog=EXIT_STATUS))
    session = command("where", commands.where, "Absolute path of a program of an environment.")
    session.add_argument("program", choices=("mpicost", "mpicc", "mpiexec"))
    session.add_argument(
        "--environment", required=True, help="as in mpich-5_0_2 (see ./plumbline list)"
    )
    text = "Run Plumbline's own tests; all further words go to pytest."
    session = found.add_parser("test", help=text, add_help=False, prefix_chars="\0")
    session.set_defaults(run=commands.test)
    session.add_argument("words", nargs="*")
    return parser


def end(number: int, _: object) -> None:
    """Come to an end in good order because of a signal."""
    text = "plumbline: terminated; what was measured so far is in the session's raw files\n"
    os.write(STANDARD_ERROR, text.encode())
    sys.exit(128 + number)


def main(source: str, work: str, words: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. Errors of the user's are one line, never a traceback."""
    signal.signal(signal.SIGTERM, end)
    try:
        arguments = build_parser().parse_args(words)
        return arguments.run(WorkDirectory(Path(work), Path(source)), arguments)
    except UsageError as error:
        print(f"plumbline: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "plumbline: interrupted; what was measured so far is in the session's raw files",
            file=sys.stderr,
        )
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        what = f"{error.filename or 'input or output'}: {error.strerror or error}"
        print(f"plumbline: {one_line(what)}", file=sys.stderr)
        return 2
