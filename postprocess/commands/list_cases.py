"""The command ``list``: the cases that would run, and about how long they take."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from postprocess.base.formats import INDENT, duration, plural, size, wrap_all
from postprocess.base.grouping import group_pairs
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import SELECTION, add_night_launches, add_options
from postprocess.cli.parser import Parser
from postprocess.cli.request import build_request
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.session import Request
from postprocess.results import launch_costs
from postprocess.session.lifecycle.context import open_session_context
from postprocess.session.nightly.estimate import describe_launch_counts, estimate_night, repeat_launches
from site_configs.programs.program import NIGHTLY

Measured = tuple[tuple[str, str], ...]  #: routines of a job, each with its sizes in words
MOST_SIZES = 8  #: of a routine that are named one by one

EXAMPLE = "./plumbline list --site mycluster --routine bcast"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the options that choose cases, and how often each is launched."""
    add_options(parser, *SELECTION)
    add_night_launches(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    return list_cases(work, build_request(work, arguments), Progress())


def list_cases(work: WorkDirectory, asked: Request, progress: Progress) -> int:
    """Print every case that would run, then how many and about how long. Measures nothing."""
    with work.held():
        context = open_session_context(work, asked, progress)
        with progress.phase("planning"):
            planned = context.preview(replace(context.request.selection, only_looking=True))
        catalog = context.load_references(planned)
        estimate = estimate_night(work, planned, catalog, asked.launches)
    repeated = planned if asked.launches is not None else repeat_launches(planned, estimate.counts)
    sentences = (
        *describe_left_out_launches(planned),
        *describe_launch_counts(estimate.counts),
        *describe_totals(repeated, launch_costs.read_job_seconds(work)),
        *launch_costs.describe_flush(repeated),
        *estimate.describe(),
    )
    for line in (*print_full_list(planned), *wrap_all(sentences)):
        print(line)
    return 0


def print_full_list(planned: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Print what jobs measure, at which sizes: once for all that measure the same."""
    environments: dict[tuple[str, str, str, Measured], list[str]] = {}
    for job in launch_costs.list_jobs([launch for launch in planned if launch.number == 1]):
        first = job.launches[0]
        layout = f"{plural(first.processes, 'process', 'es')}, {first.per_node} per node"
        sizes = ((label, format_sizes(own)) for label, own in group_sizes_by_routine(job).items())
        environments.setdefault((job.program, first.partition, layout, tuple(sizes)), []).append(
            first.environment
        )
    layouts = group_pairs(
        ((program, partition, tuple(names), measured), layout)
        for (program, partition, layout, measured), names in environments.items()
    )
    for (program, partition, chosen, measured), alike in layouts.items():
        yield f"{program} on {partition}, {'; '.join(alike)}"
        yield f"  with {', '.join(chosen)}"
        yield from print_routines(measured)


def print_routines(measured: Measured) -> Iterator[str]:
    """Print the routines of a job by their sizes."""
    for sizes, labels in group_pairs((sizes, label) for label, sizes in measured).items():
        yield from wrap_all([f"{sizes}: {', '.join(labels)}"], INDENT)


def describe_left_out_launches(planned: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Describe the launches that would not run, why, and how to make them run."""
    skips = {skip.case: skip for launch in planned for skip in launch.skips}
    programs = group_pairs(((skip.reason, skip.no_program), skip.case.program) for skip in skips.values())
    for (reason, no_program), of in sorted(programs.items(), key=lambda each: -len(each[1])):
        cases = f"{plural(len(of), 'case')} of {', '.join(sorted({*of}))}"
        lacking = " (./plumbline doctor shows what is missing)" if no_program else ""
        yield f"left out: {cases}: {reason}{lacking}"
    named = {case.program for launch in planned for case in launch.all_cases}
    if missing := [program for program in NIGHTLY if program not in named]:
        choice = f"--program {','.join(NIGHTLY)}"
        yield f"left out: {', '.join(missing)}: nothing of theirs was chosen ({choice})"


def describe_totals(planned: Sequence[PlannedLaunch], known: Mapping[launch_costs.Key, float]) -> Iterator[str]:
    """Describe cases and time of each program if there are several, then how many cases there are in all."""
    everything = launch_costs.list_jobs(planned)
    programs = sorted({job.program for job in everything}, key=program_sort_key)
    for program in programs if len(programs) > 1 else ():
        own = [job for job in everything if job.program == program]
        yield f"{program}: {describe_amount(own)}: about {describe_duration(own, known)}"
    yield describe_amount(everything)


def describe_amount(chosen: Sequence[launch_costs.Job]) -> str:
    """Describe cases, starts and jobs."""
    cases = plural(len({case for job in chosen for launch in job.launches for case in launch.cases}), "case")
    starts = plural(sum(len(job.launches) for job in chosen), "start")
    return f"{cases} in {starts}, {plural(len(chosen), 'job')}"


def describe_duration(chosen: Sequence[launch_costs.Job], known: Mapping[launch_costs.Key, float]) -> str:
    """Describe the time of some jobs, and whether it was measured or guessed."""
    total = duration(sum(launch_costs.estimate_job_seconds(job, known) for job in chosen))
    if all(job.key in known for job in chosen):
        return total
    return f"{total} (roughly: not all of it was measured here yet)"


def group_sizes_by_routine(job: launch_costs.Job) -> dict[str, list[int]]:
    """Group the sizes of each routine of a job; ping-pong is one, however many its partners are."""
    peers: Counter[str] = Counter()
    found: dict[str, dict[int, None]] = {}
    for case in (case for launch in job.launches for case in launch.cases):
        found.setdefault(case.routine, {})[case.bytes] = None
        peers[case.routine] += case.program == "mpicost" and case.peer > 0
    return {
        f"{routine} x {peers[routine] // len(sizes)}" if peers[routine] else routine: list(sizes)
        for routine, sizes in found.items()
    }


def format_sizes(sizes: Sequence[int]) -> str:
    """Format sizes as people read them, from first to last where there are many."""
    if list(sizes) == [0]:
        return "no payload"
    words = [size(count) for count in sizes]
    if len(words) <= MOST_SIZES:
        return ", ".join(words)
    return f"{words[0]} to {words[-1]} ({len(words)} sizes)"
