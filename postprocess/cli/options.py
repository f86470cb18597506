"""The options that several commands share, as data: a row each, and tuples of those that go together."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postprocess.cli import option_types
from postprocess.cli.option_types import parse_minutes
from postprocess.cli.output_files import add_output_file
from postprocess.cli.parser import HOW, READ, WHAT, WHERE, Parser
from postprocess.model.routines import mpicost
from postprocess.model.routines.benchmark import ITERATIONS, ROTATE
from postprocess.model.routines.paper_families import PAPER_FAMILIES
from postprocess.model.session import CONFIRM_SHARE

#: Help on ``--trials`` where references are measured, and where a session is held against them.
CALIBRATED_TRIALS = f"trials of mpicost per case (default: the site's, else {mpicost.TRIALS})"
JUDGED_TRIALS = f"trials of mpicost per case (default: the site's, else the references', else {mpicost.TRIALS})"


@dataclass(frozen=True)
class Option:
    """An option; ``{}`` in its help stands for what a command says there."""

    group: str
    words: str  #: the option and its value, as a user types them
    kind: Callable[[str], Any] | None  #: parses the value; None for an option without one
    help: str
    told: str = ""  #: in the place of ``{}``, unless a command says something else
    more: Mapping[str, Any] = field(default_factory=dict)  #: further arguments for argparse
    seldom: bool = False  #: whether few people need it, and none on the first day

    @property
    def flag(self) -> str:
        return self.words.partition(" ")[0]

    @property
    def how(self) -> dict[str, Any]:
        """Return the arguments for argparse, but for the help."""
        if self.kind is None:
            return {"action": "store_true"}
        value: dict[str, Any] = {"default": []} if self.kind in LISTS else {}
        return {"type": self.kind, "metavar": self.words.partition(" ")[2] or None, **value, **self.more}


#: Parsers of lists, which are empty without the option
LISTS = (
    option_types.parse_comma_list,
    option_types.parse_counts,
    option_types.parse_processes,
    option_types.parse_programs,
    option_types.parse_sizes,
)
OPTIONS = {
    option.flag: option
    for option in (
        Option(
            WHERE,
            "--site NAME",
            str,
            "site file, by name or path (default: local, this machine)",
            more={"default": "local"},
        ),
        Option(
            WHERE,
            "--mpis FAMILY,...",
            option_types.parse_comma_list,
            "MPI families to use on this machine, releases of them as in mpich@4.3.2, or prefixes as in "
            "/opt/mpich; with +abi behind it, as in mpich+abi, by the standard ABI of MPI (default: "
            "mpich,openmpi,intel-mpi)",
            more={"default": None},
        ),
        Option(
            WHERE,
            "--partition NAME,...",
            option_types.parse_comma_list,
            "only these partitions of the site (default: all)",
        ),
        Option(
            WHERE,
            "--environment NAME,...",
            option_types.parse_comma_list,
            "only these environments, as in mpich-5_0_2 (default: {})",
            "all",
        ),
        Option(
            WHAT,
            "--program NAME,...",
            option_types.parse_programs,
            "only these programs, of mpicost, osu, imb, kernels and bindings (default: the first three)",
        ),
        Option(
            WHAT,
            "--routine NAME,...",
            option_types.parse_routines,
            "only these routines, as in bcast,reduce_sum (default: all)",
        ),
        Option(
            WHAT,
            "--processes N,...",
            option_types.parse_processes,
            f"numbers of processes, or those of a paper ({', '.join(option_types.PAPER_COUNTS)}; default: "
            "those of the site)",
        ),
        Option(
            WHAT,
            "--boundaries",
            None,
            "measure the process counts of Luecke et al. (2003) too: k and k+1 at socket, node and switch "
            "boundaries, and halfway between powers of two",
            seldom=True,
        ),
        Option(
            WHAT,
            "--per-node N,...",
            option_types.parse_counts,
            "only these numbers of processes per node (default: those of the site)",
        ),
        Option(
            WHAT,
            "--family",
            str,
            "routines that run on request only: calls composed of other calls, swaps between pairs and in a "
            "ring, ping-pong by sending mode, application kernels of size A; weekly: persistent, neighbourhood "
            "and the other non-blocking operations of OSU and IMB; imb-mt, imb-io: IMB with several threads, "
            "IMB on files; or all that the page of a paper "
            "needs, by its sizes, caches and trials: luecke, rus, taboada, commtest",
            more={"choices": sorted([*mpicost.FAMILIES, *PAPER_FAMILIES])},
            seldom=True,
        ),
        Option(
            WHAT,
            "--peers RANK,...",
            option_types.parse_counts,
            "only these partners of rank 0 in ping-pong (default: those of the check)",
            seldom=True,
        ),
        Option(
            WHAT,
            "--bytes N,...",
            option_types.parse_sizes,
            "message sizes in bytes{}",
            "; multiples of 8 where mpicost computes (default: those of the check)",
        ),
        Option(HOW, "--trials N", option_types.parse_trials, "{}", JUDGED_TRIALS, seldom=True),
        Option(
            HOW,
            "--rounds N",
            option_types.parse_rounds,
            "rounds in which mpicost visits its cases, each time for a share of their trials (default: as of "
            f"--trials, else {mpicost.TRIAL_ROUNDS})",
            seldom=True,
        ),
        Option(
            HOW,
            "--iterations N",
            option_types.parse_iterations,
            f"iterations of OSU and IMB per message size (default: {ITERATIONS}); a fifth in bandwidth tests",
            seldom=True,
        ),
        Option(
            HOW,
            "--cache",
            str,
            "what mpicost does before each trial: evict its buffers, flush all caches as the papers do, or "
            "leave them warm (default: {}); rotate: IMB with changing buffers",
            mpicost.CACHE,
            {"choices": (*mpicost.CACHES, ROTATE)},
            seldom=True,
        ),
        Option(
            HOW,
            "--sync",
            str,
            f"how mpicost synchronises processes before a trial (default: {mpicost.SYNC}); loop: once for many "
            "calls, whose mean is the trial, warm caches; OSU and IMB: what they time in a loop",
            more={"choices": mpicost.SYNCHRONISERS},
            seldom=True,
        ),
        Option(
            HOW, "--time-limit SECONDS", option_types.parse_seconds, "end a launch after this time", seldom=True
        ),
        Option(HOW, "--oversubscribe", None, "allow more processes than cores", seldom=True),
        Option(
            HOW,
            "--set-env ENVIRONMENT:NAME=VALUE",
            option_types.parse_assignment,
            "set a variable for the launches of one environment; may be repeated",
            more={"action": "append", "default": []},
            seldom=True,
        ),
        Option(
            HOW,
            "--launches N",
            option_types.parse_launches,
            "{}",
            "launches of each case, whose median is judged (default: of mpicost as many as detect a slowdown "
            "of 10%% within --seconds-per-layout; else 1)",
        ),
        Option(
            HOW,
            "--seconds-per-layout SECONDS",
            option_types.parse_seconds,
            "time for all launches of mpicost at one layout with one MPI (default: that of the site, "
            f"else {mpicost.SECONDS_PER_LAYOUT})",
            seldom=True,
        ),
        Option(
            HOW,
            "--strict",
            None,
            "let provisional cases (fewer than 3 sessions or 10 launches are known), suspect and skipped ones "
            "fail too; calibrate nothing",
        ),
        Option(
            HOW,
            "--confirm-after MINUTES",
            parse_minutes,
            "wait MINUTES before further launches of what two fresh launches call slow again; 0: do not wait "
            f"(default: 1/{CONFIRM_SHARE} of the night's time so far)",
            seldom=True,
        ),
        Option(HOW, "--references DIR", Path, "search DIR for references first{}", seldom=True),
        Option(
            HOW,
            "--on-failure COMMAND",
            str,
            "if the session fails, run COMMAND in a shell, with the summary (JSON) on its standard input",
            seldom=True,
        ),
        Option(
            READ,
            "--since DATE",
            option_types.parse_moment,
            "only sessions from this time on, UTC, as in 2026-11-21 or 2026-11-21T01:30:00Z (default: {})",
            "all",
        ),
        Option(
            READ,
            "--case KEY",
            option_types.parse_comma_list,
            "only these cases, by key or pattern, as in '*:bcast:*' (default: all)",
            more={"nargs": "+", "action": option_types.GatherLists},
        ),
    )
}
SITE = ("--site", "--mpis")  #: the machine and its MPIs
PLACES = ("--routine", "--processes", "--boundaries", "--per-node", *SITE, "--partition", "--environment")
TRIAL_COUNTS = ("--trials", "--rounds")
SURROUNDINGS = ("--time-limit", "--oversubscribe", "--set-env")  #: of a launch
LAUNCHING = ("--cache", "--sync", *SURROUNDINGS)
#: What chooses cases, and says how and where they run
SELECTION = ("--program", *PLACES, "--family", "--peers", "--bytes", *TRIAL_COUNTS, "--iterations", *LAUNCHING)


def add_options(
    parser: Parser, *flags: str, within: argparse._ActionsContainer | None = None, **told: str
) -> None:
    """Add options of the table to a command.

    :param within: a group of these options alone; None for that of each
    :param told: what the help of an option says of this command: ``environment="the first"``
    """
    for flag in flags:
        option = OPTIONS[flag]
        said = told.get(flag.strip("-").replace("-", "_"), option.told)
        group = within or parser.group(option.group)
        if option.seldom:
            parser.seldom.add(flag)
        group.add_argument(flag, help=option.help.replace("{}", said), **option.how)


def add_json(parser: Parser) -> None:
    add_output_file(parser, "--json", "write machine-readable results to FILE")


def add_night_launches(parser: Parser) -> None:
    """Add the options that say how many launches of a case a night takes: one of them, not both."""
    number = parser.group(HOW).add_mutually_exclusive_group()
    add_options(parser, "--launches", "--seconds-per-layout", within=number)


def add_session(parser: Parser) -> None:
    add_options(parser, *SELECTION)
    add_night_launches(parser)
    recorded = "; such a nightly run is recorded as a run"
    add_options(parser, "--strict", "--confirm-after", "--references", references=recorded)
    add_summary_outputs(parser)


def add_summary_outputs(parser: Parser) -> None:
    """Add the options that bring the verdicts of a session to where sites look."""
    add_json(parser)
    add_output_file(parser, "--junit", "write one JUnit test case for each case to FILE")
    add_output_file(parser, "--openmetrics", "write the cases as OpenMetrics gauges to FILE")
    add_options(parser, "--on-failure")
