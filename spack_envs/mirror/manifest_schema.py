"""The text of a mirror's manifest: what is in it, and that nothing in it can lead out of the mirror.

Standard library only: the script ``plumbline`` reads it before any package is installed.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import PurePosixPath
from typing import Any, TypeVar

NAME = "mirror.json"
SCHEMA = 1
PACKAGE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
VERSION = re.compile(r"[0-9][0-9A-Za-z._-]*")


@dataclass(frozen=True)
class MirrorFile:
    """One file. ``path`` is below the mirror, with slashes."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ArchivedRelease:
    """Spack or its recipes: one commit of a git repository as a ``.tar.gz``."""

    name: str
    tag: str
    commit: str
    path: str


@dataclass(frozen=True)
class ReplacedSource:
    """A source that stands in the place of the official one, whose checksum is another."""

    package: str
    version: str
    origin: str  #: where it was taken from, in words
    official: str  #: sha256 that the recipe asks for
    sha256: str  #: its own


@dataclass(frozen=True)
class MissingPart:
    """Something that a mirror should have and has not."""

    what: str
    reason: str


@dataclass(frozen=True)
class Manifest:
    """What is in a mirror. ``python`` and ``platform`` are those that its wheels are for."""

    python: str
    platform: str
    releases: tuple[ArchivedRelease, ...] = ()
    replaced: tuple[ReplacedSource, ...] = ()
    missing: tuple[MissingPart, ...] = ()
    files: tuple[MirrorFile, ...] = ()


PARTS = {"releases": ArchivedRelease, "replaced": ReplacedSource, "missing": MissingPart, "files": MirrorFile}
Part = TypeVar("Part", ArchivedRelease, ReplacedSource, MissingPart, MirrorFile)


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest as the text of its file."""
    return (json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1) + "\n").encode()


def decode_manifest(data: bytes) -> Manifest:
    """Decode the manifest in the bytes of a file.

    :raises ValueError: saying what is wrong with it, without the name of the file.
    """
    try:
        text = json.loads(data.decode(), object_pairs_hook=build_unique_object)
    except RecursionError:
        raise ValueError("is nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("is not text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: is not JSON: {error.msg}") from None
    if not isinstance(text, dict):
        raise ValueError("is not a JSON object")
    if text.get("schema") != SCHEMA or isinstance(text["schema"], bool):
        raise ValueError(f"schema: is {text.get('schema')!r}, and this Plumbline knows {SCHEMA}")
    parts: dict[str, Any] = {key: read_part_list(text, key, kind) for key, kind in PARTS.items()}
    words = {key: read_word(text, key) for key in ("python", "platform")}
    if odd := sorted(set(text) - {"schema", *parts, *words}):
        raise ValueError(f"{odd[0]}: is no key of a manifest")
    check_files(parts["files"])
    check_releases(parts["releases"], parts["files"])
    check_replaced(parts["replaced"])
    return Manifest(**{**parts, **words})


def build_unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; refuse a key that comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("has a key twice")
    return found


def read_word(values: dict[str, Any], key: str) -> str:
    """Read a string that is not empty."""
    value = values.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key}: is not a text")
    return value


def read_part_list(values: dict[str, Any], key: str, kind: type[Part]) -> tuple[Part, ...]:
    """Read a list of objects of one kind, each with just its fields."""
    entries = values.get(key)
    if not isinstance(entries, list):
        raise ValueError(f"{key}: is not a list")
    return tuple(read_part(entry, f"{key}[{number}]", kind) for number, entry in enumerate(entries))


def read_part(entry: Any, where: str, kind: type[Part]) -> Part:
    """Read one object of one kind."""
    names = {field.name: field.type for field in fields(kind)}
    if not isinstance(entry, dict) or set(entry) != set(names):
        raise ValueError(f"{where}: has not just the keys {', '.join(names)}")
    for name, wanted in names.items():
        if type(entry[name]).__name__ != wanted:
            raise ValueError(f"{where}.{name}: is not of type {wanted}")
    return kind(**entry)


def check_files(files: tuple[MirrorFile, ...]) -> None:
    """Check that paths are unique and stay inside the mirror, and that sizes and checksums can be ones."""
    seen: set[str] = set()
    for file in files:
        parts = PurePosixPath(file.path).parts
        plain = "/".join(parts) == file.path and file.path.isprintable() and "\\" not in file.path
        if not parts or not plain or parts[0] == "/" or ".." in parts or file.path == NAME:
            raise ValueError(f"files: {file.path!r} is not a path below the mirror")
        if file.path in seen:
            raise ValueError(f"files: {file.path!r} is there twice")
        if file.bytes < 0 or not is_sha256(file.sha256):
            raise ValueError(f"files: {file.path!r}: has no proper size and sha256")
        seen.add(file.path)


def check_releases(releases: tuple[ArchivedRelease, ...], files: tuple[MirrorFile, ...]) -> None:
    """Check that each release is one of the files, and that names are unique."""
    names = [release.name for release in releases]
    paths = {file.path for file in files}
    for release in releases:
        if release.path not in paths or names.count(release.name) > 1:
            raise ValueError(f"releases: {release.name!r}: is not one file of the mirror")


def check_replaced(replaced: tuple[ReplacedSource, ...]) -> None:
    """Check that names can be a package and a version: recipes are written with them."""
    for source in replaced:
        names = PACKAGE.fullmatch(source.package) and VERSION.fullmatch(source.version)
        if not names or not is_sha256(source.sha256):
            raise ValueError(f"replaced: {source.package!r}: is not a package with version and sha256")


def is_sha256(text: str) -> bool:
    """Return whether a text is 64 hexadecimal digits in lower case."""
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
