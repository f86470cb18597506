"""A compiler wrapper is asked what it is; whatever it does, there is an answer of one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from site_configs.mpi import probe as module
from site_configs.mpi.family import Mpi, Unusable
from site_configs.mpi.probe import Candidate, probe_wrapper
from tests.support.fake_mpis import COMPILES, MPICH, OPENMPI, all_end, install, says, script


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIME_LIMIT", 20)


def candidate(mpicc: Path, **more) -> Candidate:
    return Candidate(mpicc, mpicc.with_name("mpiexec"), "path", **more)


def unusable(mpicc: Path, **more) -> str:
    """Why a wrapper is not usable."""
    found = probe_wrapper(candidate(mpicc, **more))
    assert isinstance(found, Unusable)
    assert (found.mpicc, found.origin) == (str(mpicc), "path")
    assert "\n" not in found.problem
    assert len(found.problem) < 700
    return found.problem


def test_a_wrapper_that_works_is_an_mpi(tmp_path: Path):
    mpicc = install(tmp_path / "mpi")
    assert probe_wrapper(candidate(mpicc)) == Mpi(
        name="mpich-5_0_2",
        family="mpich",
        version="5.0.2",
        library="MPICH Version: 5.0.2 MPICH Release date: today",
        origin="path",
        prefix=str(tmp_path / "mpi"),
        mpicc=str(mpicc),
        mpiexec=str(mpicc.with_name("mpiexec")),
        env={"HYDRA_BINDING": "core"},
    )


def test_the_program_is_compiled_from_a_source_and_started_twice(tmp_path: Path):
    log = tmp_path / "log"
    compiles = f'head -2 "$1" >> {log}; {COMPILES}'
    mpicc = install(tmp_path, compiles=compiles, starts=f'ls "$3" && echo "$1 $2" >> {log}; exit 3')
    assert "exit code 3" in unusable(mpicc)
    assert log.read_text() == "\n#include <mpi.h>\n-n 2\n"


def test_what_a_module_sets_is_there_and_is_kept(tmp_path: Path):
    mpicc = install(tmp_path, starts=says("$SETTING v5.0.1").replace("'", '"'))
    found = probe_wrapper(candidate(mpicc, module="m/1", env=(("SETTING", "Open MPI"),)))
    assert (found.family, found.version, found.module) == ("openmpi", "5.0.1", "m/1")
    assert found.env["SETTING"] == "Open MPI"


def test_the_users_variables_are_there_and_are_not_kept(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SETTING", "MPICH Version:")
    mpicc = install(tmp_path, starts=says("$SETTING 4.3.0").replace("'", '"'))
    found = probe_wrapper(candidate(mpicc))
    assert found.version == "4.3.0"
    assert "SETTING" not in found.env


def test_two_processes_may_share_a_core_while_asking_and_not_later(tmp_path: Path):
    log = tmp_path / "log"
    found = probe_wrapper(candidate(install(tmp_path, OPENMPI, starts=f"env > {log}; {says(OPENMPI)}")))
    assert "OMPI_MCA_rmaps_base_oversubscribe=1" in log.read_text()
    assert not any("oversubscribe" in name for name in found.env)


@pytest.mark.parametrize(
    ("compiles", "starts", "problem"),
    [
        ("echo no gcc >&2; exit 1", None, "compiling failed with exit code 1: no gcc"),
        ("echo no gcc; exit 77", None, "compiling failed with exit code 77: no gcc"),
        ("kill -9 $$", None, "compiling failed with exit code -9: "),
        (COMPILES, "printf 'one\\ntwo\\n' >&2; exit 1", "starting failed with exit code 1: one two"),
        (COMPILES, "printf '\\377\\376' >&2; exit 1", "starting failed with exit code 1: \ufffd\ufffd"),
        (COMPILES, says("HPE MPT 2.25"), "unknown MPI library: HPE MPT 2.25"),
        (COMPILES, says(""), "unknown MPI library: "),
    ],
)
def test_a_wrapper_that_fails_says_at_which_step(tmp_path, compiles, starts, problem):
    assert unusable(install(tmp_path, compiles=compiles, starts=starts)) == problem


@pytest.mark.parametrize(
    ("starts", "shown"),
    [
        (says(MPICH, "world of 1\\nworld of 1"), "world of 1"),
        (says(MPICH, "Hello!\\nworld of 2"), "Hello!"),
        ("exit 0", "no output"),
        ("printf '\\033[31mx\\r\\ny\\n'", "\x1b[31mx"),
        ("yes | head -c 100000 | tr -d '\\n'", "y" * 80),
    ],
)
def test_a_launcher_of_another_mpi_is_seen(tmp_path: Path, starts: str, shown: str):
    """It starts two worlds of one process, or prints nonsense."""
    mpicc = install(tmp_path, starts=starts)
    mpiexec = mpicc.with_name("mpiexec")
    assert unusable(mpicc) == f"{mpiexec} does not start programs of {mpicc}: {shown}"


def test_a_launcher_that_is_not_there_is_named(tmp_path: Path):
    mpicc = install(tmp_path)
    mpicc.with_name("mpiexec").unlink()
    assert unusable(mpicc) == f"starting: No such file or directory: {tmp_path}/bin/mpiexec"


def test_a_wrapper_that_may_not_be_run_is_named(tmp_path: Path):
    mpicc = tmp_path / "mpicc"
    mpicc.mkdir()
    assert unusable(mpicc) == f"compiling: Permission denied: {mpicc}"


@pytest.mark.parametrize(
    "hangs", ["sleep 600", "sleep 600 & wait", "trap '' TERM; sleep 600", "sleep 600 & exit 0"]
)
@pytest.mark.parametrize("step", ["compiling", "starting"])
def test_a_wrapper_that_hangs_is_ended_with_all_it_started(tmp_path, monkeypatch, hangs, step):
    monkeypatch.setattr(module, "TIME_LIMIT", 0.3)
    bodies = {"compiling": {"compiles": hangs}, "starting": {"starts": hangs}}[step]
    mpicc = install(tmp_path, **bodies)
    mark = ("PLUMBLINE_TEST_MARK", str(tmp_path))
    assert unusable(mpicc, env=(mark,)) == f"{step} did not end within 0.3 s"
    assert all_end(*mark)


def test_a_launcher_that_asks_a_question_gets_no_answer(tmp_path: Path):
    """It must not wait for the user, nor eat what the user types for another program."""
    mpicc = install(tmp_path, starts=f"cat > {tmp_path / 'answer'}; {says(MPICH)}")
    reader, writer = os.pipe()
    before = os.dup(0)
    try:
        os.dup2(reader, 0)
        assert isinstance(probe_wrapper(candidate(mpicc)), Mpi)
    finally:
        os.dup2(before, 0)
        for each in (reader, writer, before):
            os.close(each)
    assert (tmp_path / "answer").read_text() == ""


def test_nothing_is_left_in_the_directory_for_temporary_files(tmp_path: Path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(module.tempfile, "tempdir", str(scratch))
    probe_wrapper(candidate(install(tmp_path)))
    probe_wrapper(candidate(script(tmp_path / "mpicc", "exit 1")))
    assert list(scratch.iterdir()) == []


def test_the_prefix_is_above_the_wrapper_unless_it_is_known(tmp_path: Path):
    assert candidate(tmp_path / "bin" / "mpicc").root == tmp_path
    assert candidate(tmp_path / "bin" / "mpicc", prefix=Path("/opt")).root == Path("/opt")
