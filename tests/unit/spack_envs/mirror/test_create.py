"""Making a mirror: resumed, never half, and honest about what it lacks. Without a network and without Spack."""

import fcntl
import io
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from spack_envs.mirror import create as mirror_create
from spack_envs.mirror import manifest
from spack_envs.mirror.create import create_mirror, verify_mirror
from spack_envs.mirror.manifest import NAME, MissingPart
from spack_envs.mirror.parts import GatheredPart
from tests.support.factories.mirror import REPLACED, make_mirror, write
from tests.support.paths import ROOT
from tests.support.plumbline_runner import unwrap


class Parts:
    """Parts of a mirror that put small files into it, or do what a test wants."""

    def __init__(self) -> None:
        self.files = {"wheels": "a.whl", "jars": "a.jar", "releases": "spack.tar.gz", "sources": "source"}
        self.results: dict[str, GatheredPart] = {}
        self.does: dict[str, object] = {}
        self.made: list[str] = []

    def part(self, name: str):
        def gather(making):
            path = f"{name}/{self.files[name]}"
            if act := self.does.get(name):
                act(making)
            if not making.intact(path):
                self.made.append(name)
                fresh = making.scratch / name
                fresh.write_text(f"{name} of this call")
                making.place(fresh, path)
            return replace(self.results.get(name, GatheredPart()), paths=(path,))

        return gather


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    played = Parts()
    table = {name: played.part(name) for name in mirror_create.PARTS}
    monkeypatch.setattr(mirror_create, "PARTS", table)
    return played


@pytest.fixture
def screen() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def make(tmp_path: Path, screen: io.StringIO):
    """Make the mirror; the exit status."""
    work = WorkDirectory(tmp_path / "work", ROOT)

    def run(folder: Path = tmp_path / "mirror") -> int:
        return create_mirror(work, folder, [], Progress(Console(file=screen, width=200)))

    return run


def verify(folder: Path, screen: io.StringIO) -> int:
    """What ``mirror check`` ends with."""
    return verify_mirror(folder, Progress(Console(file=screen, width=200)))


def everything(folder: Path) -> dict[str, str]:
    return {path: (folder / path).read_text() for path in manifest.list_present(folder) if path != NAME}


def test_a_mirror_is_made_and_verifies(tmp_path, parts, make, screen):
    assert make() == 0
    folder = tmp_path / "mirror"
    contents = manifest.read_manifest(folder)
    manifest.verify_files(folder, contents)
    assert contents.missing == ()
    assert everything(folder) == {
        "jars/a.jar": "jars of this call",
        "releases/spack.tar.gz": "releases of this call",
        "sources/source": "sources of this call",
        "wheels/a.whl": "wheels of this call",
    }
    assert "4 files" in screen.getvalue()
    assert verify(folder, screen) == 0


def test_what_is_there_and_right_is_kept_and_what_is_damaged_is_made_again(tmp_path, parts, make):
    make()
    parts.made.clear()
    make()
    assert parts.made == []
    (tmp_path / "mirror" / "releases" / "spack.tar.gz").write_text("damaged")
    (tmp_path / "mirror" / "sources" / "source").unlink()
    make()
    assert parts.made == ["releases", "sources"]
    manifest.verify_files(tmp_path / "mirror", manifest.read_manifest(tmp_path / "mirror"))


@pytest.mark.parametrize("where", ["wheels", "jars", "releases", "sources"])
def test_a_call_that_is_ended_leaves_an_unfinished_mirror_that_the_next_one_completes(
    tmp_path, parts, make, screen, where: str
):
    def interrupt(making) -> None:
        (making.scratch / "half").write_text("half a file")
        raise KeyboardInterrupt

    parts.does = {where: interrupt}
    with pytest.raises(KeyboardInterrupt):
        make()
    folder = tmp_path / "mirror"
    contents = manifest.read_manifest(folder)
    assert contents.missing == (mirror_create.UNFINISHED,)
    manifest.verify_files(folder, contents)
    assert verify(folder, screen) == 1

    done = [*parts.made]
    parts.does = {}
    assert make() == 0
    assert sorted(parts.made) == ["jars", "releases", "sources", "wheels"]
    assert parts.made[: len(done)] == done  # none of them twice
    manifest.verify_files(folder, manifest.read_manifest(folder))


