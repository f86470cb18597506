"""Environment modules that bring an MPI: their names, what they need, and what loading them sets."""

from pathlib import Path

import pytest

from site_configs.mpi import modules as module_system
from site_configs.mpi.family import Unusable
from site_configs.mpi.modules import (
    find_in_module,
    find_in_modules,
    group_modules,
    is_mpi_name,
    list_modules,
    list_needed_modules,
    parse_listing,
)
from site_configs.mpi.probe import Candidate
from tests.support.fake_mpis import all_end, install
from tests.support.faults import Declared, plants

MODULES = r"""
module() {
    case "$*" in
        "-t avail") printf '%s\n' @available@ >&2 ;;
        "-t spider") printf '%s\n' gcc/13 openmpi/6.0 >&2 ;;
        "spider openmpi/6.0") cat "@root@/spider" >&2 ;;
        "load broken/mpich") echo "module: broken" >&2; return 1 ;;
        "load openmpi/6.0") echo 'ERROR: Unable to locate a modulefile' >&2; return 1 ;;
        "load old/mpich") echo "old: no such file" >&2 ;;
        "load empty/mpich") ;;
        "load gcc/13 openmpi/6.0") PATH="@root@/openmpi/6.0/bin:$PATH" ;;
        "load $2") PATH="@root@/$2/bin:$PATH"; LD_LIBRARY_PATH="@root@/$2/a b"; echo loaded "$2"
            LOADEDMODULES="$2"; export LD_LIBRARY_PATH LOADEDMODULES OPAL_PREFIX="@root@/$2" ;;
        "unload $2") PATH=${PATH//@root@\/$2\/bin:/} ;;
    esac
}
"""
SPIDER = """
---------------------------------------------------------
  openmpi: openmpi/6.0
---------------------------------------------------------

    @needs@ before the "openmpi/6.0" module is available to load.

      gcc/12
      gcc/13

    Help:
      gcc is good
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A login shell with a ``module`` function that offers these names; each is an installation."""

    def offer(*names: str, profile: str = "") -> Path:
        root = tmp_path / "modules"
        available = " ".join(f"'{name}'" for name in names) or "''"
        text = MODULES.replace("@available@", available).replace("@root@", str(root))
        (tmp_path / ".bash_profile").write_text(text + profile)
        root.mkdir(exist_ok=True)
        (root / "spider").write_text(SPIDER.replace("@needs@", module_system.SPIDER_NEEDS))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("MODULESHOME", str(root))
        for name in ("LMOD_CMD", "LOADEDMODULES", "OPAL_PREFIX"):
            monkeypatch.delenv(name, raising=False)
        return root

    return offer


def test_the_modules_of_mpis_are_candidates_with_all_that_they_set(modules):
    root = modules("/usr/share/modulefiles:", "gcc/13", "mpich/", "mpich/5.0.2", "openmpi/5.0(default)")
    for name in ("mpich/5.0.2", "openmpi/5.0"):
        install(root / name)
    first, second = find_in_modules()
    assert isinstance(first, Candidate) and isinstance(second, Candidate)
    expected = (root / "mpich/5.0.2/bin/mpicc", root / "mpich/5.0.2/bin/mpiexec")
    assert (first.mpicc, first.mpiexec) == expected
    assert (first.origin, first.module) == ("module", "mpich/5.0.2")
    assert second.module == "openmpi/5.0"
    env = dict(first.env)
    assert env["PATH"].startswith(f"{root}/mpich/5.0.2/bin:")
    assert env["LD_LIBRARY_PATH"] == f"{root}/mpich/5.0.2/a b"
    assert env["OPAL_PREFIX"] == f"{root}/mpich/5.0.2"
    assert set(env) == {"PATH", "LD_LIBRARY_PATH", "OPAL_PREFIX"}


@pytest.mark.parametrize(
    "profile",
    ["echo Welcome; echo to this; echo machine\n", "module load mpich/5.0.2\n"],
    ids=["it-prints", "it-loads-the-module"],
)
def test_what_the_users_profile_does_before_does_not_matter(modules, profile):
    root = modules("mpich/5.0.2", profile=profile)
    install(root / "mpich/5.0.2")
    (only,) = find_in_modules()
    assert isinstance(only, Candidate) and only.mpicc == root / "mpich/5.0.2/bin/mpicc"


@plants("environment", "modules that do not load, or bring no mpicc", "environment modules", "", 0,
        "it cannot be loaded: module: broken | it puts no mpicc on the search path")  # fmt: skip
def test_a_module_that_is_of_no_use_is_told_with_what_its_load_said(modules, tmp_path, declared: Declared):
    root = modules("broken/mpich", "empty/mpich", "old/mpich", "mpich/1")
    for name in ("broken/mpich", "mpich/1", "mine"):
        install(root / name)
    with (tmp_path / ".bash_profile").open("a") as profile:
        profile.write(f"PATH={root}/mine/bin:$PATH\n")
    *useless, usable = find_in_modules()
    assert isinstance(usable, Candidate) and usable.module == "mpich/1"
    told = {each.mpicc: each.problem for each in useless if isinstance(each, Unusable)}
    assert list(told) == ["module broken/mpich", "module empty/mpich", "module old/mpich"]
    assert told["module old/mpich"].endswith("its load said: old: no such file")
    for name in ("broken", "empty"):
        declared.check((), 0, [told[f"module {name}/mpich"]])


