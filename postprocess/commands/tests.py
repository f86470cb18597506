"""The command ``test``: the tests of the package itself."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from postprocess.setup.prepare import prepare_machine
from site_configs.schema.variables import HOME

HELP = "Run Plumbline's own tests; all further words go to pytest."
EXAMPLE = "./plumbline test tests/unit -k parser"
FAILS = "a test failed; other values are pytest's"
PARSER = {"add_help": False, "prefix_chars": "\0"}  #: --help, too, goes to pytest

ALONE = "mpi or spack or simgrid"  #: tests that start such programs run one after the other
ALL_TESTS = (
    ("-n", "auto", "-m", f"not ({ALONE})"),
    ("-m", ALONE),
)


def add_arguments(parser: Parser) -> None:
    """Add the words for pytest."""
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="arguments of pytest (default: run all tests)"
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Run the tests of the package itself. Returns the largest exit status of pytest."""
    with work.held():
        prepare_machine(work, "local", None, Progress())
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
    """Return the environment of the tests: they use the MPIs and programs of the work directory."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return os.environ | {HOME: str(work.root), "PATH": path}