def test_a_call_that_is_ended_loses_nothing_of_an_earlier_one(tmp_path, parts, make):
    parts.results["sources"] = GatheredPart(replaced=(REPLACED,))
    make()
    before = manifest.read_manifest(tmp_path / "mirror")

    def interrupt(_) -> None:
        raise KeyboardInterrupt

    parts.does = {"releases": interrupt}
    with pytest.raises(KeyboardInterrupt):
        make()
    between = manifest.read_manifest(tmp_path / "mirror")
    assert (between.files, between.replaced) == (before.files, before.replaced)
    assert between.missing == (mirror_create.UNFINISHED,)


def test_what_a_killed_process_left_goes(tmp_path, parts, make):
    make()
    left = tmp_path / "mirror" / ".incoming-x"
    left.mkdir()
    (left / "half").write_text("")
    make()
    assert not left.exists()


def test_what_could_not_be_had_is_told_with_its_reason_and_fails(tmp_path, parts, make, screen):
    parts.results["wheels"] = GatheredPart(missing=(MissingPart("wheel x 1", "no such wheel"),))
    assert make() == 1
    assert "missing: wheel x 1: no such wheel" in screen.getvalue()
    assert manifest.read_manifest(tmp_path / "mirror").missing == (MissingPart("wheel x 1", "no such wheel"),)
    assert verify(tmp_path / "mirror", screen) == 1


def test_what_no_longer_belongs_to_the_mirror_goes(tmp_path, parts, make):
    make()
    parts.files["wheels"] = "b.whl"
    make()
    expected = ["jars/a.jar", "releases/spack.tar.gz", "sources/source", "wheels/b.whl"]
    assert sorted(everything(tmp_path / "mirror")) == expected


def test_check_names_every_fault(tmp_path: Path, screen: io.StringIO):
    make_mirror(tmp_path)
    for name in ("wheels", "releases"):
        shutil.rmtree(tmp_path / name)
    (tmp_path / "foreign").write_text("")
    assert verify(tmp_path, screen) == 1
    said = [line for line in unwrap(screen.getvalue()) if line.startswith("wrong: ")]
    expected = ["is missing", "is missing", "is missing", "is not in mirror.json"]
    assert [line.split(": ")[2].split(";")[0] for line in said] == expected


def test_a_replaced_source_is_told(tmp_path, parts, make, screen):
    parts.results["sources"] = GatheredPart(replaced=(REPLACED,))
    assert make() == 0
    said = "\n".join(unwrap(screen.getvalue()))
    assert "osu-micro-benchmarks 7.4: a git copy (commit 0123), replaces the official one" in said


# What cannot become a mirror.


def refused(make, folder: Path) -> str:
    with pytest.raises(UsageError) as error:
        make(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_become_a_mirror_is_told(tmp_path, make):
    (tmp_path / "file").write_text("")
    make_mirror(tmp_path / "old")
    write(tmp_path / "old", (), releases=(), python="2.7")
    for place, said in {
        "file": "is a file; name a directory for the mirror",
        "file/below": "name another directory",
        "a mirror": "letters, digits",  # Spack would change the blank
        "old": "Python 2.7",
    }.items():
        assert said in refused(make, tmp_path / place)


def test_a_folder_of_something_else_is_left_alone(tmp_path, make):
    (tmp_path / "thesis.tex").write_text("")
    assert "is neither empty nor a mirror" in refused(make, tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_full_disk_is_told_before_anything_is_written(tmp_path, make, monkeypatch):
    monkeypatch.setattr(mirror_create, "NEEDED_BYTES", 10**18)
    assert "and a mirror needs up to" in refused(make, tmp_path / "mirror")
    assert list((tmp_path / "mirror").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path, make, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied", "x")

    monkeypatch.setattr(mirror_create.tempfile, "mkdtemp", refuse)
    assert "Permission denied; name a directory that you may write" in refused(make, tmp_path / "m")


def test_two_at_once_do_not_meet(tmp_path, parts, make):
    (tmp_path / "mirror").mkdir()
    descriptor = os.open(tmp_path / "mirror", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert "another mirror create works on it" in refused(make, tmp_path / "mirror")
    finally:
        os.close(descriptor)
