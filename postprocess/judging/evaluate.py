"""Judge each planned case: its value against its reference, and the launches that failed."""

import math
import shlex
import statistics
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from postprocess.base.formats import compute_slowdown, format_comparison, plural, quantity
from postprocess.base.grouping import group_pairs
from postprocess.model.case import Case
from postprocess.model.conditions import is_bound
from postprocess.model.launch import FinishedLaunch
from postprocess.model.measurement import Measurement, TrialSummary
from postprocess.model.options import (
    BYTES,
    CHOOSING,
    ITERATION_COUNT,
    OPTIONS,
    PARTITION,
    PEERS,
    PER_NODE,
    ROUND_COUNT,
    TRIAL_COUNT,
    SelectionOption,
)
from postprocess.model.plan import PlannedLaunch
from postprocess.model.reference import MOST_SESSIONS, Reference
from postprocess.model.session import LOCAL, list_site_words
from postprocess.model.verdict import FAILED_LAUNCH, JUDGED, LOOKED_SLOW, CaseResult, Verdict, describe_unjudged
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from postprocess.references.comparability import Incomparability
from postprocess.stats.band import Band, compute_band, is_blind
from postprocess.stats.detection import (
    BLIND,
    LONGEST_RUN,
    add_q_values,
    compute_detectable_slowdown,
    compute_scatter,
)
from postprocess.stats.launches import MOVED, limit_slowdown, locate_case
from postprocess.stats.sessions import assume_sessions

SOON = 3  #: sessions, tonight's included, within which a slowdown is to be found


def judge_case(
    case: Case, measured: Measurement, reference: Reference | None, resolution: float = 0.0, median_of: int = 1
) -> CaseResult:
    """Compare a value, of one launch or the median of several, with the band of its reference.

    A value inside its band whose headline is outside the headline's band is slow as well: a few of its trials
    are. ``resolution`` (of the timer, or of what is printed) is in the unit of the value; how far it widens the
    band has a bound (:data:`postprocess.stats.band.COARSEST_CLOCK`). A limit itself is inside the band. The
    caller adds the command that reruns the case.
    """
    value, unit = measured.value, measured.unit
    result = CaseResult(
        case,
        Verdict.INCORRECT,
        f"{value} {unit} is not a result of a measurement",
        unit=unit,
        summary=measured.summary,
        figures=measured.figures,
    )
    if not (math.isfinite(value) and value > 0):
        return result
    result = replace(result, value=value, launches=median_of, headline=measured.headline)
    if reference is None:
        reason = "no reference for this case; run ./plumbline calibrate"
        return replace(result, verdict=Verdict.NO_REFERENCE, reason=reason)
    if difference := _difference(case, unit, reference):
        outdated = "is of another unit or case"
        return replace(result, verdict=Verdict.NOT_COMPARABLE, reason=difference, outdated=outdated)
    limits = compute_band(reference, resolution, median_of)
    scatter = compute_scatter(reference, median_of)
    learned = assume_sessions(reference, max(MOST_SESSIONS - reference.sessions, 0))
    detectable, soon, later = (
        compute_detectable_slowdown(basis, median_of, sessions, resolution)
        for basis, sessions in ((reference, 1), (reference, SOON), (learned, LONGEST_RUN))
    )
    blind = detectable is None or detectable > BLIND
    verdict, reason = _against(value, reference, limits, median_of, detectable)
    result = replace(
        result,
        verdict=verdict,
        reason=reason,
        reference=reference.center,
        band=(limits.lower, limits.upper),
        reference_launches=reference.launches,
        core_latency=reference.core_latency,
        provisional=blind or reference.few_sessions,
        detectable=detectable,
        detectable_soon=soon,
        detectable_learned=later,
        spread=scatter.deviation if scatter and not reference.exact else None,
        degrees=scatter.degrees if scatter and not reference.exact else None,
    )
    if reference.headline is None or measured.headline is None:
        return result
    return judge_headline(result, measured, reference.headline, resolution)


