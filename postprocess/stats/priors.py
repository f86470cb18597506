"""Priors: the spread of a case estimated from similar cases and other machines, before it has shown its own.

Similar cases are those of one program in one class of sizes. The variance of each case between launches is
moderated towards theirs: the more so, the fewer launches it has and the more alike they are. This is the
moderated variance of Smyth, Linear models and empirical Bayes methods, SAGMB 3 (2004), sections 3 and 6.2.

One burst of launches says nothing about other hours. A table of spreads measured elsewhere is used instead,
with few degrees of freedom, so that bands have a heavy tail. Similar cases of the same machine outweigh it as
its sessions accumulate.

Usage: ``python -m postprocess.stats.priors LAUNCHES.csv [GAP]`` prints the table from launches, one per line,
with the columns ``utc``, ``state``, ``environment``, ``routine``, ``bytes`` and ``headline_us``. Launches more
than GAP seconds apart belong to two sessions.
"""

import csv
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from postprocess.base.grouping import group_pairs
from postprocess.model.case import Case
from postprocess.model.reference import Prior, Reference
from postprocess.stats.band import LARGE_BYTES
from postprocess.stats.sessions import (
    SESSION_GAP,
    SessionMeans,
    estimate_means_variance,
    number_sessions,
    summarize_sessions,
)

#: Names of the classes of sizes that :func:`group_of` distinguishes.
SIZES = ("below 1 kB", "from 1 kB to 10 kB", "from 10 kB on")
SMALL_BYTES = 1_000  #: latency dominates below it, bandwidth from ``LARGE_BYTES`` on
LEAST_GROUP_SIZE = 10  #: cases; fewer do not show how their spreads are distributed
MOST_DEGREES = 1_000.0  #: if all cases are alike: more would change no band by a thousandth
CaseGroup = tuple[str, int]


def add_priors(references: Mapping[Case, Reference]) -> dict[Case, Reference]:
    """Return the references with the prior of their group, or of their program if the group is too small."""
    programs = group_pairs((reference.case.program, reference) for reference in references.values())
    everybody = {name: estimate_prior(members) for name, members in programs.items()}
    families = group_pairs((group_of(reference.case), reference) for reference in references.values())
    priors = {key: estimate_prior(members) or everybody[key[0]] for key, members in families.items()}
    return {case: replace(reference, prior=priors[group_of(case)]) for case, reference in references.items()}


def group_of(case: Case) -> CaseGroup:
    """Return the group of a case: its program and class of sizes."""
    return case.program, class_of(case)


def class_of(case: Case) -> int:
    """Return the class of sizes of a case: its index in :data:`SIZES`."""
    return (case.bytes >= SMALL_BYTES) + (case.bytes >= LARGE_BYTES)


def find_stand_ins(headlines: Mapping[Case, Reference]) -> dict[int, Prior]:
    """Find, by class of sizes, a prior for a program whose launches do not yet show how they differ.

    It is taken from the headlines of other programs in the same environment, which are means of calls too. It
    counts for no more degrees of freedom than a measurement on another machine. Of several programs the widest
    counts.
    """
    priors: dict[int, Prior] = {}
    for case, headline in headlines.items():
        size, prior = class_of(case), headline.prior
        if prior and not headline.exact and (size not in priors or prior.spread > priors[size].spread):
            priors[size] = Prior(prior.spread, min(prior.degrees, ELSEWHERE))
    return priors


def estimate_prior(references: Sequence[Reference]) -> Prior | None:
    """Estimate the prior spread of these cases and its degrees of freedom; None if they are too few.

    A case that never differed between launches owes that to rounding, and is left out.
    """
    differing = [
        reference
        for reference in references
        if reference.launches > reference.sessions and reference.spread > 0
    ]
    if len(differing) < LEAST_GROUP_SIZE:
        return None
    degrees = np.array([float(reference.launches - reference.sessions) for reference in differing])
    return fit_prior(np.array([reference.spread for reference in differing]), degrees)


def fit_prior(spreads: NDArray[np.float64], degrees: NDArray[np.float64]) -> Prior:
    """Fit the prior to the mean and variance of ln s^2 (Smyth, section 6.2).

    :param spreads: s of each case, none of them 0
    :param degrees: d, degrees of freedom of each
    """
    logs = 2 * np.log(spreads) - scipy.special.digamma(degrees / 2) + np.log(degrees / 2)
    excess = float(np.var(logs, ddof=1) - np.mean(scipy.special.polygamma(1, degrees / 2)))
    center = float(np.mean(logs))
    if excess <= float(scipy.special.polygamma(1, MOST_DEGREES / 2)):
        return Prior(math.exp(center / 2), MOST_DEGREES)
    half = invert_trigamma(excess)
    return Prior(math.exp((center + float(scipy.special.digamma(half)) - math.log(half)) / 2), 2 * half)


def invert_trigamma(value: float) -> float:
    """Return the y with trigamma(y) = value > 0, by Newton's method (Smyth, appendix)."""
    y = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(scipy.special.polygamma(1, y))
        step = trigamma * (1.0 - trigamma / value) / float(scipy.special.polygamma(2, y))
        y += step
        if abs(step) < 1e-10 * y:
            break
    return y


#: Degrees of freedom of a measurement elsewhere: another machine may be twice as restless
ELSEWHERE = 5.0
#: Degrees of freedom of all similar cases together, per session beyond the first: they share the effect of an
#: hour
SIMILAR_DEGREES = 4.0
SPREAD_COLUMNS = ("cache", "least_bytes", "spread", "degrees", "sessions", "cases")
Key = tuple[str, int]  #: cache state, and smallest size of the class in bytes
LEAST_BYTES = (0, SMALL_BYTES, LARGE_BYTES)


