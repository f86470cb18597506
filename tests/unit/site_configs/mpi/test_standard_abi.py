"""MPIs by their standard ABI: taken only if a program of it ran, and said that it ran on the right MPI."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from site_configs.mpi import inventory
from site_configs.mpi.family import Mpi, Unusable, is_of_release, name_distinctly
from site_configs.mpi.inventory import collect_inventory, find_release, load_inventory
from site_configs.mpi.layers import HEADER, LIBRARY, adopt_standard_abi, build_launch_variables
from tests.support.fake_mpis import COMPILES, MPICH, OPENMPI, install, says, script
from tests.support.faults import Declared, plants

SAYS = "MPICH Version: 5.0.2 MPICH Release date: today"
WORD = "mpich+abi"


@pytest.fixture(autouse=True)
def nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that "compiles", and neither this machine's MPIs nor its modules."""
    script(tmp_path / "cc" / "cc", COMPILES)
    monkeypatch.setenv("PATH", str(tmp_path / "cc"))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(inventory, "find_in_modules", lambda: [])


def with_abi(prefix: Path) -> Path:
    """Put the files of the standard ABI into an installation; the folder of the library."""
    for path in (prefix / "lib" / LIBRARY, prefix / "include" / HEADER):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return prefix / "lib"


@pytest.fixture
def mpi(tmp_path: Path) -> Mpi:
    prefix = tmp_path / "mpich"
    mpicc = install(prefix, MPICH)
    with_abi(prefix)
    return Mpi("a", "mpich", "5.0.2", SAYS, "path", str(prefix), str(mpicc), str(mpicc.with_name("mpiexec")))


def problem(mpi: Mpi) -> str:
    found = adopt_standard_abi(mpi, WORD)
    assert isinstance(found, Unusable) and found.mpicc == WORD and "\n" not in found.problem
    return found.problem


def test_an_mpi_that_runs_a_program_of_the_standard_abi_is_taken(mpi: Mpi):
    assert adopt_standard_abi(mpi, WORD) == replace(mpi, standard_abi=f"{mpi.prefix}/lib")


