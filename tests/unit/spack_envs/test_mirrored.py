"""What Spack takes from a mirror, and how a replaced source stays visible."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from spack_envs.errors import SpackEnvironmentError
from spack_envs.mirrored import MirroredSources, Substitute, unpack_release, write_repository
from tests.support.factories.mirror import archive
from tests.support.faults import Declared, plants

OSU = Substitute("osu-micro-benchmarks", "7.4", "a git copy", "2" * 64)


def packed(folder: Path, data: bytes) -> tuple[Path, str]:
    path = folder / "spack-v1.tar.gz"
    path.write_bytes(data)
    return path, hashlib.sha256(data).hexdigest()


def test_an_archive_is_unpacked_once(tmp_path: Path):
    path, sha256 = packed(tmp_path, archive("spack", file="text"))
    folder = unpack_release(path, sha256, tmp_path / "root")
    assert (folder / "file").read_text() == "text"
    path.unlink()
    assert unpack_release(path, sha256, tmp_path / "root") == folder
    assert os.listdir(tmp_path / "root") == [folder.name]


def test_another_archive_has_another_folder(tmp_path: Path):
    one = unpack_release(*packed(tmp_path, archive("spack", file="1")), tmp_path / "root")
    other = unpack_release(*packed(tmp_path, archive("spack", file="2")), tmp_path / "root")
    assert one != other


def leading_out() -> bytes:
    """An archive with a path that leaves the folder."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("spack/../../escaped"), io.BytesIO())
    return data.getvalue()


@plants("builds", "an archive that cannot be unpacked, or leaves its folder", "sources of a mirror",
        "incomplete", 1, "cannot be unpacked")  # fmt: skip
@pytest.mark.parametrize(
    ("data", "words"),
    [(b"no archive", "cannot be unpacked"), (leading_out(), "cannot be unpacked")],
    ids=["no archive", "a path that leads out"],
)
def test_what_cannot_be_unpacked_leaves_nothing(tmp_path, data: bytes, words: str, declared):
    path, sha256 = packed(tmp_path, data)
    with declared.raises(SpackEnvironmentError, match=words):
        unpack_release(path, sha256, tmp_path / "root")
    assert os.listdir(tmp_path / "root") == []
    assert not list(tmp_path.rglob("escaped"))


@plants("builds", "an archive with another checksum", "sources of a mirror", "incomplete", 1,
        "is damaged")  # fmt: skip
def test_an_archive_with_another_checksum_is_not_unpacked(tmp_path: Path, declared: Declared):
    path, _ = packed(tmp_path, archive("spack", file="text"))
    with declared.raises(SpackEnvironmentError):
        unpack_release(path, "0" * 64, tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_without_replaced_sources_there_is_no_repository_of_their_recipes(tmp_path: Path):
    assert write_repository(tmp_path, tmp_path, ()) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_recipe_of_a_replaced_source_asks_for_its_own_checksum(tmp_path: Path):
    ours = tmp_path / "plumbline"
    ((name, place),) = write_repository(tmp_path / "root", ours, [OSU]).items()
    assert f"namespace: {name}\n" in Path(place, "repo.yaml").read_text()
    text = Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text()
    assert f"version('7.4', sha256='{'2' * 64}')" in text
    assert "replaced_source = 'a git copy'" in text
    assert "from spack_repo.builtin.packages.osu_micro_benchmarks.package import OsuMicroB" in text

    (ours / "packages" / "osu_micro_benchmarks").mkdir(parents=True)
    (ours / "packages" / "osu_micro_benchmarks" / "package.py").write_text("")
    ((other, place),) = write_repository(tmp_path / "root", ours, [OSU]).items()
    text = Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text()
    assert "from spack_repo.plumbline.packages.osu_micro_benchmarks.package" in text
    assert other != name  # Spack's index goes by the name

    (ours / "helper.py").write_text("FLAGS = '-O2'\n")
    ((last, place),) = write_repository(tmp_path / "root", ours, [OSU]).items()
    assert Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text() != text
    assert last != other


def test_what_a_source_is_from_cannot_become_a_program(tmp_path: Path):
    evil = Substitute("osu-micro-benchmarks", "7.4", '\'"""\nimport os\n', "2" * 64)
    ((_, place),) = write_repository(tmp_path, tmp_path, [evil]).items()
    text = Path(place, "packages", "osu_micro_benchmarks", "package.py").read_text()
    compile(text, "package.py", "exec")
    assert not any(line.startswith("import os") for line in text.splitlines())


def test_spack_is_told_of_sources_and_never_of_binaries():
    entry = MirroredSources(Path("/m/sources")).entry
    assert entry == {"url": "file:///m/sources", "source": True, "binary": False}
