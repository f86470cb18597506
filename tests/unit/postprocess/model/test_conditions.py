"""What is the same in two launches, and what only looks different."""

from typing import Any
from unittest.mock import Mock

import pytest

from postprocess.judging.evaluate import evaluate_launches
from postprocess.model import conditions
from postprocess.model.conditions import (
    binding_of,
    circumstances_of,
    cpus_of,
    explain_other_cores,
    flags_of,
    library_identity,
)
from tests.support.factories import launch as launch_samples
from tests.support.factories.record import bound_run

MPICH = """MPICH Version:      5.0.2
MPICH Release date: Fri Sep 25 20:45:26 UTC 2026
MPICH ABI:          18:2:6
MPICH Device:       ch4:ucx
MPICH configure:    --prefix={prefix} --with-device=ch4:ucx --with-ucx={ucx} '--libdir={prefix}/lib'
MPICH CC:           {cc} -O2
MPICH Custom Information:\thttps://pypi.org/p/mpich/5.0.2/
"""
OPEN_MPI = (
    "Open MPI v5.0.11, package: Open MPI {who} Distribution, ident: 5.0.11, repo rev: v5.0.11rc1, Sep 16, 2026"
)
HASH = "ob3s2vhfdd2y4mb6p6242hflnuqycyqd"


def mpich(prefix: str = "/opt/mpich", ucx: str = "/usr/lib/ucx-1.17", cc: str = "/usr/bin/gcc"):
    return MPICH.format(prefix=prefix, ucx=ucx, cc=cc)


def test_where_an_mpi_lies_does_not_matter():
    same = library_identity(mpich())
    assert library_identity(mpich(prefix="/home/me/mpi", cc="/opt/gcc/bin/gcc")) == same
    assert "Version: 5.0.2" in same and "https://pypi.org/p/mpich/5.0.2/" in same
    assert "\n" not in same and "/opt" not in same


@pytest.mark.parametrize(
    "other",
    [
        mpich(ucx="/usr/lib/ucx-1.18"),
        mpich(cc="/usr/bin/clang"),
        mpich().replace("-O2", "-O0"),
        mpich().replace("Device:       ch4:ucx", "Device:       ch4:ofi"),
        mpich().replace("2026", "2025"),
        mpich(ucx=f"/spack/linux/ucx-1.17-{HASH}"),
        mpich(prefix=f"/spack/linux/mpich-5.0.2-{HASH}"),
    ],
)
def test_another_build_of_an_mpi_is_another(other: str):
    assert library_identity(other) != library_identity(mpich())


def test_a_build_of_spack_is_known_by_its_hash_wherever_it_is():
    one, other = (library_identity(mpich(prefix=f"/{place}/mpich-5.0.2-{HASH}")) for place in ("a", "b/c"))
    assert one == other and HASH in one


def test_who_built_an_open_mpi_does_not_matter():
    names = (OPEN_MPI.format(who=who) for who in ("root@n1", "user@localhost"))
    assert len({library_identity(name) for name in names}) == 1
    assert library_identity(OPEN_MPI) != library_identity(OPEN_MPI.replace("11rc1", "12"))


def test_flags_without_what_changes_no_instruction():
    assert flags_of("-g -O3 -Wall -I/usr/include -isystem /opt/x -std=c11") == "-O3 -std=c11"
    assert flags_of("-g3 -ggdb -gdwarf-4 -gsplit-dwarf -Wno-unused -Wl,-rpath,/opt/x") == ""
    assert flags_of("-O3") != flags_of("-O2")
    assert flags_of("-O2 -O3") != flags_of("-O3 -O2")


@pytest.mark.parametrize(
    "flag", ["-gpu=cc80", "-Wa,-mno-x", "-Wp,-DX", "-Wl,-O1", "-gcc-name=gcc-13", "-gline"]
)
def test_flags_that_change_code_are_kept_whatever_they_look_like(flag: str):
    assert flags_of(f"-O3 {flag}") == f"-O3 {flag}"


