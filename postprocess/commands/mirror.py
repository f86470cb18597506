"""The command ``mirror``: everything that a machine without a network needs."""

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import WHERE, Command, Parser
from spack_envs.mirror.create import create_mirror, verify_mirror
from spack_envs.mirror.spack_sources import GivenSource


def parse_source(text: str) -> GivenSource:
    """Parse PACKAGE=PLACE, or PACKAGE=PLACE#REVISION of a git repository."""
    package, _, place = text.partition("=")
    where, _, revision = place.partition("#")
    if not package or not where:
        raise argparse.ArgumentTypeError(f"{text!r} is not PACKAGE=PLACE")
    path = Path(where).absolute()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{package}: {path} is not there")
    return GivenSource(package, path, revision or "HEAD")


def add_create_arguments(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the mirror")
    parser.group(WHERE).add_argument(
        "--source",
        type=parse_source,
        action="append",
        default=[],
        metavar="PACKAGE=PLACE[#REVISION]",
        help="take a source from a .tar.gz or a git repository here instead of from its upstream; may be "
        "repeated",
    )


def run_create(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Gather everything that a machine without a network needs. Returns the exit status."""
    with work.held():
        return create_mirror(work, arguments.folder, arguments.source, Progress())


CREATE = Command(
    "./plumbline mirror create /shared/mirror",
    "something could not be fetched",
    add_create_arguments,
    run_create,
    help="Gather everything that a machine without a network needs; keep what is there.",
)


def add_check_arguments(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the mirror")


def run_check(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Verify a mirror. Returns the exit status."""
    return verify_mirror(arguments.folder, Progress())


CHECK = Command(
    "./plumbline mirror check /shared/mirror",
    "a file is missing or damaged",
    add_check_arguments,
    run_check,
    help="Verify every file of a mirror, and list what is in it.",
)


EXAMPLE = "./plumbline mirror create /shared/mirror"
FAILS = "see the commands below"

COMMANDS = {"create": CREATE, "check": CHECK}
