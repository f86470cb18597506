"""Where MPIs are found: wrappers on the search path, and Debian's alternatives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from site_configs.mpi import discover
from site_configs.mpi.discover import find_companion_launcher, find_on_path
from site_configs.mpi.probe import Candidate
from tests.support.fake_mpis import debian, install, script


def found(*directories: Path | str) -> list[str]:
    """The wrappers on a search path of these directories."""
    return [str(each.mpicc) for each in find_on_path(os.pathsep.join(map(str, directories)))]


def test_a_wrapper_is_found_with_its_launcher(tmp_path: Path):
    mpicc = install(tmp_path)
    found = find_on_path(str(tmp_path / "bin"))
    assert found == [Candidate(mpicc, tmp_path / "bin" / "mpiexec", "path")]


def test_wrappers_come_in_the_order_of_the_path(tmp_path: Path):
    install(tmp_path / "b")
    install(tmp_path / "a")
    expected = [f"{tmp_path}/b/bin/mpicc", f"{tmp_path}/a/bin/mpicc"]
    assert found(tmp_path / "b" / "bin", tmp_path / "a" / "bin") == expected


def test_a_directory_that_is_on_the_path_twice_counts_once(tmp_path: Path):
    """As /bin, which is a link to /usr/bin today."""
    install(tmp_path / "usr")
    (tmp_path / "bin").symlink_to("usr/bin")
    paths = (tmp_path / "bin", tmp_path / "usr" / "bin", tmp_path / "bin" / "." / "..", tmp_path / "bin")
    assert found(*paths) == [f"{tmp_path}/usr/bin/mpicc"]


@pytest.mark.parametrize("entry", ["", "none", "file", "loop", "closed"])
def test_a_path_with_nonsense_in_it_is_searched_all_the_same(tmp_path: Path, entry: str):
    install(tmp_path / "mpi")
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    directory = tmp_path / entry if entry else ""
    assert found(directory, tmp_path / "mpi" / "bin") == [f"{tmp_path}/mpi/bin/mpicc"]


def test_only_what_can_be_run_is_a_wrapper(tmp_path: Path):
    bin_ = install(tmp_path).parent
    (bin_ / "mpicc.old").write_text("")
    (bin_ / "mpicc.gone").symlink_to("nothing")
    for other in ("mpiccx", "mpic++", "xmpicc", "mpicc_wrapper"):
        script(bin_ / other, "exit 0")
    assert found(bin_) == [f"{bin_}/mpicc"]


@pytest.mark.parametrize("chosen", ["openmpi", "mpich"])
def test_debians_two_mpis_are_two_and_the_plain_name_is_none(tmp_path: Path, chosen: str):
    bin_ = debian(tmp_path, chosen)
    assert find_on_path(str(bin_)) == [
        Candidate(bin_ / f"mpicc.{name}", bin_ / f"mpiexec.{name}", "debian") for name in ("mpich", "openmpi")
    ]


def test_alternatives_may_be_relative_links_and_lead_through_linked_directories(tmp_path: Path):
    bin_ = debian(tmp_path)
    (tmp_path / "bin").symlink_to("usr/bin")
    for directory, name, target in (
        (bin_, "mpicc", "../../etc/alternatives/mpicc"),
        (tmp_path / "etc" / "alternatives", "mpicc", "../../bin/mpicc.openmpi"),
    ):
        (directory / name).unlink()
        (directory / name).symlink_to(target)
    assert found(tmp_path / "bin") == [f"{bin_}/mpicc.mpich", f"{bin_}/mpicc.openmpi"]


def test_a_plain_name_that_is_an_mpi_of_its_own_stays(tmp_path: Path):
    bin_ = install(tmp_path).parent
    install(tmp_path, suffix=".mpich")
    assert found(bin_) == [f"{bin_}/mpicc", f"{bin_}/mpicc.mpich"]


def test_open_mpis_own_link_is_an_mpi(tmp_path: Path):
    bin_ = tmp_path / "bin"
    script(bin_ / "opal_wrapper", "exit 0")
    (bin_ / "mpicc").symlink_to("opal_wrapper")
    assert found(bin_) == [f"{bin_}/mpicc"]


def test_links_in_a_circle_end_the_search(tmp_path: Path):
    bin_ = install(tmp_path, suffix=".mpich").parent
    (bin_ / "a").symlink_to("b")
    (bin_ / "b").symlink_to("a")
    assert not discover.is_link_to(bin_ / "a", {bin_ / "mpicc.mpich"})


def test_the_launcher_has_the_suffix_of_the_wrapper():
    found = find_companion_launcher(Path("/opt/mpicc-1/bin/mpicc"))
    assert found == Path("/opt/mpicc-1/bin/mpiexec")
    assert find_companion_launcher(Path("/opt/intel/bin/mpiicx")) == Path("/opt/intel/bin/mpiexec")
    assert find_companion_launcher(Path("/usr/bin/mpicc.mpich"), "mpirun") == Path("/usr/bin/mpirun.mpich")
    found = find_companion_launcher(Path("/usr/bin/mpicc.openmpi"))
    assert found == Path("/usr/bin/mpiexec.openmpi")
