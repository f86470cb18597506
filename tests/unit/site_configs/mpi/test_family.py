"""MPIs by what they say of themselves, and the names that they get."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.model.case import NAME
from site_configs.families import FAMILIES
from site_configs.mpi.family import (
    Mpi,
    build_family_environment,
    environment_name,
    identify_library,
    is_library,
    join_lines,
    name_distinctly,
    spare_network,
)
from tests.support.faults import Declared, plants

LIBRARIES = [
    ("Open MPI v5.0.11, package: Open MPI user@localhost, ident: 5.0.11", "openmpi", "5.0.11"),
    ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, May 26, 2022", "openmpi", "4.1.4"),
    ("Open MPI v5.1.0a1, package: x", "openmpi", "5.1.0a1"),
    ("MPICH Version:\t5.0.2\nMPICH Release date:\tFri Sep 25 2026\n", "mpich", "5.0.2"),
    ("MPICH Version:      4.0.2\nMPICH ABI: 14:2:2\n", "mpich", "4.0.2"),
    ("MPICH Version:      4.3.0rc1\nMPICH Device: ch4:ofi\n", "mpich", "4.3.0rc1"),
    ("Intel(R) MPI Library 2021.19 for Linux* OS\n", "intel-mpi", "2021.19"),
    ("Intel(R) MPI Library 2019 Update 9 for Linux* OS\n", "intel-mpi", "2019.9"),
    ("MVAPICH Version      :\t4.0\nMVAPICH Release date : 2025\n", "mvapich", "4.0"),
    ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Device : ch3:mrail\n", "mvapich", "2.3.7"),
    ("MVAPICH2-X Version    :\t2.3\nMVAPICH2-X Release date : 2019\n", "mvapich", "2.3"),
    (
        "MPI VERSION    : CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)\nMPI BUILD INFO : x\n",
        "cray-mpich",
        "8.1.28.29",
    ),
    ("", "unknown", "0"),
    ("HPE MPT 2.25", "unknown", "0"),
    ("MPICH Version: unreleased development copy", "unknown", "0"),
    ("compiled with Open MPI support", "unknown", "0"),
]


@pytest.mark.parametrize(("library", "family", "version"), LIBRARIES)
def test_a_library_tells_its_family_and_version(library: str, family: str, version: str):
    assert identify_library(library) == (family, version)
    assert identify_library(join_lines(library)) == (family, version)


WRAPPERS = [
    "mpi_abi_wrapper 1.2.0 (MPI 5.0 standard ABI)\nwrapping:\nOpen MPI v5.0.10, package: x",
    "MPItrampoline 5.3.1, using MPIwrapper 2.11.0, wrapping:\nMPICH Version: 4.2",
    "IBM Spectrum MPI v10.4.0, Open MPI v4.0.1",
    "Open MPI v10.4.0.6, package: IBM Spectrum MPI, ident: 10.4.0.6",
    "FUJITSU MPI Library 4.0.1 (Open MPI v3)",
]


@plants("environment", "a library that wraps another one, in 5 ways", "MPI_Get_library_version",
        "", 0, "unknown")  # fmt: skip
def test_a_library_that_names_another_one_later_is_not_that_one(declared: Declared):
    for library in WRAPPERS:
        declared.check((), 0, [identify_library(library)[0]])
        for wanted in ("Open MPI v5.0.10", "MPICH Version: 4.2", "Open MPI v4.0.1"):
            assert not is_library(library, wanted)
    assert is_library(WRAPPERS[0], "mpi_abi_wrapper 1.2.0")
    assert is_library(WRAPPERS[0], "wrapping: Open MPI v5.0.10")
    assert is_library("MPI VERSION : CRAY MPICH version 8.1.28 (x)", "CRAY MPICH version 8.1.28")
    both = "MPICH Version: 3.4a2"
    assert identify_library(f"MVAPICH2 Version : 2.3.7 {both}")[0] == "mvapich"
    assert identify_library(f"CRAY MPICH version 8.1.28 {both}")[0] == "cray-mpich"


@given(st.text())
def test_whatever_a_library_says_is_understood_or_unknown(library: str):
    family, version = identify_library(library)
    assert family in {*FAMILIES, "unknown"} and version


@given(st.sampled_from([*FAMILIES]), st.from_regex(r"[0-9][\w.]{0,9}", fullmatch=True))
def test_a_name_is_fit_for_an_environment_and_for_a_case(family: str, version: str):
    name = environment_name(family, version)
    assert NAME.fullmatch(name)
    assert "." not in name and name.startswith(f"{family}-")


def mpi(number: int, name: str = "", family: str = "mpich", version: str = "5.0.2") -> Mpi:
    prefix = f"/opt/{number}"
    return Mpi(name, family, version, "MPICH", "path", prefix, f"{prefix}/cc", f"{prefix}/exec")


def names(found: list[Mpi]) -> list[str]:
    return [each.name for each in name_distinctly(found)]


def test_two_mpis_of_one_version_have_different_names():
    found = [mpi(1), mpi(2, version="4.3.0"), mpi(3), mpi(4)]
    assert names(found) == ["mpich-5_0_2", "mpich-4_3_0", "mpich-5_0_2-2", "mpich-5_0_2-3"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "mpich-1", "mpich-1-2", "mpich-1-3", "openmpi-1"]),
            st.sampled_from(["mpich", "openmpi"]),
            st.sampled_from(["1", "2"]),
        )
    )
)
def test_names_never_collide_whatever_they_were_before(kinds):
    """MPIs that are remembered bring names from a time when others were there."""
    found = [mpi(n, name, family, version) for n, (name, family, version) in enumerate(kinds)]
    named = name_distinctly(found)
    assert len({each.name for each in named}) == len(found)
    assert [each.prefix for each in named] == [each.prefix for each in found]
    assert name_distinctly(named) == named


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_open_mpi_is_told_that_root_is_meant_and_nobody_else(monkeypatch, user, allowed):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    found = "OMPI_ALLOW_RUN_AS_ROOT" in build_family_environment("openmpi", Path("/opt"))
    assert found == allowed
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in build_family_environment("mpich", Path("/opt"))


def test_more_processes_than_cores_are_allowed_only_if_asked_for():
    for family in ("openmpi", "mpich"):
        plain = build_family_environment(family, Path("/opt"))
        more = build_family_environment(family, Path("/opt"), oversubscribed=True)
        assert more.items() > plain.items()
        assert not any("oversubscribe" in value for value in plain.values())


def test_mpich_is_told_to_bind_as_the_others_do_by_themselves():
    assert build_family_environment("mpich", Path("/opt"))["HYDRA_BINDING"] == "core"
    assert "HYDRA_BINDING" not in build_family_environment("openmpi", Path("/opt"))


def test_open_mpi_of_one_node_opens_no_network_unless_the_user_chose_one() -> None:
    assert spare_network("openmpi", {}) == {"OMPI_MCA_btl": "^ofi"}
    assert spare_network("openmpi", {"OMPI_MCA_btl": "self,tcp"}) == {}
    assert spare_network("mpich", {}) == {}


def test_intel_mpi_is_told_where_it_is_and_of_the_libfabric_that_its_wheel_has_beside_it(tmp_path) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "libfabric.so.1").touch()
    assert build_family_environment("intel-mpi", tmp_path) == {"I_MPI_ROOT": str(tmp_path)}
    (lib / "libtcp-fi.so").touch()  # its providers lie beside it in the wheel alone
    told = build_family_environment("intel-mpi", tmp_path)
    assert told["I_MPI_OFI_LIBRARY"] == str(lib / "libfabric.so.1")
    assert told["FI_PROVIDER_PATH"] == str(lib)
    assert build_family_environment("openmpi", tmp_path).keys().isdisjoint(told)
