"""The passes of a comparison, one line of JSON each: every figure of it is computed from these lines.

A pass is what one side measured without a break. A line is written when its pass is over, whole; what was
interrupted is measured again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from postprocess.base.formats import Unit, plural, size
from postprocess.base.records import Amount, Count, FileName, Journal, Measured, Positive, parse_record
from postprocess.features.compare.facts import FingerprintLaunch, SideFacts
from postprocess.model.case import Case
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.model.verdict import Verdict
from postprocess.stats.band import LARGE_BYTES
from postprocess.stats.priors import SMALL_BYTES

FILE = "passes.jsonl"
TRIAL = "trial.jsonl"  #: the same of a comparison that was refused after its trial run
LARGEST_MESSAGE = 2**40  #: in bytes
Side = Literal["old", "new"]
OLD: Side = "old"
NEW: Side = "new"
SIDES = (OLD, NEW)


@dataclass(frozen=True)
class ComparedSide:
    label: str  #: as the user named it
    environment: str
    set_env: Mapping[str, str] = field(default_factory=dict)  #: of its launches
    plant: str = ""  #: delay that is planted into its launches, as ``slower-10:bcast``


@dataclass(frozen=True)
class ComparisonHeader:
    """The first line. A later call that continues a comparison must ask for the same."""

    site: str
    old: ComparedSide
    new: ComparedSide
    choice: Mapping[str, Any]  #: of what is measured and how
    #: as fractions: below 1 kB, to 10 kB, from there on
    margins: tuple[Positive, Positive, Positive]
    seconds: int | None  #: the budget
    control: bool  #: whether both sides may be the same
    seed: int
    differences: tuple[tuple[str, str, str], ...]  #: what, on the old side, on the new one
    started_utc: str
    command: tuple[str, ...]
    unpaired: bool = False  #: whether the sides are stored sessions, which were not taken in turn
    versions: tuple[ComparedSide, ...] = ()  #: of a history, from the first side to the last
    #: versions that cannot be had, and why
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def sides(self) -> dict[str, ComparedSide]:
        """The sides by the names that passes call them: versions of a history by their environments."""
        return {version.environment: version for version in self.versions} or {OLD: self.old, NEW: self.new}

    def margin(self, case: SharedCase) -> float:
        """Return the margin of a case's class of sizes, as a fraction."""
        return self.margins[case.size_class]


@dataclass(frozen=True)
class CaseValue:
    """The result of one launch for a case."""

    value: Measured | None
    unit: Unit
    verdict: str = ""  #: of a launch that failed, or ``skipped``; empty if there is a value
    reason: str = ""
    rerun: str = ""
    exact: bool = False
    #: whether its job never ran, or its nodes went away: no program has a part in that
    lost: bool = False
    #: Of what was skipped: whether the side cannot have its program, which was known before anything was tried
    foreseen: bool = False
    #: From core to core before and after the case, in seconds; None where nothing tells
    core_latency: tuple[Measured | None, Measured | None] | None = None


@dataclass(frozen=True)
class LaunchValues:
    """One launch: where and how it ran, and its cases by their key for both sides."""

    name: str
    place: Mapping[str, str]  #: what both launches of a pair must share
    cases: Mapping[str, CaseValue]
    seconds: Amount = 0.0  #: of its job; of several starts of one job each has its share


@dataclass(frozen=True)
class ComparisonPass:
    """All launches that one side made in a row."""

    block: Count  #: 0 for the trial run, whose times do not count
    position: Count  #: in its block, from 0
    side: str  #: ``old`` or ``new``; in a history the environment of a version
    session: FileName
    seconds: Amount
    launches: tuple[LaunchValues, ...]

    @property
    def values(self) -> Iterator[tuple[str, CaseValue]]:
        """What each launch says of each case, by its key."""
        return (item for launch in self.launches for item in launch.cases.items())


