"""Pairs of a tournament, means of ranks and loops of calls are believed only where they can be true."""

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from postprocess.model.conditions import method_of
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.mpicost import read_launch
from postprocess.stats.launches import bound_slowest_mean
from tests.support.factories import record as samples
from tests.support.factories.record import case_record, end_record, run_record
from tests.support.faults import Declared, plants

TIMES = samples.case_record("tournament", 8, peer=1)
GAMES = ((0, 5), (1, 4), (2, 3))


def pair(a: int, b: int, factor: float = 1.0) -> dict[str, Any]:
    """A pair, its times between the shortest and the longest of the case."""
    low, high = np.array(TIMES["t_min"]), np.array(TIMES["t_max"])
    return {"a": a, "b": b, "t": (low + (high - low) * factor).tolist()}


def launch(pairs: Any = None, processes: int = 6, **changes: Any) -> list[dict[str, Any]]:
    """A launch of one round; the slowest pair is the second one, in every trial."""
    if pairs is None:
        pairs = [pair(*game, factor) for game, factor in zip(GAMES, (0.25, 1, 0), strict=True)]
        pairs[1]["t"] = TIMES["t_max"]
    case = copy.deepcopy(TIMES) | {"pairs": pairs} | changes
    return [samples.run_record(1, processes), case, samples.end_record(1)]


@pytest.fixture
def fault(refused):
    """What is said of the second line of a file that is refused."""
    return lambda records: refused(records, ": line 2: ").partition(": line 2: ")[2]


def changed(which: int, **changes: Any) -> list[dict[str, Any]]:
    """The good launch with some fields of one pair changed."""
    records = launch()
    records[1]["pairs"][which] |= changes
    return records


def test_every_pair_is_kept_as_written(tmp_path):
    records = launch()
    path = samples.write(tmp_path / "a", records)
    (case,) = read_launch(path).cases
    assert case.variable == "tournament@1_8"
    assert tuple((time.a, time.b) for time in case.pairs) == GAMES
    for each, written in zip(case.pairs, records[1]["pairs"], strict=True):
        assert each.t.tolist() == written["t"]
    assert np.max([time.t for time in case.pairs], axis=0).tolist() == case.t_max.tolist()


def test_other_routines_have_no_pairs(tmp_path):
    path = samples.write(tmp_path / "a", samples.launch())
    assert {case.pairs for case in read_launch(path).cases} == {()}


def test_with_an_odd_number_one_rank_is_left_over(tmp_path):
    path = samples.write(tmp_path / "a", launch(processes=7, peer=7))
    assert len(read_launch(path).cases[0].pairs) == 3


def test_what_is_missing_is_named(fault):
    records = launch()
    for key in ("a", "b", "t"):
        less = copy.deepcopy(records)
        del less[1]["pairs"][2][key]
        assert fault(less) == f"pairs.{key}: is missing"
    del records[1]["pairs"][0]
    assert fault(records) == "pairs: 2 where 6 processes make 3"
    del records[1]["pairs"]
    assert fault(records) == "pairs: is missing"


@pytest.mark.parametrize(("processes", "peers"), [(6, (2, 3, 4, 5)), (7, (1, 2, 3, 4, 5, 6))])
def test_the_pairs_of_another_round_are_refused(fault, processes, peers):
    for peer in peers:
        said = fault(launch(processes=processes, peer=peer))
        assert said.endswith(f" do not meet in round {peer} of {processes} processes")