def test_it_is_started_as_it_will_be_for_measuring(mpi: Mpi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/else")
    script(Path(mpi.mpiexec), f'test "$3 $4" = "env LD_LIBRARY_PATH={mpi.prefix}/lib:/else" && {says(MPICH)}')
    assert adopt_standard_abi(mpi, WORD).standard_abi == f"{mpi.prefix}/lib"


@plants("builds", "an MPI without the standard ABI", "an MPI asked for as mpich+abi", "", 2,
        "it has no standard ABI of MPI: no libmpi_abi.so.1 below …/lib")  # fmt: skip
def test_an_mpi_without_the_library_has_no_standard_abi(mpi: Mpi, declared: Declared):
    Path(mpi.prefix, "lib", LIBRARY).unlink()
    declared.check((), 2, [problem(mpi)])


def test_an_mpi_without_the_header_is_not_usable(mpi: Mpi):
    Path(mpi.prefix, "include", HEADER).unlink()
    assert problem(mpi).endswith(f"there is no {HEADER} for {mpi.prefix}/lib/{LIBRARY}")


@pytest.mark.parametrize(
    ("starts", "why"),
    [
        (says("Intel(R) MPI Library 2021.19"), "is of another MPI: Intel(R) MPI Library 2021.19"),
        (says("MPICH Version: 5.0.3"), "is of another MPI: MPICH Version: 5.0.3"),
        (says(MPICH, "world of 1"), "does not start programs of libmpi_abi.so.1: world of 1"),
        ("echo no symbol >&2; exit 127", "starting failed with exit code 127: no symbol"),
    ],
)
def test_a_library_that_does_not_prove_its_mpi_is_refused(mpi: Mpi, starts: str, why: str):
    script(Path(mpi.mpiexec), starts)
    assert why in problem(mpi)


def test_the_library_of_the_mpi_is_searched_first(monkeypatch: pytest.MonkeyPatch):
    words = " ".join(f"{name}={value}" for name, value in build_launch_variables("/my lib").items())
    for before, after in (("", "/my lib"), ("/else", "/my lib:/else")):
        env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": before}
        line = f"env {words} sh -c 'echo \"$LD_LIBRARY_PATH\"'"
        done = subprocess.run(["/bin/bash", "-c", line], env=env, capture_output=True, text=True, check=True)
        assert done.stdout == f"{after}\n"
    assert build_launch_variables("") == {}


# Words and names.


@pytest.mark.parametrize(
    ("environment", "word", "is_it"),
    [
        ("mpich-5_0_2", "mpich", True),
        ("mpich-5_0_2-abi", "mpich", False),
        ("mpich-5_0_2-abi", "mpich@5.0.2", False),
        ("mpich-5_0_2-abi", WORD, True),
        ("mpich-5_0_2-abi", "mpich@5.0.2+abi", True),
        ("mpich-5_0_2-2-abi", "mpich@5.0.2+abi", True),
        ("mpich-5_0_1-abi", "mpich@5.0.2+abi", False),
        ("mpich-5_0_2", WORD, False),
        ("mpich-5_0_2-on-ucx-1_19_0", "mpich+ucx@1.19.0", True),
        ("mpich-5_0_2-on-ucx-1_19_0", "mpich", False),
        ("mpich-5_0_2-on-ucx-1_19_0", "mpich+ucx", False),
        ("mpich-5_0_2-on-ucx", "mpich+ucx", True),
        ("mpich-5_0_2", "mpich+ucx@1.19.0", False),
    ],
)
def test_what_is_measured_otherwise_is_of_its_own_word_alone(environment: str, word: str, is_it: bool):
    assert is_of_release(environment, word) is is_it


def test_an_mpi_has_a_second_name_by_its_standard_abi(mpi: Mpi):
    found = name_distinctly([mpi, replace(mpi, standard_abi="/lib"), replace(mpi, standard_abi="/other")])
    assert [each.name for each in found] == ["mpich-5_0_2", "mpich-5_0_2-abi", "mpich-5_0_2-2-abi"]


# The inventory.


def test_what_is_asked_for_is_there_and_nothing_else(mpi: Mpi, tmp_path: Path):
    found = collect_inventory(tmp_path / "work", (f"{mpi.prefix}+abi",), lambda _: None)
    (only,) = found.mpis
    assert only.standard_abi == f"{mpi.prefix}/lib"
    assert load_inventory(tmp_path / "work").mpis == (only,)
    assert find_release(found, tmp_path, f"{mpi.prefix}+abi") == only
    assert find_release(found, tmp_path, mpi.prefix) is None
    assert found.imb_of(only).problem == "of the standard ABI of MPI, only mpicost is built"


def test_both_ways_stand_beside_each_other(mpi: Mpi, tmp_path: Path):
    found = collect_inventory(tmp_path / "work", (mpi.prefix, f"{mpi.prefix}+abi"), lambda _: None)
    assert [each.standard_abi for each in found.mpis] == ["", f"{mpi.prefix}/lib"]
    assert len({each.name for each in found.mpis}) == 2
    assert [bool(find_release(found, tmp_path, word).standard_abi) for word in ("mpich", WORD)] == [False, True]


def test_one_of_the_path_is_asked_for_by_its_family(mpi: Mpi, tmp_path: Path, monkeypatch):
    install(tmp_path / "ompi", OPENMPI)
    monkeypatch.setenv("PATH", os.pathsep.join([f"{mpi.prefix}/bin", f"{tmp_path}/ompi/bin", f"{tmp_path}/cc"]))
    found = collect_inventory(tmp_path / "work", (WORD, "openmpi+abi"), lambda _: None)
    assert [each.name for each in found.mpis] == ["mpich-5_0_2", "openmpi-4_1_4", "mpich-5_0_2-abi"]
    (without,) = found.unusable
    assert (without.mpicc, without.problem[:31]) == ("openmpi+abi", "it has no standard ABI of MPI: ")


def test_it_is_tried_once_and_again_when_its_library_has_changed(mpi: Mpi, tmp_path: Path):
    def take(*words: str) -> list[str]:
        said: list[str] = []
        collect_inventory(tmp_path / "work", words, said.append)
        return said

    word, tried = f"{mpi.prefix}+abi", "trying the standard ABI of mpich 5.0.2"
    assert take(word) == [f"asking {mpi.mpicc}", tried]
    assert take(word) == []
    assert take(mpi.prefix) == []
    assert take(word) == [tried]
    os.utime(Path(mpi.prefix, "lib", LIBRARY))
    assert take(word) == [f"asking {mpi.mpicc}", tried]
