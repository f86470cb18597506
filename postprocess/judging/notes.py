"""What a night notes beside its verdicts: waivers, a busy machine, and cases that are planned no more.

Other work makes some trials of everything slow: of the controls, which call no MPI, and of many cases at once.
Then the headlines of this session say nothing of an MPI, and the steady times, which other work hardly moves,
are judged alone.

What a session would have measured follows from its options: of an environment, a partition or a case that is
gone nothing else is known. What a partial session leaves out by choice is not missed.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.formats import compute_slowdown, format_whole, plural
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.interposed import BELOW_RECORD, INTERPOSED, describe_standing
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import BYTES, CHOOSING, PARTITION, PEERS, PROGRAM, ROUTINE, SelectionOption
from postprocess.model.plan import PlannedLaunch, list_places, list_planned_cases
from postprocess.model.reference import Reference
from postprocess.model.routines.mpicost import OWN_PROGRAMS, is_control, is_on_request
from postprocess.model.session import LOCAL, Selection, list_site_words
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.references import reference_file
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from site_configs.mpi.family import is_of_release
from site_configs.programs.program import PROGRAMS


def describe_waivers(finished: Sequence[FinishedLaunch], catalog: ReferenceCatalog) -> list[str]:
    """Describe each difference that the site accepts in a line, with the number of cases and the reason."""
    found: dict[str, set[Case]] = {}
    for line, case in list_waived_differences(finished, catalog):
        found.setdefault(line, set()).add(case)
    return [f"{plural(len(cases), 'case')} compared although {line}" for line, cases in found.items()]


def list_waived_differences(
    finished: Sequence[FinishedLaunch], catalog: ReferenceCatalog
) -> Iterator[tuple[str, Case]]:
    """List the accepted differences, with their reasons, of every measured case that has a reference."""
    for launched in finished:
        for case in launched.launch.cases if launched.run and launched.launch.accepts else ():
            reference_set = catalog.find_set(case) if catalog.reference(case) else None
            accepts = launched.launch.accepts
            for found in reference_set.accepted(launched.conditions, case, accepts) if reference_set else ():
                place = f"{case.partition}, {case.environment}, {case.program}"
                why = f"accepted by the site: {accepts[found.name]}"
                yield f"{found} in its reference ({place}); {why}", case


def describe_interposed_libraries(finished: Iterable[FinishedLaunch]) -> list[str]:
    """Describe what is loaded in front of each MPI in a line, whether or not it is so in the references."""
    return sorted(
        {
            f"{run.launch.partition}, {run.launch.environment}: {describe_standing(loaded)}"
            for run in finished
            if (loaded := run.conditions.circumstances.get(INTERPOSED))
        }
    )


LED_BY = "LD_LIBRARY_PATH"  #: leads an MPI to libraries that are not its own


def describe_shell_effects(
    finished: Iterable[FinishedLaunch], environ: Mapping[str, str], prefixes: Mapping[str, str]
) -> list[str]:
    """Describe in a line each what the user's shell changes in launches that references are made of.

    It may set variables of MPIs, and lead an MPI to libraries below it that are not its own. What options lead
    to is meant, and so may be what a shell leads the MPIs of a site to, which come as modules.

    :param environ: the variables of the shell
    :param prefixes: where the MPIs of this machine are installed, by environment
    """
    settings: dict[str, str] = {}
    libraries: set[str] = set()
    folders = {os.path.realpath(folder) for folder in environ.get(LED_BY, "").split(":") if folder}
    for run in finished:
        settings |= run.launch.by_hand.get("shell", {})
        own = prefixes.get(run.launch.environment)
        for each in run.run.get(BELOW_RECORD, ()):
            path = Path(os.path.realpath(each["path"]))
            if own and str(path.parent) in folders and not path.is_relative_to(os.path.realpath(own)):
                name = f"{each['name']} {each['version']}".rstrip()
                libraries.add(f"{run.launch.environment}: {name} is {each['path']}")
    told = [f"the shell sets {shlex.join(f'{name}={value}' for name, value in sorted(settings.items()))}"]
    lines = told if settings else []
    lines += [f"{line}, to which {LED_BY} of the shell leads" for line in sorted(libraries)]
    fix = "if it is not meant, unset it and run ./plumbline calibrate --afresh"
    return [f"{line}: the new references hold with that only; {fix}" for line in lines]


#: Of the judged cases of one environment and program; of a healthy night it is 0.1%.
FAST_SHARE = 0.2
FAST_CASES = 5  #: at least


def describe_fast_cases(results: Iterable[CaseResult], catalog: ReferenceCatalog, site: str) -> Iterator[str]:
    """Describe, in a line each, the environments and programs of a partition with too many fast cases.

    Simulated time repeats: what is faster there is a change of the programs.
    """
    judged: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in results:
        reference = catalog.reference(result.case, result.core_latency)
        if result.verdict in JUDGED and reference and not reference.exact:
            case = result.case
            judged.setdefault((case.partition, case.environment, case.program), []).append(result)
    for (partition, environment, program), some in sorted(judged.items()):
        fast = sum(result.verdict == Verdict.FAST for result in some)
        if fast < FAST_CASES or fast < FAST_SHARE * len(some):
            continue
        words = ["./plumbline", "calibrate", *list_site_words(site)]
        words += ["--partition", partition] if site != LOCAL else []
        words += ["--environment", environment, "--program", program, "--afresh"]
        counted = plural(len(some), "judged case")
        yield (
            f"{partition}, {environment}, {program}: {format_whole(fast)} of {counted} are fast: the "
            "references were likely measured on a disturbed or slower machine and may hide a slowdown; "
            f"recalibrate: {shlex.join(words)}"
        )


SHARE = 0.1  #: of the cases with a headline; no routine has so many
LEAST_CASES = 5  #: that are slow by their headline, where no control is


@dataclass(frozen=True)
class Disturbance:
    """How many headlines of a session are slow, of how many that were judged."""

    slow: int
    judged: int
    controls: int  #: of the slow ones

    @property
    def busy(self) -> bool:
        """Whether other work disturbs the machine."""
        return self.controls > 0 or self.widespread

    @property
    def widespread(self) -> bool:
        """Return whether so many cases are disturbed that the others may be slower too, inside their limits."""
        return self.slow >= max(LEAST_CASES, SHARE * self.judged)


def assess_disturbance(results: Sequence[CaseResult]) -> Disturbance:
    """Assess how many headlines of a session are slow."""
    judged = [result for result in results if result.headline and result.headline_limit]
    slow = [result for result in judged if result.slow_headline]
    own = [result for result in slow if not result.too_slow]
    return Disturbance(len(own), len(judged), sum(is_control(result.case) for result in own))


def excuse_headlines(results: Sequence[CaseResult]) -> tuple[list[CaseResult], str]:
    """Judge by steady times alone where other work disturbs the machine; return that as a note, or nothing."""
    found = assess_disturbance(results)
    excused = [result for result in results if result.by_headline]
    if not found.busy or not excused:
        return list(results), ""
    note = (
        f"other work disturbs the machine: some trials are slow in {found.slow} of "
        f"{plural(found.judged, 'case')}, "
        f"{found.controls} of them without MPI; the fast trials are judged, the mean of all is not"
    )
    return [judge_by_value(result) if result.by_headline else result for result in results], note


def excuse_means(results: Sequence[CaseResult], beside_others: bool) -> tuple[list[CaseResult], str]:
    """Call no mean slow that other work on the machine may have slowed; return that as a note, or nothing.

    A program that prints means alone has no fast trials that tell the two apart.

    :param beside_others: whether other processes used the machine while it ran, as far as that is known
    """
    found = [result for result in results if _is_slow_mean(result)]
    if not found or not (beside_others or assess_disturbance(results).busy):
        return list(results), ""
    programs = ", ".join(sorted({result.case.program for result in found}))
    note = (
        f"other work disturbs the machine: {plural(len(found), 'mean')} of {programs} beyond their limits say "
        "nothing of the MPI; measure on the idle machine"
    )
    excused = [_leave_open(result) if _is_slow_mean(result) else result for result in results]
    return excused, note


def _is_slow_mean(result: CaseResult) -> bool:
    """Return whether a case is slow by a mean without trials. Simulated time has no spread."""
    means = result.summary is None and result.headline is None and result.spread is not None
    return means and result.verdict == Verdict.REGRESSED


def _leave_open(result: CaseResult) -> CaseResult:
    reason = "other work disturbs the machine, and a mean does not show whether that or the MPI is slow"
    return replace(result, verdict=Verdict.PROVISIONAL, reason=reason, provisional=True)


OF_OTHERS = (
    2.0  #: times as slow as its reference: what processes that share caches and memory may do to all trials
)


def doubt_beside_others(results: Sequence[CaseResult], share: float) -> tuple[list[CaseResult], str]:
    """Call nothing slower that other processes may have slowed; return that as a note, or nothing.

    They slow all trials of large messages where they use the same memory. The cases are suspect, and the next
    night decides. What is twice as slow is called all the same.

    :param share: of the machine that others used meanwhile, from 0 to 1, too much to measure beside
    """
    doubted = [
        replace(result, verdict=Verdict.SUSPECT) if _may_be_of_others(result) else result for result in results
    ]
    number = sum(after is not before for after, before in zip(doubted, results, strict=True))
    note = (
        f"other processes used {share:.0%} of the machine: {plural(number, 'slower case')} of less than "
        f"{OF_OTHERS:g} times the reference may be their doing; measure on the idle machine"
    )
    return doubted, note if number else ""


def _may_be_of_others(result: CaseResult) -> bool:
    """Return whether a case was called slower by less than other processes can do. Simulated time has none."""
    if result.verdict != Verdict.REGRESSED or result.spread is None:
        return False
    value, reference = result.value, result.reference
    if result.by_headline:
        value, reference = result.headline, result.headline_reference
    return not (value and reference) or compute_slowdown(value, reference, result.unit) < OF_OTHERS


def judge_by_value(result: CaseResult) -> CaseResult:
    """Return the verdict of a case by its value, which lies inside its band or below it."""
    verdict = Verdict.PROVISIONAL if result.provisional else Verdict.PASS
    verdict = Verdict.FAST if result.beyond else verdict
    reason = "some of its trials are slow, as other work on the machine makes them"
    return replace(result, verdict=verdict, reason=reason, by_headline=False)


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
