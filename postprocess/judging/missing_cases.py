"""Find cases with a reference that are not planned any more, though the session asked for them.

What a session would have measured follows from its options: of an environment, a partition or a case that is
gone nothing else is known. What a partial session leaves out by choice is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.model.case import Case, ReferencePlace
from postprocess.model.options import BYTES, CHOOSING, PARTITION, PEERS, PROGRAM, ROUTINE, SelectionOption
from postprocess.model.plan import PlannedLaunch, list_places, list_planned_cases
from postprocess.model.reference import Reference
from postprocess.model.routines.mpicost import OWN_PROGRAMS, is_control, is_on_request
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references import reference_file
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from site_configs.mpi.family import is_of_release
from site_configs.programs.program import PROGRAMS


def is_whole(selection: Selection) -> bool:
    """Return whether everything of the site was asked for."""
    return not selection.environments and not any(option.variable in selection.choice for option in CHOOSING)


@dataclass(frozen=True)
class RequestedCases:
    """What the user of a session asked for."""

    selection: Selection
    families: Sequence[str] | None = None  #: of MPIs on this machine; None for all

    def covers_place(self, place: ReferencePlace) -> bool:
        """Return whether anything at a place would have been measured if it were planned."""
        names = self.selection.environments
        partitions = PARTITION.wanted(self.selection.choice)
        families = self.families or ()
        return (
            (not names or place.environment in names)
            and (not partitions or place.partition in partitions)
            and (not families or any(is_of_release(place.environment, family) for family in families))
        )

    def among(self, known: Mapping[Case, Reference]) -> list[Reference]:
        """Return the references of a place whose cases the session asked for, sorted."""
        sized = {(case.program, case.routine) for case in known if case.bytes}
        return [
            known[case] for case in sorted(known) if self._chooses(case, (case.program, case.routine) in sized)
        ]

    def _chooses(self, case: Case, sized: bool) -> bool:
        """Return whether an option chooses a value, by the rule of the checks.

        :param sized: whether the routine has a payload: the size of one without is not chosen
        """
        choice = self.selection.choice
        asked = [PROGRAMS[name] for name in PROGRAM.wanted(choice)]
        named = ROUTINE.wanted(choice) or any(program.on_request for program in asked)
        if is_on_request(case) and not named:
            return False
        free: tuple[SelectionOption, ...] = () if sized and not is_control(case) else (BYTES,)
        free += (PEERS,) if case.program in OWN_PROGRAMS and not case.peer else ()
        return all(
            option in free or option.value_of(case) in wanted
            for option in CHOOSING
            if (wanted := option.wanted(choice))
        )


def find_unplanned_environments(
    roots: Sequence[Path], planned: Sequence[PlannedLaunch], provisional: Path, asked: RequestedCases
) -> list[CaseResult]:
    """Find every case with a reference of a planned system whose environment is not planned, ``incomplete``.

    Of a partition without any planned launch, provisional (unreviewed) references say nothing.

    :param provisional: where unreviewed references are
    :raises postprocess.references.reference_file.ReferenceFileError: for a reference file with a fault.
    """
    fix = "bring it back, or remove the file if it is gone for good"
    partitions = {launch.partition for launch in planned}
    results = []
    for path in list_unused_files(roots, planned):
        place = ReferencePlace.of_file(path)
        if not asked.covers_place(place):
            continue
        here = f"{place.system}:{place.partition}" in partitions
        what = f"{place.environment} is not on this machine now"
        if not here:
            what = f"of partition {place.partition} nothing is measured now"
        found = asked.among(reference_file.load_references(path, *place))
        if not here and provisional in path.parents:
            found = [reference for reference in found if not reference.few_launches]
        results += [
            build_missing_result(reference, f"{what}, and has references in {path}: {fix}")
            for reference in found
        ]
    return results


def list_unused_files(roots: Sequence[Path], planned: Sequence[PlannedLaunch]) -> Iterator[Path]:
    """List the reference files of planned systems whose environment is not planned, each of its first root."""
    there = list_places(planned)
    for system in sorted({launch.partition.partition(":")[0] for launch in planned}):
        files = [path for root in roots for path in sorted((root / system).glob("*/*.tsv"))]
        first = {ReferencePlace.of_file(path): path for path in reversed(files)}
        for place, path in sorted(first.items()):
            if (f"{system}:{place.partition}", place.environment) not in there:
                yield path


def find_unplanned_cases(
    catalog: ReferenceCatalog, planned: Sequence[PlannedLaunch], provisional: Path, asked: RequestedCases
) -> list[CaseResult]:
    """Find every case with a reference that a planned environment does not plan, ``incomplete``.

    :param provisional: where unreviewed references are: of these
        :func:`is_counted_reference` says which
    """
    there = set(list_planned_cases(planned))
    variants = {case_variant_of(case) for case in there}
    fix = "measure it again, or remove the row if it is given up"
    return [
        build_missing_result(
            reference, f"is not measured any more, and has a reference in {reference_set.path}: {fix}"
        )
        for reference_set in catalog.sets.values()
        for reference in asked.among(reference_set.references)
        if reference.case not in there
        and (
            provisional not in reference_set.path.parents
            or is_counted_reference(reference, reference_set, variants)
        )
    ]


def is_counted_reference(
    reference: Reference, reference_set: ReferenceSet, variants: set[tuple[str, ...]]
) -> bool:
    """Return whether a missing case of an unreviewed reference counts as one.

    It has enough launches, no options set by hand, and a variant that its program is measured in (not that of
    ``calibrate --cache warm`` alone).
    """
    own = case_variant_of(reference.case)
    measured = own in variants or own[:3] not in {variant[:3] for variant in variants}
    return measured and not reference.few_launches and not reference_set.options_of(reference.case)


def case_variant_of(case: Case) -> tuple[str, ...]:
    """Return partition, environment and program of a case, and its cache and synchroniser."""
    return case.partition, case.environment, case.program, case.cache, case.sync


def build_missing_result(reference: Reference, reason: str) -> CaseResult:
    """Build the result of a case that is no longer measured."""
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
