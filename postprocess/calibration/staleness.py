"""Find stale references: too old, from a machine that has changed, or unlike what nights measure.

A finding is ``stale`` if the reference should be measured again; else it warns how little the reference knows.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import scipy

from postprocess.base.formats import compute_slowdown, first_of, parse_utc, plural
from postprocess.calibration.machine_load import MOST_NODES, count_minutes_together, find_common_nodes
from postprocess.model.case import Case
from postprocess.model.conditions import library_identity
from postprocess.model.reference import ENOUGH_LAUNCHES, ENOUGH_SESSIONS, Reference
from postprocess.references import provenance

PROVISIONAL_DAYS = 30  #: after which a reference should have enough launches
LEAST_NIGHTS = 14  #: fewest nights before a case is called one-sided
ONE_SIDED_ALPHA = 0.05  #: family-wise error rate over the cases of a file
LEAST_SHIFT = 0.01  #: smallest shift of the median night from the center
#: facts of this machine that are compared with those of a reference from the same host
MACHINE = {"cpu_model": "the processor", "kernel": "the kernel", "firmware": "the firmware"}
NIGHT = {  #: facts of the last night that are compared with those of the calibration
    "mpi_library": "the MPI library",
    "source_hash": "the sources of the benchmark",
    "kernel": "the kernel",
}


@dataclass(frozen=True)
class CaseNights:
    """The nights of a case since its calibration, from the store."""

    values: Sequence[float]  #: one per night, in the unit of the reference
    last: Mapping[str, str]  #: facts of the last night; see ``NIGHT``


def find_stale(
    place: str,
    known: Mapping[Case, Reference],
    origin: Mapping[str, Any],
    nights: Mapping[str, CaseNights],
    machine: Mapping[str, Any],
    days: int,
    now: datetime,
    nodes: int = 0,
) -> list[StaleFinding]:
    """Find what is stale in one reference file, the stale cases first.

    :param nights: nights by key, of cases measured since their calibration
    :param days: after which a reference is old
    :param nodes: number of nodes of the partition; 0 if unknown
    """
    findings: list[StaleFinding] = []
    for group in group_calibrations(place, known, origin):
        findings += find_too_old(group, days, now)
        findings += find_machine_changes(group, machine)
        findings += find_software_changes(group, nights)
        findings += find_mixed_kernels(group)
        findings += find_long_provisional(group, known, now)
        findings += find_one_day_calibrations(group)
        findings += find_few_sessions(group)
        findings += find_one_node_set_calibrations(group, nodes)
    findings = merge_findings(findings)
    findings += find_one_sided(place, known, nights)
    return sorted(
        findings, key=lambda finding: (not finding.stale, finding.program, finding.what, finding.text)
    )


def find_too_old(group: CalibrationGroup, days: int, now: datetime) -> Iterator[StaleFinding]:
    """Find a calibration whose median launch is older than the site allows. Simulated time does not age."""
    if "simulated" in group.told.get("machine", {}):
        return
    when = provenance.find_calibration_date(group.told, group.cases[0].key)
    old = (now - parse_utc(when)).days
    if old > days:
        text = f"calibrated {old} days ago, on {when[:10]}; the limit is {days}"
        yield group.finding("old", True, text)


def find_long_provisional(
    group: CalibrationGroup, known: Mapping[Case, Reference], now: datetime
) -> Iterator[StaleFinding]:
    """Find cases that have long had too few launches to detect more than gross changes."""
    cases = tuple(case for case in group.cases if known[case].few_launches)
    first = min((launch["ended_utc"] for launch in group.launches), default=group.told["date_utc"])
    since = (now - parse_utc(first)).days
    if cases and since > PROVISIONAL_DAYS:
        number = max(known[case].launches for case in cases)
        text = f"provisional for {since} days, with {plural(number, 'launch', 'es')} of {ENOUGH_LAUNCHES}"
        yield replace(group, cases=cases).finding("provisional", True, text)


def find_machine_changes(group: CalibrationGroup, machine: Mapping[str, Any]) -> Iterator[StaleFinding]:
    """Find changes of the machine that started most launches of a calibration."""
    host = machine.get("host")
    thens = [then for then in group.machines if host and then.get("host") == host]
    for fact, name in MACHINE.items():
        today = machine.get(fact)
        if today and (before := describe_changed_fact(fact, [then.get(fact) for then in thens], today)):
            yield group.finding("changed", True, f"{name} of {host} was {before} and is {today}")


def find_software_changes(group: CalibrationGroup, nights: Mapping[str, CaseNights]) -> Iterator[StaleFinding]:
    """Find changes of library, benchmark or kernel between most launches and the last night."""
    for fact, name in NIGHT.items():
        befores = [group.told.get(fact)]
        if fact == "kernel":
            befores = [launch.get(fact) for launch in group.launches]
        lasts = {nights[c.key].last.get(fact) for c in group.cases if c.key in nights}
        for last in sorted(filter(None, lasts)):
            if before := describe_changed_fact(fact, befores, last):
                first = [" ".join(text.split())[:60] for text in (before, last)]
                text = f"{name} was {first[0]!r} and is {first[1]!r} in the last night"
                yield group.finding("changed", True, text)
                break


def describe_changed_fact(fact: str, befores: Iterable[str | None], today: str) -> str:
    """Return the most frequent other value of a fact if most launches differ from today's; else empty."""
    recorded = [before for before in befores if before]
    others = [before for before in recorded if not is_same_fact(fact, before, today)]
    if 2 * len(others) <= len(recorded):
        return ""
    return Counter(others).most_common(1)[0][0]


