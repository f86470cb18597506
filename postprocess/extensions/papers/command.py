"""The command ``papers``: a session in the tables and figures of Luecke et al."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_count
from postprocess.cli.parser import READ, Parser
from postprocess.commands import report
from postprocess.extensions.papers.common.asides import load_languages, read_skews, read_timers
from postprocess.extensions.papers.luecke.page import (
    arrange_summaries,
    build_paper_views,
    paper_views_as_text,
    write_paper_views,
)
from postprocess.extensions.papers.one_paper import FORMATS, PAPERS, Asked, build_paper, format_paper
from postprocess.extensions.papers.taboada.kernels import collect_kernels
from postprocess.extensions.papers.taboada.tables import FORM, parse_theory
from postprocess.report.trial_selection import read_trials
from postprocess.results.store import SUFFIX, read_sessions
from postprocess.results.summary import SessionSummary, load_summary

HELP = "Show sessions in the tables and figures of the papers."
EXAMPLE = "./plumbline papers --against t3e --processes 128"
FAILS = ""
MODELLED = "taboada"  #: the paper that holds a model against what a network can do
SPREAD = "luecke2003"  #: the paper whose table needs every trial


def add_arguments(parser: Parser) -> None:
    """Add the session, and what is compared."""
    report.add_arguments(parser)
    read = parser.group(READ)
    read.add_argument(
        "--against",
        metavar="[SESSION:]PARTITION[:ENVIRONMENT]",
        help="divide times by those of PARTITION (same MPI) or ENVIRONMENT (default: the T3E, else the first); "
        "with --paper also a MACHINE in print, such as T3E-512, 'NT Cluster' or Myrinet:MPICH-GM",
    )
    read.add_argument(
        "--session",
        action="append",
        default=[],
        metavar="SESSION",
        dest="further",
        help="a further session, of this or another site; may be repeated",
    )
    read.add_argument(
        "--paper",
        choices=PAPERS,
        help="print the tables of one paper, as they are in print and of the sessions",
    )
    read.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="how --paper prints its tables; html has the figures too (default: text)",
    )
    read.add_argument(
        "--theory",
        action="append",
        default=[],
        metavar=FORM,
        help="with --paper taboada: start-up in us and bandwidth in MB/s of which a machine's network is "
        "capable; may be repeated",
    )
    read.add_argument(
        "--processes",
        type=parse_count,
        metavar="N",
        help="number of processes at which machines are compared (default: 128, else the largest)",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show sessions as the papers do. Returns 0.

    Without ``--paper``, that is written with its pictures beside the report of the first.
    """
    if arguments.theory and arguments.paper != MODELLED:
        raise UsageError(f"--theory {arguments.theory[0]}: is for --paper {MODELLED} only")
    if arguments.paper:
        return show_paper(work, arguments)
    directory = report.find_finished_session(work, arguments.session)
    summary, *further = load_sessions(work, [directory.name, *arguments.further])
    found = build_paper_views(summary, arguments.against, arguments.processes, further)
    if not found:
        missing = "several process counts or partitions of mpicost"
        raise UsageError(f"{directory}: nothing to compare; choose a session with {missing}")
    print(paper_views_as_text(found), flush=True)
    Progress().say("drawing the pictures")
    for path in write_paper_views(directory, summary, found, further):
        print(path)
    return 0


def show_paper(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Print the tables of one paper, in print and, if there is a session, measured."""
    names = [name for name in (arguments.session, *arguments.further) if name]
    last = work.find_last_session()
    if not names and last and (last / "summary.json").exists():
        names = [last.name]
    sessions = load_sessions(work, names)
    measured = arrange_summaries(sessions) if sessions else None
    trials, timers, skews = {}, {}, {}
    for name in names:
        if arguments.paper == SPREAD or (work.store / f"{name}{SUFFIX}").exists():
            frame = read_sessions(work.store, [name])
            trials[name], timers[name] = read_trials(frame, name), read_timers(frame, name)
            skews[name] = read_skews(frame, name)
    asked = Asked(
        arguments.paper,
        arguments.against,
        arguments.processes,
        trials=trials,
        timers=timers,
        skews=skews,
        notes=describe_notes(sessions),
        pictures=arguments.format == "html",
        theories=parse_theory(arguments.theory),
        kernels=collect_kernels(sessions),
        languages=load_languages(work.root),
    )
    found = build_paper(asked, measured)
    title = PAPERS[arguments.paper].title
    print(format_paper(found, arguments.format, names, title), end="")
    return 0


def describe_notes(sessions: Sequence[SessionSummary]) -> list[str]:
    """Describe each note of the sessions once, behind those that have it."""
    found: dict[str, list[str]] = {}
    for summary in sessions:
        for note in summary.notes:
            found.setdefault(note, []).append(summary.session)
    return [f"{', '.join(names)}: {note}" for note, names in found.items()]


def load_sessions(work: WorkDirectory, names: Sequence[str]) -> list[SessionSummary]:
    """Load the summaries of finished sessions. Raises UsageError for one that is not there."""
    places = [report.find_finished_session(work, name) for name in names]
    return [load_summary(place / "summary.json") for place in places]
