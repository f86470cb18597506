"""The score of a self-test, from the rows of its nights alone: what was caught, missed and wrongly flagged.

What a night should catch follows from its own bands and call limits: the probability with which a case that is
slower by so much lies beyond both (:mod:`postprocess.stats.sessions`). So does the number of false alarms.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import scipy

from postprocess.base.formats import format_signed, plural
from postprocess.extensions.selftest.data import CaseNight, FinishedNight
from postprocess.model.verdict import JUDGED
from postprocess.session.lifecycle.injections import INJECTION_KINDS
from postprocess.stats.detection import Scatter, compute_confirmation_probability

CHANCE = 0.001  #: significance level
WORKED = 0.5  #: of the intended slowdown: with less, a plant did not work


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a self-test came out: its faults; none if it passed."""

    faults: tuple[str, ...]
    unfinished: str = ""  #: what is still to come; then nothing is passed or failed

    @property
    def passed(self) -> bool:
        """Whether it came to its end and nothing is wrong."""
        return not self.faults and not self.unfinished

    @property
    def word(self) -> str:
        return "passed" if self.passed else "FAILED" if self.faults else "unfinished"


@dataclass(frozen=True, kw_only=True)
class PlantScore:
    name: str
    intended: float  #: slowdown of the targets, as a fraction
    realised: float | None  #: that of the median target; None if there is nothing to hold against

    @property
    def worked(self) -> bool:
        """Whether the targets were slower by something like what was intended."""
        return self.realised is not None and self.realised >= WORKED * self.intended


@dataclass(frozen=True)
class FlatBandResult:
    """What one launch and a flat band would have caught."""

    band: float  #: as a fraction of the reference
    caught: int
    false: int


@dataclass(frozen=True)
class InjectionScore(PlantScore):
    """The score of one plant in nights, against unchanged ones. Counts are of cases in nights."""

    plantings: int  #: nights and environments
    environments: tuple[str, ...]
    delayed: int  #: targets in launches that were delayed
    realised_median: float | None  #: of the median trial
    #: The same of the cases that were not slowed: what the machine did meanwhile
    drifted: float | None
    targets: int
    screened: int
    caught: int
    common: int  #: of the plantings: told as one cause that many cases have in common
    suspect: int  #: slow again, but no more than other hours may bring
    cleared: int
    missed: int  #: none of these, nor part of a common cause of everything
    promised: float  #: expected number that the bands catch
    sure: int  #: targets that must be caught
    sure_missed: int
    others: int  #: cases in the same places that are not slowed
    accused: int  #: of those called regressed
    flat: tuple[FlatBandResult, ...]

    @property
    def may_escape_by_chance(self) -> bool:
        """Whether no launch may have been delayed by chance, of a plant that delays some of them only."""
        return not self.delayed and (1 - INJECTION_KINDS[self.name].launches) ** self.plantings >= CHANCE


@dataclass(frozen=True)
class FalselyCalledCase:
    """A case that was called regressed and that nothing had slowed, and why it was called."""

    night: int
    key: str
    beside: str  #: plants of that night in its environment; empty if nothing was planted
    slower: float  #: times the reference
    band: float  #: limit of that
    call: float | None  #: limit of the fresh values
    fresh: tuple[float, ...]  #: times the reference
    cause: str  #: in common with other cases; empty if it was called by itself


@dataclass(frozen=True)
class FalseAlarmScore:
    """The false alarms on cases without a plant. Counts are of cases in nights."""

    nights: int
    cases: int
    screened: int
    screened_predicted: float
    suspect: int
    cleared: int
    regressed: int
    regressed_predicted: float
    common: int  #: of the regressed: told as one of many with a common cause
    flat: tuple[FlatBandResult, ...]

    def per_thousand(self, number: float) -> float:
        """Convert a number to one per 1000 cases and night."""
        return 1000 * number / self.cases if self.cases else 0.0


@dataclass(frozen=True)
class SelftestScores(Outcome):
    """The scores of a self-test of nights."""

    plants: tuple[InjectionScore, ...]
    unchanged: FalseAlarmScore
    beside: FalseAlarmScore  #: cases that were not slowed, in nights in which others were
    accused: tuple[FalselyCalledCase, ...]  #: in all nights


SURE = 0.99  #: probability from which on a case is one that must be caught


def find_selftest_faults(
    nights: Sequence[FinishedNight], plants: Sequence[InjectionScore], unchanged: FalseAlarmScore
) -> Iterable[str]:
    """Find the faults that fail the self-test, one line each."""
    lost = [row for night in nights for row in night.rows if row.verdict not in JUDGED]
    if lost:
        what = f"{lost[0].key}: {lost[0].verdict}"
        yield f"{plural(len(lost), 'result')} of a case in a night are none: {what}"
    for plant in plants:
        if is_too_many_missed(plant.sure_missed, plant.sure):
            yield (
                f"{plant.name}: {plant.sure_missed} of {plural(plant.sure, 'case')} were missed that these "
                f"bands catch with {SURE:.0%}"
            )
    sure, missed = sum(plant.sure for plant in plants), sum(plant.sure_missed for plant in plants)
    if is_too_many_missed(missed, sure) and not any(is_too_many_missed(p.sure_missed, p.sure) for p in plants):
        yield f"{missed} of {sure} cases of all plants were missed that these bands catch with {SURE:.0%}"
    if scipy.stats.poisson.sf(unchanged.regressed - 1, unchanged.regressed_predicted) < CHANCE:
        yield (
            f"unchanged nights: {plural(unchanged.regressed, 'case')} were called regressed, and "
            f"{unchanged.regressed_predicted:.2g} were predicted"
        )


