"""Collect noise data for each case: launches from the ledger, their trials from the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from postprocess.base.progress import Progress
from postprocess.calibration.samples import CaseSample
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.reference import Prior, Reference
from postprocess.references.session_priors import load_session_priors
from postprocess.results.store import SUFFIX, read_session
from postprocess.stats.estimate import estimate_references
from postprocess.stats.planning.trial_allocation import (
    KnownCase,
    estimate_noise,
    estimate_trial_variance,
)
from postprocess.stats.session_prior import add_session_priors
from postprocess.stats.sessions import add_evidence, estimate_session_spread
from postprocess.stats.shrinkage import add_priors

LEAST_LAUNCHES = 5  #: of a case; fewer do not show how launches differ
MOST_RESAMPLED = 10  #: launches of a case; more would change nothing that is shown
SEED = 20131  #: the same calibrations give the same answer
COLUMNS = ("session", "key", "value", "t_max", "late", "dropped")
Headline = tuple[str, str, float]  #: session, key of the case and value: one launch of one case


@dataclass(frozen=True)
class TrialNoise:
    """The noise in the trials of a launch."""

    variance: float  #: of ln headline, that one trial brings in
    counted: int  #: trials that count


def collect_known_noise(
    samples: Mapping[Case, CaseSample], store: Path, progress: Progress
) -> tuple[list[KnownCase], list[Case]]:
    """Collect the cases of known noise, and those with enough launches of which the store has no trials."""
    homes = {case: each.at_home for case, each in samples.items()}
    enough = {case: each for case, each in homes.items() if len(each.values) >= LEAST_LAUNCHES}
    with progress.phase("resampling trials"):
        within = resample_trials(enough.values(), store, progress)
    known, without = [], []
    for case, reference in estimate_case_references(enough).items():
        some = within.get(case.key, [])
        if case.program == "mpicost" and not some:
            without.append(case)
            continue
        trials = [each.variance for each in some], [each.counted for each in some]
        apart = reference.launches > reference.sessions and reference.session_prior
        session = Prior(estimate_session_spread(reference), apart.degrees) if apart else None
        numbers = enough[case].sessions if session else ()
        noise = estimate_noise(enough[case].values, *trials, sessions=numbers)
        prior_degrees = reference.prior.degrees if reference.prior else 0.0
        known.append(
            KnownCase(case, noise, reference.launches, prior_degrees, enough[case].unit, session)
        )
    return known, without


def estimate_case_references(samples: Mapping[Case, CaseSample]) -> dict[Case, Reference]:
    """Estimate the references of these cases, each with what similar cases and sessions of its file tell."""
    found: dict[Case, Reference] = {}
    for place in sorted({ReferencePlace.of(case) for case in samples}):
        own = {case: each for case, each in samples.items() if ReferencePlace.of(case) == place}
        values = {case: each.values for case, each in own.items()}
        sessions = {case: each.sessions for case, each in own.items()}
        rows = {each.case: each for each in estimate_references(values, sessions)}
        told = {case: (values[case], sessions[case], own[case].days) for case in rows}
        found |= add_session_priors(add_priors(add_evidence(rows, told)), load_session_priors())
    return found


def resample_trials(
    samples: Iterable[CaseSample], store: Path, progress: Progress
) -> dict[str, list[TrialNoise]]:
    """Resample the trials of the last launches of each case of mpicost, by key."""
    wanted = {
        (launch.session, each.case.key, launch.values[each.case.key])
        for each in samples
        if each.case.program == "mpicost"
        for launch in each.launches[-MOST_RESAMPLED:]
    }
    random = np.random.default_rng(SEED)
    found: dict[str, list[TrialNoise]] = {}
    for session in sorted({session for session, _, _ in wanted}):
        progress.now(f"resampling the trials of {session}")
        for key, times in read_counted_trials(store / f"{session}{SUFFIX}", wanted):
            each = TrialNoise(estimate_trial_variance(times, random), times.size)
            found.setdefault(key, []).append(each)
    return found


def read_counted_trials(path: Path, wanted: set[Headline]) -> Iterator[tuple[str, np.ndarray]]:
    """Read the trials that count of the wanted launches of a session; none of an interrupted one.

    :raises UsageError: if the file is damaged
    """
    if not path.exists():
        return
    frame = read_session(path, COLUMNS).filter(
        pl.col("key").is_in(list({key for _, key, _ in wanted})), pl.col("t_max").list.len() > 0
    )
    for session, key, value, t_max, late, dropped in frame.sort("key", "value").iter_rows():
        times = np.asarray(t_max, dtype=np.float64)
        counts = ~np.asarray(late or [False] * times.size, dtype=bool)
        counts[:dropped] = False
        if (session, key, value) in wanted and np.count_nonzero(counts) > 1:
            yield key, times[counts]
