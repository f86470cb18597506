"""What mpicost measures and writes, on real MPIs."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest

from postprocess.model.measurement import TrialSummary
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.mpicost import read_launch
from postprocess.parsers.mpicost_schema import LEAST_COLDNESS
from postprocess.stats.launches import summarise_trials
from tests.support.mpi import of_family
from tests.support.mpicost import (
    EVICTED,
    FAMILIES,
    TINY,
    Program,
    Record,
    Records,
    build,
    library,
    preload,
    program,
)
from tests.support.paths import SUITE

RUN = {
    **dict.fromkeys(("record", "program", "suite_version", "source_hash", "mpi_library"), str),
    **dict.fromkeys(("mpi_standard", "compiler", "compiler_flags", "date_utc", "token", "kernel"), str),
    **dict.fromkeys(("cpu_model", "cache", "sync"), str),
    **dict.fromkeys(("schema", "processes", "per_node", "flush_bytes", "trials", "rounds"), int),
    **dict.fromkeys(("dropped", "seed", "cases", "tcp_packets"), int),
    **dict.fromkeys(("command", "hosts", "ranks", "caches", "node_facts", "interposed", "below"), list),
    **dict.fromkeys(("timer", "environment"), dict),
    "clock_error": (int, float),
    "coldness": dict,
    "settle": (int, float),
    "relative_error": (type(None), float),
}
SERIES = ("t_max", "t_min", "t_global", "skew", "late")
CASE = {
    **dict.fromkeys(("record", "routine", "unit"), str),
    **dict.fromkeys(("peer", "bytes", "trials", "kept", "candidates", "removed"), int),
    **dict.fromkeys((*SERIES, "visits"), list),
    **dict.fromkeys(("headline", "steady", "median", "minimum", "p90", "p99"), (int, float)),
    **dict.fromkeys(("filter_saturated", "bimodal", "verified"), bool),
}
END = {
    "token": str,
    "ended_utc": str,
    "record": str,
    "verified": bool,
    "lateness": dict,
    **dict.fromkeys(("cases", "memory_bytes", "flush_sum", "tcp_packets"), int),
    **dict.fromkeys(("elapsed", "timed", "clock_deviation"), (int, float)),
}


def check_types(record: Record, contract: dict) -> None:
    assert record.keys() == contract.keys()
    for key, kind in contract.items():
        assert isinstance(record[key], kind), key


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def launch(family: str, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """The default family at two processes, flushed with an odd number of bytes."""
    file = tmp_path_factory.mktemp(family) / "out.jsonl"
    options = ("--flush-bytes", "100001", "--seed", "7", "--trials", "21", "--rounds", "1")
    records = program(family).measure(2, file, *options)
    assert len(records.cases) == 45
    return records


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_every_routine_is_right(family: str, processes: int, tmp_path: Path) -> None:
    sizes = ("--bytes", "0,8,1000,100000")
    records = program(family).measure(processes, tmp_path / "out.jsonl", *TINY, *sizes, "--trials", "3")
    assert len(records.cases) == 4 * (processes - 1) + 15 * 4 + 1
    assert all(case["verified"] for case in records.cases)
    assert records.run["processes"] == processes


def test_schema(launch: Records) -> None:
    check_types(launch.run, RUN)
    check_types(launch.end, END)
    for case in launch.cases:
        check_types(case, CASE)
        assert case["unit"] == "s"
        assert {len(case[name]) for name in SERIES} == {case["trials"]} == {21}
    assert launch.run["schema"] == 2
    assert launch.run["cases"] == launch.end["cases"] == len(launch.cases) == 45


def test_provenance(launch: Records, family: str) -> None:
    run = launch.run
    assert {"mpich": "MPICH", "openmpi": "Open MPI"}[family] in run["mpi_library"]
    assert len(run["source_hash"]) == 16
    assert int(run["source_hash"], 16) >= 0
    assert run["command"][1:3] == ["--output", run["command"][2]]
    words = "--flush-bytes 100001 --seed 7 --trials 21 --rounds 1"
    assert run["command"][3:] == words.split()
    assert (run["seed"], run["trials"], run["dropped"]) == (7, 21, 1)
    assert sum(host["ranks"] for host in run["hosts"]) == 2 == run["per_node"]
    assert [rank["rank"] for rank in run["ranks"]] == [0, 1]
    assert all(rank["host"] == run["hosts"][0]["name"] and rank["cpus"] for rank in run["ranks"])
    assert 0 < run["timer"]["resolution"] < 1e-3
    assert 0 < run["timer"]["overhead"] < 1e-3
    assert run["clock_error"] == launch.end["clock_deviation"] == 0


def test_times_are_consistent(launch: Records) -> None:
    """On one host the clock is common: the global time contains each rank's, the skew lies within it."""
    for case in launch.cases:
        t_max, t_min, t_global, skew, late = (np.array(case[name]) for name in SERIES)
        legs = 2 if case["routine"] == "pingpong" else 1
        assert (t_min > 0).all()
        assert (t_max >= t_min).all()
        assert (t_global >= t_max).all()
        assert (skew >= 0).all()
        assert (t_global * legs <= t_max * legs + skew + 1e-12).all()
        assert not late.any()


