"""Where MPIs are found: wrappers on the search path, Debian's alternatives, and environment modules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from site_configs.mpi import discover
from site_configs.mpi.discover import MODULE, find_companion_launcher, find_in_modules, find_on_path
from site_configs.mpi.probe import Candidate
from tests.support.fake_mpis import all_end, debian, install, script


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
    paths = (
        tmp_path / "bin",
        tmp_path / "usr" / "bin",
        tmp_path / "bin" / "." / "..",
        tmp_path / "bin",
    )
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
        Candidate(bin_ / f"mpicc.{name}", bin_ / f"mpiexec.{name}", "debian")
        for name in ("mpich", "openmpi")
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
    found = find_companion_launcher(Path("/usr/bin/mpicc.openmpi"))
    assert found == Path("/usr/bin/mpiexec.openmpi")


# Environment modules.

MODULES = r"""
module() {
    case "$*" in
        "-t avail") printf '%s\n' @available@ >&2 ;;
        "load broken/mpich") echo "module: broken" >&2; return 1 ;;
        "load empty/mpich") ;;
        "load $2") PATH="@root@/$2/bin:$PATH"; LD_LIBRARY_PATH="@root@/$2/a b"; echo loaded "$2" ;;
    esac
}
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A login shell with a ``module`` function that offers these names; each is an installation."""

    def offer(*names: str, profile: str = "") -> Path:
        root = tmp_path / "modules"
        available = " ".join(f"'{name}'" for name in names) or "''"
        text = MODULES.replace("@available@", available).replace("@root@", str(root))
        (tmp_path / ".bash_profile").write_text(text + profile)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("MODULESHOME", str(root))
        return root

    return offer


def test_the_modules_of_mpis_are_candidates(modules):
    root = modules(
        "/usr/share/modulefiles:", "gcc/13", "mpich/", "mpich/5.0.2", "openmpi/5.0(default)"
    )
    for name in ("mpich/5.0.2", "openmpi/5.0"):
        install(root / name)
    first, second = find_in_modules()
    expected = (root / "mpich/5.0.2/bin/mpicc", root / "mpich/5.0.2/bin/mpiexec")
    assert (first.mpicc, first.mpiexec) == expected
    assert (first.origin, first.module) == ("module", "mpich/5.0.2")
    assert second.module == "openmpi/5.0"
    env = dict(first.env)
    assert env["PATH"].startswith(f"{root}/mpich/5.0.2/bin:")
    assert env["LD_LIBRARY_PATH"] == f"{root}/mpich/5.0.2/a b"
    assert "I_MPI_ROOT" not in env


def test_what_the_users_profile_prints_does_not_matter(modules):
    root = modules("mpich/5.0.2", profile="echo Welcome; echo to this; echo machine\n")
    install(root / "mpich/5.0.2")
    (only,) = find_in_modules()
    assert only.mpicc == root / "mpich/5.0.2/bin/mpicc"


def test_a_module_that_does_not_load_or_brings_no_wrapper_is_no_candidate(modules, tmp_path):
    root = modules("broken/mpich", "empty/mpich", "mpich/1")
    for name in ("broken/mpich", "mpich/1", "mine"):
        install(root / name)
    with (tmp_path / ".bash_profile").open("a") as profile:
        profile.write(f"PATH={root}/mine/bin:$PATH\n")
    assert [each.module for each in find_in_modules()] == ["mpich/1"]


def test_a_machine_without_modules_is_not_asked_for_them(modules, monkeypatch):
    modules("mpich/5.0.2")
    monkeypatch.delenv("MODULESHOME")
    monkeypatch.delenv("LMOD_CMD", raising=False)
    monkeypatch.setattr(discover, "run_module_shell", lambda _: pytest.fail("a shell was started"))
    assert find_in_modules() == []


def test_a_module_command_that_hangs_or_prints_no_text_brings_nothing(
    modules, monkeypatch, tmp_path
):
    modules("mpich/5.0.2", profile="sleep 600\n")
    monkeypatch.setenv("PLUMBLINE_TEST_MARK", str(tmp_path))
    monkeypatch.setattr(discover, "MODULE_SECONDS", 0.3)
    assert find_in_modules() == []
    assert all_end("PLUMBLINE_TEST_MARK", str(tmp_path))
    modules(profile="printf '\\377\\376\\n'\n")
    monkeypatch.setattr(discover, "MODULE_SECONDS", 30)
    assert find_in_modules() == []


@pytest.mark.parametrize(
    "name",
    [
        *("mpich", "mpich/5.0.2", "openmpi/5.0", "OpenMPI/4.1.6-GCC-13.2.0", "openmpi4/4.1.6"),
        *("mpi/openmpi-x86_64", "open-mpi/5", "mvapich2/2.3.7", "mvapich/4.0", "intel-mpi/2021"),
        *("intelmpi/2021", "impi/2021.9", "cray-mpich/8.1.28", "gcc13-openmpi"),
    ],
)
def test_names_of_modules_that_are_mpis(name: str):
    assert MODULE.search(name)


@pytest.mark.parametrize(
    "name", ["gcc/13", "simpich/1", "openmpiX/1", "impish", "hdf5/1.14", "empi"]
)
def test_names_of_modules_that_are_not(name: str):
    assert not MODULE.search(name)
