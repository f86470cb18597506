"""Parse the output of one start of an Intel MPI Benchmarks program (MPI1, NBC, RMA, EXT, IO, MT).

It has a header with facts of the run, then one table per benchmark, process count and mode. A table has a title
of a few comments and a line of header words. The last line says that all processes come to their end.
``IMB-MT`` lists no benchmarks, and its last line is blank: if it is cut off between two tables, only the plan
reveals the missing ones.
"""

import re
from dataclasses import dataclass, field
from enum import Enum

from postprocess.model.routines.benchmark import THREADS
from postprocess.model.verdict import Verdict
from postprocess.parsers import text_output

END = "# All processes entering MPI_Finalize"
GROUP, SIZE, DEFECTS = "Group", "#bytes", "defects"
FIRST = (GROUP, SIZE, "#repetitions")  #: a line of header words starts with one of these
COUNTED = frozenset({"#repetitions", "Msg/sec"})  #: columns of whole numbers
FAILED = ("out-of-mem", "time-out", "int-overflow")
TITLE_OF_OSU = "# OSU "

#: The banner of IMB-IO has the rule below it in the same line.
_BANNER = re.compile(r"# {1,9}Intel ?\(R\) MPI Benchmark(?:s| Suite) V?([^,]{1,40}), (.{1,60}?)(?:#-{9,90})?")
PART_OF_THREADS = "MT part"
_LISTED = re.compile(r"# (?:\(Multi-\))?([A-Za-z0-9_]{1,60})")
_BENCHMARKING = re.compile(r"# Benchmarking ([A-Za-z0-9_-]{1,60})")
_INVALID = re.compile(r"# !! Benchmark ([A-Za-z0-9_-]{1,60}) invalid for ([0-9]{1,9}) processes !!")
_PROCESSES = re.compile(r"# #processes = ([0-9]{1,9})(?:; rank order \(rowwise\):| \(threads: ([0-9]{1,9})\))?")
_WINDOW = re.compile(r"# window_size = ([0-9]{1,9})")
_BARREN = "# NO SUCCESSFUL EXECUTIONS"  #: instead of the processes, if there are no rows
_GROUPS = re.compile(r"# \( ([0-9]{1,9}) groups of ([0-9]{1,9}) processes each running simultaneous \)")
_WAITING = re.compile(r"# \( ([0-9]{1,9}) additional process(?:es)? waiting in MPI_Barrier\)")
_RANKS = re.compile(r"#(?: Group {1,4}[0-9]{1,9}: )?[0-9 .]*")
_MODE = re.compile(r"# {1,9}MODE: ((?:NON-)?AGGREGATE)")
#: what a program that checks its data prints, on any rank, if received data is wrong
_WRONG = re.compile(
    r"[0-9]{1,9}: Error |Process [0-9]{1,9}: Got invalid buffer|!!! Benchmark unsuccessful|CHECK FAILURES: "
)


def parse_imb(text: str) -> text_output.ProgramOutput:
    """Parse the output of one start of an IMB program. Linear in time and memory.

    A size without numbers (out of memory, out of time, too large for an int) is one of its table's ``failures``
    and in no row; IMB then skips the rest of that benchmark.

    :raises OutputError: ``incorrect`` if a line reports wrong data, whatever else is wrong, or if a row
    contradicts itself; ``incomplete`` if the text is cut off, mixed, or not from IMB.
    """
    _check_data(text)
    reader = _Reader()
    # all lines that IMB prints are comments or rows
    return text_output.read_output(text, reader.take, reader.finish, _is_title, lambda _: False)


def _is_title(text: str) -> bool:
    return bool(_BANNER.fullmatch(text.rstrip(" ")))


def _check_data(text: str) -> None:
    """Check the counts of defects first, even in output that is cut off, mixed or tagged."""
    columns = 0  # of the table, if its last column counts defects
    for number, line in enumerate(text.split("\n"), 1):
        for untagged in text_output.list_untagged(line):
            words = untagged.split()
            if words and words[0] in FIRST:
                columns = len(words) if words[-1] == DEFECTS else 0
            row = columns and len(words) == columns and words[0].isdigit()
            if (row and words[-1].strip("0.")) or _WRONG.match(untagged):
                raise text_output.NumberedLine(number, line).refused(
                    "wrong data was received", Verdict.INCORRECT
                )


@dataclass
class _Series:
    """The lines of one group, or of all processes."""

    rows: list[text_output.TableRow] = field(default_factory=list)
    failures: list[text_output.FailureLine] = field(default_factory=list)
    #: sizes of rows and failures, in the order of the output
    sizes: list[int | None] = field(default_factory=list)

    def check_next(self, line: text_output.NumberedLine, size: int | None) -> None:
        """Raise OutputError if a line with this size cannot be next."""
        if not self.sizes:
            return
        last = self.sizes[-1]
        if size is None or last is None:
            raise line.refused("a second row")
        if size <= last:
            raise line.refused("sizes do not ascend")


