"""The environment of one MPI on this machine: what it says, and what touches it."""

import platform
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from site_configs.programs.program import PRODUCTS
from spack_envs import machine
from spack_envs.layout import BUILT, EXTERNAL, SpackEnvironmentError
from spack_envs.machine import ExternalPackage, find_toolchain, write_environment
from spack_envs.provide import Spack
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT as SOURCE

TOOLCHAIN = (
    ExternalPackage("gcc", "gcc@12.2.0 languages='c'", "/usr", {"c": "/usr/bin/gcc"}),
    ExternalPackage("cmake", "cmake@4.4.4", "/opt/venv"),
    ExternalPackage("ninja", "ninja@1.13.2", "/opt/venv"),
)


@pytest.fixture
def spack(tmp_path):
    """A Spack whose recipes are empty."""
    builtin = tmp_path / "spack-packages" / "repos" / "spack_repo" / "builtin"
    for name in (*BUILT, *EXTERNAL, "hwloc"):
        if name != "mpicost":
            folder = builtin / "packages" / name.replace("-", "_")
            folder.mkdir(parents=True)
            (folder / "package.py").write_text('depends_on("hwloc")\n')
    (builtin / "build_systems").mkdir()
    (builtin / "repo.yaml").write_text("repo: {namespace: builtin}\n")
    return Spack(tmp_path / "spack/bin/spack", tmp_path / "spack-packages", "1.1.0", "cache")


@pytest.fixture
def work(tmp_path):
    """An empty work directory."""
    return tmp_path / "work"


def an_mpi(family: str = "mpich", version: str = "5.0.2", **other: Any) -> SimpleNamespace:
    """An MPI with a prefix of its own."""
    name = {"name": f"{family}-{version}", "family": family, "version": version}
    paths = {"mpicc": "/opt/mpi/bin/mpicc", "mpiexec": "/opt/mpi/bin/mpiexec"}
    found = {"prefix": "/opt/mpi", "origin": "wheel", "modules": ()}
    return SimpleNamespace(**name | paths | found | other)


def write(work, spack, mpi=None, source=SOURCE):
    """The environment of an MPI with the toolchain of these tests."""
    return write_environment(work, source, spack, mpi or an_mpi(), TOOLCHAIN)


def settings(environment) -> dict:
    """What machine.yaml says."""
    return yaml.safe_load((environment.directory / "machine.yaml").read_text())


def strings(value) -> list[str]:
    """All strings in nested data."""
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    ("family", "version", "spec"),
    [
        ("mpich", "5.0.2", "mpich@=5.0.2~fortran"),
        ("openmpi", "4.1.4", "openmpi@=4.1.4~fortran"),
        (
            "intel-mpi",
            "2021.19.0",
            "intel-oneapi-mpi@=2021.19.0+generic-names~classic-names~ilp64~external-libfabric~envmods",
        ),
    ],
)
def test_mpi_is_the_only_provider_and_never_built(work, spack, family, version, spec):
    environment = write(work, spack, an_mpi(family, version))
    package, _, _ = spec.partition("@")
    sections = settings(environment)["packages"]
    assert sections["mpi:"] == {"buildable": False, "require": [f"{package}@={version}"]}
    assert sections[f"{package}:"]["buildable"] is False
    (external,) = sections[f"{package}:"]["externals"]
    assert external == {"spec": spec, "prefix": str(environment.prefix)}


def test_only_the_suite_and_what_belongs_to_the_compiler_is_built(work, spack):
    sections = settings(write(work, spack))["packages"]
    built = {name for name, entry in sections.items() if entry.get("buildable")}
    assert (built, sections["hwloc"]) == ({f"{name}:" for name in BUILT}, {"buildable": False})
    (gcc,) = sections["gcc:"]["externals"]
    assert gcc["extra_attributes"] == {"compilers": {"c": "/usr/bin/gcc"}}