@dataclass(frozen=True)
class ReferenceEffects:
    """What became of the references that the old side's environment has, seen from launches of the new side."""

    environment: str  #: of the old side, whose references they are
    outdated: Mapping[str, str] = field(default_factory=dict)  #: why, by the key of the reference
    holding: int = 0  #: references that stay comparable
    #: cases of the new side's environment that have no comparable reference of their own
    without: int = 0

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Keys of the references that no longer hold, by the reason, the most frequent reason first."""
        counted = Counter(self.outdated.values())
        return {
            reason: sorted(key for key, why in self.outdated.items() if why == reason)
            for reason, _ in counted.most_common()
        }


@dataclass(frozen=True)
class SideNoise:
    """How far the mean of a side's stored sessions may lie off, by what is known of sessions beforehand."""

    deviation: Positive  #: standard deviation of its logarithm
    degrees: Positive  #: of freedom that it is worth
    source: str  #: ``reference``, or ``table`` of other machines


CaseNoise = Mapping[Side, SideNoise]  #: by side; without a side of which nothing is known


@dataclass(frozen=True)
class KnownNoise:
    """How far each case of stored sessions may lie off, by its key."""

    cases: Mapping[str, CaseNoise]


@dataclass(frozen=True)
class PlannedLooks:
    """After how many pairs, or rounds, one will look."""

    looks: tuple[Annotated[int, msgspec.Meta(ge=2, le=10**6)], ...]


@dataclass(frozen=True)
class ReportedFacts:
    """What the MPI of a side tells of itself."""

    side: str
    facts: SideFacts | None
    problem: str = ""  #: why it tells nothing


class CasePlace(NamedTuple):
    partition: str
    program: str
    variant: str  #: state of the caches, and synchroniser
    layout: str  #: processes and processes per node, as ``4x2``

    @property
    def processes(self) -> tuple[int, int]:
        """Number of processes, and of those on each node."""
        processes, _, per_node = self.layout.partition("x")
        return int(processes), int(per_node)

    @property
    def layout_words(self) -> str:
        """The layout, for people."""
        processes, per_node = self.processes
        return f"{plural(processes, 'process', 'es')}, {per_node} a node"

    @property
    def words(self) -> str:
        """The place, for people."""
        return f"{self.program}, {self.layout_words}, {self.variant}, {self.partition}"


class SharedCase(NamedTuple):
    """A case without its environment: what both sides measure."""

    partition: str
    program: str
    label: str  #: routine, with its peer
    variant: str  #: state of the caches, and synchroniser
    layout: str  #: processes and processes per node, as ``4x2``
    bytes: int

    @classmethod
    def of(cls, case: Case) -> SharedCase:
        """Return what a case shares with that of the other side."""
        return cls(case.partition, case.program, case.label, case.variant, case.layout, case.bytes)

    @classmethod
    def from_key(cls, key: str) -> SharedCase:
        partition, *others = key.split("/")
        case = Case.from_key(":".join(["any", "any", "any", *others]))
        return cls.of(case)._replace(partition=partition)  # or partition and environment

    @property
    def key(self) -> str:
        """Unique in a comparison: ``cpu/mpicost/bcast/evict-dissemination/2x2/8``."""
        return "/".join(map(str, self))

    @property
    def place(self) -> CasePlace:
        return CasePlace(self.partition, self.program, self.variant, self.layout)

    @property
    def size_class(self) -> int:
        """Which margin is its own: 0 below 1 kB, 1 below 10 kB, 2 from there on."""
        return (self.bytes >= SMALL_BYTES) + (self.bytes >= LARGE_BYTES)

    @property
    def words(self) -> str:
        """Routine and size, for people."""
        return f"{self.label} {size(self.bytes)}" if self.bytes else self.label

    @property
    def where(self) -> str:
        """How it is measured, in short."""
        return f"{self.layout} {self.program} {self.variant}"

    @property
    def routine(self) -> str:
        """The routine without its peer."""
        return self.label.partition("@")[0]

    @property
    def is_control(self) -> bool:
        return self.program == "mpicost" and self.routine in CONTROLS


