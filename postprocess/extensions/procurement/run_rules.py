"""Run rules of an offer, held against its records and never believed: bidder and buyer run the same code."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from postprocess.base import formats
from postprocess.calibration.machine_load import BUSY_SHARE
from postprocess.extensions.procurement import builds
from postprocess.extensions.procurement.offer import (
    RULES,
    SESSIONS,
    TELL,
    TIMES,
    LaunchEvidence,
    OfferPass,
    OpenedOffer,
    ToldFacts,
    read_sealed,
)
from postprocess.extensions.procurement.rules.layouts import count_needed_launches, plan_offer
from postprocess.extensions.procurement.rules.rules import Rules, hash_rules
from postprocess.extensions.procurement.violations import Code, Violation
from postprocess.judging import outcome
from postprocess.model.case import Case
from postprocess.model.conditions import cpus_of
from postprocess.model.interposed import describe_differing_ranks, describe_unplanned_injection, list_interposed
from postprocess.model.launch import Records
from postprocess.model.routines.benchmark import WINDOW_SHARE
from postprocess.model.routines.mpicost import EVICT, FLUSH, OWN_PROGRAM
from postprocess.model.verdict import FAILED_LAUNCH, RecordError, Verdict
from postprocess.parsers.mpicost import LaunchRecords, read_launch
from postprocess.parsers.osu_imb_launch import BenchmarkRecords, read_benchmarks
from site_configs.mpi.family import SIMULATED_LIBRARY


def check_offer(offer: OpenedOffer, official: builds.OfficialSource, issued: str = "") -> list[Violation]:
    """Check an offer.

    :param issued: SHA-256 of the buyer's own rules; empty if only those of the folder are known
    :raises UsageError: if patches are named, and there is no git to check them by
    """
    sources = builds.OfferSources(official, offer.stored.folder, offer.told.patch)
    found = [
        *offer.damage,
        *check_rules(offer, issued),
        *check_told(offer),
        *builds.check_patches(sources),
        *check_passes(offer),
        *builds.check_builds(offer.evidence),
        *builds.check_flags(offer.evidence, offer.rules),
    ]
    for evidence in offer.evidence:
        found += check_launch(evidence, offer.rules, offer.told, sources)
    found += check_twice(offer.evidence)
    found += check_times(offer.evidence)
    found += check_machines(offer.evidence)
    found += check_layouts(offer)
    found += check_rows(offer)
    return list(dict.fromkeys(violation.inside(offer.stored.folder) for violation in found))


def check_rules(offer: OpenedOffer, issued: str) -> Iterator[Violation]:
    """Check that the offer was measured by the rules that it holds, and that these are the buyer's."""
    own = hash_rules(offer.stored.folder / RULES)
    if own != offer.stored.header.rules:
        what = f"is {own[:16]}, and {offer.stored.header.rules[:16]} when it was measured"
        yield Violation(Code.RULES_OTHER, RULES, what)
    if issued and own != issued:
        yield Violation(Code.RULES_OLDER, RULES, f"is {own[:16]}, and the buyer's {issued[:16]}")


