"""The verdict on a case that was measured: one value against one reference."""

from __future__ import annotations

import math
from dataclasses import fields

from postprocess.bands import Band, band, condemns
from postprocess.cases import Case
from postprocess.record_schema import UNIT
from postprocess.references import ENOUGH_LAUNCHES, Reference
from postprocess.statistics import Summary
from postprocess.verdicts import CaseResult, Verdict


def judge(
    case: Case,
    value: float,
    summary: Summary | None,
    reference: Reference | None,
    resolution: float = 0.0,
) -> CaseResult:
    """Hold the headline of one launch against the band of its reference.

    ``value`` and ``resolution`` (of the timer) are in seconds. A limit itself is inside the band.
    The caller adds the command that reruns the case.
    """
    if not (math.isfinite(value) and value > 0):
        return CaseResult(case, Verdict.INCORRECT, f"{value} is not a time", summary=summary)
    if reference is None:
        reason = f"nothing to hold {_micro(value)} against; calibrate this machine"
        return CaseResult(
            case, Verdict.NO_REFERENCE, reason, value=value, launches=1, summary=summary
        )
    difference = _difference(case, reference)
    if difference:
        return CaseResult(
            case, Verdict.NOT_COMPARABLE, difference, value=value, launches=1, summary=summary
        )
    limits = band(reference, resolution)
    fastest = summary.minimum if summary else value
    verdict, reason = _against(value, fastest, reference, limits)
    return CaseResult(
        case,
        verdict,
        reason,
        value=value,
        reference=reference.center,
        band=(limits.lower, limits.upper),
        launches=1,
        reference_launches=reference.launches,
        summary=summary,
    )


def _difference(case: Case, reference: Reference) -> str:
    """Why the reference is of something else, in one line; empty if it is of this case."""
    for field in fields(Case):
        ours, theirs = getattr(case, field.name), getattr(reference.case, field.name)
        if ours != theirs:
            return f"{field.name} is {ours} and the reference is of {theirs}"
    if reference.unit != UNIT:
        return f"the unit of the reference is {reference.unit!r}, not {UNIT}"
    return ""


def _against(
    value: float, fastest: float, reference: Reference, limits: Band
) -> tuple[Verdict, str]:
    change = f"{_micro(value)} is {_ratio(value / reference.center)} its reference"
    launches = f"{reference.launches} launch{'es' if reference.launches > 1 else ''}"
    source = f"{_micro(reference.center)} of {launches}"
    if value > limits.upper and not condemns(limits, fastest):
        doubt = f"but the fastest trial, {_micro(fastest)}, is not: too little to go by"
        above = f"{change} {source}, above the limit {_micro(limits.upper)}"
        return Verdict.PROVISIONAL, f"{above}; {doubt} with so few launches"
    if value > limits.upper:
        return Verdict.REGRESSED, f"{change} {source}, above the limit {_micro(limits.upper)}"
    if value < limits.lower:
        return Verdict.FAST, f"{change} {source}, below the limit {_micro(limits.lower)}"
    if limits.provisional:
        few = f"the reference has {launches} of {ENOUGH_LAUNCHES} needed"
        return Verdict.PROVISIONAL, f"{few}; inside {_micro(limits.lower, limits.upper)}"
    return Verdict.PASS, ""


def _ratio(ratio: float) -> str:
    return f"{ratio:.3g} times"


def _micro(*seconds: float) -> str:
    """Times as people read them: ``12.3 us``, or ``6 to 24 us`` for two."""
    return " to ".join(f"{time * 1e6:.4g}" for time in seconds) + " us"
