"""The views of Luecke et al. (2001) on a session: scalability, and machines compared with each other."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.sanitize import sanitize_line
from postprocess.base.text_table import TextTable, render_text
from postprocess.extensions.papers.common import printed
from postprocess.extensions.papers.common.asides import describe_few_processes
from postprocess.extensions.papers.common.measurements import PaperMeasurements, arrange_sessions
from postprocess.extensions.papers.common.presentation import PaperFigure
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.luecke import agreement, models, ratios
from postprocess.extensions.papers.luecke.agreement import Agreement
from postprocess.extensions.papers.rus.sends import read_settings
from postprocess.report import document, legend, plots, templating
from postprocess.report.document import Document, Lines, Role, Section, Tone
from postprocess.report.panels import Chapter
from postprocess.results.summary import SessionSummary

#: What one pair of processes cannot tell
ONE_PAIR = "nothing tells how a time grows with the processes, and a ratio is that of one pair"
TEXT_WIDTH = 100
BY_HAND = frozenset({"--set-env", "--oversubscribe"})  #: options that make a session another machine
WHOLE: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}  #: commands are copied

SCALES = (
    "Time divided by what a simple model of messages expects of it (Luecke et al. 2001): log2 p for "
    "bcast, p-1 for scatter, gather, allgather and alltoall. A flat line scales as the model says. Small "
    "messages fall where the algorithm takes log2 p steps: a tree for scatter and gather, and what "
    "today's MPIs have for allgather and alltoall."
)
FOUND = (
    "What the paper found up to 128 processes: bcast nearly constant on all machines but for p < 8; "
    "scatter of 10 kB nearly constant on all; gather of 10 kB roughly constant, but not on Fast Ethernet; "
    "allgather roughly constant, but not on the NT cluster for large p; alltoall nearly constant on the T3E "
    "and on Myrinet with Linux, poor on the NT cluster for 10 kB, and poor on Fast Ethernet for 8 bytes. "
    "Its curves are in no table."
)
STANDS = (
    "Simulated machines are models of links (latency, bandwidth, routes, sharing), made from published "
    "figures and not validated. They leave out the work of sender and receiver, copies in memory, "
    "arithmetic, and the vendor's MPI: the algorithms are those of today's MPIs. Where a ratio differs "
    "from the printed one, something that is left out matters, or a model is wrong; these tables cannot "
    "tell which."
)

AGAINST = (
    "Time on each partition over the time on this one, with {mpi} (tables 1 to 9 of Luecke et al. "
    "2001). Of each process count, the layout with the most processes per node."
)
IN_PRINT = (
    " Beside it the ratio that the paper prints, where the partition stands for its machine; in brackets "
    "the measured ratio over the printed one."
)


@dataclass(frozen=True)
class PaperView:
    """One of the views: its title, introduction, pictures, tables and caveats."""

    title: str
    introduction: str
    chapters: Sequence[Chapter] = ()
    tables: Sequence[TextTable] = ()
    remarks: Sequence[str] = ()
    machines: Sequence[str] = ()  #: in the order of their signs in ``agreements``
    agreements: Sequence[Agreement] = ()  #: with printed ratios, by MPI
    figures: Sequence[PaperFigure] = ()
    notes: Sequence[str] = ()  #: behind all tables


def build_paper_views(
    summary: SessionSummary,
    against: str | None = None,
    processes: int | None = None,
    further: Sequence[SessionSummary] = (),
) -> list[PaperView]:
    """Build the views that mpicost's cases of a session allow; none if they leave nothing to compare.

    Machines, those of ``further`` sessions among them, are held against ``against``, a partition or one of its
    MPIs, at ``processes``; None for the usual.

    :raises UsageError: if the session lacks what was asked for, or the printed figures cannot be read.
    """
    history = printed.load_history()
    measured = arrange_summaries((summary, *further))
    if not measured.results:
        return []
    basis = ratios.choose_basis(measured, history, against, processes)
    scaling = _scaling(measured, history, summary.strict)
    return [*([scaling] if scaling.chapters else []), *([_machines(measured, history, basis)] if basis else [])]


def write_paper_views(
    session_dir: Path,
    summary: SessionSummary,
    views: Sequence[PaperView],
    further: Sequence[SessionSummary] = (),
) -> list[Path]:
    """Write the views beside the report of a session: ``papers.md`` and ``papers.html``.

    :raises UsageError: if they cannot be written.
    """
    measured = arrange_summaries((summary, *further))
    context = {"summary": summary, "papers": views, "line_keys": legend.draw_line_keys(measured.environments)}
    drawing: dict[str, Callable[..., str]] = {
        "panel": plots.draw_lines,
        "agreement": agreement.draw_agreement_plot,
        "marker": legend.draw_marker_key,
    }
    pages = {
        session_dir / "papers.md": document.render_markdown(build_document(summary, views)),
        session_dir / "papers.html": templating.render_html_template("papers.html.j2", context, **drawing),
    }
    templating.write_pages(pages)
    return list(pages)


def build_document(summary: SessionSummary, views: Sequence[PaperView]) -> Document:
    """Build the document of the views, which has their tables and no pictures."""
    sections = [
        Section(
            part.title,
            [
                Lines(Role.REMARK, [part.introduction]),
                Lines(Role.ITEM, part.remarks),
                *part.tables,
                Lines(Role.ITEM, part.notes),
            ],
        )
        for part in views
    ]
    where = (f"{summary.mode} at {summary.site}", f"session {summary.session}")
    return Document("papers", where, Tone.GOOD, "The views of the papers", [], sections, [])


def paper_views_as_text(views: Sequence[PaperView]) -> str:
    """Return the tables as text for a terminal or a pipe."""
    blocks = []
    for part in views:
        blocks.append(f"{part.title}\n{'=' * len(part.title)}\n")
        blocks += [_folded(words) for words in (part.introduction, *part.remarks) if words]
        blocks += [render_text(table) for table in part.tables]
        blocks += [_folded(words) for words in part.notes]
    return "\n".join(blocks)


def arrange_summaries(sessions: Sequence[SessionSummary]) -> PaperMeasurements:
    """Arrange the cases of sessions. Raises UsageError if two have one name."""
    named = {summary.session: summary for summary in sessions}
    if len(named) < len(sessions):
        raise UsageError("--session: two sessions have one name; name each session once")
    results = {name: each.results for name, each in named.items()}
    found = arrange_sessions(results, lambda one, other: _are_alike(named[one], named[other]))
    settings = {name: read_settings(each.command) for name, each in named.items()}
    return replace(found, settings=settings)


def _are_alike(one: SessionSummary, other: SessionSummary) -> bool:
    """Return whether two sessions ran the same MPIs, by their own words, and neither with settings by hand."""
    words = {word.partition("=")[0] for each in (one, other) for word in each.command}
    if words & BY_HAND:
        return False
    libraries = {environment.name: environment.library for environment in one.environments}
    return all(libraries.get(e.name, e.library) == e.library for e in other.environments)


def describe_machines(measured: PaperMeasurements, history: History) -> list[str]:
    """Say what simulated machines are, and how each differs from the one it stands for; nothing without any."""
    differences = agreement.describe_stand_ins(measured, history)
    return [STANDS, *differences] if differences else []


def _folded(words: str) -> str:
    return f"{textwrap.fill(sanitize_line(words), TEXT_WIDTH, **WHOLE)}\n"


def _scaling(measured: PaperMeasurements, history: History, strict: bool) -> PaperView:
    """Build the pictures and tables of time over what the models expect."""
    return PaperView(
        "Does it scale?",
        SCALES,
        models.build_scalability_chapters(measured, strict),
        [table for table in models.build_growth_tables(measured) if table.rows],
        [FOUND] if ratios.find_stand_ins(measured, history) else [],
    )


def _machines(measured: PaperMeasurements, history: History, basis: ratios.RatioBasis) -> PaperView:
    """Build the ratio tables against one machine, and describe how near they come to the printed ones."""
    tables = ratios.build_paper_tables(measured, history, basis)
    machines, agreeing = agreement.build_agreement_plots(tables)
    nearness = agreement.describe_nearness(measured, history, tables)
    few = describe_few_processes(measured, ONE_PAIR)
    return PaperView(
        f"Machines against {basis.title}, {basis.processes} processes",
        AGAINST.format(mpi=basis.environment or "the same MPI") + (IN_PRINT if nearness.rows else ""),
        tables=[
            *([nearness] if nearness.rows else []),
            *(ratios.format_ratio_table(measured, table) for table in tables),
        ],
        remarks=[*describe_machines(measured, history), *([few] if few else [])],
        machines=machines,
        agreements=agreeing,
    )