def test_statistics_follow_from_the_trials(launch: Records) -> None:
    names = [field.name for field in fields(TrialSummary)]
    for case in launch.cases:
        resolution = launch.run["timer"]["resolution"]
        summary = asdict(summarise_trials(np.array(case["t_max"]), None, 1, resolution))
        assert {name: case[name] for name in names} == pytest.approx(summary, rel=1e-9)


def test_totals(launch: Records) -> None:
    slowest = sum(sum(case["t_max"]) * (2 if case["routine"] == "pingpong" else 1) for case in launch.cases)
    assert launch.end["timed"] == pytest.approx(slowest, rel=1e-6)
    assert launch.end["timed"] < launch.end["elapsed"]


def test_flush_array_was_changed_in_every_trial(launch: Records) -> None:
    """One is added to a word of every 64 bytes in each trial: the sum of the array shows each of them.

    Five more are those of the proof that the caches get cold, which so few bytes do not make them.
    """
    touches = 21 * len(launch.cases) + 5
    assert launch.run["flush_bytes"] == 100001
    assert launch.end["flush_sum"] == math.ceil(100000 / 64) * touches


def test_warm_caches_are_left_alone(family: str, tmp_path: Path) -> None:
    options = ("--routine", "bcast", "--bytes", "8000", "--trials", "5")
    warm = program(family).measure(2, tmp_path / "warm.jsonl", *options, "--cache", "warm")
    assert (warm.run["cache"], warm.run["flush_bytes"], warm.end["flush_sum"]) == ("warm", 0, 0)
    flushed = program(family).measure(2, tmp_path / "flush.jsonl", *options, *TINY)
    more = flushed.end["memory_bytes"] - warm.end["memory_bytes"]
    assert (flushed.run["cache"], flushed.run["flush_bytes"]) == ("flush", more) and more > 0


@pytest.mark.alone
def test_evicted_buffers_are_cold(family: str, tmp_path: Path) -> None:
    """A block is read more slowly after the eviction, here about three times.

    What shares a cache with this test makes warm blocks cold: the fastest trial of three launches counts.
    """
    options = ("--routine", "control_memory,bcast", "--bytes", "1000000", "--trials", "21")
    fastest = {"warm": math.inf, "evict": math.inf}
    for _ in range(3):
        for cache, so_far in fastest.items():
            run = program(family).measure(2, tmp_path / cache, *options, "--cache", cache)
            (block,) = (case for case in run.cases if case["routine"] == "control_memory")
            fastest[cache] = min(so_far, block["minimum"])
    assert fastest["evict"] > fastest["warm"]
    warm = read_launch(tmp_path / "warm")
    assert "coldness" not in warm.run and "evicted_lines" not in warm.end
    evicted = read_launch(tmp_path / "evict")
    assert evicted.run["evict_instruction"] and evicted.run["evict_line"] >= 16
    assert evicted.run["coldness"]["ratio"] > LEAST_COLDNESS
    assert (evicted.run["flush_bytes"], evicted.end["flush_sum"]) == (0, 0)
    lines = 2 * 21 * math.ceil(1_000_000 / evicted.run["evict_line"])
    assert lines < evicted.end["evicted_lines"] < 3 * lines