def judge_headline(
    result: CaseResult, measured: Measurement, reference: Reference, resolution: float
) -> CaseResult:
    """Compare the headline of a judged value with the limit of headlines."""
    limits = compute_band(reference, resolution, result.launches)
    result = replace(result, headline_reference=reference.center, headline_limit=limits.slow_limit)
    if result.verdict not in JUDGED - LOOKED_SLOW:
        return result
    if limits.blind or not result.slow_headline or measured.headline is None:
        return result
    compared = format_comparison(measured.headline, reference.center, result.unit)
    mean = f"{quantity(measured.headline, result.unit)} in the mean of the trials is {compared}"
    center, limit = (quantity(edge, result.unit) for edge in (reference.center, limits.slow_limit))
    comparison = f"{mean} its reference {center}, beyond the limit {limit}; its fast trials are unchanged"
    reason = f"{_count_slow_trials(measured.summary)}: {comparison}"
    return replace(result, verdict=Verdict.REGRESSED, reason=reason, by_headline=True)


def _count_slow_trials(summary: TrialSummary | None) -> str:
    """Describe how many trials of a launch are slow, as its filter counts them."""
    if summary is None or not summary.candidates:
        return "some trials are slow"
    return f"{summary.candidates} of {summary.kept + summary.removed} trials are above 1.8 medians"


def _difference(case: Case, unit: str, reference: Reference) -> str:
    """Return why the reference is of another case or unit, in one line; empty if it is of this case."""
    for field in fields(Case):
        ours, theirs = getattr(case, field.name), getattr(reference.case, field.name)
        if ours != theirs:
            return f"{field.name} is {ours} and the reference is of {theirs}"
    if reference.unit != unit:
        return f"the unit of the reference is {reference.unit!r}, not {unit}"
    return ""


def _against(
    value: float, reference: Reference, limits: Band, median_of: int, detectable: float | None
) -> tuple[Verdict, str]:
    unit = reference.unit
    launches = plural(reference.launches, "launch", "es")
    source = f"its reference {quantity(reference.center, unit)} of {launches}"
    middle = f", the median of {median_of} launches," if median_of > 1 else ""
    compared = format_comparison(value, reference.center, unit)
    change = f"{quantity(value, unit)}{middle} is {compared} {source}"
    where, limit = ("above", limits.upper) if value > limits.upper else ("below", limits.lower)
    outside = f"{change}, {where} the limit {quantity(limit, unit)}"
    if detectable is None:
        return Verdict.PROVISIONAL, "a single launch does not show how launches differ"
    if limits.too_slow(value):
        return Verdict.REGRESSED, outside
    if limits.too_fast(value):
        return Verdict.FAST, outside
    if detectable > BLIND:
        return (Verdict.PROVISIONAL, f"one night sees only what is {1 + detectable:.1f} times as slow")
    return Verdict.PASS, ""


def format_rerun_command(launch: PlannedLaunch, case: Case, site: str, options: Sequence[str] = ()) -> str:
    """Format the command that measures just this case again, with the same further options."""
    words = ["./plumbline", "run", *list_site_words(site)]
    words += [PARTITION.flag, case.partition] if site != LOCAL else []
    words += ["--environment", case.environment]
    sized = any(benchmark.sizes is None for benchmark in launch.benchmarks if benchmark.routine == case.routine)
    # or what a run without the option measures
    implied: dict[SelectionOption, str | int | None] = {PARTITION: case.partition}
    implied |= {PER_NODE: case.processes, PEERS: 0, BYTES: None if sized else 0}
    for option in CHOOSING:
        value = option.value_of(case)
        words += [option.flag, str(value)] if option.several and value != implied.get(option) else []
    for flag, (value, usual) in list_conditions(launch, case).items():
        words += [flag, value] if site != "local" or value != usual else []
    others = [word for word in options if word.startswith("--set-env=")]
    of_environment = [word for word in others if word.startswith(f"--set-env={case.environment}:")]
    return shlex.join([*words, *(word for word in options if word not in others), *of_environment])


