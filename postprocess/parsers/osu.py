"""Parse the output of one start of an OSU micro-benchmark (5.x to 7.x).

It is read by header words, so one-column and full output, tails, validation, overlap, window sizes and data
types share one grammar: a title, comments, a line of header words, rows.
"""

import re
from dataclasses import dataclass, field

from postprocess.model.routines.benchmark import WHOLE_START
from postprocess.model.verdict import Verdict
from postprocess.parsers import text_output

SIZE = "Size"
PROCESSES = "processes"  #: note of osu_hello
VALIDATION = "Validation"
JUDGED = {"Pass": True, "passed": True, "Fail": False, "failed": False, "skipped": None}
COUNTED = frozenset({"Iterations", "Transmit Size"})  #: columns of whole numbers
ORDERED = (
    ("Min Latency(us)", "Avg Latency(us)", "Max Latency(us)"),
    ("Min Comm.(us)", "Pure Comm.(us)", "Max Comm.(us)"),
)
#: first column if there are no sizes, as for a barrier
SIZELESS = ("Avg Latency(us)", "Overall(us)")
CAPTIONS = ("Uni-directional Bandwidth (MB/sec)", "Message Rate Profile")  #: captions of osu_mbw_mr -V
#: osu_bw_fan_in and osu_bw_fan_out print rates under the header words of latencies (seen in 7.4)
BANDWIDTH = " Bandwidth "
RATES = {"Avg Latency(us)": "Bandwidth (MB/s)"}
TAIL_OF_RATES = ("Tail Lat(us)", "Tail BW(MB/s)")
INIT = ("min (ms)", "max (ms)", "avg (ms)")  #: columns for the single line of osu_init
#: what threads, processes and neighbourhood collectives print before the title
BEFORE = re.compile(
    r"# Number of (?:(?:Sender|Receiver) threads|forked processes in (?:sender|receiver)): [0-9]{1,9} ?"
    r"|Time took to create topology graph:[0-9]{1,18}\.[0-9]{2} us\."
    r"|Dimensions size = (?:[0-9]{1,9} ){1,9}"
)
#: what atomic operations print about their data after the last table; ``FAILED:`` never gets this far
AFTER = re.compile(r"-{7,99}|Atomic Data Validation results for Rank=[0-9]{1,9}:|(?:PASSED|SKIPPED): .{1,200}")

#: beginnings of OSU's lines at the margin that are neither comments nor rows
OWN = (
    "This is a test with ",
    "Time took to ",
    "Dimensions size",
    "Atomic Data ",
    "PASSED",
    "SKIPPED",
    "FAILED",
    "nprocs:",
)
#: What neighbourhood programs print with too few processes, on any rank; they return 0 then
_GAVE_UP = re.compile(r"ERROR: .*\bAborting!")
#: A row with its validation, behind foreign text in the same line
_ROW_AT_END = re.compile(r"[0-9] {2,}[0-9]+\.[0-9]{2} .*\b(?:Fail|failed) *$")

_VERSION = re.compile(r"[0-9][0-9A-Za-z.-]{0,19}")
_TAIL = re.compile(r" (?=P[0-9]{1,2} Tail )")
_GAP = re.compile(r" {2,}")
_PAIRS = re.compile(r"\[ (pairs): ([0-9]{1,9}) \] \[ (window size): ([0-9]{1,9}|varied) \]")
_HELLO = re.compile(r"This is a test with ([0-9]{1,9}) processes")
#: What the job adds to output without a time; some languages use a comma
_STARTED = re.compile(rf"# {re.escape(WHOLE_START)}: ([0-9]{{1,9}})[.,]([0-9]{{3}})")
_INIT = re.compile(r"nprocs: ([0-9]{1,9}), min: ([0-9]{1,9}) ms, max: ([0-9]{1,9}) ms, avg: ([0-9]{1,9}) ms")


def parse_osu(text: str) -> text_output.ProgramOutput:
    """Parse the output of one start of an OSU program. Linear in time and memory.

    OSU prints no last line, so output that was cut between two lines passes as shorter output: compare the
    sizes of each table with the plan, and check elsewhere that the program reached ``MPI_Finalize``. A table
    may have no rows.

    :raises OutputError: ``incorrect`` if a line reports wrong data, whatever else is wrong, or if a row
    contradicts itself; ``incomplete`` if the text is cut off in a line, mixed, or not from OSU.
    """
    _check_data(text)
    _check_end(text)
    reader = _Reader()
    return text_output.read_output(text, reader.take, reader.finish, _is_title, _is_own)


def _check_data(text: str) -> None:
    """Check for wrong data first, even in output that is cut off, mixed or tagged."""
    for number, line in enumerate(text.split("\n"), 1):
        if any(map(_says_wrong_data, text_output.list_untagged(line))):
            raise text_output.NumberedLine(number, line).refused("wrong data was received", Verdict.INCORRECT)