def find_ineffective_injections(
    names: Sequence[str], plants: Sequence[InjectionScore], unfinished: bool
) -> Iterator[str]:
    """Find the injections that slowed nothing, and so prove nothing."""
    scored = {plant.name: plant for plant in plants}
    for name in names:
        plant = scored.get(name)
        if plant is None or plant.realised is None:
            if unfinished or (plant and plant.may_escape_by_chance):
                continue  # what tells is still to come, or chance has it that nothing does
            why = "no unchanged night has a case that it delayed" if plant else "no night has it"
            yield f"{name}: it is unknown whether it worked: {why}"
        elif not plant.worked:
            yield (
                f"{name}: did not work: {format_signed(plant.realised)} "
                f"where {format_signed(plant.intended)} was intended"
            )


def is_too_many_missed(missed: int, sure: int) -> bool:
    """Return whether so many misses are improbable if at most one in a hundred is missed."""
    return missed > 0 and float(scipy.stats.binom.sf(missed - 1, sure, 1 - SURE)) < CHANCE


FLAT = (0.10, 0.05)  #: flat bands: a launch fails that is slower by this fraction


def score_nights(nights: Sequence[FinishedNight], names: Sequence[str], planned: int) -> SelftestScores:
    """Score these nights.

    :param names: of the plants that the self-test was begun with
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
        found.append(f"nothing was planted that these bands catch with {SURE:.0%}: nothing is proven")
    accused = tuple(list_falsely_called_cases(nights))
    return SelftestScores(plants, unchanged, beside, accused, faults=tuple(found), unfinished=unfinished)


def select_judged_rows(rows: Iterable[CaseNight]) -> list[CaseNight]:
    """Select the rows with a value that was judged by a reference."""
    return [row for row in rows if row.verdict in JUDGED and row.value and row.reference and row.upper]


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
                    tuple(value / reference for value in row.again),
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
    spoken_for = {id(row) for number, row in here if plant.everything and (number, row.environment) in told}
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
    row: CaseNight, targets: Sequence[CaseNight], usual: dict[str, tuple[float, float]], intended: float
) -> float:
    """Predict the probability that the site's bands fail a target in a night.

    It is slower by what was intended, or by what was reached with the same routine if that is less. A plant
    that spares launches must be in most of those of the first value, and of enough of the fresh ones.
    """
    alike = [night for night in targets if night.of == row.of and night.delayed]
    reached = measure_slowdown(alike, usual)
    by = intended if reached is None else min(intended, reached)
    share = INJECTION_KINDS[row.plant].launches
    most = float(scipy.stats.binom.sf(row.median_of // 2, row.median_of, share))
    chance = most * float(compute_confirmation_probability(most)) if share < 1 else 1.0
    now = usual[row.key][0] if row.key in usual else row.reference or 1.0
    faster = min(math.log(now / (row.reference or now)), 0.0)  # than when it was calibrated
    _, failed = predict_verdict(row, max(math.log1p(max(by, 0.0)) + faster, 0.0))
    return chance * failed


def predict_verdict(row: CaseNight, shift: float) -> tuple[float, float]:
    """Predict the probabilities of lying beyond the band, and of being called regressed in this one night.

    Its launches are slower by ``shift``, on the logarithm. Fresh ones share the session of the first one, so
    what they add is the call limit: called is what lies beyond both.
    """
    distance = math.log((row.upper or 1.0) / (row.reference or 1.0))
    screened = Scatter(row.spread or 0.0, row.degrees or 1.0).screened(distance, shift)
    if not row.call or not row.call_deviation:  # without a known scatter there is no call limit
        return screened, screened
    beyond = (shift - math.log(row.call / (row.reference or 1.0))) / row.call_deviation
    return screened, min(screened, float(scipy.special.stdtr(row.call_degrees, beyond)))


def score_false_alarms(nights: Sequence[FinishedNight]) -> FalseAlarmScore:
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


def apply_flat_band(targets: Sequence[CaseNight], others: Sequence[CaseNight]) -> tuple[FlatBandResult, ...]:
    """Apply the usual rule to the same launches: slow is what lies by a fixed fraction above the reference."""

    def slow(rows: Sequence[CaseNight], band: float) -> int:
        return sum((row.value or 0.0) > (row.reference or 0.0) * (1 + band) for row in rows)

    return tuple(FlatBandResult(band, slow(targets, band), slow(others, band)) for band in FLAT)
