"""Select the ledger launches behind a reference: same method, same programs.

Of each place and program that is what ran last; launches of another build, library or processor are another
machine's, and stay in the ledger unused. So do those with options by hand, which no night has, wherever there
are some without.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from postprocess.base.formats import Unit
from postprocess.calibration.ledger import CalibrationLaunch
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.conditions import STANDARD_ABI, LaunchConditions
from postprocess.model.interposed import BELOW, INTERPOSED
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.model.routines.mpicost import is_placeless
from postprocess.references.comparability import list_other_libraries
from postprocess.stats.launches import group_placements
from postprocess.stats.sessions import number_day, number_sessions
from site_configs.topology.machine import LIMITS

BUILT = ("source_hash", "compiler", "flags")  #: circumstances of a program


@dataclass(frozen=True)
class ConditionsNow:
    """The conditions under which launches of a partition and environment run now, as the verbose start told."""

    program: str
    conditions: LaunchConditions
    #: By what its pairs of ranks talk, by class of pairs, where its library told it
    transports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Now = Mapping[tuple[str, str], ConditionsNow]  #: by partition and environment


@dataclass(frozen=True)
class CaseSample:
    """The launches of one case, the earliest first."""

    case: Case
    launches: tuple[CalibrationLaunch, ...]

    @property
    def values(self) -> list[float]:
        """Values that are judged, one a launch."""
        return [launch.values[self.case.key] for launch in self.launches]

    @property
    def headlines(self) -> list[float]:
        """The papers' headline of each launch; the value of one that tells no other."""
        key = self.case.key
        return [launch.headlines.get(key, launch.values[key]) for launch in self.launches]

    @property
    def sessions(self) -> list[int]:
        """Number of the session of each launch, by the gap that the site has now."""
        ends = [launch.ended_utc for launch in self.launches]
        return number_sessions(ends, 60.0 * self.launches[-1].session_gap_minutes)

    @property
    def days(self) -> list[int]:
        """Number of the day of each launch."""
        return [number_day(launch.ended_utc) for launch in self.launches]

    @property
    def core_latencies(self) -> list[float | None]:
        """Time from core to core of each launch, in seconds; None where it is not known."""
        return [launch.core_latencies.get(self.case.key) for launch in self.launches]

    @property
    def at_home(self) -> CaseSample:
        """The launches that make the reference's row: of those whose ranks lay alike the most."""
        if is_placeless(self.case):
            return self
        home = group_placements(self.core_latencies)[0]
        return replace(self, launches=tuple(self.launches[member] for member in home.members))

    @property
    def unit(self) -> Unit:
        return self.launches[-1].units[self.case.key]


@dataclass(frozen=True)
class ExcludedLaunches:
    """Launches that do not count, and the facts in which they differ from those that do."""

    place: ReferencePlace
    program: str
    launches: int
    differing: tuple[str, ...]


def group_by_program(
    launches: Iterable[CalibrationLaunch],
) -> list[tuple[ReferencePlace, str, list[CalibrationLaunch]]]:
    """Group launches by place and program, the earliest first."""

    def group_key(each: CalibrationLaunch) -> tuple[ReferencePlace, str]:
        return each.place, each.program

    ordered = sorted(launches, key=lambda each: (*group_key(each), each.ended_utc, each.session))
    return [(*key, list(some)) for key, some in groupby(ordered, key=group_key)]


def select_current(launches: Iterable[CalibrationLaunch]) -> list[CalibrationLaunch]:
    """Select the launches that count: of each place and program those under the conditions of the last one."""
    return [
        each
        for _, _, some in group_by_program(launches)
        for each in some
        if not find_excluding_facts(each, select_without_options(some))
    ]


def find_excluded(launches: Iterable[CalibrationLaunch]) -> Iterator[tuple[CalibrationLaunch, tuple[str, ...]]]:
    """Find the launches that do not count, each with the names of the facts in which it differs."""
    for _, _, some in group_by_program(launches):
        for each in some:
            if what := find_excluding_facts(each, select_without_options(some)):
                yield each, tuple(what)


def list_excluded(launches: Iterable[CalibrationLaunch]) -> list[ExcludedLaunches]:
    """List the launches that do not count, grouped by what they differ in."""
    found = Counter((each.place, each.program, what) for each, what in find_excluded(launches))
    return [ExcludedLaunches(place, program, count, what) for (place, program, what), count in found.items()]


def select_without_options(launches: Sequence[CalibrationLaunch]) -> Sequence[CalibrationLaunch]:
    """Select the launches without options set by hand; all of them if each has some."""
    return [launch for launch in launches if not launch.by_hand] or launches


def find_excluding_facts(one: CalibrationLaunch, others: Sequence[CalibrationLaunch]) -> list[str]:
    """Find the names of the facts that exclude a launch from a sample; none if it counts."""
    return list_differing_facts(one, others[-1]) or list_differing_binding(one, others)


