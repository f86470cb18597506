"""Write all sessions as a folder of static files: an index, and the page of each session beside it."""

from __future__ import annotations

from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.os_errors import describe_fault
from postprocess.base.workdir import WorkDirectory
from postprocess.report import templating
from postprocess.report.session_report import render_html
from postprocess.report.site_index import INDEX, KICKER, SiteEntry, build_entry, render_index
from postprocess.report.trial_selection import read_trials
from postprocess.results.store import read_sessions
from postprocess.results.summary import SessionSummary, load_summary
from postprocess.session.lifecycle.past import read_past

PAGE = "report.html"
TOP = '<p class="kicker">'  #: of a page; the link back to the index stands behind it
BACK = f'{TOP}<a href="{INDEX}">all sessions</a> · '


def write_site(work: WorkDirectory, folder: Path) -> tuple[Path, list[str]]:
    """Write the index and each session's page. Returns the index, and why sessions are not in it.

    A page that the session has is copied, unless the same is there already; what it has none of is rendered.

    :raises UsageError: if nothing can be written, or the folder has an index of somebody else
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; choose another --site") from None
    if (there := read_page(folder / INDEX)) and KICKER not in there:
        raise UsageError(f"{folder / INDEX}: is of something else; choose another --site")
    entries: list[SiteEntry] = []
    problems: list[str] = []
    for directory in sorted(path.parent for path in work.sessions.glob("*/summary.json")):
        try:
            entries.append(write_entry(work, directory, load_own_summary(directory), folder))
        except UsageError as error:
            problems.append(str(error))
        except Exception as error:  # of one session, which must not keep the others away
            problems.append(f"{directory}: {describe_fault(error)}")
    templating.write_pages({folder / INDEX: render_index(entries, problems)})
    return folder / INDEX, problems


def load_own_summary(directory: Path) -> SessionSummary:
    """Load the summary of the session that a folder is named after: a copy would count twice.

    :raises UsageError: if it cannot be read, or is of another session
    """
    summary = load_summary(path := directory / "summary.json")
    if summary.session != directory.name:
        fix = "give the folder its name, or move the copy elsewhere"
        raise UsageError(f"{path}: is of session {summary.session}; {fix}")
    return summary


def write_entry(work: WorkDirectory, directory: Path, summary: SessionSummary, folder: Path) -> SiteEntry:
    """Write the page of a session with a link back, and return its entry in the index."""
    name = f"{directory.name}.html"
    held, page = directory / PAGE, folder / name
    text = (read_page(held) or render_page(work, directory, summary)).replace(TOP, BACK, 1)
    if read_page(page) != text:
        templating.write_pages({page: text})
    return build_entry(summary, name)


def read_page(path: Path) -> str:
    """Read a page as it was written; empty if there is none."""
    try:
        return files.read_text(path, errors="replace")
    except OSError:
        return ""


def render_page(work: WorkDirectory, directory: Path, summary: SessionSummary) -> str:
    """Render the page of a session that has none, by what is stored of it."""
    try:
        trials = read_trials(read_sessions(work.store, [directory.name]), directory.name)
    except UsageError:
        trials = {}
    return render_html(summary, trials, past=read_past(work, summary))
