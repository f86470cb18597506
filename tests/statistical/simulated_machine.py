"""Nights on a machine whose truth is known: simulated times, with noise of sessions and of launches laid over.

Usage: ``python -m tests.statistical.simulated_machine [NIGHTS]``.

The times are those of the simulated machine ``fattree``, the noise is what real sessions and launches left.
Five bursts on five days make the references, and unchanged nights follow, each on a day of its own.
Everything else is the package's own: references and their provenance, the store, what nights tell of the
spread, bands, confirmation in fresh launches of the same session, common causes, and the score of the
self-test, which says what was predicted.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from postprocess.judging.night_history import collect_night_spreads
from rich.console import Console

from postprocess.analyses.selftest.data import CaseNight, FinishedNight
from postprocess.analyses.selftest.injections import Injection
from postprocess.analyses.selftest.schedule import InjectionNight
from postprocess.analyses.selftest.score import predict_verdict
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import update
from postprocess.model.case import Case, LaunchPlace, ReferencePlace
from postprocess.model.conditions import circumstances_of, method_of
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.measurement import Measurement
from postprocess.model.options import AGAIN
from postprocess.model.session import Selection, Session
from postprocess.references.catalog import load_catalog
from postprocess.references.reference_file import load_references
from postprocess.session.selftest.night import SelftestBench
from postprocess.stats.shrinkage import SIZES, group_of
from tests.statistical.simulated_sessions import LEVELS, NOISES, SCATTER
from tests.support.factories import ledger, record
from tests.support.factories.launch import planned
from tests.support.paths import ROOT

SOURCE = ReferencePlace("simulated", "fattree", "simgrid-mpich")
PLACE = ReferencePlace("simulated", "fattree", "mpich-5_0_2")  #: no exact one: its launches differ
EVERY = 6  #: of so many cases one is taken
BURSTS, LAUNCHES, NIGHTS = 5, 4, 60
PLANTS = {0.10: "slower-10", 0.20: "slower-20", 0.50: "slower-50"}
ROUTINES = ("allgather", "bcast", "reduce_sum", "scatter")
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedRecords:
    """What a launch wrote: a headline of each case."""

    run: dict[str, Any]
    measurements: dict[str, Measurement]
    wrong: dict[str, str] = field(default_factory=dict)

    def resolution(self, unit: str) -> float:
        """The clock is exact."""
        return 0.0


def load_truth(state: str) -> dict[Case, float]:
    """Load what cases cost on the simulated machine, in seconds, as cases of a machine with noise."""
    path = ROOT / "reference_data" / SOURCE.system / SOURCE.partition / f"{SOURCE.environment}.tsv"
    known = load_references(path, *SOURCE)
    return {
        replace(case, environment=PLACE.environment, cache=state): known[case].center
        for case in sorted(known)[::EVERY]
    }


class NoisyMachine:
    """Cases with their true times, how restless each is, and the session that it is in."""

    def __init__(self, noise: str, state: str = "evict", seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)
        self.truth = load_truth(state)
        self.cases = tuple(self.truth)
        self.noise = NOISES[noise]
        self.between, self.within = (
            level * np.exp(self.random.normal(0, SCATTER, len(self.cases)))
            for level in LEVELS[state]
        )
        self.states, self.launches = (self.draw(each) for each in self.noise)

    def draw(self, source: Any) -> Numbers:
        """Draw the noise of many sessions or launches at once: each case keeps to its own distribution."""
        return source(self.random, (len(self.cases), 2_000))

    def begin_session(self) -> None:
        """Let another hour come."""
        self.hour = self.states[:, self.random.integers(self.states.shape[1])] * self.between

    def launch(self, slower: dict[Case, float]) -> dict[Case, float]:
        """Launch every case once in this session: its headlines in seconds."""
        own = self.launches[:, self.random.integers(self.launches.shape[1])] * self.within
        factors = np.exp(self.hour + own)
        return {
            case: self.truth[case] * (1 + slower.get(case, 0.0)) * float(factor)
            for case, factor in zip(self.cases, factors, strict=True)
        }


class SimulatedBench(SelftestBench):
    """The nights of a self-test, whose launches are drawn instead of made."""

    machine: NoisyMachine
    run: dict[str, Any]
    root: Path
    moment: datetime
    slower: dict[Case, float]
    kept: bool  #: whether the night is one of the site's, of which later ones learn

    def measure(self, context: Any, selection: Selection) -> tuple[Session, list, list]:
        """Draw the launches of a night, or fresh ones of the same session."""
        fresh = AGAIN in selection.choice
        if not fresh:
            self.machine.begin_session()
        self.moment += timedelta(minutes=1)
        mode = "nightly" if self.kept and not fresh else "again"
        name = self.moment.strftime("%Y%m%dT%H%M%SZ-1")
        started = self.moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        session = Session(self.root / name, mode, PLACE.system, (), False, started)
        wanted = {(each["routine"], each["layout"]) for each in selection.choice.get(AGAIN, ())}
        cases = [
            each
            for each in self.machine.cases
            if not fresh or (each.routine, each.layout) in wanted
        ]
        numbers = range(1, selection.launches + 1)
        launches = [each for number in numbers for each in self.finish(number, cases)]
        return session, [each.launch for each in launches], launches

    def finish(self, number: int, cases: Sequence[Case]) -> Iterator[FinishedLaunch]:
        """Draw one launch of each layout."""
        values = self.machine.launch(self.slower)
        for place in sorted({LaunchPlace.of(case) for case in cases}):
            some = tuple(case for case in cases if LaunchPlace.of(case) == place)
            told = {case.variable: Measurement(values[case], best=values[case]) for case in some}
            launch = planned(
                partition=f"{PLACE.system}:{PLACE.partition}",
                environment=PLACE.environment,
                number=number,
                cases=some,
                asserted=False,  # no ReFrame takes part
            )
            outcome = LaunchOutcome(SimulatedRecords(self.run, told))
            yield FinishedLaunch(launch, outcome, 1.0, "", {})

    def calibrate(self, bursts: int) -> None:
        """Take the references in bursts, one a day."""
        taken = []
        facts = {"method": method_of(self.run, exact=False)}
        for _ in range(bursts):
            self.machine.begin_session()
            self.moment += timedelta(days=1)
            for _ in range(LAUNCHES):
                self.moment += timedelta(minutes=1)
                taken.append(
                    ledger.launch(
                        self.machine.launch({}),
                        session=self.moment.strftime("%Y%m%dT000000Z-1"),
                        ended_utc=self.moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                        place=PLACE,
                        facts=facts,
                        circumstances=circumstances_of(self.run),
                    )
                )
        update.update_references(self.root / "references", taken, None)

    def spend_night(self, number: int, *plants: Injection) -> FinishedNight:
        """Spend a night that knows those before it; one without a plant is the site's own."""
        self.moment = self.moment.replace(hour=1, minute=0) + timedelta(days=1)
        self.slower = {
            case: plant.kind.fraction
            for plant in plants
            for case in self.machine.cases
            if plant.slows(case)
        }
        self.kept = not plants
        nights = collect_night_spreads(self.context.work.store, self.machine.cases)
        place = (f"{PLACE.system}:{PLACE.partition}", PLACE.environment)
        self.catalog = load_catalog([self.root / "references"], [place], nights)
        return self.night(InjectionNight(number, plants))


