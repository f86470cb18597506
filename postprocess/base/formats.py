"""Format numbers and sentences for people: units, sizes, durations, tables, wrapped lines."""

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Literal, TypeAlias

from postprocess.base import sanitize
from postprocess.base.errors import UsageError

Unit: TypeAlias = Literal["s", "MB/s", "x C"]
SECONDS: Unit = "s"
MEGABYTES: Unit = "MB/s"  #: 10**6 bytes per second, as OSU and IMB define it
RATIO: Unit = "x C"  #: times as long as in C
UNITS: dict[str, str] = {SECONDS: "lower", MEGABYTES: "higher", RATIO: "lower"}  #: unit -> the better direction


def parse_unit(text: str) -> Unit:
    """Return the unit with this spelling. Raises ValueError if it is not in :data:`UNITS`."""
    for unit in (SECONDS, MEGABYTES, RATIO):
        if text == unit:
            return unit
    raise ValueError(f"unit {text!r} is none of {', '.join(UNITS)}")


def find_better_direction(unit: str) -> str:
    """Return the direction in which values of a unit are better: ``lower`` or ``higher``.

    :raises ValueError: if the unit is not in :data:`UNITS`.
    """
    return UNITS[parse_unit(unit)]


def compute_slowdown(value: float, reference: float, unit: str) -> float:
    """Compute how many times as slow as its reference a value is: above 1 is worse, for times and rates alike.

    Both are positive and in ``unit``.
    """
    return value / reference if find_better_direction(unit) == "lower" else reference / value


WHOLE = re.compile(r"[0-9]{1,30}")
DECIMAL = re.compile(r"-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,4})?")


def parse_whole(text: str) -> int:
    """Parse a whole number of zero or more. Raises ValueError if the text is anything else."""
    if not WHOLE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a whole number in digits 0 to 9")
    return int(text)


def parse_decimal(text: str) -> float:
    """Parse a finite number, with or without a point. Raises ValueError if the text is anything else."""
    if not DECIMAL.fullmatch(text) or not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]!r} is not a number such as 2.5")
    return value


DASH = "-"  #: replaces a missing number
ALIKE = 1e-9  #: relative difference below which two values count as equal
#: By unit: the factor to the unit that people read, and the name of that unit.
SHOWN: dict[str, tuple[float, str]] = {SECONDS: (1e6, "us"), MEGABYTES: (1.0, "MB/s"), RATIO: (1.0, "x C")}


def number(value: float | None, unit: str) -> str:
    """Format a value to about three digits in the unit that people read, without its name: ``6.38``."""
    if value is None:
        return DASH
    shown = value * SHOWN[unit][0]
    if not math.isfinite(shown):
        return str(shown)
    if abs(shown) < 1:
        return f"{shown:.3f}"
    if abs(shown) < 10:
        return f"{shown:.2f}"
    if abs(shown) < 1000:
        return f"{shown:.1f}"
    return f"{shown:.0f}" if abs(shown) < 1e7 else f"{shown:.2e}"


def quantity(value: float | None, unit: str) -> str:
    """Format a value with its unit: ``6.38 us``, ``1234 MB/s``."""
    return DASH if value is None else f"{number(value, unit)} {SHOWN[unit][1]}"


def format_band(limits: tuple[float, float] | None, unit: str) -> str:
    """Format a band, with the smaller limit first: ``4.10 to 7.83``."""
    return f"{number(limits[0], unit)} to {number(limits[1], unit)}" if limits else DASH


def factor(times: float | None) -> str:
    """Format a factor with two decimals, or two digits below 0.1: ``2.31``, ``0.0046``."""
    if times is None:
        return DASH
    return f"{times:.2f}" if times >= 0.1 else f"{times:.2g}"


def format_comparison(value: float, reference: float, unit: str) -> str:
    """Format how a value compares with its reference, in any unit: ``2.31 times as slow as``."""
    return f"{format_slowdown(compute_slowdown(value, reference, unit))} as"


def format_slowdown(times: float) -> str:
    """Format how many times as slow something is: ``2.31 times as slow``, and 0.8 as ``1.25 times as fast``."""
    most = max(times, 1 / times)
    if most - 1 < ALIKE:
        return "as fast"
    shown = format_significant(most, 3)
    if shown == "1":  # simulated times can differ by even less
        shown = f"{1 + float(f'{most - 1:.1g}'):.12g}"
    return f"{shown} times as {'slow' if times > 1 else 'fast'}"


