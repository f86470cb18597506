"""The folder of an offer, and all that is computed from its files: launches and the values of rows.

``passes.jsonl`` has a header and a line for each pass, which holds the hash of the line before it: a pass that
is taken out shows. Every figure of an offer is computed from the files below ``sessions``, by the same code for
bidder and buyer.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from postprocess.base import files, records
from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_utc, plural, utc_now
from postprocess.base.grouping import group_pairs
from postprocess.base.strict_json import parse_json
from postprocess.extensions.procurement.rules.layouts import AskedCase, MachineFacts, OfferPlan, plan_offer
from postprocess.extensions.procurement.rules.rules import TOLD, RuleCase, Rules, read_rules
from postprocess.extensions.procurement.violations import Code, Violation
from postprocess.judging.outcome import assess_launch
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.measurement import Measurement
from postprocess.model.plan import PlannedLaunch, read_plan
from postprocess.stats.launches import find_farthest
from site_configs.families import SIMULATED
from site_configs.mpi.family import identify_library
from spack_envs.installation import BuiltBinary

RULES, TELL, PASSES, SESSIONS = "rules.toml", "offer.toml", "passes.jsonl", "sessions"
COMMITMENTS, PATCHES, SEALED = "commitments.json", "patches", "sealed.json"
SCHEMA = 1
#: Folders of a session that an offer keeps.
KEPT = ("plan", "raw", "programs", "spack")


@dataclass(frozen=True)
class OfferHeader:
    """The first line of ``passes.jsonl``."""

    schema: records.Count
    rules: records.Text  #: SHA-256 of the rules
    site: records.Text
    partition: records.Text
    started_utc: records.Text
    plumbline: records.Text  #: version


@dataclass(frozen=True)
class OfferPass:
    """One pass over the rules: each of its cases was launched once."""

    number: records.Count
    previous: str  #: SHA-256 of the line before
    session: records.FileName
    category: records.Text
    machine: MachineFacts
    began_utc: records.Text
    ended_utc: records.Text
    command: tuple[str, ...]
    set_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  #: by environment
    firmware: str = ""
    others: records.Amount | None = None  #: share of the machine that other processes used meanwhile
    notes: tuple[str, ...] = ()  #: on clock and data


@dataclass(frozen=True)
class Patch:
    """A change of a program's source that the bidder names."""

    program: records.Text
    file: records.FileName  #: in ``patches``
    text: records.Text  #: what it does


@dataclass(frozen=True)
class ToldFacts:
    """``offer.toml``: what the bidder tells."""

    offeror: str = ""
    contact: str = ""
    system: str = ""
    interconnect: str = ""
    firmware: str = ""
    link_gbit_per_s: records.Amount = 0.0  #: of all links of a node together, in one direction
    memory_gbyte_per_s: records.Amount = 0.0  #: of a node
    patch: tuple[Patch, ...] = ()


@dataclass(frozen=True)
class StoredOffer:
    """A folder as far as it was measured."""

    folder: Path
    header: OfferHeader
    passes: tuple[OfferPass, ...]
    broken: tuple[int, ...] = ()  #: passes whose line before is another one


def locate_session(folder: Path, session: str) -> Path:
    return folder / SESSIONS / session


def open_journal(folder: Path) -> records.Journal:
    missing = "./plumbline offer run measures one"
    return records.Journal(folder / PASSES, "choose another folder", missing, "measure again")


def append_line(folder: Path, entry: OfferHeader | OfferPass) -> None:
    """Add a whole line to ``passes.jsonl``. Raises UsageError if it cannot be written."""
    open_journal(folder).append(asdict(entry))


def hash_last_line(folder: Path) -> str:
    """Return the SHA-256 of the last line of ``passes.jsonl``."""
    return hash_line(files.read_regular(folder / PASSES).splitlines()[-1])


def hash_line(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def read_offer(folder: Path) -> StoredOffer:
    """Read the passes of an offer. Raises UsageError if there are none, or a line is damaged."""
    with open_journal(folder).reading():
        lines = files.read_regular(folder / PASSES).splitlines()
        first, *others = (parse_json(line.decode()) for line in lines)
        header = records.parse_record(first, OfferHeader, exact=True)
        passes = tuple(records.parse_record(other, OfferPass, exact=True) for other in others)
        for text in (text for each in passes for text in (each.began_utc, each.ended_utc)):
            parse_utc(text)
    codes = [hash_line(line) for line in lines]
    broken = tuple(
        number
        for number, each in enumerate(passes, 1)
        if each.previous != codes[number - 1] or each.number != number
    )
    return StoredOffer(folder, header, passes, broken)


def read_told(folder: Path) -> ToldFacts:
    """Read what the bidder tells. Raises UsageError if the file is missing or has a fault."""
    path = folder / TELL
    try:
        return records.parse_record(records.parse_toml(files.read_text(path)), ToldFacts, exact=True)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; ./plumbline offer run writes one") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}; mend it") from None


