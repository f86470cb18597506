"""One table of an Intel MPI Benchmarks program while it is being read: title, header words, rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from postprocess.parsers.text_output import Failure, Line, Table, TableRow, check_order, shortened

GROUP, SIZE, DEFECTS = "Group", "#bytes", "defects"
FIRST = (GROUP, SIZE, "#repetitions")  #: a line of header words starts with one of these
COUNTED = frozenset({"#repetitions", "Msg/sec"})  #: columns of whole numbers
FAILED = ("out-of-mem", "time-out", "int-overflow")

_PROCESSES = re.compile(r"# #processes = ([0-9]{1,9})(?:; rank order \(rowwise\):)?")
_GROUPS = re.compile(
    r"# \( ([0-9]{1,9}) groups of ([0-9]{1,9}) processes each running simultaneous \)"
)
_WAITING = re.compile(r"# \( ([0-9]{1,9}) additional process(?:es)? waiting in MPI_Barrier\)")
_RANKS = re.compile(r"#(?: Group {1,4}[0-9]{1,9}: )?[0-9 .]*")
_MODE = re.compile(r"# {1,9}MODE: ((?:NON-)?AGGREGATE)")


@dataclass
class _Series:
    """The lines of one group, or of all processes."""

    rows: list[TableRow] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)  #: of both, in the order of the output

    def check_next(self, line: Line, size: int | None) -> None:
        """Raise OutputError if a line of that size cannot be the next one."""
        if not self.sizes:
            return
        last = self.sizes[-1]
        if size is None or last is None:
            raise line.refused("a second row")
        if size <= last:
            raise line.refused("sizes do not ascend")


@dataclass
class ImbTable:
    """A table of which some lines were read."""

    benchmark: str
    processes: int | None = None
    groups: int = 1
    waiting: int = 0
    mode: str | None = None
    ruled: bool = False  #: the rule under the title was seen
    header: tuple[str, ...] = ()
    series: dict[int | None, _Series] = field(default_factory=dict)

    @property
    def grouped(self) -> bool:
        """Whether there is a row for each group, after a blank line for each size."""
        return GROUP in self.header

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.header if name not in (GROUP, SIZE, DEFECTS))

    def title(self, text: str) -> bool:
        """Take a comment between the name and the header words; whether it can stand there."""
        if found := _PROCESSES.fullmatch(text):
            return self._sizes(1, int(found[1]))
        if found := _GROUPS.fullmatch(text):
            return self._sizes(int(found[1]), int(found[2]))
        if found := _WAITING.fullmatch(text):
            self.waiting = int(found[1])
            return not self.ruled
        if found := _MODE.fullmatch(text):
            self.mode = found[1]
            return self.ruled
        return bool(_RANKS.fullmatch(text))

    def _sizes(self, groups: int, processes: int) -> bool:
        fresh, self.groups, self.processes = self.processes is None, groups, processes
        return fresh

    def take_header(self, words: tuple[str, ...]) -> bool:
        """Take the line of header words; whether it can be one."""
        self.header = words
        return self.ruled and len(set(words)) == len(words) > 1

    def take(self, line: Line) -> None:
        """Add a line of numbers, or of why there are none. Raises OutputError if it does not fit."""
        words = line.plain.split()
        group = line.count(words.pop(0)) if self.grouped else None
        failed = len(words) > 1 and words[1].startswith(FAILED)
        cells = {SIZE: words[0]} if failed else self._cells(line, words)
        size = line.count(cells[SIZE]) if SIZE in self.header else None
        series = self.series.setdefault(group, _Series())
        series.check_next(line, size)
        series.sizes.append(size)
        if failed:
            what = f"{self.benchmark}, {words[0]} bytes: {' '.join(words[1:])}"
            series.failures.append(Failure(size, f"line {line.number}: {shortened(what)}"))
        else:
            series.rows.append(TableRow(size, self._values(line, cells), _passed(line, cells)))

    def _cells(self, line: Line, words: list[str]) -> dict[str, str]:
        names = [name for name in self.header if name != GROUP]
        if len(words) != len(names):
            raise line.refused(f"{len(words)} columns where the header has {len(names)}")
        return dict(zip(names, words, strict=True))

    def _values(self, line: Line, cells: dict[str, str]) -> dict[str, float]:
        values = {
            name: float(line.count(cells[name])) if name in COUNTED else line.value(cells[name])
            for name in self.columns
        }
        check_order(line, values, "t_min[usec]", "t_avg[usec]", "t_max[usec]")
        return values

    def finish(self, line: Line) -> list[Table]:
        """One table for each group that was printed. OutputError if one has less than the others."""
        sizes = {tuple(series.sizes) for series in self.series.values()}
        if len(sizes) != 1:
            raise line.refused("before this line is a table without rows, or of unequal groups")
        return [
            Table(
                self.benchmark,
                self.columns,
                tuple(series.rows),
                processes=self.processes,
                waiting=self.waiting,
                groups=self.groups,
                group=group,
                mode=self.mode,
                failures=tuple(series.failures),
            )
            for group, series in self.series.items()
        ]


def _passed(line: Line, cells: dict[str, str]) -> bool | None:
    return line.value(cells[DEFECTS]) == 0 if DEFECTS in cells else None
