"""Run rules of one launch: held against its records, never believed."""

from __future__ import annotations

from collections.abc import Iterator

from postprocess.base.formats import format_comparison, size
from postprocess.base.units import compute_slowdown
from postprocess.extensions.procurement.check.builds import OfferSources, check_source, find_build
from postprocess.extensions.procurement.check.data import ToldFacts
from postprocess.extensions.procurement.check.evidence import LaunchEvidence
from postprocess.extensions.procurement.check.violations import Code, Violation, list_speed_limits
from postprocess.extensions.procurement.rules.rules_data import Rules
from postprocess.judging.outcome import (
    check_mpi_world,
    describe_foreign_records,
    is_asked_library,
    read_contents,
    read_exit_code,
)
from postprocess.model.conditions import cpus_of
from postprocess.model.interposed import describe_differing_ranks, describe_unplanned_injection, list_interposed
from postprocess.model.launch import Records
from postprocess.model.routines.benchmark import WINDOW_SHARE
from postprocess.model.routines.mpicost import OWN_PROGRAM
from postprocess.model.verdict import FAILED_LAUNCH, RecordError, Verdict
from postprocess.parsers.mpicost import LaunchRecords, read_launch
from postprocess.parsers.osu_imb_launch import BenchmarkRecords, read_benchmarks
from site_configs.mpi.family import SIMULATED_LIBRARY

COARSE = 1e-6  #: seconds of a step of the clock
FAILED = {verdict: Code[f"LAUNCH_{verdict.name}"] for verdict in FAILED_LAUNCH}
#: Keys of a run record that must be told.
TOLD_KEYS = ("kernel", "cpu_model", "environment", "date_utc")
LIMITS = {"light": Code.FASTER_THAN_LIGHT, "wire": Code.FASTER_THAN_WIRE, "memory": Code.FASTER_THAN_MEMORY}


def check_launch(
    each: LaunchEvidence, rules: Rules, told: ToldFacts, sources: OfferSources
) -> Iterator[Violation]:
    """Check one launch."""
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
    yield from check_source(each, records, rules, sources)
    yield from check_iterations(each, rules)
    yield from check_speed(each, records, told)


def read_records(each: LaunchEvidence) -> LaunchRecords | BenchmarkRecords | Violation:
    """Read the records of a launch, or say why there are none."""
    launch, session = each.launch, each.session
    path = launch.witness(session) if launch.benchmarks else launch.records(session)
    data = read_contents(path)
    if launch.benchmarks and find_build(each) is None:
        return Violation(Code.BUILD_UNKNOWN, each.place, f"nothing tells how {launch.program} was built")
    try:
        return read_benchmarks(launch, session, data) if launch.benchmarks else read_launch(path, data)
    except RecordError as error:
        code = FAILED.get(error.verdict, Code.LAUNCH_INCOMPLETE)
        ended = read_exit_code(launch.ending(session))
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
    if foreign := describe_foreign_records(launch, each.session, run, records.end):
        yield Violation(Code.RECORDS_FOREIGN, place, foreign)
    if delayed := describe_unplanned_injection(run, planted=False):
        yield Violation(Code.DELAYED, place, delayed)
    if differing := describe_differing_ranks(run):
        yield Violation(Code.RANKS_DIFFER, place, differing)
    if objects := list_interposed(run):
        yield Violation(Code.INTERPOSED, place, f"{', '.join(objects)} in front of the MPI")
    if other := check_mpi_world(launch, records):
        same = is_asked_library(records.mpi_library, launch.library)
        yield Violation(Code.LAYOUT_OTHER if same else Code.MPI_OTHER, place, other.reason)


def check_method(each: LaunchEvidence, records: Records, rules: Rules) -> Iterator[Violation]:
    """Check that time is simulated where the offer says so, and caches are as the rules ask."""
    exact = records.mpi_library.startswith(SIMULATED_LIBRARY)
    if {each.launch.exact, each.done.machine.exact} != {exact}:
        time = "simulated" if exact else "measured"
        yield Violation(Code.MPI_OTHER, each.place, f"its time is {time}, and was told otherwise")
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
        yield Violation(Code.BINDING_UNKNOWN, each.place, "a rank does not tell its CPUs")
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
        yield Violation(Code.FACTS_MISSING, each.place, f"{lacking[0]}: is not told")
    step = run.get("timer", {}).get("resolution", 0.0)
    if step > COARSE:
        yield Violation(Code.CLOCK_COARSE, each.place, f"its step is {step:g} s")


def check_iterations(each: LaunchEvidence, rules: Rules) -> Iterator[Violation]:
    """Check that a launch repeated its cases often enough; simulated time repeats by itself."""
    asked = {str(program): count for program, count in rules.iterations.items()}
    least = asked.get(each.launch.program, 0)
    if any(each.window for each in each.launch.benchmarks):
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
                how = format_comparison(measured.value, limit.value, measured.unit)
                what = f"{case.label} {size(case.bytes)}: {how} {limit.what} allows"
                excess = compute_slowdown(limit.value, measured.value, measured.unit)
                yield Violation(LIMITS[limit.what], each.place, what, excess)
