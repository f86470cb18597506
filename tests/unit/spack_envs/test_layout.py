"""How Spack is called."""

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_envs import layout
from tests.support.faults import Declared, plants
from tests.support.threads import at_once


def test_spack_writes_below_the_work_directory_on_this_python_and_before_any_other_spack():
    environ = {"PATH": "/usr/bin:/bin"}
    told = layout.spack_environment_variables(Path("/site"), Path("/opt/spack/bin/spack"), environ)
    assert (told["SPACK_DISABLE_LOCAL_CONFIG"], told["SPACK_USER_CACHE_PATH"]) == ("1", "/site/spack/cache")
    assert told["SPACK_PYTHON"] == sys.executable  # which has the solver
    assert told["PATH"].split(os.pathsep) == ["/opt/spack/bin", "/usr/bin", "/bin"]


def test_hash_is_read_from_the_solution(tmp_path):
    roots = [{"hash": "abc", "spec": "mpicost@main"}, {"hash": "def", "spec": "osu-micro-benchmarks"}]
    (tmp_path / "spack.lock").write_text(json.dumps({"roots": roots}))
    assert layout.read_locked_hash(tmp_path) == "abc"
    assert layout.read_locked_hash(tmp_path, "osu-micro-benchmarks") == "def"


@plants("builds", "a solution of Spack that is none", "spack.lock", "incomplete", 1,
        "spack.lock: no solution")  # fmt: skip
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        '{"roots": 3}',
        '{"roots": []}',
        '{"roots": [{"spec": "mpicost"}]}',
        '{"roots": [{"hash": "a", "spec": "mpicost"}, {"hash": "b", "spec": "mpicost"}]}',
    ],
)
def test_no_solution_is_one_line(tmp_path, text, declared: Declared):
    if text is not None:
        (tmp_path / "spack.lock").write_text(text)
    with declared.raises(layout.SpackEnvironmentError) as caught:
        layout.read_locked_hash(tmp_path)
    assert "\n" not in str(caught.value)


TARBALL = """==> Installing osu-micro-benchmarks-7.4-q2i75n3 [7/7]
==> Error: FetchError: All fetchers failed for spack-stage-osu-micro-benchmarks-7.4-q2i75n3
        https://h.example/osu-7.4.tar.gz: DetailedURLError: GET https://h.example/osu-7.4.tar.gz \
errored with: Name or service not known
"""
MIRROR_FIRST = """==> Error: FetchError: All fetchers failed for spack-stage-osu-micro-benchmarks-7.4-q2i75n3
        file:///m/_source-cache/archive/1e/1edd.tar.gz: FileNotFoundError: not there
        https://h.example/osu-7.4.tar.gz: DetailedURLError: GET https://h.example/osu-7.4.tar.gz \
errored with: timed out
"""
REPOSITORY = """fatal: unable to access 'https://h.example/imb.git/': Could not resolve host: h.example
==> Error: FetchError: All fetchers failed for spack-stage-intel-mpi-benchmarks-2021.11-nutpbxd
        [git] https://h.example/imb.git at commit 1a7cada: ProcessError: Command exited with status 128:
    '/usr/bin/git' 'clone' '--quiet' 'https://h.example/imb.git'
"""
CHECKSUM = """==> Error: ChecksumError: sha256 checksum failed for /w/stage/osu-7.4.tar.gz
    Expected 1edd but got dda5. File size = 970126 bytes.
"""
SOLVER = """==> Error: failed to concretize `mpicost@main`, `osu-micro-benchmarks@9` for the following reasons:
     1. Cannot satisfy 'osu-micro-benchmarks@9' 1(7.5.2)
     2. something that follows from it
"""
COMPILER = """==> Error: ProcessError: Command exited with status 2:
    '/usr/bin/make' '-j2'
1 error found in build log:
     12    gcc -c a.c
  >> 13    a.c:3:2: error: #error broken
See build log for details:
  /w/stage/spack-stage-mpicost/spack-build-out.txt
"""
FOLDED = """==> Error: ProcessError: Command exited with status 1:
    'ninja' '-j2'
2 errors found in build log:
     36    [14/55] gcc -c a long
            command
  >> 37    FAILED: [code=1] main.c.o
  >> 39    /w/a/long/path/to/suite/src/main.c:1:2: er
           ror: #error broken
     40        1 | #error broken
See build log for details:
  /w/stage/spack-stage-mpicost/spack-build-out.txt
"""


NOT_FETCHED = "cannot be fetched from https://h.example"
ALL = "(all of it: /w/stage/spack-stage-mpicost/spack-build-out.txt)"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (TARBALL, f"{NOT_FETCHED}/osu-7.4.tar.gz (Name or service not known): {layout.FIX}"),
        (REPOSITORY, f"{NOT_FETCHED}/imb.git (Could not resolve host: h.example): {layout.FIX}"),
        (MIRROR_FIRST, f"{NOT_FETCHED}/osu-7.4.tar.gz (timed out): {layout.FIX}"),
        (
            CHECKSUM,
            "ChecksumError: sha256 checksum failed for /w/stage/osu-7.4.tar.gz: "
            "Expected 1edd but got dda5. File size = 970126 bytes.",
        ),
        (SOLVER, "cannot be solved: Cannot satisfy 'osu-micro-benchmarks@9' 1(7.5.2)"),
        (COMPILER, f"ProcessError: Command exited with status 2: a.c:3:2: error: #error broken {ALL}"),
        (
            FOLDED,
            "ProcessError: Command exited with status 1: "
            f"/w/a/long/path/to/suite/src/main.c:1:2: error: #error broken {ALL}",
        ),
        ("==> a\nIllegal instruction\n\n", "Illegal instruction"),
        ("", "Spack ends without a word"),
    ],
)
def test_reason_is_one_line_with_the_fix(output, line):
    assert str(layout.extract_spack_error(output)) == line


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        *((each, layout.SourceError) for each in (TARBALL, REPOSITORY, MIRROR_FIRST)),
        *((each, layout.SpackEnvironmentError) for each in (CHECKSUM, SOLVER, COMPILER, "")),
    ],
)
def test_only_what_cannot_be_fetched_has_no_source(output, kind, monkeypatch):
    monkeypatch.setattr(layout, "describe_fetch_failure", lambda *_: "another sentence")
    monkeypatch.setattr(layout, "describe_build_failure", lambda *_: "cannot be fetched from here")
    assert type(layout.extract_spack_error(output)) is kind


