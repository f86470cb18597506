"""The same damages in every run to every file that is read, and what each reader says of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.stage import Stage
from tests.support.damage import changed, places
from tests.unit.test_damaged_files import READERS, Reader

LINES = 60  #: of a file whose lines are taken away one by one
MOST = 160  #: damages of a file
SLOW = {"passes of an offer": 24, "records of an offer": 24, "witness of an offer": 12, "plan of an offer": 12,
        "output of an offer": 12, "form as CSV": 24, "form as spreadsheet": 4, "comparison": 100}  # fmt: skip
VALUES = {"none": None, "a text": "x", "negative": -7.5}

Damage = tuple[str, bytes]


def play(stage: Stage) -> None:
    """Damage each file in each way, and write down what its reader says."""
    for name, reader in READERS.items():
        folder = stage.folder / name.replace(" ", "-").replace("'", "")
        folder.mkdir()
        path = reader.make(folder)
        found = choose(list(damage(path.read_bytes())), SLOW.get(name, MOST))
        lines = [f"{what}: {try_to_read(reader, path, content)}\n" for what, content in found]
        stage.keep(f"{folder.name}.txt", "".join(lines).replace(str(folder), "THERE"))


def choose(damages: list[Damage], most: int) -> list[Damage]:
    """Choose so many damages, from all over the file."""
    step = max(1, -(-len(damages) // most))
    return damages[::step]


def try_to_read(reader: Reader, path: Path, content: bytes) -> str:
    """Read a file with this content; what the reader says in refusing it."""
    path.write_bytes(content)
    try:
        reader.read(path)
    except reader.refuses as error:
        return f"{type(error).__name__}: {error}"
    return "read"


def damage(whole: bytes) -> Iterator[Damage]:
    """Damage a file by what it looks like."""
    yield "empty", b""
    yield "half", whole[: len(whole) // 2]
    yield "not UTF-8", b"\xff" + whole
    if b"\0" in whole:
        return  # what is inside hangs on the day and on libraries
    if whole.startswith(b"{"):
        yield from damage_objects(whole)
    elif b"\t" in whole:
        yield from damage_table(whole)
    else:
        yield from damage_lines(whole)


def damage_objects(whole: bytes) -> Iterator[Damage]:
    """Take away or exchange each value of the first line of each kind, of lists their first."""
    lines = whole.splitlines() if whole.count(b"\n{") else [whole]
    known = set()
    for number, line in enumerate(lines):
        value = json.loads(line)
        kind = tuple(sorted(value)) if isinstance(value, dict) else ()
        if kind in known:
            continue
        known.add(kind)
        for way in places(value):
            if not way or any(isinstance(each, int) and each for each in way):
                continue
            told = f"line {number + 1} {'.'.join(map(str, way))}"
            for what, new in {"without": ..., **VALUES}.items():
                lines[number] = json.dumps(changed(value, way, new)).encode()
                yield f"{told} {what}", b"\n".join(lines) + b"\n"
        lines[number] = line


def damage_table(whole: bytes) -> Iterator[Damage]:
    """Exchange each cell of the header and of the first row."""
    rows = [line.split(b"\t") for line in whole.split(b"\n")]
    for row in range(2):
        for column in range(len(rows[row])):
            for word in (b"", b"x", b"-1"):
                copy: list[Any] = [list(each) for each in rows]
                copy[row][column] = word
                text = b"\n".join(b"\t".join(each) for each in copy)
                yield f"row {row} column {column} {word.decode()!r}", text


def damage_lines(whole: bytes) -> Iterator[Damage]:
    """Take away each of the first lines, or put another word there."""
    lines = whole.split(b"\n")
    for number in range(min(LINES, len(lines))):
        for what, new in {"without": [], "other": [b"x"]}.items():
            yield (f"line {number + 1} {what}", b"\n".join([*lines[:number], *new, *lines[number + 1 :]]))
