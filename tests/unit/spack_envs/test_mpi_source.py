"""An MPI from its source: what is taken of it, how it is known again, and what Spack is told."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from spack_envs import mpi_source
from spack_envs.layout import SpackEnvironmentError
from spack_envs.mpi_source import build_mpi, copy_files
from spack_envs.provide import Spack

#: Stands for Spack: keeps a log, and installs a wrapper.
SPACK = f"""#!{sys.executable}
import os, pathlib, re, sys
root = pathlib.Path(__file__).parent
words = sys.argv[3:]
told = (pathlib.Path(sys.argv[2]) / "spack.yaml").read_text()
if words[0] == "config":
    print((root / "packages.yaml").read_text() if (root / "packages.yaml").exists() else "")
    sys.exit()
with (root / "log").open("a") as log:
    print(*words, "alone" if "SPACK_DISABLE_LOCAL_CONFIG" in os.environ else "with the user's", file=log)
label = "usr" if (root / "external").exists() else re.search(r"projections:\\s+\\w+: '?([^/]+)", told)[1]
prefix = root / "installed" / label
if words[0] == "install":
    if (root / "broken").exists():
        sys.exit("==> Error: ProcessError: it does not compile")
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    (prefix / "bin" / "mpicc").touch()
if words[0] == "location":
    print(prefix)
"""


@dataclass(frozen=True)
class Place:
    """A source, a work directory and a Spack that only plays."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "mpich"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def answer(
        self, path: Path | None = None, say: Callable[[str], None] = lambda _: None
    ) -> tuple[Path, bool]:
        spack = Spack(self.root / "spack", self.root / "packages", "1.1.0", "PATH")
        return build_mpi(self.work, spack, path or self.source, say)

    def build(self, path: Path | None = None) -> Path:
        return self.answer(path)[0]

    def calls(self) -> list[str]:
        """What Spack was called with since the last time."""
        log = self.root / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def environments(self) -> list[Path]:
        return sorted((self.work / "spack" / "mpis").glob("*/spack.yaml"))


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("SPACK_DISABLE_LOCAL_CONFIG", raising=False)
    place = Place(tmp_path)
    (tmp_path / "spack").write_text(SPACK)
    (tmp_path / "spack").chmod(0o755)
    (place.source / "maint").mkdir(parents=True)
    (place.source / "maint" / "version.m4").write_text("m4_define([MPICH_VERSION_m4],[4.0.2])dnl\n")
    (place.source / "configure").write_text("#!/bin/sh\n")
    return place


def test_spack_is_told_of_a_copy_that_is_named_by_its_contents(place: Place):
    prefix = place.build()
    assert (prefix / "bin" / "mpicc").exists()
    (environment,) = place.environments()
    settings = yaml.safe_load(environment.read_text())["spack"]
    copy = environment.parent / "source"
    assert settings["specs"] == ["mpich@=4.0.2"]
    assert settings["develop"] == {"mpich": {"spec": "mpich@=4.0.2", "path": str(copy)}}
    folder = settings["config"]["install_tree"]["projections"]["mpich"].partition("/")[0]
    assert folder == f"mpich-4.0.2-source-{environment.parent.name}"
    assert (copy / "configure").stat().st_mtime == (place.source / "configure").stat().st_mtime
    (recipe,) = environment.parent.glob("spack_repo/*/packages/mpich/package.py")
    assert "Mpich.patches = {}" in recipe.read_text()
    assert all(each.endswith("with the user's") for each in place.calls())


def test_a_source_is_built_once_and_another_time_where_a_file_of_it_has_changed(place: Place):
    first, built = place.answer()
    assert built
    assert place.calls()
    assert place.answer() == (first, False)
    assert not place.calls()
    (place.source / "configure").write_text("#!/bin/sh\n# changed\n")
    assert place.build() != first
    assert len(place.environments()) == 2
    shutil.rmtree(first)  # by somebody's hand
    assert place.calls()
    (place.source / "configure").write_text("#!/bin/sh\n")
    assert place.build() == first
    assert place.calls()


