"""The command ``setup``: find or install what a session needs, and build the programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import SITE, add_options
from postprocess.cli.parser import WHERE, Parser
from postprocess.setup.build_programs import build_programs
from postprocess.setup.doctor import print_doctor_page
from postprocess.setup.prepare import PreparedMachine, prepare_machine
from site_configs.validation.catalog import locate_site_file

HELP = "Find or install MPIs and Spack, and build all programs."
EXAMPLE = "./plumbline setup --mpis mpich,openmpi"
FAILS = "a program could not be built"


def add_arguments(parser: Parser) -> None:
    """Add the options that say for which machine, and where everything comes from."""
    add_options(parser, *SITE)
    parser.group(WHERE).add_argument(
        "--mirror",
        metavar="DIR",
        help="take everything from this mirror, now and later; none: from the network again",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Find or install everything that a session needs, and build the programs. Returns the exit status."""
    return set_up(work, arguments, build_programs)


def set_up(
    work: WorkDirectory,
    arguments: argparse.Namespace,
    build: Callable[[WorkDirectory, PreparedMachine, Progress], int],
) -> int:
    """Find or install everything that a session needs; then build. Returns 1 if something does not build."""
    locate_site_file(work.source, arguments.site)
    progress = Progress()
    with work.held():
        with progress.phase("set-up"):
            prepared = prepare_machine(
                work, arguments.site, arguments.mpis, progress, True, arguments.mirror
            )
        print_doctor_page(work, prepared, progress)
        with progress.phase("build"):
            failures = build(work, prepared, progress)
    if failures:
        progress.say(f"{failures} program(s) could not be built: see the notes above")
    return 1 if failures else 0
