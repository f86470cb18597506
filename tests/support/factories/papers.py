"""A made-up session on simulated machines that stand for the papers', with times from a plain model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from postprocess.base.formats import TextTable
from postprocess.extensions.papers.measurements import PaperMeasurements, arrange_sessions
from postprocess.model.case import Case
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report.document import Document, Lines
from postprocess.report.rendering import drop_empty
from tests.support.factories.report import LINEAR, Night

LADDER = (2, 4, 8, 16, 32, 64, 96, 128)
MACHINES = {  # alpha in seconds, beta in seconds per byte
    "torus": (4e-6, 1 / 350e6),
    "hypercube": (6e-6, 1 / 250e6),
    "myrinet": (15e-6, 1 / 130e6),
    "ethernet": (150e-6, 1 / 11e6),
    "fattree": (1.5e-6, 1 / 12e9),
}
MPIS = {"simgrid-mpich": 1.0, "simgrid-ompi": 1.2}
SIZES = {
    "barrier": (0,),
    "pingpong": (8, 1_000_000),
    "bcast": (8, 10_000, 1_000_000),
    **{name: (8, 10_000) for name in LINEAR},
    "reduce_sum": (8, 1_000_000),
    "scan_sum": (8, 1_000_000),
}

Seconds = Callable[[Case], float | None]


def steps(case: Case) -> float:
    """How many messages one after the other the model of a routine needs."""
    if case.routine == "pingpong":
        return 1.0
    return case.processes - 1 if case.routine in LINEAR else math.log2(case.processes)


def modelled(case: Case) -> float:
    """Seconds of a case by alpha and beta of its machine."""
    alpha, beta = MACHINES[case.partition]
    return MPIS[case.environment] * steps(case) * (alpha + case.bytes * beta)


def cases(
    machines: Sequence[str] = tuple(MACHINES),
    environments: Sequence[str] = tuple(MPIS),
    counts: Sequence[int] = LADDER,
    routines: Sequence[str] = tuple(SIZES),
) -> list[Case]:
    """Every routine and size on every machine and MPI at every count; two partners of ping-pong."""
    return [
        Case("simulated", machine, mpi, "mpicost", routine, peer, "warm", "dissemination", p, 1, size)
        for machine in machines
        for mpi in environments
        for p in counts
        for routine in routines
        for size in SIZES[routine]
        for peer in (sorted({1, p - 1}) if routine == "pingpong" else (0,))
    ]


def session(planned: Sequence[Case], seconds: Seconds = modelled) -> Night:
    """The session of these cases, without trials; a case whose time is None was planned and did not come."""
    night = Night()
    for case in planned:
        time = seconds(case)
        if time is None:
            night.results.append(CaseResult(case, Verdict.INCOMPLETE, "no value"))
            continue
        night.results.append(CaseResult(case, Verdict.PASS, "", time, band=(time, time)))
    return replace(night, more={"site": "simulated", "environments": []})


def without(machine: str, count: int) -> Seconds:
    """The model, but for one machine at one count, where nothing came."""
    return lambda case: None if (case.partition, case.processes) == (machine, count) else modelled(case)


def arrange_results(results: Sequence[CaseResult]) -> PaperMeasurements:
    """The cases of one session, arranged."""
    return arrange_sessions({"": results})


def list_tables(page: Document) -> list[TextTable]:
    """The tables of a page, in their order."""
    return [
        block for part in drop_empty(page.sections) for block in part.blocks if isinstance(block, TextTable)
    ]


def list_sentences(page: Document) -> list[str]:
    """What a page says in lists and paragraphs."""
    blocks = [block for part in page.sections for block in part.blocks if isinstance(block, Lines)]
    return [line for block in blocks for line in block.lines]
