"""The command line: which commands there are, and how they end."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from postprocess.base.errors import UsageError
from postprocess.base.sanitize import one_line
from postprocess.base.workdir import WorkDirectory
from postprocess.cli import options
from postprocess.cli.registry import Add, Run, commands_below
from postprocess.commands import (
    alarms,
    drift,
    mirror,
    references,
    report,
    selftest,
    setup,
    site,
    store,
)

DESCRIPTION = "MPI performance regression tests: build, run, judge against references, report."
EXIT_STATUS = "Exit status: 0 all well, 1 some case is not, 2 wrong use or configuration."
INTERRUPTED = 130
STANDARD_ERROR = 2  #: as a descriptor: a signal may come in the middle of a print


# fmt: off
#: In the order of ``--help``. A command that has others below it leaves it to them what is done.
COMMANDS: tuple[tuple[str, Add, Run | None, str], ...] = (
    ("nightly", options.add_session, setup.nightly,
     "Build, run and judge everything; calibrate first where no reference is known."),
    ("run", options.add_session, setup.nightly,
     "The same by hand, for a choice of environments, routines or sizes: counts as no night."),
    ("calibrate", options.add_calibration, setup.calibrate,
     "Measure references; take the launches that are missing."),
    ("links", options.add_links, setup.links,
     "Compare all pairs of nodes with each other: names sick nodes and bad links."),
    ("agree", options.add_agree, setup.agree,
     "Compare mpicost, OSU and IMB with each other: names the one that differs."),
    ("drift", drift.add, drift.drift,
     "What became slower over many nights: steps that stay, and slow creep."),
    ("selftest", selftest.add, selftest.run,
     "Plant slowdowns into nights of its own: which are caught, missed, and what else is accused."),
    ("list", options.add_selection, setup.list_cases,
     "The cases that would run, and about how long."),
    ("setup", setup.add_setup, setup.setup,
     "Find or fetch MPIs and Spack, and build all programs; without Spack the first session builds."),
    ("doctor", setup.add_setup, setup.doctor,
     "The same without building: what was found, and why something is not usable."),
    ("mirror", mirror.add, None,
     "Make a mirror for machines without a network, or verify one."),
    ("report", report.add_report, report.report,
     "Write the report of a session again."),
    ("export", store.add_export, store.run_export,
     "Write the results store as CSV."),
    ("load", store.add_load, store.run_load,
     "Load the results store into PostgreSQL; what is there already stays."),
    ("papers", report.add_papers, report.papers,
     "A session as the papers show it."),
    ("references", references.add, None,
     "Propose new reference files from the calibrations, list what is stale, plan what to spend."),
    ("lint", setup.add_lint, setup.lint,
     "Check site files, reference files and check files."),
    ("alarms", alarms.add, alarms.run,
     "Alarms of past nights against those that chance alone would have raised."),
    ("site", site.add, None,
     "Write a site file of this machine, check one, or try one out."),
    ("where", setup.add_where, setup.where,
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
    tests = command("test", text, setup.test, add_help=False, prefix_chars="\0")
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