NO_PAIRS: list[Any] = [[], {}, [1], 3, "ab", [None]]
NO_RANKS = [(5, 0), (0, 0), (0, 6), (-1, 5), (0.0, 5), ("0", 5), (0, True), (0, 2**63)]
NO_TIMES = [0, 0.0, -1e-6, None, "1e-6", True, [1e-6]]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (launch(routine="pingpong"), "pairs: 'pingpong' is not played in pairs"),
        (launch(processes=7, peer=8), "peer: a tournament of 7 has no round 8"),
        *((launch(peer=peer), f"peer: a tournament of 6 has no round {peer}") for peer in (0, 6)),
        *((launch(pairs), "pairs: ") for pairs in NO_PAIRS),
        *((changed(0, a=a, b=b), "pairs") for a, b in NO_RANKS),
        *(
            (changed(1, a=a, b=b), f"pairs: {a} and {b} do not meet in round 1 of 6 processes")
            for a, b in [(0, 3), (1, 5), (2, 4)]
        ),
        (changed(1, a=0, b=5), "pairs: one of them is there twice"),
        (changed(2, median=1e-6), "pairs: 'median' is not a key of a pair"),
        *(
            (changed(2, t=(TIMES["t_min"] * 2)[:length]), f"pairs.t: has {length} entries where 51")
            for length in (0, 50, 52)
        ),
        *((changed(2, t=[*TIMES["t_min"][:-1], value]), "pairs.t: trial 51 is ") for value in NO_TIMES),
    ],
)
def test_pairs_that_cannot_be_are_refused(fault, records, said: str):
    assert fault(records).startswith(said)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999"])
def test_a_time_is_finite(tmp_path, word):
    text = samples.text(changed(2, t=[*TIMES["t_min"][:-1], 0.0]))
    path = tmp_path / "a"
    path.write_text(text.replace(", 0.0]}", f", {word}]}}"))
    with pytest.raises(RecordError, match="finite") as caught:
        read_launch(path)
    assert caught.value.verdict is Verdict.INCORRECT


@pytest.mark.parametrize(
    ("which", "factor", "of"),
    [(1, 0.999999, "t_max"), (1, 1.000001, "t_max"), (0, 4.1, "t_max"), (2, 0.5, "t_min")],
)
def test_the_slowest_pair_is_the_time_of_the_trial_and_none_beats_the_fastest_rank(fault, which, factor, of):
    records = copy.deepcopy(launch())
    records[1]["pairs"][which]["t"][8] *= factor
    assert fault(records) == f"pairs: trial 9 disagrees with {of}"


# ---------------------------------------------------------------- the slowest mean of a rank


def written(tmp_path: Path, case: dict[str, Any], **run: Any) -> Path:
    """A launch of one broadcast with warm caches, for which ``case`` and ``run`` tell something else."""
    told = {"cache": "warm", "flush_bytes": 0} | run
    records = [run_record(1, **told), case_record("bcast", 8) | case, end_record(1, "warm")]
    return samples.write(tmp_path / "out.jsonl", records)


def bounds() -> tuple[float, float]:
    case = case_record("bcast", 8)
    return bound_slowest_mean(np.array(case["t_max"]), np.array(case["t_min"]), 2)


def test_it_is_there_where_trials_were_back_to_back_and_nowhere_else(tmp_path: Path):
    low, high = bounds()
    for mean in (low, (low + high) / 2, high):
        (case,) = read_launch(written(tmp_path, {"slowest_mean": mean}, back_to_back=5)).cases
        assert case.slowest_mean == mean
    (case,) = read_launch(written(tmp_path, {})).cases
    assert case.slowest_mean is None


@plants("output", "a mean of the slowest rank that its trials do not allow", "records of mpicost",
        "incorrect", 1, "disagrees with the trials")  # fmt: skip
@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2])
def test_what_the_trials_do_not_allow_is_refused(tmp_path: Path, factor: float, declared: Declared):
    low, high = bounds()
    mean = low * factor if factor < 1 else high * factor
    with declared.raises(RecordError, match=r"slowest_mean: .* disagrees with the trials"):
        read_launch(written(tmp_path, {"slowest_mean": mean}, back_to_back=5))


ODD = [("slowest_mean", {"slowest_mean": mean}, 5) for mean in ("1", -1.0, True)]
ODD += [("slowest_mean", {}, 5)]
ODD += [("back_to_back", {"slowest_mean": sum(bounds()) / 2}, calls) for calls in (-1, "5", None, 0.5)]


@pytest.mark.parametrize(("key", "case", "calls"), ODD)
def test_a_lacking_or_odd_mean_or_number_of_calls_is_refused(tmp_path: Path, key: str, case: dict, calls):
    with pytest.raises(RecordError, match=key):
        read_launch(written(tmp_path, case, back_to_back=calls))