def list_differing_facts(one: CalibrationLaunch, other: CalibrationLaunch) -> list[str]:
    """List the names of the facts in which two launches differ; transports where both tell them."""
    differing = list_differing_keys(one.shared, other.shared)
    alike = set() if LIMITS in one.shared and LIMITS in other.shared else {LIMITS}  # older launches have none
    alike |= set() if list_other_libraries(one.circumstances, other.circumstances) else {BELOW}
    found = [key for key in differing if key not in alike]
    both = one.transports.keys() & other.transports.keys()
    if any(one.transports[pairs] != other.transports[pairs] for pairs in both):
        found.append("transports")
    return found


def list_differing_binding(one: CalibrationLaunch, others: Sequence[CalibrationLaunch]) -> list[str]:
    """List the binding if a launch is bound to CPUs in another way than the last one of its layout."""
    last = next((launch for launch in reversed(others) if launch.binding.keys() == one.binding.keys()), one)
    return ["binding"] if last.binding != one.binding else []


def select_as_now(
    launches: Iterable[CalibrationLaunch], now: Now, sessions: Container[str] = ()
) -> list[CalibrationLaunch]:
    """Select the launches that ran as launches run now, as far as that is known.

    :param sessions: that measure now: a place and program with a launch in them needs no other proof
    """
    some = list(launches)
    told = {(each.place, each.program) for each in some if each.session in sessions}
    return [each for each in some if (each.place, each.program) in told or not list_outdated_facts(each, now)]


def list_outdated_facts(launch: CalibrationLaunch, now: Now) -> list[str]:
    """List the facts in which an earlier launch differs from what runs now; none where nothing tells.

    What is known of another program tells nothing of how this one was built.
    """
    known = now.get((f"{launch.place.system}:{launch.place.partition}", launch.place.environment))
    if launch.exact or known is None:
        return []
    ours, theirs = dict(known.conditions.circumstances), dict(launch.circumstances)
    bindings = ours.pop("binding", {}), theirs.pop("binding", {})
    below = [BELOW] * bool(list_other_libraries(ours, theirs))
    ours, theirs = (
        {INTERPOSED: ""} | {name: each[name] for name in each if name != BELOW} for each in (ours, theirs)
    )
    told = {"cpu_model": known.conditions.cpu_model}, launch.facts["method"]
    pairs = [(ours, theirs), told, (known.transports, launch.transports)]
    found = [name for one, other in pairs for name in one.keys() & other.keys() if one[name] != other[name]]
    found += below
    unlike = set() if known.program == launch.program else {STANDARD_ABI, *BUILT}
    found = sorted({"transports" if name in known.transports else name for name in found} - unlike)
    both = bindings[0].keys() & bindings[1].keys()
    return found + ["binding"] * any(bindings[0][layout] != bindings[1][layout] for layout in both)


def count_outdated(launches: Iterable[CalibrationLaunch], now: Now) -> list[ExcludedLaunches]:
    """Count the earlier launches that ran otherwise than launches run now, grouped by what they differ in."""
    found = Counter(
        (each.place, each.program, tuple(what)) for each in launches if (what := list_outdated_facts(each, now))
    )
    return [ExcludedLaunches(place, program, count, what) for (place, program, what), count in found.items()]


def list_differing_keys(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """List the keys that two dictionaries do not share with the same value."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def collect_samples(launches: Iterable[CalibrationLaunch]) -> dict[Case, CaseSample]:
    """Collect the sample of every case: all launches that count."""
    found: dict[str, list[CalibrationLaunch]] = {}
    for each in sorted(select_current(launches), key=lambda each: (each.ended_utc, each.session)):
        for key in each.values:
            found.setdefault(key, []).append(each)
    cases = {Case.from_key(key): some for key, some in found.items()}
    return {case: CaseSample(case, tuple(some)) for case, some in sorted(cases.items())}


RARE = 0.1  #: of the launches of a layout


def count_places(launches: Iterable[CalibrationLaunch]) -> dict[tuple[str, str], list[int]]:
    """Count the launches of mpicost by where their ranks lay, by environment and layout: the most first."""
    latencies: dict[tuple[str, str], list[float]] = {}
    for launch in launches:
        if launch.program == "mpicost" and not launch.exact and launch.core_latencies:
            layout = Case.from_key(min(launch.core_latencies)).layout
            between = statistics.median(launch.core_latencies.values())
            latencies.setdefault((launch.place.environment, layout), []).append(between)
    return {
        place: [len(placement.members) for placement in group_placements(known)]
        for place, known in latencies.items()
    }


def describe_places(launches: Iterable[CalibrationLaunch]) -> list[str]:
    """Describe the launches of environments and layouts that lay in several places; in no line if none did."""
    told = [
        f"{environment} {layout} {' + '.join(map(str, sizes))}"
        for (environment, layout), sizes in count_places(launches).items()
        if len(sizes) > 1
    ]
    what = "ranks lay in several places, near each other or far; launches of one place are judged by each other"
    return [f"{what}; launches in each: {', '.join(told)}"] if told else []


def list_short_places(launches: Iterable[CalibrationLaunch]) -> set[str]:
    """List the environments that have a place with some launches, and too few.

    A place that a tenth of the launches lay in may not come again, and is not waited for.
    """
    return {
        environment
        for (environment, _), sizes in count_places(launches).items()
        if any(RARE * sum(sizes) < size < ENOUGH_LAUNCHES for size in sizes)
    }
