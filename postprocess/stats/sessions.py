"""Sessions as a level of the noise: what bursts of launches predict about the next one.

ln value = center + day + session + launch. Launches of one burst share the state of the machine at that hour.
With k sessions of n_i launches on one day, the means of the sessions have the variance B = tau^2 + sigma^2
mean(1/n_i). It is estimated with k - 1 degrees of freedom: one-way random effects, by the method of moments
(Searle, Casella and McCulloch, Variance Components, 1992, section 3.6). Then it is moderated
(:mod:`postprocess.stats.priors`) by similar cases and by other machines. The effect of a day, which all its
sessions share, is assumed to have the variance :data:`DAY_SHARE` times tau^2.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import scipy

from postprocess.base.formats import parse_utc
from postprocess.model.case import Case
from postprocess.model.reference import Reference, SessionEvidence
from site_configs.schema.fields import SESSION_GAP_MINUTES

FARTHEST = 8.0  #: farthest values, in their standard deviations
POINTS = 801  #: points of the normal distribution, in the integral for the median


@cache
def compute_median_efficiency(median_of: int) -> float:
    """Compute the standard deviation of the median of n normal values, relative to that of one.

    It is integrated from the density of the middle order statistic, or of the mean of the middle two, which are
    as far below it as above (David and Nagaraja, Order Statistics, 2003, section 2.1).
    """
    below, odd = divmod(median_of, 2)
    x = np.linspace(-FARTHEST, FARTHEST, POINTS)
    if odd:
        density = (scipy.special.ndtr(x) * scipy.special.ndtr(-x)) ** below * np.exp(-(x**2) / 2)
    else:
        apart = np.linspace(0, FARTHEST, POINTS)
        low, high = x[:, None] - apart, x[:, None] + apart
        between = scipy.special.ndtr(low) * scipy.special.ndtr(-high)
        joint = between ** (below - 1) * np.exp(-(low**2 + high**2) / 2)
        density = np.trapezoid(joint, apart, axis=1)
    return math.sqrt(float(np.sum(x**2 * density) / np.sum(density)))


#: launches whose ends are farther apart belong to two sessions
SESSION_GAP = 60.0 * SESSION_GAP_MINUTES
#: Variance that the sessions of a day share, relative to that between them. Assumed: no machine has been
#: measured for days yet.
DAY_SHARE = 1.0
SECONDS_OF_DAY = 86_400


@dataclass(frozen=True)
class SessionMeans:
    """Summary of the launches of a case, by session, on the logarithm."""

    center: float  #: mean of the means of the sessions
    spread: float  #: within sessions, pooled; 0 if no session has two launches
    evidence: SessionEvidence


@dataclass(frozen=True)
class Prediction:
    """Predicted deviation of a mean of nights from the center of a reference, on the logarithm."""

    deviation: float  #: standard deviation
    degrees: float  #: degrees of freedom (Satterthwaite, Biometrics Bulletin 2, 1946)

    def limit(self, alpha: float) -> float:
        """Compute the distance from the center that a healthy case exceeds with this probability."""
        return float(scipy.special.stdtrit(self.degrees, 1.0 - alpha)) * self.deviation if self.degrees else 0.0


@dataclass(frozen=True)
class SessionValue:
    """The value of a case in one session: how much slower than its reference, on the logarithm."""

    log: float
    launches: int  #: number of launches whose median it is
    day: int | None = None  #: None: not a day of the reference


def number_day(moment: str) -> int:
    """Return the number of the day (UTC) of a moment."""
    return int(parse_utc(moment).timestamp()) // SECONDS_OF_DAY


def number_sessions(ends: Sequence[str], gap: float = SESSION_GAP) -> list[int]:
    """Return the number of each launch's session, from the times (UTC) at which the launches ended."""
    return list(_number_sessions(tuple(ends), gap))


@lru_cache(maxsize=1024)
def _number_sessions(ends: tuple[str, ...], gap: float) -> tuple[int, ...]:
    """Do the same for a tuple; cached because the cases of a calibration share their launches."""
    moments = [parse_utc(end).timestamp() for end in ends]
    numbers, number = [0] * len(moments), 0
    order = sorted(range(len(moments)), key=moments.__getitem__)
    for before, after in pairwise(order):
        number += moments[after] - moments[before] > gap
        numbers[after] = number
    return tuple(numbers)


