"""The compiler and the build tools that Spack is told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_envs.errors import SpackEnvironmentError
from spack_envs.toolchain import find_toolchain
from tests.support.faults import Declared, plants

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
    """A folder with all tools."""
    for name, answer in ANSWERS.items():
        tool(tmp_path / "usr" / "bin", name, answer)
    return tmp_path / "usr" / "bin"


def test_finds_versions_prefixes_and_languages(bin_folder):
    gcc, cmake, ninja, make = find_toolchain([bin_folder])
    assert gcc.spec == "gcc@12.2.0 languages='c,c++'"
    assert gcc.compilers == {"c": f"{bin_folder}/gcc", "cxx": f"{bin_folder}/g++"}
    assert (cmake.spec, ninja.spec, make.spec) == ("cmake@4.4.4", "ninja@1.13.2", "gmake@4.3")
    assert {each.prefix for each in (gcc, cmake, ninja, make)} == {str(bin_folder.parent)}


def test_gcc_without_cxx_is_enough(bin_folder):
    (bin_folder / "g++").unlink()
    assert find_toolchain([bin_folder])[0].spec == "gcc@12.2.0 languages='c'"


def test_first_folder_wins(bin_folder, tmp_path):
    tool(tmp_path / "wheel" / "bin", "cmake", "cmake version 3.30.1")
    _, cmake, ninja, *_ = find_toolchain([tmp_path / "wheel" / "bin", bin_folder])
    assert cmake.spec == "cmake@3.30.1"
    assert ninja.prefix == str(bin_folder.parent)


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


@pytest.mark.parametrize("answer", [None, "make: illegal option", "BSD make 4.3"])
def test_make_that_is_not_gnu_make_is_none(bin_folder, answer):
    """Then there is no IMB and no OSU, but mpicost is built all the same."""
    (bin_folder / "make").unlink()
    if answer:
        tool(bin_folder, "make", answer)
    assert [each.package for each in find_toolchain([bin_folder])] == ["gcc", "cmake", "ninja"]
