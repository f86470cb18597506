"""The tables that OSU and IMB print, as plain data, and the strict reading of their lines.

Both programs write for people: fixed columns under a line of header words, comment lines between.
:mod:`postprocess.parsers.osu` and :mod:`postprocess.parsers.imb` know the two grammars. What they share
is here: a line is taken whole and unchanged or refused with its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from postprocess.base.sanitize import sanitize_line
from postprocess.model.verdict import RecordError, Verdict

SHOWN = 100  #: characters of a line that a message quotes
ROUNDING = 0.011  #: a printed number is off by at most half of 0.01, so two differ by at most 0.01
VALUE = re.compile(r"[0-9]{1,18}\.[0-9]{2}")
COUNT = re.compile(r"[0-9]{1,18}")


class OutputError(RecordError):
    """An output that yields no result: its verdict, and one line with line number and line."""

    def __init__(self, verdict: Verdict, message: str, line: int = 0) -> None:
        super().__init__(verdict, message)
        self.line = line  #: its number; 0 if the error is about no line


@dataclass(frozen=True)
class TableRow:
    """One line of numbers."""

    size: int | None  #: bytes as printed; None where the table has no column of sizes
    values: Mapping[str, float]  #: by header words, in the unit that they state (us, MB/s, %, 1/s)
    passed: bool | None  #: what the program's own validation says; None if it did not look


@dataclass(frozen=True)
class FailureLine:
    """A line of IMB that says why there are no numbers for a size."""

    size: int | None  #: bytes; None where the table has no column of sizes
    reason: str  #: ``line 31: out-of-mem.; needed X= ...``


@dataclass(frozen=True)
class OutputTable:
    """The rows under one line of header words."""

    #: OSU: title without version; IMB: name as printed, ``Multi-PingPong`` in groups
    benchmark: str
    columns: tuple[str, ...]  #: keys of every row's values
    rows: tuple[TableRow, ...]
    processes: int | None = None  #: that took part (in each group, if there are groups)
    waiting: int = 0  #: further processes that spun in a barrier meanwhile (IMB)
    groups: int = 1  #: that ran at once (IMB ``-multi``)
    group: int | None = None  #: number of the group of these rows (IMB ``-multi 1``)
    mode: str | None = None  #: ``AGGREGATE`` or ``NON-AGGREGATE`` (IMB one-sided)
    datatype: str | None = None  #: None where OSU does not say (before 7.1), and of IMB
    notes: Mapping[str, str] = field(default_factory=dict)  #: ``window size``, ``pairs`` ...
    failures: tuple[FailureLine, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """What no two tables of one output have in common."""
        caption = self.notes.get("table")
        return (
            self.benchmark,
            self.processes,
            self.groups,
            self.group,
            self.mode,
            self.datatype,
            caption,
        )


@dataclass
class TableCollection:
    """The tables of one output, no two of which are the same one."""

    _by_identity: dict[tuple[object, ...], OutputTable] = field(default_factory=dict)

    def add(self, line: NumberedLine, table: OutputTable) -> None:
        """Add the table that ends at that line. Raises OutputError if it is there already."""
        if table.identity in self._by_identity:
            raise line.refused(f"a second table of {shorten_line(table.benchmark)}")
        self._by_identity[table.identity] = table

    def all(self) -> tuple[OutputTable, ...]:
        """Return all tables in the order of the output."""
        return tuple(self._by_identity.values())


@dataclass(frozen=True)
class ProgramOutput:
    """Everything that one start of a program printed."""

    version: str  #: of OSU or IMB; empty if it does not say
    tables: tuple[OutputTable, ...]
    invalid: tuple[str, ...] = ()  #: benchmarks that IMB calls invalid at a number of processes
    foreign: int = 0  #: lines that are not the program's, taken out
    first_foreign: str = ""  #: the first of them, harmless and short


@dataclass(frozen=True)
class NumberedLine:
    """A line with its number, from 1, without its end."""

    number: int
    text: str

    def refused(self, why: str, verdict: Verdict = Verdict.INCOMPLETE) -> OutputError:
        """Return an error that quotes this line."""
        return OutputError(verdict, f"line {self.number}: {why}: {self.shown}", self.number)

    @property
    def shown(self) -> str:
        """The line, harmless and short."""
        return shorten_line(self.text.strip())

    @property
    def plain(self) -> str:
        """The text without blanks around it. Raises OutputError if it is not printable ASCII."""
        if not (self.text.isascii() and self.text.isprintable()):
            raise self.refused(f"odd characters in a table ({find_odd_character(self.text)})")
        return self.text.strip()

    def value(self, word: str) -> float:
        """Parse a time, rate or fraction, which both programs print with two decimals."""
        if not VALUE.fullmatch(word):
            raise self.refused(f"{shorten_line(word)} is not a number with two decimals")
        return float(word)

    def count(self, word: str) -> int:
        """Parse a number of bytes, calls or processes."""
        if not COUNT.fullmatch(word):
            raise self.refused(f"{shorten_line(word)} is not a whole number")
        return int(word)


def shorten_line(text: str) -> str:
    """Shorten a text from outside, and escape it."""
    shown = sanitize_line(text[:SHOWN])
    return shown[:SHOWN] + "..." if max(len(text), len(shown)) > SHOWN else shown


def split_whole_lines(text: str) -> list[NumberedLine]:
    """Split the lines of an output, each with its number. Raises OutputError if the last one has no end."""
    *lines, rest = text.split("\n")
    if rest:
        raise NumberedLine(len(lines) + 1, rest).refused("the output is cut off in a line")
    if not lines:
        raise OutputError(Verdict.INCOMPLETE, "line 1: the output is empty")
    return [NumberedLine(number, line) for number, line in enumerate(lines, 1)]


def find_odd_character(text: str) -> str:
    """Name the first character that is not printable ASCII, its place, and what brings it."""
    place = next(n for n, char in enumerate(text) if not (char.isascii() and char.isprintable()))
    cause = ", as line ends of Windows and terminals have it" if text[place] == "\r" else ""
    return f"{text[place]!a} at place {place + 1}{cause}"


def check_order(
    line: NumberedLine, values: Mapping[str, float], least: str, mean: str, most: str
) -> None:
    """Check that a mean lies between minimum and maximum, if the row has all three.

    Raises OutputError (incorrect): a row that contradicts itself is of mixed lines, or wrong.
    """
    if not values.keys() >= {least, mean, most}:
        return
    low, middle, high = values[least], values[mean], values[most]
    if not low - ROUNDING <= middle <= high + ROUNDING:
        raise line.refused(f"{mean} is not between {least} and {most}", Verdict.INCORRECT)