def find_mixed_kernels(group: CalibrationGroup) -> Iterator[StaleFinding]:
    """Find a calibration whose launches ran on different kernels."""
    counts = Counter(launch["kernel"] for launch in group.launches if launch.get("kernel"))
    if len(counts) > 1:
        kernels = ", ".join(f"{kernel} in {number}" for kernel, number in sorted(counts.items()))
        yield group.finding("kernels", False, f"launches on {len(counts)} kernels: {kernels}")


def is_same_fact(fact: str, one: str, other: str) -> bool:
    """Return whether two values of a fact mean the same, whatever path an MPI is installed in."""
    if fact == "mpi_library":
        return library_identity(one) == library_identity(other)
    return one == other


def find_few_sessions(group: CalibrationGroup) -> Iterator[StaleFinding]:
    """Find a calibration of two sessions, too few to show how they differ; this does not make it stale."""
    sessions = len(
        set(provenance.number_launches(group.told, provenance.list_ends(group.told, group.cases[0].key)))
    )
    if 1 < sessions < ENOUGH_SESSIONS and "simulated" not in group.told.get("machine", {}):
        text = f"{sessions} of {ENOUGH_SESSIONS} sessions: their spread is mostly that of others"
        yield group.finding("sessions", False, text)


def find_one_day_calibrations(group: CalibrationGroup) -> Iterator[StaleFinding]:
    if minutes := count_minutes_together([launch["ended_utc"] for launch in group.launches]):
        text = f"all launches within {minutes} min: differences between days are not in them"
        yield group.finding("one moment", False, text)


def find_one_node_set_calibrations(group: CalibrationGroup, nodes: int) -> Iterator[StaleFinding]:
    """Find a calibration whose launches all ran on the same nodes although there are others."""
    if "simulated" in group.told.get("machine", {}):
        return
    if same := find_common_nodes([launch["hosts"] for launch in group.launches], nodes):
        number = f" of {nodes}" if nodes else ""
        text = f"one node set in all launches, {len(same)}{number} nodes ({first_of(same, MOST_NODES)})"
        yield group.finding("one node set", False, f"{text}: differences between nodes are not in them")


