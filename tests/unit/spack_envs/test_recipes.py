"""The closed world of recipes: everything that is needed, nothing that could be compiled by surprise."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_envs.errors import SpackEnvironmentError
from spack_envs.recipes import BUILT, EXTERNAL, build_closed_recipes
from tests.support.faults import Declared, plants
from tests.support.threads import at_once

TEXTS = {
    "gcc": 'depends_on("gmp@4.3.2:")\n',
    "mpich": 'for name in ("libfabric", "ucx"):\n    depends_on(name)\nprovides("mpi")\n',
    "cmake": "conflicts('%intel-oneapi-compilers@:18')\n",
}
OTHERS = ("gmp", "libfabric", "ucx", "intel_oneapi_compilers", "autoconf", "unrelated", "_7zip")


def recipe(folder: Path, name: str, text: str) -> None:
    """One package of a repository."""
    path = folder / "packages" / name / "package.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)


@pytest.fixture
def packages(tmp_path):
    """A small checkout of package recipes."""
    builtin = tmp_path / "spack-packages" / "repos" / "spack_repo" / "builtin"
    for name in (*BUILT, *EXTERNAL):
        if name != "mpicost":
            recipe(builtin, name.replace("-", "_"), TEXTS.get(name, "pass\n"))
    for name in OTHERS:
        recipe(builtin, name, 'depends_on("unrelated")\n')
    recipe(builtin, "mpi", "class Mpi(Package):\n    virtual = True\n")
    (builtin / "build_systems").mkdir()
    (builtin / "build_systems" / "makefile.py").write_text('depends_on("autoconf")\n')
    (builtin / "repo.yaml").write_text("repo: {namespace: builtin}\n")
    return tmp_path / "spack-packages"


@pytest.fixture
def ours(tmp_path):
    """Our repository."""
    folder = tmp_path / "source" / "plumbline"
    recipe(folder, "mpicost", "class Mpicost:\n    name = 1\n")
    (folder / "repo.yaml").write_text("repo: {namespace: plumbline}\n")
    (folder / "packages" / "mpicost" / "__pycache__").mkdir()
    return folder


def names(repository: Path) -> set[str]:
    """Packages of a repository."""
    return {path.parent.name for path in repository.glob("packages/*/package.py")}


def test_has_what_known_recipes_name_and_no_more(tmp_path, packages, ours):
    world = build_closed_recipes(tmp_path / "worlds", packages, ours)
    known = {name.replace("-", "_") for name in (*BUILT, *EXTERNAL)} - {"mpicost"}
    named = {"gmp", "libfabric", "ucx", "intel_oneapi_compilers", "autoconf", "mpi"}
    assert names(world.builtin) == known | named
    assert names(world.plumbline) == {"mpicost"}
    assert (world.builtin / "build_systems" / "makefile.py").is_file()
    assert (world.builtin / "repo.yaml").is_file()


def test_what_is_only_named_may_not_be_built(tmp_path, packages, ours):
    world = build_closed_recipes(tmp_path / "worlds", packages, ours)
    assert world.closed == ("autoconf", "gmp", "intel-oneapi-compilers", "libfabric", "ucx")


def test_second_time_finds_it(tmp_path, packages, ours):
    world = build_closed_recipes(tmp_path / "worlds", packages, ours)
    before = {path: path.lstat().st_mtime_ns for path in world.root.rglob("*")}
    assert build_closed_recipes(tmp_path / "worlds", packages, ours) == world
    assert {path: path.lstat().st_mtime_ns for path in world.root.rglob("*")} == before


@pytest.mark.parametrize("whose", ["ours", "theirs", "index of ours"])
def test_changed_recipe_makes_another_world(tmp_path, packages, ours, whose):
    """Spack's index goes by the name of a repository: one index for two contents would be stale."""
    changed = {
        "ours": ours / "packages" / "mpicost" / "package.py",
        "index of ours": ours / "repo.yaml",
        "theirs": packages / "repos/spack_repo/builtin/packages/gmp/package.py",
    }[whose]
    before = build_closed_recipes(tmp_path / "worlds", packages, ours)
    changed.write_text(changed.read_text() + "# changed\n")
    after = build_closed_recipes(tmp_path / "worlds", packages, ours)
    assert after.root != before.root
    assert after.index != before.index


@pytest.mark.parametrize("name", ["packages/mpicost/package.py", "helper.py", "added.py"])
def test_recipe_changes_with_all_that_it_may_import(tmp_path, packages, ours, name):
    """Spack's hash of a package is that of its own file: what did not change it would not be built again."""
    (ours / "helper.py").write_text("FLAGS = '-O3'\n")

    def text() -> str:
        world = build_closed_recipes(tmp_path / "worlds", packages, ours)
        recipe = (world.plumbline / "packages" / "mpicost" / "package.py").read_text()
        compile(recipe, "package.py", "exec")
        return recipe

    before = text()
    (ours / name).write_text("class Mpicost:\n    name = 2\n")
    assert text().splitlines()[-1] != before.splitlines()[-1]


def test_leaves_no_trace_in_the_sources(tmp_path, packages, ours):
    (ours / "packages" / "mpicost" / "__pycache__").rmdir()
    before = sorted(ours.rglob("*"))
    world = build_closed_recipes(tmp_path / "worlds", packages, ours)
    (world.plumbline / "packages" / "mpicost" / "__pycache__").mkdir()
    assert sorted(ours.rglob("*")) == before


def test_two_at_once(tmp_path, packages, ours):
    worlds = at_once(lambda: build_closed_recipes(tmp_path / "worlds", packages, ours))
    assert len(worlds) == 4
    assert len(set(worlds)) == 1
    assert [path.name for path in (tmp_path / "worlds").iterdir()] == [worlds[0].root.name]


@plants("builds", "a package that is not there", "recipes of Spack", "incomplete", 1,
        "mpich/package.py: No such file")  # fmt: skip
def test_recipes_without_a_known_package_are_refused(tmp_path, packages, ours, declared: Declared):
    missing = packages / "repos/spack_repo/builtin/packages/mpich/package.py"
    missing.unlink()
    with declared.raises(SpackEnvironmentError) as caught:
        build_closed_recipes(tmp_path / "worlds", packages, ours)
    assert "\n" not in str(caught.value)
