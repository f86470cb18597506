"""The rules of a procurement, ``rules.toml``: what is measured, how often, and what an offer must tell.

docs/procurement.md explains each key. The hash of the file stands in all that follows from it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from postprocess.base import files
from postprocess.base.documents.records import Amount, Count, Text, is_measurable
from postprocess.base.documents.strict_json import SHOWN
from postprocess.base.errors import UsageError
from postprocess.base.units import MEGABYTES, SECONDS

SCHEMA = 1
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
#: Of a row. Risks are simulated with as many, so that more fill the memory when all is measured.
Launches = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Program = Literal["mpicost", "osu", "imb", "kernels"]
#: Those whose iterations rules may set; a kernel runs as often as it does everywhere.
Iterated = Literal["mpicost", "osu", "imb"]
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
    category: Mapping[str, Category] = field(
        default_factory=lambda: {BASELINE: Category("nothing is changed")}
    )
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
