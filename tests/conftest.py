"""What all tests share: marks by folder, and a count of what was skipped and why in the last lines."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from postprocess.calibration.machine_load import BESIDE_OTHERS

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