@dataclass(frozen=True)
class MeasuredSpread:
    """Spread between sessions of the cases of one cache state and class of sizes."""

    prior: Prior
    sessions: int
    cases: int


PriorTable = Mapping[Key, Prior]


def find_stored_prior(table: PriorTable, case: Case) -> Prior | None:
    """Find the stored prior of a case's sessions; for an unknown cache state, the widest of its class."""
    least = LEAST_BYTES[group_of(case)[1]]
    if stored := table.get((case.cache, least)):
        return stored
    priors = [prior for (_, size), prior in table.items() if size == least] or list(table.values())
    return max(priors, key=lambda prior: prior.spread, default=None)


def add_session_priors(references: Mapping[Case, Reference], table: PriorTable) -> dict[Case, Reference]:
    """Return the references with a prior of their sessions, from similar cases and from the table.

    If the similar cases are too few, all cases of the program are used.
    """
    families: dict[CaseGroup, list[Reference]] = {}
    programs: dict[str, list[Reference]] = {}
    for reference in references.values():
        without_prior = replace(reference, session_prior=None)
        families.setdefault(group_of(reference.case), []).append(without_prior)
        programs.setdefault(reference.case.program, []).append(without_prior)
    everybody = {name: estimate_similar_spread(members) for name, members in programs.items()}
    similar = {key: estimate_similar_spread(members) or everybody[key[0]] for key, members in families.items()}
    completed = {}
    for case, old in references.items():
        stored = None if old.exact else find_stored_prior(table, case)
        prior = join_priors(stored, similar[group_of(case)]) if stored else None
        completed[case] = replace(old, session_prior=prior)
    return completed


def estimate_similar_spread(some: Sequence[Reference]) -> tuple[Prior, float] | None:
    """Estimate the spread between sessions of these cases, and the degrees of freedom of their sessions.

    None if they are too few, or of one session.
    """
    variances = [(reference, *estimate_means_variance(reference)) for reference in some if not reference.exact]
    variances = [row for row in variances if row[1] > 0]
    if len(variances) < LEAST_GROUP_SIZE:
        return None
    degrees = np.array([freedom for _, _, freedom in variances])
    fit = fit_prior(np.sqrt([means for _, means, _ in variances]), degrees)
    within = np.mean(
        [reference.moderated[0] ** 2 * reference.inverse_launches for reference, _, _ in variances]
    )
    spread = math.sqrt(max(fit.spread**2 - float(within), 0.0))
    return Prior(spread, fit.degrees), SIMILAR_DEGREES * float(np.median(degrees))


def join_priors(stored: Prior, similar: tuple[Prior, float] | None) -> Prior:
    """Combine a stored prior with that of similar cases, weighted by degrees of freedom."""
    if similar is None:
        return stored
    here, worth = similar
    spread, together = stored.moderate(here.spread, worth)
    return Prior(float(spread), min(here.degrees, together))


def measure_spreads(rows: Iterable[Mapping[str, str]], gap: float = SESSION_GAP) -> dict[Key, MeasuredSpread]:
    """Measure the spread between sessions from launches of several bursts, by cache state and class of sizes.

    It follows from the mean of the variances, so that restless cases count. A class with few cases gets the
    spread of all cases of its state.

    :param gap: seconds between two sessions
    """
    cases: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for row in rows:
        key = (row["state"], row["environment"], row["routine"], row["bytes"])
        cases.setdefault(key, []).append((row["utc"], float(row["headline_us"])))
    means: dict[Key, list[SessionMeans]] = {}
    for (state, _, _, size), launches in cases.items():
        numbers = number_sessions([utc for utc, _ in launches], gap)
        case_means = summarize_sessions([value for _, value in launches], numbers)
        if case_means.evidence.sessions > 1:
            least = max(smallest for smallest in LEAST_BYTES if smallest <= int(size))
            means.setdefault((state, least), []).append(case_means)
    return {key: pool_spreads(members, find_state(means, key[0])) for key, members in sorted(means.items())}


def find_state(found: Mapping[Key, Sequence[SessionMeans]], state: str) -> list[SessionMeans]:
    """Return all cases of a cache state."""
    return [case for (other, _), cases in found.items() if other == state for case in cases]


def pool_spreads(some: Sequence[SessionMeans], alike: Sequence[SessionMeans]) -> MeasuredSpread:
    """Pool the variances of these cases, or of all similar ones if they are few."""
    pooled = some if len(some) >= LEAST_GROUP_SIZE else alike
    excess = [means.evidence.between - means.spread**2 * means.evidence.inverse_launches for means in pooled]
    spread = math.sqrt(max(float(np.mean(excess)), 0.0))
    most = max(means.evidence.sessions for means in pooled)
    return MeasuredSpread(Prior(spread, ELSEWHERE), most, len(pooled))


def main(path: str, gap: float = SESSION_GAP) -> None:
    """Print the table computed from the launches of a file."""
    with open(path, newline="", encoding="utf-8") as file:
        spreads = measure_spreads(csv.DictReader(file), gap)
    print("\t".join(SPREAD_COLUMNS))
    for (cache, least), spread in spreads.items():
        cells = (f"{spread.prior.spread:.4f}", f"{spread.prior.degrees:g}", spread.sessions, spread.cases)
        print("\t".join(map(str, (cache, least, *cells))))


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:3]))
