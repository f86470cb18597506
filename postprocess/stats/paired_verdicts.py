"""Paired verdicts (faster, same, slower or undecided) from pairs of launches, at looks fixed beforehand.

The looks share the error in equal parts (Bonferroni): looking again until something shows would turn 5% into
about 11% in three looks. Two questions have two error rates.

* *Is it safe?* Each case must be proven not worse than the margin, at 5% in all looks together. All cases must
pass, so no correction is needed: a comparison with a worse case is called safe in at most 5% of cases
(intersection-union test: Berger, Technometrics 24, 1982). ``same`` is both one-sided tests (Schuirmann, J.
Pharmacokinetics and Biopharmaceutics 15, 1987).
* *What is slower?* Of all cases called ``slower``, at most 5% are false on average (Benjamini and Hochberg,
JRSS B 57, 1995). Its p is that of a paired t with moderated variance (Smyth, SAGMB 3, 2004), with an allowance
for launches correlated with the one before. The interval of the signed ranks, which assumes nothing about
tails, must agree.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from postprocess.stats.priors import LEAST_GROUP_SIZE, fit_prior
from postprocess.stats.q_values import compute_q_values
from postprocess.stats.sessions import Prediction

#: Variance of the signed ranks for normal differences, relative to that of the mean (ibid., 3.11).
EFFICIENCY = math.pi / 3

UNKNOWN_SPREAD = 2  #: additional pairs, because the spread is estimated from the pairs themselves


@dataclass(frozen=True)
class PairedRatio:
    """An estimate of ln(new / old) with its interval."""

    center: float
    lower: float  #: minus infinity if there are too few pairs for the level
    upper: float
    pairs: int

    @property
    def ratio(self) -> float:
        """How many times as slow the new side is."""
        return math.exp(self.center)

    @property
    def limits(self) -> tuple[float, float]:
        return math.exp(self.lower), math.exp(min(self.upper, 700.0))


def estimate_paired_ratio(differences: Sequence[float], alpha: float) -> PairedRatio:
    """Estimate ln(new / old) from the differences of pairs.

    :param differences: ln(new / old) of each pair; at least one
    :param alpha: largest probability that the value is beyond either limit
    """
    walsh = compute_walsh_averages(differences)
    count = len(differences)
    outside = count_outside(count, alpha)
    lower = float(walsh[outside - 1]) if outside else -math.inf
    upper = float(walsh[len(walsh) - outside]) if outside else math.inf
    return PairedRatio(float(np.median(walsh)), lower, upper, count)


def compute_walsh_averages(differences: Sequence[float]) -> NDArray[np.float64]:
    """Compute the averages of all pairs of differences, including each with itself; sorted."""
    d = np.asarray(differences, dtype=float)
    rows, columns = np.triu_indices(len(d))
    return np.sort((d[rows] + d[columns]) / 2)


@cache
def count_outside(pairs: int, alpha: float) -> int:
    """Count the Walsh averages up to and including a limit: the largest c with P(W < c) <= alpha; else 0."""
    chances = np.cumsum(compute_signed_rank_distribution(pairs))
    return int(np.searchsorted(chances, alpha * (1 + 1e-12), side="right"))


@cache
def compute_signed_rank_distribution(pairs: int) -> NDArray[np.float64]:
    """Compute the probability of each sum of positive ranks, from 0 to n (n + 1) / 2, if the center is 0."""
    chances = np.ones(1)
    for rank in range(1, pairs + 1):
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return chances


def count_deciding_pairs(spread: float, distance: float, alpha: float) -> int:
    """Count the pairs whose interval is within a distance to either side, for normal differences.

    :param spread: standard deviation of the differences
    :param distance: above 0
    :param alpha: probability that the value is beyond either limit
    """
    z = float(-scipy.special.ndtri(alpha))
    return math.ceil((z * spread / distance) ** 2 * EFFICIENCY) + UNKNOWN_SPREAD


ERROR = 0.05  #: error probability of either question
#: Pairs at which to look. At six pairs a third of the error still gives an interval.
LADDERS = ((6,), (6, 10), (6, 10, 16), (8, 16, 26), (10, 20, 40))
USUAL = (6, 10, 16)
EXACT_LADDERS = ((2,),)  #: ladder in simulated time: one pair decides, and another shows that it repeats
#: Largest correlation of the two differences of a block ABBA if each launch depends on the one before: launches
#: correlated by r give r (1 - r) / 2. Without it, 6 to 7% of comparisons of 40 unchanged cases accuse one.
BLOCK_CORRELATION = 1 / 8
EXACT = 1e-9  #: smallest difference of simulated time, which repeats


class PairedVerdict(str, Enum):
    FASTER = "faster"
    SAME = "same"  #: proven, within the margin
    NOT_SLOWER = "not slower"  #: proven no worse than the margin; it may be the same or faster
    SLOWER = "slower"
    UNDECIDED = "undecided"

    def __str__(self) -> str:
        return self.value


NOT_WORSE = frozenset({PairedVerdict.FASTER, PairedVerdict.SAME, PairedVerdict.NOT_SLOWER})


@dataclass(frozen=True)
class PairedCase:
    """The pairs of a case, in the order in which they were measured."""

    differences: tuple[float, ...]  #: ln(new / old) of each pair; above 0 is worse
    margin: float  #: on the logarithm; differences within it count as the same
    group: Hashable = ""  #: cases of one group have similar spreads
    exact: bool = False  #: whether time is simulated: one pair decides

    @property
    def repeats(self) -> bool:
        """Whether its time is simulated and did repeat in each pair."""
        return self.exact and max(self.differences) - min(self.differences) <= EXACT


@dataclass(frozen=True)
class PairedResult:
    """The verdict on a case, and the numbers behind it."""

    verdict: PairedVerdict
    #: at the last look that included the case; None before the first
    estimate: PairedRatio | None
    q: float | None = None  #: q-value of being slower, among all cases
    #: pairs that would decide it with its present scatter; None if it is decided
    pairs_more: int | None = None


def choose_looks(pairs: int, ladders: Sequence[tuple[int, ...]] = LADDERS) -> tuple[int, ...]:
    """Choose the looks that ``pairs`` allow; empty if they are fewer than the shortest ladder needs."""
    return max((ladder for ladder in ladders if ladder[-1] <= pairs), default=())


def judge_pairs(
    cases: Sequence[PairedCase], looks: Sequence[int], least: int | None = None
) -> list[PairedResult]:
    """Judge all cases of a comparison at the looks that were fixed beforehand.

    The decision of a look stands. A case with too few pairs for a look is left out of it.

    :param least: pairs with which a case is included in the last look, if no more will come because planned
    pairs were lost for reasons unrelated to their times. None: all of them.
    """
    level = ERROR / len(looks)
    slower, faster = np.ones(len(cases)), np.ones(len(cases))
    results = [PairedResult(PairedVerdict.UNDECIDED, None) for _ in cases]
    for number, pairs in enumerate(looks):
        enough = min(least or pairs, pairs) if number == len(looks) - 1 else pairs
        here = [n for n, case in enumerate(cases) if len(case.differences) >= (1 if case.exact else enough)]
        if not here:
            break
        judged = [cases[n] for n in here]
        worse, better = compute_probabilities(judged, pairs)
        slower[here] = np.minimum(slower[here], np.minimum(worse * len(looks), 1.0))
        faster[here] = np.minimum(faster[here], np.minimum(better * len(looks), 1.0))
        slower_q, faster_q = map(compute_q_values, (slower, faster))
        for n in here:
            if number and results[n].verdict != PairedVerdict.UNDECIDED:
                continue
            estimate = estimate_case(cases[n], pairs, level)
            verdict = decide(estimate, cases[n].margin, slower_q[n], faster_q[n])
            results[n] = PairedResult(verdict, estimate)
    if not cases:
        return []
    q = compute_q_values(slower)
    return [
        PairedResult(
            result.verdict,
            result.estimate,
            float(q[n]) if result.estimate else None,
            count_pairs_more(cases[n], result, level, looks[0]),
        )
        for n, result in enumerate(results)
    ]


def estimate_case(case: PairedCase, pairs: int, level: float) -> PairedRatio:
    """Estimate the ratio of a case from its first pairs; for simulated time that repeats, from one pair."""
    if case.repeats:
        first = case.differences[0] if abs(case.differences[0]) > EXACT else 0.0
        return PairedRatio(first, first, first, 1)
    return estimate_paired_ratio(case.differences[:pairs], level)


def decide(estimate: PairedRatio, margin: float, slower_q: float, faster_q: float) -> PairedVerdict:
    """Decide a case at one look."""
    if -margin < estimate.lower and estimate.upper < margin:
        return PairedVerdict.SAME
    if estimate.lower > 0 and estimate.center > margin / 2 and slower_q <= ERROR:
        return PairedVerdict.SLOWER
    if estimate.upper < 0 and estimate.center < -margin / 2 and faster_q <= ERROR:
        return PairedVerdict.FASTER
    return PairedVerdict.NOT_SLOWER if estimate.upper < margin else PairedVerdict.UNDECIDED


def compute_probabilities(
    cases: Sequence[PairedCase], pairs: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the probabilities that pairs of an unchanged case are at least as slow, and at least as fast.

    :param pairs: number of first pairs of each case that count
    """
    d = [np.array(case.differences[:pairs]) for case in cases]
    counts = np.array([pairs if case.exact else min(len(case.differences), pairs) for case in cases])
    means = np.array([differences.mean() for differences in d])
    spreads = np.array([differences.std(ddof=1) if len(differences) > 1 else 0.0 for differences in d])
    spreads, degrees = moderate_spreads(spreads, counts - 1, [case.group for case in cases])
    exact = np.array([case.repeats for case in cases])
    means = np.where(exact & (np.abs(means) <= EXACT), 0.0, means)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = means / (np.where(exact, 0.0, spreads) * np.sqrt((1 + BLOCK_CORRELATION) / counts))
    t = np.where(means == 0, 0.0, t)
    return scipy.special.stdtr(degrees, -t), scipy.special.stdtr(degrees, t)