@pytest.mark.parametrize(
    ("cpus", "shape"),
    [
        (("0", "1"), "2 ranks of 1 CPU"),
        (("5", "0"), "2 ranks of 1 CPU"),
        (("0-1", "0-1"), "2 ranks of 2 CPUs shared by 2"),
        (("0-1", "2,3"), "2 ranks of 2 CPUs"),
        (("0", "0"), "2 ranks of 1 CPU shared by 2"),
        (("0", "1-3"), "1 rank of 1 CPU, 1 rank of 3 CPUs"),
        (("", "unknown"), "2 ranks of unknown CPUs"),
    ],
)
def test_the_shape_of_a_binding_and_not_its_cores(cpus, shape):
    assert binding_of(bound_run(*cpus)) == shape


def on_cores(*ranks: tuple[str, str]) -> dict[str, Any]:
    """A run record with the CPUs of each rank, and of its core if that has several."""
    run = bound_run(*(cpus for cpus, _ in ranks))
    told = zip(run["ranks"], ranks, strict=True)
    return run | {"ranks": [each | ({"core": core} if core else {}) for each, (_, core) in told]}


@pytest.mark.parametrize(
    ("ranks", "shape"),
    [
        ([("0", "0,2"), ("2", "0,2"), ("1", "1,3"), ("3", "1,3")], "4 ranks of 1 CPU with 2 on a core"),
        ([("0", "0,2"), ("1", "1,3")], "2 ranks of 1 CPU"),
        ([("0,2", "0,2"), ("1,3", "1,3")], "2 ranks of 2 CPUs"),
        ([("0,2", "0,2"), ("0,2", "0,2")], "2 ranks of 2 CPUs shared by 2"),
        ([("0-3", "0,2"), ("0-3", "0,2")], "2 ranks of 4 CPUs shared by 2"),
    ],
)
def test_ranks_on_hardware_threads_of_one_core_are_told(ranks, shape):
    assert binding_of(on_cores(*ranks)) == shape


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([("0", "0,2"), ("2", "0,2")], ""),
        ([("0", "0,2"), ("2", "0,2"), ("1", "1,3"), ("3", "1,3")], ""),
        ([("0", ""), ("1", "")], "rank 0 on n0: its core has no second hardware thread"),
        (
            [("0,2", "0,2"), ("0,2", "0,2")],
            "rank 0 on n0 is not bound to one hardware thread, but to CPUs '0,2'",
        ),
        ([("0", "0,2"), ("1", "1,3")], "rank 0 on n0: 1 ranks are bound to its core, not 2"),
        ([("0", "0,2"), ("0", "0,2")], "rank 1 on n0 shares its hardware thread with another rank"),
        ([("", ""), ("2", "0,2")], "rank 0 on n0 is not bound to one hardware thread, but to CPUs ''"),
    ],
)
def test_two_ranks_on_a_core_are_proven_by_the_record(ranks, said):
    assert explain_other_cores(on_cores(*ranks), 2).partition(";")[0] == said


def test_cpus_of_one_number_on_two_hosts_are_two():
    assert binding_of(bound_run("0", "0", hosts=2)) == "2 ranks of 1 CPU"


def test_a_list_of_cpus():
    assert cpus_of("0-3,8") == {0, 1, 2, 3, 8}
    assert cpus_of("") == cpus_of("a-b") == set()


def test_what_is_cosmetic_is_no_condition():
    one = circumstances_of(bound_run("0", "1", kernel="6.1", command=["/a/mpicost"], date_utc="then"))
    other = bound_run("0", "1", kernel="6.2", command=["/b/mpicost"], date_utc="now")
    other["ranks"] = [{**each, "host": "elsewhere"} for each in other["ranks"]]
    assert circumstances_of(other) == one


def test_conditions_are_computed_once_for_all_cases_of_a_launch(tmp_path, monkeypatch):
    done = launch_samples.finished(tmp_path)
    assert len(done.launch.cases) > 1
    spy = Mock(wraps=circumstances_of)
    monkeypatch.setattr(conditions, "circumstances_of", spy)
    assert len(evaluate_launches([done], launch_samples.book_of(done), "local")) == len(done.launch.cases)
    assert spy.call_count == 1