def test_missing_make_is_not_compiled(work, spack):
    assert settings(write(work, spack))["packages"]["gmake"] == {"buildable": False}
    there = (*TOOLCHAIN, ExternalPackage("gmake", "gmake@4.3", "/usr"))
    sections = settings(write_environment(work, SOURCE, spack, an_mpi(), there))["packages"]
    assert "gmake" not in sections
    assert sections["gmake:"]["externals"] == [{"spec": "gmake@4.3", "prefix": "/usr"}]


@pytest.mark.parametrize("family", ["mpich", "openmpi", "intel-mpi"])
def test_every_mpi_builds_the_same_programs(family):
    """Their versions stand in one place."""
    ours = SOURCE / "spack_envs"
    assert yaml.safe_load((ours / family / "spack.yaml").read_text())["spack"]["specs"] == ["$programs"]
    (named,) = yaml.safe_load((ours / "common" / "definitions.yaml").read_text())["definitions"]
    packages = [spec.partition("@")[0] for spec in named["programs"]]
    assert packages == [product.package for product in PRODUCTS.values()]


def test_everything_is_written_below_the_work_directory(work, spack):
    config = settings(write(work, spack))["config"]
    assert len(config) >= 8
    for text in strings(list(config.values())):
        assert not text.startswith("/") or Path(text).is_relative_to(work / "spack")
    assert Path(config["develop_stage_link"]).parent.is_dir()


def test_copies_are_the_files_that_people_read(work, spack):
    directory = write(work, spack).directory
    assert directory == work / "spack" / "environments" / "mpich-5.0.2"
    ours = SOURCE / "spack_envs"
    assert (directory / "spack.yaml").read_text() == (ours / "mpich/spack.yaml").read_text()
    copied = sorted(path.name for path in (directory.parent / "common").iterdir())
    assert copied == sorted(path.name for path in (ours / "common").glob("*.yaml"))


def test_our_recipes_come_first_the_suite_is_built_in_place_and_code_is_for_the_family_of_cpus(work, spack):
    told = settings(write(work, spack))
    assert list(told["repos:"]) == ["plumbline", "builtin"]
    assert told["develop"]["mpicost"] == {"spec": "mpicost@main", "path": str(SOURCE / "suite")}
    assert told["packages"]["all:"] == {"require": [f"target={platform.machine()}"]}


def test_nothing_is_downloaded_but_from_the_mirror_of_the_site(work, spack, monkeypatch):
    monkeypatch.delenv("PLUMBLINE_SPACK_MIRROR", raising=False)
    assert settings(write(work, spack))["mirrors:"] == {}
    monkeypatch.setenv("PLUMBLINE_SPACK_MIRROR", "file:///srv/mirror")
    environment = write(work, spack)
    assert environment.changed
    assert settings(environment)["mirrors:"]["site"]["url"] == "file:///srv/mirror"


