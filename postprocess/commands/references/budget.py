"""The command ``references budget``: the best number of trials per launch for so many seconds."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import align_rows, format_percent, plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger
from postprocess.calibration.budget_text import (
    HEAD,
    BudgetAdvice,
    BudgetRow,
    build_budget_rows,
    format_budget,
    format_commands,
    is_better_spending,
)
from postprocess.calibration.noise_sources import LEAST_LAUNCHES, collect_known_noise
from postprocess.calibration.recovery import recover_interrupted
from postprocess.calibration.rounds import LAUNCHES
from postprocess.calibration.samples import CaseSample, collect_samples
from postprocess.cli.option_types import parse_count
from postprocess.cli.options import add_json, add_system
from postprocess.cli.parser import HOW, Parser
from postprocess.model.case import Case, LaunchPlace, format_case_names
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.model.routines.mpicost import PAPERS, TRIALS, program_sort_key
from postprocess.results.launch_costs import measure_costs
from postprocess.results.summary_file import load_summary
from postprocess.stats.planning.trial_allocation import (
    CalibrationSpending,
    KnownCase,
    LaunchCost,
    allocate_seconds,
    choose_median_trials,
    compute_pass_seconds,
    evaluate_spending,
    find_least_launches,
)

DAYS = 5  #: on which launches may be taken instead of one
SESSIONS = (1, DAYS, 20)  #: of a calibration, tried until one shows what is wanted
WORTH = 0.01  #: of slowdown, which other days must show more than more launches
SUMMARY = 1  #: version of the budget for programs

HELP = "Plan a calibration: trials per launch and number of launches for a given time."
EXAMPLE = "./plumbline references budget --seconds 3600"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the time, or the slowdown that shall be seen."""
    add_system(parser)
    wanted = parser.group(HOW).add_mutually_exclusive_group()
    wanted.add_argument(
        "--seconds",
        type=parse_count,
        metavar="SECONDS",
        help=f"time for the calibration of a program (default: that of {LAUNCHES} launches of {TRIALS} trials)",
    )
    wanted.add_argument(
        "--see",
        type=parse_count,
        metavar="PERCENT",
        help="find the time after which half of the cases detect a slowdown of PERCENT",
    )
    add_json(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Plan how to spend some seconds on a calibration. Returns 0."""
    see = arguments.see / 100 if arguments.see else None
    return report_budget(work, arguments.site, arguments.seconds, see, arguments.json, Progress())


def report_budget(
    work: WorkDirectory,
    system: str | None,
    seconds: float | None,
    see: float | None,
    report: Path | None,
    progress: Progress,
) -> int:
    """Say how to spend so many seconds on a calibration, or how many it takes to see a slowdown; always 0.

    :param seconds: for one program; None for what :data:`LAUNCHES` launches of ``PAPERS`` trials take
    :param see: a slowdown, as a fraction, that half of the cases shall see; None for what the seconds bring
    :raises UsageError: if the calibrations do not tell enough, or a file is damaged
    """
    chosen = select_samples(work, system, progress)
    sessions = sorted({launch.session for each in chosen.values() for launch in each.launches})
    known, without = collect_known_noise(chosen, work.store, progress)
    costs = measure_costs(work.sessions / session for session in sessions)
    usable = [each for each in known if each.place in costs]
    report_left_out(
        chosen, without, [each.case for each in known if each.place not in costs], progress
    )
    if not usable:
        raise UsageError(
            f"{ledger.locate_ledger(work.root)}: no case has {LEAST_LAUNCHES} launches whose trials and"
            f" times are still in {work.root}; ./plumbline calibrate"
        )
    told = build_budget_rows(usable, costs)
    for line in align_rows([HEAD, *(each.cells for each in told)], texts=len(HEAD)):
        progress.say(line)
    site, advices = find_site_name(work, sessions), []
    for program in sorted({each.case.program for each in usable}, key=program_sort_key):
        own = [each for each in usable if each.case.program == program]
        advice = advise_budget(own, costs, seconds, see)
        if advice is None:
            progress.say(
                f"{program}: no number of launches shows {format_percent(see)} in half of the cases"
            )
            continue
        advices.append(advice)
        for line in format_budget(advice, site):
            progress.say(line)
    if report:
        write_summary(report, budget_as_data(told, advices, site))
    return 0


def select_samples(
    work: WorkDirectory, system: str | None, progress: Progress
) -> dict[Case, CaseSample]:
    """Select the launches of each case of one system; simulated time has no noise.

    :raises UsageError: if there is no launch, or of several systems
    """
    with work.held():
        for line in recover_interrupted(work.root):
            progress.say(line)
    known = [
        each
        for each in ledger.read_ledger(work.root)
        if system in (None, each.place[0]) and not each.exact
    ]
    systems = sorted({each.place[0] for each in known})
    if not known:
        where = f" of site {system}" if system else ""
        raise UsageError(
            f"{ledger.locate_ledger(work.root)}: no launch{where}; ./plumbline calibrate"
        )
    if len(systems) > 1:
        raise UsageError(
            f"{ledger.locate_ledger(work.root)}: has {', '.join(systems)}; choose by --site"
        )
    return collect_samples(known)


def report_left_out(
    chosen: Mapping[Case, CaseSample],
    without_trials: Collection[Case],
    without_cost: Collection[Case],
    progress: Progress,
) -> None:
    """Report the cases that do not enter the advice, with the reason."""
    few = [case for case, each in chosen.items() if len(each.values) < LEAST_LAUNCHES]
    for cases, why in (
        (few, f"fewer than {LEAST_LAUNCHES} launches"),
        (without_trials, "the store has none of their trials"),
        (without_cost, "no session tells what their launches took"),
    ):
        if cases:
            text = f"{plural(len(cases), 'case')} left out: {why}: {format_case_names(list(cases))}"
            progress.say(text)


def find_site_name(work: WorkDirectory, sessions: Sequence[str]) -> str:
    """Find the site's name in the last of these sessions."""
    for session in reversed(sessions):
        try:
            return load_summary(work.sessions / session / "summary.json").site
        except UsageError:
            continue
    return "local"


def advise_budget(
    own: Sequence[KnownCase],
    costs: Mapping[LaunchPlace, LaunchCost],
    seconds: float | None,
    see: float | None,
) -> BudgetAdvice | None:
    """Advise how to spend the seconds for one program; None if no number of launches detects what is wanted."""
    has_trials = own[0].case.program == "mpicost"
    counts = [PAPERS, choose_median_trials(own, costs)] if has_trials else [PAPERS]
    if see is not None:
        tried = SESSIONS if any(each.session for each in own) else SESSIONS[:1]
        ways = (list_least(own, costs, counts, see, sessions) for sessions in tried)
        found = next(filter(None, ways), [])
        if not found:
            return None
        # what sees as much for fewer seconds is better
        found.sort(key=lambda each: (each.seconds, each.night_seconds))
    else:
        once = compute_pass_seconds({each.place for each in own}, costs, PAPERS)
        available = seconds if seconds is not None else LAUNCHES * once
        found = [allocate_seconds(own, costs, count, available) for count in counts]
        if has_trials and is_better_spending(found[1], found[0]):
            found.reverse()
    other = found[-1] if has_trials else None
    days = look_at_other_days(own, costs, found[0])
    return BudgetAdvice(own[0].case.program, found[0], other, days)


def list_least(
    own: Sequence[KnownCase],
    costs: Mapping[LaunchPlace, LaunchCost],
    counts: Sequence[int],
    see: float,
    sessions: int,
) -> list[CalibrationSpending]:
    """List the fewest launches in so many sessions that detect what is wanted, for each number of trials."""
    found = (find_least_launches(own, costs, count, see, sessions) for count in counts)
    return [each for each in found if each]


def look_at_other_days(
    own: Sequence[KnownCase], costs: Mapping[LaunchPlace, LaunchCost], chosen: CalibrationSpending
) -> CalibrationSpending | None:
    """Look what as many launches on other days show; None where twice as many of one session show as much."""
    if chosen.sessions > 1 or chosen.sees is None or not any(each.session for each in own):
        return None
    trials, launches = chosen.trials, chosen.launches
    days = evaluate_spending(own, costs, trials, launches, DAYS)
    twice = evaluate_spending(own, costs, trials, 2 * launches)
    least = min(filter(None, (chosen.sees, twice.sees)))
    return days if days.sees is not None and days.sees < least - WORTH else None


def budget_as_data(
    told: Sequence[BudgetRow], advices: Sequence[BudgetAdvice], site: str
) -> dict[str, Any]:
    """Return the advice as plain data."""
    return {
        "schema": SUMMARY,
        "site": site,
        "rows": [asdict(each) for each in told],
        "advice": [
            asdict(each)
            | {
                "commands": format_commands(each, site)
                if each.chosen.launches >= ENOUGH_LAUNCHES
                else []
            }
            for each in advices
        ],
    }
