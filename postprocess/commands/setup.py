"""What the commands that measure, set up and check do; those that come to one module of their own are there."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.rounds import Demand
from postprocess.cli.options import add_site
from postprocess.cli.request import request
from postprocess.commands import agree as agree_command
from postprocess.commands import links as links_command
from postprocess.commands import lint as linting
from postprocess.commands import list_cases as listing
from postprocess.session import nightly as night
from postprocess.session.calibrate import calibration
from postprocess.setup.build_programs import build_programs
from postprocess.setup.doctor import show
from postprocess.setup.prepare import Prepared, prepare
from site_configs.mpi import inventory
from site_configs.schema.variables import HOME
from site_configs.validation.catalog import site_file
from spack_envs.programs import read_program


def nightly(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Build, run, judge, keep, report."""
    return night.night(work, request(work, arguments), Progress())


def calibrate(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure references."""
    demand = Demand(
        arguments.launches,
        arguments.at_most,
        arguments.afresh,
        take=arguments.take,
        seconds=arguments.seconds,
    )
    asked = request(work, arguments)
    one = replace(asked, selection=replace(asked.selection, launches=1))
    return calibration(work, one, Progress(), demand)


def links(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compare all pairs of nodes with each other, and name what is slow."""
    least, per_switch = arguments.least / 100, arguments.nodes_per_switch or 0
    demand = links_command.Demand(least, arguments.launches, per_switch)
    asked = request(work, arguments)
    return links_command.links(work, asked, demand, Progress())


def agree(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compare mpicost, OSU and IMB with each other, and name who differs."""
    asked = request(work, arguments)
    return agree_command.agree(work, asked, arguments.launches, Progress())


def list_cases(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """The cases that would run, with an estimate of the time."""
    return listing.list_cases(work, request(work, arguments), Progress())


def add_setup(parser: argparse.ArgumentParser) -> None:
    """What ``setup`` and ``doctor`` accept."""
    add_site(parser)
    parser.add_argument(
        "--mirror",
        metavar="DIR",
        help="take everything from this mirror, now and later; none: from where it is",
    )


def setup(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Find or fetch everything that a session needs, and build the programs."""
    return set_up(work, arguments, build_programs)


def doctor(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """What was found on this machine, and why something is not usable."""
    return set_up(work, arguments, lambda *_: 0)


def set_up(
    work: WorkDirectory,
    arguments: argparse.Namespace,
    build: Callable[[WorkDirectory, Prepared, Progress], int],
) -> int:
    """Find or fetch everything that a session needs; then build, and fail if something does not build."""
    site_file(work.source, arguments.site)
    progress = Progress()
    with work.held():
        with progress.phase("set-up"):
            prepared = prepare(
                work, arguments.site, arguments.mpis, progress, True, arguments.mirror
            )
        show(work, prepared, progress)
        with progress.phase("build"):
            failures = build(work, prepared, progress)
    if failures:
        progress.say(f"{failures} program(s) could not be built: see the notes above")
    return 1 if failures else 0


def add_lint(parser: argparse.ArgumentParser) -> None:
    """What ``lint`` accepts."""
    parser.add_argument("paths", nargs="*", type=Path, help="files or directories (default: all)")


def lint(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Check the files that people write."""
    return linting.lint(work, arguments.paths, Progress())


def add_where(parser: argparse.ArgumentParser) -> None:
    """What ``where`` accepts."""
    parser.add_argument("program", choices=("mpicost", "mpicc", "mpiexec"))
    parser.add_argument(
        "--environment", required=True, help="as in mpich-5_0_2 (see ./plumbline list)"
    )


def where(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Print the absolute path of a program of an environment."""
    if arguments.program == "mpicost":
        print(read_program(work.root, arguments.environment, "mpicost").path)
        return 0
    try:
        mpis = {mpi.name: mpi for mpi in inventory.load(work.root).mpis}
    except LookupError as error:
        raise UsageError(str(error)) from None
    if arguments.environment not in mpis:
        raise UsageError(f"--environment {arguments.environment}: not among {', '.join(mpis)}")
    print(getattr(mpis[arguments.environment], arguments.program))
    return 0


ALONE = "mpi or spack or simgrid"  #: tests that start such programs run one after the other
ALL_TESTS = (
    ("-n", "auto", "-m", f"not ({ALONE})"),
    ("-m", ALONE),
)


def test(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Run the tests of the package itself."""
    with work.held():
        prepare(work, "local", None, Progress())
    statuses = [
        subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            check=False,
            cwd=work.source,
            env=test_environment(work),
        ).returncode
        for words in ([arguments.words] if arguments.words else ALL_TESTS)
    ]
    return max(map(abs, statuses))


def test_environment(work: WorkDirectory) -> dict[str, str]:
    """The environment of the tests: the work directory's MPIs and programs are theirs to use."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return os.environ | {HOME: str(work.root), "PATH": path}