# ---------------------------------------------------------------- loops of calls

LOOP = {"sync": "loop", "loop_seconds": 0.01}


def test_a_loop_has_a_key_of_its_own(tmp_path: Path):
    launch = read_launch(written(tmp_path, {"calls": 250}, **LOOP))
    (record,) = launch.cases
    assert launch.case(record, "s", "p", "mpich-5.0.2").variant == "warm-loop"


@pytest.mark.parametrize(
    ("run", "case", "said"),
    [
        (LOOP, {}, "calls: is missing where sync is loop"),
        (LOOP, {"calls": 0}, "calls: 0"),
        ({}, {"calls": 1}, "calls: is there where sync is dissemination"),
        ({"sync": "loop"}, {"calls": 1}, "loop_seconds: is missing"),
        ({"loop_seconds": 0.01}, {}, "loop_seconds: is there where sync is dissemination"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, run: dict, case: dict, said: str):
    with pytest.raises(RecordError, match=said):
        read_launch(written(tmp_path, case, **run))


def test_how_long_a_loop_lasts_is_a_part_of_the_method():
    short, long = (method_of({**LOOP, "loop_seconds": value}, exact=True) for value in (0.01, 0.1))
    assert short != long and "loop_seconds" not in method_of({}, exact=True)


# ---------------------------------------------------------------- each field, and the caches

GOOD = samples.launch()
RUN, BCAST, END = 0, 1, -1


def damaged(place: int, **changes: Any) -> list[dict[str, Any]]:
    """The good records with some fields of one of them changed; ``None`` stays a value."""
    records = copy.deepcopy(GOOD)
    records[place] |= changes
    return records


def ranks(cpus: object = "0-1", host: str = "n1") -> list[dict[str, object]]:
    """Two ranks, of which the first has these CPUs and the second this host."""
    return [{"rank": 0, "host": "n1", "cpus": cpus}, {"rank": 1, "host": host, "cpus": "0-1"}]


ABI: dict[str, Any] = {"version": "1.0", "program": "0" * 16, "library": "/opt/lib/libmpi_abi.so.1"}


#: Values that cannot be true, by the record and its field.
IMPOSSIBLE: dict[int, dict[str, list[Any]]] = {
    RUN: {
        "schema": [3, "1", True],
        "program": ["mpi cost"],
        "mpi_library": [""],
        "suite_version": [1],
        "source_hash": [None],
        "date_utc": [" "],
        "cache": ["cold"],
        "sync": ["none"],
        "trials": [0, 50],
        "dropped": [-1, 1.0],
        "cases": [0],
        "timer": [{"overhead": 1e-8}, {"resolution": -1e-9}, 1e-9],
        "relative_error": ["0.1", -0.1],
        "processes": [3, 0],
        "per_node": [1],
        "hosts": [
            *([], [{"name": "n1", "ranks": 1}], [{"name": "n1", "ranks": 0}, {"name": "n2", "ranks": 2}]),
            [{"name": "n1", "ranks": 1}, {"name": "n1", "ranks": 1}],
        ],
        "ranks": [
            *([], ranks()[:1], ranks()[:1] * 2, ranks()[::-1], ranks(host="n2")),
            *map(ranks, (7, "\u00b2", "0-99999999999", "0;1")),
        ],
        "interposed": [["libprof.so"]],
        "standard_abi": [
            *(ABI | {"version": each} for each in ("1", None)),
            *(ABI | {"program": each} for each in ("x" * 16, "0")),
            ABI | {"library": ""},
        ],
        "node_facts": [[], [{}, {}], [{"boost": 1}], {"boost": "on"}],
        "coldness": [{"ratio": 1.9, "warm": 1e-6, "cold": 1.9e-6, "took": 0.004}, None],
        "rounds": [0, 26],  # a visit has two trials at least
        "evict_instruction": [None],
        "evict_line": [0],
    },
    BCAST: {
        # the ledger of calibrations cannot hold 1e100
        "core_latency": [
            *([5e-8], 5e-8, *([5e-8, each] for each in (0.0, "5e-8", True))),
            *([1e100, 1e100], [1e-20, None]),
        ],
        "routine": ["", "b cast"],
        "peer": [-1, 2],
        "bytes": [-8, "8"],
        "trials": ["51"],
        "record": ["result"],
        "visits": [[50], [26, 25], 51],
    },
    END: {"elapsed": [-1.0], "timed": ["0.8"], "memory_bytes": [1.5], "cases": ["4"]},
}


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        (place, key, value)
        for place in IMPOSSIBLE
        for key in IMPOSSIBLE[place]
        for value in IMPOSSIBLE[place][key]
    ],
)
def test_a_field_that_cannot_be_true_is_named(refused, place, key, value):
    told = refused(damaged(place, **{key: value}))
    keys = {"processes": "hosts", "per_node": "hosts", "timer": r"timer(\.resolution)?"}
    line = place % len(GOOD) + (2 if (key, value) == ("trials", 50) else 1)
    assert re.search(rf": line {line}: {keys.get(key, key)}(\[0\])?(\.\w+)?: ", told)


