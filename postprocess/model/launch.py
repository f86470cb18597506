"""A finished launch: how it ended, and what it measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from postprocess.model.case import Case, LaunchPlace
from postprocess.model.conditions import LaunchConditions, conditions_of
from postprocess.model.measurement import CaseRecord, Lateness, Measurement
from postprocess.model.options import LAUNCHES
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Selection
from postprocess.model.verdict import FAILED_LAUNCH, Verdict
from site_configs.schedulers.base import Ending
from spack_envs.installation import UNKNOWN, BuiltBinary


def select_launch_counts(selection: Selection, counts: Mapping[LaunchPlace, int]) -> Selection:
    """Return the selection with these numbers of launches by place. All other places get one launch."""
    several = sorted((place, count) for place, count in counts.items() if count > 1)
    choice = {name: value for name, value in selection.choice.items() if name != LAUNCHES}
    if several:
        choice[LAUNCHES] = [{**place._asdict(), "launches": count} for place, count in several]
    return replace(selection, choice=choice, launches=max(counts.values(), default=1))


def select_places(choice: Sequence[Mapping[str, Any]], number: int, **place: str | int) -> list[LaunchPlace]:
    """Select the places of a choice that agree with ``place`` and get at least ``number`` launches."""
    return [
        LaunchPlace(*(entry[name] for name in LaunchPlace._fields))
        for entry in choice
        if entry["launches"] >= number and all(entry[name] == place[name] for name in place)
    ]


class Records(Protocol):
    """What a launch of any program wrote."""

    @property
    def run(self) -> dict[str, Any]: ...

    @property
    def end(self) -> dict[str, Any]: ...

    @property
    def mpi_library(self) -> str: ...

    @property
    def measurements(self) -> Mapping[str, Measurement]:
        """Measurements by variable of the case."""

    @property
    def wrong(self) -> Mapping[str, str]:
        """Damaged data in one line each, by variable of the case. Such cases have no measurement."""

    @property
    def lateness(self) -> Lateness | None:
        """The ranks' lateness, if the program records it."""

    def resolution(self, unit: str) -> float:
        """Return the smallest step of a value, in ``unit``."""


#: Fields of :class:`BuiltBinary` that the run record fills if they are unknown, with its keys.
TOLD_BY_RUN = {"version": "suite_version", "compiler": "compiler", "flags": "compiler_flags"}
TCP_PACKETS = "tcp_packets"  #: key in run and end records of mpicost; -1 if the kernel does not count them


@dataclass(frozen=True)
class FinishedLaunch:
    launch: PlannedLaunch
    outcome: LaunchOutcome
    seconds: float  #: wall time
    directory: str  #: ReFrame's stage directory
    asserted: Mapping[str, str]  #: ReFrame's result of each performance variable
    spec: str = ""  #: Spack's spec with its hash, or ``cmake``
    built: BuiltBinary | None = None  #: what is known about the build

    @cached_property
    def measurements(self) -> Mapping[str, Measurement]:
        """Measurements by variable; empty if the launch failed."""
        return self.outcome.records.measurements if self.outcome.records else {}

    @cached_property
    def records(self) -> dict[str, CaseRecord]:
        """Trials by variable; empty for a program that does not write them."""
        return {
            name: measurement.record for name, measurement in self.measurements.items() if measurement.record
        }

    @property
    def wrong(self) -> Mapping[str, str]:
        """Descriptions of damaged data by variable; empty if the whole launch failed."""
        return self.outcome.records.wrong if self.outcome.records else {}

    def failure(self, case: Case) -> LaunchOutcome | None:
        """Return what failed a case: the whole launch, or wrong data of the case; None if nothing did."""
        if self.outcome.verdict in FAILED_LAUNCH:
            return self.outcome
        wrong = self.wrong.get(case.variable)
        return fail_launch(Verdict.INCORRECT, wrong) if wrong else None

    @property
    def run(self) -> dict[str, Any]:
        """The run record; empty if the launch failed."""
        return self.outcome.records.run if self.outcome.records else {}

    @property
    def binary(self) -> BuiltBinary:
        """The program as built. The running program fills in what the build does not record."""
        launch = self.launch
        built = self.built or BuiltBinary(launch.environment, launch.program, path="", spec=self.spec)
        facts = {name: self.run.get(key, UNKNOWN) for name, key in TOLD_BY_RUN.items()}
        return replace(built, **{name: fact for name, fact in facts.items() if getattr(built, name) == UNKNOWN})

    @cached_property
    def conditions(self) -> LaunchConditions:
        """How and on what this launch measured; without facts if it failed."""
        return conditions_of(self.run, self.launch.exact)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Sorted names of the nodes that it ran on; empty if the launch failed."""
        return tuple(sorted(host["name"] for host in self.run.get("hosts", ())))

    @property
    def lateness(self) -> Lateness | None:
        """The ranks' lateness; None if the launch failed or its program does not record it."""
        return self.outcome.records.lateness if self.outcome.records else None

    @property
    def tcp_packets(self) -> int:
        """TCP packets that rank 0 sent while it measured; 0 if the records have no count."""
        records = self.outcome.records
        before, after = (record.get(TCP_PACKETS, 0) for record in (self.run, records.end if records else {}))
        return max(after - before, 0) if before >= 0 else 0

    @property
    def node_facts(self) -> dict[str, dict[str, str]]:
        """Facts on the setup of each node, by its name; empty if the launch failed or was simulated."""
        names = [host["name"] for host in self.run.get("hosts", ())]
        return dict(zip(names, self.run.get("node_facts", ()), strict=False))


@dataclass(frozen=True)
class LaunchOutcome:
    """Either records that can be judged, or the verdict for all cases of the launch with its reason."""

    records: Records | None
    verdict: Verdict | None = None
    reason: str = ""
    #: How its job ended, if that was not the program's doing; else None
    job_end: Ending | None = None


def fail_launch(verdict: Verdict, reason: str, job_end: Ending | None = None) -> LaunchOutcome:
    return LaunchOutcome(None, verdict, reason, job_end)
