"""What the commands do that is theirs alone: the rest is tested where it is written."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.workdir import WorkDirectory
from postprocess.cli import request as asking
from postprocess.commands import calibrate, list_cases, nightly, report, setup, tests
from postprocess.judging.evaluate import evaluate_launches
from postprocess.main import build_parser, main
from postprocess.model.session import Request, Session
from postprocess.model.verdict import compute_exit_status
from postprocess.results.summary import summarise_session
from postprocess.setup.prepare import PreparedMachine
from site_configs.mpi import inventory
from site_configs.mpi.family import Mpi
from site_configs.mpi.inventory import Inventory, inventory_file
from site_configs.topology.machine import read_machine
from spack_envs.programs import BuiltBinary, write_program
from tests.support.factories.launch import book_of, finished
from tests.support.faults import plants
from tests.support.paths import ROOT

MPICH = Mpi("mpich-5_0_2", "mpich", "5.0.2", "MPICH", "wheel", "/p", "/p/mpicc", "/p/mpiexec")


pytestmark = pytest.mark.usefixtures("sigterm_handler")


@pytest.fixture
def command(work: WorkDirectory, capsys: pytest.CaptureFixture[str]):
    """Run a command line; its exit status, its output and its errors."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(str(work.source), str(work.root), words)
        return status, *capsys.readouterr()

    return run


def refused(ended: tuple[int, str, str]) -> str:
    """The one line of a command that was refused."""
    status, output, errors = ended
    assert (status, output) == (2, "")
    assert errors.startswith("plumbline: ")
    assert errors.count("\n") == 1
    return errors.removeprefix("plumbline: ").rstrip("\n")


# Refused before anything is set up.


@pytest.fixture
def unprepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be set up, and nothing measured."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("began although it was to be refused")

    monkeypatch.setattr(setup, "prepare_machine", fail)
    monkeypatch.setattr(nightly, "run_nightly", fail)
    monkeypatch.setattr(calibrate, "run_calibration", fail)
    monkeypatch.setattr(list_cases, "list_cases", fail)


@pytest.mark.usefixtures("unprepared")
@pytest.mark.parametrize("name", ["nightly", "run", "calibrate", "list", "setup", "doctor"])
def test_a_site_that_is_not_there_is_wrong_use(command, name: str):
    assert refused(command(name, "--site", "nowhere")).startswith("--site nowhere: no file ")


@pytest.mark.usefixtures("unprepared")
@pytest.mark.parametrize("place", ["none/summary.json", "directory"])
def test_a_summary_that_cannot_be_written_is_known_before_measuring(command, tmp_path, place):
    (tmp_path / "directory").mkdir()
    line = refused(command("nightly", "--json", str(tmp_path / place)))
    assert line.startswith(f"--json {tmp_path / place}: ")
    assert line.endswith(("; choose another file", "; name a file"))


