"""Conditions that must match for two values to be comparable: launch facts, normalised.

A difference that cannot change a time must not break a comparison, or people learn to accept everything:
host names, paths, the kernel (checked by ``references age``), who built an MPI, warnings and debug
symbols, and which very cores are used. Everything else counts, until the site accepts it: whoever upgrades a
compiler wants to see that first. Spack's hash of a program is none of the facts, since the paths of the
checkout and of what the site has installed are in it. What it stands for is compared instead: sources,
compiler, flags, and what the MPI says of its build.
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

#: Facts in words, where the name alone does not tell people what it is
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
#: Facts that options, variables or files can set as they were
CHOSEN = ("trials", "rounds", "iterations", INTERPOSED, BELOW)


def name_fact(name: str) -> str:
    return WORDS.get(name, name.replace("_", " "))


@dataclass(frozen=True)
class Incomparability:
    """Why a launch may not be held against a reference."""

    reason: str  #: one line, with what to do
    #: What makes the reference useless for launches like this one, said of the reference: ``is of another
    #: compiler``. Empty where the launch can be brought back to what the reference was measured with.
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
        """Whether launches to come will differ too, whatever options and variables a user sets."""
        return self.name not in CHOSEN


class InterposedLibraries(Difference):
    """A library in front of the MPI, loaded for a launch and not for its reference, or the other way round."""

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
    """Another UCX or libfabric below the MPI than the reference was measured with."""

    def __str__(self) -> str:
        ours, theirs = (
            ", ".join(f"{name} {said}" for name, said in told.items()) for told in (self.ours, self.theirs)
        )
        return f"below the MPI is {ours}, and {theirs}"

    @property
    def fix(self) -> str:
        """What to do about it."""
        return "see what leads to it (LD_LIBRARY_PATH, FI_PROVIDER_PATH, I_MPI_OFI_LIBRARY), or calibrate again"


class BinaryInterface(Difference):
    """A program of the standard ABI held against one of another version, or of the MPI's own interface."""

    def __str__(self) -> str:
        ours, theirs = (
            f"standard ABI {version} of MPI" if version else "MPI's own" for version in (self.ours, self.theirs)
        )
        return f"the program's binary interface is the {ours}, and the {theirs}"


class UnidentifiedProcessor(Difference):
    """A processor without a name or caches, which cannot be distinguished from another one."""

    def __str__(self) -> str:
        return f"{self.name} is {self.ours!r} without caches, which may be any machine, and the same"


