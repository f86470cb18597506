"""The tables and figures of one paper: as they are in print, and of sessions where these have what it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from postprocess.base.errors import UsageError
from postprocess.base.text_table import TextTable, render_markdown_table
from postprocess.extensions.papers import commtest, in_print
from postprocess.extensions.papers.common import asides, printed
from postprocess.extensions.papers.common.asides import LanguageRow, Skews, Timers
from postprocess.extensions.papers.common.measurements import PaperMeasurements
from postprocess.extensions.papers.common.presentation import PaperFigure, format_csv
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.luecke import figures, models, page, ratios, spread
from postprocess.extensions.papers.luecke.page import PaperView
from postprocess.extensions.papers.luecke.spread import Trials
from postprocess.extensions.papers.rus import costs, sends
from postprocess.extensions.papers.taboada import figures as taboada_figures
from postprocess.extensions.papers.taboada import kernel_models, kernels, tables
from postprocess.extensions.papers.taboada.kernels import MeasuredKernel
from postprocess.extensions.papers.taboada.tables import NetworkTheory
from postprocess.report import legend, plots, templating

NO_SPREAD = "No spread and nothing filtered: no case has two counted trials in the store, as in simulated time."
MEASURED, IN_PRINT = "Measured", "In print"  #: the two parts of a page
FORMATS = ("text", "markdown", "csv", "html")


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
    kernels: Mapping[str, Sequence[MeasuredKernel]] = field(default_factory=dict)
    languages: Sequence[LanguageRow] = ()


@dataclass(frozen=True)
class Sources:
    """What the tables of sessions are made of. ``in_print``: the machine to compare with is in print only."""

    asked: Asked
    measured: PaperMeasurements
    history: History
    in_print: bool


_Shown = tuple[list[TextTable], list[str]]  #: tables and remarks


@dataclass(frozen=True)
class Paper:
    """A paper: what it has in print, and what is made of sessions as it does."""

    title: str
    text: str  #: its name in the file of figures of the text
    draw: Callable[[PaperMeasurements], list[PaperFigure]]
    show: Callable[[Sources], _Shown]
    one_pair: str  #: what its page cannot tell of two processes
    #: Its tables in print; ratios are divided by the machine in print that was asked for
    printed: Callable[[History, str | None], list[TextTable]] = lambda history, against: []
    #: In print, that measured ones can be held against
    machines: Callable[[History], list[str]] = lambda history: []
    simulated: bool = False  #: whether simulated machines stand for some of its own, and sessions are compared
    language: tuple[str, str, str] | None = None  #: that it compares with C; title of the table; what it says


def build_figures(paper: str, measured: PaperMeasurements) -> list[PaperFigure]:
    """Build the figures of a paper that the sessions allow. Raises KeyError for a paper that is not there."""
    return [figure for figure in PAPERS[paper].draw(measured) if figure.panels]


def build_printed_tables(history: History, paper: str, against: str | None = None) -> list[TextTable]:
    """Build every table of a paper of ``PAPERS``, and the figures of its text.

    :param against: machine in print by which ratios of Luecke et al. (2001) are divided; None for the paper's
    """
    chosen = PAPERS[paper]
    return [*chosen.printed(history, against), in_print.build_text_table(history, chosen.text)]


def build_paper(
    asked: Asked, measured: PaperMeasurements | None, history: History | None = None
) -> list[PaperView]:
    """Build the tables of a paper of ``PAPERS``: those of sessions, if there are any, then those in print.

    ``against`` is a machine in print, or what :func:`ratios.choose_basis` takes.

    :raises UsageError: if the paper or the sessions lack what was asked for.
    """
    history = history or printed.load_history()
    paper = PAPERS[asked.paper]
    machines = paper.machines(history)
    is_printed = asked.against in machines
    if asked.against and not is_printed:
        there = ", ".join(machines)
        if not paper.simulated:
            fix = f"leave it out, or choose of {there}" if machines else "leave it out"
            raise UsageError(f"--against {asked.against}: {asked.paper} has no such machine; {fix}")
        if measured is None:
            said = f"there is no session, and in print are {there or 'none'}"
            raise UsageError(f"--against {asked.against}: {said}")
    divisor = asked.against if is_printed else None
    views = [PaperView(IN_PRINT, "", tables=build_printed_tables(history, asked.paper, divisor))]
    spoken = [asides.build_language_table(*paper.language, asked.languages)] if paper.language else []
    spoken = keep_filled(spoken)
    if measured is None or not (measured.results or asked.kernels):
        return [*([PaperView(MEASURED, "", tables=spoken)] if spoken else []), *views]
    own, remarks = paper.show(Sources(asked, measured, history, is_printed))
    own += [*keep_filled([asides.build_skew_table(measured, asked.skews)]), *spoken]
    remarks += [asides.describe_few_processes(measured, paper.one_pair), asides.describe_conditions(measured)]
    caveats = page.describe_machines(measured, history) if paper.simulated else []
    shown = PaperView(
        MEASURED,
        "",
        tables=own,
        remarks=[*filter(None, remarks), *asides.describe_split(measured)],
        notes=[*caveats, *asked.notes],
        figures=build_figures(asked.paper, measured) if asked.pictures else [],
    )
    return [*([shown] if shown.tables or shown.remarks or shown.figures else []), *views]


def keep_filled(tables: Iterable[TextTable]) -> list[TextTable]:
    """Keep the tables that have a row: of the others the sessions have nothing."""
    return [table for table in tables if table.rows]


def format_paper(views: Sequence[PaperView], form: str, sessions: Sequence[str] = (), title: str = "") -> str:
    """Format the tables as one of ``FORMATS``. CSV has a line for each number; HTML has the figures too."""
    if form == "text":
        return "\n\n".join(filter(None, [title, page.paper_views_as_text(views)]))
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


def _show_luecke2001(of: Sources) -> _Shown:
    """Show what the paper has, in its order: cold caches, the filter, models, growth, and ratios."""
    table = spread.build_spread_table(of.measured, of.asked.trials, of.history)
    shown = [spread.build_cold_table(of.measured, of.history), table]
    shown += models.build_prediction_tables(of.measured)
    shown += models.build_growth_tables(of.measured)
    remarks = ["" if table.rows else NO_SPREAD, models.describe_refused(of.measured)]
    if not of.in_print:
        return [*keep_filled(shown), *_show_ratios(of)], remarks
    chained, missing = ratios.build_chained_tables(of.measured, of.history, str(of.asked.against))
    return [*keep_filled(shown), *chained], [missing, *remarks]


def _show_luecke2003(of: Sources) -> _Shown:
    """Show the clock, the spread, and library against library."""
    table = spread.build_spread_table(of.measured, of.asked.trials, of.history)
    _, basis = ratios.find_against(of.measured, of.asked.against)
    timers = asides.build_timer_table(of.measured, of.asked.timers, of.history)
    shown = keep_filled([timers, table, *spread.build_library_tables(of.measured, basis)])
    if of.asked.against or len(of.measured.machines) > 1:
        shown += _show_ratios(of)
    return shown, ["" if table.rows else NO_SPREAD]


def _show_ratios(of: Sources) -> list[TextTable]:
    basis = ratios.choose_basis(of.measured, of.history, of.asked.against, of.asked.processes)
    found = ratios.build_paper_tables(of.measured, of.history, basis) if basis else []
    return [ratios.format_ratio_table(of.measured, each) for each in found]


def _show_rus(of: Sources) -> _Shown:
    """Show the clock, the sends, operations over the sends that they could be made of, and the costs."""
    shown = [
        asides.build_timer_table(of.measured, of.asked.timers, of.history),
        sends.build_send_table(of.measured),
        sends.build_mode_table(of.measured),
        sends.build_sweep_table(of.measured),
        sends.build_tree_table(of.measured),
        sends.build_reduction_table(of.measured),
        *costs.build_cost_tables(of.measured),
    ]
    against = [costs.build_against_table(of.measured, of.history)] if of.in_print else []
    return [*keep_filled(shown), *against], [
        costs.describe_missing_sizes(of.measured),
        sends.describe_missing_arithmetic(of.measured),
    ]


def _show_taboada(of: Sources) -> _Shown:
    """Show the models, sends against the network, the kernels, and these beside the models."""
    networks = tables.build_theory_table(of.measured, of.asked.theories, of.history)
    shown = keep_filled([*tables.build_model_tables(of.measured), networks])
    if of.in_print:
        shown.append(tables.build_against_table(of.measured, of.history, str(of.asked.against)))
    modelled = kernel_models.build_model_comparison(of.asked.kernels, of.measured)
    shown += keep_filled([*kernels.build_kernel_tables(of.asked.kernels, of.history), modelled])
    return shown, [
        tables.describe_missing(of.measured),
        kernels.describe_missing_kernels(of.asked.kernels),
        kernel_models.describe_missing_models(modelled, of.asked.kernels),
    ]


def _show_commtest(of: Sources) -> _Shown:
    """Show what contention costs, peaks, and where the protocol changes."""
    shown = keep_filled(commtest.build_contention_tables(of.measured))
    return shown, [commtest.describe_missing_swaps(of.measured)]


def _print_taboada(history: History, against: str | None) -> list[TextTable]:
    return [
        *in_print.build_model_tables(history),
        in_print.build_substitution_table(history),
        *in_print.build_kernel_tables(history),
    ]


PAPERS = {
    "luecke2001": Paper(
        "Luecke et al. (2001)",
        "Luecke 2001",
        figures.draw_machines,
        _show_luecke2001,
        page.ONE_PAIR,
        printed=in_print.build_ratio_tables,
        machines=in_print.list_ratio_machines,
        simulated=True,
    ),
    "luecke2003": Paper(
        "Luecke, Kraeva and Ju (2003)",
        "Luecke 2003",
        figures.draw_libraries,
        _show_luecke2003,
        "an operation is one message, whatever algorithm a library has for more",
        simulated=True,
    ),
    "rus": Paper(
        "RUS Stuttgart: MPI on the T3E-512",
        "RUS",
        costs.draw_costs,
        _show_rus,
        "a tree, a loop and a single send are the same message, so that their ratios tell nothing",
        printed=lambda history, against: in_print.build_cost_tables(history),
        machines=lambda history: list(dict.fromkeys(cost.machine for cost in history.costs)),
        language=("fortran", "C against Fortran", "no significant difference"),
    ),
    "taboada": Paper(
        "Taboada et al.",
        "Taboada",
        taboada_figures.draw_models,
        _show_taboada,
        "a model is of this count alone: f(p) is unknown, and aggregated peaks are those of one pair",
        printed=_print_taboada,
        machines=lambda history: list(dict.fromkeys(f"{m.machine}:{m.library}" for m in history.models)),
        language=(
            "java",
            "Java against C",
            "a wrapper by JNI adds 6 us to the start-up, pure Java 45 to 56 us",
        ),
    ),
    "commtest": Paper(
        "COMMTEST",
        "COMMTEST",
        commtest.draw_swaps,
        _show_commtest,
        "all experiments swap between the same two processes: factors are noise, and tell nothing "
        "about contention",
    ),
}
