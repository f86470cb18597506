"""A launch that is over: how it ended, and what it measured."""

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
    """Return the selection with so many launches at each place; a place that is not named gets one."""
    several = sorted((place, count) for place, count in counts.items() if count > 1)
    choice = {name: value for name, value in selection.choice.items() if name != LAUNCHES}
    if several:
        choice[LAUNCHES] = [{**place._asdict(), "launches": count} for place, count in several]
    return replace(selection, choice=choice, launches=max(counts.values(), default=1))


def select_places(choice: Sequence[Mapping[str, Any]], number: int, **place: str | int) -> list[LaunchPlace]:
    """Select the places of a choice that get a launch of this number, of those that agree with ``place``."""
    return [
        LaunchPlace(*(entry[name] for name in LaunchPlace._fields))
        for entry in choice
        if entry["launches"] >= number and all(entry[name] == place[name] for name in place)
    ]


class Records(Protocol):
    """What one launch wrote, whichever program it was."""

    @property
    def run(self) -> dict[str, Any]: ...

    @property
    def end(self) -> dict[str, Any]: ...

    @property
    def mpi_library(self) -> str: ...

    @property
    def measurements(self) -> Mapping[str, Measurement]:
        """What was measured of each case, by its variable."""

    @property
    def wrong(self) -> Mapping[str, str]:
        """What arrived damaged, by variable of the case, in one line; these have no measurement."""

    @property
    def lateness(self) -> Lateness | None:
        """Who was held up, if the program tells it."""

    def resolution(self, unit: str) -> float:
        """Return the smallest step of a value, in ``unit``."""


#: Keys of a run record that fill unknown fields of :class:`BuiltBinary`, by field.
TOLD_BY_RUN = {"version": "suite_version", "compiler": "compiler", "flags": "compiler_flags"}
TCP_PACKETS = "tcp_packets"  #: in run and end records of mpicost; -1 where the kernel does not tell


@dataclass(frozen=True)
class FinishedLaunch:
    launch: PlannedLaunch
    outcome: LaunchOutcome
    seconds: float  #: wall time of the launch
    directory: str  #: ReFrame's stage directory
    asserted: Mapping[str, str]  #: what ReFrame says of each performance variable
    spec: str = ""  #: Spack's spec with its hash, or ``cmake``
    built: BuiltBinary | None = None  #: what is known of the build

    @cached_property
    def measurements(self) -> Mapping[str, Measurement]:
        """What this launch measured, by variable; empty if the launch failed."""
        return self.outcome.records.measurements if self.outcome.records else {}

    @cached_property
    def records(self) -> dict[str, CaseRecord]:
        """The trials of this launch, by variable; empty for a program that tells none."""
        return {name: each.record for name, each in self.measurements.items() if each.record}

    @property
    def wrong(self) -> Mapping[str, str]:
        """What arrived damaged, by variable of the case; empty if the launch failed as a whole."""
        return self.outcome.records.wrong if self.outcome.records else {}

    def failure(self, case: Case) -> LaunchOutcome | None:
        """Find what failed a case: the launch as a whole, or wrong data of the case; None if nothing did."""
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
        """The program as it was built; what its build does not tell is as the running program says."""
        launch = self.launch
        built = self.built or BuiltBinary(launch.environment, launch.program, path="", spec=self.spec)
        told = {name: self.run.get(key, UNKNOWN) for name, key in TOLD_BY_RUN.items()}
        return replace(built, **{name: said for name, said in told.items() if getattr(built, name) == UNKNOWN})

    @cached_property
    def conditions(self) -> LaunchConditions:
        """How this launch measured, and on what; of one that failed nothing is known."""
        return conditions_of(self.run, self.launch.exact)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the nodes that it ran on, sorted; none if the launch failed."""
        return tuple(sorted(host["name"] for host in self.run.get("hosts", ())))

    @property
    def lateness(self) -> Lateness | None:
        """Who was held up; None if the launch failed or its program does not tell."""
        return self.outcome.records.lateness if self.outcome.records else None

    @property
    def tcp_packets(self) -> int:
        """TCP packets that rank 0 sent while it measured; 0 where the records have no count."""
        records = self.outcome.records
        before, after = (told.get(TCP_PACKETS, 0) for told in (self.run, records.end if records else {}))
        return max(after - before, 0) if before >= 0 else 0

    @property
    def node_facts(self) -> dict[str, dict[str, str]]:
        """How each node is set up, by its name; none if the launch failed or was simulated."""
        names = [host["name"] for host in self.run.get("hosts", ())]
        return dict(zip(names, self.run.get("node_facts", ()), strict=False))


@dataclass(frozen=True)
class LaunchOutcome:
    """Either records that can be judged, or the verdict for all cases of the launch and its reason."""

    records: Records | None
    verdict: Verdict | None = None
    reason: str = ""
    #: How its job ended, where no program has a part in that; None elsewhere
    job_end: Ending | None = None


def fail_launch(verdict: Verdict, reason: str, job_end: Ending | None = None) -> LaunchOutcome:
    return LaunchOutcome(None, verdict, reason, job_end)