@pytest.mark.usefixtures("unprepared")
def test_references_are_looked_for_only_where_there_is_a_directory(command, tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("nothing", "file"):
        line = refused(command("run", "--references", str(tmp_path / name)))
        assert line == f"--references {tmp_path / name}: is not a directory; name one that is there"


def test_reframe_finds_references_that_were_named_from_here(work, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert asked(work, "run", "--references", "mine").references == tmp_path / "mine"


@pytest.mark.usefixtures("unprepared")
def test_a_variable_for_an_environment_that_does_not_run_is_wrong_use(command):
    line = refused(command("run", "--environment", "a,b", "--set-env", "c:X=1"))
    assert line == "--set-env c: is not among those of --environment"


def test_a_work_directory_that_is_in_use_is_named_with_its_holder(command, work):
    with work.held():
        line = refused(command("nightly"))
    assert line.startswith(f"{work.root}: in use by process {os.getpid()}; ")


@pytest.mark.parametrize("words", [["nightly"], ["setup"], ["list"], ["test"]])
def test_a_work_directory_that_cannot_be_is_one_line(words, tmp_path: Path, capsys):
    (tmp_path / "file").write_text("")
    status = main(str(ROOT), str(tmp_path / "file" / "home"), words)
    assert str(tmp_path / "file") in refused((status, *capsys.readouterr()))


def test_looking_before_measuring_leaves_no_file(command, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(nightly, "run_nightly", lambda *_: 0)
    path, link = tmp_path / "summary.json", tmp_path / "link"
    link.symlink_to(path)
    for each in (path, link):
        assert command("nightly", "--json", str(each))[0] == 0
        assert not path.exists() and link.is_symlink()


# What is asked of a session.


def asked(work: WorkDirectory, *words: str) -> Request:
    return asking.build_request(work, build_parser().parse_args(words))


def test_a_choice_is_told_in_the_words_of_the_checks(work: WorkDirectory):
    words = ["--routine", "bcast", "--bytes", "8", "--processes", "2", "--trials", "5"]
    words += ["--cache", "warm", "--sync", "window", "--time-limit", "60"]
    request = asked(work, "run", *words, "--strict")
    expected = {"routines": ["bcast"], "sizes": [8], "processes": [2], "trials": 5, "strict": True}
    expected |= {"cache": "warm", "sync": "window", "time_limit": "60s"}
    expected |= {"as_references": True}  # of rounds, which are not named here
    assert request.strict and request.selection.choice == expected


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        (["nightly"], "nightly"),
        (["nightly", "--program", "mpicost", "--routine", "bcast", "--strict"], "nightly"),
        (["nightly", "--references", "mine"], "run"),
        (["nightly", "--set-env", "a:X=1"], "run"),
        (["nightly", "--oversubscribe"], "run"),
        (["run"], "run"),
        (["calibrate", "--oversubscribe"], "calibrate"),
    ],
)
def test_a_night_that_differs_from_others_by_an_option_is_stored_as_a_run(
    work: WorkDirectory, tmp_path: Path, monkeypatch, words: list[str], mode: str
):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert asked(work, *words).mode == mode


def test_the_variables_of_the_shell_that_steer_an_mpi_are_taken(work: WorkDirectory, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    assert asked(work, "nightly").selection.shell == {"OMPI_MCA_btl": "^ofi"}


def test_variables_are_gathered_by_environment(work: WorkDirectory):
    words = ["--set-env", "a:X=1", "--set-env", "b:X=2", "--set-env", "a:Y=3"]
    expected = {"a": {"X": "1", "Y": "3"}, "b": {"X": "2"}}
    assert asked(work, "run", *words).selection.set_env == expected


# where


@pytest.fixture
def known(work: WorkDirectory) -> None:
    """An inventory with one MPI."""
    inventory.save_inventory(Inventory(read_machine(), (MPICH,), ()), inventory_file(work.root))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("program", "path"), [("mpicc", "/p/mpicc"), ("mpiexec", "/p/mpiexec")])
def test_where_a_wrapper_is(command, program: str, path: str):
    assert command("where", program, "--environment", "mpich-5_0_2") == (0, path + "\n", "")


def test_where_the_program_is(command, work: WorkDirectory):
    write_program(work.root, BuiltBinary("mpich-5_0_2", "mpicost", "/built/mpicost", "cmake"))
    ended = command("where", "mpicost", "--environment", "mpich-5_0_2")
    assert ended == (0, "/built/mpicost\n", "")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("program", "environment", "said"),
    [
        ("mpicc", "a\nb", "--environment a\\nb: is no environment here; choose from mpich-5_0_2"),
        ("mpicost", "mpich-5_0_2", "./plumbline run --environment mpich-5_0_2 builds it"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is_or_the_fix(command, program, environment, said):
    assert refused(command("where", program, "--environment", environment)).endswith(said)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"schema": 1}', '{"schema": 0}'])
def test_without_an_inventory_the_fix_is_named(command, work: WorkDirectory, text: str | None):
    if text is not None:
        work.root.mkdir()
        inventory_file(work.root).write_text(text)
    line = refused(command("where", "mpicc", "--environment", "mpich-5_0_2"))
    assert line.startswith(f"{inventory_file(work.root)}: no inventory of this machine: ")


# report


def stored(work: WorkDirectory, factor: float = 1.0) -> Path:
    """A session that came to a summary."""
    directory = work.sessions / "20261121T090000Z-1"
    done = finished(directory)
    results = evaluate_launches([done], book_of(done, factor), "local")
    session = Session(directory, "nightly", "local", ["./plumbline", "nightly"], False)
    status = compute_exit_status(results, strict=False)
    summary = summarise_session(session, "CMake (no Spack)", (), [done], results, status, [], {})
    write_summary(directory / "summary.json", summary.to_dict())
    return directory


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Sessions of which a report was built."""
    sessions: list[Path] = []

    def build(directory: Path, *_: object) -> tuple[Path, Path]:
        sessions.append(directory)
        return directory / "report.md", directory / "report.html"

    monkeypatch.setattr(report, "build_report", build)
    monkeypatch.setattr(report, "read_sessions", lambda *_: pl.DataFrame())
    return sessions


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (10.0, 0), (0.1, 1)])
@pytest.mark.parametrize("name", [[], ["20261121T090000Z-1"]])
def test_a_report_is_built_again_and_ends_as_its_session_did(command, work, built, factor, status, name):
    directory = stored(work, factor)
    ended = command("report", *name)
    assert (ended[0], ended[2]) == (status, "")
    assert built == [directory]
    assert ended[1].endswith(f"{directory}/report.md\n{directory}/report.html\n")


@pytest.mark.parametrize("name", [[], ["20261121T090000Z-1"], ["../.."], ["x" * 300]])
def test_a_session_without_a_summary_is_refused(command, work, built, name):
    (work.sessions / "20261121T090000Z-1").mkdir(parents=True)
    assert refused(command("report", *name))
    assert built == []


def test_a_damaged_summary_is_refused(command, work, built):
    path = stored(work) / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"counts": {"pass": 99}}))
    assert refused(command("report")).startswith(f"{path}: counts: ")
    assert built == []


def test_a_session_whose_trials_are_gone_is_refused(command, work):
    stored(work)
    assert refused(command("report")).startswith(f"{work.store}/20261121T090000Z-1.parquet: ")


# setup and test


def test_setup_asks_every_mpi_again_and_shows_the_page(command, work, monkeypatch):
    calls: list[tuple] = []

    def prepare(work_, site, families, progress, fresh=False, mirror=None):
        calls.append((work_.root, site, families, fresh))
        return PreparedMachine(Inventory(read_machine(), (replace(MPICH, name="seen"),), ()), None)

    monkeypatch.setattr(setup, "prepare_machine", prepare)
    status, output, errors = command("setup", "--mpis", "mpich")
    assert (status, errors) == (0, "")
    assert calls == [(work.root, "local", ["mpich"], True)]
    assert "seen (wheel) /p/mpicc" in output


@pytest.mark.parametrize(("name", "status"), [("setup", 1), ("doctor", 0)])
def test_setup_builds_and_fails_if_something_does_not_build(command, monkeypatch, name, status):
    monkeypatch.setattr(setup, "prepare_machine", lambda *_: PreparedMachine(None, None))
    monkeypatch.setattr(setup, "build_programs", lambda *_: 2)
    ended, output, errors = command(name)
    assert (ended, errors) == (status, "")
    assert ("2 program(s) could not be built" in output) == bool(status)


def test_the_tests_run_in_the_work_directory_that_was_set_up(command, work, monkeypatch):
    calls: list[tuple] = []

    def run(words, check, cwd, env):
        calls.append((words, cwd, env))
        return SimpleNamespace(returncode=5)

    monkeypatch.setattr(tests, "prepare_machine", lambda *_, **__: None)
    monkeypatch.setattr(tests.subprocess, "run", run)
    assert command("test", "-k", "one and two")[0] == 5
    ((words, where, environment),) = calls
    assert words == [sys.executable, "-m", "pytest", "-k", "one and two"]
    assert where == ROOT
    assert environment["PLUMBLINE_HOME"] == str(work.root)
    assert environment["PATH"].split(":")[0] == str(Path(sys.executable).parent)


def test_the_rest_is_what_the_short_run_has_not_passed(command, work, monkeypatch):
    """And the long tests are no part of that one, which needs no Spack either."""
    calls: list[list[str]] = []
    spack: list[bool] = []

    def run(words, **_):
        calls.append(words[3:])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(tests, "prepare_machine", lambda *_, with_spack: spack.append(with_spack))
    monkeypatch.setattr(tests.subprocess, "run", run)
    work.root.mkdir(exist_ok=True)
    passed = work.root / tests.PASSED
    status, _, errors = command("test", "--rest")
    assert (status, calls) == (2, [])
    assert f"{passed} is missing; use --all" in errors
    passed.write_text("of an earlier run\n")
    assert command("test")[0] == 0
    (sources,) = passed.read_text().splitlines()
    passed.write_text("of other sources\n")
    assert command("test", "--rest")[0] == 2
    passed.write_text(f"{sources}\n")
    assert command("test", "--rest")[0] == command("test", "--all")[0] == 0
    parts = [list(part) for part in tests.PARTS]
    assert calls == [
        *([*part, f"--short={passed}"] for part in parts),
        *([*part, f"--rest={passed}"] for part in parts),
        *parts,
    ]
    assert spack == [False, True, True]


NOTHING = {"program": [], "trials": None, "iterations": None, "cache": None}


@plants("use", "an option that no chosen program has",
        "`--trials`, `--iterations` or `--cache`", "", 2, "only")  # fmt: skip
@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"program": ["osu"], "trials": 5}, "--trials 5: is for mpicost and kernels only, and --program osu "),
        ({"program": ["mpicost"], "iterations": 7}, "--iterations 7: is for osu and imb only, "),
        ({"program": ["osu", "imb"], "cache": "flush"}, "--cache flush: is for mpicost only, "),
        ({"program": ["mpicost", "osu"], "cache": "rotate"}, "--cache rotate: is for imb only, "),
    ],
)
def test_an_option_that_no_chosen_program_has_is_refused(chosen: dict, said: str, declared):
    with declared.raises(UsageError) as refused:
        asking.check_options_take_effect(Namespace(**NOTHING | chosen))
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    "chosen",
    [
        {"trials": 5, "iterations": 7, "cache": "flush"},
        {"program": ["mpicost", "imb"], "trials": 5, "iterations": 7, "cache": "rotate"},
        {"program": ["osu"], "cache": "warm", "iterations": 7},
    ],
)
def test_an_option_that_one_of_them_has_is_not(chosen: dict):
    asking.check_options_take_effect(Namespace(**NOTHING | chosen))


def test_the_line_of_such_an_option_ends_the_command(command):
    assert refused(command("list", "--program", "osu", "--trials", "5")).startswith("--trials 5")
