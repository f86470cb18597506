"""The rules of a procurement, ``rules.toml``: what is measured, how often, and what an offer must tell.

docs/procurement.md explains each key. The hash of the file stands in all that follows from it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec

from postprocess.base import files
from postprocess.base.documents.records import Amount, Count, Text, is_measurable
from postprocess.base.documents.strict_json import SHOWN
from postprocess.base.errors import UsageError
from postprocess.base.units import MEGABYTES, SECONDS
from site_configs.programs.program import PROGRAMS
from site_configs.topology.layouts import Layout

SHARE = re.compile(r"([0-9]{1,3})%")
NEAREST, FARTHEST = "nearest pair", "farthest pair"
NODES = ("one", "two", "all", NEAREST, FARTHEST)
PER_NODE = ("one", "two", "nic", "core")
WORDS = {"one": 1, "two": 2}


@dataclass(frozen=True)
class MachineFacts:
    """What layouts rest on: one partition of a site."""

    partition: str
    nodes: int
    cores_per_node: int
    nics_per_node: int = 1
    most_processes: int = 10**9
    exact: bool = False  #: whether its time is simulated


@dataclass(frozen=True)
class AskedLayout:
    """A layout on a machine, or why it has none."""

    layout: Layout | None
    peer: int = 0  #: the partner of rank 0, where a pair of nodes was asked for
    problem: str = ""


def find_layout_fault(case: RuleCase) -> str:
    """Find what is wrong with the words of a layout, on whatever machine; empty if nothing is."""
    if problem := _find_word_fault(case.nodes, NODES):
        return f"nodes: {problem}"
    if problem := _find_word_fault(case.per_node, PER_NODE):
        return f"per_node: {problem}"
    if case.nodes in (NEAREST, FARTHEST):
        if case.program != "mpicost" or case.routine != "pingpong":
            return (
                f"nodes: {case.nodes}: {case.program} {case.routine} cannot choose its pair; "
                "take pingpong of mpicost, or two"
            )
        if case.per_node != "one":
            return f"per_node: a {case.nodes} has one process a node; write one"
    return ""


def _find_word_fault(word: str | int, words: tuple[str, ...]) -> str:
    if isinstance(word, int) or word in words:
        return ""
    share = SHARE.fullmatch(word)
    if share and 1 <= int(share[1]) <= 100:
        return ""
    return f"{word!r} is none of {', '.join(words)}, a share as 95%, or a number"


def resolve_layout(case: RuleCase, machine: MachineFacts) -> AskedLayout:
    """Return the layout of a case on a machine; shares are rounded up, and to an even number of processes."""
    pair = case.nodes in (NEAREST, FARTHEST)
    nodes = machine.nodes if pair else _count(case.nodes, machine.nodes)
    cores = machine.cores_per_node
    per_node = machine.nics_per_node if case.per_node == "nic" else _count(case.per_node, cores)
    if pair and nodes < 2:
        return AskedLayout(None, problem=f"a {case.nodes} needs 2 nodes, and there is 1")
    if nodes > machine.nodes:
        return AskedLayout(None, problem=f"it needs {nodes} nodes, and there are {machine.nodes}")
    if nodes * per_node % 2 and per_node < cores and SHARE.fullmatch(str(case.per_node)):
        per_node += 1
    if per_node > cores:
        return AskedLayout(None, problem=f"it needs {per_node} cores a node, and there are {cores}")
    processes = nodes * per_node
    if processes < 2:
        return AskedLayout(None, problem="it is a single process")
    if processes > machine.most_processes:
        most = machine.most_processes
        return AskedLayout(None, problem=f"it needs {processes} processes, and {most} are possible")
    peer = 0
    if pair:
        peer = 1 if case.nodes == NEAREST else nodes - 1
    elif case.program == "mpicost" and case.routine == "pingpong":
        peer = processes - 1
    return AskedLayout(Layout(processes, per_node), peer)


def find_nodes_fault(word: str | int) -> str:
    """Find what is wrong with a word for a number of nodes; empty if nothing is."""
    return _find_word_fault(word, ("all", *WORDS))


def count_nodes(word: str | int, machine: MachineFacts) -> int:
    """Count the nodes of a machine that a word asks for; it may have fewer."""
    return _count(word, machine.nodes)


def _count(word: str | int, whole: int) -> int:
    if isinstance(word, int):
        return word
    if word in ("all", "core"):
        return whole
    if word in WORDS:
        return WORDS[word]
    share = SHARE.fullmatch(word)
    assert share
    return math.ceil(int(share[1]) * whole / 100)


SCHEMA = 1
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
#: Of a row. Risks are simulated with as many, so that more fill the memory when all is measured.
Launches = Annotated[int, msgspec.Meta(ge=1, le=1000)]
if TYPE_CHECKING:
    Program = str
    Iterated = str
else:
    Program = Literal[tuple(PROGRAMS)]
    #: Those whose iterations rules may set; a kernel runs as often as it does everywhere.
    Iterated = Literal[tuple(name for name in PROGRAMS if not PROGRAMS[name].on_request)]
Demand = Literal["must", "should", "information"]
Statistic = Literal["median", "p99", "worst"]
Change = Literal["environment", "flags", "patch"]
#: What a bidder may be asked to tell of itself and of its machine, and whether it is a number.
TOLD = {
    "offeror": False,
    "contact": False,
    "system": False,
    "interconnect": False,
    "link_gbit_per_s": True,
    "memory_gbyte_per_s": True,
    "firmware": False,
}
QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*(us|ms|s|MB/s|GB/s)\s*")
SCALES = {
    "us": (1e-6, SECONDS),
    "ms": (1e-3, SECONDS),
    "s": (1.0, SECONDS),
    "MB/s": (1.0, MEGABYTES),
    "GB/s": (1e3, MEGABYTES),
}

BASELINE = "baseline"  #: the category in which nothing is changed


@dataclass(frozen=True)
class RuleCase:
    """Rows of the form that differ in their size and MPI only."""

    name: Text
    program: Program
    routine: Text
    bytes: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    nodes: Text | Positive  #: a word of ``layouts.NODES``, a share as ``95%``, or a number
    per_node: Text | Positive  #: a word of ``layouts.PER_NODE``, a share of the cores, or a number
    demand: Demand = "must"
    mpi: Text = "any"  #: family, as in ``openmpi``
    statistic: Statistic = "median"
    better: Literal["", "lower", "higher"] = ""  #: which values are; follows from the unit
    tolerance: Share | None = None  #: by which a delivered machine may miss a commitment
    launches: Launches | None = None  #: at least
    weight: Amount = 1.0
    limit: str = ""  #: that a commitment must keep, as in ``2.5 us``


@dataclass(frozen=True)
class Risks:
    """Probabilities on which proposals and acceptance rest."""

    confidence: Share = 0.95  #: that a proposed commitment holds for ``coverage`` of all launches
    coverage: Share = 0.99
    good_failed: Share = 0.05  #: that a row is missed by a machine that is as committed
    slow_accepted: Share = 0.05  #: that a row is met by a machine beyond the tolerance
    most_launches: Launches = 40  #: of a row at acceptance


@dataclass(frozen=True)
class LinksRule:
    """The demand of an acceptance on all pairs of nodes: none is slower than its peers."""

    demand: Demand = "must"
    nodes: Text | Positive = "all"  #: as of a case: all, two, a share, or a number
    slower: Share = 0.10  #: by which a node or a link is missed
    nodes_per_switch: int = 0  #: 0 where pairs of one switch are not told from others


@dataclass(frozen=True)
class Category:
    """What may be changed for a column of the form."""

    text: Text
    allows: tuple[Change, ...] = ()


@dataclass(frozen=True)
class ReferenceValue:
    """A value of the buyer's present system, beside which offers are shown."""

    case: Text
    bytes: Count
    value: Text