def list_conditions(launch: PlannedLaunch, case: Case) -> dict[str, tuple[str, str]]:
    """List the options that set the conditions of a case, each with its value and its default.

    A site may have defaults of its own.
    """
    counts = {
        TRIAL_COUNT: launch.trials,
        ROUND_COUNT: launch.rounds,
        ITERATION_COUNT: launch.method.get(ITERATION_COUNT.variable, launch.trials),
    }
    return {
        option.flag: (
            str(option.value_of(case) if option.part else counts[option]),
            str(option.usual[case.program]),
        )
        for option in OPTIONS
        if case.program in option.usual
    }


def evaluate_launches(
    finished: Sequence[FinishedLaunch],
    catalog: ReferenceCatalog,
    site: str,
    options: Sequence[str] = (),
    calibrating: bool = False,
) -> list[CaseResult]:
    """Return one result for every planned case, whatever happened to its launches.

    :param calibrating: whether these launches made references; see :func:`evaluate_case`
    """
    launches = group_pairs((case, run) for run in finished for case in run.launch.cases)
    results = [
        replace(
            evaluate_safely(case, launches[case], catalog, calibrating),
            rerun=format_rerun_command(launches[case][0].launch, case, site, options),
        )
        for case in launches
    ]
    return sorted(add_q_values(results) + list_skipped(finished, catalog), key=lambda result: result.case)


def list_skipped(finished: Sequence[FinishedLaunch], catalog: ReferenceCatalog) -> list[CaseResult]:
    """List the cases that were deliberately not run, each once, with the reason."""
    skips = {skip.case: skip for run in finished for skip in run.launch.skips}
    return [
        evaluate_without_program(case, skip.reason, catalog)
        if skip.unavailable
        else CaseResult(case, Verdict.SKIPPED, skip.reason)
        for case, skip in skips.items()
    ]


def evaluate_without_program(case: Case, reason: str, catalog: ReferenceCatalog) -> CaseResult:
    """Evaluate a case whose program is missing: ``incomplete`` if it has a reference, else ``skipped``."""
    if catalog.reference(case) is None:
        return CaseResult(case, Verdict.SKIPPED, reason)
    return CaseResult(case, Verdict.INCOMPLETE, f"{reason}; it has a reference, and is missing now")


def evaluate_safely(
    case: Case, launches: Sequence[FinishedLaunch], catalog: ReferenceCatalog, calibrating: bool = False
) -> CaseResult:
    """Evaluate one case as :func:`evaluate_case` does; if that raises, it is ``incorrect``, with the reason.

    Everything has been measured by then: a fault here must not lose it, nor the verdicts of other cases.
    """
    try:
        return evaluate_case(case, launches, catalog, calibrating)
    except Exception as error:
        return CaseResult(case, Verdict.INCORRECT, describe_unjudged(error))


def evaluate_case(
    case: Case, launches: Sequence[FinishedLaunch], catalog: ReferenceCatalog, calibrating: bool = False
) -> CaseResult:
    """Evaluate one case. A failed launch decides; otherwise the median is judged.

    :param calibrating: whether these very launches made the reference, which therefore judges none of them
    """
    failures = [failure for run in launches if (failure := run.failure(case))]
    for verdict in FAILED_LAUNCH:
        for failed in failures:
            if failed.verdict == verdict:
                return CaseResult(case, verdict, failed.reason)
    if left_out := [run for run in launches if run.outcome.verdict == Verdict.SKIPPED]:
        return evaluate_without_program(case, left_out[0].outcome.reason, catalog)
    measured = [(measurement, run) for run in launches if (measurement := run.measurements.get(case.variable))]
    if len(measured) != len(launches):
        return CaseResult(case, Verdict.INCOMPLETE, "no value in a launch that ended well")
    if any(measurement.unseen for measurement, _ in measured):
        return CaseResult(case, Verdict.INCOMPLETE, "printed as 0.00: below the printed resolution")
    alike = select_alike(case, measured, catalog)
    counted = alike or measured
    middle, launch = select_median_launch(counted)
    middle = take_medians(middle, [measurement for measurement, _ in counted])
    reference_set = catalog.find_set(case) if catalog.reference(case) else None
    differences = (
        (find_incomparability(run, case, reference_set) for _, run in measured) if reference_set else ()
    )
    difference = next(filter(None, differences), None)
    unjudged = CaseResult(
        case,
        Verdict.NOT_COMPARABLE,
        difference.reason if difference else "",
        value=middle.value,
        unit=middle.unit,
        launches=len(measured),
        summary=middle.summary,
        figures=middle.figures,
        headline=middle.headline,
        outdated=difference.outdated if difference else "",
    )
    if difference:
        return show_reference(unjudged, catalog.reference(case, locate_case(middle.core_latency)))
    if not alike and reference_set:
        row = reference_set.references[case]
        bound = all(is_bound(run.run) for _, run in measured)
        return judge_elsewhere(unjudged, middle, row, reference_set.shifting, bound)
    if calibrating:
        return tell_calibrated(unjudged, made=reference_set is not None)
    result = judge_measurement(case, middle, launch, catalog, len(alike))
    return check_reframe_agrees(result, measured, catalog)


