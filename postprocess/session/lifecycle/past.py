"""Earlier sessions: what they say of a case, and all of them as a folder of static pages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from pathlib import Path

import polars as pl

from postprocess.analyses.drift import DriftFinding, Trend, detect_trends
from postprocess.analyses.drift_findings import COLUMNS as DRIFT_COLUMNS
from postprocess.analyses.drift_findings import build_series
from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import TextTable, format_signed, parse_utc, plural
from postprocess.base.grouping import group_pairs
from postprocess.base.os_errors import describe_fault
from postprocess.base.workdir import WorkDirectory
from postprocess.model.verdict import Verdict, count_verdicts
from postprocess.report import document, overview, rendering, session_report
from postprocess.report.document import Document, Lines, Linked, Links, Role, Section, Tone, Toned
from postprocess.report.first_screen import MOST_NIGHTS, LaterRound, Past, Step, describe_sight
from postprocess.report.trial_selection import LaunchTrials, read_trials
from postprocess.results.query import FRESH, JUDGING, NIGHT_COLUMNS, NIGHTS, collect_nights, read_headlines
from postprocess.results.store import read_sessions
from postprocess.results.summary import SessionSummary, load_summary

DAYS = 180  #: before the session


def read_past(work: WorkDirectory, summary: SessionSummary) -> Past:
    """Read the nights before a session, and the sessions that measured its suspects again.

    If the store cannot be read, the report says so and has no history.
    """
    rounds = find_rounds(work, summary)
    try:
        frame = read_frame(work, summary)
    except (UsageError, ValueError, OverflowError) as error:
        return Past(problem=f"the nights before are not known: {error}", rounds=rounds)
    steps: dict[str, list[Step]] = {}
    for trend in detect_trends(build_series(frame)):
        if found := [describe_step(trend, finding) for finding in trend.findings]:
            steps[trend.nights.case.key] = found
    return Past(collect_nights(frame, MOST_NIGHTS), steps, rounds=rounds)


def find_rounds(work: WorkDirectory, summary: SessionSummary) -> list[LaterRound]:
    """Find the sessions that measured again what a session left suspect: until the next night of its machine.

    A session that cannot be read is passed over.
    """
    suspects = {result.case for result in summary.results if result.verdict is Verdict.SUSPECT}
    later = [path.parent for path in work.sessions.glob("*/summary.json") if path.parent.name > summary.session]
    found: list[LaterRound] = []
    for directory in sorted(later) if suspects else ():
        try:
            told = load_own_summary(directory)
        except UsageError:
            continue
        if (told.site, told.machine.host) != (summary.site, summary.machine.host):
            continue
        if told.mode in NIGHTS:
            break
        if told.mode in JUDGING:
            results = tuple(result for result in told.results if result.case in suspects)
            found.append(LaterRound(told.session, told.started_utc, results, told.exit_status))
    return found


def write_earlier_pages(work: WorkDirectory, session: str) -> None:
    """Write the pages again of the night before a session and of its other rounds: they name this one now.

    :raises UsageError: if a page cannot be written
    """
    own = load_own_summary(work.sessions / session)
    earlier = [path.parent for path in work.sessions.glob("*/summary.json") if path.parent.name < session]
    for directory in sorted(earlier, reverse=True):
        try:
            summary = load_own_summary(directory)
        except UsageError:
            continue
        if summary.mode not in JUDGING or (summary.site, summary.machine.host) != (own.site, own.machine.host):
            continue
        past = read_past(work, summary)
        if past.rounds:
            session_report.build_report(directory, summary, read_stored_trials(work, directory), past)
        if summary.mode in NIGHTS:
            return


def read_frame(work: WorkDirectory, summary: SessionSummary) -> pl.DataFrame:
    started = summary.started_utc
    since = parse_utc(started) - timedelta(days=DAYS)
    columns = list(dict.fromkeys([*NIGHT_COLUMNS, *DRIFT_COLUMNS]))
    frame = read_headlines(work.store, since=f"{since:%Y-%m-%d}", modes=None, columns=columns)
    own = pl.col("session") == summary.session
    earlier = pl.col("mode").is_in(NIGHTS) & (pl.col("started_utc") < started)
    keys = [result.case.key for result in summary.results]
    return frame.filter((own | earlier) & pl.col("key").is_in(keys))


def describe_step(trend: Trend, finding: DriftFinding) -> Step:
    nights = trend.nights
    size = format_signed(math.expm1(finding.size))
    until = "" if finding.end is None else f" to {nights.started[finding.end][:10]}"
    text = f"{finding.kind} of {size} in time from {nights.started[finding.begin][:10]}{until}"
    return Step(nights.sessions[finding.begin], text)


INDEX = "index.html"
TONES = ("good", "fair", "bad")  #: of a session, the worst last
ALL = "all sessions"
KICKER = f"Plumbline · {ALL}"  #: in each index, and in no other page
AGAIN = "measured again"


@dataclass(frozen=True)
class SiteEntry:
    """A session in the index. ``page`` is the name of its file beside the index, empty if it has none."""

    session: str
    page: str
    machine: str
    mode: str
    started: str
    tone: str
    headline: str
    sight: str
    counts: dict[str, int]
    #: Of a night: the sessions that confirmed its suspects, the first one first
    rounds: tuple[SiteEntry, ...] = ()

    @property
    def worst(self) -> str:
        """The tone of a night with what confirmed its suspects."""
        return max((self.tone, *(entry.tone for entry in self.rounds)), key=TONES.index)

    @property
    def night(self) -> bool:
        """Whether it is a night, not what calibrates, confirms or was started by hand."""
        return self.mode in NIGHTS

    @property
    def month(self) -> str:
        """Such as ``2026-11``."""
        return self.started[:7]

    @property
    def day(self) -> str:
        """Such as ``2026-11-21``."""
        return self.started[:10]


def build_entry(summary: SessionSummary, page: str) -> SiteEntry:
    names = (summary.site, summary.machine.host)
    return SiteEntry(
        summary.session,
        page,
        " · ".join(filter(None, names)),
        summary.mode,
        summary.started_utc,
        overview.find_tone(summary),
        overview.format_headline(summary),
        describe_sight(summary.results),
        count_verdicts(summary.results),
    )


def render_index(entries: Iterable[SiteEntry], problems: Sequence[str] = ()) -> str:
    """Render the index: the nights of each machine month by month, and all sessions, the latest first.

    :param problems: of sessions that cannot be shown, a line each
    """
    every = sorted(entries, key=lambda each: (each.started, each.session))
    known = attach_rounds(every)
    last = ([entry for entry in known if entry.night] or known)[-1:]
    machines = len({entry.machine for entry in known})
    months = group_pairs((entry.month, entry) for entry in known)
    sections = [
        _build_month(name, months[name], number > 0) for number, name in enumerate(sorted(months, reverse=True))
    ]
    nothing = Section("", [] if known else [Lines(Role.REMARK, ["No session is finished yet."])])
    return rendering.render_html(
        Document(
            kind=ALL,
            where=(),
            tone=Tone(last[0].worst) if last else Tone.FAIR,
            headline=f"{plural(len(every), 'session')} on {plural(machines, 'machine')}",
            facts=[line for entry in last for line in _tell_last(entry)],
            sections=[nothing, *chain.from_iterable(sections)],
            how_to_read=(),
            failures=problems,
        )
    )


def _tell_last(entry: SiteEntry) -> Iterator[str]:
    """Tell what the last night said, and what measured its suspects again."""
    yield Linked(f"The last night, {entry.day}, {entry.machine}: {entry.headline}", entry.page)
    for each in entry.rounds:
        yield Linked(f"{AGAIN}: {each.headline}", each.page)
    yield from filter(None, [entry.sight])


def _build_month(name: str, entries: Sequence[SiteEntry], folded: bool) -> list[Section]:
    """Build what a month says: the nights of each machine, the first one first, and a table of its sessions."""
    nights = group_pairs((entry.machine, entry) for entry in entries if entry.night)
    rows = tuple(row for entry in reversed(entries) for row in _list_rows(entry))
    heads = ("started", "machine", "mode", "verdict", "cases")
    return [
        Section(name or "without a date", [_link_nights(night, nights[night]) for night in sorted(nights)]),
        Section(plural(len(entries), "session"), [TextTable("", heads, (), rows)], folded),
    ]


def _link_nights(machine: str, nights: Iterable[SiteEntry]) -> Links:
    return Links(
        machine,
        [
            Linked(night.day[8:], night.page, night.worst, f"{night.day} {night.mode}: {night.headline}")
            for night in nights
        ],
    )


def _list_rows(entry: SiteEntry) -> Iterator[tuple[str, ...]]:
    """List the rows of a session: its own, and those of what measured its suspects again."""
    for each in (entry, *entry.rounds):
        started = each.started if each is entry else f"{AGAIN} at {each.started}"
        said = Toned(f"{document.STAMPS[Tone(each.tone)]} {each.headline}", each.tone)
        yield Linked(started, each.page), each.machine, each.mode, said, overview.format_counts(each.counts)


def attach_rounds(entries: Iterable[SiteEntry]) -> list[SiteEntry]:
    """Let each session that confirms suspects belong to the night before it on its machine."""
    known: list[SiteEntry] = []
    night: dict[str, int] = {}  # the place of the last one of each machine
    for entry in entries:
        confirms = entry.mode in JUDGING and not entry.night
        if confirms and entry.machine in night:
            own = known[night[entry.machine]]
            known[night[entry.machine]] = replace(own, rounds=(*own.rounds, entry))
            continue
        if entry.night:
            night[entry.machine] = len(known)
        known.append(entry)
    return known


PAGE = "report.html"
TOP = '<p class="kicker">'  #: of a page; the link back to the index stands behind it
#: A link to the page of another session, from the folder of one
BESIDE = re.compile(rf'href="\.\./([^"/]+)/{re.escape(PAGE)}"')
BACK = f'{TOP}<a href="{INDEX}">{ALL}</a> · '


def write_site(work: WorkDirectory, folder: Path) -> tuple[Path, list[str]]:
    """Write the index and each session's page. Returns the index, and why sessions are not in it.

    A page that the session has is copied, unless the same is there already; what it has none of is rendered.
    Fresh launches have none: the night has judged by them.

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
            summary = load_own_summary(directory)
            if not summary.mode.endswith(FRESH):
                entries.append(write_entry(work, directory, summary, folder))
        except UsageError as error:
            problems.append(str(error))
        except Exception as error:  # of one session, which must not keep the others away
            problems.append(f"{directory}: {describe_fault(error)}")
    rendering.write_pages({folder / INDEX: render_index(entries, problems)})
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
    text = BESIDE.sub(r'href="\1.html"', text)
    if read_page(page) != text:
        rendering.write_pages({page: text})
    return build_entry(summary, name)


def read_page(path: Path) -> str:
    """Read a page as it was written; empty if there is none."""
    try:
        return files.read_text(path, errors="replace")
    except OSError:
        return ""


def render_page(work: WorkDirectory, directory: Path, summary: SessionSummary) -> str:
    """Render the page of a session that has none, by what is stored of it."""
    return session_report.render_html(
        summary, read_stored_trials(work, directory), past=read_past(work, summary)
    )


def read_stored_trials(work: WorkDirectory, directory: Path) -> dict[str, tuple[LaunchTrials, ...]]:
    """Read the trials of a session from the store; none if it cannot be read."""
    try:
        return read_trials(read_sessions(work.store, [directory.name]), directory.name)
    except UsageError:
        return {}