def test_a_flush_that_leaves_the_caches_warm_is_refused(launch: Records, tmp_path: Path) -> None:
    """100 kB are no flush: a block is read as fast after it as before."""
    ratio = launch.run["coldness"]["ratio"]
    if ratio >= LEAST_COLDNESS:
        pytest.skip(f"100 kB flush the caches of this machine (ratio {ratio})")
    file = tmp_path / "out.jsonl"
    file.write_text("\n".join(map(json.dumps, (launch.run, *launch.cases, launch.end))) + "\n")
    with pytest.raises(RecordError, match="left the caches warm") as refusal:
        read_launch(file)
    assert refusal.value.verdict == Verdict.INCORRECT


@pytest.mark.long
def test_a_processor_without_the_instruction_refuses_to_evict(tmp_path: Path) -> None:
    """Built as for an architecture that has none."""
    without = "-DCMAKE_C_FLAGS=-DMPICOST_WITHOUT_EVICTION"
    built = build(of_family("mpich"), tmp_path / "build", without, targets=["mpicost"])
    refusing = Program(of_family("mpich"), built)
    file = tmp_path / "out.jsonl"
    ended = refusing.run(2, "--cache", "evict", "--routine", "barrier", "--output", str(file))
    assert (ended.status, len(ended.complaints)) == (2, 1)
    assert "--cache evict: the processor has no instruction" in ended.complaints[0]
    assert not file.exists()


def test_flush_is_sized_by_the_caches_and_the_ranks_that_share_them(tmp_path: Path) -> None:
    options = ("--routine", "rightshift", "--bytes", "8", "--trials", "2")
    for processes in (1, 2):
        file = tmp_path / f"{processes}"
        run = program("mpich").measure(processes, file, *options, large_flush=True).run
        data = [cache for cache in run["caches"] if cache["type"] != "Instruction"]
        last = max(data, key=lambda cache: cache["level"])
        second = sum(cache["bytes"] for cache in data if cache["level"] == 2)
        share = math.ceil(2 * last["bytes"] / min(processes, last["shared_by"]))
        assert run["flush_bytes"] == share + (2 * second if last["level"] > 2 else 0)


def test_same_seed_same_order(tmp_path: Path) -> None:
    def order(records: Records) -> list[tuple[str, int]]:
        return [(case["routine"], case["bytes"]) for case in records.cases]

    options = (*TINY, "--trials", "2", "--seed")
    first, again, other = (
        order(program("mpich").measure(2, tmp_path / f"{number}.jsonl", *options, seed))
        for number, seed in enumerate("778")
    )
    assert again == first != other
    assert sorted(other) == sorted(first)


def test_seeds_differ_unless_given(tmp_path: Path) -> None:
    options = (*TINY, "--routine", "barrier", "--trials", "2")
    seeds = {program("mpich").measure(2, tmp_path / f"{i}.jsonl", *options).run["seed"] for i in (1, 2)}
    assert len(seeds) == 2


def test_work_comes_before_the_first_case_while_processors_speed_up(family: str, tmp_path: Path) -> None:
    def settled(name: str, seconds: str, wrapper: Sequence[str] = ()) -> Records:
        options = (*TINY, "--routine", "barrier", "--trials", "2", "--settle", seconds)
        return program(family).measure(2, tmp_path / name, *options, wrapper=wrapper)

    idle = preload(library(family, "slow_start"))
    assert settled("none", "0", idle).run["settle"] == 0
    assert settled("most", "0.2", idle).end["elapsed"] > 0.2
    assert settled("until none speeds up", "60", idle).end["elapsed"] > 0.4
    steady = settled("steady", "60")
    assert steady.run["settle"] == 60 and 0.1 < steady.end["elapsed"] < 30


