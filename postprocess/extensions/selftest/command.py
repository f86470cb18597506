"""The command ``selftest``: inject slowdowns into nights, and report which of them a night catches."""

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import duration, plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import locate_ledger
from postprocess.calibration.schedule import LAUNCHES
from postprocess.cli.option_types import (
    parse_comma_list,
    parse_count,
    parse_launches,
    parse_minutes,
    parse_routines,
)
from postprocess.cli.options import SITE, TRIAL_COUNTS, add_json, add_options
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import HOW, WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.selftest import data
from postprocess.extensions.selftest.data import FinishedNight, InjectionNight, SelftestHeader, schedule_nights
from postprocess.extensions.selftest.night import SelftestBench, SelftestDemand, pause, take_references
from postprocess.extensions.selftest.page import PAGE, SelftestPage, build_selftest_page
from postprocess.extensions.selftest.score import score_nights
from postprocess.model.case import Case
from postprocess.model.interposed import LIBRARY
from postprocess.model.launch import select_launch_counts
from postprocess.model.options import PER_NODE, PROCESSES
from postprocess.model.plan import PlannedLaunch, list_planned_cases
from postprocess.model.routines.mpicost import CACHE, CACHES, ROUTINES
from postprocess.model.session import Request, Selection
from postprocess.report.rendering import write_document
from postprocess.session.lifecycle.context import SessionContext, open_session_context
from postprocess.session.lifecycle.injections import INJECTION_KINDS, list_unknown_injections
from postprocess.session.nightly.estimate import choose_launch_counts, describe_launch_counts
from spack_envs.installation import find_mpicost_prefix

#: Routines that are measured unless others are asked for.
QUICK = tuple(routine.name for routine in ROUTINES if routine.quick)
FEWEST_PROCESSES = 2
#: What must be asked for again to continue a self-test.
SAME_AGAIN = ("site", "times", "unchanged", "plants", "keys", "references")


def run_selftest(work: WorkDirectory, request: Request, demand: SelftestDemand, progress: Progress) -> int:
    """Plant slowdowns into nights, and score what is caught. Returns the exit status."""
    path = demand.directory / data.FILE
    with work.held():
        bench, planned = prepare_bench(open_session_context(work, request, progress))
        told = take_references(bench, planned, demand)
        counts = choose_launch_counts(work, planned)
        bench.selection = select_launch_counts(bench.selection, counts)
        for line in describe_launch_counts(counts):
            progress.say(line)
        begun, done = resume_or_begin(path, describe_selftest(bench, planned, demand, told))
        if done:
            progress.say(f"going on with {path}: {plural(len(done), 'night')} are done")
        run_nights(bench, list_nights(begun), done, path, 60 * demand.spread)
    return conclude_selftest(demand.directory, progress, request.json_file)


def prepare_bench(context: SessionContext) -> tuple[SelftestBench, list[PlannedLaunch]]:
    """Choose the smallest layout, and build what is measured and what plants the delays.

    :raises UsageError: if something cannot be built or launched.
    """
    progress = context.progress
    with progress.phase("set-up"):
        selection, _ = preview_smallest_layout(context)
        bench = SelftestBench(context, selection)
        progress.say("building, and launching each MPI once")
        _, planned, finished = bench.measure(context.quiet, bench.selection)
    prefixes = {}
    for run in finished:
        outcome = next(filter(None, map(run.failure, run.launch.cases)), run.outcome)
        if outcome.verdict:
            what = f"{run.launch.environment}: {outcome.verdict}: {outcome.reason}"
            raise UsageError(f"{what}; ./plumbline nightly --program mpicost must work first")
        prefix = find_mpicost_prefix(context.work.root, run.launch.environment)
        if not (prefix / LIBRARY).exists():
            raise UsageError(f"{prefix / LIBRARY}: is not there; the self-test plants its delays with it")
        prefixes[run.launch.environment] = prefix
    if any(launch.exact for launch in planned):
        raise UsageError("simulated time repeats, and a real delay does not show in it: choose a real site")
    bench.prefixes = prefixes
    settings = {name: bench.settings(bench.selection, name) for name in prefixes}
    return bench, [replace(launch, by_hand=settings[launch.environment]) for launch in planned]