@dataclass(frozen=True)
class StoredComparison:
    """A comparison as far as it was measured."""

    header: ComparisonHeader
    looks: tuple[int, ...]
    passes: tuple[ComparisonPass, ...]
    told: Mapping[str, ReportedFacts] = field(default_factory=dict)  #: by side
    noise: Mapping[str, CaseNoise] = field(default_factory=dict)  #: of stored sessions, by key
    fingerprints: tuple[FingerprintLaunch, ...] = ()
    effects: ReferenceEffects | None = None  #: of the upgrade, on references

    @property
    def seconds(self) -> float:
        """What all launches have taken, in seconds."""
        return sum(each.seconds for each in self.passes) + sum(
            fingerprint.seconds for fingerprint in self.fingerprints
        )

    def block_seconds(self, block: int) -> float:
        """Return what the passes of a block have taken, in seconds; the trial run is block 0."""
        return sum(each.seconds for each in self.passes if each.block == block)

    @property
    def is_exact(self) -> bool:
        """Whether time is simulated, where no MPI library tells anything."""
        return any(said.exact for each in self.passes for _, said in each.values)

    def list_cases(self, side: str, block: int | None = None) -> list[SharedCase]:
        """List the cases of which a side has a value, in any block or in one; in the order of keys."""
        some = (each for each in self.passes if each.side == side and (block is None or each.block == block))
        return [
            SharedCase.from_key(key)
            for key in sorted({key for each in some for key, said in each.values if said.value is not None})
        ]


RECORDS: Mapping[str, type] = {
    "begun": ComparisonHeader,
    "looks": PlannedLooks,
    "pass": ComparisonPass,
    "noise": KnownNoise,
    "references": ReferenceEffects,
    "fingerprint": FingerprintLaunch,
    "facts": ReportedFacts,
}
NAMES = {kind: name for name, kind in RECORDS.items()}


def open_journal(path: Path) -> Journal:
    return Journal(path, "choose another folder", missing="name the folder of a comparison")


def append_record(path: Path, record: Any) -> None:
    """Write down one of :data:`RECORDS`, whole; the header comes first.

    :raises UsageError: if it cannot be written.
    """
    open_journal(path).append({"record": NAMES[type(record)], **asdict(record)})


def read_comparison(path: Path) -> StoredComparison:
    """Read a comparison. A last line without an end is of a pass that was interrupted, and left out.

    :raises UsageError: if the file is missing or damaged.
    """
    journal = open_journal(path)
    with journal.reading():
        header, entries = journal.read(ComparisonHeader)
        found: dict[str, list[Any]] = {name: [] for name in RECORDS if name != "begun"}
        for entry in entries:
            name = parse_record(entry.pop("record"), str)
            found[name].append(parse_record(entry, RECORDS[name]))
        check_sides([*found["pass"], *found["fingerprint"]], header.sides)
        check_values(found["pass"])
        check_fingerprints(found["fingerprint"])
    return StoredComparison(
        header,
        found["looks"][-1].looks if found["looks"] else (),
        tuple(found["pass"]),
        {each.side: each for each in found["facts"]},
        found["noise"][-1].cases if found["noise"] else {},
        tuple(found["fingerprint"]),
        found["references"][-1] if found["references"] else None,
    )


def check_sides(records: Iterable[ComparisonPass | FingerprintLaunch], sides: Collection[str]) -> None:
    """Check that what was measured is of a side that there is. Raises ValueError."""
    if other := next((record.side for record in records if record.side not in sides), None):
        raise ValueError(f"side: {other!r} is none of {', '.join(sides)}")


def check_values(passes: Sequence[ComparisonPass]) -> None:
    """Check that every key is that of a case, and has either a value or a verdict. Raises ValueError."""
    for key in {key for each in passes for key, _ in each.values}:
        SharedCase.from_key(key)
    for key, said in (item for each in passes for item in each.values):
        if (said.value is None) != (said.verdict in list(Verdict)):
            raise ValueError(f"{key}: has not either a value or a verdict")


def check_fingerprints(launches: Sequence[FingerprintLaunch]) -> None:
    """Check that the sizes of each rise, each with its time. Raises ValueError."""
    for launch in launches:
        if len(launch.times) != len(launch.sizes):
            raise ValueError(f"times: are {len(launch.times)} of {len(launch.sizes)} sizes")
        rising = all(one < two for one, two in pairwise(launch.sizes))
        if not rising or max(launch.sizes, default=0) > LARGEST_MESSAGE:
            raise ValueError(f"sizes: do not rise, or go beyond {LARGEST_MESSAGE}")
