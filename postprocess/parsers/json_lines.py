"""A file of JSON Lines, one record a line, taken line by line or refused with the line's number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from postprocess.base import files
from postprocess.base.documents import strict_json
from postprocess.base.documents.strict_json import JsonObject
from postprocess.model.verdict import RecordError, Verdict


def feed_records(path: Path, take: Callable[[JsonObject], None], data: bytes | None = None) -> None:
    """Give every record to ``take``, whose errors get the file and the line in front.

    :param data: what is in the file, where it was read before.
    :raises RecordError: incomplete for a file or a line that is not whole; incorrect where ``take``
        raised ValueError; as ``take`` raised it otherwise.
    """
    for where, line in iter_lines(path, data):
        try:
            take(parse_record(line))
        except RecordError as error:
            raise RecordError(error.verdict, f"{where}: {error}") from None
        except ValueError as error:
            raise RecordError(Verdict.INCORRECT, f"{where}: {error}") from None


def iter_lines(path: Path, data: bytes | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield each line after its place, ``out.jsonl: line 3``. RecordError if the last one is cut off."""
    try:
        *whole, rest = (files.read_regular(path) if data is None else data).split(b"\n")
    except OSError as error:
        message = f"{path}: {error.strerror}; the program wrote no result"
        raise RecordError(Verdict.INCOMPLETE, message) from None
    for number, line in enumerate(whole, 1):
        yield f"{path}: line {number}", line
    if rest:
        message = f"{path}: line {len(whole) + 1}: the line is cut off"
        raise RecordError(Verdict.INCOMPLETE, message)


def parse_record(line: bytes) -> JsonObject:
    """Parse the record of a line. RecordError if it is cut off, ValueError if it is no record."""
    try:
        value = strict_json.parse_json(line.decode())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RecordError(Verdict.INCOMPLETE, f"not a whole JSON object: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{strict_json.format_external(value)} is not a record")
    return JsonObject(value)
