"""What a program is built with is known by its files, however old they are."""

import os
import subprocess
from pathlib import Path

import pytest

from postprocess.base.sanitize import quote_word
from reframe_checks.common.build import choose_mpi, compare_files, keep_files, print_state
from site_configs.mpi.layers import LIBRARY
from site_configs.schema.facts import EnvironmentFacts

#: A wrapper whose compiler names a header, libraries, files that it removes, and by its path what it compiles.
WRAPPER = """#!/bin/sh
printf '%s\\n' "$PWD/mpi_files.c"
case "$1" in
-M) printf 'mpi_files.o: mpi_files.c \\\\\\n {0}/include/mpi.h \\\\\\n /gone/by/now.h\\n' ;;
*) printf '/tmp/gone.o\\n(%s)member.o\\n%s\\n' {0}/lib/libc.a {0}/lib/libmpi.so ;;
esac
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An MPI with a wrapper that says what compiler and linker would say."""
    folder = tmp_path / "mpi"
    for name in ("include/mpi.h", "lib/libmpi.so", f"lib/{LIBRARY}", "include/mpi_abi.h", "bin/mpicc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}: one")
    (folder / "bin" / "mpicc").write_text(WRAPPER.format(quote_word(str(folder))))
    (folder / "bin" / "mpicc").chmod(0o755)
    return folder


def read_state(tmp_path: Path, facts: EnvironmentFacts) -> dict[str, str]:
    """Run the commands in a shell that stops at the first failure, as ReFrame's does; state by path."""
    build, stage = tmp_path / "build", tmp_path / "stage"
    for folder in (build, stage):
        folder.mkdir(exist_ok=True)
    command = print_state(choose_mpi(facts, build, "MPI_C_COMPILER").files)
    script = f"trap 'exit 9' ERR\n{command}\n"
    done = subprocess.run(["bash", "-c", script], cwd=stage, capture_output=True, text=True, check=True)
    return dict((line.rsplit(" ", 2)[0], line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", ["include/mpi.h", "lib/libmpi.so", "bin/mpicc"])
def test_an_mpi_that_is_replaced_by_older_files_is_another(tmp_path, prefix: Path, name: str):
    facts = EnvironmentFacts(compilers=(str(prefix / "bin" / "mpicc"),))
    before = read_state(tmp_path, facts)
    expected = {str(prefix / each) for each in ("include/mpi.h", "lib/libmpi.so", "bin/mpicc")}
    assert before.keys() == expected
    assert read_state(tmp_path, facts) == before
    os.utime(prefix / name, (1_500_000_000, 1_500_000_000))  # of the same size
    after = read_state(tmp_path, facts)
    assert {path for path in before if after[path] != before[path]} == {str(prefix / name)}


def test_a_build_for_the_standard_abi_is_known_by_its_library_and_header(tmp_path: Path, prefix: Path):
    facts = EnvironmentFacts(standard_abi=str(prefix / "lib"))
    own = {str(prefix / "lib" / LIBRARY), f"{prefix}/lib/../include/mpi_abi.h"}
    assert read_state(tmp_path, facts).keys() == own
    (tmp_path / "build" / "linked_to").write_text("/sw/other/libmpi_abi.so.1\n")
    assert not read_state(tmp_path, facts)  # of the MPI that it stays linked to


def test_a_container_is_known_by_its_image(tmp_path: Path):
    image = tmp_path / "image.sif"
    image.write_text("one")
    facts = EnvironmentFacts(container=("apptainer", "exec", str(image)), compilers=("/opt/mpi/bin/mpicc",))
    assert read_state(tmp_path, facts).keys() == {str(image)}


def test_a_compiler_that_tells_nothing_stops_no_build(tmp_path: Path):
    assert not read_state(tmp_path, EnvironmentFacts(compilers=("/nowhere/mpicc",)))


def compare(tmp_path: Path, prefix: Path, user: str) -> bool:
    """Whether the folder of a build outlives a look at its MPI; the compiler of a user may tell other files."""
    folder, stage = tmp_path / "shared", tmp_path / "stage"
    stage.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    (folder / "program").touch()
    own = f"printf '%s\\n' {quote_word(str(prefix / 'include/mpi.h'))} {quote_word(str(prefix / user))}"
    if not (prefix / user).exists():  # a touch would make it another file once a second has gone by
        (prefix / user).touch()
    lines = ["trap 'exit 9' ERR", *compare_files(own, folder, user), *keep_files(folder, user)]
    subprocess.run(["bash", "-c", "\n".join(lines)], cwd=stage, check=True)
    return (folder / "program").exists()


def test_environments_that_share_a_build_do_not_empty_it_in_turn(tmp_path: Path, prefix: Path):
    """Each knows the MPI by files of its own; with one that was replaced is built once, and not by each."""
    users = ("sim.torus.mpich", "sim.torus.ompi")
    assert [compare(tmp_path, prefix, user) for user in users * 2] == [True] * 4
    os.utime(prefix / "include" / "mpi.h", (1_500_000_000, 1_500_000_000))
    assert [compare(tmp_path, prefix, user) for user in users * 2] == [False, True, True, True]
