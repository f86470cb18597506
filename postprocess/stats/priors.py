"""What similar cases and other machines say of a spread before a case has shown its own.

Similar cases are those of one program in one class of sizes. Each case's variance between launches is drawn
towards theirs, the more so the fewer launches it has and the more alike they are. This is the moderated
variance of Smyth, Linear models and empirical Bayes methods, SAGMB 3 (2004), sections 3 and 6.2.

One burst says nothing of other hours. A table of spreads that were measured elsewhere stands in for it, with
few degrees of freedom, so that bands have a heavy tail. Similar cases of the same machine
outweigh it as its sessions come.

Usage: ``python -m postprocess.stats.priors LAUNCHES.csv [GAP]``: the table from launches, one a line,
with the columns ``utc``, ``state``, ``environment``, ``routine``, ``bytes`` and ``headline_us``. Launches more
than GAP seconds apart are of two sessions.
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

#: The classes of sizes that :func:`group_of` distinguishes, for people.
SIZES = ("below 1 kB", "from 1 kB to 10 kB", "from 10 kB on")
SMALL_BYTES = 1_000  #: below it latency counts, from ``LARGE_BYTES`` on bandwidth
LEAST_GROUP_SIZE = 10  #: cases, or nothing is said of how their spreads are distributed
MOST_DEGREES = 1_000.0  #: where all cases are alike: more would change no band by a thousandth
CaseGroup = tuple[str, int]


def add_priors(references: Mapping[Case, Reference]) -> dict[Case, Reference]:
    """Return the references with the prior of their group, or of their program where the group is too small."""
    programs = group_pairs((reference.case.program, reference) for reference in references.values())
    everybody = {name: estimate_prior(members) for name, members in programs.items()}
    families = group_pairs((group_of(reference.case), reference) for reference in references.values())
    priors = {key: estimate_prior(members) or everybody[key[0]] for key, members in families.items()}
    return {case: replace(each, prior=priors[group_of(case)]) for case, each in references.items()}


def group_of(case: Case) -> CaseGroup:
    """Return the group of a case: its program and class of sizes."""
    return case.program, class_of(case)


def class_of(case: Case) -> int:
    """Return the class of sizes of a case: its place in :data:`SIZES`."""
    return (case.bytes >= SMALL_BYTES) + (case.bytes >= LARGE_BYTES)


def find_stand_ins(headlines: Mapping[Case, Reference]) -> dict[int, Prior]:
    """Find, by class of sizes, what stands in for a program whose launches do not tell yet how they differ.

    It is what the headlines of other programs of the same environment say: they are means of calls too. It
    counts for no more degrees of freedom than a measurement of another machine. Of several programs the
    widest counts.
    """
    found: dict[int, Prior] = {}
    for case, each in headlines.items():
        size, prior = class_of(case), each.prior
        if prior and not each.exact and (size not in found or prior.spread > found[size].spread):
            found[size] = Prior(prior.spread, min(prior.degrees, ELSEWHERE))
    return found


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


#: Degrees of freedom that a measurement elsewhere is worth: another machine may be twice as restless
ELSEWHERE = 5.0
#: And all similar cases together for each session beyond the first: they share what an hour does to the machine
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
    """Find what is known of a case's sessions; of an unknown cache state the widest of its class."""
    least = LEAST_BYTES[group_of(case)[1]]
    if found := table.get((case.cache, least)):
        return found
    some = [prior for (_, size), prior in table.items() if size == least] or list(table.values())
    return max(some, key=lambda each: each.spread, default=None)


def add_session_priors(references: Mapping[Case, Reference], table: PriorTable) -> dict[Case, Reference]:
    """Return the references with what is known of their sessions, from similar cases and from the table.

    Where the similar cases are too few, all cases of the program stand in.
    """
    families: dict[CaseGroup, list[Reference]] = {}
    programs: dict[str, list[Reference]] = {}
    for reference in references.values():
        own = replace(reference, session_prior=None)
        families.setdefault(group_of(reference.case), []).append(own)
        programs.setdefault(reference.case.program, []).append(own)
    everybody = {name: estimate_similar_spread(members) for name, members in programs.items()}
    similar = {key: estimate_similar_spread(members) or everybody[key[0]] for key, members in families.items()}
    found = {}
    for case, each in references.items():
        stored = None if each.exact else find_stored_prior(table, case)
        prior = join_priors(stored, similar[group_of(case)]) if stored else None
        found[case] = replace(each, session_prior=prior)
    return found


