"""Sessions as a level of the noise: what bursts of launches say of the next one.

ln headline = center + session + launch, with variances tau^2 and sigma^2. Launches of one burst share what the
machine does at that hour. Of k sessions of n_i launches, the means of the sessions have the variance
B = tau^2 + sigma^2 mean(1/n_i). It is estimated with k - 1 degrees of freedom: one-way random effects, by the
method of moments (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6). Then it is moderated
(:mod:`postprocess.stats.shrinkage`): by similar cases, by nights, and by what is known of other machines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import stdtrit

from postprocess.base.formats import parse_utc
from postprocess.model.case import Case
from postprocess.model.reference import Reference, SessionEvidence
from postprocess.stats.detection import compute_median_efficiency
from site_configs.schema.fields import SESSION_GAP_MINUTES

#: launches whose ends lie farther apart are of two sessions
SESSION_GAP = 60.0 * SESSION_GAP_MINUTES
#: Most degrees of freedom that the spread between sessions counts, however many told it. Sessions as measured
#: have a long slow tail: 3% lie beyond 2.19 standard deviations, as of t with 8 degrees, and not beyond 1.88.
TAIL_DEGREES = 8.0


@dataclass(frozen=True)
class SessionMeans:
    """What the launches of a case say, by session, on the logarithm."""

    center: float  #: mean of the means of the sessions
    spread: float  #: within sessions, pooled; 0 if no session has two launches
    evidence: SessionEvidence


@dataclass(frozen=True)
class Prediction:
    """How a mean of nights deviates from the center of a reference, on the logarithm."""

    deviation: float  #: standard deviation
    degrees: float  #: of freedom that it is worth (Satterthwaite, Biometrics Bulletin 2, 1946)

    def limit(self, alpha: float, most_degrees: float = math.inf) -> float:
        """Compute the distance from the center that a healthy case exceeds with this probability.

        :param most_degrees: that are counted, for a heavier tail
        """
        degrees = min(self.degrees, most_degrees)
        return float(stdtrit(degrees, 1.0 - alpha)) * self.deviation if degrees else 0.0


def number_sessions(ends: Sequence[str], gap: float = SESSION_GAP) -> list[int]:
    """Return the number of each launch's session, by when the launches ended (UTC)."""
    return list(_number_sessions(tuple(ends), gap))


@lru_cache(maxsize=1024)
def _number_sessions(ends: tuple[str, ...], gap: float) -> tuple[int, ...]:
    """Return the same for a tuple: the cases of one calibration share their launches."""
    moments = [parse_utc(each).timestamp() for each in ends]
    numbers, number = [0] * len(moments), 0
    order = sorted(range(len(moments)), key=moments.__getitem__)
    for before, after in pairwise(order):
        number += moments[after] - moments[before] > gap
        numbers[after] = number
    return tuple(numbers)


def summarize_sessions(values: Sequence[float], numbers: Sequence[int] = ()) -> SessionMeans:
    """Summarise the headlines of a case, one a launch; without numbers they are of one session."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    where = np.asarray(numbers or [0] * len(logs))
    some = [logs[where == each] for each in sorted(set(where.tolist()))]
    means = np.array([each.mean() for each in some])
    squares = sum(float(np.sum((each - each.mean()) ** 2)) for each in some)
    degrees = len(logs) - len(some)
    return SessionMeans(
        float(means.mean()),
        math.sqrt(squares / degrees) if degrees else 0.0,
        SessionEvidence(
            len(some),
            float(np.mean([1 / len(each) for each in some])),
            float(means.var(ddof=1)) if len(some) > 1 else 0.0,
        ),
    )


def estimate_means_variance(reference: Reference) -> tuple[float, float]:
    """Estimate B, the variance of the means of sessions, and its degrees of freedom, from all that tells it."""
    within = reference.moderated[0] ** 2 * reference.inverse_launches
    squares = degrees = 0.0
    if known := reference.evidence:
        degrees = known.sessions - 1 + known.night_degrees
        squares = (known.sessions - 1) * known.between
        squares += known.night_degrees * (known.night_variance + within)
    if prior := reference.session_prior:
        degrees += prior.degrees
        squares += prior.degrees * (prior.spread**2 + within)
    return (squares / degrees, degrees) if degrees else (0.0, 0.0)


def estimate_session_spread(reference: Reference) -> float:
    """Estimate tau, the standard deviation of ln headline between sessions."""
    means, _ = estimate_means_variance(reference)
    within = reference.moderated[0] ** 2 * reference.inverse_launches
    return math.sqrt(max(means - within, 0.0))


def predict_nights(reference: Reference, values: Sequence[int]) -> Prediction:
    """Predict the mean of the values of j nights.

    V = tau^2 (1/j + 1/k) + sigma^2 (mean(e(m)^2)/j + mean(1/n_i)/k), written in B and sigma^2, which are
    estimated apart.

    :param values: launches of each night, whose median is its value
    """
    nights = len(values)
    own = float(np.mean([compute_median_efficiency(each) ** 2 for each in values])) / nights
    return _predict(reference, nights, own, of_center=1 / reference.sessions)


def predict_sessions(reference: Reference, launches: Sequence[int]) -> Prediction:
    """Predict how the mean of the means of j sessions deviates from the truth: tau^2/j + sigma^2 mean(1/n)/j.

    :param launches: of each session
    """
    own = float(np.mean([1 / each for each in launches])) / len(launches)
    return _predict(reference, len(launches), own, of_center=0.0)


def _predict(reference: Reference, sessions: int, own: float, of_center: float) -> Prediction:
    """Put the variances between sessions and launches together.

    :param own: share of the variance between launches that the mean of so many sessions has
    :param of_center: share of the variance between sessions that the reference's center has
    """
    spread, degrees = reference.moderated
    within, (means, told) = spread**2, estimate_means_variance(reference)
    share = 1 / sessions + of_center
    rest = own - reference.inverse_launches / sessions
    if means <= within * reference.inverse_launches:  # no spread of sessions is left
        means, rest = 0.0, own + reference.inverse_launches * of_center
    variance = share * means + rest * within
    uncertain = (share * means) ** 2 / min(told, TAIL_DEGREES) if told else 0.0
    uncertain += (rest * within) ** 2 / degrees if degrees else 0.0
    if uncertain <= 0:
        return Prediction(0.0, 0.0)
    return Prediction(math.sqrt(variance), variance**2 / uncertain)


def assume_sessions(reference: Reference, more: int) -> Reference:
    """Return the reference as so many more sessions, of as many launches and as different, would make it."""
    means, _ = estimate_means_variance(reference)
    known = reference.evidence or SessionEvidence(1, reference.inverse_launches)
    sessions = known.sessions + more
    return replace(
        reference,
        launches=reference.launches * sessions // known.sessions,
        evidence=replace(known, sessions=sessions, between=means),
    )


def add_evidence(
    references: Mapping[Case, Reference], told: Mapping[Case, tuple[Sequence[float], Sequence[int]]]
) -> dict[Case, Reference]:
    """Return the references with what their sessions tell.

    :param told: headlines behind a case and the session of each; a case without is of one session
    """
    found = dict(references)
    for case, (values, numbers) in told.items():
        known = references.get(case)
        if known and not known.exact and len(values) == len(numbers) == known.launches:
            evidence = summarize_sessions(values, numbers).evidence
            found[case] = replace(known, evidence=evidence)
    return found