@given(st.text(), st.sampled_from([TARBALL, REPOSITORY, CHECKSUM, SOLVER, COMPILER, ""]))
def test_whatever_spack_says_is_one_line(noise, output):
    said = str(layout.extract_spack_error(noise + output))
    assert said
    assert len(said.splitlines()) == 1


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
    for name in (*layout.BUILT, *layout.EXTERNAL):
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
    folder = tmp_path / "source" / "plumbline"
    recipe(folder, "mpicost", "class Mpicost:\n    name = 1\n")
    (folder / "repo.yaml").write_text("repo: {namespace: plumbline}\n")
    (folder / "packages" / "mpicost" / "__pycache__").mkdir()
    return folder


def names(repository: Path) -> set[str]:
    return {path.parent.name for path in repository.glob("packages/*/package.py")}


def test_has_what_known_recipes_name_and_no_more_and_does_not_build_it(tmp_path, packages, ours):
    world = layout.build_closed_recipes(tmp_path / "worlds", packages, ours)
    known = {name.replace("-", "_") for name in (*layout.BUILT, *layout.EXTERNAL)} - {"mpicost"}
    named = {"gmp", "libfabric", "ucx", "intel_oneapi_compilers", "autoconf", "mpi"}
    assert (names(world.builtin), names(world.plumbline)) == (known | named, {"mpicost"})
    assert (world.builtin / "build_systems" / "makefile.py").is_file()
    assert (world.builtin / "repo.yaml").is_file()
    assert world.closed == ("autoconf", "gmp", "intel-oneapi-compilers", "libfabric", "ucx")


def test_second_time_finds_it(tmp_path, packages, ours):
    world = layout.build_closed_recipes(tmp_path / "worlds", packages, ours)
    before = {path: path.lstat().st_mtime_ns for path in world.root.rglob("*")}
    assert layout.build_closed_recipes(tmp_path / "worlds", packages, ours) == world
    assert {path: path.lstat().st_mtime_ns for path in world.root.rglob("*")} == before


@pytest.mark.parametrize("whose", ["ours", "theirs", "index of ours"])
def test_changed_recipe_makes_another_world(tmp_path, packages, ours, whose):
    """Spack's index goes by the name of a repository: one index for two contents would be stale."""
    changed = {
        "ours": ours / "packages" / "mpicost" / "package.py",
        "index of ours": ours / "repo.yaml",
        "theirs": packages / "repos/spack_repo/builtin/packages/gmp/package.py",
    }[whose]
    before = layout.build_closed_recipes(tmp_path / "worlds", packages, ours)
    changed.write_text(changed.read_text() + "# changed\n")
    after = layout.build_closed_recipes(tmp_path / "worlds", packages, ours)
    assert after.root != before.root and after.index != before.index


@pytest.mark.parametrize("name", ["packages/mpicost/package.py", "helper.py", "added.py"])
def test_recipe_changes_with_all_that_it_may_import(tmp_path, packages, ours, name):
    """Spack's hash of a package is that of its own file: what did not change it would not be built again."""
    (ours / "helper.py").write_text("FLAGS = '-O3'\n")

    def text() -> str:
        world = layout.build_closed_recipes(tmp_path / "worlds", packages, ours)
        recipe = (world.plumbline / "packages" / "mpicost" / "package.py").read_text()
        compile(recipe, "package.py", "exec")
        return recipe

    before = text()
    (ours / name).write_text("class Mpicost:\n    name = 2\n")
    assert text().splitlines()[-1] != before.splitlines()[-1]


def test_leaves_no_trace_in_the_sources(tmp_path, packages, ours):
    (ours / "packages" / "mpicost" / "__pycache__").rmdir()
    before = sorted(ours.rglob("*"))
    world = layout.build_closed_recipes(tmp_path / "worlds", packages, ours)
    (world.plumbline / "packages" / "mpicost" / "__pycache__").mkdir()
    assert sorted(ours.rglob("*")) == before


def test_two_at_once(tmp_path, packages, ours):
    worlds = at_once(lambda: layout.build_closed_recipes(tmp_path / "worlds", packages, ours))
    assert (len(worlds), len(set(worlds))) == (4, 1)
    assert [path.name for path in (tmp_path / "worlds").iterdir()] == [worlds[0].root.name]


@plants("builds", "a package that is not there", "recipes of Spack", "incomplete", 1,
        "mpich/package.py: No such file")  # fmt: skip
def test_recipes_without_a_known_package_are_refused(tmp_path, packages, ours, declared: Declared):
    missing = packages / "repos/spack_repo/builtin/packages/mpich/package.py"
    missing.unlink()
    with declared.raises(layout.SpackEnvironmentError) as caught:
        layout.build_closed_recipes(tmp_path / "worlds", packages, ours)
    assert "\n" not in str(caught.value)
