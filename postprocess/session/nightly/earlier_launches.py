"""Which launches of earlier calibrations count beside those of now, as far as is known before any launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from postprocess.base.formats import plural
from postprocess.calibration.ledger import CalibrationHeader, CalibrationLaunch, read_ledger
from postprocess.calibration.losses import family_of
from postprocess.calibration.samples import ConditionsNow, Now, count_outdated
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Selection
from postprocess.references.comparability import name_fact
from postprocess.session.lifecycle.context import SessionContext


def read_comparable_launches(work: Path, selection: Selection) -> list[CalibrationLaunch]:
    """Read the launches of the ledger that had the same options set by hand."""
    chosen = selection
    asked = CalibrationHeader("", chosen.set_env, chosen.oversubscribe, shell=chosen.shell)
    return [
        launch
        for launch in read_ledger(work)
        if launch.by_hand == asked.by_hand(launch.place.environment, launch.exact)
    ]


def find_conditions_now(context: SessionContext) -> Now:
    """Find how launches run now, by the starts that proved by which transports they talk."""
    return {
        place: ConditionsNow(
            run.launch.program,
            run.conditions,
            {
                pairs: tuple(map(str, paths))
                for (*where, pairs), paths in context.heard.items()
                if tuple(where) == place and paths
            },
        )
        for place, run in context.proven.items()
    }


def describe_outdated(context: SessionContext, planned: Iterable[PlannedLaunch], now: Now) -> Iterator[str]:
    """Describe how many earlier launches of a plan ran otherwise than launches run now, and do not count."""
    families = {family_of(launch) for launch in planned}
    launches = read_comparable_launches(context.work.root, context.request.selection)
    for each in count_outdated(launches, now):
        family = f"{each.place.system}:{each.place.partition}", each.place.environment, each.program
        if family in families:
            count = plural(each.launches, "earlier launch", "es")
            verb = "does" if each.launches == 1 else "do"
            differing = ", ".join(map(name_fact, each.differing))
            yield f"{', '.join(family)}: {count} {verb} not count: another {differing}"
