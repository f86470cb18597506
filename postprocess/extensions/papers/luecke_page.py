"""The views of Luecke et al. (2001) on a session: scalability, machines compared, simulated ones checked."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from postprocess.base.errors import UsageError
from postprocess.base.formats import TextTable
from postprocess.base.sanitize import sanitize_line
from postprocess.extensions.papers import cells, figures, luecke_models, luecke_ratios, printed
from postprocess.extensions.papers.asides import describe_few_processes
from postprocess.extensions.papers.luecke_ratios import RatioTable, find_stand_ins
from postprocess.extensions.papers.measurements import PaperMeasurements, arrange_sessions
from postprocess.extensions.papers.printed import History
from postprocess.extensions.papers.rus_sends import read_settings
from postprocess.report import drawing as small
from postprocess.report import plots
from postprocess.report.document import BESIDE, Document, Legend, Picture, Section
from postprocess.report.drawing import GOOD, INK, apply_style, render_inline_svg
from postprocess.report.plots import BAND, choose_line_style
from postprocess.results.summary import SessionSummary

NEAR = 2.0  #: a factor within which a measured ratio counts as near the printed one


def describe_nearness(measured: PaperMeasurements, history: History, tables: Iterable[RatioTable]) -> TextTable:
    """Describe how near the ratios are to the printed ones, by machine and MPI; no row if none is printed.

    Ratios to which a model was fitted are left out.
    """
    found: dict[tuple[str, str], list[float | None]] = {}
    for table in tables:
        for row in table.rows:
            for name in row.ratios if row.is_evidence else ():
                found.setdefault((row.machine, name), []).append(row.over_printed(name))
    stands = find_stand_ins(measured, history)
    return TextTable(
        "How near the ratios come to the printed ones",
        ("machine", "stands for", "MPI"),
        ("printed", "measured", f"within a factor of {NEAR:g}", "typical factor", "bias"),
        tuple(
            (machine, " and ".join(stands[machine]), name, *_nearness(factors))
            for (machine, name), factors in found.items()
        ),
        (
            "without the ratios to which a model was fitted",
            "typical factor: geometric mean of how far measured and printed are apart, either way; "
            "bias: geometric mean of measured over printed",
        ),
    )


def _nearness(factors: Sequence[float | None]) -> tuple[str, ...]:
    logs = [math.log(factor) for factor in factors if factor is not None]
    if not logs:
        return (cells.count(len(factors)), cells.count(0), cells.MISSING, cells.MISSING, cells.MISSING)
    near = sum(abs(log) <= math.log(NEAR) for log in logs)
    return (
        *(cells.count(len(factors)), cells.count(len(logs)), cells.count(near)),
        cells.ratio(math.exp(statistics.fmean(map(abs, logs)))),
        cells.ratio(math.exp(statistics.fmean(logs))),
    )


def describe_stand_ins(measured: PaperMeasurements, history: History) -> list[str]:
    """Describe where each machine that stands for one of the papers differs from it, and why."""
    names = {place: machine for machine, place in measured.systems.items()}
    return [
        f"{names[each.system, each.partition]} for the {each.machine}: {each.remark}"
        for each in history.stand_ins
        if (each.system, each.partition) in names
    ]


SIZE = (420, 320)
FONT, CLEAR = 8.5, 4.0  #: of names, in pixels: their size, and their distance from the point
AGREEMENT = "Ratios here over ratios in print; shade: within a factor of two"
MOST_NAMED = 6  #: points that are named, the furthest from the diagonal


@dataclass(frozen=True)
class Dot:
    """One ratio in print and here. ``style`` numbers the sign of the machine."""

    name: str
    style: int
    printed: float
    measured: float

    @property
    def distance(self) -> float:
        """How far they are apart, as |ln(measured / printed)|."""
        return abs(math.log(self.measured / self.printed))


def build_agreement_plots(tables: Iterable[RatioTable]) -> tuple[list[str], dict[str, list[Dot]]]:
    """Return the machines, in the order of their signs, and the ratios of each MPI that are in print too."""
    rows = [row for table in tables for row in table.rows if row.is_evidence]
    machines = list(dict.fromkeys(row.machine for row in rows))
    found: dict[str, list[Dot]] = {}
    for row in rows:
        for environment, ratio in row.ratios.items():
            if ratio is not None and row.printed is not None:
                name = f"{row.operation.routine} {row.operation.size}".rstrip()
                dot = Dot(name, machines.index(row.machine), row.printed.ratio, ratio)
                found.setdefault(environment, []).append(dot)
    return machines, found


@apply_style
def draw_agreement_plot(environment: str, every: Sequence[Dot]) -> str:
    """Draw the ratios of one MPI; the shade is a factor of two to both sides of the diagonal."""
    figure, axes = small.draw_panel(sanitize_line(environment), "ratio in print", "ratio", SIZE)
    values = [value for dot in every for value in (dot.printed, dot.measured)]
    small.set_logarithmic_both(axes, min(values), max(values))
    ends = axes.get_xlim()
    lower, upper = ([end * factor for end in ends] for factor in (1 / NEAR, NEAR))
    axes.fill_between(ends, lower, upper, **BAND)
    axes.plot(ends, ends, color=GOOD, linewidth=1)
    for style in sorted({dot.style for dot in every}):
        dots = [dot for dot in every if dot.style == style]
        marks = choose_line_style(style) | {"linestyle": "none", "markersize": 5.5}
        axes.plot([d.printed for d in dots], [d.measured for d in dots], clip_on=False, **marks)
    _name_furthest(axes, every)
    near = sum(dot.distance <= math.log(NEAR) for dot in every)
    spoken = f"{near} of {len(every)} ratios by {environment} within a factor of {NEAR:g}"
    return render_inline_svg(figure, f"{spoken} of the printed ones")


def _name_furthest(axes: Axes, dots: Sequence[Dot]) -> None:
    """Write what the points furthest out are, each where its name covers no point and no other name."""
    points = [axes.transData.transform((dot.printed, dot.measured)) for dot in dots]
    named: list[Bbox] = []
    for dot in sorted(dots, key=lambda dot: dot.distance, reverse=True)[:MOST_NAMED]:
        if dot.distance <= math.log(NEAR):
            continue
        for box in _rooms_for_name(axes, dot):
            if any(box.overlaps(other) for other in named):
                continue
            if any(box.contains(*point) for point in points):
                continue
            named.append(box)
            x, y = axes.transData.inverted().transform((box.x0 + box.width / 2, box.y0))
            name = sanitize_line(dot.name)
            axes.text(x, y, name, ha="center", va="bottom", fontsize=FONT, color=INK)
            break


def _rooms_for_name(axes: Axes, dot: Dot) -> list[Bbox]:
    """Return where the name of a point may go, in pixels: away from the diagonal first, inside the axes."""
    x, y = axes.transData.transform((dot.printed, dot.measured))
    width, height = 0.6 * FONT * len(dot.name), 1.2 * FONT
    ends = axes.get_window_extent()
    left = min(max(x - width / 2, ends.x0), ends.x1 - width)
    above, below = y + CLEAR, y - CLEAR - height
    order = (above, below) if dot.measured > dot.printed else (below, above)
    return [Bbox.from_bounds(left, bottom, width, height) for bottom in order]


#: What one pair of processes cannot tell
ONE_PAIR = "nothing shows how a time grows with the processes, and a ratio is that of one pair"
BY_HAND = frozenset({"--set-env", "--oversubscribe"})  #: options that make a session another machine

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
    "from the printed one, something that is left out matters, or a model is wrong; these tables do not "
    "show which."
)

AGAINST = (
    "Time on each partition over the time on this one, with {mpi} (tables 1 to 9 of Luecke et al. "
    "2001). Of each process count, the layout with the most processes per node."
)
IN_PRINT = (
    " Beside it the ratio that the paper prints, where the partition stands for its machine; in brackets "
    "the measured ratio over the printed one."
)


def build_session_page(
    summary: SessionSummary,
    against: str | None = None,
    processes: int | None = None,
    further: Sequence[SessionSummary] = (),
) -> Document | None:
    """Build the page that mpicost's cases of a session allow; None if they leave nothing to compare.

    Machines, those of ``further`` sessions among them, are held against ``against``, a partition or one of its
    MPIs, at ``processes``; None for the usual.

    :raises UsageError: if the session lacks what was asked for, or the printed figures cannot be read.
    """
    history = printed.load_history()
    measured = arrange_summaries((summary, *further))
    if not measured.results:
        return None
    basis = luecke_ratios.choose_basis(measured, history, against, processes)
    drawn = luecke_models.draw_scalability(measured, summary.strict)
    sections = [_scaling(measured, history, drawn)] if drawn else []
    sections += [_machines(measured, history, basis)] if basis else []
    host = [summary.machine.host] if summary.machine.host else []
    names = ", ".join(session.session for session in (summary, *further))
    where = (f"{summary.mode} at {summary.site}", *host, f"session {names}")
    page = figures.build_page(where, "The views of the papers", sections, [BESIDE])
    return page if sections else None


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
    words = {word.partition("=")[0] for summary in (one, other) for word in summary.command}
    if words & BY_HAND:
        return False
    libraries = {environment.name: environment.library for environment in one.environments}
    return all(libraries.get(e.name, e.library) == e.library for e in other.environments)


def describe_machines(measured: PaperMeasurements, history: History) -> list[str]:
    """Say what simulated machines are, and how each differs from the one it stands for; nothing without any."""
    differences = describe_stand_ins(measured, history)
    return [STANDS, *differences] if differences else []


def _scaling(measured: PaperMeasurements, history: History, drawn: Sequence[figures.PaperFigure]) -> Section:
    """Build the pictures and tables of time over what the models expect."""
    tables = luecke_models.build_growth_tables(measured)
    said = [FOUND] if find_stand_ins(measured, history) else []
    return figures.build_section("Does it scale?", said, figures.draw_figures(drawn), tables, SCALES)


def _machines(measured: PaperMeasurements, history: History, basis: luecke_ratios.RatioBasis) -> Section:
    """Build the ratio tables against one machine, and describe how near they come to the printed ones."""
    tables = luecke_ratios.build_paper_tables(measured, history, basis)
    nearness = describe_nearness(measured, history, tables)
    few = describe_few_processes(measured, ONE_PAIR)
    machines, agreeing = build_agreement_plots(tables)
    keys = [(Markup(plots.draw_marker_key(n)), name) for n, name in enumerate(machines)]
    pictures = [Picture(partial(draw_agreement_plot, *each), width=SIZE[0]) for each in agreeing.items()]
    return figures.build_section(
        f"Machines against {basis.title}, {basis.processes} processes",
        [*describe_machines(measured, history), *([few] if few else [])],
        [Legend(keys, AGREEMENT), *pictures] if pictures else [],
        [nearness, *(luecke_ratios.format_ratio_table(measured, table) for table in tables)],
        AGAINST.format(mpi=basis.environment or "the same MPI") + (IN_PRINT if nearness.rows else ""),
    )