@dataclass(frozen=True)
class SealedMoment:
    """``sealed.json``: when an offer was sealed."""

    schema: records.Count
    sealed_utc: records.Text


def write_sealed(folder: Path) -> None:
    """Write down that an offer is sealed now. OSError as met."""
    text = json.dumps(asdict(SealedMoment(SCHEMA, utc_now())))
    files.replace_files({folder / SEALED: f"{text}\n".encode()})


def read_sealed(folder: Path) -> str:
    """Read when an offer was sealed; empty if it does not tell. Raises UsageError if the file is damaged."""
    path = folder / SEALED
    if not path.exists():
        return ""
    try:
        found = records.read_record(path, SealedMoment).sealed_utc
        parse_utc(found)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}; ./plumbline offer seal writes it") from None
    return found


def copy_told(source: Path, target: Path) -> None:
    """Copy what the bidder tells from one folder to another, with the patches that are there.

    OSError as met.
    """
    patches = sorted(path for path in (source / PATCHES).glob("*") if path.is_file())
    copied = (source / TELL, *patches)
    files.replace_files({target / path.relative_to(source): files.read_regular(path) for path in copied})


def format_told_template() -> str:
    """Format an ``offer.toml`` in which nothing is told yet."""
    lines = ["# Facts that the bidder states. `tell` in the rules lists those that are required."]
    nothing = ToldFacts()
    lines += [f"{name} = {json.dumps(getattr(nothing, name))}  # {what}" for name, what in TOLD.items()]
    lines += ["", "# For each change of a program's source:", "# [[patch]]", '# program = "osu"']
    lines += ['# file = "osu.patch"  # in patches/', '# text = "what it does"', ""]
    return "\n".join(lines)


TIMES = "times"  #: with which the mark of trials begins
FEWEST_VALUES = 16  #: different times of a case; with fewer another may have the same


@dataclass(frozen=True, eq=False)
class LaunchEvidence:
    """A launch of an offer, with what it left."""

    done: OfferPass
    launch: PlannedLaunch
    session: Path

    @cached_property
    def outcome(self) -> LaunchOutcome:
        """What became of it, found out anew from its files."""
        return assess_launch(self.launch, self.session)

    @property
    def run(self) -> dict:
        """The run record; empty if the launch failed."""
        return self.outcome.records.run if self.outcome.records else {}

    @property
    def family(self) -> str:
        """The family of its MPI, as its records tell it; of one that failed as it was planned."""
        if self.launch.exact:
            return SIMULATED
        return identify_library(self.run.get("mpi_library", self.launch.library))[0]

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """What it is known by: its token and, where time was measured, the trials of each case."""
        token = [f"token {self.launch.token}"] if self.launch.token else []
        if self.launch.exact or self.outcome.records is None:
            return tuple(token)  # simulated launches take the same times
        measured = self.outcome.records.measurements
        trials = [each.record for _, each in sorted(measured.items()) if each.record is not None]
        times = [array for trial in trials for array in (trial.t_max, trial.t_min)]
        known = [time for time in times if len(set(time.tolist())) >= FEWEST_VALUES]
        digests = [hashlib.sha256(each.tobytes()).hexdigest() for each in known]
        return (*token, *(f"{TIMES} {digest}" for digest in dict.fromkeys(digests)))

    def finish(self, built: BuiltBinary | None = None) -> FinishedLaunch:
        """Return the launch as its session had it."""
        return FinishedLaunch(self.launch, self.outcome, 0.0, "", {}, built.spec if built else "", built)

    @property
    def place(self) -> str:
        """Where it is found in the folder."""
        return f"{self.done.session}/{self.launch.name}"


class RowKey(NamedTuple):
    case: str
    bytes: int
    environment: str
    category: str

    @property
    def key(self) -> str:
        """The key as text: ``latency/8/mpich-5_0_2/baseline``."""
        return "/".join(map(str, self))


@dataclass(frozen=True)
class MeasuredRow:
    """What launches say of a row. Values are in ``unit``, one a launch."""

    key: RowKey
    rule: RuleCase
    case: Case  #: of the first launch
    family: str
    unit: str
    values: tuple[float, ...]
    exact: bool
    #: Longest time from core to core of each launch, in seconds; None where nothing tells
    cores: tuple[float | None, ...] = ()


