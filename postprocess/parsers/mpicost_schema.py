"""Check the contents of mpicost's run, case and end records.

Every check raises ValueError, ``key: what is wrong with it``, for a record that cannot be true.
"""

import math
import re
from collections import Counter
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from postprocess.base.strict_json import JsonObject, format_external
from postprocess.model.case import NAME
from postprocess.model.conditions import ROUNDS, STANDARD_ABI
from postprocess.model.gpu import check_gpu_record
from postprocess.model.interposed import BELOW_RECORD, ELSEWHERE, INTERPOSED
from postprocess.model.launch import TCP_PACKETS
from postprocess.model.measurement import CORE_LATENCIES, CaseRecord, CoreLatency, PairTime, TrialSummary
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import CACHES, EVICT, FLUSH, SYNCHRONISERS, TOURNAMENT, VISIT, WARM
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.lateness import list_games, parse_lateness
from postprocess.stats.launches import bound_slowest_mean, summarise_trials, summarise_visits

SCHEMA = 2  #: version of the records
#: CPUs as Linux lists them, ``0-3,8``, with at most six digits each; empty if it does not list them
CPUS = re.compile(r"([0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*)?")
TEXT_HASH = re.compile(r"[0-9a-f]{16}")
ABI_VERSION = re.compile(r"[0-9]{1,6}\.[0-9]{1,6}")
UNIT = "s"
#: Time to read a cold block relative to a warm one; a last-level cache alone makes it 5.
LEAST_COLDNESS = 2.0
TIMED = "timed"
EARLY = "early"  #: seconds by which a rank left a barrier before the last one arrived
MOMENTS = ("before", TIMED, "after")  #: when wrong data was received, relative to the trials
CORES = "core_latency"
COLDNESS, EVICTING = "coldness", ("evict_instruction", "evict_line")
EVICTED = "evicted_lines"
#: Flushes or evictions before the first case, which prove that the caches get cold (``cooling.c``)
PROOFS = 5
PROOF_BYTES = 65536  #: size of the block in the proof (``cooling.c``)
GUARD_BYTES = 64  #: evicted behind the received data, on every rank and in every case (``buffers.h``)
GUARD_PAGE = 4096  #: bytes before and behind each buffer that nobody may write to (``buffers.h``)
NODE_FACTS = "node_facts"
AGREEMENT = 1e-9  #: allowed relative difference between the program's statistics and ours


def parse_run_record(entry: JsonObject) -> JsonObject:
    """Parse the run record, which must have every field that other modules rely on."""
    check_schema(entry)
    _name(entry, "program")
    for key in ("suite_version", "source_hash", "mpi_library", "date_utc"):
        entry.text(key)
    check_coldness(entry, entry.word("cache", CACHES))
    check_loop(entry, "loop_seconds", entry.word("sync", SYNCHRONISERS))
    entry.integer("dropped")
    entry.integer("trials", least=1)
    _check_rounds(entry)
    entry.integer("cases", least=1)
    entry.number("settle")
    entry.object("timer").number("resolution")
    if entry.get("relative_error", float, int, type(None)) is not None:
        entry.number("relative_error")
    check_surroundings(entry)
    check_places(entry)
    check_interposed(entry)
    check_standard_abi(entry)
    check_gpu_record(entry)
    check_packets(entry)
    return entry


