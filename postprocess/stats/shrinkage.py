"""Empirical-Bayes shrinkage: pool the spread of similar cases where a case has few launches.

Similar cases are those of one program in one class of sizes. Each case's variance between launches is drawn
towards theirs, the more so the fewer launches it has and the more alike they are. This is the moderated
variance of Smyth, Linear models and empirical Bayes methods, SAGMB 3 (2004), sections 3 and 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from postprocess.model.case import Case
from postprocess.model.reference import Prior, Reference
from postprocess.stats.band import LARGE_BYTES

#: The classes of sizes that :func:`group_of` distinguishes, for people.
SIZES = ("below 1 kB", "from 1 kB to 10 kB", "from 10 kB on")
SMALL_BYTES = 1_000  #: below it latency counts, from ``LARGE_BYTES`` on bandwidth
LEAST_GROUP_SIZE = 10  #: cases, or nothing is said of how their spreads are distributed
MOST_DEGREES = 1_000.0  #: where all cases are alike: more would change no band by a thousandth
CaseGroup = tuple[str, int]


def add_priors(references: Mapping[Case, Reference]) -> dict[Case, Reference]:
    """Return the references with the prior of their group, or of their program where the group is too small."""
    programs: dict[str, list[Reference]] = {}
    for reference in references.values():
        programs.setdefault(reference.case.program, []).append(reference)
    everybody = {name: estimate_prior(members) for name, members in programs.items()}
    families: dict[CaseGroup, list[Reference]] = {}
    for reference in references.values():
        families.setdefault(group_of(reference.case), []).append(reference)
    priors = {key: estimate_prior(members) or everybody[key[0]] for key, members in families.items()}
    return {case: replace(each, prior=priors[group_of(case)]) for case, each in references.items()}


def group_of(case: Case) -> CaseGroup:
    """Return the group of a case: its program and class of sizes."""
    return case.program, (case.bytes >= SMALL_BYTES) + (case.bytes >= LARGE_BYTES)


def estimate_prior(references: Sequence[Reference]) -> Prior | None:
    """Estimate the prior spread of these cases and its degrees of freedom; None if they are too few.

    A case that never differed between its launches was rounded to that, and is left out.
    """
    known = [
        reference
        for reference in references
        if reference.launches > reference.sessions and reference.spread > 0
    ]
    if len(known) < LEAST_GROUP_SIZE:
        return None
    degrees = np.array([float(reference.launches - reference.sessions) for reference in known])
    return fit_prior(np.array([reference.spread for reference in known]), degrees)


def fit_prior(spreads: NDArray[np.float64], degrees: NDArray[np.float64]) -> Prior:
    """Fit the prior to the mean and variance of ln s^2 (Smyth, section 6.2).

    :param spreads: s of each case, none of them 0
    :param degrees: d, degrees of freedom of each
    """
    logs = 2 * np.log(spreads) - digamma(degrees / 2) + np.log(degrees / 2)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, degrees / 2)))
    center = float(np.mean(logs))
    if excess <= float(polygamma(1, MOST_DEGREES / 2)):
        return Prior(math.exp(center / 2), MOST_DEGREES)
    half = invert_trigamma(excess)
    return Prior(math.exp((center + float(digamma(half)) - math.log(half)) / 2), 2 * half)


def invert_trigamma(value: float) -> float:
    """Return the y with trigamma(y) = value > 0, by Newton's method (Smyth, appendix)."""
    y = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(polygamma(1, y))
        step = trigamma * (1.0 - trigamma / value) / float(polygamma(2, y))
        y += step
        if abs(step) < 1e-10 * y:
            break
    return y
