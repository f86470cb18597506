"""Select the ledger launches behind a reference: same method, same programs.

For each place and program these are the launches like the last one. Launches of another build, library or
processor stay in the ledger unused, like those of another machine. So do launches with options by hand, which
no night has, if there are any without.
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
    """The current conditions of launches on a partition and environment, as the verbose start showed them."""

    program: str
    conditions: LaunchConditions
    #: Transports of its pairs of ranks, by class of pairs, if its library reports them
    transports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Now = Mapping[tuple[str, str], ConditionsNow]  #: by partition and environment


@dataclass(frozen=True)
class CaseSample:
    """The launches of one case, the earliest first."""

    case: Case
    launches: tuple[CalibrationLaunch, ...]

    @property
    def values(self) -> list[float]:
        """Judged values, one per launch."""
        return [launch.values[self.case.key] for launch in self.launches]

    @property
    def headlines(self) -> list[float]:
        """The papers' headline of each launch, or its judged value if they are the same."""
        key = self.case.key
        return [launch.headlines.get(key, launch.values[key]) for launch in self.launches]

    @property
    def sessions(self) -> list[int]:
        """Session number of each launch, by the current gap of the site."""
        ends = [launch.ended_utc for launch in self.launches]
        return number_sessions(ends, 60.0 * self.launches[-1].session_gap_minutes)

    @property
    def days(self) -> list[int]:
        """Day number of each launch."""
        return [number_day(launch.ended_utc) for launch in self.launches]

    @property
    def core_latencies(self) -> list[float | None]:
        """Core-to-core time of each launch, in seconds; None if unknown."""
        return [launch.core_latencies.get(self.case.key) for launch in self.launches]

    @property
    def at_home(self) -> CaseSample:
        """The launches behind the reference's row: those with the most frequent placement of ranks."""
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

    ordered = sorted(launches, key=lambda launch: (*group_key(launch), launch.ended_utc, launch.session))
    return [(*key, list(members)) for key, members in groupby(ordered, key=group_key)]


def select_current(launches: Iterable[CalibrationLaunch]) -> list[CalibrationLaunch]:
    """Select the launches that count: for each place and program those under the conditions of the last one."""
    return [
        launch
        for _, _, members in group_by_program(launches)
        for launch in members
        if not find_excluding_facts(launch, select_without_options(members))
    ]


def find_excluded(launches: Iterable[CalibrationLaunch]) -> Iterator[tuple[CalibrationLaunch, tuple[str, ...]]]:
    """Find the launches that do not count, with the names of the facts in which they differ."""
    for _, _, members in group_by_program(launches):
        for launch in members:
            if what := find_excluding_facts(launch, select_without_options(members)):
                yield launch, tuple(what)


def list_excluded(launches: Iterable[CalibrationLaunch]) -> list[ExcludedLaunches]:
    """List the launches that do not count, grouped by the facts in which they differ."""
    counts = Counter((launch.place, launch.program, what) for launch, what in find_excluded(launches))
    return [ExcludedLaunches(place, program, count, what) for (place, program, what), count in counts.items()]


def select_without_options(launches: Sequence[CalibrationLaunch]) -> Sequence[CalibrationLaunch]:
    """Select the launches without options set by hand, or all launches if there are none."""
    return [launch for launch in launches if not launch.by_hand] or launches


def find_excluding_facts(one: CalibrationLaunch, others: Sequence[CalibrationLaunch]) -> list[str]:
    """Find the facts that exclude a launch from a sample; empty if it counts."""
    return list_differing_facts(one, others[-1]) or list_differing_binding(one, others)


def list_differing_facts(one: CalibrationLaunch, other: CalibrationLaunch) -> list[str]:
    """List the facts in which two launches differ; transports only if both record them."""
    differing = list_differing_keys(one.shared, other.shared)
    alike = set() if LIMITS in one.shared and LIMITS in other.shared else {LIMITS}  # older launches have none
    alike |= set() if list_other_libraries(one.circumstances, other.circumstances) else {BELOW}
    names = [key for key in differing if key not in alike]
    both = one.transports.keys() & other.transports.keys()
    if any(one.transports[pairs] != other.transports[pairs] for pairs in both):
        names.append("transports")
    return names


def list_differing_binding(one: CalibrationLaunch, others: Sequence[CalibrationLaunch]) -> list[str]:
    """List the binding if a launch is bound to CPUs in another way than the last one of its layout."""
    last = next((launch for launch in reversed(others) if launch.binding.keys() == one.binding.keys()), one)
    return ["binding"] if last.binding != one.binding else []


