"""The index of all sessions, by month and machine: static files that work from a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from postprocess.model.verdict import count_verdicts
from postprocess.report import overview, templating
from postprocess.report.first_screen import describe_sight
from postprocess.results.query import NIGHTS
from postprocess.results.summary import SessionSummary

INDEX = "index.html"
KICKER = "Plumbline · all sessions"  #: in each index, and in no other page


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


@dataclass(frozen=True)
class SiteMonth:
    """The sessions of a month, the latest first, and the nights of each machine from the first on."""

    name: str
    entries: tuple[SiteEntry, ...]
    machines: tuple[tuple[str, tuple[SiteEntry, ...]], ...]


def build_entry(summary: SessionSummary, page: str) -> SiteEntry:
    """Build the entry of a session."""
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
    """Render the index.

    :param problems: of sessions that cannot be shown, a line each
    """
    known = sorted(entries, key=lambda each: (each.started, each.session))
    nights = [entry for entry in known if entry.night] or known
    context = {
        "months": _group(known),
        "problems": problems,
        "sessions": len(known),
        "machines": len({entry.machine for entry in known}),
        "last": nights[-1] if nights else None,
    }
    return templating.render_html_template("site.html.j2", context)


def _group(entries: Sequence[SiteEntry]) -> list[SiteMonth]:
    months: dict[str, list[SiteEntry]] = {}
    for entry in entries:
        months.setdefault(entry.month, []).append(entry)
    return [
        SiteMonth(
            name,
            tuple(reversed(months[name])),
            tuple(
                (machine, tuple(e for e in months[name] if e.machine == machine and e.night))
                for machine in sorted({entry.machine for entry in months[name] if entry.night})
            ),
        )
        for name in sorted(months, reverse=True)
    ]
