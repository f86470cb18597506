"""The short run and the rest are all tests together, none of them twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

SHORT, LONG = "tests/unit/support/test_flushing.py", "tests/statistical/test_verdict_error_rates.py"


def pytest_says(*words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, SHORT, LONG]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def names(text: str) -> set[str]:
    return {line for line in text.splitlines() if "::" in line}


def test_what_the_short_run_leaves_out_is_the_rest(tmp_path: Path) -> None:
    everything, file = names(pytest_says("--collect-only")), tmp_path / "passed"
    said = pytest_says(f"--short={file}")
    passed = names(file.read_text())
    assert passed == {name for name in everything if name.startswith(SHORT)}
    left_out = everything - passed
    assert f"LEFT OUT {len(left_out)} tests that take long: ./plumbline test --all" in said
    assert names(pytest_says("--collect-only", f"--rest={file}")) == left_out