def format_slower(times: float) -> str:
    """Format how much slower something is: ``12% slower`` below a factor of two, then as a factor."""
    return f"{format_percent(times - 1)} slower" if times < 2 else format_slowdown(times)


def format_percent(fraction: float | None, nothing: str = DASH) -> str:
    """Format a fraction as a percentage, up to a factor of ten: ``7.3%``, ``35%``, ``more than 1000%``."""
    if fraction is None:
        return nothing
    if fraction > 10:
        return "more than 1000%"
    return f"{fraction:.1%}" if fraction < 0.1 else f"{fraction:.0%}"


def format_signed(fraction: float | None) -> str:
    """Format a change as a percentage with its sign: ``+9.8%``."""
    return DASH if fraction is None else f"{fraction:+.1%}".replace("-0.0%", "+0.0%")


def microseconds(seconds: float | None) -> str:
    """Format seconds as microseconds, to about three digits: ``6.38``, ``1234``."""
    return number(seconds, SECONDS)


def format_significant(value: float, digits: int = 4) -> str:
    """Format a number to ``digits`` significant digits, large ones in full: ``0.5065``, ``24960``."""
    shown = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in shown and abs(value) < 1e15 else shown


def ratio(value: float | None, reference: float | None) -> str:
    """Format value over reference: ``2.31``."""
    return DASH if value is None or not reference else factor(value / reference)


def format_whole(count: int) -> str:
    """Format a count: ``999``, ``1,204``."""
    return f"{count:,}"


def size(count: int) -> str:
    """Format a number of bytes exactly and briefly: ``1.25 MB``, ``64 KiB``, ``1023 B``."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor and count % (factor // 100) == 0:
            # integers, because a quotient of floats is not exact
            hundredths = count // (factor // 100)
            shown = f"{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")
            return f"{shown} {unit}"
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= factor and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} B"


def binary_size(count: int) -> str:
    """Format the size of a cache in binary units: ``48 KiB``, ``32 MiB``."""
    return f"{count / 2**20:.4g} MiB" if count >= 2**20 else f"{count / 2**10:.4g} KiB"


def duration(seconds: float) -> str:
    """Format a duration: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def plural(count: int, noun: str, ending: str = "s") -> str:
    """Format a count with its noun: ``1 case``, ``1,204 cases``."""
    return f"{count} {noun}" if count == 1 else f"{format_whole(count)} {noun}{ending}"