def test_sampling_stops_early_when_asked(tmp_path: Path) -> None:
    options = (*TINY, "--routine", "bcast", "--bytes", "8", "--trials", "4000")
    records = program("mpich").measure(2, tmp_path / "a", *options, "--relative-error", "0.9")
    (case,) = records.cases
    assert records.run["relative_error"] == 0.9
    assert 10 <= case["trials"] < 4000
    assert case["trials"] % 10 == 0
    kept = np.sort(case["t_max"][1:])[: case["kept"]]
    assert kept.std(ddof=1) / np.sqrt(kept.size) <= 0.9 * case["headline"]


def test_sampling_goes_on_while_the_error_is_large(tmp_path: Path) -> None:
    options = (*TINY, "--routine", "bcast", "--bytes", "8", "--trials", "25")
    options = (*options, "--relative-error", "0.000000001")
    assert program("mpich").measure(2, tmp_path / "a", *options).cases[0]["trials"] == 25


def test_sampling_with_windows_stops_after_whole_tens_too(tmp_path: Path) -> None:
    options = (*TINY, "--routine", "barrier", "--sync", "window", "--trials", "400")
    options = (*options, "--relative-error", "0.99")
    trials = program("mpich").measure(1, tmp_path / "a", *options).cases[0]["trials"]
    assert trials % 10 == 0
    assert trials < 400


@pytest.mark.parametrize("sync", ["dissemination", "barrier"])
def test_synchronisers_that_have_no_window_are_never_late(sync: str, tmp_path: Path):
    options = (*TINY, "--routine", "rightshift,barrier", "--trials", "5", "--sync", sync)
    records = program("mpich").measure(3, tmp_path / "a", *options)
    assert records.run["sync"] == sync
    assert not any(any(case["late"]) for case in records.cases)


def test_memory_grows_only_with_what_a_routine_needs(tmp_path: Path) -> None:
    """bcast needs one vector per rank however many ranks there are, alltoall one block for each.

    What is received is there twice: as it came, and as it must be. Beside that every rank has six whole
    numbers for each of them: count and offset of equal blocks, of one vector split among all, and of a single
    block.
    """

    def memory(processes: int, routine: str, size: int) -> int:
        options = (*TINY, "--routine", routine, "--bytes", str(size), "--trials", "2")
        file = tmp_path / f"{routine}-{processes}-{size}"
        needed = program("mpich").measure(processes, file, *options).end["memory_bytes"]
        return needed - 6 * 4 * processes

    assert memory(4, "bcast", 80000) == memory(2, "bcast", 80000)
    assert memory(2, "bcast", 160000) - memory(2, "bcast", 80000) == 2 * 80000
    assert memory(4, "alltoall", 80000) - memory(2, "alltoall", 80000) == 3 * 2 * 80000
    told = re.search(r"allocates ([\d,]+) bytes a rank at 4 processes", (SUITE / "README.md").read_text())
    assert told
    launch = ("--cache", "warm", "--routine", "bcast", "--bytes", "8", "--trials", "10")
    needed = program("mpich").measure(4, tmp_path / "told", *launch).end["memory_bytes"]
    assert needed == int(told[1].replace(",", ""))


def test_environment_is_recorded_without_secrets(tmp_path: Path) -> None:
    shown = {"OMP_NUM_THREADS": '3 "x"', "OMP_ODD": "b\udcffd"}  # the second is not UTF-8
    hidden = {"SLURM_JWT": "secret", "HOME_OMP_": "no"}
    file = tmp_path / "out.jsonl"
    options = (*EVICTED, "--routine", "barrier", "--trials", "2", "--output", str(file))
    ended = program("openmpi").run(1, *options, variables={**shown, **hidden})
    assert ended.status == 0
    environment = read_launch(file).run["environment"]
    assert environment["OMP_NUM_THREADS"] == '3 "x"'
    assert environment["OMP_ODD"] == "b\ufffdd"
    assert not environment.keys() & hidden.keys()
