"""Read data classes from JSON and TOML by their declared types; keep and compare them.

msgspec checks the types. It does not see duplicate keys, so ``strict_json`` parses the text first.
"""

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import msgspec

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.formats import parse_decimal
from postprocess.base.strict_json import format_external, parse_json, parse_number, read_json

Record = TypeVar("Record")
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]  #: not empty
#: A file or folder directly inside a known one: the name cannot lead elsewhere.
FileName = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}\Z")]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
#: Limits of a time in seconds or a rate in MB/s: no machine exceeds them, and no ratio of two overflows.
LEAST_MEASURED, MOST_MEASURED = 1e-12, 1e12
Measured = Annotated[float, msgspec.Meta(ge=LEAST_MEASURED, le=MOST_MEASURED)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

PLACE = re.compile(r" - at (?:`key` in )?`\$\.?(.*)`$", re.DOTALL)
LACKING = re.compile(r"Object missing required field `(.*?)`")
ANY_KEY = "[...]"  #: how msgspec writes a key of a mapping in a place


def read_record(path: Path, kind: type[Record], exact: bool = True) -> Record:
    """Read a file that holds one record, as :func:`parse_record` does. Raises OSError or ValueError."""
    return parse_record(read_json(path), kind, exact)


def parse_record(value: Any, kind: type[Record], exact: bool = False) -> Record:
    """Convert a JSON value to a data class or another type. Fields with a default may be missing.

    :param exact: whether to refuse keys that the data class does not have
    :raises ValueError: ``cases[3].bytes: what is wrong with it``
    """
    try:
        return _convert(value, kind, exact)
    except RecursionError:
        raise ValueError("lists or objects are nested too deep") from None


def _convert(value: Any, kind: type[Record], exact: bool) -> Record:
    try:
        record = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(value, kind, str(error))) from None
    if exact:
        refuse_unknown_keys(value, msgspec.to_builtins(record))
    return record


def _explain(value: Any, kind: Any, said: str) -> str:
    """Rewrite an error of msgspec as ``place: what is wrong``, with the names of mapping keys."""
    match = PLACE.search(said)
    place = match[1] if match else ""
    if ANY_KEY in place:
        place = _name_keys(value, kind, place, said)
    said = PLACE.sub("", said)
    if lacking := LACKING.fullmatch(said):
        place, said = f"{place}.{lacking[1]}".lstrip("."), "is missing"
    return f"{place}: {said}" if place else said


def _name_keys(value: Any, kind: Any, place: str, said: str) -> str:
    """Name the mapping keys that hold the fault: with all others removed, the fault is still the first."""
    copy = node = deepcopy(value)
    named = ""
    for number, name in re.findall(r"\[(\d+|\.\.\.)\]|([^.\[]+)", place):
        key = int(number) if number.isdigit() else name
        if number == "...":
            whole = dict(node)
            for key in whole:
                node.clear()
                node[key] = whole[key]
                if _find_fault(copy, kind) == said:
                    break
        named += f"[{key}]" if number.isdigit() else f".{format_external(key)[1:-1]}"
        node = node[key]
    return named.removeprefix(".")


def _find_fault(value: Any, kind: Any) -> str:
    """Return the first fault of a value; empty if it has none."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def find_other_field(one: object, two: object, names: Iterable[str]) -> str:
    """Return the first of ``names`` in which two records differ; empty if there is none."""
    return next((name for name in names if getattr(one, name) != getattr(two, name)), "")


def is_measurable(value: float) -> bool:
    """Return whether a number can be a time in seconds or a rate in MB/s."""
    return LEAST_MEASURED <= value <= MOST_MEASURED


def require_fields(value: Mapping[str, Any], kind: type) -> None:
    """Refuse an object that lacks a field of a data class, even one with a default. Raises ValueError."""
    for field in fields(kind):
        if field.name not in value:
            raise ValueError(f"{field.name}: is missing")


def refuse_unknown_keys(value: Any, known: Any, place: str = "") -> None:
    """Refuse keys that are not in ``known``, which has the same structure. Raises ValueError."""
    if isinstance(value, dict):
        if unknown := value.keys() - known.keys():
            raise ValueError(f"{place}{format_external(min(unknown))[1:-1]}: is not a known key")
        for key, entry in value.items():
            refuse_unknown_keys(entry, known[key], f"{place}{key}.")
    elif isinstance(value, list):
        for number, (entry, other) in enumerate(zip(value, known, strict=True)):
            if entry != other:  # thousands of records are mostly equal, and comparing them whole is fast
                refuse_unknown_keys(entry, other, f"{place.removesuffix('.')}[{number}].")


Header = TypeVar("Header")


@dataclass(frozen=True)
class Journal:
    """A file of JSON lines, and the fixes that its errors name."""

    path: Path
    fix: str  #: if it cannot be written, or belongs to another measurement
    missing: str = ""  #: if it cannot be read
    damaged: str = ""  #: if a line is damaged; ``fix`` if empty

    def append(self, *entries: Mapping[str, Any]) -> None:
        """Append lines that belong together, and flush them to disk. Raises UsageError if that fails."""
        with explaining(self.path, self.fix):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write("".join(f"{json.dumps(entry, allow_nan=False)}\n" for entry in entries))
                file.flush()
                os.fsync(file.fileno())

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn errors of reading into a UsageError."""
        try:
            yield
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}; {self.missing}") from None
        except (ValueError, LookupError) as error:
            fix = self.damaged or self.fix
            raise UsageError(f"{self.path}: {error}: is damaged; {fix}") from None

    def read(self, kind: type[Header]) -> tuple[Header, list[dict[str, Any]]]:
        """Read the header, a line with the record ``begun``, and the complete lines behind it.

        Call it within :meth:`reading`. Raises OSError, ValueError or LookupError.
        """
        lines = files.read_regular(self.path).split(b"\n")[:-1]
        whole = [parse_json(line.decode()) for line in lines]
        first, *entries = parse_record(whole, list[dict[str, Any]])
        if first.pop("record") != "begun":
            raise ValueError("has no header in its first line")
        return parse_record(first, kind, exact=True), entries

    def require_same(self, begun: object, asked: object, names: Iterable[str]) -> None:
        """Refuse to continue what another call began. Raises UsageError with the first field that differs."""
        if other := find_other_field(begun, asked, names):
            raise UsageError(f"{self.path}: was begun with other {other}; {self.fix}")

    def truncate_unfinished(self, last: bytes = b"") -> None:
        """Cut off lines whose writing was interrupted. The header stays. Raises OSError.

        :param last: text at the beginning of the last of the lines that belong together
        """
        data = files.read_regular(self.path)
        lines = data.split(b"\n")[:-1]
        while len(lines) > 1 and last not in lines[-1][:40]:
            lines.pop()
        if (kept := sum(len(line) + 1 for line in lines)) < len(data):
            os.truncate(self.path, kept)


