"""The short run and the rest are all tests together, none of them twice."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.conftest import pytest_terminal_summary
from tests.support.paths import ROOT

SHORT, LONG = "tests/unit/test_version.py", "tests/integration/simgrid/test_plan_limits.py"
MACHINE = "tests/unit/site_configs/test_simgrid.py"


def pytest_says(*words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    own = os.environ | {"PYTEST_ADDOPTS": ""}  # whatever the user of this run asks for
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=own)
    return done.stdout


def names(text: str) -> set[str]:
    return {line for line in text.splitlines() if "::" in line}


def test_what_the_short_run_leaves_out_is_the_rest(tmp_path: Path) -> None:
    """And tests that look at the machine's programs, whatever has passed: a pass elsewhere stands for none."""
    files, file = (SHORT, LONG, MACHINE), tmp_path / "passed"
    everything = names(pytest_says("--collect-only", *files))
    said = pytest_says(f"--short={file}", SHORT, LONG)
    passed = names(file.read_text())
    assert passed == {name for name in everything if name.startswith(SHORT)}
    left_out = {name for name in everything if name.startswith(LONG)}
    assert f"LEFT OUT {len(left_out)} tests that take long: ./plumbline test --all" in said
    elsewhere = {name for name in everything if name.startswith(MACHINE)}
    file.write_text("".join(f"{name}\n" for name in passed | elsewhere))
    rest = names(pytest_says("--collect-only", *files, f"--rest={file}"))
    assert rest == left_out | {
        f"{MACHINE}::{name}"
        for name in (
            "test_a_night_without_simgrid_ends_with_one_clear_line",
            "test_without_simgrid_the_site_file_is_looked_at_and_cannot_be_used",
        )
    }


def test_what_fails_after_it_has_passed_is_no_pass(tmp_path: Path) -> None:
    """As in the end of a fixture: pytest counts such a test twice."""
    fine, fails = (SimpleNamespace(nodeid=name) for name in ("fine", "fails"))
    reporter: Any = SimpleNamespace(
        stats={"passed": [fine, fails], "error": [fails]}, write_line=lambda *_, **__: None
    )
    file = tmp_path / "passed"
    config: Any = SimpleNamespace(getoption=lambda _: str(file), stash={})
    pytest_terminal_summary(reporter, config)
    assert file.read_text() == "fine\n"
