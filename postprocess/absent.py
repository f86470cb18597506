"""Environments that have references and are not there any more: a night that lacks them is no whole night."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from postprocess import references
from postprocess.measure import places
from postprocess.plan import PlannedLaunch
from postprocess.reframe_driver import Selection
from postprocess.verdicts import CaseResult, Verdict

CHOOSING = (
    "programs",
    "routines",
    "sizes",
    "partitions",
    "processes",
    "per_node",
    "peers",
    "cache",
    "sync",
)  #: variables that make a night partial


def is_whole(selection: Selection) -> bool:
    """Whether everything of the site was asked for."""
    return not selection.environments and not any(name in selection.choice for name in CHOOSING)


def absent(roots: Sequence[Path], planned: Sequence[PlannedLaunch]) -> list[CaseResult]:
    """Every case with a reference on a planned partition whose environment is not planned, ``incomplete``.

    :raises postprocess.references.ReferenceError: for a reference file with a fault.
    """
    there = places(planned)
    results: dict[Path, list[CaseResult]] = {}
    for partition in sorted({launch.partition for launch in planned}):
        system, name = partition.split(":")
        files = [path for root in roots for path in sorted((root / system / name).glob("*.tsv"))]
        for environment in sorted({path.stem for path in files}):
            if (partition, environment) not in there:
                path = next(path for path in files if path.stem == environment)
                results[path] = missing(path, system, name, environment)
    return [result for found in results.values() for result in found]


def missing(path: Path, system: str, partition: str, environment: str) -> list[CaseResult]:
    """The cases of one reference file."""
    fix = "bring it back, or remove the file if it is gone for good"
    reason = f"{environment} is not on this machine now, and has references in {path}: {fix}"
    known = references.load(path, system, partition, environment)
    return [
        CaseResult(
            case,
            Verdict.INCOMPLETE,
            reason,
            reference=known[case].center,
            reference_launches=known[case].launches,
            rerun=f"./plumbline run --environment {environment}",
        )
        for case in sorted(known)
    ]