def collect_rows(rules: Rules, evidence: Sequence[LaunchEvidence]) -> list[MeasuredRow]:
    """Collect the rows that were measured, in the order of the rules."""
    found: dict[RowKey, list[tuple[LaunchEvidence, Case, Measurement]]] = {}
    plans: dict[int, OfferPlan] = {}
    for each in evidence:
        plan = plans.setdefault(each.done.number, plan_offer(rules, each.done.machine))
        if each.outcome.records is None:
            continue
        for asked, case in match_cases(plan, each.launch.cases):
            if asked.case.mpi not in ("any", each.family):
                continue
            measured = each.outcome.records.measurements.get(case.variable)
            if measured and not measured.unseen:
                key = RowKey(asked.case.name, case.bytes, each.launch.environment, each.done.category)
                found.setdefault(key, []).append((each, case, measured))
    order = {name: number for number, name in enumerate(each.name for each in rules.case)}
    return [
        build_row(rules.find_case(key.case), key, found[key])
        for key in sorted(found, key=lambda k: (order[k.case], k.bytes, k.category, k.environment))
    ]


def match_cases(plan: OfferPlan, cases: Sequence[Case]) -> Iterator[tuple[AskedCase, Case]]:
    for case in cases:
        for asked in plan.possible:
            if case.bytes in asked.case.bytes and asked.matches(case, case.bytes):
                yield asked, case


def build_row(
    rule: RuleCase, key: RowKey, found: Sequence[tuple[LaunchEvidence, Case, Measurement]]
) -> MeasuredRow:
    first, case, measured = found[0]
    return MeasuredRow(
        key,
        rule,
        case,
        first.family,
        measured.unit,
        tuple(read_statistic(rule, each) for _, _, each in found),
        first.launch.exact,
        tuple(find_farthest(each.core_latency) for _, _, each in found),
    )


def read_statistic(rule: RuleCase, measured: Measurement) -> float:
    """Read what a launch says of a case: its judged value, or the 99th percentile of its trials."""
    if rule.statistic == "p99" and measured.summary:
        return measured.summary.p99
    return measured.value


@dataclass(frozen=True)
class UnmeasuredMpi:
    """An MPI that was launched in a category, of which nothing came."""

    environment: str
    category: str
    launches: int
    reason: str  #: of the last launch

    @property
    def words(self) -> str:
        """Say in one line that it has no result, and why."""
        launches = plural(self.launches, "launch", "es")
        return f"{self.environment} ({self.category}): no result: {launches}, none ended well: {self.reason}"


def find_unmeasured(evidence: Sequence[LaunchEvidence]) -> list[UnmeasuredMpi]:
    """Find the MPIs of which no launch ended well, by name and category."""
    found = group_pairs(((each.launch.environment, each.done.category), each) for each in evidence)
    return [
        UnmeasuredMpi(*key, len(launches), launches[-1].outcome.reason)
        for key, launches in sorted(found.items())
        if all(launch.outcome.records is None for launch in launches)
    ]


@dataclass(frozen=True)
class OpenedOffer:
    """An offer with all that is computed from its files, each thing once."""

    stored: StoredOffer
    rules: Rules
    told: ToldFacts
    evidence: tuple[LaunchEvidence, ...]
    damage: tuple[Violation, ...]  #: what could not be read

    @cached_property
    def rows(self) -> list[MeasuredRow]:
        return collect_rows(self.rules, self.evidence)

    @cached_property
    def unmeasured(self) -> list[UnmeasuredMpi]:
        """The MPIs without a row, because no launch of them ended well."""
        return find_unmeasured(self.evidence)


def open_offer(folder: Path) -> OpenedOffer:
    """Open the folder of an offer. Raises UsageError if it has no rules or no passes that can be read."""
    stored = read_offer(folder)
    rules = read_rules(folder / RULES)
    damage: list[Violation] = []
    try:
        told = read_told(folder)
    except UsageError as error:
        told = ToldFacts()
        damage.append(Violation(Code.TOLD_DAMAGED, TELL, str(error)))
    evidence = []
    for done in stored.passes:
        session = locate_session(folder, done.session)
        if not (session / "plan").is_dir():
            damage.append(Violation(Code.SESSION_MISSING, done.session, "has no plan"))
            continue
        try:
            launches = read_plan(session)
        except UsageError as error:
            damage.append(Violation(Code.PLAN_DAMAGED, done.session, str(error)))
            continue
        evidence += [LaunchEvidence(done, launch, session) for launch in launches if launch.cases]
    return OpenedOffer(stored, rules, told, tuple(evidence), tuple(damage))
