"""Conditions that must match for two values to be comparable: normalised facts of a launch.

A difference that cannot change a time must not break a comparison, or people learn to accept everything: host
names, paths, the kernel (checked by ``references age``), who built an MPI, warnings and debug symbols, and
which cores are used. Everything else counts until the site accepts it: after a compiler upgrade, people want to
see it first. Spack's hash of a program is not among the facts, because it depends on the paths of the checkout
and of the site's software. Sources, compiler, flags, and the MPI's description of its build are compared
instead.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.model.case import Case
from postprocess.model.conditions import GPUS, STANDARD_ABI
from postprocess.model.interposed import BELOW, INTERPOSED, SEPARATOR, describe_standing, is_replacing
from postprocess.model.reference import Reference
from postprocess.model.routines.mpicost import is_placeless
from postprocess.references import provenance
from postprocess.stats.launches import Placement, group_placements
from postprocess.stats.sessions import number_day
from site_configs.topology.machine import LIMITS

#: Names of facts for people, if the key is not clear enough
WORDS = {
    "cpu_model": "processor",
    INTERPOSED: "set of libraries in front of the MPI",
    BELOW: "release of a library below the MPI",
    "mpi_library": "MPI library",
    "settle": "settling time",
    "source": "source",
    STANDARD_ABI: "binary interface",
    LIMITS: "limit of the shell",
    GPUS: "set of GPUs",
}
#: Facts that options, variables or files can restore
CHOSEN = ("trials", "rounds", "iterations", INTERPOSED, BELOW)


def name_fact(name: str) -> str:
    return WORDS.get(name, name.replace("_", " "))


@dataclass(frozen=True)
class Incomparability:
    """Why a launch may not be compared with a reference."""

    reason: str  #: one line, with the fix
    #: Why the reference is useless for launches like this one: ``is of another compiler``. Empty if the launch
    #: can be brought back to the conditions of the reference.
    outdated: str = ""


@dataclass(frozen=True)
class Difference:
    """One fact in which a launch differs from the one behind a reference."""

    name: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        ours, theirs = reduce_to_differences(self.ours, self.theirs)
        return f"{self.name} is {ours!r}, and {theirs!r}"

    @property
    def fix(self) -> str:
        """What to do about it."""
        return "calibrate again"

    @property
    def lasting(self) -> bool:
        """Whether future launches will differ too, whatever options and variables a user sets."""
        return self.name not in CHOSEN


class InterposedLibraries(Difference):
    """A library in front of the MPI that was loaded for only one of launch and reference."""

    def __str__(self) -> str:
        ours, theirs = reduce_to_differences(self.ours, self.theirs)
        return f"{describe_standing(ours)}, and {theirs or 'nothing'}"

    @property
    def fix(self) -> str:
        """What to do about it."""
        if is_replacing(self.ours):
            return "put the MPI's own file back, or calibrate as it is now"
        where = "LD_PRELOAD and /etc/ld.so.preload"
        how = f"set {where} as then" if self.theirs else f"take it out of {where}"
        return f"{how}, or calibrate as it is now"


class LibraryBelow(Difference):
    """Another UCX or libfabric below the MPI than for the reference."""

    def __str__(self) -> str:
        ours, theirs = (
            ", ".join(f"{name} {release}" for name, release in libraries.items())
            for libraries in (self.ours, self.theirs)
        )
        return f"below the MPI is {ours}, and {theirs}"

    @property
    def fix(self) -> str:
        """What to do about it."""
        return "see what leads to it (LD_LIBRARY_PATH, FI_PROVIDER_PATH, I_MPI_OFI_LIBRARY), or calibrate again"


class BinaryInterface(Difference):
    """A program of the standard ABI compared with one of another version, or of the MPI's own interface."""

    def __str__(self) -> str:
        ours, theirs = (
            f"standard ABI {version} of MPI" if version else "MPI's own" for version in (self.ours, self.theirs)
        )
        return f"the program's binary interface is the {ours}, and the {theirs}"


class UnidentifiedProcessor(Difference):
    """A processor without a name or caches, which cannot be distinguished from others."""

    def __str__(self) -> str:
        return f"{self.name} is {self.ours!r} without caches, which may be any machine, and the same"


