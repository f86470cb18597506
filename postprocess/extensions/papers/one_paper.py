"""The tables and figures of one paper: as they are in print, and of sessions where these have what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from postprocess.base.errors import UsageError
from postprocess.base.text_table import TextTable, render_markdown_table
from postprocess.extensions.papers.common import printed
from postprocess.extensions.papers.common.data import PaperMeasurements, describe_conditions, describe_split
from postprocess.extensions.papers.common.languages import LanguageRow, build_language_tables
from postprocess.extensions.papers.common.linear_model import describe_few_processes
from postprocess.extensions.papers.common.numbers import format_csv
from postprocess.extensions.papers.common.paper_figure import PaperFigure
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.common.skew import Skews, build_skew_table
from postprocess.extensions.papers.commtest import contention
from postprocess.extensions.papers.commtest.contention import draw_swaps
from postprocess.extensions.papers.forms import build_printed_tables, list_printed_machines
from postprocess.extensions.papers.luecke import chained, predictions, ratio_tables, ratios, scalability
from postprocess.extensions.papers.luecke.chained import build_cold_table, build_timer_table
from postprocess.extensions.papers.luecke.figures import draw_libraries, draw_machines
from postprocess.extensions.papers.luecke.page import STANDS, PaperView, paper_views_as_text
from postprocess.extensions.papers.luecke.spread import build_library_tables, build_spread_table
from postprocess.extensions.papers.rus import costs as rus
from postprocess.extensions.papers.rus import reduction as rus_reduction
from postprocess.extensions.papers.rus import sends as rus_sends
from postprocess.extensions.papers.rus import sends as rus_sweep
from postprocess.extensions.papers.rus.costs import draw_costs
from postprocess.extensions.papers.taboada import kernels
from postprocess.extensions.papers.taboada import tables as taboada
from postprocess.extensions.papers.taboada.figures import NetworkTheory, build_theory_table, draw_models
from postprocess.model.verdict import CaseResult
from postprocess.report import legend, plots, templating
from postprocess.report.trial_selection import LaunchTrials

_BUILDERS: dict[str, Callable[[PaperMeasurements], list[PaperFigure]]] = {
    "luecke2001": draw_machines,
    "luecke2003": draw_libraries,
    "rus": draw_costs,
    "taboada": draw_models,
    "commtest": draw_swaps,
}


def build_figures(paper: str, measured: PaperMeasurements) -> list[PaperFigure]:
    """Build the figures of a paper that the sessions allow. Raises KeyError for a paper that is not there."""
    return [figure for figure in _BUILDERS[paper](measured) if figure.panels]


NO_SPREAD = "No spread and nothing filtered: no case has two counted trials in the store, as in simulated time."
MEASURED, IN_PRINT = "Measured", "In print"  #: the two parts of a page
LUECKE = ("luecke2001", "luecke2003")
FORMATS = ("text", "markdown", "csv", "html")
Trials = Mapping[str, Mapping[str, Sequence[LaunchTrials]]]  #: by session and the key of a case
#: By session and by system, partition and environment: resolution and overhead of the clock in seconds
Timers = Mapping[str, Mapping[tuple[str, str, str], tuple[float, float]]]


@dataclass(frozen=True)
class Asked:
    """What of a paper is to be shown, and what there is for it."""

    paper: str
    against: str | None = None
    processes: int | None = None
    trials: Trials = field(default_factory=dict)
    timers: Timers = field(default_factory=dict)
    notes: Sequence[str] = ()  #: what sessions say of themselves, as that the machine was busy
    pictures: bool = False
    theories: Mapping[str, NetworkTheory] = field(default_factory=dict)  #: by machine
    skews: Skews = field(default_factory=dict)
    #: by machine, which no other table has
    kernels: Mapping[str, Sequence[CaseResult]] = field(default_factory=dict)
    languages: Sequence[LanguageRow] = ()


def build_paper(
    asked: Asked, measured: PaperMeasurements | None, history: History | None = None
) -> list[PaperView]:
    """Build the tables of a paper of ``PAPERS``: those of sessions, if there are any, then those in print.

    ``against`` is a machine in print, or what :func:`ratios.choose_basis` takes.

    :raises UsageError: if the paper or the sessions lack what was asked for.
    """
    history = history or printed.load_history()
    machines = list_machines(history, asked.paper)
    in_print = asked.against in machines
    if asked.against and asked.paper not in LUECKE and not in_print:
        there = f"leave it out, or choose of {', '.join(machines)}" if machines else "leave it out"
        raise UsageError(f"--against {asked.against}: {asked.paper} has no such machine; {there}")
    if asked.against and not in_print and measured is None:
        there = ", ".join(machines) or "none"
        raise UsageError(f"--against {asked.against}: there is no session, and in print are {there}")
    divisor = asked.against if in_print and asked.paper == "luecke2001" else None
    tables = build_printed_tables(history, asked.paper, divisor)
    views = [PaperView(IN_PRINT, "", tables=tables)]
    spoken = build_language_tables(asked.paper, asked.languages)
    if measured is None or not (measured.results or asked.kernels):
        return [*([PaperView(MEASURED, "", tables=spoken)] if spoken else []), *views]
    own, remarks = _MEASURED[asked.paper](asked, measured, history, in_print)
    own += [*filter(None, [build_skew_table(measured, asked.skews)]), *spoken]
    caveats = _describe_machines(measured, history) if asked.paper in LUECKE else []
    few = describe_few_processes(measured, asked.paper)
    figures = build_figures(asked.paper, measured) if asked.pictures else []
    if own or remarks or figures:
        views.insert(
            0,
            PaperView(
                MEASURED,
                "",
                tables=own,
                remarks=[
                    *filter(None, [*remarks, few, describe_conditions(measured), *describe_split(measured)])
                ],
                notes=[*caveats, *asked.notes],
                figures=figures,
            ),
        )
    return views


def list_machines(history: History, paper: str) -> list[str]:
    """List the machines of a paper that measured ones can be held against."""
    if paper == "luecke2001":
        return list_printed_machines(history)
    if paper == "rus":
        return list(dict.fromkeys(cost.machine for cost in history.costs))
    if paper == "taboada":
        return list(dict.fromkeys(f"{model.machine}:{model.library}" for model in history.models))
    return []


def format_paper(views: Sequence[PaperView], form: str, sessions: Sequence[str] = (), title: str = "") -> str:
    """Format the tables as one of ``FORMATS``. CSV has a line for each number; HTML has the figures too."""
    if form == "text":
        return "\n\n".join(filter(None, [title, paper_views_as_text(views)]))
    if form == "csv":
        return format_csv((view.title, table) for view in views for table in view.tables)
    if form == "html":
        return templating.render_html_template(
            "paper.html.j2",
            {"views": views, "title": title, "sessions": sessions},
            panel=plots.draw_lines,
            line_key=legend.draw_line_key,
        )
    blocks = [f"# {title}\n"] if title else []
    for view in views:
        blocks += [f"## {view.title}\n", *(f"- {remark}\n" for remark in view.remarks)]
        blocks += [f"**{each.title}**\n\n{render_markdown_table(each)}" for each in view.tables]
        blocks += [f"- {note}\n" for note in view.notes]
    return "\n".join(blocks)


_Found = tuple[list[TextTable], list[str]]


def _luecke2001(asked: Asked, measured: PaperMeasurements, history: History, in_print: bool) -> _Found:
    """Build what the paper has, in its order: cold caches, the filter, models, growth, and ratios."""
    spread = build_spread_table(measured, asked.trials, history)
    tables = [*filter(None, [build_cold_table(measured, history), spread])]
    tables += predictions.build_prediction_tables(measured)
    tables += scalability.build_growth_tables(measured)
    remarks = ["" if spread else NO_SPREAD, predictions.describe_refused(measured)]
    if in_print:
        found, missing = chained.build_chained_tables(measured, history, str(asked.against))
        return [*tables, *found], [missing, *remarks]
    return [*tables, *_ratios(asked, measured, history)], remarks


def _luecke2003(asked: Asked, measured: PaperMeasurements, history: History, in_print: bool) -> _Found:
    """Build the clock, the spread, and library against library."""
    spread = build_spread_table(measured, asked.trials, history)
    timers = build_timer_table(measured, asked.timers, history)
    tables = [table for table in (timers, spread) if table]
    _, basis = ratios.find_against(measured, asked.against)
    tables += build_library_tables(measured, basis)
    if asked.against or len(measured.machines) > 1:
        tables += _ratios(asked, measured, history)
    return tables, ["" if spread else NO_SPREAD]


def _rus(asked: Asked, measured: PaperMeasurements, history: History, in_print: bool) -> _Found:
    """Build the clock, the sends, operations over the sends that they could be made of, and the costs."""
    tables = [
        build_timer_table(measured, asked.timers, history),
        rus_sends.build_send_table(measured),
        rus_sends.build_mode_table(measured),
        rus_sweep.build_sweep_table(measured),
        rus_sends.build_tree_table(measured),
        rus_reduction.build_reduction_table(measured),
        *rus.build_cost_tables(measured),
        rus.build_against_table(measured, history) if in_print else None,
    ]
    return [table for table in tables if table], [
        rus.describe_missing_sizes(measured),
        rus_reduction.describe_missing_arithmetic(measured),
    ]


def _taboada(asked: Asked, measured: PaperMeasurements, history: History, in_print: bool) -> _Found:
    tables = taboada.build_model_tables(measured)
    tables += filter(None, [build_theory_table(measured, asked.theories, history)])
    if in_print:
        tables.append(taboada.build_against_table(measured, history, str(asked.against)))
    tables += kernels.build_kernel_tables(asked.kernels, history)
    return tables, [taboada.describe_missing(measured), kernels.describe_missing_kernels(asked.kernels)]


def _commtest(asked: Asked, measured: PaperMeasurements, history: History, in_print: bool) -> _Found:
    tables = contention.build_contention_tables(measured)
    return tables, [contention.describe_missing_swaps(measured)]


def _ratios(asked: Asked, measured: PaperMeasurements, history: History) -> list[TextTable]:
    basis = ratios.choose_basis(measured, history, asked.against, asked.processes)
    found = ratios.build_paper_tables(measured, history, basis) if basis else []
    return [ratio_tables.format_ratio_table(measured, each) for each in found]


def _describe_machines(measured: PaperMeasurements, history: History) -> list[str]:
    """Say what simulated machines are, where there are some."""
    if not ratios.find_stand_ins(measured, history):
        return []
    return [STANDS, *ratio_tables.describe_stand_ins(measured, history)]


_MEASURED = {
    "luecke2001": _luecke2001,
    "luecke2003": _luecke2003,
    "rus": _rus,
    "taboada": _taboada,
    "commtest": _commtest,
}