def moderate_spreads(
    spreads: NDArray[np.float64], degrees: NDArray[np.int_], groups: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Moderate each spread towards that of its group, or that of all cases if its group is small."""
    members: Mapping[Hashable, list[int]] = {
        group: [n for n, name in enumerate(groups) if name == group] for group in set(groups)
    }
    moderated, total = spreads.copy(), degrees.astype(np.float64)
    for places in members.values():
        similar = places if np.sum(spreads[places] > 0) >= LEAST_GROUP_SIZE else range(len(spreads))
        spreading = np.array([n for n in similar if spreads[n] > 0], dtype=int)
        if len(spreading) < LEAST_GROUP_SIZE:
            continue
        prior = fit_prior(spreads[spreading], degrees[spreading].astype(np.float64))
        squares = degrees[places] * spreads[places] ** 2 + prior.degrees * prior.spread**2
        total[places] = degrees[places] + prior.degrees
        moderated[places] = np.sqrt(squares / total[places])
    return moderated, total


def count_pairs_more(case: PairedCase, result: PairedResult, level: float, first: int) -> int | None:
    """Count the further pairs that would decide a case whose center and spread stay as they are."""
    if result.verdict != PairedVerdict.UNDECIDED:
        return None
    have = len(case.differences)
    if have < 2:
        return max(first - have, 1)
    center = result.estimate.center if result.estimate else float(np.median(case.differences))
    distance = case.margin - center
    if center > case.margin / 2:
        distance = max(distance, center)
    needed = count_deciding_pairs(float(np.std(case.differences, ddof=1)), distance, level)
    return max(max(needed, first) - have, 1)


@dataclass(frozen=True)
class UnpairedCase:
    """The difference of a case between two sides."""

    difference: float  #: ln(new / old) of the means of sessions; above 0 is worse
    #: uncertainty of the side due to its sessions; None if unknown
    old: Prediction | None
    new: Prediction | None
    margin: float  #: on the logarithm
    exact: bool = False  #: whether time is simulated, so that any difference counts

    @property
    def noise(self) -> Prediction | None:
        """Uncertainty of the difference; None if unknown.

        Both sides may take their noise from the same reference, so their degrees of freedom do not add up.
        """
        if self.old is None or self.new is None:
            return None
        deviation = math.hypot(self.old.deviation, self.new.deviation)
        return Prediction(deviation, min(self.old.degrees, self.new.degrees))


@dataclass(frozen=True)
class UnpairedResult:
    """The verdict on a case, and the numbers behind it."""

    verdict: PairedVerdict
    limits: tuple[float, float] | None  #: 90% interval of the difference
    q: float | None  #: q-value of being slower, among all cases
    unseen: float | None  #: the difference that two sessions of the case reach without a cause


def judge_unpaired(cases: Sequence[UnpairedCase]) -> list[UnpairedResult]:
    if not cases:
        return []
    worse = np.array([compute_probability(case, case.difference) for case in cases])
    better = np.array([compute_probability(case, -case.difference) for case in cases])
    slower_q, faster_q = map(compute_q_values, (worse, better))
    return [
        judge_case(case, float(slow), float(fast))
        for case, slow, fast in zip(cases, slower_q, faster_q, strict=True)
    ]


def compute_probability(case: UnpairedCase, difference: float) -> float:
    """Compute the probability that an unchanged case differs as much to the same side; 1 if unknown."""
    if case.exact:
        return float(difference <= EXACT)
    noise = case.noise
    if noise is None or noise.deviation <= 0:
        return 1.0
    return float(scipy.special.stdtr(noise.degrees, -difference / noise.deviation))


def judge_case(case: UnpairedCase, slower_q: float, faster_q: float) -> UnpairedResult:
    noise = Prediction(0.0, 0.0) if case.exact else case.noise
    if noise is None or (noise.deviation <= 0 and not case.exact):
        return UnpairedResult(PairedVerdict.UNDECIDED, None, None, None)
    reach = noise.limit(ERROR)
    lower, upper = case.difference - reach, case.difference + reach
    verdict = PairedVerdict.UNDECIDED
    if lower > 0 and case.difference > case.margin / 2 and slower_q <= ERROR:
        verdict = PairedVerdict.SLOWER
    elif upper < 0 and case.difference < -case.margin / 2 and faster_q <= ERROR:
        verdict = PairedVerdict.FASTER
    return UnpairedResult(verdict, (lower, upper), slower_q, reach)
