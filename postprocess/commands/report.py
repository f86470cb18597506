"""The commands that show a finished session again: ``report``, and ``papers`` as the papers do."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.analyses.papers.page import as_text, parts, write
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import count
from postprocess.report import trial_selection
from postprocess.report.session_report import build_report
from postprocess.report.terminal import verdict_table
from postprocess.results import summary as summaries
from postprocess.results.store import read_sessions


def add_report(parser: argparse.ArgumentParser) -> None:
    """What ``report`` accepts."""
    parser.add_argument("session", nargs="?", help="name of the session (default: the last one)")


def report(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the report of a session again, and show its verdicts."""
    directory = finished_session(work, arguments.session)
    summary = summaries.load_summary(directory / "summary.json")
    trials = trial_selection.read(read_sessions(work.store, [directory.name]), directory.name)
    paths = build_report(directory, summary, trials)
    verdict_table(summary, Progress().console.width)
    for path in paths:
        print(path)
    return summary.exit_status


def add_papers(parser: argparse.ArgumentParser) -> None:
    """What ``papers`` accepts."""
    add_report(parser)
    parser.add_argument(
        "--against",
        metavar="PARTITION",
        help="the partition by whose times those of all others are divided (default: the T3E's, else "
        "the first)",
    )
    parser.add_argument(
        "--processes",
        type=count,
        help="process count at which machines are compared (default: the papers' 128, else the largest)",
    )


def papers(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show a session as the papers do, and write that with its pictures beside the report."""
    directory = finished_session(work, arguments.session)
    summary = summaries.load_summary(directory / "summary.json")
    found = parts(summary, arguments.against, arguments.processes)
    if not found:
        missing = "several process counts or partitions of mpicost"
        raise UsageError(f"{directory}: nothing to compare; choose a session with {missing}")
    print(as_text(found), flush=True)
    Progress().say("drawing the pictures")
    for path in write(directory, summary, found):
        print(path)
    return 0


def finished_session(work: WorkDirectory, name: str | None) -> Path:
    """The directory of a session that came to a summary, the last one unless named.

    :raises UsageError: if there is none.
    """
    directory = work.sessions / name if name else work.last_session()
    if directory is None or not (directory / "summary.json").exists():
        raise UsageError(
            f"{directory or work.sessions}: no finished session there; ./plumbline nightly makes one"
        )
    return directory