def test_a_machine_without_modules_is_not_asked_for_them(modules, monkeypatch):
    modules("mpich/5.0.2")
    monkeypatch.delenv("MODULESHOME")
    monkeypatch.delenv("MODULES_CMD", raising=False)
    monkeypatch.setattr(module_system, "run_module_shell", lambda _: pytest.fail("a shell"))
    assert find_in_modules() == []


def test_a_module_command_that_hangs_or_prints_no_text_brings_nothing(modules, monkeypatch, tmp_path):
    modules("mpich/5.0.2", profile="sleep 600\n")
    monkeypatch.setenv("PLUMBLINE_TEST_MARK", str(tmp_path))
    monkeypatch.setattr(module_system, "MODULE_SECONDS", 0.3)
    assert list_modules().problem == "module -t avail: no answer within 0.3 s"
    assert all_end("PLUMBLINE_TEST_MARK", str(tmp_path))
    modules(profile="printf '\\377\\376\\n'\nmodule() { echo no spider >&2; return 3; }\n")
    monkeypatch.setattr(module_system, "MODULE_SECONDS", 30)
    assert list_modules() == module_system.ModuleListing(problem="module -t avail: no spider")


def test_a_module_behind_a_compiler_is_found_with_what_it_needs(modules, monkeypatch):
    root = modules("gcc/13")
    install(root / "openmpi/6.0")
    monkeypatch.setenv("LMOD_CMD", "/lmod")
    assert list_modules().hidden == ("openmpi/6.0",)
    assert list_needed_modules("openmpi/6.0") == [["gcc/13"], ["gcc/12"]]
    found = find_in_module("openmpi/6.0")
    assert isinstance(found, Candidate) and found.module == "gcc/13 openmpi/6.0"


def test_the_hint_of_environment_modules_tells_what_a_module_needs():
    hint = "ERROR: x cannot be loaded due to missing prereq. HINT: "
    one = "at least one of the following modules must be loaded first: gcc/13 gcc/12"
    assert list_needed_modules("x", hint + one) == [["gcc/13"], ["gcc/12"]]
    both = "the following modules must be loaded first: gcc/13 hwloc"
    assert list_needed_modules("x", hint + both) == [["gcc/13", "hwloc"]]


LISTING = """
\x1b[1;94m/sw/modules\x1b[0m:
gcc/
gcc/13.2
openmpi/5.0.6(default:stable)
\x1b[4mopenmpi/5.0.7\x1b[0m\x1b[2m(\x1b[22m\x1b[95mnew\x1b[0m\x1b[2m)\x1b[22m \x1b[2m<\x1b[22mmytag:L\x1b[2m>
ompi/latest(@)
mpich/4.2 <aL>
impi/2021{+cuda} <L>
Welcome to openmpi

Key:
(symbolic-version)  <module-tag>  <L>=loaded
openmpi/no
"""


def test_what_a_listing_adds_to_names_is_taken_off_and_aliases_come_last():
    names = ["gcc/13.2", "openmpi/5.0.6", "openmpi/5.0.7", "mpich/4.2", "impi/2021", "ompi/latest"]
    assert parse_listing(LISTING) == names


@pytest.mark.parametrize(
    "name",
    [
        *("mpich", "mpich/5.0.2", "openmpi/5.0", "OpenMPI/4.1.6-GCC-13.2.0", "openmpi4/4.1.6"),
        *("mpi/openmpi-x86_64", "open-mpi/5", "mvapich2/2.3.7", "mvapich/4.0", "intel-mpi/2021"),
        *("intelmpi/2021", "impi/2021.9", "cray-mpich/8.1.28", "gcc13-openmpi", "hpcx/2.20"),
        *("intel-oneapi-mpi/2021.14.0", "hpcx-mpi/2.20", "nvhpc-hpcx-cuda12/24.3", "mpi/2021.14"),
        *("openmpi+cuda/5.0.7", "openmpi.gcc/5.0.7", "openmpi-5.0.7", "gcc/13.2/openmpi/5.0"),
        *("oneapi/mpi/2021.14", "mvapich-plus/4.0", "mvapich2-gdr/2.3", "spectrum-mpi/10.4"),
        *("mpt/2.25", "cray-mpich-abi/8.1", "parastationmpi/5.9"),
    ],
)
def test_names_of_modules_that_are_mpis(name: str):
    assert is_mpi_name(name)


@pytest.mark.parametrize("name", ["simpich/1", "openmpiX/1", "mpi4py/3.1", "hdf5-mpi/1.14", "gompi/2023b"])
def test_names_of_modules_that_may_be(modules, name: str):
    modules("gcc/13", "intel/compiler/2023", "HDF5/1.12-OpenMPI-4.1", name)
    listing = list_modules()
    assert (listing.mpis, listing.resembling) == ((), ("HDF5/1.12-OpenMPI-4.1", name))


def test_the_newest_of_each_mpi_comes_first():
    names = ["openmpi/4.9", "openmpi/4.10rc1", "openmpi/4.10", "mpich/4.2", "intel/impi/2021.9"]
    assert [group[0] for group in group_modules(names)] == [*("openmpi/4.10", "mpich/4.2", "intel/impi/2021.9")]
    variants = ["hdf5-openmpi/1", "mpi/openmpi-x86_64", "openmpi+cuda/5", "openmpi.gcc/4", "openmpi/4"]
    ordered = [group[0] for group in group_modules(variants)]
    assert set(ordered) == set(variants) and ordered[-1] == "hdf5-openmpi/1"
    assert group_modules([]) == []
