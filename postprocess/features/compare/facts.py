"""What the MPI of each side is: its library and settings, and its fingerprint by measurement.

The library tells them itself, in one launch of each side whose times do not count: asking would disturb a
measurement. A control variable is what MPI_T of the MPI standard calls so; its value is that of the launch.

The fingerprint is taken of ping-pong with warm buffers, in launches of their own. A switch is a step of the
time from one size to the next, as a change of protocol leaves it; which protocol, no measurement tells.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import MEGABYTES, SECONDS, quantity, size
from postprocess.base.records import Amount, Count, Measured, parse_record
from postprocess.base.strict_json import parse_json
from postprocess.stats.curves import LEAST_POINTS, MOST_SEGMENTS, Segment, Switch, find_switches, fit_segments
from postprocess.stats.launches import group_placements
from site_configs.families import FAMILIES, find_family, list_unread_variables
from site_configs.mpi.family import identify_library

ABSENT = "none"  #: for what a side does not have, as people read it
UNREAD = "empty"  #: for a control variable without a value that can be read
PLACE = "PREFIX"  #: in a value, for where the library is installed
#: Objects that are the suite's own, and differ wherever they are built.
OWN_OBJECTS = ("mpicost", "libwitness.so")
#: Variables that say how an MPI is to behave. Those that launchers make for each launch are none of them.
SETTINGS = (*(word for family in FAMILIES.values() for word in family.variables), "UCX_", "FI_", "OMP_")
MADE_BY_LAUNCHERS = ("I_MPI_INFO_", "I_MPI_HYDRA_", "I_MPI_INTERNAL_", "I_MPI_ROOT", "OMPI_MCA_PREFIXES")
#: How each kind of difference is named, in the order of showing.
MPI, TRANSPORT, OBJECT = "MPI", "transport", "loaded library"
SETTING, VARIABLE = "environment variable", "control variable"
KINDS = (MPI, TRANSPORT, OBJECT, SETTING, VARIABLE)
SHOWN_WHOLE = (MPI, TRANSPORT)  #: in a summary; of the others their number
ID_SHOWN = 17  #: digits of a build ID
MOST_LETTERS = 60  #: of a value: longer ones say how something was built
TELLS = "_version"  #: how the name of a variable ends that tells something and sets nothing


@dataclass(frozen=True)
class LoadedObject:
    """A program or library in memory."""

    path: str
    id: str  #: build ID, or a hash of the instructions


@dataclass(frozen=True)
class ControlVariable:
    name: str
    verbosity: str  #: for whom it is, as ``user basic``
    value: str = ""  #: empty if it has none, or none that can be read


@dataclass(frozen=True)
class SideFacts:
    """What the MPI library of a side tells of itself, as the witness writes it."""

    mpi_library: str  #: text of MPI_Get_library_version
    mpi_standard: str
    linked_as: str  #: path of the MPI library, by the name that programs are linked to
    objects: tuple[LoadedObject, ...]
    variables: tuple[ControlVariable, ...]
    environment: Mapping[str, str]
    transports: Mapping[str, str] = field(default_factory=dict)  #: of a further launch, by name
    #: Of a program of the standard ABI: ``version``, ``program`` (hash of its file), ``library``
    standard_abi: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        return str(PurePosixPath(self.linked_as).parent.parent)

    @property
    def loaded(self) -> dict[str, str]:
        """Build ID of each loaded object by its file name, without the suite's own."""
        named = {PurePosixPath(each.path).name: each.id[:ID_SHOWN] for each in self.objects}
        return {name: id_ for name, id_ in named.items() if name not in OWN_OBJECTS}

    @property
    def settings(self) -> dict[str, str]:
        """Variables of the environment that say how an MPI is to behave."""
        return {
            name: value
            for name, value in sorted(self.environment.items())
            if name.startswith(SETTINGS) and not name.startswith(MADE_BY_LAUNCHERS)
        }

    @property
    def values(self) -> dict[str, str]:
        """Value of each control variable that the MPI reads, without where the library is installed."""
        unread = list_unread_variables(identify_library(self.mpi_library)[0], self.mpi_library)
        return {
            variable.name: variable.value.replace(self.prefix, PLACE) or UNREAD
            for variable in self.variables
            if not variable.name.startswith(unread)
        }