NOT_NEEDED = {
    *("mpi_standard", "compiler", "compiler_flags", "kernel", "cpu_model", "caches", "seed", "clock_error"),
    *("environment", "evicted_lines"),  # the state of the caches says whether those are needed
}


@pytest.mark.parametrize(
    ("place", "key"),
    [(place, key) for place in (RUN, BCAST, END) for key in GOOD[place] if key not in NOT_NEEDED],
)
def test_a_field_that_is_missing_is_named(refused, place, key):
    records = damaged(place)
    del records[place][key]
    refused(records, f": line {place % len(GOOD) + 1}: {key}: is missing")


TRIALS = sum(case["trials"] for case in GOOD[1:-1])


LINES_EVICTED = TRIALS + 5 * 1024  #: one for the guard in each trial, and 1,024 in each of five proofs


FLUSHED = 64 * (TRIALS + 5)  #: a walk of 4,096 bytes in each trial, and five before the first case


WARM = {"ratio": 1.1, "warm": 1e-6, "cold": 1.1e-6, "took": 0.004}


def cooled(cache: str, end: dict[str, Any], **changes: Any) -> list:
    """A whole launch in this state of the caches, whose end record tells this."""
    *records, last = samples.launch(cache=cache, **changes)
    last.pop("evicted_lines", None)
    return [*records, last | end]


@pytest.mark.parametrize(
    ("cache", "end"), [("evict", {"evicted_lines": LINES_EVICTED}), ("flush", {"flush_sum": FLUSHED})]
)
def test_caches_were_cold_on_every_rank_in_every_trial(tmp_path, cache, end):
    assert read_launch(samples.write(tmp_path / "a", cooled(cache, end))).cache == cache


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            cooled("evict", {"evicted_lines": LINES_EVICTED - 1}),
            f"evicted_lines: {LINES_EVICTED - 1}, not {LINES_EVICTED} or more",
        ),
        (cooled("evict", {}), "evicted_lines: is missing"),
        (cooled("warm", {"evicted_lines": LINES_EVICTED}), "evicted_lines: is there where cache is warm"),
        (cooled("flush", {"flush_sum": FLUSHED - 64}), "flush_sum"),
        (cooled("flush", {"flush_sum": FLUSHED}, coldness=WARM), "flush left the caches warm"),
        (samples.launch(cache="evict", flush_bytes=4096), "line 1: flush_bytes: "),
        (samples.launch(cache="flush", flush_bytes=0), "line 1: flush_bytes: "),
        (samples.launch(cache="flush", evict_line=64), "line 1: evict_line: "),
        (samples.launch(cache="warm", coldness=samples.PROOF), "line 1: coldness: "),
        (samples.launch(cache="evict", coldness=samples.PROOF | {"cold": 2e-5}), "line 1: coldness: "),
        (samples.launch(cache="evict", coldness={"ratio": 20.5}), "line 1: coldness.warm: "),
    ],
)
def test_a_launch_says_no_more_of_the_caches_than_it_did(refused, records, said):
    refused(records, said)
