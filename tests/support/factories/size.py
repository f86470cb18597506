"""Made-up nights of the reference benchmarks: many sizes, two units, no trials."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.judging.evaluate import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories import report as samples

SIZES = tuple(2**n for n in range(20))
BANDWIDTHS = ("bw", "bibw", "mbw_mr", "put_bw", "get_bw", "uniband", "biband")
COLLECTIVES = ("bcast", "allreduce_sum", "reduce_sum", "alltoall", "allgather", "gather", "scatter")
ROUTINES = {
    "osu": ("pingpong", "bw", "bibw", "put_bw", "iallreduce_sum", *COLLECTIVES, "barrier"),
    "imb": ("pingpong", "sendrecv", "uniband", "biband", *COLLECTIVES, "barrier"),
}
LAUNCHES = 20


def cases(
    programs: Sequence[str] = tuple(ROUTINES),
    processes: Sequence[int] = (2,),
    environments: Sequence[str] = tuple(samples.LIBRARIES),
    routines: int | None = None,
    sizes: Sequence[int] = SIZES,
) -> list[Case]:
    """Every benchmark at every size; with ``routines``, so many made-up ones of each program instead."""
    return [
        Case("local", "cpu", name, program, routine, 0, "warm", "barrier", p, p, size)
        for name in environments
        for program in programs
        for p in processes
        for routine in _routines(program, routines)
        for size in ((0,) if routine == "barrier" else sizes)
    ]


def unit_of(case: Case) -> str:
    """What a benchmark is judged in."""
    return MEGABYTES if case.routine.startswith(BANDWIDTHS) else SECONDS


def measured(case: Case, slowdown: float = 1.0, launches: int = LAUNCHES) -> CaseResult:
    """A case so many times as slow as its reference, whatever its unit."""
    unit = unit_of(case)
    center = _usual(case)
    value = center * slowdown if unit == SECONDS else center / slowdown
    figures = {"Iterations": 1000.0, "Min": value * 0.9, "Max": value * 1.1}
    measurement = Measurement(value, unit, figures=figures)
    reference = Reference(case, center, 0.04, launches, unit)
    return replace(judge_case(case, measurement, reference), rerun=samples.rerun(case))


def lost(case: Case, verdict: Verdict = Verdict.CRASHED, reason: str = "exit code 139") -> CaseResult:
    """A case that came to nothing."""
    return CaseResult(case, verdict, reason, rerun=samples.rerun(case))


def healthy(planned: Sequence[Case], seed: int = 1) -> samples.Night:
    """A night on which every case lies inside its band."""
    return samples.Night(list(_measure_once(tuple(planned), seed)))


@cache
def _measure_once(planned: tuple[Case, ...], seed: int) -> list[CaseResult]:
    """The same night is measured once in a process."""
    random = np.random.default_rng(seed)
    noise = np.exp(random.normal(0, 0.01, len(planned))).tolist()
    return [measured(case, by) for case, by in zip(planned, noise, strict=True)]


def three_programs(planned: Sequence[Case] | None = None) -> samples.Night:
    """mpicost's bad night, with OSU and IMB beside it: some slow, some fast, one crash, one program skipped."""
    night = samples.bad_night(samples.few_cases())
    more = healthy(cases() if planned is None else planned)
    results = [_troubled(result) for result in more.results]
    return replace(night, results=[*night.results, *results])


def _troubled(result: CaseResult) -> CaseResult:
    case = result.case
    if case.program == "osu" and case.environment == "openmpi-5.0.9":
        return CaseResult(case, Verdict.SKIPPED, "no Spack; ./plumbline doctor says why")
    if case.environment != "mpich-5.0.2":
        return result
    if (case.program, case.routine) == ("imb", "alltoall"):
        return lost(case)
    if case.routine == "bw" and case.bytes >= 65_536:
        return measured(case, 2.0)
    if case.routine == "bibw" and case.bytes == 1024:
        return measured(case, 0.5)
    if (case.program, case.routine, case.bytes) == ("imb", "bcast", 4096):
        return measured(case, 1.5)
    return result


def _routines(program: str, number: int | None) -> Sequence[str]:
    if number is None:
        return ROUTINES[program]
    return [f"{'bw' if n % 4 == 0 else 'routine'}_{n}" for n in range(number)]


def _usual(case: Case) -> float:
    """What a case gives on the made-up machine: latency and bandwidth of a link, by its own speed."""
    own = sum(map(ord, case.routine)) % 7 / 7
    seconds = 1e-6 * samples.SPEED[case.environment] * math.log2(case.processes) * (1 + own + case.bytes / 3000)
    return seconds if unit_of(case) == SECONDS else max(case.bytes, 1) / seconds / 1e6
