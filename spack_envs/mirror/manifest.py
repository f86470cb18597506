"""A mirror's manifest and the verification of its files; and the mirror that the user has named.

Standard library only: the script ``plumbline`` uses it before any package is installed.
"""

import hashlib
import json
import os
import platform
import re
import stat
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from postprocess.base.errors import UsageError
from postprocess.base.files import open_regular, read_text

INCOMING = ".incoming-"  #: prefix of names of incomplete files
MOST_BYTES = 16_000_000  #: largest manifest
BLOCK = 1 << 20
NAME = "mirror.json"
SCHEMA = 1
PACKAGE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
VERSION = re.compile(r"[0-9][0-9A-Za-z._-]*")


@dataclass(frozen=True)
class MirrorFile:
    """One file. ``path`` is relative to the mirror, with slashes."""

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
    """A source with another checksum that replaces the official one."""

    package: str
    version: str
    origin: str  #: its origin in words
    official: str  #: sha256 that the recipe requires
    sha256: str  #: its own


@dataclass(frozen=True)
class MissingPart:
    """Something that a mirror should have but lacks."""

    what: str
    reason: str


@dataclass(frozen=True)
class Manifest:
    """The contents of a mirror. Its wheels are for ``python`` and ``platform``."""

    python: str
    platform: str
    releases: tuple[ArchivedRelease, ...] = ()
    replaced: tuple[ReplacedSource, ...] = ()
    missing: tuple[MissingPart, ...] = ()
    files: tuple[MirrorFile, ...] = ()


PARTS = {"releases": ArchivedRelease, "replaced": ReplacedSource, "missing": MissingPart, "files": MirrorFile}
Part = TypeVar("Part", ArchivedRelease, ReplacedSource, MissingPart, MirrorFile)


def encode_manifest(manifest: Manifest) -> bytes:
    return (json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1) + "\n").encode()


def decode_manifest(data: bytes) -> Manifest:
    """Decode the manifest in the bytes of a file.

    :raises ValueError: says what is wrong, without the name of the file.
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
        raise ValueError(f"{odd[0]}: is not a key of a manifest")
    check_files(parts["files"])
    check_releases(parts["releases"], parts["files"])
    check_replaced(parts["replaced"])
    return Manifest(**{**parts, **words})


def build_unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; refuse duplicate keys."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("has a key twice")
    return values


def read_word(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key}: is not a text")
    return value


def read_part_list(values: dict[str, Any], key: str, kind: type[Part]) -> tuple[Part, ...]:
    """Read a list of objects of one kind, each with exactly its fields."""
    entries = values.get(key)
    if not isinstance(entries, list):
        raise ValueError(f"{key}: is not a list")
    return tuple(read_part(entry, f"{key}[{number}]", kind) for number, entry in enumerate(entries))


def read_part(entry: Any, where: str, kind: type[Part]) -> Part:
    names: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    if not isinstance(entry, dict) or set(entry) != set(names):
        raise ValueError(f"{where}: has not just the keys {', '.join(names)}")
    for name, wanted in names.items():
        if type(entry[name]) is not wanted:
            raise ValueError(f"{where}.{name}: is not of type {wanted.__name__}")
    return kind(**entry)


def check_files(files: tuple[MirrorFile, ...]) -> None:
    """Check that paths are unique and inside the mirror, and that sizes and checksums are valid."""
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
    """Check that names are valid packages and versions, because recipes are written with them."""
    for source in replaced:
        names = PACKAGE.fullmatch(source.package) and VERSION.fullmatch(source.version)
        if not names or not is_sha256(source.sha256):
            raise ValueError(f"replaced: {source.package!r}: is not a package with version and sha256")


def is_sha256(text: str) -> bool:
    """Return whether a text is 64 hexadecimal digits in lower case."""
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


class MirrorError(UsageError):
    """A mirror that must not be used. One line: the file, what is wrong, and the fix."""


def describe_python() -> tuple[str, str]:
    """Return what selects wheels for this Python, its version and platform: ``3.11``, ``linux-x86_64``."""
    name = f"{sys.implementation.name} " if sys.implementation.name != "cpython" else ""
    return name + ".".join(platform.python_version_tuple()[:2]), sysconfig.get_platform()


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a mirror. Raises MirrorError if there is none that can be used."""
    path = folder / NAME
    again = f"./plumbline mirror create {folder} where there is a network makes it anew"
    if folder.exists() and not folder.is_dir():
        raise MirrorError(f"{folder}: is not a directory; name the directory of a mirror")
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError("is too large")
        return decode_manifest(data)
    except FileNotFoundError:
        raise MirrorError(f"{folder}: is not a mirror (it has no {NAME}); {again}") from None
    except OSError as error:
        raise MirrorError(f"{path}: {error.strerror}; {again}") from None
    except ValueError as error:
        raise MirrorError(f"{path}: {error}; {again}") from None