def summarize_sessions(
    values: Sequence[float], numbers: Sequence[int] = (), days: Sequence[int] = ()
) -> SessionMeans:
    """Summarise the values of a case, one per launch; without ``numbers`` they belong to one session.

    :param days: day of each launch; empty if unknown
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    where = np.asarray(numbers or [0] * len(logs))
    groups = [logs[where == session] for session in sorted(set(where.tolist()))]
    means = np.array([group.mean() for group in groups])
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    degrees = len(logs) - len(groups)
    return SessionMeans(
        float(means.mean()),
        math.sqrt(squares / degrees) if degrees else 0.0,
        SessionEvidence(
            len(groups),
            float(np.mean([1 / len(group) for group in groups])),
            float(means.var(ddof=1)) if len(groups) > 1 else 0.0,
            _list_days(where, days),
        ),
    )


def _list_days(where: np.ndarray, days: Sequence[int]) -> tuple[int, ...]:
    """List the day of each session, that of its first launch."""
    if len(days) != len(where):
        return ()
    numbered = np.asarray(days)
    return tuple(int(numbered[where == session][0]) for session in sorted(set(where.tolist())))


def estimate_means_variance(reference: Reference) -> tuple[float, float]:
    """Estimate B, the variance of the means of sessions, and its degrees of freedom, from all evidence."""
    within = reference.moderated[0] ** 2 * reference.inverse_launches
    squares = degrees = 0.0
    if evidence := reference.evidence:
        degrees = evidence.sessions - 1
        squares = degrees * evidence.between
    if prior := reference.session_prior:
        degrees += prior.degrees
        squares += prior.degrees * (prior.spread**2 + within)
    return (squares / degrees, degrees) if degrees else (0.0, 0.0)


def estimate_session_spread(reference: Reference) -> float:
    """Estimate tau, the standard deviation of ln value between sessions of one day."""
    means, _ = estimate_means_variance(reference)
    within = reference.moderated[0] ** 2 * reference.inverse_launches
    return math.sqrt(max(means - within, 0.0) / _scale_days(reference.days))


def _scale_days(days: Sequence[int]) -> float:
    """Compute by how much sessions of several days vary more than those of one day, from pairs of sessions."""
    if len(days) < 2:
        return 1.0
    alike = sum(count * (count - 1) for count in Counter(days).values())
    return 1.0 + DAY_SHARE * (1.0 - alike / (len(days) * (len(days) - 1)))


def predict_nights(reference: Reference, some: Sequence[SessionValue]) -> Prediction:
    """Predict the deviation of the mean of j sessions from the center of the reference.

    V = tau^2 (1/j + 1/k + sum over days of (share of the j - share of the k)^2) + sigma^2 (mean(e(m)^2)/j +
    mean(1/n_i)/k), expressed by B and sigma^2, which are estimated separately.
    """
    number, of_center = len(some), 1 / reference.sessions
    own_share = sum(compute_median_efficiency(value.launches) ** 2 for value in some) / number**2
    share = 1 / number + of_center
    if reference.days:
        home = Counter[int | None](reference.days)
        there = Counter(value.day for value in some)
        apart = (there[day] / number - home[day] / len(reference.days) for day in there | home)
        share += DAY_SHARE * sum(difference**2 for difference in apart)
    return _predict(reference, share / _scale_days(reference.days), own_share, of_center)


def predict_own(reference: Reference, launches: int) -> Prediction:
    """Predict the deviation of the median of launches that it shares with no other session.

    The variance is tau^2 + sigma^2 e(m)^2.
    """
    own_share = compute_median_efficiency(launches) ** 2
    return _predict(reference, 1 / _scale_days(reference.days), own_share, of_center=0.0)


def predict_sessions(reference: Reference, launches: Sequence[int]) -> Prediction:
    """Predict the deviation of the mean of the means of j sessions of one day from the truth of that day.

    The variance is tau^2/j + sigma^2 mean(1/n)/j.

    :param launches: number of launches of each session
    """
    number = len(launches)
    own_share = sum(1 / count for count in launches) / number**2
    return _predict(reference, 1 / number / _scale_days(reference.days), own_share, of_center=0.0)


def _predict(reference: Reference, share: float, own: float, of_center: float) -> Prediction:
    """Combine the variances between sessions and between launches.

    :param share: share of the variance between the means of sessions
    :param own: share of the variance between launches in the mean of the sessions
    :param of_center: share of the reference's sessions in its center
    """
    spread, degrees = reference.moderated
    within, (means, means_degrees) = spread**2, estimate_means_variance(reference)
    rest = own + (of_center - share) * reference.inverse_launches
    if means <= within * reference.inverse_launches:  # no spread of sessions is left
        means, rest = 0.0, own + reference.inverse_launches * of_center
    variance = share * means + rest * within
    uncertain = (share * means) ** 2 / means_degrees if means_degrees else 0.0
    uncertain += (rest * within) ** 2 / degrees if degrees else 0.0
    if uncertain <= 0:
        return Prediction(0.0, 0.0)
    return Prediction(math.sqrt(variance), variance**2 / uncertain)


def assume_sessions(reference: Reference, more: int) -> Reference:
    """Return the reference as ``more`` sessions with as many launches and the same spread would make it."""
    means, _ = estimate_means_variance(reference)
    evidence = reference.evidence or SessionEvidence(1, reference.inverse_launches)
    sessions = evidence.sessions + more
    return replace(
        reference,
        launches=reference.launches * sessions // evidence.sessions,
        evidence=replace(evidence, sessions=sessions, between=means, days=()),
    )


def add_evidence(
    references: Mapping[Case, Reference],
    told: Mapping[Case, tuple[Sequence[float], Sequence[int], Sequence[int]]],
) -> dict[Case, Reference]:
    """Return the references with the evidence of their sessions.

    :param told: values behind a case, the session of each, and its day; a case without has one session
    """
    completed = dict(references)
    for case, (values, numbers, days) in told.items():
        reference = references.get(case)
        if reference and not reference.exact and len(values) == len(numbers) == reference.launches:
            evidence = summarize_sessions(values, numbers, days).evidence
            completed[case] = replace(reference, evidence=evidence)
    return completed