def tell_calibrated(result: CaseResult, made: bool) -> CaseResult:
    """Return the result of a case whose launches were to make its reference, and whether one was ``made``."""
    if not made:
        return replace(result, verdict=Verdict.NO_REFERENCE, reason="its launches made no reference")
    reason = "measured for its reference, and judged by none"
    return replace(result, verdict=Verdict.PROVISIONAL, reason=reason, provisional=True)


def show_reference(result: CaseResult, reference: Reference | None) -> CaseResult:
    """Show the reference beside a value that it does not judge, unless it has another unit."""
    if reference is None or reference.unit != result.unit:
        return result
    return replace(result, reference=reference.center)


def judge_measurement(
    case: Case, measured: Measurement, launch: FinishedLaunch, catalog: ReferenceCatalog, median_of: int = 1
) -> CaseResult:
    """Judge a value, with the resolution of its launch."""
    records = launch.outcome.records
    resolution = records.resolution(measured.unit) if records else 0.0
    reference = catalog.reference(case, locate_case(measured.core_latency))
    return judge_case(case, measured, reference, resolution, median_of)


def select_alike(
    case: Case, measured: Sequence[tuple[Measurement, FinishedLaunch]], catalog: ReferenceCatalog
) -> list[tuple[Measurement, FinishedLaunch]]:
    """Select the launches that are judged together: the largest group with one reference.

    Launches whose ranks lay elsewhere have another reference, or none. Empty if there are references, but none
    for where these launches lay.
    """
    if catalog.reference(case) is None:
        return list(measured)
    groups = group_pairs(
        (id(reference), (measurement, launch))
        for measurement, launch in measured
        if (reference := catalog.reference(case, locate_case(measurement.core_latency)))
    )
    return max(groups.values(), key=len, default=[])


def take_medians(middle: Measurement, some: Sequence[Measurement]) -> Measurement:
    """Return the median launch with the medians of all values and of all headlines."""
    headlines = [measurement.headline for measurement in some if measurement.headline is not None]
    headline = statistics.median(headlines) if len(headlines) == len(some) else None
    value = statistics.median(measurement.value for measurement in some)
    return replace(middle, value=value, headline=headline)


