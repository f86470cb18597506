"""The self-test of ``compare``: each MPI is held against itself, one side delayed, and what comes is scored."""

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.extensions.selftest.command import preview_smallest_layout, publish_page
from postprocess.features.compare import data, page
from postprocess.features.compare.data import ComparedSide, StoredComparison
from postprocess.features.compare.judge import Decision, JudgedComparison, judge_comparison
from postprocess.features.compare.measure.bench import TooFewSecondsError
from postprocess.features.compare.measure.passes import find_own_case
from postprocess.features.compare.measure.run import ComparisonDemand, describe_comparison, measure_comparison
from postprocess.features.compare.pairs import collect_pairs
from postprocess.model.plan import list_planned_cases
from postprocess.model.session import Request
from postprocess.session.lifecycle.context import SessionContext, open_session_context
from postprocess.session.lifecycle.injections import IDLE
from tests.statistical.dossiers.page import build_dossier_page
from tests.statistical.dossiers.schedule import (
    DossierCase,
    DossiersHeader,
    FinishedDossier,
    PlannedDossier,
    list_dossiers,
    locate_dossier,
    read_dossiers_header,
    resume_or_begin_dossiers,
)
from tests.statistical.dossiers.score import score_dossiers

MARGINS = (0.05, 0.05, 0.05)  #: of every dossier, by class of sizes


@dataclass(frozen=True)
class DossierDemand:
    """What the user asked for beyond a session's request."""

    directory: Path
    plants: Sequence[str]
    times: int  #: dossiers with each plant
    unchanged: int  #: dossiers with nothing planted
    seconds: int | None  #: for each dossier
    seed: int | None = None


def measure_dossiers(work: WorkDirectory, request: Request, demand: DossierDemand, progress: Progress) -> int:
    """Plant delays into comparisons, and score what is called. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend.
    """
    with work.held():
        context = open_session_context(work, request, progress)
        selection, planned = preview_smallest_layout(context)
        if any(launch.exact for launch in planned):
            raise UsageError("simulated time repeats, and a real delay does not show in it: choose a real site")
        asked = DossiersHeader(
            site=request.site,
            seed=random.SystemRandom().randrange(2**32) if demand.seed is None else demand.seed,
            times=demand.times,
            unchanged=demand.unchanged,
            plants=tuple(demand.plants),
            seconds=demand.seconds,
            keys=tuple(case.key for case in list_planned_cases(planned)),
        )
        begun = resume_or_begin_dossiers(demand.directory, asked)
        chosen = replace(context, request=replace(context.request, selection=selection))
        run_dossiers(chosen, begun, demand.directory)
    return conclude_dossiers(demand.directory, progress, request.json_file)


def run_dossiers(context: SessionContext, begun: DossiersHeader, directory: Path) -> None:
    """Measure the dossiers that are not done, and say how long the rest will take.

    One whose trial run takes too long for the time, as in a busy moment, is left for the next call.

    :raises TooFewSecondsError: if the first one does already
    """
    progress = context.progress
    every = list_dossiers(begun)
    left = [dossier for dossier in every if not is_done(directory, dossier)]
    if len(left) < len(every):
        progress.say(f"going on: {len(every) - len(left)} of {plural(len(every), 'dossier')} are done")
    begin = time.monotonic()
    with progress.phase("dossiers"):
        for number, each in enumerate(left, start=1):
            progress.now(f"dossier {each.number}: {each.words}")
            try:
                measure_dossier(context.quiet, begun, directory, each)
            except TooFewSecondsError as error:
                if number == 1:
                    raise
                progress.note(f"dossier {each.number} is left for the next call: {error}")
                continue
            spent = time.monotonic() - begin
            told = describe_dossier(read_dossier(directory, each))
            progress.say(
                f"dossier {each.number} of {len(every)}: {each.words}: {told} "
                f"({duration(spent / number * (len(left) - number))} left)"
            )


def is_done(directory: Path, planned: PlannedDossier) -> bool:
    """Return whether a dossier is whole: its JSON is written last."""
    return (locate_dossier(directory, planned) / page.JSON).exists()


def measure_dossier(
    context: SessionContext, begun: DossiersHeader, directory: Path, planned: PlannedDossier
) -> None:
    """Measure a dossier, or go on with it, and write its pages."""
    folder, name = locate_dossier(directory, planned), planned.environment
    demand = ComparisonDemand(
        old=ComparedSide(name, "", plant=IDLE.name),
        new=ComparedSide(name, "", plant=planned.order),
        margins=MARGINS,
        directory=folder,
        seconds=begun.seconds,
        control=True,
        seed=begun.seed + planned.number,
    )
    measure_comparison(context, demand, describe_comparison(context, demand), with_facts=False)
    page.write_comparison_page(folder, judge_comparison(data.read_comparison(folder / data.FILE)))


def read_dossier(directory: Path, planned: PlannedDossier) -> FinishedDossier:
    """Read a dossier, and judge its passes again."""
    stored = data.read_comparison(locate_dossier(directory, planned) / data.FILE)
    judged = judge_comparison(stored)
    return FinishedDossier(
        planned,
        judged.seconds,
        judged.looks,
        judged.decision == Decision.VOID,
        tuple(describe_cases(stored, judged, planned)),
        judged.unchanged.verdicts,
    )


def describe_cases(
    stored: StoredComparison, judged: JudgedComparison, planned: PlannedDossier
) -> list[DossierCase]:
    pairs = collect_pairs(stored.passes, stored.header.seed)
    return [
        DossierCase(
            key=case.case.key,
            routine=case.case.routine,
            target=planned.slows(find_own_case(case.case, planned.environment)),
            verdict=str(case.verdict),
            ratio=case.ratio,
            scatter=compute_scatter(pairs[case.case.key].differences),
            margin=case.margin,
        )
        for case in judged.cases
    ]


def compute_scatter(differences: Sequence[float]) -> float | None:
    """Compute the standard deviation of the differences of pairs; None of fewer than two."""
    return statistics.stdev(differences) if len(differences) > 1 else None


def describe_dossier(dossier: FinishedDossier) -> str:
    """Describe the result of a dossier, in few words."""
    targets = [case for case in dossier.cases if case.target]
    others = [case for case in dossier.cases if not case.target]
    words = ["void: a control without MPI moved"] if dossier.void else []
    if targets:
        caught = sum(target.verdict == "slower" for target in targets)
        words.append(f"{caught} of {len(targets)} caught")
    falsely = sum(case.verdict == "slower" for case in others)
    words.append(f"{falsely or 'none'} of {len(others)} falsely called")
    return ", ".join(words)


def conclude_dossiers(directory: Path, progress: Progress, json_file: Path | None = None) -> int:
    """Score the dossiers of a folder, show and write the result. Returns the exit status.

    :raises UsageError: if the folder has none
    """
    begun = read_dossiers_header(directory)
    every = list_dossiers(begun)
    done = [read_dossier(directory, dossier) for dossier in every if is_done(directory, dossier)]
    scores = score_dossiers(done, len(every))
    values = f"the {data.FILE} of each dossier beside it"
    return publish_page(directory, build_dossier_page(begun, done, scores), values, progress, json_file)
