"""What a work directory remembers from session to session: one record in one file, which may be lost."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from postprocess.base import files
from postprocess.base.documents.records import read_record


class Remembered(Protocol):
    """A data class of which every field has a default; ``schema`` is the version of its format."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def schema(self) -> int:
        """The version of the format."""


Memory = TypeVar("Memory", bound=Remembered)


def recall(path: Path, kind: type[Memory]) -> Memory:
    """Read what is remembered; an empty record where that is nothing, damaged or of another format.

    What it told is then found out anew.
    """
    try:
        found = read_record(path, kind)
    except (OSError, ValueError):
        return kind()
    return found if found.schema == kind().schema else kind()


def remember(path: Path, record: Remembered) -> None:
    """Write what is to be remembered, in place of what was. OSError as met."""
    text = json.dumps(asdict(record), indent=1, sort_keys=True)
    files.replace_files({path: f"{text}\n".encode()})
