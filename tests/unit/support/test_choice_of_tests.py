"""The short run and the rest are all tests together, none of them twice."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.conftest import pytest_terminal_summary
from tests.support.paths import ROOT

SHORT, LONG = "tests/unit/test_version.py", "tests/integration/simgrid/test_plan_limits.py"


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


def test_a_pass_on_another_machine_stands_for_none(tmp_path: Path) -> None:
    """Tests that look at the machine's programs are in the rest, whatever has passed."""
    file, path = tmp_path / "passed", "tests/unit/site_configs/test_simgrid.py"
    file.write_text(pytest_says("--collect-only", path))
    rest = names(pytest_says("--collect-only", path, f"--rest={file}"))
    assert {name.partition("::")[2] for name in rest} == {
        "test_a_night_without_simgrid_ends_with_one_clear_line",
        "test_without_simgrid_the_site_file_is_looked_at_and_cannot_be_used",
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
