"""Questions over many sessions: the one place that answers them, from the store alone and without its trials.

``headlines`` is the history of one case (``keys=[key]``), a year of context for a night (``since=``) and the
input of the search for drift (all cases, few ``columns``). ``headline_index`` says how it stays fast, and how
it is known that what is answered is undamaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import polars as pl

from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_day, parse_utc
from postprocess.results.index import COLUMNS, NO_MONTH, ORDER, IndexMonth, Say, index_schema, scan_months
from postprocess.results.index import list_index_months as months_of

#: Modes of sessions that are nights. What calibrates or confirms is none, nor is a trial by hand (``run``):
#: five in an hour would outvote a week, and one with other references would begin the history anew.
NIGHTS = ("nightly",)
#: Modes of sessions whose values decide on what is suspect: nights, and what measures it again
JUDGING = (*NIGHTS, "confirm")
#: that a session's clock may have been; one from beyond is of a wrong clock
AHEAD = timedelta(days=1)


def read_headlines(
    directory: Path,
    *,
    keys: Sequence[str] | None = None,
    since: str | None = None,
    modes: Sequence[str] | None = NIGHTS,
    columns: Sequence[str] | None = None,
    say: Say | None = None,
) -> pl.DataFrame:
    """Read a row for each case and launch, without trials, sorted by key, started_utc, session and launch.

    ``keys``: only these cases. ``since``: only sessions that started at this time or later, UTC, as in
    ``2026-11-21`` or ``2026-11-21T01:30:00Z``. ``modes``: only sessions of these modes, nights unless
    told otherwise, None for all. Files of version 1 do not tell whether they are nights or calibrations, and
    are left out unless ``modes`` has the empty word too: a calibration taken for a night would be an alarm.
    A session of the future, of a clock that was wrong, is left out: it would be the last one for years.
    ``columns``: those wanted, of ``COLUMNS`` of ``headline_index``; the fewer, the less memory. ``say``: told
    what takes long. Values are in ``unit`` of their row.

    :raises StoreError: naming the first file that is damaged, foreign or newer than this version; also if it
        would not be part of the answer, unless it is of another month than is asked for.
    :raises UsageError: if ``since`` is no time.
    """
    chosen = list(columns) if columns is not None else COLUMNS
    begin = parse_since(since) if since is not None else None
    needed = list(dict.fromkeys([*ORDER, *chosen]))
    wanted = build_filter(keys, begin, modes)
    frames = [index_schema().to_frame().select(needed)]
    for lazy in scan_months(select_months(months_of(directory), begin), say):
        frames.append(lazy.filter(wanted).select(needed).collect())
    return sort_rows(pl.concat(frames)).select(chosen)


def parse_since(since: str) -> datetime:
    """Parse a time of the form that sessions have, or a day.

    :raises UsageError: if it is neither.
    """
    for parse in (parse_utc, parse_day):
        try:
            found = parse(since)
        except ValueError:
            continue
        return datetime(*found.timetuple()[:6])
    raise UsageError(f"{since!r} is not a date; write it as 2026-11-21 or 2026-11-21T01:30:00Z")


def select_months(found: Sequence[IndexMonth], begin: datetime | None) -> list[IndexMonth]:
    """Select the months that can have sessions from a time on; a session is named just before it starts."""
    if begin is None:
        return list(found)
    before = begin - timedelta(days=1) if begin.date() > date.min else begin
    first = f"{before.year:04}{before.month:02}"
    return [month for month in found if month.name == NO_MONTH or month.name >= first]


def build_filter(keys: Sequence[str] | None, begin: datetime | None, modes: Sequence[str] | None) -> pl.Expr:
    """Build the condition that rows must meet."""
    latest = datetime.now(timezone.utc) + AHEAD
    wanted = pl.col("started_utc") < f"{latest:%Y-%m-%dT%H:%M:%SZ}"
    if keys is not None:
        wanted = pl.col("key").is_in(list(keys))
        if keys:  # what a reader can skip whole groups of rows by
            wanted &= pl.col("key").is_between(pl.lit(min(keys)), pl.lit(max(keys)))
    if begin is not None:
        wanted &= pl.col("started_utc") >= f"{begin.isoformat()}Z"
    if modes is not None:
        wanted &= pl.col("mode").is_in(list(modes))
    return wanted


def sort_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort rows. Numbers in the order of the keys sort in a tenth of the time that keys do."""
    ranks = pl.Enum(frame["key"].unique().sort())
    return frame.sort(pl.col("key").cast(ranks), *ORDER[1:])
