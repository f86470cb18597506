"""Made-up machines for the tests of the links' analysis: nodes, noise, far switches, and planted faults."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from postprocess.features.links.detect import PairTimes
from postprocess.judging.outcome import assess_launch
from postprocess.model.launch import FinishedLaunch
from postprocess.stats.launches import summarise_trials
from tests.support.factories import launch as launch_samples
from tests.support.factories import record

TRIALS = 5


@dataclass(frozen=True)
class Machine:
    """A machine whose pairs take a second. All spreads are of the logarithm."""

    nodes: int = 16
    launches: int = 3
    node_spread: float = 0.02  #: between healthy nodes, for good
    pair_spread: float = 0.01  #: between healthy pairs, for good
    noise: float = 0.03  #: of a pair from launch to launch
    tail: float = 3.0  #: degrees of freedom of the noise, Student's t
    disturbed: float = 0.01  #: share of the pairs of a launch that something else makes much slower
    busy: float = 0.0  #: share of the nodes of a launch that other work makes much slower all along
    per_switch: int = 0  #: nodes that are near each other; 0 for all
    far: float = 0.5  #: by which pairs of two switches are slower
    slow_nodes: dict[int, float] = field(default_factory=dict)  #: factor by node
    slow_pairs: dict[tuple[int, int], float] = field(default_factory=dict)

    def measure(self, rng: np.random.Generator, size: int = 1_000_000) -> PairTimes:
        shape = (self.launches, self.nodes, self.nodes)
        own = rng.normal(0, self.node_spread, self.nodes)
        log = own[:, None] + own[None, :] + rng.normal(0, self.pair_spread, shape[1:])
        log = log + self.noise * rng.standard_t(self.tail, shape)
        log = log + rng.exponential(1.0, shape) * (rng.random(shape) < self.disturbed)
        busy = rng.exponential(1.0, shape[:2]) * (rng.random(shape[:2]) < self.busy)
        log = log + busy[:, :, None] + busy[:, None, :]
        if self.per_switch:
            switch = np.arange(self.nodes) // self.per_switch
            log = log + self.far * (switch[:, None] != switch[None, :])
        for node, factor in self.slow_nodes.items():
            log[:, node, :] += np.log(factor)
            log[:, :, node] += np.log(factor)
        for (a, b), factor in self.slow_pairs.items():
            log[:, min(a, b), max(a, b)] += np.log(factor)
        log = np.triu(log, 1) + np.swapaxes(np.triu(log, 1), 1, 2)
        log[:, np.arange(self.nodes), np.arange(self.nodes)] = np.nan
        return PairTimes(size, "median", np.exp(log))

    def measures(self, seed: Sequence[int]) -> list[PairTimes]:
        """A whole sweep: four ways of measuring, each with noise of its own."""
        rng = np.random.default_rng(seed)
        return [self.measure(rng, size) for size in (8, 8, 1_000_000, 1_000_000)]


@dataclass(frozen=True)
class Tournament:
    """What a launch of one rank per node writes, with times that are given."""

    times: Callable[[str, str, int], float]  #: seconds of two nodes at a size
    nodes: tuple[str, ...] = ("n1", "n2", "n3", "n4")
    sizes: tuple[int, ...] = (8, 1_000_000)
    number: int = 1

    def pairs(self, round_number: int) -> list[tuple[int, int]]:
        """Pairs of ranks of a round, from 1, as the suite plays them; with an odd number one is idle."""
        count = len(self.nodes)
        circle = count - 1 + count % 2
        games = {(round_number - 1, count - 1)} if count % 2 == 0 else set()
        for a, b in combinations(range(circle), 2):
            if (a + b) % circle == (2 * round_number - 2) % circle:
                games.add((a, b))
        return sorted(games)

    @property
    def rounds(self) -> range:
        count = len(self.nodes)
        return range(1, count + count % 2)

    def game(self, round_number: int, size: int) -> dict[str, Any]:
        """The case record of a round."""
        played = [
            {"a": a, "b": b, "t": self.trials(self.nodes[a], self.nodes[b], size)}
            for a, b in self.pairs(round_number)
        ]
        times = np.array([pair["t"] for pair in played])
        return self.case("tournament", round_number, size, times) | {"pairs": played}

    def trials(self, a: str, b: str, size: int) -> list[float]:
        """The first trial, which is dropped, is far off."""
        return [9.0, *[self.times(a, b, size)] * (TRIALS - 1)]

    def case(self, routine: str, peer: int, size: int, times: np.ndarray) -> dict[str, Any]:
        """A case record. ``times``: (pairs, trials)."""
        t_max, t_min = times.max(axis=0), times.min(axis=0)
        summary = summarise_trials(t_max, np.zeros(TRIALS, bool), 1, record.RESOLUTION)
        series = {"t_max": t_max, "t_min": t_min, "t_global": t_max, "skew": 0 * t_max}
        changes = {key: values.tolist() for key, values in series.items()} | asdict(summary)
        return record.case_record(routine, size, peer, TRIALS, **changes)

    def records(self) -> list[dict[str, Any]]:
        quiet = [
            self.case("pingpong", peer, size, np.array([self.trials(self.nodes[0], node, size)]))
            for size in self.sizes
            for peer, node in enumerate(self.nodes)
            if peer
        ]
        cases = quiet + [self.game(each, size) for size in self.sizes for each in self.rounds]
        run = record.run_record(len(cases), len(self.nodes), cache="warm", trials=TRIALS)
        run |= {
            "per_node": 1,
            "hosts": [{"name": name, "ranks": 1} for name in self.nodes],
            "ranks": [{"rank": rank, "host": name, "cpus": "0"} for rank, name in enumerate(self.nodes)],
        }
        return [run, *cases, record.end_record(len(cases), "warm")]

    def finished(
        self, session: Path, change: Callable[[list[dict[str, Any]]], None] | None = None, code: str = "0\n"
    ) -> FinishedLaunch:
        """The launch, run; ``change`` damages its records."""
        records = self.records()
        cases = tuple(
            launch_samples.case(
                each["routine"],
                each["bytes"],
                each["peer"],
                cache="warm",
                processes=len(self.nodes),
                per_node=1,
            )
            for each in records[1:-1]
        )
        launch = launch_samples.planned(test="links", cases=cases, trials=TRIALS, number=self.number)
        if change:
            change(records)
        launch_samples.leave(session, launch, records, code)
        said = {case.variable: "pass" for case in cases}
        return FinishedLaunch(launch, assess_launch(launch, session), 1.0, "stage", said)
