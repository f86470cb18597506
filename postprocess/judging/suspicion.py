"""What one slow session means: called at once if it is gross, else ``suspect`` until several say the same.

Fresh launches of the same session share its state: they show that a case is slow tonight, and not that it has
become slow. It is called regressed if the session lies farther out than sessions bring it, or if the mean of
several sessions lies beyond its limit (:mod:`postprocess.stats.sequence`). A case that is inside its band
tonight may be called too: what lies just beyond a limit is seen by sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from postprocess.base.formats import plural
from postprocess.base.units import compute_slowdown
from postprocess.judging.session_history import SessionHistory, number_day_of_now
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.stats.sequence import LEAST_SESSIONS, compute_gross_distance, find_slow_run
from postprocess.stats.sessions import SessionValue

#: Verdicts of a case inside its band, which the sum of several sessions may call all the same
INSIDE = (Verdict.PASS, Verdict.PROVISIONAL)


def decide_suspicion(
    result: CaseResult,
    fresh: Sequence[float],
    reference: Reference | None,
    history: SessionHistory,
) -> CaseResult:
    """Return a slow result that was confirmed as regressed, or as suspect if one session does not decide.

    :param fresh: of its confirmation runs, each a median of as many launches: values, or headlines if it is
        slow by its headline
    """
    if result.verdict != Verdict.REGRESSED or not fresh or reference is None or reference.exact:
        return result
    judged = reference.headline if result.by_headline else reference
    if judged is None:
        return result
    logs = [math.log(compute_slowdown(each, judged.center, result.unit)) for each in fresh]
    tonight = SessionValue(
        sum(logs) / len(logs), max(result.launches, 1) * len(logs), number_day_of_now()
    )
    told = f"{_name_trials(result)} {math.expm1(tonight.log):.0%} slower"
    if is_gross(result, judged, tonight):
        return replace(result, reason=f"{told}: more than sessions bring; {result.reason}")
    before = history.find_run(result.case, reference, result.by_headline)
    if run := find_slow_run(judged, [tonight, *before]):
        return replace(result, reason=f"{_describe_run(run.sessions, run.mean)}; {result.reason}")
    missing = max(LEAST_SESSIONS - 1 - len(before), 1)
    decide = "decides" if missing == 1 else "decide"
    rest = f"{plural(missing, 'more session')} {decide}: ./plumbline confirm, or the next nights"
    return replace(result, verdict=Verdict.SUSPECT, reason=f"{told}; {result.reason}; {rest}")


def is_gross(result: CaseResult, reference: Reference, tonight: SessionValue) -> bool:
    """Return whether a case is slower tonight than sessions bring.

    Few launches know little of the machine's bad moments: then even the fastest trial must be so slow, and
    what is only a mean of trials is never called at once.
    """
    distance = compute_gross_distance(reference, tonight.launches)
    if tonight.log <= distance or not reference.few_launches:
        return tonight.log > distance
    best = result.summary.minimum if result.summary else 0.0
    return best > 0 and math.log(best / reference.center) > distance


def call_slow_sums(
    results: Sequence[CaseResult], catalog: ReferenceCatalog, history: SessionHistory
) -> list[CaseResult]:
    """Call the cases inside their bands whose last sessions are slower together than chance makes them."""
    return [_call_slow_sum(each, catalog, history) for each in results]


def _call_slow_sum(
    result: CaseResult, catalog: ReferenceCatalog, history: SessionHistory
) -> CaseResult:
    reference = catalog.reference(result.case, result.core_latency)
    if result.verdict not in INSIDE or reference is None or reference.exact:
        return result
    if not result.value or not result.reference or not result.slowdown:
        return result
    tonight = SessionValue(math.log(result.slowdown), max(result.launches, 1), number_day_of_now())
    run = find_slow_run(reference, [tonight, *history.find_run(result.case, reference)])
    if run is None:
        return result
    limit = f"each beyond {math.expm1(run.limit):.1%}, as chance makes none"
    reason = f"{_describe_run(run.sessions, run.mean)}; {limit}"
    return replace(result, verdict=Verdict.REGRESSED, reason=reason)


def _describe_run(sessions: int, mean: float) -> str:
    return f"{math.expm1(mean):.1%} slower in the mean of {plural(sessions, 'session')}"


def _name_trials(result: CaseResult) -> str:
    return "the mean of the trials" if result.by_headline else "all trials"


def list_suspects(results: Sequence[CaseResult]) -> list[Case]:
    """List the cases that one session has left in doubt."""
    return [each.case for each in results if each.verdict == Verdict.SUSPECT]
