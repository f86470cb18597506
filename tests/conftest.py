"""What all tests share: fixtures, marks by folder; skipped tests are counted with their reason at the end."""

from __future__ import annotations

import io
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from rich.console import Console

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.machine_load import BESIDE_OTHERS
from tests.support.paths import ROOT

# Tests run beside each other: a calibration of theirs, in commands too, does not wait for a quiet machine.
os.environ[BESIDE_OTHERS] = "1"

# A busy machine is slow, and that is no fault of what is tested.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")


#: What the tests of a folder need; those of the other folders need neither MPI nor Spack nor SimGrid.
NEEDS = {
    "tests/integration/mpi": ("mpi",),
    "tests/integration/mpicost": ("mpi",),
    "tests/integration/simgrid": ("simgrid",),
    "tests/integration/slurm": ("mpi",),
    "tests/integration/spack": ("mpi", "spack"),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with what its folder needs, before ``-m`` chooses among them."""
    for item in items:
        folder = Path(item.path).parent.relative_to(config.rootpath).as_posix()
        for mark in NEEDS.get(folder, ()):
            item.add_marker(mark)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped, and why, even where ``-ra`` is off."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"SKIPPED {number} tests: {reason}", yellow=True, bold=True)


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    """An empty work directory beside this source."""
    return WorkDirectory(tmp_path / "home", ROOT)


@pytest.fixture
def progress() -> Progress:
    """What a person is told goes into ``progress.console.file``, no line of it wrapped."""
    return Progress(Console(file=io.StringIO(), width=10_000))


@pytest.fixture
def sigterm_handler() -> Iterator[None]:
    """``main`` handles SIGTERM for its process, which here is that of the tests."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
