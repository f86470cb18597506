"""What is measured beside the pairs: facts that the MPI of each side tells, and the fingerprint of each.

A fingerprint is of ping-pong at many sizes, both sides in turn.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from postprocess.base.errors import UsageError
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, OLD, SIDES, CaseValue, ComparedSide, LaunchValues, SharedCase
from postprocess.features.compare.facts import (
    SIZES,
    FingerprintLaunch,
    SideFacts,
    build_fingerprints,
    read_facts,
    summarise_facts,
    tell_fingerprint,
)
from postprocess.features.compare.judge import list_fact_differences
from postprocess.features.compare.measure.bench import MODE, ComparisonBench
from postprocess.features.compare.measure.passes import find_own_case, select_side
from postprocess.judging.retest_targets import build_retest_choice
from postprocess.model import options
from postprocess.model.interposed import WITNESS
from postprocess.model.measurement import CoreLatency
from postprocess.model.routines.mpicost import OWN_PROGRAM, OWN_PROGRAMS, WARM
from postprocess.model.session import Selection
from postprocess.parsers.transports import VERBOSE, read_transports
from postprocess.session.lifecycle.context import (
    LOOKED_AT,
    SessionContext,
    measure_in_new_session,
    measure_in_session,
)
from postprocess.stats.launches import MOVED, locate_case
from site_configs.mpi.inventory import Inventory
from site_configs.mpi.layers import find_layer_library, find_other_library
from spack_envs.installation import find_mpicost_prefix

TOLD = "PLUMBLINE_FACTS"  #: names the file in which the witness tells them


def tell_facts(bench: ComparisonBench) -> None:
    """Let the MPI of each side tell of itself, and tell what differs. What cannot be told stops nothing."""
    progress = bench.context.progress
    stored = bench.stored
    for name in SIDES:
        # the case whose launch tells: of our own program if there is one, with the most processes
        case = max(
            stored.list_cases(name),
            key=lambda each: (each.program == OWN_PROGRAM, each.place.processes[0], -each.bytes),
            default=None,
        )
        if name in stored.told or case is None or stored.is_exact:
            continue
        with progress.phase("facts"):
            try:
                told = data.ReportedFacts(name, take_facts(bench, name, case))
            except UsageError as error:
                told = data.ReportedFacts(name, None, str(error))
                progress.note(f"facts of the {name} side: {error}")
        if told.facts:
            require_layer(bench.context.prepared.inventory, bench.header.sides[name], told.facts)
        data.append_record(bench.path, told)
    for line in summarise_facts(list_fact_differences(bench.stored)):
        progress.say(f"  {line}")


def require_layer(inventory: Inventory | None, side: ComparedSide, facts: SideFacts) -> None:
    """Refuse a side whose launch had not the library in memory that it is to have below its MPI.

    :raises UsageError: naming what it had instead
    """
    mpis = inventory.mpis if inventory else ()
    mpi = next((each for each in mpis if each.name == side.environment), None)
    wanted = find_layer_library(mpi) if mpi and mpi.layer else None
    if not mpi or not wanted or str(wanted) == mpi.mpicc:  # its own, wherever that is
        return
    if other := find_other_library((each.path for each in facts.objects), wanted):
        raise UsageError(f"{side.label}: ran on {other}, not on {wanted}; see the variables of your shell")


def take_facts(bench: ComparisonBench, name: str, case: SharedCase) -> SideFacts:
    """Launch a case of a side with the witness in front, and read what it tells; then once more, verbosely.

    :raises UsageError: if it tells nothing
    """
    context, side = bench.context, bench.header.sides[name]
    witness = find_mpicost_prefix(context.work.root, side.environment) / WITNESS
    if not witness.exists():
        raise UsageError(f"{witness}: is not there; simulated machines have none")
    chosen = select_side(context, bench.selection, replace(side, plant=""))
    again = build_retest_choice([find_own_case(case, side.environment)], {})
    chosen = replace(chosen, choice=chosen.choice | {options.AGAIN: again})
    own = dict(chosen.set_env.get(side.environment, {}))
    with TemporaryDirectory(prefix="facts-", dir=context.work.root) as scratch:
        told = {TOLD: str(path := Path(scratch, "facts.json"))}
        if case.program in OWN_PROGRAMS:  # the others have it in front anyway
            told["LD_PRELOAD"] = ":".join(filter(None, [str(witness), own.get("LD_PRELOAD", "")]))
        launch_unstored(context, replace(chosen, set_env={side.environment: own | told}))
        facts = read_facts(path)
    verbose = replace(chosen, verbose=VERBOSE)
    return replace(facts, transports=read_transports(launch_unstored(context, verbose)))


def launch_unstored(context: SessionContext, selection: Selection) -> str:
    """Launch what is selected, of which nothing is stored; return all that it printed."""
    session, reframe = context.open_session(MODE)
    (session.directory / LOOKED_AT).touch()
    measure_in_session(context.quiet, reframe, "running", selection)
    return reframe.read_job_outputs()


ROUNDS = 3  #: launches of each side; the median of three stands one that was disturbed
MOST_ROUNDS = 8  #: while the sides have too few launches whose ranks lay alike
ENOUGH = 2  #: of these
PAIR = 2  #: processes
#: Of what the user chose.
KEPT = (options.PARTITION.variable, options.TRIAL_COUNT.variable, options.TIME_LIMIT)


def take_fingerprints(bench: ComparisonBench) -> None:
    """Measure ping-pong of both sides, as far as the planned pairs leave time. What fails stops nothing."""
    progress = bench.context.progress
    rounds = range(1 if bench.stored.is_exact else MOST_ROUNDS)
    done = {(fingerprint.number, fingerprint.side) for fingerprint in bench.stored.fingerprints}
    in_turn = [(n, side) for n in rounds for side in (SIDES if n % 2 == 0 else reversed(SIDES))]
    for number, name in in_turn:
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
    context, side = bench.context, bench.header.sides[name]
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
    once = stored.block_seconds(0)
    left = bench.header.seconds - stored.seconds - once * stored.looks[-1]
    return left >= max((fingerprint.seconds for fingerprint in stored.fingerprints), default=once / 2)


def select_pingpong(selection: Selection) -> Selection:
    """Select ping-pong between two processes, at all sizes of the fingerprint, instead of what is measured."""
    choice = {name: value for name, value in selection.choice.items() if name in KEPT}
    choice |= {
        options.PROGRAM.variable: [OWN_PROGRAM],
        options.ROUTINE.variable: ["pingpong"],
        options.BYTES.variable: list(SIZES),
        options.PROCESSES.variable: [PAIR],
        options.CACHE_STATE.variable: WARM,
    }
    return replace(selection, choice=choice, launches=1)


def locate_launch(values: Iterable[CaseValue]) -> float | None:
    """Return the time from core to core of a whole launch, in seconds; None where nothing tells.

    :data:`~postprocess.stats.launches.MOVED` if a tenth of its times are of another place.
    """
    told = [value for said in values for value in said.core_latency or () if value]
    return locate_case(CoreLatency(*np.quantile(told, (0.1, 0.9)).tolist())) if told else None


def read_fingerprint_launches(
    side: str, number: int, session: str, seconds: float, launches: Sequence[LaunchValues]
) -> list[FingerprintLaunch]:
    """Read what launches of ping-pong say. Raises UsageError if none has a value."""
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
