"""The result of a self-test: the score of each plant, and the false alarms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import scipy

from postprocess.base.formats import format_signed, plural
from postprocess.extensions.selftest.data import FinishedNight
from postprocess.model.verdict import JUDGED
from postprocess.session.lifecycle.injections import INJECTION_KINDS

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
        """The outcome in a word."""
        return "passed" if self.passed else "FAILED" if self.faults else "unfinished"


@dataclass(frozen=True, kw_only=True)
class PlantScore:
    """What every score of a plant has."""

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
        return (
            not self.delayed
            and (1 - INJECTION_KINDS[self.name].launches) ** self.plantings >= CHANCE
        )


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
    if is_too_many_missed(missed, sure) and not any(
        is_too_many_missed(p.sure_missed, p.sure) for p in plants
    ):
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