@dataclass(frozen=True)
class FactDifference:
    """A fact that differs between the sides."""

    kind: str  #: one of :data:`KINDS`
    name: str
    old: str | None  #: None if the side does not have it
    new: str | None
    verbosity: str = ""  #: of a control variable

    @property
    def texts(self) -> tuple[str, str]:
        """Return what the two sides have, as people read it."""
        return ABSENT if self.old is None else self.old, ABSENT if self.new is None else self.new


def read_facts(path: Path) -> SideFacts:
    """Read the facts that a launch has written: a line for each of its starts, of which the first is returned.

    :raises UsageError: if there are none, or they are damaged
    """
    try:
        lines = files.read_regular(path).decode().splitlines() or [""]
        first, *_ = [parse_record(parse_json(line), SideFacts) for line in lines]
        return first
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: the launch recorded no facts of its MPI") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}: is damaged") from None


def compare_facts(old: SideFacts, new: SideFacts) -> list[FactDifference]:
    """Compare the facts of two sides; nothing that is the same is in the list."""
    one, two = tell_libraries(old, new)
    kinds: tuple[tuple[str, Mapping[str, str], Mapping[str, str]], ...] = (
        (MPI, one, two),
        (TRANSPORT, old.transports, new.transports),
        (OBJECT, old.loaded, new.loaded),
        (SETTING, old.settings, new.settings),
        (VARIABLE, old.values, new.values),
    )
    verbosities = {variable.name: variable.verbosity for variable in (*old.variables, *new.variables)}
    return [
        FactDifference(kind, *each, verbosities.get(each[0], "") if kind == VARIABLE else "")
        for kind, one, two in kinds
        for each in compare_maps(one, two)
    ]


def describe_shared_program(old: SideFacts | None, new: SideFacts | None) -> str:
    """Describe in a sentence that both sides ran the same file; empty if they did not, or do not tell.

    Only programs that are built against the standard ABI tell: of others each MPI has its own.
    """
    one, two = (side.standard_abi if side else {} for side in (old, new))
    program, version = one.get("program"), one.get("version")
    if not program or not version or program != two.get("program"):
        return ""
    return f"Both sides ran the same file ({program}), built once against the standard ABI {version} of MPI"


