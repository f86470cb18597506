"""Convert the launches of a sweep to one time per pair of nodes, launch and measure.

Every trial of every pair is kept beside the results store: ``<store>/pairs/<session>.parquet``.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from postprocess.base import files
from postprocess.base.errors import explaining
from postprocess.base.formats import natural_sort_key
from postprocess.base.grouping import group_pairs
from postprocess.features.links.detect import Matrix, PairTimes
from postprocess.model.launch import FinishedLaunch
from postprocess.model.measurement import CaseRecord
from postprocess.model.routines.mpicost import PINGPONG, TOURNAMENT
from postprocess.results import store

STATISTICS: dict[str, Callable[[Any], Any]] = {"median": np.median, "mean": np.mean}
MEASURES = 2 * len(STATISTICS)  #: two sizes, by each statistic
COLUMNS: dict[str, Any] = {
    "session": pl.String,
    "partition": pl.String,
    "environment": pl.String,
    "launch": pl.Int64,
    "routine": pl.String,
    "bytes": pl.Int64,
    "peer": pl.Int64,
    "node_a": pl.String,
    "node_b": pl.String,
    "t": pl.List(pl.Float64),
    "counts": pl.List(pl.Boolean),
}
SCHEMA = pl.Schema(COLUMNS)


@dataclass(frozen=True, eq=False)
class PairSweep:
    """All launches of one environment on one partition. Matrices: (launches, nodes, nodes), seconds."""

    partition: str
    environment: str
    nodes: tuple[str, ...]
    measures: tuple[PairTimes, ...]  #: all nodes busy
    #: By bytes: the pairs of the first rank while all others are quiet, median of the trials.
    quiet: dict[int, Matrix]
    exact: bool

    @property
    def launches(self) -> int:
        return self.measures[0].times.shape[0]

    @property
    def pairs(self) -> int:
        measured = np.isfinite(self.measures[0].times).any(axis=0)
        return int(np.triu(measured, 1).sum())

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Pairs of nodes that some launch lacks in some measure: it ran on other nodes."""
        whole = np.all([np.isfinite(measure.times).all(axis=0) for measure in self.measures], axis=0)
        pairs = combinations(range(len(self.nodes)), 2)
        return [(self.nodes[a], self.nodes[b]) for a, b in pairs if not whole[a, b]]


@dataclass(frozen=True)
class PairTrials:
    """All trials of a pair in one case of one launch, in seconds."""

    launch: int
    routine: str
    bytes: int
    peer: int  #: round of the tournament, or partner of the first rank
    node_a: str
    node_b: str
    t: NDArray[np.float64]
    counts: NDArray[np.bool_]  #: trials that are neither dropped nor late


def build_sweeps(finished: Sequence[FinishedLaunch], per_switch: int = 0) -> list[PairSweep]:
    """Build one sweep for each partition and environment all of whose launches ended well.

    :param per_switch: nodes of a switch, in the order of their names; 0 where that is not known.
    """
    places = group_pairs(((run.launch.partition, run.launch.environment), run) for run in finished)
    return [
        build_sweep(launches, per_switch)
        for launches in places.values()
        if all(launch.outcome.records for launch in launches)
    ]


def build_sweep(launches: Sequence[FinishedLaunch], per_switch: int = 0) -> PairSweep:
    nodes = tuple(
        sorted({name for launched in launches for name in list_rank_hosts(launched.run)}, key=natural_sort_key)
    )
    exact = all(run.launch.exact for run in launches)
    statistics = ["median"] if exact else list(STATISTICS)
    matrices: dict[tuple[str, int, str], Matrix] = {}
    shape = (len(launches), len(nodes), len(nodes))
    number = {name: place for place, name in enumerate(nodes)}
    for place, launch in enumerate(launches):
        for pair in iter_pair_trials(launch):
            a, b = number[pair.node_a], number[pair.node_b]
            for statistic in statistics:
                key = (pair.routine, pair.bytes, statistic)
                matrix = matrices.setdefault(key, np.full(shape, np.nan))
                matrix[place, a, b] = STATISTICS[statistic](pair.t[pair.counts])
                matrix[place, b, a] = matrix[place, a, b]
    switch = tuple(place // per_switch for place in range(len(nodes))) if per_switch else ()
    first = launches[0].launch
    return PairSweep(
        partition=first.partition,
        environment=first.environment,
        nodes=nodes,
        measures=tuple(
            PairTimes(size, statistic, matrix, switch)
            for (routine, size, statistic), matrix in sorted(matrices.items())
            if routine == TOURNAMENT
        ),
        quiet={
            size: matrix
            for (routine, size, statistic), matrix in sorted(matrices.items())
            if routine == PINGPONG and statistic == "median"
        },
        exact=exact,
    )


def iter_pair_trials(finished: FinishedLaunch) -> Iterator[PairTrials]:
    names = list_rank_hosts(finished.run)
    dropped = finished.run.get("dropped", 1)
    for case in finished.records.values():
        counts = ~case.late
        counts[:dropped] = False
        for a, b, times in iter_played_pairs(case):
            where = (finished.launch.number, case.routine, case.bytes, case.peer)
            yield PairTrials(*where, names[a], names[b], times, counts)


def iter_played_pairs(case: CaseRecord) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Yield the two ranks of each pair of a case, and their times (trials,) in seconds."""
    if case.routine == PINGPONG:
        yield 0, case.peer, case.t_max
    for pair in case.pairs:
        yield pair.a, pair.b, pair.t


def find_unplayed_pairs(finished: FinishedLaunch) -> list[tuple[str, str]]:
    """Find pairs of nodes that a launch with all nodes busy did not measure at some size, and should have."""
    names = list_rank_hosts(finished.run)
    games: dict[int, set[tuple[int, int]]] = {}
    for case in finished.records.values():
        if case.routine == TOURNAMENT:
            games.setdefault(case.bytes, set()).update((pair.a, pair.b) for pair in case.pairs)
    played_at_all_sizes = set.intersection(*games.values()) if games else set()
    pairs = combinations(range(len(names)), 2)
    return [(names[a], names[b]) for a, b in pairs if (a, b) not in played_at_all_sizes]


def list_rank_hosts(run: dict[str, Any]) -> list[str]:
    return [entry["host"] for entry in sorted(run["ranks"], key=lambda entry: entry["rank"])]


def write_pair_trials(directory: Path, session: str, finished: Sequence[FinishedLaunch]) -> Path:
    """Write every trial of every pair, whole or not at all. Times in seconds.

    :raises UsageError: if the file is there or cannot be written.
    """
    path = directory / "pairs" / f"{session}{store.SUFFIX}"
    rows = [
        {
            "session": session,
            "partition": run.launch.partition,
            "environment": run.launch.environment,
            **vars(pair),
        }
        for run in finished
        if run.outcome.records
        for pair in iter_pair_trials(run)
    ]
    buffer = io.BytesIO()
    pl.DataFrame(rows, schema=SCHEMA).write_parquet(buffer)
    with explaining(f"{path}: cannot be written", "make room"):
        files.create_file(path, buffer.getvalue())
    return path
