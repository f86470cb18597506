"""The command line: which commands there are, and how they end."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from postprocess import (
    alarms_command,
    commands,
    drift_command,
    mirror_commands,
    options,
    references_commands,
    report_commands,
    selftest_command,
    site_commands,
    store_commands,
)
from postprocess.command_table import Add, Run, commands_below
from postprocess.errors import UsageError
from postprocess.harmless import one_line
from postprocess.workdir import WorkDirectory

DESCRIPTION = "MPI performance regression tests: build, run, judge against references, report."
EXIT_STATUS = "Exit status: 0 all well, 1 some case is not, 2 wrong use or configuration."
INTERRUPTED = 130
STANDARD_ERROR = 2  #: as a descriptor: a signal may come in the middle of a print


# fmt: off
#: In the order of ``--help``. A command that has others below it leaves it to them what is done.
COMMANDS: tuple[tuple[str, Add, Run | None, str], ...] = (
    ("nightly", options.add_session, commands.nightly,
     "Build, run and judge everything; calibrate first where no reference is known."),
    ("run", options.add_session, commands.nightly,
     "The same by hand, for a choice of environments, routines or sizes: counts as no night."),
    ("calibrate", options.add_calibration, commands.calibrate,
     "Measure references; take the launches that are missing."),
    ("links", options.add_links, commands.links,
     "Compare all pairs of nodes with each other: names sick nodes and bad links."),
    ("agree", options.add_agree, commands.agree,
     "Compare mpicost, OSU and IMB with each other: names the one that differs."),
    ("drift", drift_command.add, drift_command.drift,
     "What became slower over many nights: steps that stay, and slow creep."),
    ("selftest", selftest_command.add, selftest_command.run,
     "Plant slowdowns into nights of its own: which are caught, missed, and what else is accused."),
    ("list", options.add_selection, commands.list_cases,
     "The cases that would run, and about how long."),
    ("setup", commands.add_setup, commands.setup,
     "Find or fetch MPIs and Spack, and build all programs; without Spack the first session builds."),
    ("doctor", commands.add_setup, commands.doctor,
     "The same without building: what was found, and why something is not usable."),
    ("mirror", mirror_commands.add, None,
     "Make a mirror for machines without a network, or verify one."),
    ("report", report_commands.add_report, report_commands.report,
     "Write the report of a session again."),
    ("export", store_commands.add_export, store_commands.run_export,
     "Write the results store as CSV."),
    ("load", store_commands.add_load, store_commands.run_load,
     "Load the results store into PostgreSQL; what is there already stays."),
    ("papers", report_commands.add_papers, report_commands.papers,
     "A session as the papers show it."),
    ("references", references_commands.add, None,
     "Propose new reference files from the calibrations, list what is stale, plan what to spend."),
    ("lint", commands.add_lint, commands.lint,
     "Check site files, reference files and check files."),
    ("alarms", alarms_command.add, alarms_command.run,
     "Alarms of past nights against those that chance alone would have raised."),
    ("site", site_commands.add, None,
     "Write a site file of this machine, check one, or try one out."),
    ("where", commands.add_where, commands.where,
     "Absolute path of a program of an environment."),
)
# fmt: on


class Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} ({self.prog} --help)")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = Parser(prog="plumbline", description=DESCRIPTION, epilog=EXIT_STATUS)
    command = commands_below(parser, "name")
    for name, add, run, text in COMMANDS:
        add(command(name, text, run))
    text = "Run Plumbline's own tests; all further words go to pytest."
    tests = command("test", text, commands.test, add_help=False, prefix_chars="\0")
    tests.add_argument("words", nargs="*")
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
