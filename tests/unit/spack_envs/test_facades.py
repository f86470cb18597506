"""The prefix that Spack is given: never one where it would find another MPI's compiler wrapper."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from spack_envs import machine
from spack_envs.machine import format_component_version, prefix_for_spack


def script(path: Path, text: str, show: str = "") -> Path:
    """An executable that prints ``text`` and its arguments, one a line; ``show`` if asked by -show."""
    path.parent.mkdir(parents=True, exist_ok=True)
    asked = f"[ \"$1\" = -show ] && {{ echo '{show}'; exit; }}"
    path.write_text(f'#!/bin/sh\n{asked}\necho "{text}"\nprintf "<%s>\\n" "$@"\n')
    path.chmod(0o755)
    return path


def header(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "mpi.h").write_text("")
    return folder


def describe(family: str, prefix: Path, ending: str = "", version: str = "5.0.2") -> SimpleNamespace:
    """An MPI as the inventory describes it."""
    wrapper, launcher = (str(prefix / "bin" / f"{name}{ending}") for name in ("mpicc", "mpiexec"))
    return SimpleNamespace(
        name=f"{family}-{version}",
        family=family,
        version=version,
        prefix=str(prefix),
        mpicc=wrapper,
        mpiexec=launcher,
    )


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """A prefix with two MPIs, as Debian's /usr; the default is Open MPI."""
    usr = tmp_path / "usr"
    for family in ("mpich", "openmpi"):
        include = header(usr / "lib" / family / "include")
        for tool in ("mpicc", "mpicxx", "mpiexec"):
            show = f"cc -I{usr} -I{include} -lmpi"
            script(usr / "bin" / f"{tool}.{family}", f"{tool} of {family}", show)
    for tool in ("mpicc", "mpicxx", "mpiexec"):
        (usr / "bin" / tool).symlink_to(f"{tool}.openmpi")
    monkeypatch.setattr(machine, "SHARED_PREFIXES", (usr,))
    return usr


def output(*command: object) -> list[str]:
    """Lines that a command prints."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_debian_mpis_are_told_apart(debian, tmp_path, family):
    prefix = prefix_for_spack(describe(family, debian, f".{family}"), tmp_path / "facades")
    assert prefix.parent == tmp_path / "facades"
    for tool in ("mpicc", "mpicxx", "mpiexec"):
        assert output(prefix / "bin" / tool)[0] == f"{tool} of {family}"
    assert (prefix / "include").resolve() == debian / "lib" / family / "include"


def test_default_of_a_shared_prefix_is_pinned_too(debian, tmp_path):
    """The alternatives may change; then the description does, not what the facade means."""
    prefix = prefix_for_spack(describe("openmpi", debian), tmp_path / "facades")
    assert prefix.parent == tmp_path / "facades"


def test_facade_passes_arguments_unchanged(debian, tmp_path):
    prefix = prefix_for_spack(describe("mpich", debian, ".mpich"), tmp_path / "facades")
    lines = output(prefix / "bin" / "mpicc", "-o", "a b", "", '"$HOME"')
    assert lines == ["mpicc of mpich", "<-o>", "<a b>", "<>", '<"$HOME">']


def test_real_prefixes_are_shared_prefixes():
    assert {Path("/usr"), Path("/usr/local")} <= set(machine.SHARED_PREFIXES)


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_prefix_of_its_own_is_used_as_it_is(tmp_path, family):
    prefix = tmp_path / "wheel"
    script(prefix / "bin" / "mpicc", "mpicc")
    header(prefix / "include")
    assert prefix_for_spack(describe(family, prefix), tmp_path / "facades") == prefix
    assert not (tmp_path / "facades").exists()


def test_header_elsewhere_needs_a_facade(tmp_path):
    """Fedora has it in /usr/include/openmpi-x86_64, and Spack's recipe insists on it."""
    prefix, include = tmp_path / "lib64" / "openmpi", header(tmp_path / "include" / "openmpi")
    script(prefix / "bin" / "mpicc", "mpicc", f"gcc -I{include} -lmpi")
    found = prefix_for_spack(describe("openmpi", prefix), tmp_path / "facades")
    assert found.parent == tmp_path / "facades"
    assert (found / "include" / "mpi.h").exists()


@pytest.mark.parametrize("show", ["", "cc -I/nonexistent -lmpi", 'cc "unclosed'])
def test_wrapper_that_does_not_tell_its_header_still_gets_a_facade(tmp_path, show):
    prefix = tmp_path / "opt"
    script(prefix / "bin" / "mpicc.mpich", "mpicc", show)
    found = prefix_for_spack(describe("mpich", prefix, ".mpich"), tmp_path / "facades")
    assert sorted(path.name for path in found.iterdir()) == ["bin"]


def test_wrapper_of_another_name_needs_a_facade(tmp_path):
    prefix = tmp_path / "opt"
    script(prefix / "bin" / "mpicc", "another")
    script(prefix / "bin" / "mpicc.mpich", "the right one")
    found = prefix_for_spack(describe("mpich", prefix, ".mpich"), tmp_path / "facades")
    assert output(found / "bin" / "mpicc")[0] == "the right one"


def test_intel_wheel_gets_the_layout_of_oneapi(tmp_path):
    wheel = tmp_path / "wheel"
    script(wheel / "bin" / "mpicc", "mpicc")
    (wheel / "lib").mkdir()
    (wheel / "include").mkdir()
    mpi = describe("intel-mpi", wheel, version="2021.19.0")
    prefix = prefix_for_spack(mpi, tmp_path / "facades")
    component = prefix / "mpi" / "2021.19"
    assert sorted(path.name for path in component.iterdir()) == ["bin", "include", "lib"]
    assert output(component / "bin" / "mpicc") == ["mpicc", "<>"]
    assert (component / "lib").resolve() == wheel / "lib"


@pytest.mark.parametrize(
    ("version", "folder"),
    [
        *(("2021.19.0", "2021.19"), ("2021.11", "2021.11"), ("2021.10.0", "2021.10.0")),
        *(("2022.0.1", "2022.0"), ("2019.8.254", "2019.8.254"), ("2021", "2021")),
        ("2021.19rc1", "2021.19rc1"),
    ],
)
def test_folder_of_a_version_is_that_of_the_recipe(version, folder):
    assert format_component_version(version) == folder


@pytest.mark.parametrize("family", ["mpich", "intel-mpi"])
def test_second_time_touches_nothing(debian, tmp_path, family):
    mpi = describe(family, debian, ".mpich", version="2021.19.0")
    prefix = prefix_for_spack(mpi, tmp_path / "facades")
    before = {path: path.lstat().st_mtime_ns for path in prefix.rglob("*")}
    assert prefix_for_spack(mpi, tmp_path / "facades") == prefix
    assert {path: path.lstat().st_mtime_ns for path in prefix.rglob("*")} == before


def test_mpi_at_another_place_has_another_prefix(tmp_path):
    """Otherwise Spack would keep a program that was linked to the old place."""
    prefixes = set()
    for place in ("old", "new"):
        script(tmp_path / place / "bin" / "mpicc", "mpicc")
        mpi = describe("intel-mpi", tmp_path / place, version="2021.19")
        prefixes.add(prefix_for_spack(mpi, tmp_path / "facades"))
    assert len(prefixes) == 2
