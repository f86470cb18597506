"""The rules of a procurement, ``rules.toml``: what is measured, how often, what an offer must tell.

docs/procurement.md explains each key. The hash of the file stands in all that follows from it. What is wrong
with rules is told as faults, each with its line, key and fix.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.base.records import Amount, Count, Text, find_line, is_measurable, parse_record, parse_toml
from postprocess.base.strict_json import SHOWN
from postprocess.model.case import NAME
from postprocess.model.routines.kernels import BYTES, KERNELS
from postprocess.model.routines.mpicost import OWN_PROGRAM, ROUTINES, TOURNAMENT
from postprocess.stats.acceptance import LEAST_LAUNCHES
from site_configs.families import FAMILIES, SIMULATED
from site_configs.mpi.exchange import BINDINGS
from site_configs.programs.program import PROGRAMS

SHARE = re.compile(r"([0-9]{1,3})%")
NEAREST, FARTHEST = "nearest pair", "farthest pair"
NODES = ("one", "two", "all", NEAREST, FARTHEST)
PER_NODE = ("one", "two", "nic", "core")
WORDS = {"one": 1, "two": 2}

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
#: What a bidder may be asked to tell of itself and of its machine, in ``offer.toml``, and what that means.
TOLD = {
    "offeror": "who offers",
    "contact": "whom to ask",
    "system": "the machine: its nodes and processors",
    "interconnect": "the network between its nodes",
    "link_gbit_per_s": "of all links of a node together, in one direction; above 0, of a single node, too",
    "memory_gbyte_per_s": "what all memory of a node delivers together, by its data sheet: no value beats it",
    "firmware": "of nodes and network, with versions",
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
FOLDER = Path(__file__).parent  #: of the sets that come with Plumbline
NOT_A_NAME = "not a name (letters, digits, _ . + -)"
MPIS = ("any", *FAMILIES, SIMULATED)
OWN = {routine.name: routine for routine in ROUTINES}


@dataclass(frozen=True)
class RuleCase:
    """Rows of the form that differ in their size and MPI only."""

    name: Text
    program: Program
    routine: Text
    bytes: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    nodes: Text | Positive  #: a word of ``NODES``, a share as ``95%``, or a number
    per_node: Text | Positive  #: a word of ``PER_NODE``, a share of the cores, or a number
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
        return next(case for case in self.case if case.name == name)

    def launches_of(self, case: RuleCase) -> int:
        return case.launches or self.launches

    def tolerance_of(self, case: RuleCase) -> float:
        """Return by which share a delivered machine may miss a commitment."""
        return self.tolerance if case.tolerance is None else case.tolerance

    def reference_of(self, case: str, size: int) -> float | None:
        """Return the value of the buyer's present system, in the unit of the case."""
        found = (value for value in self.reference if (value.case, value.bytes) == (case, size))
        return next((parse_quantity(value.value).value for value in found), None)


class Quantity(NamedTuple):
    """A value in the unit of a case."""

    value: float
    unit: str


class RuleFault(NamedTuple):
    line: int  #: 0 where it is of no line
    key: str
    text: str  #: what is wrong, and the fix

    def format(self, path: Path | str) -> str:
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
    with explaining(path, "./plumbline offer new writes one"):
        return hashlib.sha256(files.read_regular(path)).hexdigest()


def list_rule_sets() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_rule_set(name: str) -> str:
    return files.read_text(FOLDER / f"{name}.toml")


def read_rules(path: Path) -> Rules:
    """Read rules without a fault. Raises UsageError for the first fault."""
    rules, faults = lint_rules(path)
    if rules is None or faults:
        raise UsageError(faults[0].format(path))
    return rules


def lint_rules(path: Path) -> tuple[Rules | None, list[RuleFault]]:
    """Read rules, and find what is wrong with them; None where they cannot be read at all.

    :raises UsageError: if there is no such file
    """
    try:
        text = files.read_text(path)
    except OSError as error:
        fix = f"./plumbline offer new {path} writes one"
        raise UsageError(f"{path}: {error.strerror}; {fix}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text; write it as such") from None
    return lint_text(text)


def lint_text(text: str) -> tuple[Rules | None, list[RuleFault]]:
    """Read rules from their text as :func:`lint_rules` does."""
    try:
        told = parse_toml(text)
    except ValueError as error:
        line = re.search(r"at line (\d+)", str(error))
        return None, [RuleFault(int(line[1]) if line else 0, "", f"{error}; mend the TOML")]
    try:
        rules = parse_record(told, Rules, exact=True)
    except ValueError as error:
        key, _, what = str(error).partition(": ")
        fix = "docs/procurement.md has the keys"
        return None, [RuleFault(find_line(text, key), key, f"{what}; {fix}")]
    found = find_rule_faults(rules)
    return rules, [RuleFault(find_line(text, key), key, what) for key, what in found]


def find_rule_faults(rules: Rules) -> Iterator[tuple[str, str]]:
    """Find what is wrong with rules of the right types: the key of each fault, and what is wrong."""
    yield from find_head_faults(rules)
    names = [each.name for each in rules.case]
    for number, case in enumerate(rules.case):
        for key, what in find_case_faults(rules, case):
            yield f"case[{number}].{key}", what
        if case.name in names[:number]:
            yield f"case[{number}].name", f"{case.name} is there twice; choose another name"
    yield from find_reference_faults(rules)


