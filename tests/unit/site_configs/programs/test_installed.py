"""Programs that are installed already: where a program comes from, and why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from site_configs.common import environment
from site_configs.programs.installed import (
    WHEEL,
    Installed,
    build_extras,
    describe_missing_executables,
    explain_missing_program,
    find_executable,
    find_program_source,
)


def an_environment(**changes) -> dict:
    values = {"family": "mpich", "library": "MPICH Version: 5", "launcher": "srun"}
    return environment("mpich", **values | changes)


def extras(tmp_path: Path, *, solved: bool = False, **declared) -> dict:
    """Extras of an environment, with or without a Spack environment of it."""
    if solved:
        (tmp_path / "spack.yaml").touch()
    own = build_extras(declared.get("programs", {}), declared.get("lacking", {}))
    return own | {"spack_environment": str(tmp_path)}


BY_WHEEL = {"imb": Installed("/w/bin", {"LD_LIBRARY_PATH": "/m/lib"}, WHEEL)}
DECLARED = {"osu": "/sw/osu", "imb": "/sw/imb"}
ABI = "Intel MPI's IMB needs libmpi.so.12, which this MPI has not"


@pytest.mark.parametrize(
    ("program", "spack", "solved", "declared", "source", "why"),
    [
        ("mpicost", "/spack", True, {}, "spack", ""),
        ("mpicost", "/spack", False, {}, "cmake", ""),
        ("mpicost", "", True, {}, "cmake", ""),
        ("osu", "/spack", True, {}, "spack", ""),
        ("osu", "", True, {}, "", "no Spack"),
        ("osu", "/spack", False, {}, "", "no Spack environment for this MPI"),
        ("osu", "", False, {"programs": DECLARED}, "site", ""),
        ("osu", "/spack", True, {"programs": DECLARED}, "site", ""),
        ("osu", "", False, {"programs": BY_WHEEL}, "", "no Spack"),
        ("imb", "", False, {"programs": BY_WHEEL}, "wheel", ""),
        ("imb", "/spack", True, {"programs": BY_WHEEL}, "spack", ""),
        ("imb", "/spack", False, {"programs": BY_WHEEL}, "wheel", ""),
        ("imb", "", False, {"lacking": {"imb": ABI}}, "", f"no Spack; {ABI}"),
        ("osu", "", False, {"lacking": {"imb": ABI}}, "", "no Spack"),
    ],
)
def test_a_program_comes_from_one_place_or_it_is_said_why_not(
    tmp_path: Path, program, spack, solved, declared, source, why
):
    own = extras(tmp_path, solved=solved, **declared)
    assert find_program_source(program, own, spack) == source
    assert explain_missing_program(program, own, spack) == why


def test_checks_are_told_of_what_is_installed():
    entry = an_environment(programs=BY_WHEEL | {"osu": "/sw/osu"}, lacking={"x": "y"})
    assert {key: entry["extras"][key] for key in ("programs", "program_env", "program_origin")} == {
        "programs": {"imb": "/w/bin", "osu": "/sw/osu"},
        "program_env": {"imb": {"LD_LIBRARY_PATH": "/m/lib"}},
        "program_origin": {"imb": "wheel", "osu": "site"},
    }


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ([("imb", "/x")], "[('imb', '/x')]: write {'imb': '/sw/imb/bin'}"),
        ({"mpicost": "/x"}, "'mpicost': write one of imb, osu"),
        ({3: "/x"}, "3: write one of imb, osu"),
        ({"imb": None}, "imb: None: write an absolute path, as in '/sw/imb/bin'"),
        ({"osu": ""}, "osu: '': write an absolute path"),
        ({"osu": "libexec"}, "osu: 'libexec': write an absolute path"),
    ],
)
def test_a_wrong_declaration_is_one_line_with_its_key(programs, said: str):
    with pytest.raises(ValueError) as refused:
        an_environment(programs=programs)
    assert str(refused.value).startswith(f"environment 'mpich': programs: {said}")
    with pytest.raises(ValueError, match=r"^Installed: folder: 'libexec': write an absolute path"):
        Installed("libexec")


@pytest.mark.parametrize("place", ["", "pt2pt", "pt2pt/standard"])
def test_a_folder_is_known_by_an_executable_in_it_or_below(tmp_path: Path, place: str):
    said = describe_missing_executables("osu", str(tmp_path))
    assert said.startswith(f"{tmp_path}: has no osu_latency; write the")
    path = tmp_path / place / "osu_latency"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert find_executable(tmp_path, "osu_latency") == path
    assert describe_missing_executables("osu", str(tmp_path)) == ""
    said = describe_missing_executables("imb", str(tmp_path))
    assert said.startswith(f"{tmp_path}: has no IMB-MPI1")


def test_an_executable_that_is_there_twice_is_nobodys(tmp_path: Path):
    """As in a folder with two versions, of which the first one by name would be measured."""
    for version in ("7.4", "7.5"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "osu_latency").touch()
    assert describe_missing_executables("osu", str(tmp_path)) == (
        f"{tmp_path}: has osu_latency more than once ({tmp_path}/7.4/osu_latency and "
        f"{tmp_path}/7.5/osu_latency); write the folder of one of them"
    )
    assert describe_missing_executables("osu", str(tmp_path / "7.4")) == ""


def test_a_folder_that_is_not_there_is_named():
    assert describe_missing_executables("imb", "/nowhere") == "/nowhere: is no folder"