@dataclass
class _Table:
    benchmark: str
    processes: int | None = None
    groups: int = 1
    waiting: int = 0
    mode: str | None = None
    notes: dict[str, str] = field(default_factory=dict)
    ruled: bool = False  #: whether the rule under the title was read
    header: tuple[str, ...] = ()
    series: dict[int | None, _Series] = field(default_factory=dict)

    @property
    def grouped(self) -> bool:
        """Whether there is a row per group, after a blank line per size."""
        return GROUP in self.header

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.header if name not in (GROUP, SIZE, DEFECTS))

    def title(self, text: str) -> bool:
        """Take a comment between the name and the header words. Return whether it is allowed there."""
        if match := _PROCESSES.fullmatch(text):
            if match[2]:
                self.notes[THREADS] = match[2]
            return self._sizes(1, int(match[1]))
        if match := _WINDOW.fullmatch(text):
            self.notes["window size"] = match[1]
            return THREADS in self.notes and not self.ruled
        if match := _GROUPS.fullmatch(text):
            return self._sizes(int(match[1]), int(match[2]))
        if match := _WAITING.fullmatch(text):
            self.waiting = int(match[1])
            return not self.ruled
        if match := _MODE.fullmatch(text):
            self.mode = match[1]
            return self.ruled
        return bool(_RANKS.fullmatch(text))

    def _sizes(self, groups: int, processes: int) -> bool:
        fresh, self.groups, self.processes = self.processes is None, groups, processes
        return fresh

    def take_header(self, words: tuple[str, ...]) -> bool:
        """Take the line of header words. Return whether it can be one."""
        self.header = words
        return self.ruled and len(set(words)) == len(words) > 1

    def take(self, line: text_output.NumberedLine) -> None:
        """Add a line of numbers or a failure. Raises OutputError if it does not fit."""
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
            series.failures.append(
                text_output.FailureLine(size, f"line {line.number}: {text_output.shorten_line(what)}")
            )
        else:
            series.rows.append(text_output.TableRow(size, self._values(line, cells), _passed(line, cells)))

    def _cells(self, line: text_output.NumberedLine, words: list[str]) -> dict[str, str]:
        names = [name for name in self.header if name != GROUP]
        if len(words) != len(names):
            raise line.refused(f"{len(words)} columns where the header has {len(names)}")
        return dict(zip(names, words, strict=True))

    def _values(self, line: text_output.NumberedLine, cells: dict[str, str]) -> dict[str, float]:
        values = {
            name: float(line.count(cells[name])) if name in COUNTED else line.value(cells[name])
            for name in self.columns
        }
        text_output.check_order(line, values, "t_min[usec]", "t_avg[usec]", "t_max[usec]")
        return values

    def finish(self, line: text_output.NumberedLine) -> list[text_output.OutputTable]:
        """Return a table per printed group. Raises OutputError if the groups differ in their sizes."""
        sizes = {tuple(series.sizes) for series in self.series.values()}
        if len(sizes) != 1:
            raise line.refused("before this line is a table without rows, or of unequal groups")
        return [
            text_output.OutputTable(
                self.benchmark,
                self.columns,
                tuple(series.rows),
                processes=self.processes,
                waiting=self.waiting,
                groups=self.groups,
                group=group,
                mode=self.mode,
                failures=tuple(series.failures),
                notes=self.notes,
            )
            for group, series in self.series.items()
        ]


class _Stage(Enum):
    """The part of the output that the next line belongs to."""

    START = "the first lines"
    FACTS = "the header"
    CALL = "the command line"
    LIST = "the list of benchmarks"
    BETWEEN = "the space between two tables"
    TITLE = "the title of a table"
    ROWS = "the rows of a table"
    ENDED = "the end"