def preview_smallest_layout(context: SessionContext) -> tuple[Selection, list[PlannedLaunch]]:
    """Preview what is measured at the smallest layout of two processes or more: selection and plan.

    :raises UsageError: if nothing is measured there
    """
    selection = context.request.selection
    everything = context.preview(selection)
    layouts = {(launch.processes, -launch.per_node) for launch in everything}
    processes, densest = min((layout for layout in layouts if layout[0] >= FEWEST_PROCESSES), default=(0, 0))
    if not processes:
        raise UsageError("nothing is measured at two processes or more: ./plumbline list")
    choice = selection.choice | {PROCESSES.variable: [processes], PER_NODE.variable: [-densest]}
    smallest = [launch for launch in everything if (launch.processes, -launch.per_node) == (processes, densest)]
    return replace(selection, choice=choice, launches=1), smallest


def describe_selftest(
    bench: SelftestBench, planned: Sequence[PlannedLaunch], demand: SelftestDemand, references: str
) -> SelftestHeader:
    return SelftestHeader(
        site=bench.context.request.site,
        seed=random.SystemRandom().randrange(2**32) if demand.seed is None else demand.seed,
        times=demand.times,
        unchanged=demand.unchanged,
        plants=tuple(demand.plants),
        keys=tuple(case.key for case in list_planned_cases(planned)),
        references=references,
        spread=demand.spread,
    )


def resume_or_begin(path: Path, asked: SelftestHeader) -> tuple[SelftestHeader, list[FinishedNight]]:
    """Read the header and the finished nights of a self-test; begin it if it was not begun.

    :raises UsageError: if it was begun otherwise.
    """
    if not path.exists():
        data.write_selftest_header(path, asked)
        return asked, []
    journal = data.open_journal(path)
    journal.truncate_unfinished(b'"record": "night"')  # also cases of a night without its end
    begun, done = data.read_selftest(path)
    journal.require_same(begun, asked, SAME_AGAIN)
    return begun, done


def list_nights(begun: SelftestHeader) -> list[InjectionNight]:
    """List all nights of a self-test, done or not.

    :raises UsageError: for an unknown plant, and one that slows none of its cases.
    """
    if strange := list_unknown_injections(begun.plants):
        raise UsageError(f"{strange[0]}: is not a plant; choose from {', '.join(INJECTION_KINDS)}")
    cases = [Case.from_key(key) for key in begun.keys]
    plants = [INJECTION_KINDS[name] for name in begun.plants]
    return schedule_nights(cases, plants, begun.times, begun.unchanged, begun.seed)


def run_nights(
    bench: SelftestBench,
    nights: Sequence[InjectionNight],
    done: Sequence[FinishedNight],
    path: Path,
    spread: float = 0.0,
) -> None:
    """Run the nights that are not done, keep each, and say how long the rest will take.

    :param spread: seconds over which all nights are spread; one that takes longer delays the rest
    """
    progress = bench.context.progress
    finished = {each.number for each in done}
    left = [night for night in nights if night.number not in finished]
    spent, begin = 0.0, time.monotonic()
    part = spread / len(nights) if nights else 0.0
    with progress.phase("nights"):
        for number, night in enumerate(left, start=1):
            due = begin + part * (number - 1)
            pause(due - time.monotonic(), f"night {night.number}", progress)
            result = bench.night(night)
            data.append_selftest_night(path, result)
            spent += result.seconds
            rest = duration(max(spent / number, part) * (len(left) - number))
            progress.say(
                f"night {night.number} of {len(nights)}: {night.words}: {describe_night(result)} "
                f"({duration(result.seconds)}, {rest} left)"
            )


def describe_night(night: FinishedNight) -> str:
    targets = [row for row in night.rows if row.target]
    others = sum(row.regressed for row in night.rows if not row.target)
    cleared = sum(row.verdict == "cleared" for row in night.rows)
    suspect = sum(row.suspect for row in night.rows)
    words = [f"{sum(row.regressed for row in targets)} of {len(targets)} caught"] if targets else []
    words += [f"{suspect} suspect"] if suspect else []
    words += [f"{cleared} cleared"] if cleared else []
    words += [plural(others, "false alarm")] if others else []
    return ", ".join(words) or "all well"


def conclude_selftest(directory: Path, progress: Progress, json_file: Path | None = None) -> int:
    """Score the nights of a folder, show and write the result. Returns the exit status.

    :raises UsageError: if the folder has none.
    """
    begun, nights = data.read_selftest(directory / data.FILE)
    result = score_nights(nights, begun.plants, len(list_nights(begun)))
    page = build_selftest_page(begun, nights, result)
    return publish_page(directory, page, str(directory / data.FILE), progress, json_file)