@dataclass(frozen=True)
class Rules:
    """All rules of a procurement."""

    schema: int
    title: Text
    case: Annotated[tuple[RuleCase, ...], msgspec.Meta(min_length=1)]
    buyer: str = ""
    launches: Launches = 10  #: of each row, at least
    tolerance: Share = 0.05
    iterations: Mapping[Iterated, Positive] = field(default_factory=dict)  #: of a launch, at least
    one_row_with: tuple[Text, ...] = ()  #: families of MPI, each of which measures a row at least
    tell: tuple[Text, ...] = ("offeror", "contact", "system")
    seconds_per_start: Positive | None = None  #: after which a start is ended
    cache: Literal["", "evict", "flush", "warm"] = ""  #: of mpicost; empty for the site's
    merit: Literal["weighted geometric mean"] = "weighted geometric mean"
    risk: Risks = field(default_factory=Risks)
    category: Mapping[str, Category] = field(default_factory=lambda: {BASELINE: Category("nothing is changed")})
    links: LinksRule | None = None  #: None where acceptance leaves them out
    reference: tuple[ReferenceValue, ...] = ()

    def find_case(self, name: str) -> RuleCase:
        """Find a case. Raises LookupError if there is none."""
        return next(each for each in self.case if each.name == name)

    def launches_of(self, case: RuleCase) -> int:
        """Return how many launches a row of a case needs."""
        return case.launches or self.launches

    def tolerance_of(self, case: RuleCase) -> float:
        """Return by which share a delivered machine may miss a commitment."""
        return self.tolerance if case.tolerance is None else case.tolerance

    def reference_of(self, case: str, size: int) -> float | None:
        """Return the value of the buyer's present system, in the unit of the case."""
        found = (each for each in self.reference if (each.case, each.bytes) == (case, size))
        return next((parse_quantity(each.value).value for each in found), None)


class Quantity(NamedTuple):
    """A value in the unit of a case."""

    value: float
    unit: str


class RuleFault(NamedTuple):
    """What is wrong with rules."""

    line: int  #: 0 where it is of no line
    key: str
    text: str  #: what is wrong, and the fix

    def format(self, path: Path | str) -> str:
        """Format the fault in one line."""
        where = f"{path}:{self.line}" if self.line else str(path)
        return f"{where}: {self.key}: {self.text}" if self.key else f"{where}: {self.text}"


def parse_quantity(text: str) -> Quantity:
    """Parse ``2.5 us`` or ``12 GB/s``. Raises ValueError if it is none."""
    match = QUANTITY.fullmatch(text)
    scale, unit = SCALES[match[2]] if match else (0.0, "")
    value = float(match[1]) * scale if match else 0.0
    if not is_measurable(value):
        raise ValueError(f"{text[:SHOWN]!r} is not a quantity above 0 such as 2.5 us or 12 GB/s")
    return Quantity(value, unit)


def hash_rules(path: Path) -> str:
    """Return the SHA-256 of a rules file: what tells older rules from these.

    :raises UsageError: if it cannot be read
    """
    try:
        return hashlib.sha256(files.read_regular(path)).hexdigest()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; ./plumbline offer new writes one") from None


def list_rows(rules: Rules) -> Iterator[tuple[RuleCase, int]]:
    """List the rows of the form as far as rules tell them: cases by sizes."""
    for case in rules.case:
        for size in case.bytes:
            yield case, size


FOLDER = Path(__file__).parent


def list_rule_sets() -> list[str]:
    """List the sets by name."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_rule_set(name: str) -> str:
    """Read the text of a set."""
    return files.read_text(FOLDER / f"{name}.toml")
