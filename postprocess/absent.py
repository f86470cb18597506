"""What has references and is not planned any more: a night that lacks it is no whole night."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from postprocess import references
from postprocess.cases import Case
from postprocess.measure import places
from postprocess.plan import PlannedLaunch, planned_cases
from postprocess.reference_book import ReferenceBook
from postprocess.references import Reference
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


def unplanned(
    book: ReferenceBook, planned: Sequence[PlannedLaunch], provisional: Path
) -> list[CaseResult]:
    """Every case with a reviewed reference that a planned environment does not plan, ``incomplete``.

    :param provisional: where references are that nobody has reviewed: of these there may be more.
    """
    there = set(planned_cases(planned))
    return [
        lost(case, reference, shelf.path)
        for shelf in book.shelves.values()
        if provisional not in shelf.path.parents
        for case, reference in sorted(shelf.references.items())
        if case not in there
    ]


def lost(case: Case, reference: Reference, path: Path) -> CaseResult:
    """A case that nobody measures any more."""
    fix = "measure it again, or remove the row if it is given up"
    reason = f"is not measured any more, and has a reference in {path}: {fix}"
    return CaseResult(
        case,
        Verdict.INCOMPLETE,
        reason,
        unit=reference.unit,
        reference=reference.center,
        reference_launches=reference.launches,
        rerun=f"./plumbline run --environment {case.environment} --program {case.program}",
    )


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
