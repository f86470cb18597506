"""Whether this machine's clock goes with the sessions before: their order and ages rest on it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_utc
from postprocess.base.workdir import WorkDirectory
from postprocess.results.store import SUFFIX, list_sessions
from postprocess.session.lifecycle.interrupted import read_start

BACKWARDS = timedelta(minutes=2)  #: that a clock may be set back without a word
LONG = timedelta(days=365)  #: without a session


def describe_clock(work: WorkDirectory, now: datetime | None = None) -> Iterator[str]:
    """Describe, in a line, a clock that is behind a stored session, or far ahead of all of them.

    :param now: of the clock; None for this machine's
    """
    now = now or datetime.now(timezone.utc)
    begun = {}
    if not work.store.is_dir():
        return
    for path in list_sessions(work.store):
        try:
            begun[path] = parse_utc(read_start(path.with_name(path.name.removesuffix(SUFFIX))))
        except UsageError:
            continue
    if not begun:
        return
    last = max(begun, key=lambda path: (begun[path], path.name))
    when, today = (f"{each:%Y-%m-%d %H:%M} UTC" for each in (begun[last], now))
    if begun[last] > now + BACKWARDS:
        what = f"time went backwards: it is {today}, and a stored session began on {when}"
        fix = f"set the clock, or, if it was ahead then, remove {last}"
        yield f"{what}; until then drift, ages and histories leave such sessions out; {fix}"
    elif now - begun[last] > LONG:
        what = f"it is {today}, and the last stored session began on {when}"
        yield f"{what}; if the clock is wrong, set it and remove this session from the store"
