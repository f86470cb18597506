"""Find which launches of a calibration do not count, for which cases, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_high

from postprocess.base.formats import format_whole, plural
from postprocess.base.grouping import group_pairs
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch
from postprocess.model.verdict import Verdict
from postprocess.stats.launches import MOVED, locate_case

NO_VALUE = "they ended well without a value"
UNSEEN = "the value was printed as 0.00, below the printed resolution"
MOVED_AWAY = "their ranks were moved to other cores while it was measured"

Family = tuple[str, str, str]  #: partition, environment and program


def family_of(launch: PlannedLaunch) -> Family:
    """Return the part of the plan that a launch belongs to."""
    return launch.partition, launch.environment, launch.program


@dataclass(frozen=True)
class Loss:
    """Why a launch does not count for a case."""

    kind: str  #: the same for all launches lost in this way
    example: str = ""  #: what happened to this launch, in one line


@dataclass(frozen=True)
class LostLaunch:
    """A launch that does not count for some of its cases."""

    session: str
    name: str  #: name of the launch in its session
    family: Family
    loss: Loss
    cases: frozenset[Case]
    whole: bool  #: whether it counts for no case


def find_loss(finished: FinishedLaunch, case: Case) -> Loss | None:
    """Find why a launch does not count for a case; None if it counts.

    A launch that received wrong data counts for no case, because its MPI does not work.
    """
    outcome = finished.outcome
    if outcome.verdict:
        return Loss(outcome.job_end.value if outcome.job_end else str(outcome.verdict), outcome.reason)
    if finished.wrong:
        return Loss(str(Verdict.INCORRECT), next(iter(finished.wrong.values())))
    measured = finished.measurements.get(case.variable)
    if measured is None:
        return Loss(NO_VALUE)
    if measured.unseen:
        return Loss(UNSEEN)
    return Loss(MOVED_AWAY) if locate_case(measured.core_latency) == MOVED else None


def list_lost(session: str, finished: Iterable[FinishedLaunch]) -> list[LostLaunch]:
    """List the launches of a session that do not count for some of their cases, once per kind of loss."""
    lost_launches = []
    for run in finished:
        lost = {case: loss for case in run.launch.cases if (loss := find_loss(run, case))}
        first: dict[str, Loss] = {}
        for loss in lost.values():
            first.setdefault(loss.kind, loss)
        for kind, loss in first.items():
            cases = frozenset(case for case, case_loss in lost.items() if case_loss.kind == kind)
            whole = len(cases) == len(run.launch.cases)
            lost_launches.append(
                LostLaunch(session, run.launch.name, family_of(run.launch), loss, cases, whole)
            )
    return lost_launches


def describe_losses(lost: Sequence[LostLaunch], finished: Iterable[FinishedLaunch]) -> Iterator[str]:
    """Describe how many launches do not count, one line per part of the plan and kind of loss.

    :param finished: all launches of the calibration, including those that count
    """
    launches: dict[Family, int] = {}
    cases: dict[Family, set[Case]] = {}
    for run in finished:
        if run.launch.cases:
            launches[family_of(run.launch)] = launches.get(family_of(run.launch), 0) + 1
            cases.setdefault(family_of(run.launch), set()).update(run.launch.cases)
    groups = group_pairs(((launch.family, launch.loss.kind), launch) for launch in lost)
    for (family, kind), members in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]))):
        hit = Counter(case for launch in members for case in launch.cases)
        whole = all(launch.whole for launch in members)
        where = "" if whole else f" for {len(hit)} of {plural(len(cases[family]), 'case')}"
        lost_by_case = [len(members)] if whole else sorted(hit.values())
        number, middle = format_whole(lost_by_case[-1]), ""
        if lost_by_case[0] < lost_by_case[-1]:
            number, middle = f"{lost_by_case[0]} to {number}", f" (median {median_high(lost_by_case)})"
        verb = "does" if lost_by_case[-1] == 1 else "do"
        example = next((launch.loss.example for launch in members if launch.loss.example), "")
        first = (
            f" (the first: {example})" if example and len(members) > 1 else f" ({example})" if example else ""
        )
        of = plural(launches[family], "launch", "es")
        yield f"{', '.join(family)}: {number} of {of}{middle} {verb} not count{where}: {kind}{first}"


def restrict_to_counted(
    finished: Mapping[str, Sequence[FinishedLaunch]], lost: Sequence[LostLaunch]
) -> list[FinishedLaunch]:
    """Restrict launches to the cases that they count for. A case that has none keeps all of its own."""
    uncounted: dict[tuple[str, str], set[Case]] = {}
    for launch in lost:
        uncounted.setdefault((launch.session, launch.name), set()).update(launch.cases)
    runs = [
        (uncounted.get((name, run.launch.name), set()), run)
        for name, session_runs in finished.items()
        for run in session_runs
    ]
    counted = {case for left_out, run in runs for case in run.launch.cases if case not in left_out}
    restricted = []
    for left_out, run in runs:
        kept = tuple(case for case in run.launch.cases if case not in left_out or case not in counted)
        restricted.append(replace(run, launch=replace(run.launch, cases=kept)))
    return restricted
