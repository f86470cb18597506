"""Say which launches of a calibration do not count, for which cases, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
    """Return the part of a plan that a launch belongs to."""
    return launch.partition, launch.environment, launch.program


@dataclass(frozen=True)
class Loss:
    """Why a launch does not count for a case."""

    kind: str  #: the same for all launches that are lost in this way
    example: str = ""  #: what became of this one, in one line


@dataclass(frozen=True)
class LostLaunch:
    """A launch that does not count for some of its cases."""

    session: str
    name: str  #: of the launch in its session
    family: Family
    loss: Loss
    cases: frozenset[Case]
    whole: bool  #: whether it counts for no case


def find_loss(finished: FinishedLaunch, case: Case) -> Loss | None:
    """Find why a launch does not count for a case; None if it counts.

    Of a launch that received wrong data no case counts: that MPI does not work.
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
    """List the launches of a session that do not count for some of their cases, once for each way."""
    found = []
    for run in finished:
        lost = {case: loss for case in run.launch.cases if (loss := find_loss(run, case))}
        first: dict[str, Loss] = {}
        for loss in lost.values():
            first.setdefault(loss.kind, loss)
        for kind, loss in first.items():
            cases = frozenset(case for case, each in lost.items() if each.kind == kind)
            whole = len(cases) == len(run.launch.cases)
            found.append(LostLaunch(session, run.launch.name, family_of(run.launch), loss, cases, whole))
    return found


def describe_losses(lost: Sequence[LostLaunch], finished: Iterable[FinishedLaunch]) -> Iterator[str]:
    """Describe in a line for each part of the plan and each kind of loss how many launches do not count.

    :param finished: all launches of the calibration, those that count too
    """
    launches: dict[Family, int] = {}
    cases: dict[Family, set[Case]] = {}
    for run in finished:
        if run.launch.cases:
            launches[family_of(run.launch)] = launches.get(family_of(run.launch), 0) + 1
            cases.setdefault(family_of(run.launch), set()).update(run.launch.cases)
    groups = group_pairs(((each.family, each.loss.kind), each) for each in lost)
    for (family, kind), some in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]))):
        hit = frozenset().union(*(each.cases for each in some))
        whole = all(each.whole for each in some)
        where = "" if whole else f" for {len(hit)} of {plural(len(cases[family]), 'case')}"
        verb = "does" if len(some) == 1 else "do"
        example = next((each.loss.example for each in some if each.loss.example), "")
        first = f" (the first: {example})" if example and len(some) > 1 else f" ({example})" if example else ""
        yield (
            f"{', '.join(family)}: {format_whole(len(some))} of {plural(launches[family], 'launch', 'es')} "
            f"{verb} not count{where}: {kind}{first}"
        )


def restrict_to_counted(
    finished: Mapping[str, Sequence[FinishedLaunch]], lost: Sequence[LostLaunch]
) -> list[FinishedLaunch]:
    """Restrict launches to the cases that they count for; a case that none counts for keeps all of its own."""
    uncounted: dict[tuple[str, str], set[Case]] = {}
    for each in lost:
        uncounted.setdefault((each.session, each.name), set()).update(each.cases)
    runs = [
        (uncounted.get((name, run.launch.name), set()), run) for name, some in finished.items() for run in some
    ]
    counted = {case for left_out, run in runs for case in run.launch.cases if case not in left_out}
    found = []
    for left_out, run in runs:
        kept = tuple(case for case in run.launch.cases if case not in left_out or case not in counted)
        found.append(replace(run, launch=replace(run.launch, cases=kept)))
    return found
