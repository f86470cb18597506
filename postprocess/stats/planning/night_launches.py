"""How many launches of a night it takes to see a slowdown: no more than needed, and no more than are paid."""

from __future__ import annotations

import math
from collections.abc import Sequence

from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.stats.band import compute_band
from postprocess.stats.planning.sample_size import TARGET
from postprocess.stats.power import compute_detectable_slowdown

MOST_LAUNCHES = 20  #: beyond them a median gains little: what the center does not know stays
#: Of the cases that the most launches show: so many may be missed for the sake of fewer launches
SPARED = 0.05


def count_needed_launches(references: Sequence[Reference], paid: int) -> int:
    """Count the launches whose medians show :data:`TARGET` in nearly as many cases as all that are paid.

    One where a reference is of few launches or exact, and where no number that is paid shows anything.

    :param references: of the cases of one launch
    :param paid: most launches
    """
    known = [each for each in references if not each.few_launches and not each.exact]
    most = max(min(paid, MOST_LAUNCHES), 1)
    goal = (1 - SPARED) * count_showing(known, most)
    return next(count for count in range(1, most + 1) if count_showing(known, count) >= goal)


def count_showing(references: Sequence[Reference], median_of: int) -> int:
    """Count the cases in which a night of so many launches detects :data:`TARGET`."""
    return sum(compute_detectable(each, median_of) <= TARGET for each in references)


def compute_detectable(reference: Reference, median_of: int) -> float:
    """Compute the smallest slowdown that a night of so many launches detects; infinite if none."""
    limits = compute_band(reference, median_of=median_of)
    measured = Measurement(reference.center, reference.unit)
    found = compute_detectable_slowdown(reference, limits, measured, median_of)
    return math.inf if found is None else found
