"""The command ``test``: the tests of the package itself."""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from postprocess.setup import prepare_machine
from site_configs.schema.variables import HOME

EXAMPLE = "./plumbline test tests/unit -k parser"
FAILS = "a test failed; other values are pytest's"
PARSER = {"add_help": False, "prefix_chars": "\0"}  #: options go to pytest

ALL, REST = "--all", "--rest"
PYTEST_HELP = ".plumbline/venv/bin/pytest --help lists them"
#: What the last run without words has passed: one test a line, by pytest's name.
PASSED = "tests-passed.txt"
#: The folder of what tests build once; every start of pytest uses the same one.
SHARED = "PLUMBLINE_TESTS_SHARED"
#: no unit test needs the machine alone; to collect them all takes longer
INTEGRATION = "tests/integration"
#: Tests that do not disturb each other, a file on one core; then the others, one after the other.
PARTS = (
    ("-n", "auto", "--dist", "loadscope", "--no-loadscope-reorder", "-m", "not alone"),
    ("-m", "alone", INTEGRATION),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help=f"pytest arguments (default: short tests); {ALL}: all tests; {REST}: those that the last default "
        f"run did not pass; -k WORD, -x, --lf and all else are pytest's ({PYTEST_HELP})",
    )
    parser.set_defaults(show_help=parser.print_help)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Run the tests of the package itself. Returns the largest exit status of pytest."""
    passed, words = work.root / PASSED, arguments.words
    if words in (["--help"], ["-h"]):
        arguments.show_help()
        return 0
    if words == [REST]:
        check_passed(passed, work.source)
    if not words:
        passed.unlink(missing_ok=True)
    with work.held():
        prepare_machine(work, "local", None, Progress(), with_spack=bool(words))
    if not words:
        passed.write_text(f"{hash_sources(work.source)}\n", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="plumbline-tests-") as shared:
        environment = test_environment(work) | {SHARED: shared}
        statuses = [
            subprocess.run(
                [sys.executable, "-m", "pytest", *part], check=False, cwd=work.source, env=environment
            ).returncode
            for part in choose_parts(words, passed)
        ]
    return max(map(abs, statuses))


def check_passed(passed: Path, source: Path) -> None:
    """Refuse to leave out tests that have passed elsewhere, or before the sources changed.

    :raises UsageError: if no run has passed any test of these sources
    """
    if not passed.exists():
        raise UsageError(f"{REST}: no run has passed any test: {passed} is missing; use {ALL}")
    if files.read_text(passed).partition("\n")[0] != hash_sources(source):
        raise UsageError(f"{REST}: the sources have changed since {passed} was written; use {ALL}")


def hash_sources(source: Path) -> str:
    """Hash everything that tests run or read: all files but hidden ones."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        if not hidden and path.is_file():
            digest.update(f"{name}\0".encode() + files.read_regular(path))
    return digest.hexdigest()


def choose_parts(words: Sequence[str], passed: Path) -> list[list[str]]:
    """Build the words of each start of pytest."""
    if not words:
        return [[*part, f"--short={passed}"] for part in PARTS]
    if words == [ALL]:
        return [list(part) for part in PARTS]
    if words == [REST]:
        return [[*part, f"--rest={passed}"] for part in PARTS]
    return [list(words)]


def test_environment(work: WorkDirectory) -> dict[str, str]:
    """Return the environment of the tests: they use the MPIs and programs of the work directory.

    Each start of pytest and each worker keeps what it compiles: without that it compiles all tests anew.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    # As in a front door's own Python.
    foreign = ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return kept | {HOME: str(work.root), "PATH": path}
