"""The references of a self-test: its own, taken with the idle library of delays, or those of an earlier one.

They lie where no other session reads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, parse_utc, plural
from postprocess.base.progress import Progress
from postprocess.calibration import ledger, update
from postprocess.extensions.selftest.measure.night import SelftestBench
from postprocess.model.case import Case
from postprocess.model.plan import PlannedLaunch, list_places, list_planned_cases
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.stats.sessions import SESSION_GAP


@dataclass(frozen=True)
class SelftestDemand:
    """What the user asked for beyond a session's request."""

    directory: Path
    plants: Sequence[str]
    times: int  #: nights with each plant
    unchanged: int  #: nights
    launches: int  #: of its own calibration
    seed: int | None = None
    sessions: int = 1  #: bursts of its own calibration
    #: Minutes over which the nights are spread; 0: one after the other, and bursts too
    spread: float = 0.0


def take_references(
    bench: SelftestBench, planned: Sequence[PlannedLaunch], demand: SelftestDemand
) -> str:
    """Give the bench references: its own, or those of an earlier self-test. Says where they are from.

    They are taken with the library of delays loaded and idle, as it is in every night.

    :raises UsageError: if those that were asked for by name are too few, or of launches without the library.
    """
    context, progress = bench.context, bench.context.progress
    if root := context.request.references:
        bench.catalog = load_catalog([root], list_places(planned))
        if has_enough_references(bench.catalog, planned, ENOUGH_LAUNCHES):
            return f"references in {root}, {describe_bursts(bench.catalog)}"
        raise UsageError(
            f"{root}: has not {ENOUGH_LAUNCHES} launches of each case with the idle library of delays; "
            "name the references of an earlier self-test, or leave --references out"
        )
    own = demand.directory / "references"
    bench.context = replace(context, request=replace(context.request, references=own))
    bench.catalog = load_catalog(bench.context.reference_roots, list_places(planned))
    if not has_enough_references(bench.catalog, planned, demand.launches):
        progress.say(
            f"calibrating with {plural(demand.launches, 'launch', 'es')} in "
            f"{plural(demand.sessions, 'burst')}, for this self-test only"
        )
        gap = 60 * max((each.session_gap_minutes for each in planned), default=0)
        calibrate_bench(bench, own, demand, gap)
        bench.catalog = load_catalog(bench.context.reference_roots, list_places(planned))
    return f"references of its own, {describe_bursts(bench.catalog)}"


def describe_bursts(catalog: ReferenceCatalog) -> str:
    """Describe of how many launches and sessions references are; of one burst they know no other hours.

    What counts is what a reference has in it: a launch of another build or a failed one is in none.
    """
    known = [each for some in catalog.sets.values() for each in some.references.values()]
    launches = plural(min((each.launches for each in known), default=0), "launch", "es")
    fewest = min((each.sessions for each in known), default=1)
    bursts = plural(fewest, "session") if fewest > 1 else "of one burst, which knows no other hours"
    return f"{launches}, {bursts}"


def has_enough_references(
    catalog: ReferenceCatalog, planned: Sequence[PlannedLaunch], launches: int
) -> bool:
    """Return whether each case has a reference of enough launches without options set by hand.

    In a shell whose variables steer an MPI, with the same ones.
    """
    cases = list_planned_cases(planned)
    found = [catalog.reference(case) for case in cases]
    many = all(each is not None and each.launches >= launches for each in found)
    return many and not any(
        has_other_settings(catalog, launch, case) for launch in planned for case in launch.all_cases
    )


def has_other_settings(catalog: ReferenceCatalog, launch: PlannedLaunch, case: Case) -> bool:
    """Return whether other options were set by hand for the launches behind a reference."""
    reference_set = catalog.find_set(case)
    return bool(reference_set and reference_set.options_of(case) != launch.by_hand)


def calibrate_bench(
    bench: SelftestBench, root: Path, demand: SelftestDemand, gap: float = SESSION_GAP
) -> None:
    """Measure references of the self-test's own, the library idle. Bursts that are there already count.

    Their launches are in a ledger in the self-test's own folder.

    :param gap: seconds between two bursts, if time is given
    """
    idle = bench.planting(())
    taken = ledger.read_ledger(demand.directory)
    done = len({each.session for each in taken})
    for burst in range(done, demand.sessions):
        if taken and demand.spread:
            last = max(parse_utc(each.ended_utc).timestamp() for each in taken)
            pause(last + gap + 1 - time.time(), "the next burst", bench.context.progress)
        launches = share_evenly(demand.launches, demand.sessions)[burst]
        with bench.context.progress.phase("calibration"):
            session, _, finished = bench.measure(bench.context, replace(idle, launches=launches))
        opened = ledger.CalibrationHeader(session.name, bench.libraries, shell=idle.shell)
        new = ledger.collect_launches(opened, session.directory, finished)
        ledger.append_launches(demand.directory, session.name, new)
        taken += new
    update.update_references(root, taken, None)


def share_evenly(number: int, parts: int) -> list[int]:
    """Divide a number evenly into parts, the larger ones first."""
    return [number // parts + (part < number % parts) for part in range(parts)]


def pause(seconds: float, until: str, progress: Progress) -> None:
    """Wait, and say for what; not if the time has passed already."""
    if seconds > 0:
        progress.say(f"a pause of {duration(seconds)} before {until}")
        time.sleep(seconds)
