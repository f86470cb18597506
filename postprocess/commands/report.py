"""The command ``report``: the report of a finished session."""

import argparse
import webbrowser
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.sanitize import show_error
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import OUTPUT, Parser
from postprocess.report import trial_selection
from postprocess.report.session_report import build_report
from postprocess.report.terminal import print_verdict_table
from postprocess.results.query import LATEST, find_finished_session
from postprocess.results.store import read_sessions
from postprocess.results.summary import load_summary
from postprocess.session.lifecycle.past import read_past, write_site

EXAMPLE = "./plumbline report 20261121T090000Z-1"
FAILS = "the session ended with 1, or a session cannot be shown (--site)"


def add_session_argument(parser: Parser) -> None:
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help=f"name of the session, or {LATEST} (default: the last one)",
    )


def add_arguments(parser: Parser) -> None:
    add_session_argument(parser)
    parser.group(OUTPUT).add_argument("--open", action="store_true", help="show the report in the browser")
    parser.group(OUTPUT).add_argument(
        "--site",
        type=Path,
        metavar="DIR",
        help="write an index of all finished sessions and their pages as static files here; what is there "
        "already is brought up to date",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the report of a session again, and print its verdicts. Returns the session's exit status."""
    if arguments.site:
        return publish_site(work, arguments)
    directory = find_finished_session(work, arguments.session)
    summary = load_summary(directory / "summary.json")
    trials = trial_selection.read_trials(read_sessions(work.store, [directory.name]), directory.name)
    past = read_past(work, summary)
    paths = build_report(directory, summary, trials, past)
    print_verdict_table(summary, Progress().console.width, rounds=past.rounds)
    for path in paths:
        print(path)
    if arguments.open:
        open_page(paths[1])
    return summary.exit_status


def publish_site(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the index of all sessions and their pages. Returns 0, or 1 if a session cannot be shown.

    :raises UsageError: if a session is named too, or nothing can be written
    """
    if arguments.session:
        raise UsageError(f"{arguments.session}: --site writes all sessions; leave the name away, or --site")
    index, problems = write_site(work, arguments.site)
    for problem in problems:
        show_error(problem)
    print(index)
    if arguments.open:
        open_page(index)
    return int(bool(problems))


def open_page(page: Path) -> None:
    """Show a page in the browser; where there is none, say so."""
    if not webbrowser.open(page.resolve().as_uri()):
        Progress().note(f"no browser is here; {page} needs nothing but itself: copy it")