def select_as_now(
    launches: Iterable[CalibrationLaunch], now: Now, sessions: Container[str] = ()
) -> list[CalibrationLaunch]:
    """Select the launches that ran under the current conditions, as far as known.

    :param sessions: current sessions: a place and program with a launch in them needs no other proof
    """
    candidates = list(launches)
    proven = {(launch.place, launch.program) for launch in candidates if launch.session in sessions}
    return [
        launch
        for launch in candidates
        if (launch.place, launch.program) in proven or not list_outdated_facts(launch, now)
    ]


def list_outdated_facts(launch: CalibrationLaunch, now: Now) -> list[str]:
    """List the facts in which an earlier launch differs from current ones; empty if nothing is known.

    The build of another program says nothing about how this one was built.
    """
    current = now.get((f"{launch.place.system}:{launch.place.partition}", launch.place.environment))
    if launch.exact or current is None:
        return []
    ours, theirs = dict(current.conditions.circumstances), dict(launch.circumstances)
    bindings = ours.pop("binding", {}), theirs.pop("binding", {})
    below = [BELOW] * bool(list_other_libraries(ours, theirs))
    ours, theirs = (
        {INTERPOSED: ""} | {name: facts[name] for name in facts if name != BELOW} for facts in (ours, theirs)
    )
    processors = {"cpu_model": current.conditions.cpu_model}, launch.facts["method"]
    pairs = [(ours, theirs), processors, (current.transports, launch.transports)]
    names = [name for one, other in pairs for name in one.keys() & other.keys() if one[name] != other[name]]
    names += below
    unlike = set() if current.program == launch.program else {STANDARD_ABI, *BUILT}
    names = sorted({"transports" if name in current.transports else name for name in names} - unlike)
    both = bindings[0].keys() & bindings[1].keys()
    return names + ["binding"] * any(bindings[0][layout] != bindings[1][layout] for layout in both)


def count_outdated(launches: Iterable[CalibrationLaunch], now: Now) -> list[ExcludedLaunches]:
    """Count the earlier launches that ran under other conditions, grouped by the facts in which they differ."""
    counts = Counter(
        (launch.place, launch.program, tuple(what))
        for launch in launches
        if (what := list_outdated_facts(launch, now))
    )
    return [ExcludedLaunches(place, program, count, what) for (place, program, what), count in counts.items()]


def list_differing_keys(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """List the keys whose values differ between two dictionaries, or that only one has."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def collect_samples(launches: Iterable[CalibrationLaunch]) -> dict[Case, CaseSample]:
    """Collect the sample of every case: all launches that count."""
    by_key: dict[str, list[CalibrationLaunch]] = {}
    for launch in sorted(select_current(launches), key=lambda one: (one.ended_utc, one.session)):
        for key in launch.values:
            by_key.setdefault(key, []).append(launch)
    cases = {Case.from_key(key): members for key, members in by_key.items()}
    return {case: CaseSample(case, tuple(members)) for case, members in sorted(cases.items())}


RARE = 0.1  #: share of the launches of a layout


def count_places(launches: Iterable[CalibrationLaunch]) -> dict[tuple[str, str], list[int]]:
    """Count the launches of mpicost per placement of their ranks, by environment and layout, the most first."""
    latencies: dict[tuple[str, str], list[float]] = {}
    for launch in launches:
        if launch.program == "mpicost" and not launch.exact and launch.core_latencies:
            layout = Case.from_key(min(launch.core_latencies)).layout
            between = statistics.median(launch.core_latencies.values())
            latencies.setdefault((launch.place.environment, layout), []).append(between)
    return {
        place: [len(placement.members) for placement in group_placements(measured)]
        for place, measured in latencies.items()
    }


def describe_places(launches: Iterable[CalibrationLaunch]) -> list[str]:
    """Describe the environments and layouts whose launches had several placements; empty if none had."""
    places = [
        f"{environment} {layout} {' + '.join(map(str, sizes))}"
        for (environment, layout), sizes in count_places(launches).items()
        if len(sizes) > 1
    ]
    what = "ranks lay in several places, near each other or far; launches of one place are judged by each other"
    return [f"{what}; launches in each: {', '.join(places)}"] if places else []


def list_short_places(launches: Iterable[CalibrationLaunch]) -> set[str]:
    """List the environments with a placement that has some launches, but too few.

    A placement of less than a tenth of the launches may not occur again, and is ignored.
    """
    return {
        environment
        for (environment, _), sizes in count_places(launches).items()
        if any(RARE * sum(sizes) < size < ENOUGH_LAUNCHES for size in sizes)
    }