def join_conditions(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Join the conditions of two launches, which must agree; either may be empty.

    :raises ValueError: names what differs.
    """
    if not one or not other:
        return {**one, **other}
    wrong = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    bindings = one.get("binding", {}), other.get("binding", {})
    both = bindings[0].keys() & bindings[1].keys()
    if all(bindings[0][layout] == bindings[1][layout] for layout in both):
        wrong -= {"binding"}
    if LIMITS not in one or LIMITS not in other:  # older launches do not record them
        wrong -= {LIMITS}
    if not list_other_libraries(one, other):
        wrong -= {BELOW}
    if wrong:
        raise ValueError(", ".join(sorted(wrong)))
    below = other.get(BELOW, {}) | one.get(BELOW, {})
    return {**other, **one, "binding": bindings[0] | bindings[1], **({BELOW: below} if below else {})}


def list_other_libraries(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """List the libraries below an MPI that two launches have both loaded in different versions.

    Variables decide which of them an MPI loads; older launches do not record any.
    """
    ours, theirs = one.get(BELOW, {}), other.get(BELOW, {})
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def find_missing_fact(ours: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Find the first fact of a launch that a reference does not have; empty if it has all.

    A reference without an entry had nothing in front of the MPI, as far as is known, and a program with the
    MPI's own binary interface. Older ones lack the shell's limits and the libraries below the MPI.
    """
    untold = {INTERPOSED, STANDARD_ABI, LIMITS, BELOW}
    if lacking := next((name for name in ours if name not in {*known, *untold}), ""):
        return lacking
    layouts = ours.get("binding", {}).keys() - known.get("binding", {}).keys()
    return f"binding of {min(layouts)}" if layouts else ""


def list_differences(ours: Mapping[str, Any], known: Mapping[str, Any]) -> list[Difference]:
    """List the differences between a launch's conditions and those of a reference, which has all facts."""
    alone = ("binding", INTERPOSED, STANDARD_ABI, BELOW, *({LIMITS} - known.keys()))
    pairs = {name: (value, known[name]) for name, value in ours.items() if name not in alone}
    for layout, shape in ours.get("binding", {}).items():
        pairs["binding"] = (shape, known["binding"][layout])
    loaded = InterposedLibraries(INTERPOSED, ours.get(INTERPOSED, ""), known.get(INTERPOSED, ""))
    interface = BinaryInterface(STANDARD_ABI, ours.get(STANDARD_ABI, ""), known.get(STANDARD_ABI, ""))
    differences: list[Difference] = [
        difference for difference in (loaded, interface) if difference.ours != difference.theirs
    ]
    if names := list_other_libraries(ours, known):
        differences.append(
            LibraryBelow(
                BELOW, *({name: conditions[BELOW][name] for name in names} for conditions in (ours, known))
            )
        )
    return differences + [Difference(name, *pair) for name, pair in pairs.items() if pair[0] != pair[1]]


def reduce_to_differences(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Reduce two long texts to the lines that differ."""
    if not isinstance(ours, str) or not isinstance(theirs, str):
        return ours, theirs
    lines = [text.split(SEPARATOR) for text in (ours, theirs)]
    if max(map(len, lines)) == 1:
        return ours, theirs
    ours_only = [line for line in lines[0] if line not in lines[1]]
    other = [line for line in lines[1] if line not in lines[0]]
    return SEPARATOR.join(ours_only), SEPARATOR.join(other)


#: Share of a case's launches with other placements on a machine that moves ranks; one in 50 may be an error.
SHIFTING = 0.1


@dataclass(frozen=True)
class PlacedLaunches:
    """Launches of one case with the same placement of ranks."""

    core_latency: float | None  #: their median, in seconds; None if unknown
    values: list[float]
    sessions: list[int]  #: number of each launch's session; empty if unknown
    days: list[int]  #: day of each launch; empty if unknown
    headlines: list[float]  #: headline of each launch; empty if they are the judged values
    since: str = ""  #: end (UTC) of the last launch that was calibrated, not learned; empty if unknown


def read_placed_launches(origin: Mapping[str, Any], case: Case) -> list[PlacedLaunches]:
    """Read the launches behind a case by placement of their ranks, those behind its row first.

    Empty if there are none or they are not positive numbers.
    """
    calibration = provenance.find_case_calibration(origin["programs"].get(case.program), case.key) or {}
    values = provenance.find_values(calibration, case.key)
    headlines = provenance.find_headlines(calibration, case.key)
    if not _are_values(values) or not (headlines is None or _are_values(headlines)):
        return []
    latencies = provenance.find_core_latencies(calibration, case.key)
    alike = is_placeless(case)
    places = group_placements([None] * len(latencies) if alike else latencies)
    return [_place(calibration, case.key, placement, values, headlines) for placement in places]


def read_all_placed(
    references: Mapping[Case, Reference], origin: Mapping[str, Any]
) -> dict[Case, list[PlacedLaunches]]:
    """Read the launches behind each case of real time, by placement of their ranks."""
    return {
        case: read_placed_launches(origin, case)
        for case, reference in references.items()
        if not reference.exact
    }


def _place(
    told: Mapping[str, Any],
    key: str,
    place: Placement,
    values: Sequence[float],
    headlines: Sequence[float] | None,
) -> PlacedLaunches:
    """Select the records of the launches with one placement."""
    ends = provenance.list_ends(told, key, place.members)
    return PlacedLaunches(
        place.core_latency,
        [values[number] for number in place.members],
        provenance.number_launches(told, ends),
        [number_day(end) for end in ends],
        [headlines[number] for number in place.members] if headlines else [],
        max(provenance.list_ends(told, key, place.members, learned=False), default=""),
    )


def _are_values(values: Any) -> bool:
    """Return whether a value is a list of positive numbers that is not empty."""
    return isinstance(values, list) and bool(values) and all(map(_is_value, values))


def _is_value(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0


def is_shifting(placed: Iterable[Sequence[PlacedLaunches]]) -> bool:
    """Return whether a machine moves its ranks: many launches of some case had another placement.

    :param placed: the launches of each case, the most frequent placement first
    """
    for placements in placed:
        most, *others = [
            len(launches.values) for launches in placements if launches.core_latency is not None
        ] or [0]
        if others and sum(others) >= SHIFTING * most:
            return True
    return False
