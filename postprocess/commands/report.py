"""The command ``report``: the report of a finished session."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from postprocess.report import trial_selection
from postprocess.report.session_report import build_report
from postprocess.report.terminal import print_verdict_table
from postprocess.results.store import read_sessions
from postprocess.results.summary_file import load_summary

HELP = "Write the report of a session again, and print its verdicts."
EXAMPLE = "./plumbline report 20261121T090000Z-1"
FAILS = "the session ended with 1"


def add_arguments(parser: Parser) -> None:
    """Add the name of the session."""
    parser.add_argument(
        "session", nargs="?", metavar="SESSION", help="name of the session (default: the last one)"
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the report of a session again, and print its verdicts. Returns the session's exit status."""
    directory = find_finished_session(work, arguments.session)
    summary = load_summary(directory / "summary.json")
    trials = trial_selection.read_trials(
        read_sessions(work.store, [directory.name]), directory.name
    )
    paths = build_report(directory, summary, trials)
    print_verdict_table(summary, Progress().console.width)
    for path in paths:
        print(path)
    return summary.exit_status


def find_finished_session(work: WorkDirectory, name: str | None) -> Path:
    """Return the directory of a finished session, the last one unless named.

    :raises UsageError: if there is none.
    """
    directory = work.sessions / name if name else work.find_last_session()
    if directory is None or not (directory / "summary.json").exists():
        raise UsageError(
            f"{directory or work.sessions}: no finished session there; ./plumbline nightly makes one"
        )
    return directory
