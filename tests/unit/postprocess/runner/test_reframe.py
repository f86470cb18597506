"""How ReFrame is started: what it is told, and in which environment."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.processes import START_MODULE
from postprocess.model.session import Selection
from postprocess.runner import reframe as reframe_driver
from postprocess.runner.reframe import ReframeDriver
from site_configs.schema.reframe_request import ReframeRequest, read_request
from tests.support.request import ask

SHOW = """
import json, os, sys
print("a line")
print("an error", file=sys.stderr)
sys.stdout.buffer.write(b"no text: \\xff\\n")
print(json.dumps({"words": sys.argv[1:], "environment": dict(os.environ)}))
sys.exit(3)
"""


@pytest.fixture
def reframe(tmp_path: Path) -> ReframeDriver:
    roots = [tmp_path / "reviewed", tmp_path / "provisional"]
    return ReframeDriver(tmp_path / "source", tmp_path / "work", tmp_path / "session", roots, None)


@pytest.fixture
def shown(reframe: ReframeDriver, monkeypatch: pytest.MonkeyPatch):
    """Start a program in the place of ReFrame that shows what it was given."""
    reframe.source.mkdir()
    (reframe.source / "show_all.py").write_text(SHOW)
    monkeypatch.setattr(reframe_driver, "START", "show_all")

    def start(selection: Selection, action: str = "--run") -> dict:
        process = reframe.start(selection, action)
        lines = list(reframe.lines(process))
        assert process.returncode == 3
        assert sorted(lines[:-1]) == ["a line", "an error", "no text: \N{REPLACEMENT CHARACTER}"]
        return json.loads(lines[-1])

    return start


def test_nothing_of_the_users_reframe_settings_gets_through(shown, monkeypatch):
    monkeypatch.setenv("RFM_SYSTEM", "other")
    monkeypatch.setenv("RFM_CONFIG_FILES", "/other.py")
    monkeypatch.setenv("RFM_DRY_RUN", "1")
    monkeypatch.setenv("KEPT", "yes")
    environment = shown(Selection(Path("site.py")))["environment"]
    assert [name for name in environment if name.startswith("RFM_")] == []
    assert environment["KEPT"] == "yes"


def test_the_users_python_settings_reach_programs_but_not_reframe(shown, monkeypatch, tmp_path):
    """Another Python's packages, or a file with the name of a module, are likely on clusters."""
    for name in ("json", "statistics", "numpy", "show_all"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)\n")
    own = {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "error"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    environment = shown(Selection(Path("site.py")))["environment"]
    assert {name: environment[name] for name in own} == own


def test_reframe_is_told_the_session_and_the_choice(shown, reframe, monkeypatch):
    choice = {"routines": ["bcast"], "sizes": [8], "processes": [2]}
    set_env = {"mpich": {"NAME": "a 'value' with $everything"}}
    shell = {"UCX_TLS": "tcp"}
    selection = Selection(
        Path("site.py"),
        choice=choice,
        set_env=set_env,
        verbose={"UCX_LOG_LEVEL": "info"},
        oversubscribe=True,
        shell=shell,
    )
    environment = shown(selection)["environment"]
    assert environment["PLUMBLINE_SESSION"] == str(reframe.session)
    assert environment["PLUMBLINE_HOME"] == str(reframe.work)
    assert json.loads((reframe.session / "request.json").read_text()) == {
        "choice": choice,
        "set_env": set_env,
        "shell": {"UCX_TLS": "tcp"},
        "oversubscribe": True,
        "only_looking": False,
        "built": False,
        "references": [str(root) for root in reframe.reference_roots],
        "spack": "",
        "usable_nodes": {},
        "verbose": {"UCX_LOG_LEVEL": "info"},
    }
    folder = str(Path(sys.executable).parent)
    assert folder in environment["PATH"].removesuffix(os.environ["PATH"]).split(":")


def test_builds_call_cmake_itself_and_not_the_script_of_its_wheel(reframe: ReframeDriver) -> None:
    found = shutil.which("cmake", path=reframe.environment()["PATH"])
    assert found and Path(found).read_bytes()[:4] == b"\x7fELF"


def test_what_an_earlier_pass_or_session_chose_does_not_stay(shown, reframe, monkeypatch):
    ask(monkeypatch, oversubscribe=True, only_looking=True, choice={"routines": ["scan_sum"]})
    shown(Selection(Path("site.py"), choice={"routines": ["bcast"]}, oversubscribe=True))
    environment = shown(Selection(Path("site.py")))["environment"]
    assert environment["PLUMBLINE_SESSION"] == str(reframe.session)
    references = [str(root) for root in reframe.reference_roots]
    nothing = ReframeRequest(shell={}, references=references)
    assert read_request(reframe.session) == nothing


def test_everything_that_reframe_says_is_kept(shown, reframe):
    shown(Selection(Path("site.py")))
    shown(Selection(Path("site.py")))
    assert reframe.log.read_text().count("a line\n") == 2


def test_a_report_of_an_earlier_pass_is_not_taken_for_that_of_this_one(shown, reframe):
    """A dry run writes a report too, in which every test passes."""
    reframe.report.parent.mkdir(parents=True)
    reframe.report.write_text("{}")
    shown(Selection(Path("site.py")))
    assert not reframe.report.exists()


def test_the_command_line(reframe: ReframeDriver):
    words = reframe.command(Selection(Path("/my site.py"), launches=5), "--run")
    assert words[:2] == [sys.executable, "-I"]
    assert words[3:6] == [START_MODULE, str(reframe.source), "postprocess.runner.reframe_main"]
    assert words[-1] == "--run"
    assert {"--warn-as-error", "--keep-stage-files", "--exec-policy=serial"} < set(words)
    assert words[words.index("-C") + 1] == "/my site.py"
    assert words[words.index("--report-file") + 1] == str(reframe.report)
    assert "--repeat=5" in words
    assert "-p" not in words


NAMES = st.text("aA1_.+-", min_size=1, max_size=5)  #: so few letters that one is often a part of another


@given(st.lists(NAMES, min_size=1, max_size=3), NAMES)
def test_exactly_the_environments_that_were_asked_for_are_selected(chosen, other):
    reframe = ReframeDriver(Path("s"), Path("w"), Path("x"), [], None)
    words = reframe.command(Selection(Path("site.py"), environments=chosen), "--run")
    pattern = words[words.index("-p") + 1]
    for name in (*chosen, other):
        assert bool(re.search(pattern, name)) == (name in chosen)
