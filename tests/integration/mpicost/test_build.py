"""The build of mpicost: no warnings, no complaints of the sanitizers, a hash that follows the sources."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.mpi import environment_with, of_family
from tests.support.mpicost import BUILD_LOG, FAMILIES, SUITE, TINY, Program, build, program, read


@pytest.mark.parametrize("family", FAMILIES)
def test_builds_without_warnings(family: str) -> None:
    """With the compiler of the MPI, as the tests use it."""
    said = (program(family).build / BUILD_LOG).read_text()
    assert "timing.c.o" in said and not re.search(r"warning: .*\[-W", said), said


@pytest.mark.skipif(not shutil.which("clang"), reason="no clang (Debian: apt-get install clang)")
@pytest.mark.parametrize("family", FAMILIES)
def test_clang_builds_without_warnings(family: str, tmp_path: Path) -> None:
    options = ("-DCMAKE_C_COMPILER=clang", "-DMPICOST_WERROR=ON", "-DCMAKE_BUILD_TYPE=Debug")
    directory = build(of_family(family), tmp_path, *options)
    assert Program(of_family(family), directory).run(1, "--version").status == 0


def test_the_warnings_that_count_are_on() -> None:
    text = (SUITE / "CMakeLists.txt").read_text()
    assert "-Wall -Wextra -Wconversion -Wshadow" in text
    assert "C_STANDARD 11" in text


@pytest.mark.long
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """With MPICH: the sources are the same for every MPI, and Open MPI has leaks of its own."""
    mpi, options = of_family("mpich"), ("-DMPICOST_SANITIZE=ON", "-DMPICOST_TESTS=OFF")
    sane = Program(mpi, build(mpi, tmp_path, *options, targets=["mpicost"]))
    variables = {"ASAN_OPTIONS": "detect_leaks=1"}
    file = tmp_path / "out.jsonl"
    options = (*TINY, "--bytes", "0,8,10000", "--trials", "3", "--output", str(file))
    for processes in (1, 2, 3, 5):
        ended = sane.run(processes, *options, variables=variables)
        assert ended.status == 0
        assert read(file).end["verified"]
    pairs = ("--routine", "tournament:8:10000,pingpong:8", "--trials", "3", "--output", str(file))
    for processes in (2, 5):
        assert sane.run(processes, *TINY, *pairs, variables=variables).status == 0
    for sync in ("barrier", "window"):
        ended = sane.run(2, *options, "--sync", sync, variables=variables)
        assert ended.status in ((0, 4) if sync == "window" else (0,))
    for wrong in (("--trials", "x"), ("--memory-limit", "1"), ("--output", "/dev/full")):
        ended = sane.run(2, *TINY, "--bytes", "8", "--trials", "2", *wrong, variables=variables)
        assert ended.status in (2, 3)


def test_installs_a_program_that_runs(tmp_path: Path) -> None:
    mpi, built = of_family("openmpi"), program("openmpi").build
    install = ["cmake", "--install", str(built), "--prefix", str(tmp_path / "prefix")]
    subprocess.run(install, check=True, capture_output=True)
    done = subprocess.run(
        [tmp_path / "prefix" / "bin" / "mpicost", "--version"],
        env=environment_with(mpi),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Open MPI" in done.stdout


def hash_of(directory: Path) -> str:
    """The source hash that the built program states."""
    mpi = of_family("mpich")
    make = ["cmake", "--build", str(directory), "--target", "mpicost"]
    subprocess.run(make, env=environment_with(mpi), check=True, capture_output=True)
    version = Program(mpi, directory).run(1, "--version").output
    return re.search(r"source hash (\w{16})", version).group(1)


@pytest.mark.long
def test_source_hash_follows_the_sources_and_nothing_else(tmp_path: Path) -> None:
    copy, directory = tmp_path / "copy", tmp_path / "build"
    shutil.copytree(SUITE, copy)
    mpi = of_family("mpich")
    configure = ["cmake", "-S", str(copy), "-B", str(directory), f"-DMPI_C_COMPILER={mpi.mpicc}"]
    subprocess.run(configure, env=environment_with(mpi), check=True, capture_output=True)
    original = hash_of(directory)
    assert original == hash_of(program("mpich").build)
    (copy / "README.md").write_text("other words\n")
    assert hash_of(directory) == original
    source = copy / "src" / "timing.c"
    source.write_text(source.read_text() + "/* changed */\n")
    changed = hash_of(directory)
    assert changed != original
    (copy / "src" / "added.h").write_text("\n")
    assert hash_of(directory) not in (original, changed)
