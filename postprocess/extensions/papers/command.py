"""The command ``papers``: a session in the tables and figures of Luecke et al."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from postprocess.base.errors import UsageError
from postprocess.base.formats import TextTable
from postprocess.base.grouping import group_pairs
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_count
from postprocess.cli.parser import READ, Parser
from postprocess.commands.report import add_session_argument
from postprocess.extensions.papers import (
    asides,
    cells,
    commtest,
    figures,
    in_print,
    luecke_models,
    luecke_page,
    luecke_ratios,
    luecke_spread,
    printed,
    rus_costs,
    rus_sends,
    taboada_kernels,
    taboada_tables,
)
from postprocess.extensions.papers import taboada_models as taboada_figures
from postprocess.extensions.papers.luecke_spread import Trials
from postprocess.extensions.papers.measurements import PaperMeasurements
from postprocess.extensions.papers.printed import History
from postprocess.extensions.papers.taboada_kernels import MeasuredKernels, collect_kernels
from postprocess.extensions.papers.taboada_tables import FORM, NetworkTheory, parse_theory
from postprocess.report import rendering
from postprocess.report.document import Block, Document
from postprocess.report.trial_selection import read_trials
from postprocess.results.query import find_finished_session
from postprocess.results.store import SUFFIX, read_sessions
from postprocess.results.summary import SessionSummary, load_summary

NO_SPREAD = "No spread and nothing filtered: no case has two counted trials in the store, as in simulated time."
MEASURED, IN_PRINT = "Measured", "In print"  #: the two parts of a page
FORMATS = {
    "text": rendering.render_terminal,
    "markdown": rendering.render_markdown,
    "csv": cells.format_csv,
    "html": rendering.render_html,
}


@dataclass(frozen=True)
class Asked:
    """What of a paper is to be shown, and what there is for it."""

    paper: str
    against: str | None = None
    sessions: Sequence[str] = ()
    processes: int | None = None
    trials: Trials = field(default_factory=dict)
    timers: asides.Timers = field(default_factory=dict)
    notes: Sequence[str] = ()  #: what sessions say of themselves, as that the machine was busy
    pictures: bool = False
    theories: Mapping[str, NetworkTheory] = field(default_factory=dict)  #: by machine
    skews: asides.Skews = field(default_factory=dict)
    kernels: MeasuredKernels = field(default_factory=MeasuredKernels)
    languages: Sequence[asides.LanguageRow] = ()

    def is_in_print(self, history: History) -> bool:
        """Whether the machine to compare with is in print only."""
        return self.against in PAPERS[self.paper].machines(history)


_Shown = tuple[list[TextTable], list[str]]  #: tables and remarks


@dataclass(frozen=True)
class Paper:
    """A paper: what it has in print, and what is made of sessions as it does."""

    title: str
    text: str  #: its name in the file of figures of the text
    draw: Callable[[PaperMeasurements], list[figures.PaperFigure]]
    show: Callable[[Asked, PaperMeasurements, History], _Shown]
    one_pair: str  #: what its page cannot tell of two processes
    #: Its tables in print; ratios are divided by the machine in print that was asked for
    printed: Callable[[History, str | None], list[TextTable]] = lambda history, against: []
    #: In print, that measured ones can be held against
    machines: Callable[[History], list[str]] = lambda history: []
    simulated: bool = False  #: whether simulated machines stand for some of its own, and sessions are compared
    language: tuple[str, str, str] | None = None  #: that it compares with C; title of the table; what it says


def build_figures(paper: str, measured: PaperMeasurements) -> list[figures.PaperFigure]:
    """Build the figures of a paper that the sessions allow. Raises KeyError for a paper that is not there."""
    return [figure for figure in PAPERS[paper].draw(measured) if figure.panels]


def build_paper(asked: Asked, measured: PaperMeasurements | None) -> Document:
    """Build the page of a paper of ``PAPERS``: what sessions have, if there are any, then what is in print.

    ``against`` is a machine in print, or what :func:`.luecke_ratios.choose_basis` takes.

    :raises UsageError: if the paper or the sessions lack what was asked for.
    """
    history = printed.load_history()
    paper = PAPERS[asked.paper]
    machines = paper.machines(history)
    is_printed = asked.is_in_print(history)
    if asked.against and not is_printed:
        there = ", ".join(machines)
        if not paper.simulated:
            fix = f"leave it out, or choose of {there}" if machines else "leave it out"
            raise UsageError(f"--against {asked.against}: {asked.paper} has no such machine; {fix}")
        if measured is None:
            said = f"there is no session, and in print are {there or 'none'}"
            raise UsageError(f"--against {asked.against}: {said}")
    tables: list[TextTable] = []
    remarks: list[str] = []
    drawn: list[Block] = []
    notes: list[str] = []
    if measured is not None and (measured.results or asked.kernels.times):
        tables, remarks = paper.show(asked, measured, history)
        tables = [*tables, asides.build_skew_table(measured, asked.skews)]
        remarks += [
            asides.describe_few_processes(measured, paper.one_pair),
            asides.describe_conditions(measured),
        ]
        remarks = [*filter(None, remarks), *asides.describe_split(measured)]
        notes = [*(luecke_page.describe_machines(measured, history) if paper.simulated else []), *asked.notes]
        drawn = figures.draw_figures(build_figures(asked.paper, measured)) if asked.pictures else []
    if paper.language:
        tables.append(asides.build_language_table(*paper.language, asked.languages))
    told = [
        *paper.printed(history, asked.against if is_printed else None),
        in_print.build_text_table(history, paper.text),
    ]
    sections = [
        figures.build_section(MEASURED, remarks, drawn, tables, notes=notes),
        figures.build_section(IN_PRINT, [], [], told),
    ]
    return figures.build_page(asked.sessions, paper.title, sections)


def _describe_empty(table: TextTable) -> str:
    return "" if table.rows else f"{table.title}: nothing of what was measured is in print"


def _show_luecke2001(asked: Asked, measured: PaperMeasurements, history: History) -> _Shown:
    """Show what the paper has, in its order: cold caches, the filter, models, growth, and ratios."""
    table = luecke_spread.build_spread_table(measured, asked.trials, history)
    shown = [luecke_spread.build_cold_table(measured, history), table]
    shown += luecke_models.build_prediction_tables(measured)
    shown += luecke_models.build_growth_tables(measured)
    remarks = ["" if table.rows else NO_SPREAD, luecke_models.describe_refused(measured)]
    if not asked.is_in_print(history):
        return [*shown, *_show_ratios(asked, measured, history)], remarks
    chained, missing = luecke_ratios.build_chained_tables(measured, history, str(asked.against))
    return [*shown, *chained], [missing, *remarks]


def _show_luecke2003(asked: Asked, measured: PaperMeasurements, history: History) -> _Shown:
    """Show the clock, the spread, and library against library."""
    table = luecke_spread.build_spread_table(measured, asked.trials, history)
    _, basis = luecke_ratios.find_against(measured, asked.against)
    timers = asides.build_timer_table(measured, asked.timers, history)
    shown = [timers, table, *luecke_spread.build_library_tables(measured, basis)]
    if asked.against or len(measured.machines) > 1:
        shown += _show_ratios(asked, measured, history)
    return shown, ["" if table.rows else NO_SPREAD]


def _show_ratios(asked: Asked, measured: PaperMeasurements, history: History) -> list[TextTable]:
    basis = luecke_ratios.choose_basis(measured, history, asked.against, asked.processes)
    found = luecke_ratios.build_paper_tables(measured, history, basis) if basis else []
    return [luecke_ratios.format_ratio_table(measured, table) for table in found]


def _show_rus(asked: Asked, measured: PaperMeasurements, history: History) -> _Shown:
    """Show the clock, the sends, operations over the sends that they could be made of, and the costs."""
    shown = [
        asides.build_timer_table(measured, asked.timers, history),
        rus_sends.build_send_table(measured),
        rus_sends.build_mode_table(measured),
        rus_sends.build_sweep_table(measured),
        rus_sends.build_tree_table(measured),
        rus_sends.build_reduction_table(measured),
        *rus_costs.build_cost_tables(measured),
    ]
    against = [rus_costs.build_against_table(measured, history)] if asked.is_in_print(history) else []
    return [*shown, *against], [
        *map(_describe_empty, against),
        rus_costs.describe_missing_sizes(measured),
        rus_sends.describe_missing_arithmetic(measured),
    ]


def _show_taboada(asked: Asked, measured: PaperMeasurements, history: History) -> _Shown:
    """Show the models, sends against the network, the kernels, and these beside the models."""
    networks = taboada_tables.build_theory_table(measured, asked.theories, history)
    shown = [*taboada_tables.build_model_tables(measured), networks]
    compared: list[TextTable] = []
    if asked.is_in_print(history):
        compared = [taboada_tables.build_against_table(measured, history, str(asked.against))]
    shown += compared
    modelled = taboada_kernels.build_model_comparison(asked.kernels, measured)
    shown += [*taboada_kernels.build_kernel_tables(asked.kernels, history), modelled]
    return shown, [
        *map(_describe_empty, compared),
        taboada_tables.describe_missing(measured),
        taboada_kernels.describe_missing_kernels(asked.kernels),
        taboada_kernels.describe_missing_models(modelled, asked.kernels),
    ]


def _show_commtest(asked: Asked, measured: PaperMeasurements, history: History) -> _Shown:
    """Show what contention costs, peaks, and where the protocol changes."""
    shown = commtest.build_contention_tables(measured)
    return shown, [commtest.describe_missing_swaps(measured)]


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
        luecke_models.draw_machines,
        _show_luecke2001,
        luecke_page.ONE_PAIR,
        printed=in_print.build_ratio_tables,
        machines=in_print.list_ratio_machines,
        simulated=True,
    ),
    "luecke2003": Paper(
        "Luecke, Kraeva and Ju (2003)",
        "Luecke 2003",
        luecke_models.draw_libraries,
        _show_luecke2003,
        "an operation is one message, whatever algorithm a library has for more",
        simulated=True,
    ),
    "rus": Paper(
        "RUS Stuttgart: MPI on the T3E-512",
        "RUS",
        rus_costs.draw_costs,
        _show_rus,
        "a tree, a loop and a single send are the same message, so their ratios mean nothing",
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
        "all experiments swap between the same two processes: factors are noise, and show nothing "
        "about contention",
    ),
}


EXAMPLE = "./plumbline papers --against t3e --processes 128"
FAILS = ""
MODELLED = "taboada"  #: the paper that holds a model against what a network can do
SPREAD = "luecke2003"  #: the paper whose table needs every trial


def add_arguments(parser: Parser) -> None:
    """Add the session, and what is compared."""
    add_session_argument(parser)
    read = parser.group(READ)
    read.add_argument(
        "--against",
        metavar="[SESSION:]PARTITION[:ENVIRONMENT]",
        help="divide times by those of PARTITION (same MPI) or ENVIRONMENT (default: the T3E, else the first); "
        "with --paper also a MACHINE in print, such as T3E-512, 'NT Cluster' or Myrinet:MPICH-GM",
    )
    read.add_argument(
        "--session",
        action="append",
        default=[],
        metavar="SESSION",
        dest="further",
        help="a further session, of this or another site; may be repeated",
    )
    read.add_argument(
        "--paper",
        choices=PAPERS,
        help="print the tables of one paper, as they are in print and of the sessions",
    )
    read.add_argument(
        "--format",
        choices=FORMATS,
        help="how --paper prints its tables; html has the figures too (default: text)",
    )
    read.add_argument(
        "--theory",
        action="append",
        default=[],
        metavar=FORM,
        help="with --paper taboada: start-up in us and bandwidth in MB/s of which a machine's network is "
        "capable; may be repeated",
    )
    read.add_argument(
        "--processes",
        type=parse_count,
        metavar="N",
        help="number of processes at which machines are compared (default: 128, else the largest)",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show sessions as the papers do. Returns 0.

    Without ``--paper``, that is written with its pictures beside the report of the first.
    """
    if arguments.theory and arguments.paper != MODELLED:
        raise UsageError(f"--theory {arguments.theory[0]}: is for --paper {MODELLED} only")
    if arguments.format and not arguments.paper:
        raise UsageError(f"--format {arguments.format}: is for --paper only")
    if arguments.paper:
        return show_paper(work, arguments)
    directory = find_finished_session(work, arguments.session)
    summary, *further = load_sessions(work, [directory.name, *arguments.further])
    page = luecke_page.build_session_page(summary, arguments.against, arguments.processes, further)
    if page is None:
        missing = "several process counts or partitions of mpicost"
        raise UsageError(f"{directory}: nothing to compare; choose a session with {missing}")
    print(rendering.render_terminal(page), flush=True)
    Progress().say("drawing the pictures")
    path = rendering.write_document(page, directory / "papers.html")
    print(path.with_suffix(".md"), path, sep="\n")
    return 0


