"""From the launches of a healthy machine to its references."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from postprocess.bands import band
from postprocess.cases import Case
from postprocess.references import ENOUGH_LAUNCHES, Reference

FENCE = (
    1.5  #: interquartile ranges beyond the quartiles, from where on a launch is odd (Tukey 1977)
)


def calibrate_exactly(samples: Mapping[Case, Sequence[float]]) -> list[Reference]:
    """One exact reference per case, sorted, from headlines in simulated seconds.

    Raises ValueError for a case whose launches differ: then its time is not exact.
    """
    references = []
    for case in sorted(samples):
        first, *others = samples[case]
        reference = Reference(case, first, 0.0, 1 + len(others), exact=True)
        limits = band(reference)
        if not all(limits.lower <= value <= limits.upper for value in others):
            raise ValueError(f"{case.key}: simulated time does not repeat: {list(samples[case])}")
        references.append(reference)
    return references


def calibrate(samples: Mapping[Case, Sequence[float]]) -> list[Reference]:
    """One reference per case, sorted, from its headlines in seconds, one per launch.

    Center and spread are taken on the logarithm (:func:`center_and_spread`). One launch has no spread: 0,
    and the reference is provisional. Raises ValueError for a case without a value or with one that is no time.
    """
    return [_reference(case, samples[case]) for case in sorted(samples)]


def _reference(case: Case, headlines: Sequence[float]) -> Reference:
    if not len(headlines) or not all(math.isfinite(value) and value > 0 for value in headlines):
        raise ValueError(f"{case.key}: headlines {list(headlines)} are not one time per launch")
    center, spread = center_and_spread(np.log(np.asarray(headlines, dtype=np.float64)))
    return Reference(case, float(np.exp(center)), float(spread), len(headlines))


def center_and_spread(
    logs: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation along the last axis; 0 of one launch.

    Odd launches are drawn in to the fence (winsorised): one in twenty that is slow by itself must not widen
    the band, for what a night screens because of it is cleared by fresh launches. Too few launches, or ones
    of which half are equal, do not tell what is odd.

    :param logs: ln headline, shape (..., launches)
    """
    launches = logs.shape[-1]
    if launches >= ENOUGH_LAUNCHES:
        low, high = np.quantile(logs, (0.25, 0.75), axis=-1, keepdims=True)
        reach = np.where(high > low, FENCE * (high - low), np.inf)
        logs = np.clip(logs, low - reach, high + reach)
    spread = logs.std(axis=-1, ddof=1) if launches > 1 else np.zeros(logs.shape[:-1])
    return logs.mean(axis=-1), spread
