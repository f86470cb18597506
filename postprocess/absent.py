"""What has references and is not planned any more: a night that lacks it is no whole night."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from postprocess import references
from postprocess.case_places import ReferencePlace
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
    fix = "bring it back, or remove the file if it is gone for good"
    results = []
    for path in unused_files(roots, planned):
        reason = f"{path.stem} is not on this machine now, and has references in {path}: {fix}"
        known = references.load(path, *ReferencePlace.of_file(path))
        results += [lost(reference, reason) for _, reference in sorted(known.items())]
    return results


def unused_files(roots: Sequence[Path], planned: Sequence[PlannedLaunch]) -> Iterator[Path]:
    """The reference files of planned partitions whose environment is not planned, each of its first root."""
    there = places(planned)
    for partition in sorted({launch.partition for launch in planned}):
        folder = Path(*partition.split(":"))
        files = [path for root in roots for path in sorted((root / folder).glob("*.tsv"))]
        first = {path.stem: path for path in reversed(files)}
        for environment, path in sorted(first.items()):
            if (partition, environment) not in there:
                yield path


def unplanned(
    book: ReferenceBook, planned: Sequence[PlannedLaunch], provisional: Path
) -> list[CaseResult]:
    """Every case with a reviewed reference that a planned environment does not plan, ``incomplete``.

    :param provisional: where references are that nobody has reviewed: of these there may be more.
    """
    fix = "measure it again, or remove the row if it is given up"
    there = set(planned_cases(planned))
    return [
        lost(reference, f"is not measured any more, and has a reference in {shelf.path}: {fix}")
        for shelf in book.shelves.values()
        if provisional not in shelf.path.parents
        for case, reference in sorted(shelf.references.items())
        if case not in there
    ]


def lost(reference: Reference, reason: str) -> CaseResult:
    """A case that nobody measures any more."""
    case = reference.case
    return CaseResult(
        case,
        Verdict.INCOMPLETE,
        reason,
        unit=reference.unit,
        reference=reference.center,
        reference_launches=reference.launches,
        rerun=f"./plumbline run --environment {case.environment} --program {case.program}",
    )