def _check_rounds(entry: JsonObject) -> None:
    rounds = entry.integer(ROUNDS, least=1)
    if rounds > max(1, entry.integer("trials") // VISIT):
        raise ValueError(f"{ROUNDS}: {rounds} where there are {entry.integer('trials')} trials")
    if rounds > 1 and (entry.fields.get("relative_error") or "back_to_back" in entry.fields):
        raise ValueError(f"{ROUNDS}: {rounds} where trials must follow each other")


def check_schema(entry: JsonObject) -> None:
    """Check the version of a run record and the fields that every one has."""
    schema = entry.integer("schema")
    if schema != SCHEMA:
        raise ValueError(f"schema: is {schema}, and this Plumbline reads {SCHEMA}")
    entry.get("token", str)
    check_words(entry, "command")
    if INTERPOSED not in entry.fields:
        raise ValueError(f"{INTERPOSED}: is missing")
    entry.moment("date_utc")


def check_end(entry: JsonObject) -> None:
    entry.get("token", str)
    entry.moment("ended_utc")
    check_packets(entry)


def check_packets(entry: JsonObject) -> None:
    """Check the kernel's count of packets, -1 if it has none; simulated records lack it."""
    if TCP_PACKETS in entry.fields:
        entry.integer(TCP_PACKETS, least=-1)


def check_loop(entry: JsonObject, key: str, sync: str) -> None:
    """Check that the seconds of a loop of calls are above 0, and that only loops have them."""
    if (key in entry.fields) is not (sync == LOOP):
        raise ValueError(f"{key}: {'is missing' if sync == LOOP else 'is there'} where sync is {sync}")
    if sync == LOOP and entry.number(key) <= 0:
        raise ValueError(f"{key}: {entry.number(key)} makes no loop")


def check_words(entry: JsonObject, key: str) -> None:
    """Check that a value is a list of texts with at least one entry."""
    words = entry.get(key, list)
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{key}: is not a list of words")


def check_coldness(entry: JsonObject, cache: str) -> None:
    """Check that a launch treated the caches as its state says, and that they got cold."""
    if (entry.integer("flush_bytes") > 0) is not (cache == FLUSH):
        raise ValueError(f"flush_bytes: {entry.integer('flush_bytes')} where cache is {cache}")
    required = {*EVICTING, COLDNESS} if cache == EVICT else {COLDNESS} if cache == FLUSH else set()
    if extra := sorted(({*EVICTING, COLDNESS} - required) & {*entry.fields}):
        raise ValueError(f"{extra[0]}: is there where cache is {cache}")
    if cache == EVICT:
        entry.text("evict_instruction")
        entry.integer("evict_line", least=1)
    if cache != WARM:
        _check_proof(entry.object(COLDNESS), cache)


def _check_proof(proof: JsonObject, cache: str) -> None:
    ratio, warm, cold = (proof.number(key) for key in ("ratio", "warm", "cold"))
    if ratio < LEAST_COLDNESS:
        raise ValueError(
            f"{COLDNESS}: {cache} left the caches warm: reading a block took {ratio:.3g} times as long as "
            f"before; from cold memory it takes at least {LEAST_COLDNESS:g} times as long"
        )
    # the ratio is the least of all ranks, the times are those of rank 0
    if ratio * warm > cold * (1 + AGREEMENT):
        raise ValueError(f"{COLDNESS}: {ratio!r} is more than cold over warm, {cold!r} and {warm!r}")


def check_flush_sum(run: JsonObject, end: JsonObject, trials: int) -> None:
    """Check that every flush was carried out: each adds one to every line of the array."""
    lines = -(-(run.integer("flush_bytes") // 8) // 8)
    expected = lines * (trials + PROOFS) if lines else 0
    if end.integer("flush_sum") != expected:
        raise ValueError(f"flush_sum: {end.integer('flush_sum')}, not {expected}")


def check_evicted_lines(run: JsonObject, end: JsonObject, trials: int) -> None:
    """Check that every eviction was carried out: each covers at least the guard's lines, on every rank."""
    if run.text("cache") != EVICT:
        if EVICTED in end.fields:
            raise ValueError(f"{EVICTED}: is there where cache is {run.text('cache')}")
        return
    line = run.integer("evict_line", least=1)
    least = PROOFS * -(-PROOF_BYTES // line) + trials * -(-GUARD_BYTES // line)
    if end.integer(EVICTED) < least:
        raise ValueError(f"{EVICTED}: {end.integer(EVICTED)}, not {least} or more")


def check_surroundings(entry: JsonObject) -> None:
    """Check the optional environment and timer of a launch."""
    if "environment" in entry.fields:
        entry.object("environment")
    if "timer" in entry.fields:
        entry.object("timer").number("resolution")


def check_interposed(entry: JsonObject) -> None:
    """Check the path and hash of every object in front of the MPI, on rank 0 and on a differing rank.

    Libraries below the MPI are checked as well if the record lists them.
    """
    _check_objects(entry)
    for library in entry.objects(BELOW_RECORD) if entry.fields.get(BELOW_RECORD) else ():
        for key in ("name", "path"):
            library.text(key)
        library.get("version", str)
        if not TEXT_HASH.fullmatch(library.text("text")):
            raise ValueError(f"{BELOW_RECORD}.text: is not a hash of 16 digits")
    if ELSEWHERE in entry.fields:
        other = entry.object(ELSEWHERE)
        if not 0 < other.integer("rank") < entry.integer("processes"):
            raise ValueError(f"{ELSEWHERE}.rank: there is no such rank beside rank 0")
        _check_objects(other)


def check_standard_abi(entry: JsonObject) -> None:
    """Check what a program built against the standard ABI records about itself and its library.

    A program that cannot read its own file does not record its hash.
    """
    if STANDARD_ABI not in entry.fields:
        return
    abi = entry.object(STANDARD_ABI)
    if not ABI_VERSION.fullmatch(abi.text("version")):
        raise ValueError(f"{STANDARD_ABI}.version: is not a version such as 1.0")
    if "program" in abi.fields and not TEXT_HASH.fullmatch(abi.text("program")):
        raise ValueError(f"{STANDARD_ABI}.program: is not a hash of 16 digits")
    abi.text("library")


def _check_objects(entry: JsonObject) -> None:
    if entry.get(INTERPOSED, list):
        for interposed in entry.objects(INTERPOSED):
            interposed.text("path")
            if not TEXT_HASH.fullmatch(interposed.text("text")):
                raise ValueError(f"{INTERPOSED}.text: is not a hash of 16 digits")


def check_places(entry: JsonObject) -> None:
    """Check that hosts and ranks agree on the place of every process."""
    hosts = {host.text("name"): host.integer("ranks", least=1) for host in entry.objects("hosts")}
    if len(hosts) != len(entry.objects("hosts")):
        raise ValueError("hosts: two of them have the same name")
    _check_node_facts(entry, len(hosts))
    if sum(hosts.values()) != entry.integer("processes") or max(hosts.values()) != entry.integer("per_node"):
        counts = list(hosts.values())
        raise ValueError(f"hosts: ranks {format_external(counts)} disagree with processes or per_node")
    ranks = entry.objects("ranks")
    if [rank.integer("rank") for rank in ranks] != list(range(entry.integer("processes"))):
        raise ValueError("ranks: are not those from 0 to processes - 1, in turn")
    if Counter(rank.text("host") for rank in ranks) != hosts:
        raise ValueError("ranks: their hosts disagree with hosts")
    for rank in ranks:
        for key in ("cpus", "core"):
            if key in rank.fields and not CPUS.fullmatch(rank.get(key, str)):
                raise ValueError(f"ranks: {format_external(rank.fields[key])} is not a list of CPUs")


def _check_node_facts(entry: JsonObject, hosts: int) -> None:
    """Check that there is one set of node facts per host, all texts; simulated nodes have none."""
    if NODE_FACTS not in entry.fields:
        return
    facts = entry.objects(NODE_FACTS)
    if len(facts) != hosts:
        raise ValueError(f"{NODE_FACTS}: {len(facts)} for {hosts} hosts")
    for node in facts:
        for name in node.fields:
            node.get(name, str)


def parse_end_record(entry: JsonObject, run: JsonObject) -> JsonObject:
    """Parse the end record, which must have every field that other modules rely on."""
    check_end(entry)
    entry.flag("verified")
    entry.integer("cases")
    entry.integer("memory_bytes")
    entry.integer("flush_sum")
    entry.number("elapsed")
    entry.number("timed")
    parse_lateness(entry, run)
    return entry


def parse_case_record(entry: JsonObject, run: JsonObject) -> CaseRecord:
    """Parse the trials of a case record, and recompute its statistics.

    Raises RecordError (incomplete) if no trial is left after the dropped and late ones.
    """
    entry.word("unit", (UNIT,))
    trials, dropped = _trials(entry, run), run.integer("dropped")
    t_max = entry.series("t_max", trials, zero=False)
    t_min = entry.series("t_min", trials)
    if (t_min > t_max).any():
        raise ValueError(f"t_min: trial {int(np.argmax(t_min > t_max)) + 1} is above its t_max")
    _check_visits(entry, run, trials)
    late = _late(entry, run, trials)
    if late[dropped:].all():
        raise RecordError(Verdict.INCOMPLETE, f"late: none of {trials} trials is left to average")
    check_loop(entry, "calls", run.text("sync"))
    routine = _name(entry, "routine")
    peer = _peer(entry, run, routine)
    return CaseRecord(
        routine=routine,
        peer=peer,
        bytes=entry.integer("bytes"),
        t_max=t_max,
        t_min=t_min,
        t_global=entry.series("t_global", trials, zero=False),
        skew=entry.series("skew", trials),
        late=late,
        summary=summarise_trials(t_max, late, dropped, run.object("timer").number("resolution")),
        pairs=_pairs(entry, run, peer, t_max, t_min) if _has_pairs(entry, routine) else (),
        slowest_mean=_slowest_mean(entry, run, t_max, t_min),
        core_latency=_core_latency(entry, run),
        wrong=describe_wrong_data(entry, run),
    )


def check_statistics(entry: JsonObject, summary: TrialSummary) -> None:
    """Compare the program's statistics with those recomputed from the trials."""
    for field in fields(TrialSummary):
        ours = getattr(summary, field.name)
        theirs: float
        if isinstance(ours, bool):
            theirs, agree = entry.flag(field.name), entry.flag(field.name) is ours
        elif isinstance(ours, int):
            theirs, agree = entry.integer(field.name), entry.integer(field.name) == ours
        else:
            theirs = entry.number(field.name)
            agree = math.isclose(theirs, ours, rel_tol=AGREEMENT)
        if not agree:
            raise ValueError(f"{field.name}: {theirs!r} disagrees with the trials, {ours!r}")


def describe_wrong_data(entry: JsonObject, run: JsonObject) -> str:
    """Describe the wrong data that a case received, in one line; empty if all data was right."""
    if entry.flag("verified"):
        if "wrong" in entry.fields:
            raise ValueError("wrong: is there, and verified is true")
        return ""
    routine, peer = _name(entry, "routine"), entry.integer("peer")
    what = f"wrong data: {routine} with {entry.integer('bytes')} bytes"
    what += f", peer {peer}" if peer else ""
    return f"{what}: {_finding(entry.object('wrong'), run)}" if "wrong" in entry.fields else what


def _finding(wrong: JsonObject, run: JsonObject) -> str:
    """Describe the first wrong data by rank, element, values and moment, or a rank that left too early."""
    rank, trial = wrong.integer("rank"), wrong.integer("trial")
    if rank >= run.integer("processes"):
        raise ValueError(f"wrong.rank: there is no rank {rank}")
    moment = wrong.word("moment", MOMENTS)
    if trial > run.integer("trials") or (moment == TIMED) is not bool(trial):
        raise ValueError(f"wrong.trial: {trial} is none of {run.integer('trials')}, {moment}")
    when = f"in trial {trial}" if trial else f"{moment} the trials"
    if EARLY in wrong.fields:
        return f"rank {rank} left {wrong.number(EARLY):.3g} s before the last rank had come, {when}"
    received, expected = (_value(wrong, key) for key in ("received", "expected"))
    element = wrong.integer("index", least=-GUARD_PAGE)  # below 0: before the buffer
    where = f"has {received}" if "buffer" in wrong.fields else f"received {received}"
    around = f"around its {wrong.word('buffer', ('send',))} buffer, " if "buffer" in wrong.fields else ""
    return f"rank {rank} {where} {around}in element {element} instead of {expected}, {when}"


def _value(wrong: JsonObject, key: str) -> str:
    """Format a received number of any size."""
    value = wrong.get(key, int, float, type(None))
    return "no number up to 1e150" if value is None else f"{value:.17g}"


def _name(entry: JsonObject, key: str) -> str:
    name = entry.text(key)
    if not NAME.fullmatch(name):
        raise ValueError(f"{key}: {format_external(name)} is not a name (letters, digits, _ . + -)")
    return name


def _peer(entry: JsonObject, run: JsonObject, routine: str) -> int:
    peer, processes = entry.integer("peer"), run.integer("processes")
    if routine == TOURNAMENT:
        rounds = processes - 1 + processes % 2  # with an odd number, one rank pauses in each round
        if not 1 <= peer <= rounds:
            raise ValueError(f"peer: a tournament of {processes} has no round {peer}")
    elif peer >= processes:
        raise ValueError(f"peer: there is no rank {peer}")
    return peer


def _has_pairs(entry: JsonObject, routine: str) -> bool:
    if routine != TOURNAMENT and "pairs" in entry.fields:
        raise ValueError(f"pairs: {format_external(routine)} is not played in pairs")
    return routine == TOURNAMENT


def _pairs(
    entry: JsonObject, run: JsonObject, number: int, t_max: NDArray[np.float64], t_min: NDArray[np.float64]
) -> tuple[PairTime, ...]:
    """Parse the pairs of a round, each once. Their slowest trials must be those of ``t_max``."""
    processes = run.integer("processes")
    pairs = tuple(_pair(pair, processes, t_max.size) for pair in entry.objects("pairs"))
    games = list_games(processes, number)
    if unknown := next((pair for pair in pairs if (pair.a, pair.b) not in games), None):
        who = f"{unknown.a} and {unknown.b}"
        raise ValueError(f"pairs: {who} do not meet in round {number} of {processes} processes")
    if len({pair.a for pair in pairs}) < len(pairs):
        raise ValueError("pairs: one of them is there twice")
    if len(pairs) != len(games):
        raise ValueError(f"pairs: {len(pairs)} where {processes} processes make {len(games)}")
    times = np.array([pair.t for pair in pairs])
    for wrong, key in ((times.max(axis=0) != t_max, "t_max"), (times.min(axis=0) < t_min, "t_min")):
        if wrong.any():
            raise ValueError(f"pairs: trial {int(np.argmax(wrong)) + 1} disagrees with {key}")
    return pairs


def _slowest_mean(
    entry: JsonObject, run: JsonObject, t_max: NDArray[np.float64], t_min: NDArray[np.float64]
) -> float | None:
    """Parse the largest of the ranks' means, if the run has it; the extremes of the trials bound it."""
    if "back_to_back" not in run.fields:
        return None
    run.integer("back_to_back")
    mean, processes = entry.number("slowest_mean"), run.integer("processes")
    low, high = bound_slowest_mean(t_max, t_min, processes, run.integer("dropped"))
    if not low * (1 - AGREEMENT) <= mean <= high * (1 + AGREEMENT):
        raise ValueError(f"slowest_mean: {mean!r} disagrees with the trials, {low!r} to {high!r}")
    return mean


def _core_latency(entry: JsonObject, run: JsonObject) -> CoreLatency | None:
    """Parse the core-to-core times before and after each visit."""
    if CORES not in entry.fields:
        return None
    return summarise_visits(entry.sparse_series(CORES, 2 * run.integer(ROUNDS), CORE_LATENCIES))


def _check_visits(entry: JsonObject, run: JsonObject, trials: int) -> None:
    """Check that each round had its share of the trials; the first rounds may have one more."""
    rounds = run.integer(ROUNDS)
    expected = [trials // rounds + (number < trials % rounds) for number in range(rounds)]
    if entry.get("visits", list) != expected:
        raise ValueError(f"visits: are not the {rounds} shares of {trials} trials")


def _pair(entry: JsonObject, processes: int, trials: int) -> PairTime:
    a, b = entry.integer("a"), entry.integer("b")
    if not a < b < processes:
        raise ValueError(f"pairs: {a} and {b} are no two of {processes} ranks in ascending order")
    if unknown := sorted(set(entry.fields) - {"a", "b", "t"}):
        raise ValueError(f"pairs: {format_external(unknown[0])} is not a key of a pair")
    return PairTime(a, b, entry.series("t", trials, zero=False))


def _trials(entry: JsonObject, run: JsonObject) -> int:
    """Parse the number of trials: the requested one, or fewer if sampling could stop early."""
    trials, asked = entry.integer("trials", least=1), run.integer("trials")
    if trials > asked or (trials < asked and run.fields["relative_error"] is None):
        raise ValueError(f"trials: {trials} where the run record says {asked}")
    return trials


def _late(entry: JsonObject, run: JsonObject, trials: int) -> NDArray[np.bool_]:
    late = entry.bits("late", trials)
    if late.any() and run.fields["sync"] != "window":
        raise ValueError("late: only a trial with a start window can be late")
    return late
