"""The tables of one paper: as they are in print, and of sessions where these have what it takes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from postprocess.analyses.papers import printed, ratio_tables, ratios, rus, scalability
from postprocess.analyses.papers.cold_caches import build_cold_table
from postprocess.analyses.papers.data import PaperMeasurements
from postprocess.analyses.papers.forms import PAPERS, build_printed_tables, list_printed_machines
from postprocess.analyses.papers.page import STANDS, PaperView, paper_views_as_text
from postprocess.analyses.papers.printed import History
from postprocess.analyses.papers.spread import build_spread_table
from postprocess.base.errors import UsageError
from postprocess.base.text_table import TextTable, render_markdown_table
from postprocess.report.trial_selection import LaunchTrials

FORMATS = ("text", "markdown", "csv")
COMPARED = ("luecke2001", "luecke2003")  #: papers that compare machines or MPIs by ratios
Trials = Mapping[str, Mapping[str, Sequence[LaunchTrials]]]  #: by session and the key of a case


def build_paper(
    paper: str,
    measured: PaperMeasurements | None,
    trials: Trials,
    against: str | None,
    processes: int | None,
    notes: Sequence[str] = (),
) -> list[PaperView]:
    """Build the tables of a paper of ``PAPERS``: those of sessions, if there are any, then those in print.

    ``against`` is a machine in print, or what :func:`ratios.choose_basis` takes. ``notes``: what sessions say
    of themselves, as that the machine was busy.

    :raises UsageError: if the paper or the sessions lack what was asked for.
    """
    history = printed.load_history()
    if against and paper not in COMPARED:
        raise UsageError(f"--against {against}: {paper} has no ratios; leave it out")
    in_print = paper == "luecke2001" and against in list_printed_machines(history)
    if against and not in_print and measured is None:
        there = ", ".join(list_printed_machines(history))
        raise UsageError(f"--against {against}: there is no session, and in print are {there}")
    title = PAPERS[paper].title
    tables = build_printed_tables(history, paper, against if in_print else None)
    views = [PaperView(f"{title}: in print", "", tables=tables)]
    if measured is None or not measured.results:
        return views
    own, remarks = _measured(
        paper, measured, trials, history, None if in_print else against, processes
    )
    if own or remarks:
        views.insert(0, PaperView(f"{title}: measured", "", tables=own, remarks=[*remarks, *notes]))
    return views


def format_paper(views: Sequence[PaperView], form: str) -> str:
    """Format the tables as one of ``FORMATS``. CSV has a line for each cell."""
    if form == "text":
        return paper_views_as_text(views)
    if form == "csv":
        return _csv([(view.title, table) for view in views for table in view.tables])
    blocks = []
    for view in views:
        blocks += [f"## {view.title}\n", *(f"- {remark}\n" for remark in view.remarks)]
        blocks += [f"**{each.title}**\n\n{render_markdown_table(each)}" for each in view.tables]
    return "\n".join(blocks)


def _measured(
    paper: str,
    measured: PaperMeasurements,
    trials: Trials,
    history: History,
    against: str | None,
    processes: int | None,
) -> tuple[list[TextTable], list[str]]:
    """Build the tables of sessions, and say what these lack."""
    if paper == "rus":
        missing = rus.describe_missing_sizes(measured)
        return rus.build_cost_tables(measured), [missing] if missing else []
    if paper not in COMPARED:
        return [], []
    tables = []
    if paper == "luecke2001":
        tables = scalability.build_growth_tables(measured)
        cold = build_cold_table(measured, history)
        tables += [cold] if cold else []
    if paper == "luecke2003":
        tables.append(build_spread_table(measured, trials, history))
    basis = ratios.choose_basis(measured, history, against, processes)
    if basis:
        found = ratios.build_paper_tables(measured, history, basis)
        tables += [ratio_tables.format_ratio_table(measured, each) for each in found]
    if not ratios.find_stand_ins(measured, history):
        return tables, []
    return tables, [STANDS, *ratio_tables.describe_stand_ins(measured, history)]


def _csv(tables: Sequence[tuple[str, TextTable]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("part", "table", "row", "column", "value"))
    for part, table in tables:
        for row in table.rows:
            about, cells = row[: len(table.labels)], row[len(table.labels) :]
            name = "; ".join(f"{k}={v}" for k, v in zip(table.labels, about, strict=True))
            for column, value in zip(table.columns, cells, strict=True):
                writer.writerow((part, table.title, name, column, value))
    return out.getvalue()
