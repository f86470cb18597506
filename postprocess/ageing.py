"""Which references are stale: too old, of a machine that has changed since, or beside what nights measure.

A finding is ``stale`` if the reference should be measured again; else it is a warning of how little it knows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from scipy.stats import binomtest

from postprocess import provenance
from postprocess.cases import Case
from postprocess.comparability import library_identity
from postprocess.disturbance import minutes_together
from postprocess.formats import plural
from postprocess.provenance import DATE_FORMAT
from postprocess.references import Reference
from postprocess.units import slowdown

LEAST_NIGHTS = 14  #: before a case can have sat on one side
ONE_SIDED_ALPHA = 0.05  #: probability that any case of a file is accused of it by chance
LEAST_SHIFT = 0.01  #: of the median of the nights from the center; less is nobody's concern
MACHINE = {  #: facts of the machine at hand that a reference of the same host is held against
    "cpu_model": "the processor",
    "kernel": "the kernel",
    "firmware": "the firmware",
}
NIGHT = {  #: facts of the last night that are held against those of the calibration
    "mpi_library": "the MPI library",
    "source_hash": "the sources of the benchmark",
}


@dataclass(frozen=True)
class Finding:
    """Something that is to be said of the age of some references of one file."""

    place: str
    program: str
    what: str  #: ``old``, ``changed``, ``one-sided`` or ``one moment``
    stale: bool
    text: str
    cases: tuple[str, ...]

    def entry(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "cases": list(self.cases)}

    def __str__(self) -> str:
        sign = "STALE" if self.stale else "note"
        return (
            f"{sign}: {self.place}, {self.program}, {plural(len(self.cases), 'case')}: {self.text}"
        )


@dataclass(frozen=True)
class Nights:
    """What the store knows of a case since its calibration."""

    values: Sequence[float]  #: of each night, in the unit of the reference
    last: Mapping[str, str]  #: facts of the last night; see ``NIGHT``


@dataclass(frozen=True)
class Group:
    """The cases of one calibration."""

    place: str
    program: str
    told: Mapping[str, Any]
    cases: tuple[Case, ...]

    def finding(self, what: str, stale: bool, text: str) -> Finding:
        """Something said of all of them."""
        keys = tuple(case.key for case in self.cases)
        return Finding(self.place, self.program, what, stale, text, keys)


def findings(
    place: str,
    known: Mapping[Case, Reference],
    origin: Mapping[str, Any],
    nights: Mapping[str, Nights],
    machine: Mapping[str, Any],
    days: int,
    now: datetime,
) -> list[Finding]:
    """All that is to be said of one reference file, what is stale first.

    :param nights: by key, of the cases that were measured since their calibration
    :param machine: the one at hand
    :param days: after which a reference is old
    """
    found: list[Finding] = []
    for group in groups(place, known, origin):
        found += too_old(group, days, now)
        found += changed_machine(group, machine)
        found += changed_since(group, nights)
        found += of_one_moment(group)
    found += one_sided(place, known, nights)
    return sorted(found, key=lambda each: (not each.stale, each.program, each.what, each.text))


def groups(
    place: str, known: Mapping[Case, Reference], origin: Mapping[str, Any]
) -> Iterator[Group]:
    """The cases of each calibration of a file."""
    for program, entry in sorted(origin["programs"].items()):
        cases = [case for case in sorted(known) if case.program == program]
        for told in provenance.calibrations(entry):
            own = [c for c in cases if provenance.calibration_of(entry, c.key) is told]
            if own:
                yield Group(place, program, told, tuple(own))


def too_old(group: Group, days: int, now: datetime) -> Iterator[Finding]:
    """Whether a calibration is older than the site allows. Simulated time does not age."""
    if "simulated" in group.told.get("machine", {}):
        return
    taken = datetime.strptime(group.told["date_utc"], DATE_FORMAT).replace(tzinfo=timezone.utc)
    old = (now - taken).days
    if old > days:
        text = f"calibrated {old} days ago, on {group.told['date_utc'][:10]}; the limit is {days}"
        yield group.finding("old", True, text)


def changed_machine(group: Group, machine: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether this machine, where it is the one that was calibrated, is another today."""
    then = group.told.get("machine", {})
    if not then.get("host") or then["host"] != machine.get("host"):
        return
    for fact, name in MACHINE.items():
        before, today = then.get(fact), machine.get(fact)
        if before and today and before != today:
            text = f"{name} of {then['host']} was {before} and is {today}"
            yield group.finding("changed", True, text)


def changed_since(group: Group, nights: Mapping[str, Nights]) -> Iterator[Finding]:
    """Whether the last night ran another library or benchmark than the calibration."""
    for fact, name in NIGHT.items():
        before = group.told.get(fact)
        lasts = {nights[c.key].last.get(fact) for c in group.cases if c.key in nights}
        others = sorted(last for last in lasts if last and before and not same(fact, before, last))
        if others:
            first = [" ".join(text.split())[:60] for text in (before, others[0])]
            text = f"{name} was {first[0]!r} and is {first[1]!r} in the last night"
            yield group.finding("changed", True, text)


def same(fact: str, one: str, other: str) -> bool:
    """Whether two values of a fact mean the same: an MPI says where it is installed, too."""
    if fact == "mpi_library":
        return library_identity(one) == library_identity(other)
    return one == other


def of_one_moment(group: Group) -> Iterator[Finding]:
    """Whether all launches of a calibration are of one day."""
    launches = [each for some in group.told.get(provenance.SERIES, ()) for each in some["launches"]]
    if minutes := minutes_together([each["ended_utc"] for each in launches]):
        text = f"all launches within {minutes} min: they know nothing of other days"
        yield group.finding("one moment", False, text)


def one_sided(
    place: str, known: Mapping[Case, Reference], nights: Mapping[str, Nights]
) -> Iterator[Finding]:
    """The cases whose nights lie on one side of the center more often than chance has it.

    The sign test, two-sided, by Bonferroni for all cases of the file that have enough nights.
    """
    enough = {
        case: nights[case.key].values
        for case, reference in sorted(known.items())
        if not reference.exact and len(nights.get(case.key, Nights((), {})).values) >= LEAST_NIGHTS
    }
    for case, values in enough.items():
        shifts = [slowdown(value, known[case].center, known[case].unit) for value in values]
        slow = sum(shift > 1 for shift in shifts)
        decided = sum(shift != 1 for shift in shifts)
        shift = statistics.median(shifts)
        if not decided or abs(math.log(shift)) < math.log1p(LEAST_SHIFT):
            continue
        if binomtest(slow, decided).pvalue * len(enough) < ONE_SIDED_ALPHA:
            side, number = ("slow", slow) if slow > decided / 2 else ("fast", decided - slow)
            text = (
                f"on the {side} side of the center in {number} of {len(values)} nights; the median night is "
                f"{abs(shift - 1):.1%} {'slower' if shift > 1 else 'faster'}"
            )
            yield Finding(place, case.program, "one-sided", True, text, (case.key,))
