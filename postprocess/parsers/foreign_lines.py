"""Lines of others on the standard output of OSU and IMB: libraries, launchers and prologues write there too.

Nothing is dropped that could be a row, a validation that failed, or an error: a line is taken out only as a
whole, from the margin to its end, if it has no part of a table in it, and if it says itself that it is a
warning or less, or has no word of an error. What is taken out is counted and shown. Everything else stays for
the parser of the program, which refuses what it does not know.

A launcher may put the number of a rank before each line (``[1,0]<stdout>:``, ``0: ``); that is taken off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from postprocess.parsers.text_output import NumberedLine, OutputError

#: Ways in which launchers tag lines: Open MPI and PRRTE, whose words no program writes itself; and those of
#: srun, Flux and Hydra, which are believed only where the title of the program stands behind one.
OPEN_MPI_TAG = re.compile(
    r"\[[^][<>\s]{0,200},[0-9]{1,9}\](?:\[[^][<>]{1,200}\])?(?:[A-Z][a-z0-9: ]{10,40})?<std(?:out|err)>: ?"
)
NUMBER_TAGS = (
    re.compile(r" {0,8}[0-9]{1,9}: ?"),  # srun --label, flux run --label-io
    re.compile(r"\[[0-9]{1,9}\] ?"),  # Hydra's -prepend-rank
    re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,99} [0-9]{1,9}: ?"),  # PALS's --label
)

COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
#: Something of a table in a line: numbers in columns, header words, a title.
TABLE = re.compile(
    r" {2,}-?[0-9]+[.,][0-9]{2}(?![0-9])|[0-9](?: {2,}[0-9.]+)+$|[0-9] {2,}-?(?:nan|inf)\b"
    r"|#[ -]|#(?:bytes|repetitions|processes)|\(us\)|usec\]|MB/s|Mbytes/sec|OSU .*Test"
)
#: How a line of others may begin: rows begin with a digit or blanks, comments with #.
MARGIN = re.compile(r"[A-Za-z\[<(]|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T]|[0-9]{2}:[0-9]{2}:[0-9]{2}[ .,]")
#: A level below an error, where loggers write it.
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
#: Open MPI's: that more processes had the message which stands before.
SAME_HELP = re.compile(
    r"\[[^]\s]+\] (?:[0-9]+ more process(?:es)? ha(?:s|ve) sent help message \S+ / .*"
    r"|Set MCA parameter \"\w+help_aggregate\" to 0 to see all help / error messages)"
)
HELP = "-" * 20  #: a line of these begins and ends a message of Open MPI's
MOST_OF_HELP = 60  #: lines of such a message

#: Who writes, and the setting that sends it elsewhere.
WRITERS = (
    ("UCX", re.compile(r"\bUC[XSTPM]\b|ucx"), "UCX_LOG_FILE=stderr"),
    ("NCCL", re.compile(r"\bNCCL\b"), "NCCL_DEBUG_FILE=/dev/stderr"),
    ("libfabric", re.compile(r"^libfabric:"), "FI_LOG_LEVEL=error"),
    ("Slurm", re.compile(r"^(?:srun|slurmstepd): "), ""),
)


@dataclass(frozen=True)
class ForeignLines:
    """The lines of others in one output."""

    count: int = 0
    first: str = ""  #: harmless and short


def separate_lines(
    lines: Sequence[NumberedLine],
    is_title: Callable[[str], bool],
    is_own: Callable[[str], bool],
) -> tuple[list[NumberedLine], ForeignLines]:
    """Separate the lines of a program, without tags, from those of others.

    :param is_title: whether a text is a line with which the program begins.
    :param is_own: whether a text at the margin is of the program, although it is neither comment nor row.
    """
    untag = choose_untag([line.text for line in lines], is_title)
    own: list[NumberedLine] = []
    foreign: list[NumberedLine] = []
    rest = [NumberedLine(line.number, untag(line.text)) for line in lines]
    while rest:
        block = 0 if is_own(rest[0].text) else count_foreign(rest[:MOST_OF_HELP])
        (foreign if block else own).extend(rest[: block or 1])
        del rest[: block or 1]
    first = next((line.shown for line in foreign if line.shown.strip("-")), "")
    return own, ForeignLines(len(foreign), first)


def cut_tag(tag: re.Pattern[str], text: str) -> str:
    """Cut the tag off a line that begins with it."""
    found = tag.match(text)
    return text[found.end() :] if found else text


def choose_untag(texts: Sequence[str], is_title: Callable[[str], bool]) -> Callable[[str], str]:
    """Choose what takes the tags off an output: those that stand before the title of the program."""

    def untag_open_mpi(text: str) -> str:
        return OPEN_MPI_TAG.sub("", text, count=1) if OPEN_MPI_TAG.match(text) else text

    for text in texts:
        if is_title(text) or is_title(untag_open_mpi(text)):
            return untag_open_mpi
        for tag in NUMBER_TAGS:
            if (found := tag.match(text)) and is_title(text[found.end() :]):
                return partial(cut_tag, tag)
    return untag_open_mpi


def list_untagged(text: str) -> list[str]:
    """List what a line may say behind each tag that it may have, itself first: to look for wrong data in it."""
    tags = (OPEN_MPI_TAG, *NUMBER_TAGS)
    return [text, *(text[found.end() :] for tag in tags if (found := tag.match(text)))]


def count_foreign(lines: Sequence[NumberedLine]) -> int:
    """Count the first lines that are of others: one, a message of several, or none."""
    text = COLOUR.sub("", lines[0].text)
    if text.startswith(HELP) and not text.strip("-"):
        return count_help([COLOUR.sub("", line.text) for line in lines])
    return int(is_foreign(text))


def count_help(texts: Sequence[str]) -> int:
    """Count the lines of a message of Open MPI's between two rulers, if it is no more than a warning."""
    for end, text in enumerate(texts[1:], 1):
        if text == texts[0]:
            inside = [each for each in texts[1:end] if each.strip()]
            harmless = inside and all(
                each.isprintable() and not TABLE.search(each) for each in inside
            )
            return end + 1 if harmless and is_harmless(" ".join(inside)) else 0
        if text.lstrip(" ")[:1].isdigit() or text.startswith("#"):
            return 0
    return 0


def is_foreign(text: str) -> bool:
    """Return whether a line is of others, whole, and no error."""
    if not MARGIN.match(text) or not text.replace("\t", " ").isprintable() or TABLE.search(text):
        return False
    return bool(SAME_HELP.fullmatch(text)) or (len(text.split()) > 1 and is_harmless(text))


def is_harmless(text: str) -> bool:
    """Return whether a message is a warning or less, by its own word, or has no word of an error."""
    if GRAVE.search(text) or ERROR.search(text):
        return False
    return bool(WARNING.search(text[:200])) or not DOUBTFUL.search(text)


@contextmanager
def explaining_writer(lines: Sequence[NumberedLine]) -> Iterator[None]:
    """Add to the error on a line who wrote it, if that is known, and how to send it elsewhere."""
    try:
        yield
    except OutputError as error:
        text = next((each.text for each in lines if each.number == error.line), "")
        for name, pattern, setting in WRITERS:
            if pattern.search(text):
                where = "; {} (--set-env, or env_vars of the site) sends it elsewhere"
                told = f"{name} wrote this{where.format(setting) if setting else ''}"
                raise OutputError(error.verdict, f"{error.message} ({told})", error.line) from None
        raise
