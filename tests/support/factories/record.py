"""A valid launch file of mpicost, built here, for the tests to damage."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from postprocess.stats.launches import summarise_trials

TRIALS = 51
RESOLUTION = 1e-9
EVICTED_LINES = 10**9  #: more than any launch of these tests must have evicted


PROOF = {"ratio": 20.5, "warm": 1e-6, "cold": 2.05e-5, "took": 0.004}
#: What a launch says of the caches, by their state.
COOLED: dict[str, dict[str, Any]] = {
    "evict": {
        "cache": "evict",
        "flush_bytes": 0,
        "evict_instruction": "clflushopt",
        "evict_line": 64,
        "coldness": PROOF,
    },
    "flush": {"cache": "flush", "flush_bytes": 4096, "coldness": PROOF},
    "warm": {"cache": "warm", "flush_bytes": 0},
}


def run_record(cases: int, processes: int = 2, **changes: Any) -> dict[str, Any]:
    """The run record of a launch on one node, if ``hosts`` does not say otherwise."""
    hosts = changes.get("hosts", [{"name": "n1", "ranks": processes}])
    record = {
        "record": "run",
        "schema": 2,
        "token": "",
        "program": "mpicost",
        "suite_version": "0.1.0",
        "source_hash": "0123456789abcdef",
        "mpi_library": 'MPICH Version: 5.0.2\n"quoted" \u2028 and odd',
        "mpi_standard": "4.1",
        "compiler": "gcc 12.2.0",
        "compiler_flags": "-O2",
        "date_utc": "2026-11-21T09:00:00Z",
        "command": ["mpicost"],
        "processes": processes,
        "per_node": processes,
        "hosts": hosts,
        "ranks": ranks_of(hosts),
        "interposed": [],
        "kernel": "Linux 6.1",
        "cpu_model": "a processor",
        "caches": [{"level": 1, "type": "Data", "bytes": 32768, "shared_by": 1}],
        **COOLED[changes.get("cache", "evict")],
        "sync": "dissemination",
        "trials": TRIALS,
        "rounds": 1,
        "dropped": 1,
        "settle": 0.5,
        "relative_error": None,
        "seed": 18446744073709551615,
        "timer": {"resolution": RESOLUTION, "overhead": 2.1e-8, "source": "CLOCK_MONOTONIC"},
        "clock_error": 0.0,
        "environment": {},
        "cases": cases,
    }
    return record | changes


def ranks_of(hosts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Host after host is filled."""
    names = [host["name"] for host in hosts for _ in range(max(0, host["ranks"]))]
    return [{"rank": rank, "host": name, "cpus": "0-1"} for rank, name in enumerate(names)]


def case_record(
    routine: str,
    size: int,
    peer: int = 0,
    trials: int = TRIALS,
    late: list[int] | None = None,
    dropped: int = 1,
    scale: float = 1e-6,
    **changes: Any,
) -> dict[str, Any]:
    """A case with log-normal trials, the same ones for the same routine, size and peer."""
    random = np.random.default_rng([size, peer, *routine.encode()])
    t_max = scale * random.lognormal(sigma=0.4, size=trials)
    flags = late or [0] * trials
    summary = summarise_trials(t_max, np.array(flags, dtype=bool), dropped, RESOLUTION)
    record = {
        "record": "case",
        "routine": routine,
        "peer": peer,
        "bytes": size,
        "unit": "s",
        "trials": trials,
        "visits": [trials],
        "t_max": t_max.tolist(),
        "t_min": (0.8 * t_max).tolist(),
        "t_global": (1.1 * t_max).tolist(),
        "skew": (0.05 * t_max).tolist(),
        "late": flags,
        **asdict(summary),
        "verified": True,
    }
    return record | changes


def launch(processes: int = 2, **changes: Any) -> list[dict[str, Any]]:
    """All records of a launch of four cases; ``changes`` go to the run record."""
    cases = [
        case_record("bcast", 8),
        case_record("bcast", 1_000_000, scale=1e-4),
        case_record("pingpong", 8, peer=1),
        case_record("barrier", 0),
    ]
    run = run_record(len(cases), processes, **changes)
    return [run, *cases, end_record(len(cases), run["cache"])]


def end_record(cases: int, cache: str = "evict") -> dict[str, Any]:
    """The end record of a launch in this state of the caches."""
    record = {"record": "end", "token": "", "ended_utc": "2026-11-21T09:00:13Z", "cases": cases}
    record |= {"verified": True, "elapsed": 12.3, "timed": 0.8, "memory_bytes": 12345678}
    record |= {"flush_sum": 0}
    return record | ({"evicted_lines": EVICTED_LINES} if cache == "evict" else {})


#: What rank 1 received in the fourth trial.
WRONG = {"rank": 1, "index": 9, "received": -1, "expected": 1001.5, "moment": "timed", "trial": 4}


def receive_wrong_data(records: list[dict[str, Any]], place: int = 1, **changes: Any) -> list[dict[str, Any]]:
    """The records of the same launch, had the case at this place received wrong data."""
    wrong = {"verified": False, "wrong": WRONG | changes}
    cases = [record | wrong if record is records[place] else record for record in records[:-1]]
    return [*cases, records[-1] | {"verified": False}]


def text(records: list[dict[str, Any]]) -> str:
    """The records as JSON Lines, characters outside ASCII as they are."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text(text(records), encoding="utf-8", newline="\n")
    return path


def bound_run(*cpus: str, hosts: int = 1, **more: Any) -> dict[str, Any]:
    """What a run record tells of MPI, compiler and binding: a rank for each text, on so many hosts."""
    ranks = [
        {"rank": rank, "host": f"n{rank * hosts // len(cpus)}", "cpus": said} for rank, said in enumerate(cpus)
    ]
    found = {"processes": len(cpus), "per_node": len(cpus) // hosts, "ranks": ranks}
    return {"mpi_library": "MPICH Version: 5.0.2", "compiler": "gcc 12.2.0", **found, **more}
