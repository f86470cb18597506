"""The command ``papers``: a session in the tables and figures of Luecke et al."""

from __future__ import annotations

import argparse

from postprocess.analyses.papers.page import (
    build_paper_views,
    paper_views_as_text,
    write_paper_views,
)
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_count
from postprocess.cli.parser import READ, Parser
from postprocess.commands import report
from postprocess.results import summary as summaries

HELP = "Show a session in the tables and figures of Luecke et al. (2001, 2003)."
EXAMPLE = "./plumbline papers --against t3e --processes 128"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the session, and what is compared."""
    report.add_arguments(parser)
    read = parser.group(READ)
    read.add_argument(
        "--against",
        metavar="PARTITION",
        help="divide the times of the other partitions by those of PARTITION (default: the T3E, else the "
        "first)",
    )
    read.add_argument(
        "--processes",
        type=parse_count,
        metavar="N",
        help="number of processes at which machines are compared (default: 128, else the largest)",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show a session as the papers do, and write that with its pictures beside the report. Returns 0."""
    directory = report.finished_session(work, arguments.session)
    summary = summaries.load_summary(directory / "summary.json")
    found = build_paper_views(summary, arguments.against, arguments.processes)
    if not found:
        missing = "several process counts or partitions of mpicost"
        raise UsageError(f"{directory}: nothing to compare; choose a session with {missing}")
    print(paper_views_as_text(found), flush=True)
    Progress().say("drawing the pictures")
    for path in write_paper_views(directory, summary, found):
        print(path)
    return 0
