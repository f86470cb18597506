"""What all tests share: nothing is skipped without a count and its reason in the last lines."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import settings

from postprocess.calibration.machine_load import BESIDE_OTHERS

# Tests run beside each other: a calibration of theirs, in commands too, does not wait for a quiet machine.
os.environ[BESIDE_OTHERS] = "1"

# A busy machine is slow, and that is no fault of what is tested.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped, and why, even where ``-ra`` is off."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"SKIPPED {number} tests: {reason}", yellow=True, bold=True)