def list_times(folder: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def test_second_time_touches_nothing_and_the_sources_are_never_touched(work, spack, source):
    sources = list_times(source)
    environment = write(work, spack, source=source)
    environment.lock.write_text("{}")
    before = list_times(work)
    assert not write(work, spack, source=source).changed
    assert (list_times(work), list_times(source)) == (before, sources)


def test_another_environment_changes_nothing_here(work, spack):
    environment = write(work, spack)
    environment.lock.write_text("{}")
    write(work, spack, an_mpi("openmpi", "5.0.11"))
    assert not write(work, spack).changed
    assert environment.lock.exists()


@pytest.fixture
def source(tmp_path):
    """A copy of the sources that may be changed."""
    for path in (SOURCE / "spack_envs").rglob("*"):
        if path.suffix == ".yaml" or path.name == "package.py":
            copy = tmp_path / "source" / path.relative_to(SOURCE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    return tmp_path / "source"


@pytest.mark.parametrize(
    ("changed", "others_too"),
    [
        ("prefix", False),
        ("version", True),
        ("spack-packages/repos/spack_repo/builtin/packages/gcc/package.py", True),
        ("source/spack_envs/spack_repo/plumbline/packages/mpicost/package.py", True),
        ("source/spack_envs/common/concretizer.yaml", True),
        ("source/spack_envs/mpich/spack.yaml", False),
    ],
)
def test_change_drops_the_old_solution_of_every_environment(tmp_path, work, spack, source, changed, others_too):
    """Spack never looks again at what a spack.lock was solved from."""
    other = write(work, spack, an_mpi("openmpi", "5.0.11"), source)
    environment = write(work, spack, source=source)
    other.lock.write_text("{}")
    environment.lock.write_text("{}")
    mpi = an_mpi()
    if changed == "prefix":
        mpi = an_mpi(prefix="/opt/other", mpicc="/opt/other/bin/mpicc")
    elif changed == "version":
        spack = replace(spack, version="1.0.2")
    else:
        with (tmp_path / changed).open("a") as file:
            file.write("# changed\n")
    assert write(work, spack, mpi, source).changed
    assert not environment.lock.exists()
    if others_too:
        assert write(work, spack, an_mpi("openmpi", "5.0.11"), source).changed
    assert other.lock.exists() != others_too


def test_killed_while_writing_leaves_no_stale_solution(work, spack, monkeypatch):
    environment = write(work, spack)
    environment.lock.write_text("{}")

    def killed(path, *_, **__):
        if path.suffix == ".yaml":
            raise KeyboardInterrupt

    monkeypatch.setattr(machine.files, "write_text", killed)
    spack = replace(spack, version="1.0.2")
    with pytest.raises(KeyboardInterrupt):
        write(work, spack)
    assert not environment.lock.exists()


@plants("security", "texts that YAML or Spack would read otherwise",
        "a path or a name that goes to Spack", "incomplete", 1,
        "no Spack environment for family 'cray-mpich' | not a name | not a version | "
        "absolute path")  # fmt: skip
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"family": "cray-mpich"}, "no Spack environment for family 'cray-mpich'"),
        ({"name": "../../etc"}, "not a name"),
        ({"name": "common"}, "not a name"),
        ({"name": "a b"}, "not a name"),
        ({"name": ""}, "not a name"),
        ({"name": "mpich", "version": "5 ^hdf5"}, "not a version"),
        ({"name": "mpich", "version": ""}, "not a version"),
        ({"prefix": "opt/mpi"}, "absolute path"),
        ({"prefix": "/opt/my mpi"}, "absolute path"),
        ({"prefix": "/opt/$HOME"}, "absolute path"),
        ({"prefix": "/opt/mpi\n"}, "absolute path"),
    ],
)
def test_what_spack_would_misread_is_refused(work, spack, fields, words, declared: Declared):
    with declared.raises(SpackEnvironmentError, match=words) as caught:
        write(work, spack, an_mpi(**fields))
    assert "\n" not in str(caught.value)
    assert not (work / "spack" / "environments").exists()


@plants("security", "a blank in the path", "the work directory, for Spack", "incomplete", 1,
        "absolute path")  # fmt: skip
def test_work_directory_with_spaces_is_refused(tmp_path, spack, declared: Declared):
    with declared.raises(SpackEnvironmentError):
        write(tmp_path / "my work", spack)


@plants("builds", "a place that cannot be written to", "the work directory, for Spack", "incomplete", 1,
        "work/spack")  # fmt: skip
def test_work_directory_that_cannot_be_made_is_named(tmp_path, spack, declared: Declared):
    (tmp_path / "work").write_text("a file")
    with declared.raises(SpackEnvironmentError):
        write(tmp_path / "work", spack)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_accepted_text_can_change_the_meaning_of_a_file(name, version, prefix):
    mpi = an_mpi(name=name, version=version, prefix=f"/{prefix}")
    try:
        machine.check_names(mpi, [Path(mpi.prefix)])
    except SpackEnvironmentError as error:
        assert "\n" not in str(error)
    else:
        for text in (name, version, prefix):
            assert not set(text) & set(" \t\n'\"$~{}%^&*?;|<>:,=@")


ANSWERS = {
    "gcc": "12.2.0",
    "g++": "12.2.0",
    "cmake": "cmake version 4.4.4-dirty",
    "ninja": "1.13.2.git.kitware",
    "make": "GNU Make 4.3",
}