def compare_maps(
    old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[tuple[str, str | None, str | None]]:
    """Compare what two sides say by name; None for what a side does not have."""
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def tell_libraries(old: SideFacts, new: SideFacts) -> Iterator[dict[str, str]]:
    """Tell what both libraries are: the lines of their versions by name if they have any, else the text."""
    named = [name_lines(side.mpi_library) for side in (old, new)]
    if not all(named):
        named = [{"MPI library": " ".join(side.mpi_library.split())} for side in (old, new)]
    for side, lines in zip((old, new), named, strict=True):
        abi = PurePosixPath(side.linked_as).name
        yield {**lines, "MPI standard": side.mpi_standard, "ABI (linked as)": abi}


def name_lines(library: str) -> dict[str, str]:
    """Name the lines of a version, as MPICH names its own; none if the first two have no name."""
    lines = [line.partition(":") for line in library.splitlines() if line.strip()]
    if len(lines) < 2 or not all(sign for _, sign, _ in lines[:2]):
        return {}
    return {name.strip(): " ".join(value.split()) for name, _, value in lines}


def rank_verbosity(verbosity: str) -> tuple[int, int]:
    """Rank a verbosity of MPI_T: users before tuners before developers, the basic first, other words last."""
    whom, _, how = verbosity.partition(" ")
    return ["user", "tuner", "developer", whom].index(whom), ["basic", "detail", "all", how].index(how)


def summarise_facts(differences: Sequence[FactDifference]) -> list[str]:
    """Summarise what differs in a line each; of libraries and variables their numbers."""
    told = [difference for difference in differences if difference.kind in SHOWN_WHOLE]
    lines = [f"{difference.name}: {' -> '.join(difference.texts)}" for difference in told]
    for kind in (each for each in KINDS if each not in SHOWN_WHOLE):
        own = [difference for difference in differences if difference.kind == kind]
        gone = sum(difference.new is None for difference in own)
        added = sum(difference.old is None for difference in own)
        other = len(own) - gone - added
        words = ((gone, "only old"), (added, "only new"), (other, "different"))
        if own:
            counts = ", ".join(f"{number} {word}" for number, word in words if number)
            lines.append(f"{kind}, by name: {counts}")
    return lines


def find_settings_to_try(differences: Sequence[FactDifference], new: SideFacts) -> dict[str, FactDifference]:
    """Find what both sides have with another value, by the variable that sets it; what is for users first.

    A value that names a place, or cannot be read, is left out.
    """
    ordered = sorted(differences, key=lambda each: (rank_verbosity(each.verbosity), each.name))
    return {variable: difference for difference in ordered if (variable := find_variable(difference, new))}


def find_variable(each: FactDifference, new: SideFacts) -> str:
    """Find the variable that gives the new side the old value; empty if nothing can."""
    if not each.old or each.old == UNREAD or each.name.endswith(TELLS):
        return ""
    if PLACE in each.old or "/" in each.old or len(each.old) > MOST_LETTERS:
        return ""
    if each.kind == VARIABLE and each.new is not None:
        return name_variable(each.name, new)
    return each.name if each.kind == SETTING else ""


def name_variable(control: str, side: SideFacts) -> str:
    """Name the variable of the environment that sets a control variable; empty if none is known."""
    if control.startswith(SETTINGS):
        return control
    prefix = find_family(identify_library(side.mpi_library)[0]).control_prefix
    return f"{prefix}{control}" if prefix else ""


STEPS = (1, 1.5)  #: sizes of an octave, as parts of a power of two
#: Bytes that are measured: from an empty message to 4 MiB.
SIZES = (0, 1, 2, 4, 8, *(int(2**k * f) for k in range(4, 22) for f in STEPS), 2**22)
SIDES = ("old", "new")
UNKNOWN_ERROR = 0.05  #: relative, of a time of which there is one launch only
MEDIAN_LOSS = 1.25  #: of a median beside a mean, in standard errors


@dataclass(frozen=True)
class FingerprintLaunch:
    """What one launch of a side says of ping-pong at one place."""

    side: str
    number: Count  #: of the launch, from 0 on
    partition: str
    layout: str  #: as ``2x1``
    session: str
    seconds: Amount  #: that the launch and its start took; of one place only if there are several
    sizes: tuple[Count, ...]
    times: tuple[Measured, ...]  #: in seconds
    #: From core to core, in seconds; None where nothing tells
    core_latency: Measured | None = None
    moved: bool = False  #: whether its ranks were moved meanwhile: it counts nowhere


@dataclass(frozen=True)
class SideFingerprint:
    sizes: tuple[int, ...]
    times: tuple[float, ...]  #: median of the launches, in seconds
    launches: int
    empty: float | None  #: time of an empty message, in seconds
    #: bytes per second that a further byte is worth, of the longest messages
    bandwidth: float | None
    segments: tuple[Segment, ...]
    switches: tuple[Switch, ...]

    @property
    def words(self) -> dict[str, str]:
        """What it says, for people; of a switch the last size before it, and what it costs or saves."""
        switches = [f"{size(switch.below)} ({switch.step:.2f} times)" for switch in self.switches]
        return {
            "empty message": quantity(self.empty, SECONDS),
            "asymptotic bandwidth": quantity(self.bandwidth and self.bandwidth / 1e6, MEGABYTES),
            "switches after": ", ".join(switches) or "none",
        }


@dataclass(frozen=True)
class FingerprintPair:
    """The fingerprints of both sides at one place."""

    partition: str
    layout: str
    old: SideFingerprint
    new: SideFingerprint

    @property
    def inside(self) -> bool:
        """Whether its messages stay inside a node."""
        return not self.layout.endswith("x1")

    @property
    def where(self) -> str:
        """Where its messages go, in words."""
        return f"{'inside a node' if self.inside else 'between nodes'} ({self.partition})"

    def ratio(self, low: int, high: int) -> float:
        """Return how many times as slow messages of these sizes are on the new side, by the median; else 1."""
        new = dict(zip(self.new.sizes, self.new.times, strict=True))
        both = zip(self.old.sizes, self.old.times, strict=True)
        ratios = [new[n] / t for n, t in both if low <= n <= high and n in new]
        return float(np.median(ratios)) if ratios else 1.0


def build_fingerprints(launches: Iterable[FingerprintLaunch]) -> list[FingerprintPair]:
    """Build the fingerprints of all places at which both sides were measured with their ranks on like cores."""
    places: dict[tuple[str, str], list[FingerprintLaunch]] = defaultdict(list)
    for launch in launches:
        if not launch.moved:
            places[launch.partition, launch.layout].append(launch)
    found = []
    for place, some in sorted(places.items()):
        old, new = select_like_cores(some)
        if old and new:
            found.append(FingerprintPair(*place, build_side(old), build_side(new)))
    return found


def select_like_cores(
    launches: Sequence[FingerprintLaunch],
) -> tuple[list[FingerprintLaunch], list[FingerprintLaunch]]:
    """Select the launches of the old and of the new side whose ranks lay alike: where both have the most."""
    groups = group_placements([launch.core_latency for launch in launches])
    sides = []
    for group in groups:
        old, new = ([launches[n] for n in group.members if launches[n].side == side] for side in SIDES)
        sides.append((old, new))
    return max(sides, key=lambda pair: min(map(len, pair)), default=([], []))


def build_side(launches: Sequence[FingerprintLaunch]) -> SideFingerprint:
    logs: dict[int, list[float]] = defaultdict(list)
    for launch in launches:
        for bytes_, time in zip(launch.sizes, launch.times, strict=True):
            logs[bytes_].append(math.log(time))
    sizes = tuple(sorted(logs))
    times = tuple(math.exp(float(np.median(logs[each]))) for each in sizes)
    error = estimate_error([logs[each] for each in sizes])
    found = fit_segments(sizes, times, MOST_SEGMENTS) if len(sizes) >= LEAST_POINTS else ()
    last = found[-1].slope if found else 0.0
    return SideFingerprint(
        sizes,
        times,
        len(launches),
        times[0] if sizes and sizes[0] == 0 else None,
        1 / last if last > 0 else None,
        found,
        tuple(find_switches(sizes, times, found, error) if found else ()),
    )


def estimate_error(logs: Sequence[Sequence[float]]) -> float:
    """Estimate the relative standard error of a median of launches, of all sizes alike."""
    spreads = [float(np.var(log, ddof=1)) for log in logs if len(log) > 1]
    if not spreads:
        return UNKNOWN_ERROR
    number = float(np.mean([len(log) for log in logs]))
    return MEDIAN_LOSS * math.sqrt(float(np.median(spreads)) / number)


def tell_fingerprint(pair: FingerprintPair) -> list[tuple[str, str, str]]:
    """Tell a fingerprint: what, of the old side, of the new one."""
    new = pair.new.words
    return [(f"{what}, {pair.where}", told, new[what]) for what, told in pair.old.words.items()]


def describe_fingerprint(pairs: Sequence[FingerprintPair]) -> dict[str, Any]:
    """Describe fingerprints for programs. Times in seconds, bandwidth in bytes per second."""
    return {
        f"{pair.partition}/{pair.layout}": {
            name: {
                "launches": side.launches,
                "empty": side.empty,
                "bandwidth": side.bandwidth,
                "switches": [[s.below, s.above, s.step] for s in side.switches],
                "sizes": list(side.sizes),
                "times": list(side.times),
            }
            for name, side in (("old", pair.old), ("new", pair.new))
        }
        for pair in pairs
    }
