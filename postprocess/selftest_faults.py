"""What is wrong with the result of a self-test: what must be caught and was not, alarms that are no chance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from scipy.stats import binom, poisson

from postprocess.formats import plural, signed
from postprocess.selftest_result import CHANCE, PlantScore, Quiet
from postprocess.selftest_rows import NightDone
from postprocess.verdicts import JUDGED

SURE = 0.99  #: probability from which on a case is one that must be caught


def faults(
    nights: Sequence[NightDone], plants: Sequence[PlantScore], unchanged: Quiet
) -> Iterable[str]:
    """What must not be, one line each."""
    lost = [row for night in nights for row in night.rows if row.verdict not in JUDGED]
    if lost:
        what = f"{lost[0].key}: {lost[0].verdict}"
        yield f"{plural(len(lost), 'result')} of a case in a night are none: {what}"
    for plant in plants:
        if too_many(plant.sure_missed, plant.sure):
            yield (
                f"{plant.name}: {plant.sure_missed} of {plural(plant.sure, 'case')} were missed that these "
                f"bands catch with {SURE:.0%}"
            )
    sure, missed = sum(plant.sure for plant in plants), sum(plant.sure_missed for plant in plants)
    if too_many(missed, sure) and not any(too_many(p.sure_missed, p.sure) for p in plants):
        yield f"{missed} of {sure} cases of all plants were missed that these bands catch with {SURE:.0%}"
    if poisson.sf(unchanged.regressed - 1, unchanged.regressed_predicted) < CHANCE:
        yield (
            f"unchanged nights: {plural(unchanged.regressed, 'case')} were called regressed, and "
            f"{unchanged.regressed_predicted:.2g} were predicted"
        )


def without_effect(
    names: Sequence[str], plants: Sequence[PlantScore], unfinished: bool
) -> Iterator[str]:
    """The plants that proved nothing: what slows nothing is missed by right, whatever judges it."""
    scored = {plant.name: plant for plant in plants}
    for name in names:
        plant = scored.get(name)
        if plant is None or plant.realised is None:
            if unfinished or (plant and plant.spared):
                continue  # what tells is still to come, or chance has it that nothing does
            why = "no unchanged night has a case that it delayed" if plant else "no night has it"
            yield f"{name}: nothing tells whether it worked: {why}"
        elif not plant.worked:
            yield f"{name}: did not work: {signed(plant.realised)} where {signed(plant.intended)} was intended"


def too_many(missed: int, sure: int) -> bool:
    """Whether so many misses are no chance, where at most one in a hundred is missed."""
    return missed > 0 and float(binom.sf(missed - 1, sure, 1 - SURE)) < CHANCE
