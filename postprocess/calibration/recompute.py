"""Compute the ledger's values anew from the trials that the store keeps, without a launch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.calibration.ledger import SCHEMA, CalibrationLaunch, locate_ledger, read_ledger_file
from postprocess.model.measurement import TrialSummary
from postprocess.model.routines.mpicost import OWN_PROGRAMS
from postprocess.results.store import SUFFIX, read_session
from postprocess.stats.headline import summarise_trials

SAME = 1e-9  #: relative difference of one number, written twice
COLUMNS = ("key", "launch", "t_max", "late", "dropped")


@dataclass(frozen=True)
class Recomputed:
    """What came of the ledger: values by how much they moved, on the logarithm, and launches without trials."""

    moved: dict[str, list[float]]  #: by key of the case, of those that did
    launches: int
    without_trials: int


def recompute_ledger(work: Path, store: Path) -> Recomputed:
    """Compute the numbers of every calibrated launch of mpicost anew, and write those that changed.

    :raises UsageError: naming the first file of the ledger or the store that is damaged or cannot be written
    """
    moved: dict[str, list[float]] = {}
    launches = without = 0
    for path in sorted(locate_ledger(work).glob("*.json")):
        some, afresh = read_ledger_file(path)
        trials = read_trials(store / f"{path.stem}{SUFFIX}")
        found = []
        for each in some:
            measured = each.program in OWN_PROGRAMS and not each.exact
            launches += measured
            new = recompute_launch(each, trials) if measured else each
            without += measured and new is None
            found.append(new or each)
            for key, value in (new or each).values.items():
                if not math.isclose(value, each.values[key], rel_tol=SAME):
                    moved.setdefault(key, []).append(math.log(value / each.values[key]))
        if found != some:
            write_ledger_file(path, found, afresh)
    return Recomputed(moved, launches, without)


def write_ledger_file(path: Path, launches: Sequence[CalibrationLaunch], afresh: Sequence[str]) -> None:
    """Write the file of a session's launches in the place of the one that is there."""
    data = {"schema": SCHEMA, "afresh": sorted(afresh), "launches": [asdict(launch) for launch in launches]}
    try:
        files.replace_files({path: (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()})
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; make room") from None


def read_trials(path: Path) -> dict[int, dict[str, TrialSummary]]:
    """Read the statistics of the trials of a session, by launch and key; nothing if it is not stored."""
    if not path.exists():
        return {}
    frame = read_session(path, COLUMNS).filter(pl.col("t_max").list.len() > 0)
    found: dict[int, dict[str, TrialSummary]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row["launch"], {})[row["key"]] = summarise_row(row)
    return found


def summarise_row(row: Mapping[str, Any]) -> TrialSummary:
    """Summarise the trials of a row of the store."""
    late = np.array(row["late"], dtype=bool)
    return summarise_trials(np.array(row["t_max"], dtype=np.float64), late, row["dropped"])


def recompute_launch(
    launch: CalibrationLaunch, trials: Mapping[int, Mapping[str, TrialSummary]]
) -> CalibrationLaunch | None:
    """Return a launch with the numbers that its trials have; None if the store does not have them.

    The ledger tells no number of the launch: it is the one whose headlines it has.
    """
    for summaries in trials.values():
        if all(_is_of(launch, key, summaries) for key in launch.values):
            return replace(
                launch,
                values={key: summaries[key].steady for key in launch.values},
                headlines={key: summaries[key].headline for key in launch.values},
            )
    return None


def _is_of(launch: CalibrationLaunch, key: str, summaries: Mapping[str, TrialSummary]) -> bool:
    """Return whether the headline of a case in a stored launch is that of one of the ledger."""
    known = launch.headlines.get(key, launch.values[key])
    return key in summaries and math.isclose(summaries[key].headline, known, rel_tol=SAME)