def show_paper(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Print the tables of one paper, in print and, if there is a session, measured."""
    typed = [name for name in (arguments.session, *arguments.further) if name]
    names = [find_finished_session(work, name).name for name in typed]
    last = work.find_last_session()
    if not names and last and (last / "summary.json").exists():
        names = [last.name]
    form = arguments.format or "text"
    sessions = load_sessions(work, names)
    measured = luecke_page.arrange_summaries(sessions) if sessions else None
    trials, timers, skews = {}, {}, {}
    for name in names:
        if arguments.paper == SPREAD or (work.store / f"{name}{SUFFIX}").exists():
            frame = read_sessions(work.store, [name])
            trials[name], timers[name] = read_trials(frame, name), asides.read_timers(frame, name)
            skews[name] = asides.read_skews(frame, name)
    asked = Asked(
        arguments.paper,
        arguments.against,
        names,
        arguments.processes,
        trials=trials,
        timers=timers,
        skews=skews,
        notes=describe_notes(sessions),
        pictures=form == "html",
        theories=parse_theory(arguments.theory),
        kernels=collect_kernels(sessions),
        languages=asides.load_languages(work.root),
    )
    print(FORMATS[form](build_paper(asked, measured)), end="")
    return 0


def describe_notes(sessions: Sequence[SessionSummary]) -> list[str]:
    """Describe each note of the sessions once, behind those that have it."""
    found = group_pairs((note, summary.session) for summary in sessions for note in summary.notes)
    return [f"{', '.join(names)}: {note}" for note, names in found.items()]


def load_sessions(work: WorkDirectory, names: Sequence[str]) -> list[SessionSummary]:
    """Load the summaries of finished sessions. Raises UsageError for one that is not there."""
    places = [find_finished_session(work, name) for name in names]
    return [load_summary(place / "summary.json") for place in places]