def check_told(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that everything is told that the rules ask for."""
    for name in offer.rules.tell:
        told = getattr(offer.told, name)
        if not (told.strip() if isinstance(told, str) else told):
            yield Violation(Code.TOLD_MISSING, TELL, f"{name}: is missing")


def check_passes(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that no pass was taken out or came from elsewhere, and what each tells of itself."""
    stored = offer.stored
    for number in stored.broken:
        what = "the line before it is not the one that was there"
        yield Violation(Code.PASS_TAKEN_OUT, f"passes.jsonl, pass {number}", what)
    listed = {each.session for each in stored.passes}
    folder = stored.folder / SESSIONS
    here = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted(here - listed):
        yield Violation(Code.SESSION_UNLISTED, f"{SESSIONS}/{name}", "no pass has it")
    before = ""
    for each in stored.passes:
        yield from check_pass(each, offer.rules)
        if each.ended_utc < each.began_utc or each.began_utc < before:
            what = f"began {each.began_utc}, ended {each.ended_utc}, the one before {before or '-'}"
            yield Violation(Code.CLOCK_BACKWARDS, f"pass {each.number}", what)
        before = each.ended_utc


def check_pass(each: OfferPass, rules: Rules) -> Iterator[Violation]:
    place = f"pass {each.number}"
    if each.category not in rules.category:
        yield Violation(Code.CATEGORY_UNKNOWN, place, f"{each.category} is in no rule")
    elif each.set_env and not builds.allows(rules, each.category, "environment"):
        names = sorted({name for own in each.set_env.values() for name in own})
        what = f"{', '.join(names)} set, and {each.category} allows no variables"
        yield Violation(Code.CHANGE_NOT_ALLOWED, place, what)
    if each.others is not None and each.others > BUSY_SHARE:
        what = f"other processes used {formats.format_percent(each.others)} of the machine"
        yield Violation(Code.MACHINE_BUSY, place, what)


def check_twice(evidence: Sequence[LaunchEvidence]) -> Iterator[Violation]:
    """Check that no launch is handed in twice: tokens are drawn anew for each."""
    tokens = Counter(each.launch.token for each in evidence if each.launch.token)
    for each in evidence:
        if tokens[each.launch.token] > 1:
            yield Violation(Code.LAUNCH_TWICE, each.place, "its token is in another launch too")
        if not each.launch.token:
            yield Violation(Code.RECORDS_FOREIGN, each.place, "its plan has no token")
    before: dict[str, str] = {}
    for each in evidence:
        marks = [mark for mark in each.marks if mark.startswith(TIMES)]
        if twice := next((before[mark] for mark in marks if mark in before), ""):
            yield Violation(Code.LAUNCH_TWICE, each.place, f"its trials are those of {twice}")
        before |= dict.fromkeys(marks, each.place)


def check_times(evidence: Sequence[LaunchEvidence]) -> Iterator[Violation]:
    """Check that each launch was made in the time of its pass."""
    for each in evidence:
        span = outcome.read_span(each.launch, each.session)
        began, ended = (outcome.read_moment(text) for text in (each.done.began_utc, each.done.ended_utc))
        if span and not began - outcome.CLOCKS_DIFFER <= span[0] <= span[1] <= ended + outcome.CLOCKS_DIFFER:
            what = f"was not launched from {each.done.began_utc} to {each.done.ended_utc}"
            yield Violation(Code.RECORDS_FOREIGN, each.place, f"{what}, as its pass records")


def check_machines(evidence: Sequence[LaunchEvidence]) -> Iterator[Violation]:
    """Check that all launches ran on one kind of processor."""
    seen: dict[str, LaunchEvidence] = {}
    for each in evidence:
        name = each.run.get("cpu_model") or ""
        if name and not each.launch.exact:
            seen.setdefault(name, each)
    if len(seen) > 1:
        (one, _), (two, other), *_ = seen.items()
        yield Violation(Code.MACHINE_DIFFERS, other.place, f"on {two}, others on {one}")


def check_layouts(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that launches have the layouts that the rules ask for on that machine."""
    for evidence in offer.evidence:
        plan = plan_offer(offer.rules, evidence.done.machine)
        known = {(item.case.program, str(item.layout)) for item in plan.possible}
        layout = evidence.launch.cases[0].layout
        if (evidence.launch.program, layout) not in known:
            yield Violation(Code.LAYOUT_NOT_ASKED, evidence.place, f"{layout} is in no case of the rules")


def check_rows(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that every row was measured, often enough, and with the families that the rules name."""
    rules, machine = offer.rules, offer.stored.passes[-1].machine if offer.stored.passes else None
    if machine is None:
        yield Violation(Code.ROW_MISSING, "passes.jsonl", "nothing was measured")
        return
    measured = {(row.key.case, row.key.bytes) for row in offer.rows}
    plan = plan_offer(rules, machine)
    for asked in plan.cases:
        for count in asked.case.bytes:
            if (asked.case.name, count) in measured or asked.case.demand == "information":
                continue
            why = asked.problem or "no launch has a value of it"
            yield Violation(Code.ROW_MISSING, f"{asked.case.name} {formats.size(count)}", why)
    for row in offer.rows:
        needed = count_needed_launches(rules, row.rule, machine)
        if len(row.values) < needed:
            what = f"{formats.plural(len(row.values), 'launch', 'es')}, and {needed} are asked for"
            yield Violation(Code.FEW_LAUNCHES, row.key.key, what)
    for family in rules.one_row_with:
        if not any(row.family == family for row in offer.rows):
            yield Violation(Code.FAMILY_MISSING, family, "no row was measured with it")


COARSE = 1e-6  #: seconds of a step of the clock
FAILED = {verdict: Code[f"LAUNCH_{verdict.name}"] for verdict in FAILED_LAUNCH}
#: Keys of a run record that must be told.
TOLD_KEYS = ("kernel", "cpu_model", "environment", "date_utc")
LIMITS = {"light": Code.FASTER_THAN_LIGHT, "wire": Code.FASTER_THAN_WIRE, "memory": Code.FASTER_THAN_MEMORY}


def check_launch(
    each: LaunchEvidence, rules: Rules, told: ToldFacts, sources: builds.OfferSources
) -> Iterator[Violation]:
    records = read_records(each)
    if isinstance(records, Violation):
        yield records
        return
    found = [*check_records(each, records)]
    if not found and each.outcome.verdict:
        code = FAILED.get(each.outcome.verdict, Code.LAUNCH_INCOMPLETE)
        found.append(Violation(code, each.place, each.outcome.reason))
    yield from found
    yield from check_method(each, records, rules)
    yield from check_binding(each, records)
    yield from check_facts(each, records)
    yield from builds.check_source(each, records, rules, sources)
    yield from check_iterations(each, rules)
    yield from check_speed(each, records, told)


def read_records(each: LaunchEvidence) -> LaunchRecords | BenchmarkRecords | Violation:
    """Read the records of a launch, or say why there are none."""
    launch, session = each.launch, each.session
    path = launch.witness(session) if launch.benchmarks else launch.records(session)
    data = outcome.read_contents(path)
    if launch.benchmarks and builds.find_build(each) is None:
        return Violation(Code.BUILD_UNKNOWN, each.place, f"how {launch.program} was built is not recorded")
    try:
        return read_benchmarks(launch, session, data) if launch.benchmarks else read_launch(path, data)
    except RecordError as error:
        code = FAILED.get(error.verdict, Code.LAUNCH_INCOMPLETE)
        ended = outcome.read_exit_code(launch.ending(session))
        if error.verdict == Verdict.INCOMPLETE and not has_end(data):
            code = Code.NOT_FINALISED if ended == 0 else Code.LAUNCH_CRASHED
        if code is Code.LAUNCH_CRASHED and each.outcome.verdict == Verdict.TIMEOUT:
            code = Code.LAUNCH_TIMEOUT
        return Violation(code, each.place, str(error)).inside(session)


def has_end(data: bytes | None) -> bool:
    """Return whether records have an end, which is written when every rank has come there."""
    lines = (data or b"").splitlines()
    return bool(lines) and b'"end"' in lines[-1][:40]


def check_records(each: LaunchEvidence, records: LaunchRecords | BenchmarkRecords) -> Iterator[Violation]:
    """Check that records are of this launch, of its MPI and processes, with right data and nothing in front."""
    run, launch, place = records.run, each.launch, each.place
    for wrong in records.wrong.values():
        yield Violation(Code.DATA_WRONG, place, wrong)
    if foreign := outcome.describe_foreign_records(launch, each.session, run, records.end):
        yield Violation(Code.RECORDS_FOREIGN, place, foreign)
    if delayed := describe_unplanned_injection(run, planted=False):
        yield Violation(Code.DELAYED, place, delayed)
    if differing := describe_differing_ranks(run):
        yield Violation(Code.RANKS_DIFFER, place, differing)
    if objects := list_interposed(run):
        yield Violation(Code.INTERPOSED, place, f"{', '.join(objects)} in front of the MPI")
    if other := outcome.check_mpi_world(launch, records):
        same = outcome.is_asked_library(records.mpi_library, launch.library)
        yield Violation(Code.LAYOUT_OTHER if same else Code.MPI_OTHER, place, other.reason)


def check_method(each: LaunchEvidence, records: Records, rules: Rules) -> Iterator[Violation]:
    """Check that time is simulated where the offer says so, and caches are as the rules ask."""
    exact = records.mpi_library.startswith(SIMULATED_LIBRARY)
    if {each.launch.exact, each.done.machine.exact} != {exact}:
        time = "simulated" if exact else "measured"
        yield Violation(Code.MPI_OTHER, each.place, f"its time is {time}, but its pass or plan says otherwise")
    cache = each.launch.cases[0].cache
    if each.launch.program == OWN_PROGRAM and not exact and rules.cache not in ("", cache):
        what = f"{cache}, and the rules ask for {rules.cache}"
        yield Violation(Code.CACHE_OTHER, each.place, what)


def check_binding(each: LaunchEvidence, records: Records) -> Iterator[Violation]:
    """Check that no two ranks share a CPU while others are free."""
    if each.launch.exact:
        return
    ranks = [(rank["host"], cpus_of(rank.get("cpus", ""))) for rank in records.run["ranks"]]
    if not all(cpus for _, cpus in ranks):
        yield Violation(Code.BINDING_UNKNOWN, each.place, "the CPUs of a rank are not recorded")
        return
    taken: set[tuple[str, int]] = set()
    for number, (host, cpus) in enumerate(ranks):
        own = {(host, cpu) for cpu in cpus}
        if len(cpus) == 1 and own & taken:
            where = f"rank {number} on {host}"
            yield Violation(Code.BINDING_SHARED, each.place, f"{where} has no CPU of its own")
            return
        taken |= own if len(cpus) == 1 else set()


def check_facts(each: LaunchEvidence, records: Records) -> Iterator[Violation]:
    """Check that records tell of kernel, processor and environment, and that the clock is fine enough."""
    run = records.run
    keys = () if each.launch.exact else TOLD_KEYS
    if lacking := [key for key in keys if not (run.get(key) or (key == "environment" and key in run))]:
        yield Violation(Code.FACTS_MISSING, each.place, f"{lacking[0]}: is not recorded")
    step = run.get("timer", {}).get("resolution", 0.0)
    if step > COARSE:
        yield Violation(Code.CLOCK_COARSE, each.place, f"its step is {step:g} s")


def check_iterations(each: LaunchEvidence, rules: Rules) -> Iterator[Violation]:
    """Check that a launch repeated its cases often enough; simulated time repeats by itself."""
    asked = {str(program): count for program, count in rules.iterations.items()}
    least = asked.get(each.launch.program, 0)
    if any(benchmark.window for benchmark in each.launch.benchmarks):
        least = -(-least // WINDOW_SHARE)
    if not each.launch.exact and each.launch.trials < least:
        what = f"{each.launch.trials} iterations, and the rules ask for {least}"
        yield Violation(Code.FEW_ITERATIONS, each.place, what)


def check_speed(each: LaunchEvidence, records: Records, told: ToldFacts) -> Iterator[Violation]:
    """Check that no value is faster than light, wire or memory."""
    if each.launch.exact:
        return
    for case in each.launch.cases:
        measured = records.measurements.get(case.variable)
        if measured is None or not measured.value:
            continue
        for limit in list_speed_limits(case, measured.unit, told):
            if limit.is_broken(measured.value, measured.unit):
                how = formats.format_comparison(measured.value, limit.value, measured.unit)
                what = f"{case.label} {formats.size(case.bytes)}: {how} {limit.what} allows"
                excess = formats.compute_slowdown(limit.value, measured.value, measured.unit)
                yield Violation(LIMITS[limit.what], each.place, what, excess)


#: Seconds for a message between nodes: metres of fibre and two adapters; inside a node a line of the cache.
BETWEEN_NODES, INSIDE_NODE = 5e-8, 5e-9
#: Routines that send both ways at once.
BOTH_WAYS = ("bibw", "biband", "bidir_put", "bidir_get", "sendrecv", "exchange", "pingping")
#: Of which a process receives less than ``bytes``.
SCATTERED = ("reduce_scatter_sum",)


@dataclass(frozen=True)
class SpeedLimit:
    """A bound, in the unit of the value, and what it is of: ``wire``, ``memory`` or ``light``."""

    value: float
    what: str

    def is_broken(self, value: float, unit: str) -> bool:
        """Return whether a value in this unit (seconds or a rate) is faster."""
        return value < self.value if unit == formats.SECONDS else value > self.value


def list_speed_limits(case: Case, unit: str, told: ToldFacts) -> list[SpeedLimit]:
    several = case.processes > case.per_node
    cold = case.cache in (EVICT, FLUSH)
    wire, memory = told.link_gbit_per_s * 1e9 / 8, told.memory_gbyte_per_s * 1e9
    rate, what = (wire, "wire") if several else (memory if cold else 0.0, "memory")
    if unit != formats.SECONDS:
        both = 2 if case.routine in BOTH_WAYS else 1
        return [SpeedLimit(both * rate / 1e6, what)] if rate else []
    found = [SpeedLimit(BETWEEN_NODES if several else INSIDE_NODE, "light")]
    if rate and case.routine not in SCATTERED:
        found.append(SpeedLimit(case.bytes / rate, what))
    return found


@dataclass(frozen=True)
class HandedIn:
    """What somebody hands in: by which key it is sealed, and what each of its launches is known by."""

    name: str
    key: str
    launches: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SharedLaunches:
    """Launches that two have handed in."""

    names: tuple[str, str]
    text: str
    grave: bool  #: whether it is a reason to reject: both were not signed by one key

    def format(self) -> str:
        """Format it as a violation of a run rule."""
        title = Code.LAUNCH_SHARED.word + ("" if self.grave else " (noted)")
        return f"{title}: {self.text}; {Code.LAUNCH_SHARED.fix}"


def find_shared_launches(handed: Sequence[HandedIn]) -> list[SharedLaunches]:
    found = []
    for one, two in combinations(handed, 2):
        known = {mark for launch in one.launches for mark in launch}
        count = sum(any(mark in known for mark in launch) for launch in two.launches)
        if count:
            of = formats.plural(len(two.launches), "launch", "es")
            text = f"{two.name}: {count} of {of} are those of {one.name}"
            grave = not one.key or one.key != two.key
            found.append(SharedLaunches((one.name, two.name), text, grave))
    return found


def check_delivery(offered: OpenedOffer, parts: Sequence[OpenedOffer]) -> Iterator[Violation]:
    """Check that what was measured of a delivered machine was launched for it, after the offer was sealed.

    :param parts: folders of an acceptance with launches
    """
    known = {mark: evidence.place for evidence in offered.evidence for mark in evidence.marks}
    sealed = find_sealed(offered)
    before: dict[str, str] = {}
    for part in parts:
        name = part.stored.folder.name
        for evidence in part.evidence:
            place, marks = f"{name}/{evidence.place}", evidence.marks
            if taken := next((known[mark] for mark in marks if mark in known), ""):
                what = f"is the launch {taken} of the offer"
                yield Violation(Code.LAUNCH_OFFERED, place, what)
            elif twice := next((before[mark] for mark in marks if mark in before), ""):
                yield Violation(Code.LAUNCH_TWICE, place, f"is {twice}, too")
            span = outcome.read_span(evidence.launch, evidence.session)
            if span and span[0] < sealed - outcome.CLOCKS_DIFFER:
                began, when = (time.strftime(formats.DATE_FORMAT, time.gmtime(t)) for t in (span[0], sealed))
                what = f"began {began}, and the offer was sealed {when}"
                yield Violation(Code.LAUNCH_BEFORE, place, what)
            before |= {mark: place for mark in marks}


def find_sealed(offered: OpenedOffer) -> int:
    """Find when an offer was sealed, in seconds since 1970: not before its last pass had ended."""
    told = read_sealed(offered.stored.folder)
    moments = [each.ended_utc for each in offered.stored.passes] + ([told] if told else [])
    return max((int(formats.parse_utc(moment).timestamp()) for moment in moments), default=0)