@dataclass
class _Reader:
    """The state of reading: what was read, and what may come next."""

    stage: _Stage = _Stage.START
    version: str = ""
    threads: bool = False  #: whether the program is IMB-MT
    facts: set[str] = field(default_factory=set)  #: names of the facts in the header
    called: bool = False  #: whether the header has the command line
    listed: set[str] = field(default_factory=set)  #: benchmarks that IMB announced
    invalid: list[str] = field(default_factory=list)
    tables: text_output.TableCollection = field(default_factory=text_output.TableCollection)
    table: _Table = field(default_factory=lambda: _Table(""))
    ruled: bool = False  #: whether the line before was a rule
    barren: bool = False  #: whether the title of the current table says that it has no rows
    last: text_output.NumberedLine = field(
        default_factory=lambda: text_output.NumberedLine(1, "")
    )  #: the last line that was not blank

    def take(self, line: text_output.NumberedLine) -> None:
        """Add one line. Raises OutputError if it is not allowed there."""
        text = line.text.rstrip(" ")
        if not text:
            self._blank(line)
            return
        self.last = line
        rule = text.startswith("#--") and not text[1:].strip("-")
        if self.stage is _Stage.ROWS and (rule or text == END or _INVALID.fullmatch(text)):
            self._close(line)  # in groups a blank line does not
        if text == END:
            self._end(line)
        elif rule:
            self._rule(line)
        elif self.stage is _Stage.ROWS:
            self.table.take(line)
        else:
            self._comment(line, text)

    def finish(self) -> text_output.ProgramOutput:
        """Return the whole output. Raises OutputError if its last line is missing."""
        if self.threads and self.stage is not _Stage.BETWEEN:
            raise self.last.refused("after this line is no blank one, which is the last of IMB-MT")
        if not self.threads and self.stage is not _Stage.ENDED:
            raise self.last.refused("after this line is no 'All processes entering MPI_Finalize'")
        return text_output.ProgramOutput(self.version, self.tables.all(), tuple(self.invalid))

    def _blank(self, line: text_output.NumberedLine) -> None:
        if self.stage is _Stage.CALL and self.called:
            self.stage = _Stage.FACTS
        elif self.stage is _Stage.ROWS and not self.table.grouped:
            self._close(line)

    def _end(self, line: text_output.NumberedLine) -> None:
        if self.stage not in (_Stage.BETWEEN, _Stage.LIST):
            raise line.refused(f"the end comes in {self.stage.value}")
        self.stage = _Stage.ENDED

    def _rule(self, line: text_output.NumberedLine) -> None:
        if self.stage is _Stage.TITLE and self.barren:
            self.stage, self.barren = _Stage.BETWEEN, False
            return
        if self.stage is _Stage.TITLE:
            if self.table.ruled or self.table.processes is None:
                raise line.refused("the title of a table is not whole")
            self.table.ruled = True
        elif self.stage is _Stage.LIST:
            self.stage = _Stage.BETWEEN
        elif self.stage in (_Stage.CALL, _Stage.ENDED) or self.ruled:
            raise line.refused(f"not a line of {self.stage.value}")
        self.ruled = True

    def _close(self, line: text_output.NumberedLine) -> None:
        for table in self.table.finish(line):
            self.tables.add(line, table)
        self.stage = _Stage.BETWEEN

    def _comment(self, line: text_output.NumberedLine, text: str) -> None:
        """Take a line outside of rows. Each taker returns whether the line is allowed there."""
        takers = {
            _Stage.START: self._start,
            _Stage.FACTS: self._fact,
            _Stage.CALL: self._call,
            _Stage.LIST: self._list,
            _Stage.BETWEEN: self._between,
            _Stage.TITLE: self._title,
        }
        stage = self.stage
        taken = stage in takers and not text.startswith(TITLE_OF_OSU) and takers[stage](text)
        if not taken:
            raise line.refused(f"not a line of {stage.value}")
        self.ruled = False

    def _start(self, text: str) -> bool:
        match = _BANNER.fullmatch(text)
        if match:
            self.version = match[1].strip()
            self.threads = match[2].strip() == PART_OF_THREADS
            self.stage = _Stage.FACTS
        return bool(match)

    def _fact(self, text: str) -> bool:
        if self.threads and _BENCHMARKING.fullmatch(text):
            return self._between(text)
        if text.startswith("# Calling sequence was:"):
            self.stage = _Stage.CALL
            return not self.called
        if text.startswith("# List of Benchmarks to run:"):
            self.stage = _Stage.LIST
            return True
        key, colon, _ = (word.strip() for word in text.lstrip("# ").partition(":"))
        foreign = key in self.facts or text.startswith("# OSU ") or _BANNER.fullmatch(text)
        if colon and key:
            self.facts.add(key)
        return text.lstrip(" ").startswith("#") and not foreign

    def _call(self, text: str) -> bool:
        self.called = self.called or bool(text.lstrip("#").split())
        return text.startswith("#")

    def _list(self, text: str) -> bool:
        match = _LISTED.fullmatch(text)
        if match:
            self.listed.add(match[1])
        return bool(match) or text.startswith("#    ") or self._refusal(text)

    def _between(self, text: str) -> bool:
        match = _BENCHMARKING.fullmatch(text)
        if not match:
            return self._refusal(text)
        self.table = _Table(match[1])
        self.stage = _Stage.TITLE
        return self.ruled and (self.threads or match[1].removeprefix("Multi-") in self.listed)

    def _refusal(self, text: str) -> bool:
        """Take IMB's refusal to run a benchmark, such as the ping-pong with one process."""
        match = _INVALID.fullmatch(text)
        if match:
            self.invalid.append(f"{match[1]} with {match[2]} processes")
        return bool(match)

    def _title(self, text: str) -> bool:
        if self.threads and text == _BARREN and self.table.processes is None:
            self.barren = True
            self.invalid.append(f"{self.table.benchmark}: no successful executions")
            return True
        words = tuple(text.split())
        if words[0] not in FIRST:
            return self.table.title(text)
        self.stage = _Stage.ROWS
        return self.table.take_header(words)


def _passed(line: text_output.NumberedLine, cells: dict[str, str]) -> bool | None:
    return line.value(cells[DEFECTS]) == 0 if DEFECTS in cells else None
