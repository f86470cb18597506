"""Judge a measured case: one value against one reference."""

from __future__ import annotations

import math
from dataclasses import fields, replace

from postprocess.base.formats import format_comparison, plural, quantity
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import ENOUGH_LAUNCHES, ENOUGH_SESSIONS, Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.stats.band import Band, compute_band, is_regressed
from postprocess.stats.power import compute_band_scatter, compute_detectable_slowdown


def judge_case(
    case: Case,
    measured: Measurement,
    reference: Reference | None,
    resolution: float = 0.0,
    median_of: int = 1,
) -> CaseResult:
    """Hold a headline against the band of its reference: of one launch, or the median of several.

    ``resolution`` (of the timer, or of what is printed) is in the unit of the value; how far it widens the
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
    result = replace(result, value=value, launches=median_of)
    if reference is None:
        reason = f"no reference for this case (measured {quantity(value, unit)}); run ./plumbline calibrate"
        return replace(result, verdict=Verdict.NO_REFERENCE, reason=reason)
    if difference := _difference(case, unit, reference):
        return replace(result, verdict=Verdict.NOT_COMPARABLE, reason=difference)
    limits = compute_band(reference, resolution, median_of)
    verdict, reason = _against(measured, reference, limits, median_of)
    spread, degrees = (
        (None, None) if limits.blind else map(float, compute_band_scatter(reference, median_of))
    )
    return replace(
        result,
        verdict=verdict,
        reason=reason,
        reference=reference.center,
        band=(limits.lower, limits.upper),
        reference_launches=reference.launches,
        core_latency=reference.core_latency,
        provisional=reference.provisional,
        detectable=compute_detectable_slowdown(reference, limits, measured, median_of),
        spread=spread,
        degrees=degrees,
    )


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
    measured: Measurement, reference: Reference, limits: Band, median_of: int
) -> tuple[Verdict, str]:
    value, unit = measured.value, measured.unit
    launches = plural(reference.launches, "launch", "es")
    source = f"its reference {quantity(reference.center, unit)} of {launches}"
    middle = f", the median of {median_of} launches," if median_of > 1 else ""
    compared = format_comparison(value, reference.center, unit)
    change = f"{quantity(value, unit)}{middle} is {compared} {source}"
    where, limit = ("above", limits.upper) if value > limits.upper else ("below", limits.lower)
    outside = f"{change}, {where} the limit {quantity(limit, unit)}"
    if limits.too_slow(value) and not is_regressed(limits, measured.best):
        return Verdict.PROVISIONAL, f"{outside}; {_doubt(measured, limits)}"
    if limits.too_slow(value):
        return Verdict.REGRESSED, outside
    if limits.too_fast(value) and limits.blind:
        return Verdict.PROVISIONAL, f"{outside}; {_doubt(measured, limits)}"
    if limits.too_fast(value):
        return Verdict.FAST, outside
    if reference.provisional:
        few = f"the reference knows {reference.told_by} of {ENOUGH_SESSIONS} sessions needed, nights included"
        if limits.few_launches:
            few = f"the reference has {launches} of {ENOUGH_LAUNCHES} needed"
        inside = f"{quantity(limits.lower, unit)} to {quantity(limits.upper, unit)}"
        return Verdict.PROVISIONAL, f"{few}; inside {inside}"
    return Verdict.PASS, ""


def _doubt(measured: Measurement, limits: Band) -> str:
    """Return why nothing follows from a value outside the band of a reference of few launches."""
    if limits.blind:
        return "but the scatter of launches is unknown from a single one"
    if measured.best is None:
        return (
            "not counted as a regression: the program reports only a mean, and the reference has too few "
            "launches"
        )
    best = quantity(measured.best, measured.unit)
    return f"but its best trial, {best}, is not, and the reference has too few launches to decide"