def describe_file(folder: Path, path: str) -> MirrorFile:
    """Describe a file by its size in bytes and its checksum. Raises OSError if it cannot be read."""
    digest, size = hashlib.sha256(), 0
    with open_regular(folder / path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return MirrorFile(path, size, digest.hexdigest())


def find_mirror_faults(folder: Path, manifest: Manifest, under: str = "") -> Iterator[str]:
    """Find the faults of the files of a mirror, one line each.

    :param under: look only at files below this folder of the mirror
    """
    wanted = [file for file in manifest.files if file.path.startswith(under)]
    for file in wanted:
        if problem := find_file_fault(folder, file):
            yield f"{folder / file.path}: {problem}; ./plumbline mirror create mends it, or copy it again"
    listed = {file.path for file in wanted}
    for path in list_present(folder, under):
        if path not in listed and path != NAME:
            yield f"{folder / path}: is not in {NAME}; remove it"


def find_file_fault(folder: Path, file: MirrorFile) -> str:
    try:
        status = (folder / file.path).lstat()
        if not stat.S_ISREG(status.st_mode):
            return "is not a plain file"
        if status.st_size != file.bytes:
            return f"is damaged: has {status.st_size} bytes, not {file.bytes}"
        if describe_file(folder, file.path).sha256 != file.sha256:
            return f"is damaged: is not what {NAME} says (sha256)"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def list_present(folder: Path, under: str = "") -> Iterator[str]:
    """List the paths of all files and links in a mirror, sorted."""
    for top, folders, files in os.walk(folder / under):
        folders.sort()
        links = [name for name in folders if Path(top, name).is_symlink()]
        for name in sorted([*files, *links]):
            yield Path(top, name).relative_to(folder).as_posix()


def verify_files(folder: Path, manifest: Manifest, under: str = "") -> None:
    """Check that a mirror is complete and undamaged.

    :raises MirrorError: names the first file that is damaged, missing or foreign, and the number of others.
    """
    faults = list(find_mirror_faults(folder, manifest, under))
    if faults:
        more = f" (and {len(faults) - 1} more; ./plumbline mirror check)" if faults[1:] else ""
        raise MirrorError(faults[0] + more)


def check_python(folder: Path, manifest: Manifest) -> None:
    """Check that the wheels of a mirror are for this Python.

    :raises MirrorError: says which one they are for.
    """
    made_for, here = (manifest.python, manifest.platform), describe_python()
    if made_for != here:
        raise MirrorError(
            f"{folder}: its wheels are for Python {' on '.join(made_for)}, and this is {' on '.join(here)}; "
            "start Plumbline with that Python, or make the mirror with this one"
        )


VARIABLE = "PLUMBLINE_MIRROR"
FORGET = "none"  #: used instead of a directory
COMMANDS = ("setup", "doctor")  #: commands that have the option


def read_mirror_option(words: Sequence[str]) -> str | None:
    """Read the value of ``--mirror`` from the words of a command line, before they are parsed."""
    value = None
    for number, word in enumerate(words if words and words[0] in COMMANDS else ()):
        if word.startswith("--mirror="):
            value = word.partition("=")[2]
        elif word == "--mirror":
            value = "".join(words[number + 1 : number + 2])
    return value


def find_named_mirror(
    work: Path, asked: str | None = None, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """Find the mirror to use without a network; None if there is none.

    :param work: work directory, which remembers it
    :param asked: choice of this call: a directory, or ``none`` for no mirror
    :raises UsageError: if the option is given without a value, which would mean the network.
    """
    if asked == "":
        raise UsageError(f"--mirror: names nothing; name a directory, or {FORGET}")
    name = asked or environ.get(VARIABLE) or read_remembered_mirror(work)
    return Path(name).absolute() if name and name != FORGET else None


def locate_memory(work: Path) -> Path:
    """Return the file in which a work directory remembers its mirror."""
    return work / "mirror"


def read_remembered_mirror(work: Path) -> str:
    """Read the mirror of an earlier call; empty if there is none."""
    try:
        return read_text(locate_memory(work)).strip()
    except FileNotFoundError:
        return ""
