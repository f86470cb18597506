"""The command ``history``: what a case cost night after night, in the terminal."""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence

from postprocess.base.errors import UsageError, propose_word
from postprocess.base.formats import factor, format_band, plural, quantity
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import SIZE_UNITS, parse_count, parse_with_unit
from postprocess.cli.options import add_options
from postprocess.cli.parser import READ, Parser
from postprocess.model.case import Case, matches_patterns
from postprocess.model.verdict import Verdict
from postprocess.results.query import COUNTING, FRESH, NIGHT_COLUMNS, NIGHTS, Night, read_headlines, read_nights

EXAMPLE = "./plumbline history bcast mpich 1kB"
FAILS = ""
MOST_CASES = 20
MOST_NIGHTS = 60  #: that fit a terminal
OTHER = "!"  #: the letter of a case that failed
LETTERS = [f"{verdict.letter}={verdict}" for verdict in Verdict if verdict.letter not in (OTHER, " ")]
LEGEND = ", ".join([*LETTERS, f"{OTHER}=failed"])


def add_arguments(parser: Parser) -> None:
    """Add the words that choose cases, and the sessions that are read."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="routine, environment, program, layout (2x2), size (1kB), any part of a key, or a pattern; a case "
        "must match all of them",
    )
    parser.instead_of_options = "cases are chosen by words here, as in: history bcast mpich 1kB"
    add_options(parser, "--since")
    parser.group(READ).add_argument(
        "--all-sessions",
        action="store_true",
        help="runs, confirmations and imported sessions too (default: nights alone)",
    )
    parser.group(READ).add_argument(
        "--most",
        type=parse_count,
        default=MOST_CASES,
        metavar="N",
        help=f"cases that are shown (default: {MOST_CASES})",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show the history of some cases. Returns 0. Raises UsageError if no case matches."""
    progress = Progress()
    modes = (*COUNTING, "run", "run" + FRESH, "import") if arguments.all_sessions else NIGHTS
    rows = read_headlines(
        work.store, since=arguments.since, modes=modes, columns=NIGHT_COLUMNS, say=progress.say
    )
    keys = sorted(rows["key"].unique())
    chosen = [key for key in keys if is_meant(Case.from_key(key), arguments.words)]
    if not chosen:
        raise UsageError(explain_no_match(arguments.words, keys))
    encoding = sys.stdout.encoding or "utf-8"
    for key in chosen[: arguments.most]:
        own = rows.filter(rows["key"] == key).rows(named=True)
        for line in describe_history(key, list(read_nights(own)), encoding):
            progress.say_whole(line)
    if (left := len(chosen) - arguments.most) > 0:
        progress.say(f"and {plural(left, 'more case')}: name more words, or --most")
    progress.say(LEGEND)
    return 0


def is_meant(case: Case, words: Sequence[str]) -> bool:
    """Return whether all words are said of a case."""
    return all(is_said_of(case, word) for word in words)


def is_said_of(case: Case, word: str) -> bool:
    """Return whether a word is a part of a case's key, a pattern of it, or its size."""
    if "*" in word or "?" in word:
        return matches_patterns(case.key, [word])
    parts = case.key.split(":")
    if word in parts or word == case.routine or any(part.startswith(f"{word}-") for part in parts):
        return True
    return word[:1].isdigit() and parse_size(word) == case.bytes


def parse_size(word: str) -> int | None:
    """Parse a word as a size; None if it is none."""
    try:
        return parse_with_unit(word, SIZE_UNITS)
    except argparse.ArgumentTypeError:
        return None


def explain_no_match(words: Sequence[str], keys: Sequence[str]) -> str:
    """Explain that no case of the store matches some words, with what may be meant."""
    said = " ".join(words)
    if not keys:
        return f"{said}: no night is stored yet; ./plumbline nightly makes one (--all-sessions: runs too)"
    cases = [Case.from_key(key) for key in keys]
    parts = {part for key in keys for part in key.split(":")}
    for word in words:
        if not any(is_said_of(case, word) for case in cases):
            fix = propose_word(word, parts) or f"name a part of a key, such as {keys[0]}"
            return f"{word}: is said of no stored case; {fix}"
    return f"{said}: no stored case matches all of these; name fewer"


def describe_history(key: str, nights: Sequence[Night], encoding: str) -> Iterator[str]:
    """Describe a case over nights: its values as a line, the verdicts below them, and the last night."""
    shown = nights[-MOST_NIGHTS:]
    last = shown[-1]
    yield key
    yield f"  {draw_sparkline([night.value for night in shown], encoding)}"
    yield f"  {''.join(Verdict(night.verdict).letter for night in shown)}"
    values = [night.value for night in shown if night.value is not None]
    spread = f"{quantity(min(values), last.unit)} to {quantity(max(values), last.unit)}" if values else "-"
    yield f"  {plural(len(nights), 'session')}, {shown[0].day} to {last.day}: {spread}"
    slowdown = (
        f" ({factor(last.value / last.reference)} of its reference)" if last.value and last.reference else ""
    )
    band = f", band {format_band(last.band, last.unit)}" if last.band else ""
    yield f"  last: {last.verdict}, {quantity(last.value, last.unit)}{slowdown}{band}"


BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=+*%#"  #: where the encoding has no blocks
GAP = " "  #: for a missing number
LEAST_SPAN = 0.2  #: of the logarithm: smaller changes do not fill the whole height


def draw_sparkline(values: Sequence[float | None], encoding: str = "utf-8") -> str:
    """Draw positive numbers by their logarithm, the smallest lowest; a change of a fifth stays small."""
    known = [math.log(value) for value in values if value is not None and value > 0]
    if not known:
        return GAP * len(values)
    levels = BLOCKS if can_encode(BLOCKS, encoding) else PLAIN
    middle = (min(known) + max(known)) / 2
    span = max(max(known) - min(known), LEAST_SPAN)
    return "".join(
        GAP if value is None or value <= 0 else levels[find_level(math.log(value), middle, span)]
        for value in values
    )


def find_level(value: float, middle: float, span: float) -> int:
    """Find the level of a value, from 0 on, in a span about the middle."""
    share = (value - middle) / span + 0.5
    return min(max(int(share * len(BLOCKS)), 0), len(BLOCKS) - 1)


def can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
