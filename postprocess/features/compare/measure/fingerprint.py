"""The launches behind the fingerprint of each side: ping-pong at many sizes, both sides in turn."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from postprocess.base.errors import UsageError
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, OLD, CaseValue, LaunchValues, SharedCase
from postprocess.features.compare.differences.fingerprint import (
    SIZES,
    FingerprintLaunch,
    build_fingerprints,
    tell_fingerprint,
)
from postprocess.features.compare.measure.bench import MODE, ComparisonBench, is_exact
from postprocess.features.compare.measure.sides import select_side
from postprocess.model.measurement import CoreLatency
from postprocess.model.options import (
    BYTES,
    CACHE_STATE,
    PARTITION,
    PROCESSES,
    PROGRAM,
    ROUTINE,
    TIME_LIMIT,
    TRIAL_COUNT,
)
from postprocess.model.routines.mpicost import OWN_PROGRAM, WARM
from postprocess.model.session import Selection
from postprocess.session.lifecycle.context import measure_in_new_session
from postprocess.stats.placement import MOVED, locate_case

ROUNDS = 3  #: launches of each side; the median of three stands one that was disturbed
MOST_ROUNDS = 8  #: while the sides have too few launches whose ranks lay alike
ENOUGH = 2  #: of these
PAIR = 2  #: processes
KEPT = (PARTITION.variable, TRIAL_COUNT.variable, TIME_LIMIT)  #: of what the user chose


def take_fingerprints(bench: ComparisonBench) -> None:
    """Measure ping-pong of both sides, as far as the planned pairs leave time. What fails stops nothing."""
    progress = bench.context.progress
    rounds = range(1 if is_exact(bench.stored) else MOST_ROUNDS)
    done = {(fingerprint.number, fingerprint.side) for fingerprint in bench.stored.fingerprints}
    for number, name in [(n, side) for n in rounds for side in choose_order(n)]:
        if (number, name) in done:
            continue
        if number >= ROUNDS and has_enough(bench.stored.fingerprints):
            break
        if not has_time_beside_pairs(bench):
            progress.say("  no further launch for the fingerprint: the time is for the pairs")
            break
        try:
            with progress.phase("fingerprint"):
                take_fingerprint(bench, number, name)
        except UsageError as error:
            progress.note(f"fingerprint of the {name} side: {error}")
            break
    pairs = build_fingerprints(bench.stored.fingerprints)
    for pair in pairs:
        for what, old, new in tell_fingerprint(pair):
            progress.say(f"  {what}: {old} -> {new}")
    if not pairs and {fingerprint.side for fingerprint in bench.stored.fingerprints} == {OLD, NEW}:
        progress.say("  no fingerprint: no launches of both sides had their ranks on like cores")


def has_enough(launches: Sequence[FingerprintLaunch]) -> bool:
    """Return whether both sides have launches with their ranks on like cores, at each place."""
    places = {(launch.partition, launch.layout) for launch in launches}
    found = {(pair.partition, pair.layout): pair for pair in build_fingerprints(launches)}
    return all(
        place in found and min(found[place].old.launches, found[place].new.launches) >= ENOUGH
        for place in places
    )


def take_fingerprint(bench: ComparisonBench, number: int, name: str) -> None:
    """Launch ping-pong of a side once, and write down what it says.

    :raises UsageError: if it cannot be measured
    """
    context, side = bench.context, bench.side(name)
    selection = select_side(context, select_pingpong(bench.selection), side)
    begin = time.monotonic()
    context.progress.now(f"fingerprint, {name} side: {side.label}")
    session, _, record = measure_in_new_session(context.quiet, MODE, "running", selection)
    seconds = round(time.monotonic() - begin, 2)
    launches = bench.collect(side, session, record.finished)
    for launch in read_fingerprint_launches(name, number, session.name, seconds, launches):
        data.append_record(bench.path, launch)


def has_time_beside_pairs(bench: ComparisonBench) -> bool:
    """Return whether a launch of ping-pong fits beside all pairs that are planned."""
    stored = bench.stored
    if bench.header.seconds is None:
        return True
    once = sum(each.seconds for each in stored.passes if each.block == 0)
    left = bench.header.seconds - stored.seconds - once * stored.looks[-1]
    return left >= max((fingerprint.seconds for fingerprint in stored.fingerprints), default=once / 2)


def choose_order(number: int) -> tuple[str, str]:
    """Choose which side begins a round: each in its turn."""
    return (OLD, NEW) if number % 2 == 0 else (NEW, OLD)


def select_pingpong(selection: Selection) -> Selection:
    """Select ping-pong between two processes, at all sizes of the fingerprint, instead of what is measured."""
    choice = {name: value for name, value in selection.choice.items() if name in KEPT}
    choice |= {
        PROGRAM.variable: [OWN_PROGRAM],
        ROUTINE.variable: ["pingpong"],
        BYTES.variable: list(SIZES),
        PROCESSES.variable: [PAIR],
        CACHE_STATE.variable: WARM,
    }
    return replace(selection, choice=choice, launches=1)


def locate_launch(values: Iterable[CaseValue]) -> float | None:
    """Return the time from core to core of a whole launch, in seconds; None where nothing tells.

    :data:`~postprocess.stats.placement.MOVED` if a tenth of its times are of another place.
    """
    told = [each for said in values for each in said.core_latency or () if each]
    return locate_case(CoreLatency(*np.quantile(told, (0.1, 0.9)).tolist())) if told else None


def read_fingerprint_launches(
    side: str, number: int, session: str, seconds: float, launches: Sequence[LaunchValues]
) -> list[FingerprintLaunch]:
    """Read what launches of ping-pong say.

    :raises UsageError: if none has a value
    """
    found: list[FingerprintLaunch] = []
    for launch in launches:
        known = sorted(
            (SharedCase.from_key(key), said.value)
            for key, said in launch.cases.items()
            if said.value is not None
        )
        if known:
            case = known[0][0]
            sizes = tuple(each.bytes for each, _ in known)
            times = tuple(value for _, value in known)
            cores = locate_launch(launch.cases.values())
            moved = cores == MOVED
            found.append(
                FingerprintLaunch(
                    side=side,
                    number=number,
                    partition=case.partition,
                    layout=case.layout,
                    session=session,
                    seconds=0.0 if found else seconds,
                    sizes=sizes,
                    times=times,
                    core_latency=None if moved else cores,
                    moved=moved,
                )
            )
    if not found:
        reasons = [said.reason for values in launches for said in values.cases.values() if said.reason]
        raise UsageError(f"ping-pong has no value: {next(iter(reasons), 'no launch was planned')}")
    return found