class Remembered(Protocol):
    """A data class of which every field has a default; ``schema`` is the version of its format."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def schema(self) -> int:
        """The version of the format."""


Memory = TypeVar("Memory", bound=Remembered)


def recall(path: Path, kind: type[Memory]) -> Memory:
    """Read a remembered record; an empty one if the file is missing, damaged or of another format."""
    try:
        record = read_record(path, kind)
    except (OSError, ValueError):
        return kind()
    return record if record.schema == kind().schema else kind()


def remember(path: Path, record: Remembered) -> None:
    """Write a record in place of the earlier one. Raises OSError."""
    text = json.dumps(asdict(record), indent=1, sort_keys=True)
    files.replace_files({path: f"{text}\n".encode()})


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
STEP = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document with finite numbers. Raises ValueError, which names the line where it can."""
    try:
        return tomllib.loads(text, parse_float=parse_number)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("lists or tables are nested too deep") from None


def find_line(text: str, place: str) -> int:
    """Find the line of a key such as ``case[2].bytes``; that of its table if the key is missing, else 0.

    :param place: as :func:`postprocess.base.records.parse_record` names it
    """
    steps = [(name, int(number or 0)) for name, number in STEP.findall(place)]
    if not steps:
        return 0
    lines = text.splitlines()
    names, key = [name for name, _ in steps], steps[-1][0]
    header, begin = ".".join(names[:-1]), 0
    if len(steps) > 1:
        begin = _find_header(lines, header, steps[-2][1])
        if not begin:
            return 0
    elif line := _find_header(lines, key, steps[0][1]):
        return line
    for number in range(begin, len(lines)):
        if HEADER.match(lines[number]):
            break
        if re.match(rf'\s*"?{re.escape(key)}"?\s*=', lines[number]):
            return number + 1
    return begin


def _find_header(lines: list[str], name: str, which: int) -> int:
    """Find the line of the n-th header with this name, counted from 0; 0 if there is none."""
    numbers = [
        number
        for number, line in enumerate(lines, 1)
        if (match := HEADER.match(line)) and match[2].replace('"', "") == name
    ]
    return numbers[which] if which < len(numbers) else 0


ROUNDING = 1e-9  #: relative difference between processors
NAMES = re.compile(r'(?<=\bid=")[^"]+|(?<=href="#)[^"]+|(?<=url\(#)[^)]+')
#: Coordinates of a picture may be rounded differently.
PICTURE = re.compile(r"<svg .*?</svg>", re.S)
COORDINATE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
NEAR = 0.11  #: greatest difference between two equal coordinates, which have one decimal


def is_same(ours: Any, theirs: Any) -> bool:
    """Return whether two values are equal but for the rounding of numbers, including numbers in texts."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return ours.keys() == theirs.keys() and all(is_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float | int) and not isinstance(theirs, bool):
        return math.isclose(ours, theirs, rel_tol=ROUNDING)
    if isinstance(ours, str) and isinstance(theirs, str) and ours != theirs:
        try:
            return is_same(parse_decimal(ours), parse_decimal(theirs))
        except ValueError:
            return False
    return type(ours) is type(theirs) and ours == theirs


def is_same_page(ours: str, theirs: str) -> bool:
    """Return whether two pages are equal but for names and rounding inside pictures."""
    here, there = (PICTURE.split(page) for page in (ours, theirs))
    pictures = [PICTURE.findall(page) for page in (ours, theirs)]
    return here == there and all(map(_is_same_picture, *pictures))


def _is_same_picture(ours: str, theirs: str) -> bool:
    one, two = _rename(ours), _rename(theirs)
    if COORDINATE.split(one) != COORDINATE.split(two):
        return False
    numbers = zip(COORDINATE.findall(one), COORDINATE.findall(two), strict=True)
    return all(a == b or ("." in a + b and abs(float(a) - float(b)) < NEAR) for a, b in numbers)


def _rename(picture: str) -> str:
    """Rename the parts of a picture by their order, because each drawing names them differently."""
    names: dict[str, str] = {}
    return NAMES.sub(lambda name: names.setdefault(name[0], f"part{len(names)}"), picture)