def first_of(names: Sequence[str], most: int | None) -> str:
    """Join the first few names and count the rest: ``a, b, c and 2 more``. With None, join all."""
    shown = names[:most]
    left = len(names) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def align_rows(rows: Sequence[Sequence[str]], texts: int, between: str = "  ") -> list[str]:
    """Align columns: the first ``texts`` columns to the left, the others, which hold numbers, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        between.join(
            cell.ljust(width) if column < texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


PIPE_COLUMNS = 80  #: width of sentences in a pipe
INDENT = "  "  #: before all lines of a sentence but the first
#: A command in a sentence with what belongs to it: options, each with the word that may be its value, and
#: words that no sentence has, such as paths, versions and sessions.
COMMAND = re.compile(
    r"\./plumbline( (references|site|offer|mirror|dossier))? \S+"
    r"( --?[a-z][a-z-]*(=\S+| ('[^']*'|[^\s-]\S*))?| [^\s-]*[/@:=\d]\S*)*"
)

#: Between a number and its unit, which no line separates.
BEFORE_UNIT = re.compile(r"(?<=\d) (?=([mu]?s|min|h|[kMG]i?B|B)\b)")


def wrap(text: str, width: int, label: str = "", command: str = "", indent: str = INDENT) -> list[str]:
    """Wrap a sentence behind its label, with a hanging indent. Words longer than a line stay whole.

    :param command: ends the sentence, on a line of its own unless it fits on the last one
    """
    lines = textwrap.wrap(
        BEFORE_UNIT.sub("\xa0", COMMAND.sub(lambda found: found.group().replace(" ", "\xa0"), text)),
        max(width, 2 * len(indent)),
        initial_indent=label,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = [line.replace("\xa0", " ") for line in lines] or [label.rstrip()]
    if not command:
        return lines
    last = f"{lines[-1]}: {command}"
    return [*lines[:-1], last] if len(last) <= width else [*lines[:-1], f"{lines[-1]}:", f"{indent}{command}"]


def wrap_all(sentences: Iterable[str], indent: str = "", command: str = "") -> list[str]:
    """Wrap several sentences for a pipe. Each keeps the blanks in front of it, behind ``indent``.

    :param command: that each of them ends with
    """
    lines: list[str] = []
    for plain in map(sanitize.sanitize_line, sentences):
        text = plain.lstrip(" ")
        own = indent + " " * (len(plain) - len(text))
        lines += wrap(text, PIPE_COLUMNS, own, sanitize.sanitize_line(command), own + INDENT)
    return lines


DATE_FORMAT = "%Y-%m-%dT%H:%M:%SZ"  #: format of all dates, which are in UTC
#: The same as a pattern: Python's parser accepts other forms too.
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def utc_now() -> str:
    """Return the current time in :data:`DATE_FORMAT`."""
    return datetime.now(timezone.utc).strftime(DATE_FORMAT)


def parse_utc(text: str) -> datetime:
    """Parse a date in :data:`DATE_FORMAT`. Raises ValueError, worded for users, if it is not one."""
    try:
        if not DATE.fullmatch(text):
            raise ValueError
        return datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not as 2026-11-21T09:00:00Z") from None


def parse_day(text: str) -> date:
    """Parse a day, ``YYYY-MM-DD``. Raises ValueError, worded for users, if it is not one."""
    try:
        if not DAY.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not a day such as 2027-03-31") from None


def parse_since(since: str) -> datetime:
    """Parse a time as in session records, or a day. Raises UsageError if it is neither."""
    for parse in (parse_utc, parse_day):
        try:
            moment = parse(since)
        except ValueError:
            continue
        return datetime(*moment.timetuple()[:6])
    raise UsageError(f"{since!r} is not a date; write it as 2026-11-21 or 2026-11-21T01:30:00Z")


MISSING = "missing"  #: planned or expected, but not measured
NOT_PRINTED = "-"  #: the papers print no such value


@dataclass(frozen=True)
class TextTable:
    """Rows of text. The first cells of a row, one per label, say what the row is about."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]  #: headings of the numbers
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    about: tuple[tuple[str, str], ...] = ()  #: what all rows have in common; the title says it in words


def render_text(table: TextTable) -> str:
    """Format a table as aligned lines of any length, so that ``grep`` and a pager see whole rows."""
    head = (*table.labels, *table.columns)
    rows = [tuple(map(sanitize.sanitize_line, row)) for row in (head, *table.rows)]
    lines = [sanitize.sanitize_line(table.title)]
    lines += [f"  {line}" for line in align_rows(rows, len(table.labels), between="   ")]
    lines += [f"  {sanitize.sanitize_line(note)}" for note in table.notes]
    return "".join(f"{line}\n" for line in lines)


def render_narrow_text(table: TextTable, width: int = PIPE_COLUMNS) -> str:
    """Format a table as :func:`render_text` does, or as a paragraph per row if it is wider than ``width``."""
    text = render_text(table)
    if max(map(len, text.splitlines()), default=0) <= width:
        return text
    paragraphs = [("", table.title)]
    heads = (*table.labels[1:], *table.columns)
    for name, *cells in table.rows:
        pairs = [f"{head} {cell}".strip() for head, cell in zip(heads, cells, strict=True) if cell != DASH]
        paragraphs += [(INDENT, name), (2 * INDENT, ", ".join(pairs))]
    paragraphs += [(INDENT, note) for note in table.notes]
    wrapped = (wrap(sanitize.sanitize_line(text), width, by, indent=by) for by, text in paragraphs if text)
    return "".join(f"{line}\n" for lines in wrapped for line in lines)


def render_markdown_table(table: TextTable) -> str:
    """Format a table in Markdown without its title, with its notes below."""
    rule = ["---"] * len(table.labels) + ["---:"] * len(table.columns)
    head, *rows = (
        f"| {' | '.join(map(sanitize.escape_markdown, row))} |"
        for row in ((*table.labels, *table.columns), *table.rows)
    )
    notes = [f"{sanitize.escape_markdown(note)}\n" for note in table.notes]
    return "\n".join([head, f"|{'|'.join(rule)}|", *rows, "", *notes])


def natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts n2 before n10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