def tool(folder: Path, name: str, answer: str, status: int = 0) -> None:
    """An executable that prints ``answer``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\necho "{answer}"\nexit {status}\n')
    (folder / name).chmod(0o755)


@pytest.fixture
def bin_folder(tmp_path):
    for name, answer in ANSWERS.items():
        tool(tmp_path / "usr" / "bin", name, answer)
    return tmp_path / "usr" / "bin"


def test_finds_versions_prefixes_and_languages(bin_folder):
    gcc, cmake, ninja, make = find_toolchain([bin_folder])
    assert gcc.spec == "gcc@12.2.0 languages='c,c++'"
    assert gcc.compilers == {"c": f"{bin_folder}/gcc", "cxx": f"{bin_folder}/g++"}
    assert (cmake.spec, ninja.spec, make.spec) == ("cmake@4.4.4", "ninja@1.13.2", "gmake@4.3")
    assert {package.prefix for package in (gcc, cmake, ninja, make)} == {str(bin_folder.parent)}


def test_gcc_without_cxx_is_enough(bin_folder):
    (bin_folder / "g++").unlink()
    assert find_toolchain([bin_folder])[0].spec == "gcc@12.2.0 languages='c'"


def test_first_folder_wins(bin_folder, tmp_path):
    tool(tmp_path / "wheel" / "bin", "cmake", "cmake version 3.30.1")
    _, cmake, ninja, *_ = find_toolchain([tmp_path / "wheel" / "bin", bin_folder])
    assert (cmake.spec, ninja.prefix) == ("cmake@3.30.1", str(bin_folder.parent))


def test_folder_that_is_no_bin_is_passed_over(bin_folder, tmp_path):
    """Spack would look for bin/cmake in the folder above."""
    tool(tmp_path / "shims", "cmake", "cmake version 3.30.1")
    assert find_toolchain([tmp_path / "shims", bin_folder])[1].spec == "cmake@4.4.4"


@pytest.mark.parametrize(("answer", "status"), [("cmake version 9.9.9", 1), ("no version", 0)])
def test_tool_that_does_not_work_is_passed_over(bin_folder, tmp_path, answer, status):
    tool(tmp_path / "broken" / "bin", "cmake", answer, status)
    assert find_toolchain([tmp_path / "broken" / "bin", bin_folder])[1].spec == "cmake@4.4.4"


@plants("builds", "a tool that is not on the PATH", "the toolchain", "incomplete", 1, "no ")
@pytest.mark.parametrize("name", ["gcc", "cmake", "ninja"])
def test_missing_tool_is_named(bin_folder, name, declared: Declared):
    (bin_folder / name).unlink()
    with declared.raises(SpackEnvironmentError, match=f"no {name} ") as caught:
        find_toolchain([bin_folder])
    assert "\n" not in str(caught.value)


def test_this_python_has_cmake_and_ninja_beside_it_or_on_path():
    _, cmake, ninja, *_ = find_toolchain()
    for external in (cmake, ninja):
        assert Path(external.prefix, "bin", external.package).is_file()


def test_the_tools_on_the_path_are_started_once_for_all_mpis(bin_folder, tmp_path, monkeypatch):
    (bin_folder / "gcc").write_text(f"#!/bin/sh\necho 12.2.0 | tee -a {tmp_path}/log\n")
    monkeypatch.setenv("PATH", str(bin_folder), prepend=":")
    assert find_toolchain() == find_toolchain()
    assert (tmp_path / "log").read_text() == "12.2.0\n"


@pytest.mark.parametrize("answer", [None, "make: illegal option", "BSD make 4.3"])
def test_make_that_is_not_gnu_make_is_none(bin_folder, answer):
    """Then there is no IMB and no OSU, but mpicost is built all the same."""
    (bin_folder / "make").unlink()
    if answer:
        tool(bin_folder, "make", answer)
    assert [package.package for package in find_toolchain([bin_folder])] == ["gcc", "cmake", "ninja"]
