"""Made-up nights for the tests of the report: three MPIs, every routine, all that can go wrong."""

import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from postprocess.judging.evaluate import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status, count_verdicts
from postprocess.results.store import StoreRow, read_sessions, write_session
from postprocess.stats.band import compute_band
from postprocess.stats.launches import summarise_trials

SESSION = "20261121T090000Z-4711"
TRIALS = 51
LIBRARIES = {
    "impi-2021.16.0": "Intel(R) MPI Library 2021.16 for Linux* OS\n",
    "mpich-5.0.2": "MPICH Version:      5.0.2\nMPICH Release date: Mon Jun 1 2026\nMPICH ABI: 18:2:6\n",
    "openmpi-5.0.9": "Open MPI v5.0.9, package: Open MPI builder, ident: 5.0.9, repo rev: v5.0.9",
}
SPEED = {"impi-2021.16.0": 0.9, "mpich-5.0.2": 1.0, "openmpi-5.0.9": 1.35}
SIZES = {
    "pingpong": (8, 10_000, 1_000_000),
    "rightshift": (8, 10_000, 1_000_000),
    "barrier": (0,),
    "bcast": (8, 10_000, 1_000_000),
    "scatter": (8, 1000, 10_000, 100_000),
    "gather": (8, 1000, 10_000, 100_000),
    "alltoall": (8, 1000, 10_000, 100_000),
    "allgather": (8, 10_000),
    **{f"reduce_{op}": (8, 10_000, 1_000_000) for op in ("sum", "min", "max")},
    **{f"allreduce_{op}": (8, 1_000_000) for op in ("sum", "min", "max")},
    **{f"scan_{op}": (8, 1_000_000) for op in ("sum", "min", "max")},
}
LINEAR = ("scatter", "gather", "allgather", "alltoall")  # in the processes, not their logarithm


#: What a program, a host or a user may be called, and what it must not do to a reader.
HOSTILE = (
    "</td></table><script>alert(1)</script><img src=x onerror=alert(2)> & &amp; \"q\" 'q' "
    "| a | `b` ``` ~~~ [red]c[/red] [d](http://e.example) ![f](//g.example/h.png) *i* __j__ $k$ "
    "{{ 7*7 }} {% raw %} \n# l\r\n- m\t\x1b[31mn\x07\x00\u202eo\u2028p ]]> --> ;touch q"
)