def _check_end(text: str) -> None:
    """Check that the program did not give up, as it may do beside a table."""
    for number, line in enumerate(text.split("\n"), 1):
        if any(map(_GAVE_UP.match, text_output.list_untagged(line))):
            raise text_output.NumberedLine(number, line).refused("the program gave up")


def _says_wrong_data(text: str) -> bool:
    """Return whether a line reports wrong data, also in a row at its end behind foreign text."""
    row = text[:1].isdigit() or _ROW_AT_END.search(text)
    failed = row and any(JUDGED.get(word) is False for word in text.split())
    return bool(failed) or "DATA VALIDATION ERROR" in text or text.startswith("FAILED:")


def _is_title(text: str) -> bool:
    return text.startswith("# OSU ")


def _is_own(text: str) -> bool:
    """Return whether a line at the margin is from OSU although it is neither comment nor row."""
    return text.startswith(OWN)


@dataclass
class _Block:
    datatype: str | None = None
    notes: dict[str, str] = field(default_factory=dict)
    header: tuple[str, ...] | None = None
    rows: list[text_output.TableRow] = field(default_factory=list)
    closed: bool = False  #: whether a blank line followed

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.header or () if name not in (SIZE, VALIDATION))

    def row(self, line: text_output.NumberedLine) -> text_output.TableRow:
        """Parse a line of numbers. Raises OutputError if it does not fit the header or the rows before."""
        header, words = self.header or (), line.plain.split()
        if len(words) != len(header):
            raise line.refused(f"{len(words)} columns where the header has {len(header)}")
        cells = dict(zip(header, words, strict=True))
        size = line.count(cells[SIZE]) if SIZE in cells else None
        if self.rows and (size is None or size <= (self.rows[-1].size or 0)):
            raise line.refused("sizes do not ascend" if size is not None else "a second row")
        values = {name: _number(line, name, cells[name]) for name in self.columns}
        for names in ORDERED:
            text_output.check_order(line, values, *names)
        return text_output.TableRow(size, values, _passed(line, cells))


