"""Files of one JSON object a line, to which a long measurement adds, and which a kill may cut short."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from postprocess.base import files
from postprocess.base.documents.records import find_other_field, parse_record
from postprocess.base.documents.strict_json import parse_json
from postprocess.base.errors import UsageError

Header = TypeVar("Header")


@dataclass(frozen=True)
class Journal:
    """Such a file, and what its errors advise."""

    path: Path
    fix: str  #: where it cannot be written, or is of another measurement
    missing: str = ""  #: where it cannot be read
    damaged: str = ""  #: where a line is damaged, if not ``fix``

    def append(self, *entries: Mapping[str, Any]) -> None:
        """Add lines that belong together, and see them on the disk. Raises UsageError if that fails."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write("".join(f"{json.dumps(entry, allow_nan=False)}\n" for entry in entries))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}; {self.fix}") from None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what goes wrong while it is read into a UsageError."""
        try:
            yield
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}; {self.missing}") from None
        except (ValueError, LookupError) as error:
            fix = self.damaged or self.fix
            raise UsageError(f"{self.path}: {error}: is damaged; {fix}") from None

    def read(self, kind: type[Header]) -> tuple[Header, list[dict[str, Any]]]:
        """Read the header, a line with the record ``begun``, and the lines behind it; not one without an end.

        To be called within :meth:`reading`. Raises OSError, ValueError or LookupError.
        """
        lines = files.read_regular(self.path).split(b"\n")[:-1]
        whole = [parse_json(line.decode()) for line in lines]
        first, *entries = parse_record(whole, list[dict[str, Any]])
        if first.pop("record") != "begun":
            raise ValueError("has no header in its first line")
        return parse_record(first, kind, exact=True), entries

    def require_same(self, begun: object, asked: object, names: Iterable[str]) -> None:
        """Refuse to go on with what another call began. Raises UsageError with the first field that differs."""
        if other := find_other_field(begun, asked, names):
            raise UsageError(f"{self.path}: was begun with other {other}; {self.fix}")

    def truncate_unfinished(self, last: bytes = b"") -> None:
        """Cut off what was interrupted while it was written. The header stays. Raises OSError.

        :param last: in the beginning of the last of the lines that belong together
        """
        data = files.read_regular(self.path)
        lines = data.split(b"\n")[:-1]
        while len(lines) > 1 and last not in lines[-1][:40]:
            lines.pop()
        if (kept := sum(len(line) + 1 for line in lines)) < len(data):
            os.truncate(self.path, kept)
