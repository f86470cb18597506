"""The views of Luecke et al. (2001) on a session: does it scale, and machine against machine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.analyses.papers import printed, ratio_tables, ratios, scalability
from postprocess.analyses.papers.data import Measured, arrange
from postprocess.analyses.papers.plot import Agreement, agreements, draw
from postprocess.analyses.papers.printed import History
from postprocess.base.sanitize import one_line
from postprocess.base.text_table import Sheet, text
from postprocess.report import legend, plots, templating
from postprocess.report.panels import Chapter
from postprocess.results.summary import SessionSummary

TEXT_WIDTH = 100

SCALES = (
    "Time divided by what a simple model of messages expects of it (Luecke et al. 2001): log2 p for "
    "bcast, p-1 for scatter, gather, allgather and alltoall. A flat line scales as the model says. Small "
    "messages fall where the algorithm takes log2 p steps: a tree for scatter and gather, and what "
    "today's MPIs have for allgather and alltoall."
)
FOUND = (
    "What the paper found up to 128 processes: bcast nearly constant on all machines but for p < 8; "
    "scatter of 10 kB nearly constant on all; gather of 10 kB roughly constant, but not on Fast Ethernet; "
    "allgather roughly constant, but not on the NT cluster; alltoall nearly constant on the T3E and on "
    "Myrinet with Linux, and poor on Fast Ethernet for 8 bytes. Its curves are in no table."
)
STANDS = (
    "Simulated machines are models of links (latency, bandwidth, routes, sharing), made from published "
    "figures and not validated. They leave out the work of sender and receiver, copies in memory, "
    "arithmetic, and the vendor's MPI: the algorithms are those of today's MPIs. Where a ratio differs "
    "from the printed one, something that is left out matters, or a model is wrong; these tables cannot "
    "tell which."
)

AGAINST = (
    "Time on each partition over the time on this one, with the same MPI (tables 1 to 9 of Luecke et al. "
    "2001). Of each process count, the layout with the most processes per node."
)
IN_PRINT = (
    " Beside it the ratio that the paper prints, where the partition stands for its machine; in brackets "
    "the measured ratio over the printed one."
)


@dataclass(frozen=True)
class Part:
    """One of the views: what it is, its pictures, its tables, and where it is to be doubted."""

    title: str
    introduction: str
    chapters: Sequence[Chapter] = ()
    sheets: Sequence[Sheet] = ()
    remarks: Sequence[str] = ()
    machines: Sequence[str] = ()  #: in the order of their signs in ``agreements``
    agreements: Sequence[Agreement] = ()  #: with printed ratios, by MPI


def parts(
    summary: SessionSummary, against: str | None = None, processes: int | None = None
) -> list[Part]:
    """The views that mpicost's cases of a session allow; none if they leave nothing to compare.

    Machines are held against the partition ``against`` at ``processes``; None for the usual.

    :raises UsageError: if the session lacks what was asked for, or the printed figures cannot be read.
    """
    history, measured = printed.load(), arrange(summary.results)
    if not measured.results:
        return []
    basis = ratios.choose(measured, history, against, processes)
    found = [
        _scaling(measured, history, summary.strict),
        _machines(measured, history, basis) if basis else None,
    ]
    return [part for part in found if part]


def write(session_dir: Path, summary: SessionSummary, views: Sequence[Part]) -> tuple[Path, Path]:
    """Write the views beside the report of a session: ``papers.md`` and ``papers.html``.

    :raises UsageError: if they cannot be written.
    """
    context = {
        "summary": summary,
        "papers": views,
        "line_keys": legend.line_keys(arrange(summary.results).environments),
    }
    drawing = {"panel": plots.lines, "agreement": draw, "marker": legend.key_of_marker}
    markdown, html = session_dir / "papers.md", session_dir / "papers.html"
    templating.write(
        {
            markdown: templating.markdown("papers.md.j2", context),
            html: templating.html("papers.html.j2", context, **drawing),
        }
    )
    return markdown, html


def as_text(views: Sequence[Part]) -> str:
    """The tables for a terminal or a pipe."""
    blocks = []
    for part in views:
        blocks.append(f"{part.title}\n{'=' * len(part.title)}\n")
        blocks += [_folded(words) for words in (part.introduction, *part.remarks)]
        blocks += [text(sheet) for sheet in part.sheets]
    return "\n".join(blocks)


def _folded(words: str) -> str:
    return f"{textwrap.fill(one_line(words), TEXT_WIDTH)}\n"


def _scaling(measured: Measured, history: History, strict: bool) -> Part | None:
    chapters = scalability.chapters(measured, strict)
    if not chapters:
        return None
    remarks = [FOUND] if ratios.stands_for(measured, history) else []
    return Part("Does it scale?", SCALES, chapters, scalability.growth(measured), remarks)


def _machines(measured: Measured, history: History, basis: ratios.Basis) -> Part:
    """Ratio tables against one machine, and how near they come to the printed ones."""
    tables = ratios.tables(measured, history, basis)
    machines, agreeing = agreements(tables)
    nearness = ratio_tables.nearness(measured, history, tables)
    sheets = [ratio_tables.sheet(measured, table) for table in tables]
    stands = bool(ratios.stands_for(measured, history))
    return Part(
        f"Machines against {basis.machine}, {basis.processes} processes",
        AGAINST + (IN_PRINT if nearness else ""),
        sheets=[*([nearness] if nearness else []), *sheets],
        remarks=[STANDS, *ratio_tables.remarks(measured, history)] if stands else (),
        machines=machines,
        agreements=agreeing,
    )
