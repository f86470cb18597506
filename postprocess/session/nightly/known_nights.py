"""What the nights in the store tell of the noise, taken once for all of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from postprocess.judging.night_history import collect_night_spreads
from postprocess.model.plan import PlannedLaunch, list_planned_cases
from postprocess.references.night_spreads import FILE, write_night_spreads
from postprocess.results.store import StoreError
from postprocess.runner.reframe import ReframeDriver
from postprocess.session.lifecycle.context import SessionContext
from postprocess.stats.night_spread import NightSpread


def learn_night_spreads(
    context: SessionContext, reframe: ReframeDriver, planned: Sequence[PlannedLaunch]
) -> tuple[SessionContext, ReframeDriver]:
    """Return both with a file of what nights tell, in the session of this ReFrame; as they were if nothing."""
    told = find_night_spreads(context, planned)
    if not told:
        return context, reframe
    path = reframe.session / FILE
    write_night_spreads(path, told)
    return replace(context, nights=path), replace(reframe, nights=path)


def find_night_spreads(
    context: SessionContext, planned: Sequence[PlannedLaunch]
) -> dict[str, NightSpread]:
    """Find what nights tell of the spread of planned cases, by the key of a case.

    A damaged store is noted, and tells nothing. Then bands are as after the calibration alone.
    """
    if not context.work.store.is_dir():  # before the first night
        return {}
    try:
        return collect_night_spreads(context.work.store, list_planned_cases(planned))
    except StoreError as error:
        context.progress.note(f"nothing is known of how nights differ: {error}")
        return {}
