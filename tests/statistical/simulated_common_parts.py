"""False common causes where a part of what sessions differ by is common to all cases, by simulation.

Usage: ``python -m tests.statistical.simulated_common_parts [CALIBRATIONS]``.

Sessions and launches scatter as in :mod:`tests.statistical.simulated_sessions`; but a share of the variance
between sessions is that of one state of the machine, which slows all cases of a night together. In twelve
nights that were measured the share was 0.18, and 0.16 to 0.58 for the cases of one MPI. What a healthy night
shows is held against what sessions have in common by the package's own function.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from postprocess.judging.common_cause import ALPHA
from postprocess.judging.common_shift import JudgedSlowdown, collect_slowdowns, estimate_shift
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from tests.statistical.simulated_sessions import Machine, build_machine, calibrate
from tests.support.factories.launch import origin_of

TOGETHER = 150  #: cases of a partition
NIGHTS = 50  #: judged by each calibration
SHARES = (0.0, 0.18, 0.58)
SESSIONS = (1, 5)
SHIFTS = (0.0, 0.1, 0.2)


def add_common_part(
    random: np.random.Generator, machine: Machine, logs: np.ndarray, share: float
) -> np.ndarray:
    """Return ln headline by case, session and launch, of which the sessions have a share in common.

    The variance between sessions stays as it was.
    """
    common = machine.between[:, None] * random.normal(size=logs.shape[1])
    own = machine.between[:, None] * random.normal(size=logs.shape[:2])
    return logs + (np.sqrt(share) * common + np.sqrt(1 - share) * own)[:, :, None]


def build_slowdowns(logs: np.ndarray, state: str) -> list[JudgedSlowdown]:
    """Build the judged cases of a night after a calibration of these launches."""
    knowing, _ = calibrate(logs, state)
    chosen = knowing[:TOGETHER]
    values = np.exp(logs.reshape(len(logs), -1))
    headlines = {each.case.key: values[n].tolist() for n, each in enumerate(chosen)}
    known = {each.case: each for each in chosen}
    one = ReferenceSet(Path("e.tsv"), known, origin_of(headlines=headlines))
    results = [
        CaseResult(
            each.case,
            Verdict.PASS,
            value=each.center,
            reference=each.center,
            reference_launches=each.launches,
        )
        for each in chosen
    ]
    found = collect_slowdowns(results, ReferenceCatalog({("s:p", "e"): one}), {})
    return [
        replace(each, log=-float(np.log(known[each.case].center)))  # what a night's value adds to
        for each in found
    ]


def count_causes(
    calibrations: int, share: float, sessions: int, state: str = "warm", slower: float = 0.0
) -> tuple[float, float]:
    """Count the nights whose median case is beyond what sessions have in common: of 1, and a cause of 3%."""
    random = np.random.default_rng(1)
    beyond, causes = [], []
    for _ in range(calibrations):
        machine = build_machine(random, "measured", state)
        quiet = replace(machine, between=0.0 * machine.between)
        logs = quiet.launches(random, sessions, 20 if sessions == 1 else 5)
        told = build_slowdowns(add_common_part(random, machine, logs, share), state)
        nights = add_common_part(random, machine, quiet.launches(random, NIGHTS, 1), share)
        for night in nights[:TOGETHER, :, 0].T + np.log1p(slower):
            tonight = [
                replace(each, log=each.log + float(log))
                for each, log in zip(told, night, strict=True)
            ]
            shift = estimate_shift(tonight)
            beyond.append(shift.p < ALPHA)
            causes.append(shift.is_clear(ALPHA))
    return float(np.mean(beyond)), float(np.mean(causes))


def main(calibrations: int) -> None:
    """Print the table."""
    print(f"nights of 1,000 with a common cause; {calibrations} calibrations, {NIGHTS} nights each")
    print("state, sessions, share: " + ", ".join(f"{by:+.0%}" for by in SHIFTS))
    for state, sessions, share in product(("warm", "evict"), SESSIONS, SHARES):
        found = [count_causes(calibrations, share, sessions, state, by)[1] for by in SHIFTS]
        cells = "".join(f"{1000 * each:9.2f}" for each in found)
        print(f"{state:6}{sessions:3}{share:6.2f}{cells}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