def publish_page(
    directory: Path, page: SelftestPage, values: str, progress: Progress, json_file: Path | None
) -> int:
    """Show a result, and write its pages and ``selftest.json`` beside its values; the exit status.

    :raises UsageError: if they cannot be written.
    """
    print(page.text, end="", flush=True)
    path = write_document(page.document, directory / PAGE)
    if json_file:
        write_summary(json_file, page.data)
    progress.say(f"{path}; every value: {values}")
    return 0 if page.scores.passed else 1


EXAMPLE = "./plumbline selftest --nights 10 --unchanged 40"
FAILS = "a plant was missed too often, or there were too many false alarms"


def add_arguments(parser: Parser) -> None:
    """Add the options that say what is planted, how often, and what is measured."""
    what = parser.group(WHAT)
    what.add_argument(
        "--plants",
        type=plants,
        metavar="NAME,...",
        help=f"only these plants (default: all {len(INJECTION_KINDS)}: {', '.join(INJECTION_KINDS)})",
    )
    what.add_argument(
        "--nights",
        type=parse_count,
        default=10,
        metavar="N",
        help="nights with each plant (default: %(default)s)",
    )
    what.add_argument(
        "--unchanged",
        type=parse_non_negative,
        default=10,
        metavar="N",
        help="nights with nothing planted (default: %(default)s)",
    )
    what.add_argument(
        "--routine",
        type=parse_routines,
        default=list(QUICK),
        metavar="NAME,...",
        help=f"only these routines (default: {','.join(QUICK)})",
    )
    what.add_argument("--again", type=Path, metavar="DIR", help="score what is in DIR again; run nothing")
    add_options(parser, *SITE, "--partition", "--environment")
    add_method(parser)
    add_output_directory(
        parser,
        "--output",
        "write the result to DIR; continue an interrupted self-test that is there",
        dest="directory",
    )
    add_json(parser)
    parser.set_defaults(program=["mpicost"], launches=LAUNCHES)


def add_method(parser: Parser) -> None:
    """Add the options that say how a night is measured and judged."""
    how = parser.group(HOW)
    add_options(parser, *TRIAL_COUNTS)
    how.add_argument(
        "--cache",
        choices=CACHES,
        help=f"what mpicost does to the caches before each trial (default: {CACHE}); "
        "flush takes long on large caches",
    )
    add_options(parser, "--launches", launches="launches of its own calibration (default: %(default)s)")
    how.add_argument(
        "--sessions",
        type=parse_launches,
        default=1,
        metavar="N",
        help="bursts of its own calibration; with --spread as far apart as sessions (default: %(default)s)",
    )
    how.add_argument(
        "--spread",
        type=parse_minutes,
        default=0,
        metavar="MINUTES",
        help="spread the nights over so much time (default: one after the other)",
    )
    how.add_argument(
        "--references", type=Path, metavar="DIR", help="use the references in DIR, of an earlier self-test"
    )
    how.add_argument(
        "--seed", type=parse_non_negative, metavar="N", help="seed of the order of nights (default: random)"
    )
    add_options(parser, "--seconds-per-layout", "--time-limit")


def plants(text: str) -> list[str]:
    words = parse_comma_list(text)
    if wrong := list_unknown_injections(words):
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(INJECTION_KINDS)}")
    return words


def parse_non_negative(text: str) -> int:
    """Return a whole number of zero or more."""
    return 0 if text == "0" else parse_count(text)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    if arguments.again:
        return conclude_selftest(arguments.again, Progress(), arguments.json)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    directory = (arguments.directory or work.root / "selftest" / stamp).absolute()
    refuse_other_folder(directory)
    if arguments.sessions > arguments.launches:
        raise UsageError(f"--sessions {arguments.sessions}: each has a launch at least; raise --launches")
    demand = SelftestDemand(
        directory=directory,
        plants=arguments.plants or list(INJECTION_KINDS),
        times=arguments.nights,
        unchanged=arguments.unchanged,
        launches=arguments.launches,
        seed=arguments.seed,
        sessions=arguments.sessions,
        spread=arguments.spread,
    )
    return run_selftest(work, build_request(work, arguments), demand, Progress())


def refuse_other_folder(directory: Path) -> None:
    """Refuse to begin in a folder that holds anything but a self-test.

    :raises UsageError: naming the folder and the fix
    """
    own = (directory / data.FILE, locate_ledger(directory))
    if directory.is_dir() and any(directory.iterdir()) and not any(path.exists() for path in own):
        what = "is not empty and holds no self-test"
        raise UsageError(f"--output {directory}: {what}; choose another directory")