def join_conditions(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Join the conditions that two launches share; either may be empty.

    :raises ValueError: naming what differs.
    """
    if not one or not other:
        return {**one, **other}
    wrong = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    bindings = one.get("binding", {}), other.get("binding", {})
    both = bindings[0].keys() & bindings[1].keys()
    if all(bindings[0][layout] == bindings[1][layout] for layout in both):
        wrong -= {"binding"}
    if LIMITS not in one or LIMITS not in other:  # older launches do not have them
        wrong -= {LIMITS}
    if not list_other_libraries(one, other):
        wrong -= {BELOW}
    if wrong:
        raise ValueError(", ".join(sorted(wrong)))
    below = other.get(BELOW, {}) | one.get(BELOW, {})
    return {**other, **one, "binding": bindings[0] | bindings[1], **({BELOW: below} if below else {})}


def list_other_libraries(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """List the libraries below an MPI that two launches have both loaded, and not the same.

    Which of them an MPI loads, its variables decide; older launches tell none.
    """
    ours, theirs = one.get(BELOW, {}), other.get(BELOW, {})
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def find_missing_fact(ours: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Find the first fact of a launch that a reference does not have; empty if it has all.

    One without an entry had nothing in front of the MPI, as far as is known, and a program of the MPI's own
    binary interface. Older ones do not tell the limits of the shell, nor what is below the MPI.
    """
    untold = {INTERPOSED, STANDARD_ABI, LIMITS, BELOW}
    if lacking := next((name for name in ours if name not in {*known, *untold}), ""):
        return lacking
    layouts = ours.get("binding", {}).keys() - known.get("binding", {}).keys()
    return f"binding of {min(layouts)}" if layouts else ""


def list_differences(ours: Mapping[str, Any], known: Mapping[str, Any]) -> list[Difference]:
    """List the differences of a launch's conditions from those of a reference, which has all of them."""
    alone = ("binding", INTERPOSED, STANDARD_ABI, BELOW, *({LIMITS} - known.keys()))
    pairs = {name: (value, known[name]) for name, value in ours.items() if name not in alone}
    for layout, shape in ours.get("binding", {}).items():
        pairs["binding"] = (shape, known["binding"][layout])
    loaded = InterposedLibraries(INTERPOSED, ours.get(INTERPOSED, ""), known.get(INTERPOSED, ""))
    interface = BinaryInterface(STANDARD_ABI, ours.get(STANDARD_ABI, ""), known.get(STANDARD_ABI, ""))
    found: list[Difference] = [each for each in (loaded, interface) if each.ours != each.theirs]
    if names := list_other_libraries(ours, known):
        found.append(
            LibraryBelow(BELOW, *({name: told[BELOW][name] for name in names} for told in (ours, known)))
        )
    return found + [Difference(name, *pair) for name, pair in pairs.items() if pair[0] != pair[1]]


def reduce_to_differences(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Reduce two long texts to the lines that differ."""
    if not isinstance(ours, str) or not isinstance(theirs, str):
        return ours, theirs
    lines = [text.split(SEPARATOR) for text in (ours, theirs)]
    if max(map(len, lines)) == 1:
        return ours, theirs
    own = [line for line in lines[0] if line not in lines[1]]
    other = [line for line in lines[1] if line not in lines[0]]
    return SEPARATOR.join(own), SEPARATOR.join(other)


#: Share of a case's launches that lie elsewhere on a machine that moves ranks; of 50 one may be mistaken.
SHIFTING = 0.1


@dataclass(frozen=True)
class PlacedLaunches:
    """Launches of one case whose ranks lay alike."""

    core_latency: float | None  #: median of theirs, in seconds; None if unknown
    values: list[float]
    sessions: list[int]  #: number of the session of each; empty if unknown
    days: list[int]  #: the day of each; empty likewise
    headlines: list[float]  #: of each; empty where they are what is judged
    since: str = ""  #: end (UTC) of the last one that no night has taught; empty if unknown


def read_placed_launches(origin: Mapping[str, Any], case: Case) -> list[PlacedLaunches]:
    """Read the launches behind a case by where their ranks lay, those behind its row first.

    Empty if there are none or they are no positive numbers.
    """
    told = provenance.find_case_calibration(origin["programs"].get(case.program), case.key) or {}
    values = provenance.find_values(told, case.key)
    headlines = provenance.find_headlines(told, case.key)
    if not _are_values(values) or not (headlines is None or _are_values(headlines)):
        return []
    latencies = provenance.find_core_latencies(told, case.key)
    alike = is_placeless(case)
    places = group_placements([None] * len(latencies) if alike else latencies)
    return [_place(told, case.key, placement, values, headlines) for placement in places]


def read_all_placed(
    references: Mapping[Case, Reference], origin: Mapping[str, Any]
) -> dict[Case, list[PlacedLaunches]]:
    """Read the launches behind each case that is measured in real time, by where their ranks lay."""
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
    """Select the records of the launches of one place."""
    ends = provenance.list_ends(told, key, place.members)
    return PlacedLaunches(
        place.core_latency,
        [values[number] for number in place.members],
        provenance.number_launches(told, ends),
        [number_day(each) for each in ends],
        [headlines[number] for number in place.members] if headlines else [],
        max(provenance.list_ends(told, key, place.members, learned=False), default=""),
    )


def _are_values(values: Any) -> bool:
    """Return whether something is a list of positive numbers, one at least."""
    return isinstance(values, list) and bool(values) and all(map(_is_value, values))


def _is_value(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0


def is_shifting(placed: Iterable[Sequence[PlacedLaunches]]) -> bool:
    """Return whether a machine moves its ranks: a good part of some case's launches lay on other cores.

    :param placed: the launches of each case, those of most launches first
    """
    for some in placed:
        most, *others = [len(each.values) for each in some if each.core_latency is not None] or [0]
        if others and sum(others) >= SHIFTING * most:
            return True
    return False
