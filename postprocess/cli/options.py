"""The options that several commands share, each in its group."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.cli.option_types import (
    PAPER_COUNTS,
    GatherLists,
    parse_assignment,
    parse_comma_list,
    parse_counts,
    parse_iterations,
    parse_launches,
    parse_minutes,
    parse_moment,
    parse_processes,
    parse_programs,
    parse_rounds,
    parse_seconds,
    parse_sizes,
    parse_trials,
)
from postprocess.cli.output_files import add_output_file
from postprocess.cli.parser import HOW, READ, WHAT, WHERE, Parser
from postprocess.model.routines.benchmark import ITERATIONS, ROTATE
from postprocess.model.routines.mpicost import (
    CACHE,
    CACHES,
    FAMILIES,
    SECONDS_PER_LAYOUT,
    SYNC,
    SYNCHRONISERS,
    TRIAL_ROUNDS,
    TRIALS,
)
from postprocess.model.routines.paper_families import PAPER_FAMILIES
from postprocess.model.session import CONFIRM_SHARE

#: Help on ``--trials`` where references are measured, and where a session is held against them.
CALIBRATED_TRIALS = f"trials of mpicost per case (default: the site's, else {TRIALS})"
JUDGED_TRIALS = (
    f"trials of mpicost per case (default: the site's, else the references', else {TRIALS})"
)


def add_site(parser: Parser) -> None:
    """Add the options that name the machine and its MPIs."""
    where = parser.group(WHERE)
    where.add_argument(
        "--site",
        default="local",
        metavar="NAME",
        help="site file, by name or path (default: local, this machine)",
    )
    where.add_argument(
        "--mpis",
        type=parse_comma_list,
        metavar="FAMILY,...",
        help="MPI families to use on this machine, releases of them as in mpich@4.3.2, or prefixes as in "
        "/opt/mpich "
        "(default: mpich,openmpi,intel-mpi)",
    )


def add_partition(parser: Parser) -> None:
    """Add the option that chooses partitions."""
    parser.group(WHERE).add_argument(
        "--partition",
        type=parse_comma_list,
        default=[],
        metavar="NAME,...",
        help="only these partitions of the site (default: all)",
    )


def add_environment(parser: Parser, default: str = "all") -> None:
    """Add the option that chooses environments."""
    parser.group(WHERE).add_argument(
        "--environment",
        type=parse_comma_list,
        default=[],
        metavar="NAME,...",
        help=f"only these environments, as in mpich-5_0_2 (default: {default})",
    )


def add_places(parser: Parser, environments: bool = True) -> None:
    """Add the options that choose routines, process counts and places.

    :param environments: whether the user chooses them by an option
    """
    what = parser.group(WHAT)
    what.add_argument(
        "--routine",
        type=parse_comma_list,
        default=[],
        metavar="NAME,...",
        help="only these routines, as in bcast,reduce_sum (default: all)",
    )
    what.add_argument(
        "--processes",
        type=parse_processes,
        default=[],
        metavar="N,...",
        help=f"numbers of processes, or those of a paper ({', '.join(PAPER_COUNTS)}; default: those of "
        "the site)",
    )
    what.add_argument(
        "--boundaries",
        action="store_true",
        help="measure the process counts of Luecke et al. (2003) too: k and k+1 at socket, node and switch "
        "boundaries, and halfway between powers of two",
    )
    what.add_argument(
        "--per-node",
        type=parse_counts,
        default=[],
        metavar="N,...",
        help="only these numbers of processes per node (default: those of the site)",
    )
    add_site(parser)
    add_partition(parser)
    if environments:
        add_environment(parser)


def add_bytes(parser: Parser, text: str) -> None:
    """Add the option that chooses message sizes."""
    parser.group(WHAT).add_argument(
        "--bytes",
        type=parse_sizes,
        default=[],
        metavar="N,...",
        help=f"message sizes in bytes{text}",
    )


def add_trials(parser: Parser, text: str) -> None:
    """Add the options for the number of trials of mpicost, and for the rounds in which it has them."""
    how = parser.group(HOW)
    how.add_argument("--trials", type=parse_trials, metavar="N", help=text)
    how.add_argument(
        "--rounds",
        type=parse_rounds,
        metavar="N",
        help="rounds in which mpicost visits its cases, each time for a share of their trials (default: as of "
        f"--trials, else {TRIAL_ROUNDS})",
    )


def add_selection(parser: Parser, trials: str = JUDGED_TRIALS, environments: bool = True) -> None:
    """Add the options that choose cases, and say how and where they run; ``trials`` is a help text."""
    what = parser.group(WHAT)
    what.add_argument(
        "--program",
        type=parse_programs,
        default=[],
        metavar="NAME,...",
        help="only these programs, of mpicost, osu, imb and kernels (default: all but kernels)",
    )
    add_places(parser, environments)
    what.add_argument(
        "--family",
        choices=sorted([*FAMILIES, *PAPER_FAMILIES]),
        help="routines that run on request only: calls composed of other calls, swaps between pairs and in a "
        "ring, ping-pong by sending mode, application kernels of size A; weekly: persistent, neighbourhood and "
        "the other non-blocking operations of OSU and IMB; or all that the page of a paper "
        "needs, by its sizes, caches and trials: luecke, rus, taboada, commtest",
    )
    what.add_argument(
        "--peers",
        type=parse_counts,
        default=[],
        metavar="RANK,...",
        help="only these partners of rank 0 in ping-pong (default: those of the check)",
    )
    add_bytes(parser, "; multiples of 8 where mpicost computes (default: those of the check)")
    add_trials(parser, trials)
    parser.group(HOW).add_argument(
        "--iterations",
        type=parse_iterations,
        metavar="N",
        help=f"iterations of OSU and IMB per message size (default: {ITERATIONS}); a fifth in bandwidth tests",
    )
    add_launching(parser)


def add_launching(parser: Parser, cache: str = CACHE) -> None:
    """Add the options that say how a launch is made."""
    how = parser.group(HOW)
    how.add_argument(
        "--cache",
        choices=(*CACHES, ROTATE),
        help="what mpicost does before each trial: evict its buffers, flush all caches as the papers do, or "
        f"leave them warm (default: {cache}); rotate: IMB with changing buffers",
    )
    how.add_argument(
        "--sync",
        choices=SYNCHRONISERS,
        help=f"how mpicost synchronises processes before a trial (default: {SYNC}); loop: once for many calls, "
        "whose mean is the trial, warm caches; OSU and IMB: what they time in a loop",
    )
    add_surroundings(parser)


def add_time_limit(parser: Parser) -> None:
    """Add the option that bounds a launch."""
    parser.group(HOW).add_argument(
        "--time-limit", type=parse_seconds, metavar="SECONDS", help="end a launch after this time"
    )


def add_surroundings(parser: Parser) -> None:
    """Add the options for the time limit, the cores and the environment variables of a launch."""
    add_time_limit(parser)
    how = parser.group(HOW)
    how.add_argument("--oversubscribe", action="store_true", help="allow more processes than cores")
    how.add_argument(
        "--set-env",
        type=parse_assignment,
        action="append",
        default=[],
        metavar="ENVIRONMENT:NAME=VALUE",
        help="set a variable for the launches of one environment; may be repeated",
    )


def add_since(parser: Parser, default: str = "all") -> None:
    """Add the option that leaves out old sessions."""
    parser.group(READ).add_argument(
        "--since",
        type=parse_moment,
        metavar="DATE",
        help="only sessions from this time on, UTC, as in 2026-11-21 or 2026-11-21T01:30:00Z "
        f"(default: {default})",
    )


def add_case(parser: Parser) -> None:
    """Add the option that chooses cases of the results store."""
    parser.group(READ).add_argument(
        "--case",
        type=parse_comma_list,
        nargs="+",
        action=GatherLists,
        default=[],
        metavar="KEY",
        help="only these cases, by key or pattern, as in '*:bcast:*' (default: all)",
    )


def add_system(parser: Parser) -> None:
    """Add the option that chooses the calibrations of one site."""
    parser.group(READ).add_argument(
        "--site", metavar="NAME", help="only the calibrations of this site (default: all)"
    )


def add_json(parser: Parser) -> None:
    """Add the option for results that programs read."""
    add_output_file(parser, "--json", "write machine-readable results to FILE")


def add_night_launches(parser: Parser) -> None:
    """Add the options that say how many launches of a case a night takes."""
    number = parser.group(HOW).add_mutually_exclusive_group()
    number.add_argument(
        "--launches",
        type=parse_launches,
        metavar="N",
        help="launches of each case, whose median is judged (default: of mpicost as many as detect a slowdown "
        "of 10%% within --seconds-per-layout; else 1)",
    )
    add_budget(number)


def add_budget(group: argparse._ActionsContainer) -> None:
    """Add the option that bounds the launches of a night by their time."""
    group.add_argument(
        "--seconds-per-layout",
        type=parse_seconds,
        metavar="SECONDS",
        help="time for all launches of mpicost at one layout with one MPI (default: that of the site, "
        f"else {SECONDS_PER_LAYOUT})",
    )


def add_session(parser: Parser) -> None:
    """Add the options of a command that judges."""
    add_selection(parser)
    how = parser.group(HOW)
    add_night_launches(parser)
    how.add_argument(
        "--strict",
        action="store_true",
        help="let provisional cases (fewer than 3 sessions or 10 launches are known), suspect and skipped ones "
        "fail too; calibrate nothing",
    )
    how.add_argument(
        "--confirm-after",
        type=parse_minutes,
        metavar="MINUTES",
        help="wait MINUTES before further launches of what two fresh launches call slow again; 0: do not wait "
        f"(default: 1/{CONFIRM_SHARE} of the night's time so far)",
    )
    add_references(
        parser, "search DIR for references first; such a nightly run is recorded as a run"
    )
    add_summary_outputs(parser)


def add_references(parser: Parser, text: str) -> None:
    """Add the option that names where references are looked for."""
    parser.group(HOW).add_argument("--references", type=Path, metavar="DIR", help=text)


def add_summary_outputs(parser: Parser) -> None:
    """Add the options that bring the verdicts of a session to where sites look."""
    add_json(parser)
    add_output_file(parser, "--junit", "write one JUnit test case for each case to FILE")
    add_output_file(parser, "--openmetrics", "write the cases as OpenMetrics gauges to FILE")
    parser.group(HOW).add_argument(
        "--on-failure",
        metavar="COMMAND",
        help="if the session fails, run COMMAND in a shell, with the summary (JSON) on its standard input",
    )