def test_what_the_user_prefers_is_built_even_of_a_known_source(place: Place):
    place.build()
    assert "install with the user's" in place.calls()
    (place.root / "packages.yaml").write_text("mpich: {variants: netmod=ofi}")
    place.build()
    assert "install with the user's" in place.calls()
    place.build()
    assert not place.calls()


def test_what_goes_on_is_not_told_by_the_configuration(place: Place):
    """While Spack solves, which takes minutes, it says nothing: the last line that was said stays."""
    (place.root / "packages.yaml").write_text("mpich: {variants: netmod=ofi}")
    said: list[str] = []
    prefix, _ = place.answer(say=said.append)
    assert said == ["Spack finds out what it depends on", str(prefix)]


def test_an_mpi_that_is_not_of_the_source_is_refused(place: Place):
    (place.root / "external").touch()
    with pytest.raises(SpackEnvironmentError, match="is not built from this source"):
        place.build()


def test_a_source_that_changes_while_it_is_copied_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch):
    def copy(folder: Path, names: list[str], target: Path) -> None:
        copy_files(folder, names, target)
        (target / "configure").write_text("#!/bin/sh\n# saved meanwhile\n")

    monkeypatch.setattr(mpi_source, "copy_files", copy)
    with pytest.raises(SpackEnvironmentError, match="was changed while it was copied"):
        place.build()
    assert not place.environments()


def test_new_files_of_submodules_and_names_that_are_no_text_are_taken(place: Place):
    other = place.root / "yaksa"
    other.mkdir()
    (other / "one.c").touch()
    for folder in (other, place.source):
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "one")
    git(place.source, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "modules/yaksa")
    (place.source / "modules" / "yaksa" / "new.c").touch()
    (place.source / os.fsdecode(b"\xff.c")).touch()
    place.build()
    (environment,) = place.environments()
    copy = environment.parent / "source"
    assert sorted(os.listdir(copy / "modules" / "yaksa")) == ["new.c", "one.c"]
    assert os.fsdecode(b"\xff.c") in os.listdir(copy)


def test_of_a_checkout_is_taken_what_git_does_not_ignore(place: Place):
    git(place.source, "init", "-q")
    (place.source / ".gitignore").write_text("*.o\n")
    git(place.source, "add", "-A")
    git(place.source, "commit", "-qm", "one")
    (place.source / "built.o").touch()
    first = place.build()
    (place.source / "another.o").touch()
    assert place.build() == first
    (environment,) = place.environments()
    assert sorted(os.listdir(environment.parent / "source")) == [".gitignore", "configure", "maint"]
    (place.source / "new.c").touch()  # not committed, and yet compiled
    assert place.build() != first


def test_a_checkout_without_configure_is_of_the_version_that_has_to_make_it(place: Place):
    (place.source / "configure").unlink()
    place.build()
    assert "mpich@=develop" in place.environments()[0].read_text()


def test_a_tarball_is_a_source(place: Place):
    archive = Path(shutil.make_archive(str(place.root / "release"), "xztar", place.root, "mpich"))
    place.build(archive)
    assert "mpich@=4.0.2" in place.environments()[0].read_text()


def test_open_mpi_tells_its_version_in_three_lines(place: Place):
    shutil.rmtree(place.source / "maint")
    (place.source / "VERSION").write_text("# of Open MPI\nmajor=5\nminor=0\nrelease=8\ngreek=\n")
    place.build()
    assert "openmpi@=5.0.8" in place.environments()[0].read_text()


def test_what_cannot_be_built_is_one_line_and_is_tried_again(place: Place):
    (place.root / "broken").touch()
    for _ in range(2):
        with pytest.raises(SpackEnvironmentError, match=r"^ProcessError: it does not compile$"):
            place.build()
        assert place.calls()
    shutil.rmtree(place.source / "maint")
    with pytest.raises(SpackEnvironmentError, match="is not the source of mpich or openmpi"):
        place.build()
