"""A mirror of a few bytes."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

from spack_envs.mirror import manifest
from spack_envs.mirror.manifest import NAME, ArchivedRelease, Manifest, ReplacedSource, encode_manifest

RELEASES = ("spack", "spack-packages")
OFFICIAL, OWN = "1" * 64, "2" * 64
REPLACED = ReplacedSource("osu-micro-benchmarks", "7.4", "a git copy (commit 0123)", OFFICIAL, OWN)


def archive(folder: str, **files: str) -> bytes:
    """A .tar.gz with one folder of files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


def make_mirror(folder: Path, **more: bytes) -> Manifest:
    """A mirror with a wheel, Spack, its recipes, a source, and what else is asked for."""
    contents = {
        "wheels/a-1-py3-none-any.whl": b"a wheel",
        "sources/_source-cache/archive/22/source.tar.gz": b"a source",
        **{f"releases/{name}-v1.tar.gz": archive(name, told=name) for name in RELEASES},
        **more,
    }
    for path, data in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return write(folder, tuple(sorted(contents)))


def write(folder: Path, paths: tuple[str, ...], **changes) -> Manifest:
    """The manifest of files that are there."""
    releases = tuple(ArchivedRelease(name, "v1", "c" * 40, f"releases/{name}-v1.tar.gz") for name in RELEASES)
    files = tuple(manifest.describe_file(folder, path) for path in paths)
    contents = Manifest(*manifest.describe_python(), releases=releases, files=files)
    contents = replace(contents, **changes)
    (folder / NAME).write_bytes(encode_manifest(contents))
    return contents
