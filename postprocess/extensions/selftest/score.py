"""The score of a self-test, from the rows of its nights alone: what was caught, missed and wrongly flagged.

What a night should catch follows from its own bands and call limits: the probability with which a case that is
slower by so much lies beyond both (:mod:`postprocess.stats.sessions`). So does the number of false alarms.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence

import scipy
from scipy.special import stdtr

from postprocess.base.formats import plural
from postprocess.extensions.selftest.data import CaseNight, FinishedNight
from postprocess.extensions.selftest.result import (
    SURE,
    FalseAlarmScore,
    FalselyCalledCase,
    FlatBandResult,
    InjectionScore,
    SelftestScores,
    find_ineffective_injections,
    find_selftest_faults,
)
from postprocess.model.verdict import JUDGED
from postprocess.session.lifecycle.injections import INJECTION_KINDS
from postprocess.stats.confirmation_rule import compute_confirmation_probability
from postprocess.stats.power import Scatter

FLAT = (0.10, 0.05)  #: flat bands: a launch fails that is slower by this fraction


def score_nights(
    nights: Sequence[FinishedNight], names: Sequence[str], planned: int
) -> SelftestScores:
    """Score these nights.

    :param names: of the plants that the self-test was begun with
    :param planned: how many nights it was begun with
    """
    usual = compute_baseline_values(nights)
    of_plants = [row for night in nights for row in night.rows if row.plant]
    plants = tuple(
        score_injection(name, nights, usual)
        for name in INJECTION_KINDS
        if any(row.plant == name for row in of_plants)
    )
    unchanged = score_false_alarms([night for night in nights if night.unchanged])
    beside = score_false_alarms([night for night in nights if not night.unchanged])
    done = len({night.number for night in nights})
    unfinished = f"only {done} of {plural(planned, 'night')} are done" if done < planned else ""
    found = list(find_selftest_faults(nights, plants, unchanged))
    found += find_ineffective_injections(names, plants, bool(unfinished))
    if not unfinished and not any(plant.sure for plant in plants):
        found.append(
            f"nothing was planted that these bands catch with {SURE:.0%}: nothing is proven"
        )
    accused = tuple(list_falsely_called_cases(nights))
    return SelftestScores(
        plants, unchanged, beside, accused, faults=tuple(found), unfinished=unfinished
    )


def select_judged_rows(rows: Iterable[CaseNight]) -> list[CaseNight]:
    """Select the rows with a value that was judged by a reference."""
    return [
        row for row in rows if row.verdict in JUDGED and row.value and row.reference and row.upper
    ]


def list_falsely_called_cases(nights: Sequence[FinishedNight]) -> Iterator[FalselyCalledCase]:
    """List the cases that were called regressed and were not slowed, with what they were called by."""
    for night in nights:
        for row in select_judged_rows(night.rows):
            if row.regressed and not row.target:
                reference = row.reference or 1.0
                yield FalselyCalledCase(
                    night.number,
                    row.key,
                    row.plant,
                    (row.value or 0.0) / reference,
                    (row.upper or 0.0) / reference,
                    row.call / reference if row.call else None,
                    tuple(each / reference for each in row.again),
                    row.cause,
                )


def compute_baseline_values(nights: Sequence[FinishedNight]) -> dict[str, tuple[float, float]]:
    """Compute by case the median headline of unchanged nights, and the median of their median trials.

    Both are in the unit of the case.
    """
    found: dict[str, list[CaseNight]] = {}
    for row in select_judged_rows(row for night in nights if night.unchanged for row in night.rows):
        found.setdefault(row.key, []).append(row)
    return {
        key: (
            statistics.median(row.value or 0.0 for row in rows),
            statistics.median(row.median or row.value or 0.0 for row in rows),
        )
        for key, rows in found.items()
    }


def score_injection(
    name: str, nights: Sequence[FinishedNight], usual: dict[str, tuple[float, float]]
) -> InjectionScore:
    """Score one injection.

    :param usual: as :func:`compute_baseline_values` returns it
    """
    plant = INJECTION_KINDS[name]
    here = [(night.number, row) for night in nights for row in night.rows if row.plant == name]
    rows = select_judged_rows(row for _, row in here)
    targets = [row for row in rows if row.target]
    others = [row for row in rows if not row.target]
    told = {(number, row.environment) for number, row in here if row.target and row.common}
    # Of a partition on which everything is slower, the most precise cases stand for all.
    spoken_for = {
        id(row) for number, row in here if plant.everything and (number, row.environment) in told
    }
    missed = [row for row in targets if not row.regressed and id(row) not in spoken_for]
    delayed = [row for row in targets if row.delayed]
    promises = [predict_detection(row, targets, usual, plant.intended) for row in targets]
    sure = [row for row, chance in zip(targets, promises, strict=True) if chance >= SURE]
    sure = sure if plant.must_show else []
    places = {(number, row.environment) for number, row in here}
    accused = [row for row in others if row.regressed]
    return InjectionScore(
        name=name,
        plantings=len(places),
        environments=tuple(sorted({environment for _, environment in places})),
        delayed=len(delayed),
        intended=plant.intended,
        realised=measure_slowdown(delayed, usual),
        realised_median=measure_slowdown(delayed, usual, of_medians=True),
        drifted=measure_slowdown(others, usual),
        targets=len(targets),
        screened=sum(row.screened for row in targets),
        caught=sum(row.regressed for row in targets),
        common=len(told),
        suspect=sum(row.suspect for row in targets),
        cleared=sum(row.verdict == "cleared" for row in targets),
        missed=sum(not row.suspect and row.verdict != "cleared" for row in missed),
        promised=sum(promises),
        sure=len(sure),
        sure_missed=len({id(row) for row in sure} & {id(row) for row in missed}),
        others=len(others),
        accused=len(accused),
        flat=apply_flat_band(targets, others),
    )


def measure_slowdown(
    rows: Sequence[CaseNight], usual: dict[str, tuple[float, float]], of_medians: bool = False
) -> float | None:
    """Measure the median slowdown of these cases against unchanged nights, as a fraction."""
    ratios = [
        ((row.median or 0.0) if of_medians else (row.value or 0.0)) / usual[row.key][of_medians]
        for row in rows
        if row.key in usual
    ]
    return statistics.median(ratios) - 1 if ratios else None


def predict_detection(
    row: CaseNight,
    targets: Sequence[CaseNight],
    usual: dict[str, tuple[float, float]],
    intended: float,
) -> float:
    """Predict the probability that the site's bands fail a target in a night.

    It is slower by what was intended, or by what was reached with the same routine if that is less. A plant
    that spares launches must be in most of those of the first value, and of enough of the fresh ones.
    """
    alike = [each for each in targets if each.of == row.of and each.delayed]
    reached = measure_slowdown(alike, usual)
    by = intended if reached is None else min(intended, reached)
    share = INJECTION_KINDS[row.plant].launches
    most = float(scipy.stats.binom.sf(row.median_of // 2, row.median_of, share))
    chance = most * float(compute_confirmation_probability(most)) if share < 1 else 1.0
    now = usual[row.key][0] if row.key in usual else row.reference or 1.0
    faster = min(math.log(now / (row.reference or now)), 0.0)  # than when it was calibrated
    return chance * compute_fail_probability(row, max(math.log1p(max(by, 0.0)) + faster, 0.0))


def compute_fail_probability(row: CaseNight, shift: float = 0.0) -> float:
    """Compute the probability that a night fails a case whose launches are slower by ``shift`` (logarithm)."""
    return predict_verdict(row, shift)[1]


def predict_verdict(row: CaseNight, shift: float) -> tuple[float, float]:
    """Predict the probabilities of lying beyond the band, and of being called regressed in this one night.

    Fresh launches share the session of the first one, so what they add is the call limit: called is what lies
    beyond both.
    """
    distance = math.log((row.upper or 1.0) / (row.reference or 1.0))
    screened = Scatter(row.spread or 0.0, row.degrees or 1.0).screened(distance, shift)
    if not row.call or not row.call_deviation:  # of before there was a limit of calls
        return screened, screened
    beyond = (shift - math.log(row.call / (row.reference or 1.0))) / row.call_deviation
    return screened, min(screened, float(stdtr(row.call_degrees, beyond)))


def score_false_alarms(nights: Sequence[FinishedNight]) -> FalseAlarmScore:
    """Score the verdicts on cases that nothing slowed."""
    rows = select_judged_rows(row for night in nights for row in night.rows if not row.target)
    chances = [predict_verdict(row, 0.0) for row in rows]
    return FalseAlarmScore(
        nights=len(nights),
        cases=len(rows),
        screened=sum(row.screened for row in rows),
        screened_predicted=sum(screened for screened, _ in chances),
        suspect=sum(row.suspect for row in rows),
        cleared=sum(row.verdict == "cleared" for row in rows),
        regressed=sum(row.regressed for row in rows),
        regressed_predicted=sum(regressed for _, regressed in chances),
        common=sum(row.common for row in rows),
        flat=apply_flat_band([], rows),
    )


def apply_flat_band(
    targets: Sequence[CaseNight], others: Sequence[CaseNight]
) -> tuple[FlatBandResult, ...]:
    """Apply the usual rule to the same launches: slow is what lies by a fixed fraction above the reference."""

    def slow(rows: Sequence[CaseNight], band: float) -> int:
        return sum((row.value or 0.0) > (row.reference or 0.0) * (1 + band) for row in rows)

    return tuple(FlatBandResult(band, slow(targets, band), slow(others, band)) for band in FLAT)