@dataclass
class Night:
    """Results of a session with their rows for the store; ``document`` is its summary file."""

    results: list[CaseResult] = field(default_factory=list)
    rows: list[StoreRow] = field(default_factory=list)
    strict: bool = False
    more: dict[str, Any] = field(default_factory=dict)  #: replaces keys of the document

    def document(self) -> dict[str, Any]:
        """The summary file as its JSON object."""
        return {**_FRAME, **self._counted(), **self.more}

    def _counted(self) -> dict[str, Any]:
        return {
            "strict": self.strict,
            "exit_status": compute_exit_status(self.results, self.strict),
            "counts": count_verdicts(self.results),
            "launches": _launches(self.results),
            "cases": [result.entry() for result in self.results],
        }

    def write(self, directory: Path) -> Path:
        """Make the session's directory, with its summary file."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "summary.json").write_text(json.dumps(self.document()), encoding="utf-8")
        return directory

    def frame(self) -> pl.DataFrame:
        """The rows as they come back from the results store."""
        with tempfile.TemporaryDirectory() as directory:
            write_session(Path(directory) / f"{SESSION}.parquet", self.rows)
            return read_sessions(Path(directory))


def cases(
    processes: Sequence[int] = (2, 4, 8, 16), environments: Sequence[str] = tuple(LIBRARIES)
) -> list[Case]:
    """Every routine and size on every environment at every number of processes."""
    return [
        Case("local", "cpu", name, "mpicost", routine, peer, "evict", "dissemination", p, p, size)
        for name in environments
        for p in processes
        for routine, sizes in SIZES.items()
        for peer in (range(1, p) if routine == "pingpong" else (0,))
        for size in sizes
    ]


def few_cases() -> list[Case]:
    """Enough cases to see every kind of trouble of ``bad_night``, and few enough to draw often."""
    names = ("bcast", "barrier", "alltoall", "allgather", "scan_sum", "reduce_min", "gather")
    return [case for case in cases((2, 8, 16)) if case.routine in names]


def hostile(night: Night, text: str = HOSTILE) -> Night:
    """The same night, with the same text wherever text comes from outside."""
    document = night.document()
    more = {name: text for name in ("mode", "site", "built_with", "started_utc", "ended_utc")}
    more |= {"notes": [text], "command": ["./plumbline", text]}
    more["machine"] = document["machine"] | {"host": text, "cpu_model": text, "kernel": text}
    names = ("library", "origin", "mpicc", "mpiexec")
    more["environments"] = [e | dict.fromkeys(names, text) for e in document["environments"]]
    names = ("version", "compiler", "flags", "spec")
    more["programs"] = [each | dict.fromkeys(names, text) for each in document["programs"]]
    names = ("start", "outcome", "reason", "directory")
    more["launches"] = [launch | dict.fromkeys(names, text) for launch in document["launches"]]
    more["phases"] = {text: 1.0}
    results = [replace(result, reason=text, rerun=text) for result in night.results]
    return replace(night, results=results, more=more)


def healthy_night(planned: Sequence[Case] | None = None, reference_launches: int = 20, seed: int = 1) -> Night:
    """A night on which every case lies inside its band."""
    random = np.random.default_rng(seed)
    night = Night()
    for case in cases() if planned is None else planned:
        _measure(night, case, random, 1.0, reference_launches)
    return night


def bad_night(planned: Sequence[Case] | None = None) -> Night:
    """A night with planted slowdowns, a launch that hangs, wrong data, and what else there is."""
    measured = _measure_once(tuple(cases() if planned is None else planned))
    return Night(list(measured.results), list(measured.rows))


@cache
def _measure_once(planned: tuple[Case, ...]) -> Night:
    """The same bad night is measured once in a process."""
    random = np.random.default_rng(2)
    night = Night()
    for case in planned:
        trouble = next((action for applies, action in _TROUBLE if applies(case)), None)
        if trouble is None:
            _measure(night, case, random, 1.0, 20)
        else:
            trouble(night, case, random)
    return night


def slow(factor: float) -> Callable[[Night, Case, np.random.Generator], None]:
    """The trouble of being slower than the reference by a factor."""
    return lambda night, case, random: _measure(night, case, random, factor, 20)


def without_value(verdict: Verdict, reason: str) -> Callable[[Night, Case, np.random.Generator], None]:
    """The trouble of yielding nothing."""

    def add(night: Night, case: Case, random: np.random.Generator) -> None:
        night.results.append(CaseResult(case, verdict, reason, rerun=rerun(case)))
        night.rows.append(StoreRow(SESSION, _FRAME["started_utc"], 1, case, verdict, reason))

    return add


def few_launches(night: Night, case: Case, random: np.random.Generator) -> None:
    """The trouble of a reference of a single launch, which does not tell how launches differ."""
    _measure(night, case, random, 1.0, 1)


def rerun(case: Case) -> str:
    """A command as the driver would write it."""
    routine = f"--routines {case.routine} --peers {case.peer}" if case.peer else case.routine
    return (
        f"./plumbline run --environments {case.environment} --routines {routine}"
        f" --processes {case.processes} --bytes {case.bytes}"
    )


def _measure(night: Night, case: Case, random: np.random.Generator, factor: float, launches: int) -> None:
    center = _cost(case) * 1e-6
    trials = _trials(random, center * factor * math.exp(random.normal(0, 0.02)), case)
    summary = summarise_trials(trials)
    reference = Reference(case, center, 0.04, launches)
    reference = replace(reference, headline=reference)
    measured = Measurement(summary.steady, best=summary.minimum, summary=summary, headline=summary.headline)
    result = judge_case(case, measured, reference)
    if factor == 1.0 and result.verdict is Verdict.REGRESSED:
        result = replace(result, verdict=Verdict.CLEARED, reason="did not repeat in 3 launches")
    night.results.append(replace(result, rerun=rerun(case)))
    limits = compute_band(reference)
    night.rows.append(
        StoreRow(
            SESSION,
            _FRAME["started_utc"],
            1,
            case,
            result.verdict,
            result.reason,
            reference=center,
            lower=limits.lower,
            upper=limits.upper,
            value=summary.steady,
            summary=summary,
            t_max=trials,
            t_min=trials * 0.8,
            t_global=trials * 1.05,
            skew=trials * 0.02,
            late=[False] * TRIALS,
            dropped=1,
            mpi_library=LIBRARIES[case.environment],
            suite_version="0.1.0",
            source_hash="0123456789abcdef",
            spec_hash="",
            provenance="{}",
        )
    )


def _cost(case: Case) -> float:
    """Microseconds that a case costs on the made-up machine."""
    p, payload = case.processes, case.bytes / 3000
    steps = p - 1 if case.routine in LINEAR else math.log2(p)
    if case.routine == "pingpong":
        steps = 1 + 0.4 * (case.peer > 7)
    return SPEED[case.environment] * steps * (0.6 + payload * (1 + p / 40))


def _trials(random: np.random.Generator, typical: float, case: Case) -> np.ndarray:
    """Skewed noise, a slow first trial, and now and then spikes or a second mode."""
    times = typical * (0.985 + random.gamma(1.5, 0.01, TRIALS))
    times[0] *= random.uniform(2, 6)
    spikes = random.choice(np.arange(1, TRIALS), random.poisson(2.0), replace=False)
    times[spikes] *= random.uniform(2, 12, spikes.size)
    if case.routine == "allgather" and case.processes == 8:
        times[1::3] *= 1.1
    return times


def _launches(results: Sequence[CaseResult]) -> list[dict[str, Any]]:
    starts = Counter(map(_start, results))
    outcomes = {_start(r): r for r in results if r.verdict in (Verdict.TIMEOUT, Verdict.CRASHED)}
    return [_launch(*start, starts[start], outcomes.get(start)) for start in sorted(starts)]


def _start(result: CaseResult) -> tuple[str, str, str, int, int]:
    """What decides in which start a case is: each benchmark of OSU has one of its own."""
    case = result.case
    start = case.routine if case.program == "osu" else ""
    return case.program, start, case.environment, case.processes, case.per_node


def _launch(
    program: str, start: str, environment: str, p: int, per_node: int, cases: int, bad: CaseResult | None
) -> dict[str, Any]:
    return {
        "program": program,
        "start": start,
        "cases": cases,
        "environment": environment,
        "partition": "local:cpu",
        "processes": p,
        "per_node": per_node,
        "launch": 1,
        "seconds": 3.5 * math.log2(p) + 2,
        "outcome": str(bad.verdict) if bad else "ok",
        "reason": bad.reason if bad else "",
        "directory": f"stage/local/cpu/{environment}/launch_{p}",
    }


def _is(name: str, routine: str, processes: int, least: int = 0) -> Callable[[Case], bool]:
    return lambda c: (c.environment, c.routine, c.processes) == (name, routine, processes) and c.bytes >= least


_TROUBLE: list[tuple[Callable[[Case], bool], Callable[[Night, Case, np.random.Generator], None]]] = [
    (_is("openmpi-5.0.9", "bcast", 16, 10_000), slow(2.3)),
    (_is("mpich-5.0.2", "alltoall", 8, 100_000), slow(1.3)),
    (_is("mpich-5.0.2", "barrier", 4), slow(0.5)),
    (
        lambda c: c.environment == "impi-2021.16.0" and c.processes == 16 and "scan" in c.routine,
        without_value(Verdict.TIMEOUT, "the launch ran into its time limit of 300 s"),
    ),
    (
        _is("impi-2021.16.0", "gather", 16, 100_000),
        without_value(Verdict.INCORRECT, "rank 3 received wrong data in element 17"),
    ),
    (
        lambda c: c.routine == "reduce_min" and c.environment == "openmpi-5.0.9",
        without_value(Verdict.SKIPPED, "no Spack"),
    ),
    (lambda c: c.routine == "allgather" and c.processes == 2, few_launches),
]

_FRAME: dict[str, Any] = {
    "schema": 5,
    "plumbline": "0.1.0",
    "session": SESSION,
    "mode": "nightly",
    "site": "local",
    "started_utc": "2026-11-21T09:00:00Z",
    "ended_utc": "2026-11-21T09:04:41Z",
    "command": ["./plumbline", "nightly"],
    "built_with": "cmake (no Spack)",
    "notes": ["no Spack could be had: CMake built the suite with each MPI's compiler wrapper"],
    "causes": [],
    "phases": {"set-up": 12.1, "build": 3.2, "calibration": 130, "running": 131, "analysis": 1.2},
    "machine": {
        "host": "node17",
        "cpu_model": "AMD EPYC 9354 32-Core Processor",
        "cores": 16,
        "hardware_threads": 32,
        "memory_bytes": 1 << 36,
        "firmware": "1.0",
        "sockets": 2,
        "kernel": "6.1.0-18-amd64",
        "caches": [
            {"level": 1, "type": "Data", "bytes": 32768, "shared_by": 1},
            {"level": 2, "type": "Unified", "bytes": 1048576, "shared_by": 1},
            {"level": 3, "type": "Unified", "bytes": 33554432, "shared_by": 8},
        ],
    },
    "programs": [
        {
            "environment": name,
            "program": "mpicost",
            "version": "0.1.0",
            "compiler": "gcc 12.2.0",
            "flags": "-O2",
            "spec": "",
        }
        for name in LIBRARIES
    ],
    "environments": [
        {
            "name": name,
            "family": name.partition("-")[0],
            "version": name.partition("-")[2],
            "library": library,
            "origin": "wheel",
            "mpicc": f"/opt/{name}/bin/mpicc",
            "mpiexec": f"/opt/{name}/bin/mpiexec",
        }
        for name, library in LIBRARIES.items()
    ],
}