def build_bench(
    root: Path, noise: str, state: str = "evict", bursts: int = BURSTS
) -> SimulatedBench:
    """Build a machine with its references, so long ago that its nights are of the last three months."""
    work = WorkDirectory(root, ROOT)
    work.store.mkdir(parents=True, exist_ok=True)
    request = SimpleNamespace(site=PLACE.system)
    context: Any = _Context(work, request, Progress(Console(quiet=True)))
    bench = SimulatedBench(context, Selection(Path("simulated.py")))
    bench.machine, bench.root, bench.slower = NoisyMachine(noise, state), root, {}
    bench.run = record.launch()[0]
    now = datetime.now(timezone.utc).replace(microsecond=0, second=0)
    bench.moment = now - timedelta(days=89)
    bench.prefixes = {PLACE.environment: Path("/nowhere")}
    bench.calibrate(bursts)
    return bench


@dataclass(frozen=True)
class _Context:
    """The part of a session's context that a night asks for."""

    work: WorkDirectory
    request: Any
    progress: Progress


def spend_nights(bench: SimulatedBench, nights: int = NIGHTS) -> list[FinishedNight]:
    """Spend unchanged nights."""
    return [bench.spend_night(number) for number in range(1, nights + 1)]


def spend_planted_nights(bench: SimulatedBench, by: float, first: int) -> list[FinishedNight]:
    """Spend a night with each routine slower. No night learns of them."""
    found = []
    for number, routine in enumerate(ROUTINES, start=first):
        plant = Injection(PLACE.environment, PLANTS[by], routine)
        found.append(bench.spend_night(number, plant))
    return found


def select_rows(nights: Sequence[FinishedNight], target: bool) -> list[CaseNight]:
    """Select the cases that were slowed, or those that were not."""
    return [row for night in nights for row in night.rows if row.target == target]


def describe_promises(
    rows: Sequence[CaseNight], by: float
) -> list[tuple[str, int, float, int, int]]:
    """Describe by class of sizes: targets, promised, caught, and suspect ones."""
    found = []
    for number, size in enumerate(SIZES):
        some = [row for row in rows if group_of(Case.from_key(row.key))[1] == number]
        promised = sum(predict_verdict(row, math.log1p(by))[1] for row in some)
        caught, suspect = (
            sum(getattr(row, name) for row in some) for name in ("regressed", "suspect")
        )
        found.append((size, len(some), promised, caught, suspect))
    return found


def describe_healthy(rows: Sequence[CaseNight]) -> str:
    """Describe what was beyond the band and called of cases that are well, and what was predicted."""
    chances = [predict_verdict(row, 0.0) for row in rows]
    beyond, called = (sum(getattr(row, name) for row in rows) for name in ("screened", "regressed"))
    told = (beyond, sum(each for each, _ in chances), called, sum(each for _, each in chances))
    words = "{:.1f} beyond ({:.1f} predicted), {:.2f} called ({:.2f})"
    per_thousand = words.format(*(1000 * each / len(rows) for each in told))
    return f"{len(rows)} cases and nights, per 1,000: {per_thousand}"


def main(nights: int) -> None:
    """Print what was beyond the band, called and caught, beside what was predicted."""
    for state, noise in product(LEVELS, NOISES):
        with TemporaryDirectory() as folder:
            bench = build_bench(Path(folder), noise, state)
            healthy = select_rows(spend_nights(bench, nights), target=False)
            print(f"{state}, {noise}: {describe_healthy(healthy)}", flush=True)
            for by in PLANTS:
                planted = spend_planted_nights(bench, by, nights + 1)
                for told in describe_promises(select_rows(planted, target=True), by):
                    words = "{}: {} cases, {:.1f} promised, {} called, {} suspect"
                    print(f"  +{by:.0%},", words.format(*told))
                print(
                    f"  beside: {describe_healthy(select_rows(planted, target=False))}", flush=True
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NIGHTS)