@dataclass
class _Reader:
    """The state of reading: what was read, and what may come next."""

    title: text_output.NumberedLine | None = None
    benchmark: str = ""
    version: str = ""
    shared: dict[str, str] = field(default_factory=dict)  #: notes before the first header
    tables: text_output.TableCollection = field(default_factory=text_output.TableCollection)
    block: _Block | None = None  #: None only after the line of osu_init
    after: bool = False  #: whether in the lines after the last table

    def take(self, line: text_output.NumberedLine) -> None:
        """Add one line. Raises OutputError if it is not allowed there."""
        if not line.text.strip(" "):
            if self.block is not None and self.block.rows:
                self.block.closed = True
        elif line.text.startswith("# OSU "):
            self._title(line)
        elif self.title is None:
            if not BEFORE.fullmatch(line.text):
                raise line.refused("not a line of OSU")
        elif line.text.startswith("#"):
            self._comment(line)
        elif AFTER.fullmatch(line.text):
            self._ending(line)
        else:
            self._row(line)

    def finish(self) -> text_output.ProgramOutput:
        """Return the whole output. Raises OutputError if an announced table is missing."""
        if self.title is None:
            raise text_output.OutputError(Verdict.INCOMPLETE, "line 1: no line has the title of an OSU program")
        self._close(self.title)
        return text_output.ProgramOutput(self.version, self.tables.all())

    def _title(self, line: text_output.NumberedLine) -> None:
        benchmark, version = _title(line.plain.removeprefix("# "))
        if self.title is not None:
            # one-sided atomic operations repeat the title for each data type
            again = self.block is not None and "Synchronization" in self.block.notes
            if self.after or not again or (benchmark, version) != (self.benchmark, self.version):
                raise line.refused("a second program's output")
            self._close(line)
        self.title, self.benchmark, self.version = line, benchmark, version
        self.block, self.shared = _Block(), {}

    def _comment(self, line: text_output.NumberedLine) -> None:
        text = line.plain[1:].strip()
        if match := _STARTED.fullmatch(line.text):
            self._started(line, float(".".join(match.groups())))
        elif text.startswith("Datatype: "):
            self._datatype(line, text.removeprefix("Datatype: ").removesuffix("."))
        elif text in CAPTIONS:
            self._caption(line, text)
        elif header := _header(text):
            self._header(line, header)
        else:
            self._note(line, text)

    def _datatype(self, line: text_output.NumberedLine, name: str) -> None:
        if self.block is None or self.block.header is not None:
            self._close(line)
            self.block = _Block(notes=dict(self.shared))
        if self.block.datatype is not None:
            raise line.refused("the table before this line has no header")
        self.block.datatype = name

    def _caption(self, line: text_output.NumberedLine, text: str) -> None:
        if self.block is not None and self.block.header is not None:
            datatype = self.block.datatype
            self._close(line)
            self.block = _Block(datatype, dict(self.shared))
        self._opened(line).notes["table"] = text

    def _header(self, line: text_output.NumberedLine, header: tuple[str, ...]) -> None:
        block = self._opened(line)
        if BANDWIDTH in self.benchmark:
            header = tuple(RATES.get(name, name).replace(*TAIL_OF_RATES) for name in header)
        block.header = header
        if len(set(header)) != len(header) or not block.columns:
            raise line.refused("two columns have the same header, or there is none")
        self.shared = self.shared or dict(block.notes)

    def _note(self, line: text_output.NumberedLine, text: str) -> None:
        notes = self._opened(line).notes
        key, _, value = text.partition(": ")
        if pairs := _PAIRS.fullmatch(text):
            notes |= {pairs[1]: pairs[2], pairs[3]: pairs[4]}
        elif key in ("Window creation", "Synchronization"):
            notes[key] = value
        elif " Memory on " in text or " Buffer on " in text:
            notes["memory"] = text
        elif not text.startswith("Overall = "):
            raise line.refused("not a line of OSU")

    def _opened(self, line: text_output.NumberedLine) -> _Block:
        """Return the table whose header is still missing."""
        if self.block is None or self.block.header is not None or self.after:
            raise line.refused("a second header, or a comment inside a table")
        return self.block

    def _row(self, line: text_output.NumberedLine) -> None:
        if match := _INIT.fullmatch(line.text):
            self._init(line, [line.count(word) for word in match.groups()])
            return
        if match := _HELLO.fullmatch(line.text):
            self._opened(line).notes[PROCESSES] = match[1]
            return
        block = self.block
        if block is not None and block.header is None and (header := _bare_header(line)):
            self._header(line, header)
            return
        if block is None or block.header is None or block.closed or self.after:
            raise line.refused("not a line of OSU, or a row outside of a table")
        block.rows.append(block.row(line))

    def _init(self, line: text_output.NumberedLine, numbers: list[int]) -> None:
        self._opened(line)
        values = dict(zip(INIT, map(float, numbers[1:]), strict=True))
        text_output.check_order(line, values, "min (ms)", "avg (ms)", "max (ms)")
        row = text_output.TableRow(None, values, None)
        self.tables.add(line, text_output.OutputTable(self.benchmark, INIT, (row,), processes=numbers[0]))
        self.block = None

    def _started(self, line: text_output.NumberedLine, seconds: float) -> None:
        """Take the seconds of the whole start of osu_hello, whose process count must be known by then."""
        notes = self._opened(line).notes
        if PROCESSES not in notes:
            raise line.refused("a start without its processes")
        row = text_output.TableRow(None, {WHOLE_START: seconds}, None)
        columns, processes = (WHOLE_START,), int(notes[PROCESSES])
        self.tables.add(line, text_output.OutputTable(self.benchmark, columns, (row,), processes=processes))
        self.block = None

    def _ending(self, line: text_output.NumberedLine) -> None:
        if self.block is None or VALIDATION not in (self.block.header or ()):
            raise line.refused("not a line of OSU")
        self.after = True

    def _close(self, line: text_output.NumberedLine) -> None:
        if self.block is None:
            return
        block, self.block = self.block, None
        if block.header is None:
            raise line.refused("a table without its header")
        rows = tuple(block.rows)
        table = text_output.OutputTable(
            self.benchmark, block.columns, rows, datatype=block.datatype, notes=block.notes
        )
        self.tables.add(line, table)


def _title(text: str) -> tuple[str, str]:
    """Parse the title into the benchmark and the version, which may be empty."""
    benchmark, _, version = text.rpartition(" v")
    return (benchmark, version) if _VERSION.fullmatch(version) and benchmark else (text, "")


def _header(text: str) -> tuple[str, ...] | None:
    """Parse the header words, one text per column; None if the comment is not a header.

    Words of one column are one blank apart, columns at least two, except for the tails of a bandwidth, whose
    header is as wide as the column. A table of window sizes has numbers as headings.
    """
    words = text.split()
    if all(word.isdigit() for word in words):
        return (SIZE, *words) if words else None
    cells = tuple(_GAP.split(_TAIL.sub("  ", text)))
    return cells if cells[0] in (SIZE, *SIZELESS) else None


def _bare_header(line: text_output.NumberedLine) -> tuple[str, ...] | None:
    """Parse the header words of a non-blocking barrier, which OSU 5 printed without ``#``."""
    return _header(line.plain) if line.text.lstrip(" ").startswith("Overall(us) ") else None


def _number(line: text_output.NumberedLine, name: str, word: str) -> float:
    return float(line.count(word)) if name in COUNTED else line.value(word)


def _passed(line: text_output.NumberedLine, cells: dict[str, str]) -> bool | None:
    if VALIDATION not in cells:
        return None
    if cells[VALIDATION] not in JUDGED:
        raise line.refused("the validation is neither passed nor failed")
    return JUDGED[cells[VALIDATION]]
