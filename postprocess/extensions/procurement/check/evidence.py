"""From the files that launches left to the values of rows: the same code for bidder and buyer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from postprocess.extensions.procurement.check.data import OfferPass
from postprocess.extensions.procurement.rules.lint import AskedCase, OfferPlan, plan_offer
from postprocess.extensions.procurement.rules.rules_data import RuleCase, Rules
from postprocess.judging.outcome import assess_launch
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.measurement import Measurement
from postprocess.model.plan import PlannedLaunch
from postprocess.stats.placement import find_farthest
from site_configs.mpi.family import identify_library
from spack_envs.programs import BuiltBinary

SIMULATED = "simgrid"
TIMES = "times"  #: with which the mark of trials begins
FEWEST_VALUES = 16  #: different times of a case; with fewer another may have the same


@dataclass(frozen=True, eq=False)
class LaunchEvidence:
    """A launch of an offer, with what it left."""

    done: OfferPass
    launch: PlannedLaunch
    session: Path

    @cached_property
    def outcome(self) -> LaunchOutcome:
        """What became of it, found out anew from its files."""
        return assess_launch(self.launch, self.session)

    @property
    def run(self) -> dict:
        """The run record; empty if the launch failed."""
        return self.outcome.records.run if self.outcome.records else {}

    @property
    def family(self) -> str:
        """The family of its MPI, as its records tell it; of one that failed as it was planned."""
        if self.launch.exact:
            return SIMULATED
        return identify_library(self.run.get("mpi_library", self.launch.library))[0]

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """What it is known by: its token and, where time was measured, the trials of each case."""
        token = [f"token {self.launch.token}"] if self.launch.token else []
        if self.launch.exact or self.outcome.records is None:
            return tuple(token)  # simulated launches take the same times
        measured = self.outcome.records.measurements
        trials = [each.record for _, each in sorted(measured.items()) if each.record is not None]
        times = [array for trial in trials for array in (trial.t_max, trial.t_min)]
        known = [each for each in times if len(set(each.tolist())) >= FEWEST_VALUES]
        digests = [hashlib.sha256(each.tobytes()).hexdigest() for each in known]
        return (*token, *(f"{TIMES} {digest}" for digest in dict.fromkeys(digests)))

    def finish(self, built: BuiltBinary | None = None) -> FinishedLaunch:
        """Return the launch as its session had it."""
        return FinishedLaunch(self.launch, self.outcome, 0.0, "", {}, built.spec if built else "", built)

    @property
    def place(self) -> str:
        """Where it is found in the folder."""
        return f"{self.done.session}/{self.launch.name}"


class RowKey(NamedTuple):
    """A row of the form."""

    case: str
    bytes: int
    environment: str
    category: str

    @property
    def key(self) -> str:
        """The key as text: ``latency/8/mpich-5_0_2/baseline``."""
        return "/".join(map(str, self))


@dataclass(frozen=True)
class MeasuredRow:
    """What launches say of a row. Values are in ``unit``, one a launch."""

    key: RowKey
    rule: RuleCase
    layout: str
    family: str
    unit: str
    values: tuple[float, ...]
    exact: bool
    passes: tuple[int, ...]  #: number of each value's pass
    #: Longest time from core to core of each launch, in seconds; None where nothing tells
    cores: tuple[float | None, ...] = ()


def plan_of(rules: Rules, done: OfferPass) -> OfferPlan:
    """Plan the rules on the machine of a pass."""
    return plan_offer(rules, done.machine)


def collect_rows(rules: Rules, evidence: Sequence[LaunchEvidence]) -> list[MeasuredRow]:
    """Collect the rows that were measured, in the order of the rules."""
    found: dict[RowKey, list[tuple[LaunchEvidence, str, Measurement]]] = {}
    plans: dict[int, OfferPlan] = {}
    for each in evidence:
        plan = plans.setdefault(each.done.number, plan_of(rules, each.done))
        if each.outcome.records is None:
            continue
        for asked, case in match_cases(plan, each.launch.cases):
            if asked.case.mpi not in ("any", each.family):
                continue
            measured = each.outcome.records.measurements.get(case.variable)
            if measured and not measured.unseen:
                key = RowKey(asked.case.name, case.bytes, each.launch.environment, each.done.category)
                found.setdefault(key, []).append((each, case.layout, measured))
    order = {name: number for number, name in enumerate(each.name for each in rules.case)}
    return [
        build_row(rules.find_case(key.case), key, found[key])
        for key in sorted(found, key=lambda k: (order[k.case], k.bytes, k.category, k.environment))
    ]


def match_cases(plan: OfferPlan, cases: Sequence[Case]) -> Iterator[tuple[AskedCase, Case]]:
    """Match measured cases with those of the rules."""
    for case in cases:
        for asked in plan.possible:
            if case.bytes in asked.case.bytes and asked.matches(case, case.bytes):
                yield asked, case


def build_row(
    rule: RuleCase, key: RowKey, found: Sequence[tuple[LaunchEvidence, str, Measurement]]
) -> MeasuredRow:
    """Build a row from its launches."""
    first, layout, measured = found[0]
    return MeasuredRow(
        key,
        rule,
        layout,
        first.family,
        measured.unit,
        tuple(read_statistic(rule, each) for _, _, each in found),
        first.launch.exact,
        tuple(each.done.number for each, _, _ in found),
        tuple(find_farthest(each.core_latency) for _, _, each in found),
    )


def read_statistic(rule: RuleCase, measured: Measurement) -> float:
    """Read what a launch says of a case: its judged value, or the 99th percentile of its trials."""
    if rule.statistic == "p99" and measured.summary:
        return measured.summary.p99
    return measured.value