def find_head_faults(rules: Rules) -> Iterator[tuple[str, str]]:
    if rules.schema != SCHEMA:
        yield "schema", f"is {rules.schema}, and this version knows {SCHEMA}; write {SCHEMA}"
    if words := [word for word in rules.tell if word not in TOLD]:
        yield "tell", f"{words[0]!r} is none of {', '.join(TOLD)}"
    if words := [word for word in rules.one_row_with if word not in MPIS[1:]]:
        yield "one_row_with", f"{words[0]!r} is not a family of MPIs: {', '.join(MPIS[1:])}"
    if BASELINE not in rules.category:
        yield "category", "has no baseline; write [category.baseline]"
    for name in rules.category:
        if not NAME.fullmatch(name):
            yield f"category.{name}", f"is {NOT_A_NAME}"
    if rules.links and (problem := _find_word_fault(rules.links.nodes, ("all", *WORDS))):
        yield "links.nodes", problem
    if rules.links and rules.links.nodes_per_switch < 0:
        yield "links.nodes_per_switch", "is below 0; write 0 where it is not known"
    if not any(case.demand == "must" for case in rules.case):
        yield "case", 'no case is a must; write demand = "must" for one'


def find_case_faults(rules: Rules, case: RuleCase) -> Iterator[tuple[str, str]]:
    for key in ("name", "routine"):
        if not NAME.fullmatch(getattr(case, key)):
            yield key, f"is {NOT_A_NAME}"
    if len(set(case.bytes)) < len(case.bytes):
        yield "bytes", "has a size twice; write each once"
    yield from find_layout_faults(case)
    if case.mpi not in MPIS:
        yield "mpi", f"{case.mpi!r} is none of {', '.join(MPIS)}"
    if case.program == OWN_PROGRAM:
        yield from find_own_faults(case)
    elif case.program == KERNELS:
        yield from find_kernel_faults(case)
    elif case.program == BINDINGS:
        yield "program", f"{BINDINGS}: what languages add on one node is nothing to commit to; choose another"
    elif case.statistic == "p99":
        yield "statistic", f"{case.program} prints no 99th percentile; take median or worst"
    if case.limit and (problem := find_quantity_fault(case.limit)):
        yield "limit", problem
    yield from find_count_faults(rules, case)


def find_layout_faults(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find what is wrong with the words of a layout, on whatever machine."""
    for key, words in (("nodes", NODES), ("per_node", PER_NODE)):
        if problem := _find_word_fault(getattr(case, key), words):
            yield key, problem
            return
    if case.nodes in ("one", 1) and case.per_node in ("one", 1) and case.program != KERNELS:
        yield "per_node", f"a single process sends no message; write two, or core (only {KERNELS} have one)"
    if case.nodes not in (NEAREST, FARTHEST):
        return
    if case.program != "mpicost" or case.routine != "pingpong":
        what = f"{case.nodes}: {case.program} {case.routine} cannot choose its pair"
        yield "nodes", f"{what}; take pingpong of mpicost, or two"
    elif case.per_node != "one":
        yield "per_node", f"a {case.nodes} has one process a node; write one"


def _find_word_fault(word: str | int, words: tuple[str, ...]) -> str:
    if isinstance(word, int) or word in words:
        return ""
    share = SHARE.fullmatch(word)
    if share and 1 <= int(share[1]) <= 100:
        return ""
    return f"{word!r} is none of {', '.join(words)}, a share as 95%, or a number"


def find_count_faults(rules: Rules, case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find numbers of launches from which nothing follows."""
    launches, most = rules.launches_of(case), rules.risk.most_launches
    if launches < LEAST_LAUNCHES:
        fix = f"ask for {LEAST_LAUNCHES} or more"
        yield "launches", f"{launches} give no tolerance limit; {fix}"
    if most < launches:
        yield "launches", f"{launches} are more than risk.most_launches, {most}"


def find_quantity_fault(text: str) -> str:
    """Find why a text is no quantity; empty if it is one."""
    try:
        parse_quantity(text)
    except ValueError as error:
        return str(error)
    return ""


def find_own_faults(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find what is wrong with a case of mpicost, whose routines are known everywhere."""
    routine = OWN.get(case.routine)
    if routine is None or routine.name == TOURNAMENT or routine.control_bytes:
        yield "routine", f"{case.routine}: mpicost --list has no such routine to commit to"
        return
    if wrong := [size for size in case.bytes if not routine.has_size(size)]:
        yield "bytes", f"{wrong[0]} is not a multiple of 8, and {case.routine} computes"
    if case.routine == "barrier" and case.bytes != (0,):
        yield "bytes", "a barrier has no payload; write [0]"
    elif case.routine != "barrier" and 0 in case.bytes:
        yield "bytes", "mpicost sends no empty messages; take pingpong of imb for 0"
    if case.better == "higher":
        yield "better", "mpicost measures times, of which lower is better"


def find_kernel_faults(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find what is wrong with a case of an application kernel, each of which has one size."""
    if case.routine not in BYTES:
        yield "routine", f"{case.routine}: is not a kernel; one of {', '.join(BYTES)}"
    elif case.bytes != (BYTES[case.routine],):
        yield "bytes", f"{case.routine} has [{BYTES[case.routine]}]"
    if case.better == "higher":
        yield "better", "kernels are timed, and of times lower is better"


def find_reference_faults(rules: Rules) -> Iterator[tuple[str, str]]:
    """Find values of the buyer's system that belong to no row, or are none."""
    known = {(case.name, size) for case in rules.case for size in case.bytes}
    for number, each in enumerate(rules.reference):
        if (each.case, each.bytes) not in known:
            yield f"reference[{number}].case", f"no case {each.case} has {each.bytes} bytes"
        if problem := find_quantity_fault(each.value):
            yield f"reference[{number}].value", problem