def judge_elsewhere(
    result: CaseResult, measured: Measurement, row: Reference, shifting: bool = False, bound: bool = False
) -> CaseResult:
    """Judge a value of launches whose ranks lay where those of no reference did.

    If even its best trial is slower than placement can explain, it is not comparable, unless the scatter of the
    reference's launches is unknown. Otherwise it is provisional if its ranks were moved meanwhile, or if the
    machine moves ranks anyway; a calibration makes the place known.

    :param shifting: whether launches of its environment lay in several places before
    :param bound: whether each rank had a CPU of its own, so that the machine itself moved them
    """
    here, there = locate_case(measured.core_latency), row.core_latency
    reason = "its ranks were moved to other cores while it was measured; run it again"
    moved = here == MOVED or here is None or there is None
    latency_ratio = None
    if here is not None and there is not None and not moved:
        latency_ratio = here / there
        fix = "bind them, or run ./plumbline calibrate"
        if bound:
            fix = "they are bound, so the machine moves its processors; run ./plumbline calibrate"
        reason = f"ranks lay on other cores than those of the reference; {fix}"
    fastest = measured.value if measured.best is None else measured.best
    slowdown = compute_slowdown(fastest, row.center, row.unit)
    single_means = row.launches < 2 and measured.best is None  # either may be disturbed
    scatter_known = not is_blind(row) and not single_means
    gross = scatter_known and slowdown > limit_slowdown(measured.core_latency, row.core_latency)
    if gross:
        reason += "; slower than other cores make it"
    waits = not gross and (moved or shifting or row.few_sessions)
    verdict = Verdict.PROVISIONAL if waits else Verdict.NOT_COMPARABLE
    result = show_reference(result, row) if gross else result
    result = replace(result, reason=reason, latency_ratio=latency_ratio)
    return replace(result, verdict=verdict, provisional=waits, elsewhere=not gross)


def find_incomparability(
    finished: FinishedLaunch, case: Case, reference_set: ReferenceSet
) -> Incomparability | None:
    """Find how a launch's conditions differ from its reference's; None if in nothing that matters."""
    launch = finished.launch
    return reference_set.find_incomparability(finished.conditions, case, launch.accepts, launch.by_hand)


def select_median_launch(
    measured: Sequence[tuple[Measurement, FinishedLaunch]],
) -> tuple[Measurement, FinishedLaunch]:
    """Select the launch with the median value (the lower of the middle two)."""
    ordered = sorted(measured, key=lambda pair: pair[0].value)
    return ordered[(len(ordered) - 1) // 2]


def check_reframe_agrees(
    result: CaseResult, measured: Sequence[tuple[Measurement, FinishedLaunch]], catalog: ReferenceCatalog
) -> CaseResult:
    """Return the result, or ``incorrect`` if ReFrame's own assertion contradicts it.

    ReFrame asserts each launch by itself, so each is compared with the band of a launch and must agree with
    ReFrame. This checks transport only: both sides use the same band, so it proves that ReFrame was given the
    right one. The number itself is checked by :func:`postprocess.judging.outcome.compare_transport`.
    """
    for measurement, launch in measured:
        if not launch.launch.asserted:  # as where programs are compared with each other
            continue
        judged = judge_measurement(result.case, measurement, launch, catalog)
        ours = Verdict.PASS if judged.by_headline else judged.verdict  # ReFrame asserts values alone
        asserted = launch.asserted.get(result.case.variable)
        if asserted in (Verdict.NO_REFERENCE, Verdict.NOT_COMPARABLE):  # at that time; the reference may be new
            continue
        # what plain ReFrame says of a value that passed by such a reference
        if asserted == Verdict.PROVISIONAL:
            asserted = "pass"
        if asserted != ("fail" if ours == Verdict.REGRESSED else "pass"):
            reason = f"Plumbline says {ours}, ReFrame says {asserted}: one of them is wrong"
            return replace(result, verdict=Verdict.INCORRECT, reason=reason)
    return result


NOT_HELD = "compared with its peers, and with no reference"


def evaluate_flagged(
    finished: Sequence[FinishedLaunch], reason_of: Callable[[Case], str | None], failing: Verdict, again: str
) -> list[CaseResult]:
    """Give each flagged case the verdict ``failing`` with its reason, and every other one ``pass``."""
    results = []
    for result in evaluate_launches(finished, ReferenceCatalog(), ""):
        held = result
        if result.verdict == Verdict.NO_REFERENCE:
            reason = reason_of(result.case)
            verdict = failing if reason else Verdict.PASS
            held = replace(result, verdict=verdict, reason=reason or NOT_HELD)
        results.append(replace(held, rerun=again))
    return results
