"""What the last lines of a night say of drift."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from postprocess import drift_words as words
from postprocess.drift import ENOUGH_NIGHTS, Trend, examine
from postprocess.drift_clusters import clusters
from postprocess.drift_series import day_before, read_nights
from postprocess.errors import UsageError
from postprocess.harmless import one_line
from postprocess.store import stored

DAYS = 60  #: that are looked at: a night can spare a second or two


def drift_note(store: Path) -> str:
    """What the last lines of a night say of drift: one line, empty if there is nothing to say.

    Looks at ``DAYS`` days, once there are nights enough. A store that cannot be read is told, and
    does not end the night.
    """
    try:
        if len(stored(store)) < ENOUGH_NIGHTS:
            return ""
        trends = examine(read_nights(store, day_before(DAYS)))
    except UsageError as error:
        return one_line(f"drift: not looked for: {error}")
    return noted(trends)


def noted(trends: Sequence[Trend]) -> str:
    """The line, of what became slower only."""
    found = [each for each in clusters(trends) if each.slow]
    if not found:
        return ""
    worst = max(found, key=lambda each: each.worst.finding.size).worst
    return (
        f"drift: {words.headline(found)}, by {words.percent(worst.finding.size)} at worst "
        f"({worst.trend.nights.case.key}): ./plumbline drift"
    )
