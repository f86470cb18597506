"""Judge a measured case: its value against its reference, and its headline against that of the headline."""

from __future__ import annotations

import math
from dataclasses import fields, replace

from postprocess.base.formats import format_comparison, plural, quantity
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement, TrialSummary
from postprocess.model.reference import MOST_SESSIONS, Reference
from postprocess.model.verdict import JUDGED, LOOKED_SLOW, CaseResult, Verdict
from postprocess.stats.band import Band, compute_band
from postprocess.stats.power import BLIND, compute_detectable_slowdown, compute_scatter
from postprocess.stats.sessions import assume_sessions

SOON = 3  #: sessions, tonight's included, within which a slowdown is to be called


def judge_case(
    case: Case, measured: Measurement, reference: Reference | None, resolution: float = 0.0, median_of: int = 1
) -> CaseResult:
    """Hold a value against the band of its reference: of one launch, or the median of several.

    A value inside its band whose headline is not inside that of the headline is slow as well: few of its trials
    are. ``resolution`` (of the timer, or of what is printed) is in the unit of the value; how far it widens the
    band has a bound (:data:`postprocess.stats.band.COARSEST_CLOCK`). A limit itself is inside the band. The
    caller adds the command that reruns the case.
    """
    value, unit = measured.value, measured.unit
    result = CaseResult(
        case,
        Verdict.INCORRECT,
        f"{value} {unit} is no result of a measurement",
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
        compute_detectable_slowdown(known, median_of, sessions, resolution)
        for known, sessions in ((reference, 1), (reference, SOON), (learned, SOON))
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
    """Hold the headline of a judged value against the limit of headlines."""
    limits = compute_band(reference, resolution, result.launches)
    result = replace(result, headline_reference=reference.center, headline_limit=limits.slow_limit)
    if result.verdict not in JUDGED - LOOKED_SLOW:
        return result
    if limits.blind or not result.slow_headline or measured.headline is None:
        return result
    compared = format_comparison(measured.headline, reference.center, result.unit)
    mean = f"{quantity(measured.headline, result.unit)} in the mean of the trials is {compared}"
    center, limit = (quantity(each, result.unit) for each in (reference.center, limits.slow_limit))
    told = f"{mean} its reference {center}, beyond the limit {limit}; its fast trials are as ever"
    reason = f"{_count_slow_trials(measured.summary)}: {told}"
    return replace(result, verdict=Verdict.REGRESSED, reason=reason, by_headline=True)


def _count_slow_trials(summary: TrialSummary | None) -> str:
    """Describe how many trials of a launch are slow, as its filter counts them."""
    if summary is None or not summary.candidates:
        return "some trials are slow"
    return f"{summary.candidates} of {summary.kept + summary.removed} trials are above 1.8 medians"


def _difference(case: Case, unit: str, reference: Reference) -> str:
    """Return why the reference is of something else, in one line; empty if it is of this case."""
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
        return Verdict.PROVISIONAL, "a single launch does not tell how launches differ"
    if limits.too_slow(value):
        return Verdict.REGRESSED, outside
    if limits.too_fast(value):
        return Verdict.FAST, outside
    if detectable > BLIND:
        return (Verdict.PROVISIONAL, f"one night sees only what is {1 + detectable:.1f} times as slow")
    return Verdict.PASS, ""
