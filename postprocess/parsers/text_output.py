"""The tables that OSU and IMB print, as plain data, and the strict reading of their lines.

Both programs write for people: fixed columns under a line of header words, with comment lines between.
:mod:`postprocess.parsers.osu` and :mod:`postprocess.parsers.imb` know the two grammars. This module has what
they share: a line is either taken whole and unchanged or refused with its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from postprocess.base.sanitize import sanitize_line
from postprocess.model.verdict import RecordError, Verdict

SHOWN = 100  #: characters of a line that a message quotes
ROUNDING = 0.011  #: printed numbers are off by at most half of 0.01, so two differ by at most 0.01
VALUE = re.compile(r"[0-9]{1,18}\.[0-9]{2}")
COUNT = re.compile(r"[0-9]{1,18}")


class OutputError(RecordError):
    """An output that yields no result: its verdict, and one line with line number and line."""

    def __init__(self, verdict: Verdict, message: str, line: int = 0) -> None:
        super().__init__(verdict, message)
        self.line = line  #: line number; 0 if the error is not about a line


@dataclass(frozen=True)
class TableRow:
    size: int | None  #: bytes as printed; None if the table has no column of sizes
    values: Mapping[str, float]  #: values by header words, in the unit that they state (us, MB/s, %, 1/s)
    passed: bool | None  #: result of the program's own validation; None without validation


@dataclass(frozen=True)
class FailureLine:
    """A line of IMB that says why there are no numbers for a size."""

    size: int | None  #: bytes; None if the table has no column of sizes
    reason: str  #: ``line 31: out-of-mem.; needed X= ...``


@dataclass(frozen=True)
class OutputTable:
    """The rows under one line of header words."""

    #: OSU: title without version; IMB: name as printed, ``Multi-PingPong`` in groups
    benchmark: str
    columns: tuple[str, ...]  #: keys of every row's values
    rows: tuple[TableRow, ...]
    processes: int | None = None  #: processes that took part (in each group, if there are groups)
    waiting: int = 0  #: further processes that spun in a barrier meanwhile (IMB)
    groups: int = 1  #: groups that ran at once (IMB ``-multi``)
    group: int | None = None  #: number of the group of these rows (IMB ``-multi 1``)
    mode: str | None = None  #: ``AGGREGATE`` or ``NON-AGGREGATE`` (IMB one-sided)
    datatype: str | None = None  #: None if OSU does not print it (before 7.1), and for IMB
    notes: Mapping[str, str] = field(default_factory=dict)  #: ``window size``, ``pairs`` ...
    failures: tuple[FailureLine, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """Key that distinguishes the tables of one output."""
        caption = self.notes.get("table")
        return (self.benchmark, self.processes, self.groups, self.group, self.mode, self.datatype, caption)


@dataclass
class TableCollection:
    """The distinct tables of one output."""

    _by_identity: dict[tuple[object, ...], OutputTable] = field(default_factory=dict)

    def add(self, line: NumberedLine, table: OutputTable) -> None:
        """Add the table that ends at this line. Raises OutputError if it is there already."""
        if table.identity in self._by_identity:
            raise line.refused(f"a second table of {shorten_line(table.benchmark)}")
        self._by_identity[table.identity] = table

    def all(self) -> tuple[OutputTable, ...]:
        return tuple(self._by_identity.values())


@dataclass(frozen=True)
class ProgramOutput:
    """Everything that one start of a program printed."""

    version: str  #: version of OSU or IMB; empty if not printed
    tables: tuple[OutputTable, ...]
    invalid: tuple[str, ...] = ()  #: benchmarks that IMB calls invalid at a number of processes
    foreign: int = 0  #: number of lines from other programs, which were removed
    first_foreign: str = ""  #: the first of them, escaped and shortened


@dataclass(frozen=True)
class NumberedLine:
    """A line without its end, with its number from 1."""

    number: int
    text: str

    def refused(self, why: str, verdict: Verdict = Verdict.INCOMPLETE) -> OutputError:
        return OutputError(verdict, f"line {self.number}: {why}: {self.shown}", self.number)

    @property
    def shown(self) -> str:
        """The line, escaped and shortened."""
        return shorten_line(self.text.strip())

    @property
    def plain(self) -> str:
        """The text without surrounding blanks. Raises OutputError if it is not printable ASCII."""
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
    """Shorten and escape a text from outside."""
    shown = sanitize_line(text[:SHOWN])
    return shown[:SHOWN] + "..." if max(len(text), len(shown)) > SHOWN else shown


def split_whole_lines(text: str) -> list[NumberedLine]:
    """Split an output into numbered lines. Raises OutputError if the last one has no end."""
    *lines, rest = text.split("\n")
    if rest:
        raise NumberedLine(len(lines) + 1, rest).refused("the output is cut off in a line")
    if not lines:
        raise OutputError(Verdict.INCOMPLETE, "line 1: the output is empty")
    return [NumberedLine(number, line) for number, line in enumerate(lines, 1)]


def find_odd_character(text: str) -> str:
    """Describe the first character that is not printable ASCII, its place, and its cause."""
    place = next(n for n, char in enumerate(text) if not (char.isascii() and char.isprintable()))
    cause = ", as line ends of Windows and terminals have it" if text[place] == "\r" else ""
    return f"{text[place]!a} at place {place + 1}{cause}"


def check_order(line: NumberedLine, values: Mapping[str, float], least: str, mean: str, most: str) -> None:
    """Check that a mean is between minimum and maximum, if the row has all three.

    Raises OutputError (incorrect): a row that contradicts itself is wrong, or a mixture of lines.
    """
    if not values.keys() >= {least, mean, most}:
        return
    low, middle, high = values[least], values[mean], values[most]
    if not low - ROUNDING <= middle <= high + ROUNDING:
        raise line.refused(f"{mean} is not between {least} and {most}", Verdict.INCORRECT)


#: Tags that launchers put before lines: those of Open MPI and PRRTE, whose words no program writes itself; and
#: those of srun, Flux and Hydra, which only count if the program's title follows one.
OPEN_MPI_TAG = re.compile(
    r"\[[^][<>\s]{0,200},[0-9]{1,9}\](?:\[[^][<>]{1,200}\])?(?:[A-Z][a-z0-9: ]{10,40})?<std(?:out|err)>: ?"
)
NUMBER_TAGS = (
    re.compile(r" {0,8}[0-9]{1,9}: ?"),  # srun --label, flux run --label-io
    re.compile(r"\[[0-9]{1,9}\] ?"),  # Hydra's -prepend-rank
    re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,99} [0-9]{1,9}: ?"),  # PALS's --label
)

COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
#: Signs of a table in a line: numbers in columns, header words, a title.
TABLE = re.compile(
    r" {2,}-?[0-9]+[.,][0-9]{2}(?![0-9])|[0-9](?: {2,}[0-9.]+)+$|[0-9] {2,}-?(?:nan|inf)\b"
    r"|#[ -]|#(?:bytes|repetitions|processes)|\(us\)|usec\]|MB/s|Mbytes/sec|OSU .*Test"
)
#: How a foreign line may begin: rows begin with a digit or blanks, comments with #.
MARGIN = re.compile(r"[A-Za-z\[<(]|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T]|[0-9]{2}:[0-9]{2}:[0-9]{2}[ .,]")
#: A log level below an error, where loggers write it.
WARNING = re.compile(
    r"\b(?:WARN|WARNING|INFO|NOTICE|DIAG|DEBUG|TRACE|TRACE_REQ|TRACE_DATA|REQ|DATA|FUNC|POLL)\b"
    r"|<(?:warn|info|trace|debug)>|^\W{0,3}(?:Warning|warning|Note|Notice)\b|: (?:warning|note): "
)
ERROR = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC)\b|<error>")
#: Words of an end or of wrong data, which no warning may have.
GRAVE = re.compile(
    r"abort|terminat|segmentation|sigsegv|sigbus|signal [0-9]|\bkilled|core dumped|\bfatal\b|data validation"
    r"|wrong data|corrupt|truncat|\*\*\* |mpi_err|out of memory|oom|cancelled|unsuccessful|invalid buffer"
    r"|exited|exit code|traceback|panic",
    re.I,
)
#: Words of an error, which only a warning may have.
DOUBTFUL = re.compile(
    r"error|fail|invalid|illegal|cannot|can't|could not|couldn't|unable|not (?:found|enough|supported|allowed)"
    r"|denied|refused|exceed|timed? ?out|insufficient|mismatch|incorrect|wrong|unknown|require|usage|assert"
    r"|exception|\bbad\b|lost|dropped|missing|unexpected|no such|expired|too (?:large|small|many|few)|crash"
    r"|broken|unreachable|\bdown\b|\bpass(?:ed)?\b|skipped|validat|benchmark|iterations|message size",
    re.I,
)
#: Open MPI's line that more processes sent the message before.
SAME_HELP = re.compile(
    r"\[[^]\s]+\] (?:[0-9]+ more process(?:es)? ha(?:s|ve) sent help message \S+ / .*"
    r"|Set MCA parameter \"\w+help_aggregate\" to 0 to see all help / error messages)"
)
HELP = "-" * 20  #: such a line begins and ends a message of Open MPI
MOST_OF_HELP = 60  #: lines of such a message

#: Programs that write foreign lines, with the setting that sends them elsewhere.
WRITERS = (
    ("UCX", re.compile(r"\bUC[XSTPM]\b|ucx"), "UCX_LOG_FILE=stderr"),
    ("NCCL", re.compile(r"\bNCCL\b"), "NCCL_DEBUG_FILE=/dev/stderr"),
    ("libfabric", re.compile(r"^libfabric:"), "FI_LOG_LEVEL=error"),
    ("Slurm", re.compile(r"^(?:srun|slurmstepd): "), ""),
)


def read_output(
    text: str,
    take: Callable[[NumberedLine], None],
    finish: Callable[[], ProgramOutput],
    is_title: Callable[[str], bool],
    is_own: Callable[[str], bool],
) -> ProgramOutput:
    """Read an output: pass each line of the program to ``take``, and count the foreign ones.

    ``is_title`` and ``is_own`` are as in :func:`separate_lines`.
    """
    program_lines, foreign = separate_lines(split_whole_lines(text), is_title, is_own)
    try:
        for line in program_lines:
            take(line)
        output = finish()
    except OutputError as error:
        raise explain_writer(error, program_lines) from None
    first = next((line.shown for line in foreign if line.shown.strip("-")), "")
    return replace(output, foreign=len(foreign), first_foreign=first)


def separate_lines(
    lines: Sequence[NumberedLine], is_title: Callable[[str], bool], is_own: Callable[[str], bool]
) -> tuple[list[NumberedLine], list[NumberedLine]]:
    """Separate the lines of a program, without tags, from foreign ones.

    :param is_title: whether a text is a line with which the program begins.
    :param is_own: whether a text at the margin is from the program although it is neither comment nor row.
    """
    untag = choose_untag([line.text for line in lines], is_title)
    program_lines: list[NumberedLine] = []
    foreign: list[NumberedLine] = []
    rest = [NumberedLine(line.number, untag(line.text)) for line in lines]
    while rest:
        block = 0 if is_own(rest[0].text) else count_foreign(rest[:MOST_OF_HELP])
        (foreign if block else program_lines).extend(rest[: block or 1])
        del rest[: block or 1]
    return program_lines, foreign


def cut_tag(tag: re.Pattern[str], text: str) -> str:
    """Remove the tag from a line that begins with it."""
    match = tag.match(text)
    return text[match.end() :] if match else text


def choose_untag(texts: Sequence[str], is_title: Callable[[str], bool]) -> Callable[[str], str]:
    """Choose how to remove the tags of an output: those that precede the title of the program."""

    def untag_open_mpi(text: str) -> str:
        return OPEN_MPI_TAG.sub("", text, count=1) if OPEN_MPI_TAG.match(text) else text

    for text in texts:
        if is_title(text) or is_title(untag_open_mpi(text)):
            return untag_open_mpi
        for tag in NUMBER_TAGS:
            if (match := tag.match(text)) and is_title(text[match.end() :]):
                return partial(cut_tag, tag)
    return untag_open_mpi


def list_untagged(text: str) -> list[str]:
    """List the possible texts of a line: itself, and what follows each possible tag."""
    tags = (OPEN_MPI_TAG, *NUMBER_TAGS)
    return [text, *(text[match.end() :] for tag in tags if (match := tag.match(text)))]


def count_foreign(lines: Sequence[NumberedLine]) -> int:
    """Count the foreign lines at the beginning: a single one, a message of several, or none."""
    text = COLOUR.sub("", lines[0].text)
    if text.startswith(HELP) and not text.strip("-"):
        return count_help([COLOUR.sub("", line.text) for line in lines])
    return int(is_foreign(text))


def count_help(texts: Sequence[str]) -> int:
    """Count the lines of Open MPI's message between two rulers, if it is no worse than a warning."""
    for end, text in enumerate(texts[1:], 1):
        if text == texts[0]:
            inside = [inner for inner in texts[1:end] if inner.strip()]
            harmless = inside and all(inner.isprintable() and not TABLE.search(inner) for inner in inside)
            return end + 1 if harmless and is_harmless(" ".join(inside)) else 0
        if text.lstrip(" ")[:1].isdigit() or text.startswith("#"):
            return 0
    return 0


def is_foreign(text: str) -> bool:
    """Return whether a whole line is foreign and not an error."""
    if not MARGIN.match(text) or not text.replace("\t", " ").isprintable() or TABLE.search(text):
        return False
    return bool(SAME_HELP.fullmatch(text)) or (len(text.split()) > 1 and is_harmless(text))


def is_harmless(text: str) -> bool:
    """Return whether a message is at most a warning by its own word, or has no word of an error."""
    if GRAVE.search(text) or ERROR.search(text):
        return False
    return bool(WARNING.search(text[:200])) or not DOUBTFUL.search(text)


def explain_writer(error: OutputError, lines: Sequence[NumberedLine]) -> OutputError:
    """Add to an error on a line which program wrote it, if known, and how to send it elsewhere."""
    text = next((line.text for line in lines if line.number == error.line), "")
    for name, pattern, setting in WRITERS:
        if pattern.search(text):
            where = "; {} (--set-env, or env_vars of the site) sends it elsewhere"
            writer = f"{name} wrote this{where.format(setting) if setting else ''}"
            return OutputError(error.verdict, f"{error.message} ({writer})", error.line)
    return error
