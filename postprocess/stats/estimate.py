"""Estimate references (center and spread of ln headline) from the launches of a calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.stats.band import compute_band
from postprocess.stats.sessions import summarize_sessions


def estimate_exact_references(samples: Mapping[Case, Sequence[float]]) -> list[Reference]:
    """Return one exact reference per case, sorted, from headlines in simulated seconds.

    Raises ValueError for a case whose launches differ: then its time is not exact.
    """
    references = []
    for case in sorted(samples):
        first, *others = samples[case]
        reference = Reference(case, first, 0.0, 1 + len(others), exact=True)
        limits = compute_band(reference)
        if not all(limits.lower <= value <= limits.upper for value in others):
            raise ValueError(f"{case.key}: simulated time does not repeat: {list(samples[case])}")
        references.append(reference)
    return references


def estimate_references(
    samples: Mapping[Case, Sequence[float]], sessions: Mapping[Case, Sequence[int]] | None = None
) -> list[Reference]:
    """Return one reference per case, sorted, from its headlines in seconds, one per launch.

    Center and spread are taken on the logarithm: the mean of the means of the sessions, and the spread within
    them. One launch has no spread: 0, and the reference is provisional.

    :param sessions: number of the session of each launch; without, they are of one
    :raises ValueError: for a case without a value or with one that is not a time
    """
    return [_reference(case, samples[case], (sessions or {}).get(case, ())) for case in sorted(samples)]


def _reference(case: Case, headlines: Sequence[float], sessions: Sequence[int]) -> Reference:
    if not len(headlines) or not all(math.isfinite(value) and value > 0 for value in headlines):
        raise ValueError(f"{case.key}: headlines {list(headlines)} are not one time per launch")
    told = summarize_sessions(headlines, sessions)
    return Reference(case, float(np.exp(told.center)), told.spread, len(headlines))