def estimate_similar_spread(some: Sequence[Reference]) -> tuple[Prior, float] | None:
    """Estimate the spread between sessions of these cases, and what their sessions are worth.

    None if they are too few, or of one session.
    """
    known = [(reference, *estimate_means_variance(reference)) for reference in some if not reference.exact]
    known = [each for each in known if each[1] > 0]
    if len(known) < LEAST_GROUP_SIZE:
        return None
    degrees = np.array([told for _, _, told in known])
    fit = fit_prior(np.sqrt([means for _, means, _ in known]), degrees)
    within = np.mean([each.moderated[0] ** 2 * each.inverse_launches for each, _, _ in known])
    spread = math.sqrt(max(fit.spread**2 - float(within), 0.0))
    return Prior(spread, fit.degrees), SIMILAR_DEGREES * float(np.median(degrees))


def join_priors(stored: Prior, similar: tuple[Prior, float] | None) -> Prior:
    """Join what was measured elsewhere and what similar cases say, each by its degrees of freedom."""
    if similar is None:
        return stored
    here, worth = similar
    spread, together = stored.moderate(here.spread, worth)
    return Prior(float(spread), min(here.degrees, together))


def measure_spreads(rows: Iterable[Mapping[str, str]], gap: float = SESSION_GAP) -> dict[Key, MeasuredSpread]:
    """Measure the spread between sessions from launches of several bursts, by cache state and class of sizes.

    It follows from the mean of the variances, so that restless cases count. A class of few cases is measured by
    all cases of its state.

    :param gap: seconds between two sessions
    """
    cases: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for row in rows:
        key = (row["state"], row["environment"], row["routine"], row["bytes"])
        cases.setdefault(key, []).append((row["utc"], float(row["headline_us"])))
    found: dict[Key, list[SessionMeans]] = {}
    for (state, _, _, size), launches in cases.items():
        numbers = number_sessions([utc for utc, _ in launches], gap)
        told = summarize_sessions([value for _, value in launches], numbers)
        if told.evidence.sessions > 1:
            least = max(each for each in LEAST_BYTES if each <= int(size))
            found.setdefault((state, least), []).append(told)
    return {key: pool_spreads(some, find_state(found, key[0])) for key, some in sorted(found.items())}


def find_state(found: Mapping[Key, Sequence[SessionMeans]], state: str) -> list[SessionMeans]:
    """Find all cases of a cache state."""
    return [each for (other, _), some in found.items() if other == state for each in some]


def pool_spreads(some: Sequence[SessionMeans], alike: Sequence[SessionMeans]) -> MeasuredSpread:
    """Pool the variances of these cases, or, where they are few, of all that are alike."""
    told = some if len(some) >= LEAST_GROUP_SIZE else alike
    excess = [each.evidence.between - each.spread**2 * each.evidence.inverse_launches for each in told]
    spread = math.sqrt(max(float(np.mean(excess)), 0.0))
    most = max(each.evidence.sessions for each in told)
    return MeasuredSpread(Prior(spread, ELSEWHERE), most, len(told))


def main(path: str, gap: float = SESSION_GAP) -> None:
    """Print the table that follows from the launches of a file."""
    with open(path, newline="", encoding="utf-8") as file:
        found = measure_spreads(csv.DictReader(file), gap)
    print("\t".join(SPREAD_COLUMNS))
    for (cache, least), each in found.items():
        told = (f"{each.prior.spread:.4f}", f"{each.prior.degrees:g}", each.sessions, each.cases)
        print("\t".join(map(str, (cache, least, *told))))


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:3]))
