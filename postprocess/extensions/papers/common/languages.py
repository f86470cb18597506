"""What a language costs over C, as ``agree --bindings`` last wrote it, beside what a paper says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.documents.records import Positive, Text, read_record
from postprocess.base.errors import UsageError
from postprocess.base.text_table import TextTable
from postprocess.extensions.papers.common.numbers import (
    Number,
    write_bytes,
    write_count,
    write_ratio,
    write_time,
)

FOLDER = "bindings"  #: of the work directory, a file for each call
CONTROL = "c-again"  #: the name of the same program once more
#: The language that a paper compares with C, and what it says
SAID = {
    "rus": ("fortran", "C against Fortran", "in print: no significant difference"),
    "taboada": (
        "java",
        "Java against C",
        "in print: a wrapper by JNI adds 6 us to the start-up, pure Java 45 to 56 us",
    ),
}


@dataclass(frozen=True)
class LanguageRow:
    """A language in a case with an MPI: its time of a call over that in C, with the interval."""

    environment: Text
    language: Text
    title: Text
    routine: Text
    bytes: int
    launches: int
    ratio: Positive
    low: Positive
    high: Positive
    seconds: Positive
    extra: float  #: seconds over C
    control: str = ""  #: the interval of C again over C in the same rounds

    @property
    def difference(self) -> str:
        """What the interval shows, in a word."""
        if self.low <= 1 <= self.high:
            return "none shown"
        return "slower" if self.low > 1 else "faster"


@dataclass(frozen=True)
class LanguageFile:
    """What of such a file is looked at."""

    machine: str
    rows: list[LanguageRow]


def load_languages(work: Path) -> list[LanguageRow]:
    """Load the newest rows of each language with each MPI; none where nothing was measured.

    :raises UsageError: for a file that cannot be read
    """
    newest: dict[tuple[str, str], list[LanguageRow]] = {}
    for path in sorted((work / FOLDER).glob("*.json")):
        try:
            rows = read_record(path, LanguageFile, exact=False).rows
        except (OSError, ValueError) as error:
            fix = "remove it, and measure again: ./plumbline agree --bindings"
            raise UsageError(f"{path}: {error}; {fix}") from None
        controls = {
            (row.environment, row.routine, row.bytes): f"{row.low:.2f} to {row.high:.2f}"
            for row in rows
            if row.language == CONTROL
        }
        for key in {(row.environment, row.language) for row in rows}:
            newest[key] = [
                replace(row, control=controls.get((row.environment, row.routine, row.bytes), ""))
                for row in rows
                if (row.environment, row.language) == key
            ]
    return [row for key in sorted(newest) for row in newest[key]]


def build_language_tables(paper: str, rows: Sequence[LanguageRow]) -> list[TextTable]:
    """Build the table of the language that a paper compares with C, if it was measured."""
    if paper not in SAID:
        return []
    kind, title, said = SAID[paper]
    found = [row for row in rows if row.language.partition("-")[0] == kind]
    if not found:
        return []
    return [
        TextTable(
            title,
            ("MPI", "binding", "routine", "size"),
            ("time (us)", "over C (us)", "ratio", "from", "to", "difference", "C again / C", "launches"),
            tuple(map(_write_row, found)),
            (
                said,
                "ratio within a round, geometric mean over launches with its 95 % interval; C again: a control",
            ),
        )
    ]


def _write_row(row: LanguageRow) -> tuple[str, ...]:
    return (
        *(row.environment, row.title, row.routine, write_bytes(row.bytes)),
        *(write_time(row.seconds), Number(f"{row.extra * 1e6:+.3f}", row.extra * 1e6, "us")),
        *(write_ratio(row.ratio), write_ratio(row.low), write_ratio(row.high), row.difference),
        row.control,
        write_count(row.launches),
    )