def find_one_sided(
    place: str, known: Mapping[Case, Reference], nights: Mapping[str, CaseNights]
) -> Iterator[StaleFinding]:
    """Find cases whose nights lie on one side of the center more often than by chance.

    This is the two-sided sign test, with Bonferroni's correction for all cases with enough nights.
    """
    enough = {
        case: nights[case.key].values
        for case, reference in sorted(known.items())
        if not reference.exact and len(nights.get(case.key, CaseNights((), {})).values) >= LEAST_NIGHTS
    }
    for case, values in enough.items():
        shifts = [compute_slowdown(value, known[case].center, known[case].unit) for value in values]
        slow = sum(shift > 1 for shift in shifts)
        decided = sum(shift != 1 for shift in shifts)
        shift = statistics.median(shifts)
        if not decided or abs(math.log(shift)) < math.log1p(LEAST_SHIFT):
            continue
        if scipy.stats.binomtest(slow, decided).pvalue * len(enough) < ONE_SIDED_ALPHA:
            side, number = ("slow", slow) if slow > decided / 2 else ("fast", decided - slow)
            text = (
                f"on the {side} side of the center in {number} of {len(values)} nights; the median night is "
                f"{abs(shift - 1):.1%} {'slower' if shift > 1 else 'faster'}"
            )
            yield StaleFinding(place, case.program, "one-sided", True, text, (case.key,))


@dataclass(frozen=True)
class StaleFinding:
    """A finding on the age of some references of one file."""

    place: str
    program: str
    what: (
        str  #: ``old``, ``changed``, ``provisional``, ``one-sided``, ``kernels``, ``one moment`` or
        #: ``one node set``
    )
    stale: bool
    text: str
    cases: tuple[str, ...]

    def entry(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {**asdict(self), "cases": list(self.cases)}

    def __str__(self) -> str:
        sign = "STALE" if self.stale else "note"
        return f"{sign}: {self.place}, {self.program}, {plural(len(self.cases), 'case')}: {self.text}"


@dataclass(frozen=True)
class CalibrationGroup:
    """The cases of one calibration that were measured by the same launches."""

    place: str
    program: str
    told: Mapping[str, Any]
    cases: tuple[Case, ...]

    @property
    def launches(self) -> Sequence[Mapping[str, Any]]:
        """When and where the launches ran; empty if the provenance has no record."""
        return provenance.list_case_launches(self.told, self.cases[0].key)

    @property
    def machines(self) -> list[Mapping[str, Any]]:
        """The machines that started the launches; only the last one if no more is recorded."""
        recorded = [launch["machine"] for launch in self.launches if "machine" in launch]
        recorded = recorded or [self.told.get("machine", {})]
        # a machine may also be described by a text
        return [machine for machine in recorded if isinstance(machine, Mapping)]

    def finding(self, what: str, stale: bool, text: str) -> StaleFinding:
        keys = tuple(case.key for case in self.cases)
        return StaleFinding(self.place, self.program, what, stale, text, keys)


def merge_findings(found: Iterable[StaleFinding]) -> list[StaleFinding]:
    merged: dict[StaleFinding, list[str]] = {}
    for finding in found:
        merged.setdefault(replace(finding, cases=()), []).extend(finding.cases)
    return [replace(finding, cases=tuple(sorted(set(keys)))) for finding, keys in merged.items()]


def group_calibrations(
    place: str, known: Mapping[Case, Reference], origin: Mapping[str, Any]
) -> Iterator[CalibrationGroup]:
    """Group the cases of each calibration of a file by their launches."""
    for program, entry in sorted(origin["programs"].items()):
        cases = [case for case in sorted(known) if case.program == program]
        for calibration in provenance.list_calibrations(entry):
            groups: dict[int, list[Case]] = {}
            for case in cases:
                if provenance.find_case_calibration(entry, case.key) is calibration:
                    groups.setdefault(id(provenance.list_case_launches(calibration, case.key)), []).append(case)
            yield from (
                CalibrationGroup(place, program, calibration, tuple(members)) for members in groups.values()
            )
