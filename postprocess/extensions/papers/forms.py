"""The tables of the papers as they are printed, with what follows from them beside. They need no session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from postprocess.base.errors import UsageError
from postprocess.base.formats import size
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.linear_model import (
    COMPOSITIONS,
    Growth,
    compute_peak_bandwidth,
    compute_peak_startup,
    find_crossovers,
    list_powers_of_two,
)
from postprocess.extensions.papers.common.numbers import Number, write_plain, write_rate
from postprocess.extensions.papers.common.printed import (
    History,
    PrintedCost,
    PrintedCrossover,
    PrintedFigure,
    PrintedModel,
    PrintedReduction,
)
from postprocess.extensions.papers.rus import costs as rus

ROUNDED = 8e-4  #: relative: a peak in print that follows from its model is no further off
KB = 1024
NO_MODEL = "N/A"
UNITS = {"count": "", "ratio": "", "fraction": "", "percent": "%"}  #: behind a figure of the text


@dataclass(frozen=True)
class Paper:
    """A paper and the tables that it prints."""

    title: str
    text: str  #: its name in the file of figures of the text
    tables: Callable[[History, str | None], list[TextTable]]


def list_printed_machines(history: History) -> list[str]:
    """List the machines of tables 1 to 9 of Luecke et al. (2001), that of the divisor first."""
    against = dict.fromkeys(ratio.against for ratio in history.ratios)
    return list(dict.fromkeys([*against, *(ratio.machine for ratio in history.ratios)]))


def build_printed_tables(history: History, paper: str, against: str | None) -> list[TextTable]:
    """Build every table of a paper of ``PAPERS``, and the figures of its text.

    ``against``: the machine by which the ratios of Luecke et al. (2001) are divided; None for the paper's.

    :raises UsageError: if the paper has no such machine.
    """
    chosen = PAPERS[paper]
    return [*chosen.tables(history, against), _text_figures(history, chosen)]


def _ratios(history: History, against: str | None) -> list[TextTable]:
    machines = list_printed_machines(history)
    if against and against not in machines:
        raise UsageError(f"--against {against}: not in the paper; it has {', '.join(machines)}")
    tables = []
    for source in dict.fromkeys(ratio.source for ratio in history.ratios):
        rows = [ratio for ratio in history.ratios if ratio.source == source]
        sizes = sorted({ratio.bytes for ratio in rows})
        times = {(each.machine, each.bytes): each.ratio for each in rows}
        times |= {(rows[0].against, count): 1.0 for count in sizes}
        basis = against or rows[0].against
        lines = [
            (name, *(_ratio(times[name, count] / times[basis, count], count) for count in sizes))
            for name in machines
            if name != basis
        ]
        title = f"{rows[0].routine}: time over that of the {basis}, {rows[0].processes} processes"
        heads = tuple(size(count) if count else "ratio" for count in sizes)
        follows = () if basis == rows[0].against else ("ratios of ratios in print",)
        about = (("routine", rows[0].routine), ("processes", str(rows[0].processes)))
        notes = (source, *follows)
        tables.append(TextTable(title, ("machine",), heads, tuple(lines), notes, about))
    return tables


def _ratio(value: float, count: int) -> Number:
    return Number(f"{value:.3g}", value, quantity="ratio", about={"bytes": count} if count else {})


def _costs(history: History, against: str | None) -> list[TextTable]:
    tables = []
    for source in dict.fromkeys(cost.source for cost in history.costs):
        costs = [cost for cost in history.costs if cost.source == source]
        counts = tuple(sorted({cost.processes for cost in costs}))
        buffer = _amount(costs[0].bytes)
        title = f"{costs[0].machine}: time per call in us, buffer of {buffer}"
        tables.append(_by_count(title, source, costs, counts, _cost))
        if costs[0].bytes > 8:
            moved = [cost for cost in costs if cost.routine in rus.MOVED_BY_ALL]
            title = f"{costs[0].machine}: aggregated bandwidth in MB/s, buffer of {buffer}"
            tables.append(_by_count(title, f"from {source}", moved, counts, _bandwidth))
    return tables


def _by_count(
    title: str,
    source: str,
    costs: Sequence[PrintedCost],
    counts: Sequence[int],
    show: Callable[[PrintedCost], str],
) -> TextTable:
    cells = {(cost.routine, cost.processes): show(cost) for cost in costs}
    rows = tuple(
        (name, *(cells[name, count] for count in counts))
        for name in dict.fromkeys(cost.routine for cost in costs)
    )
    about = (("machine", costs[0].machine), ("bytes", str(costs[0].bytes)))
    heads = tuple(f"p = {n}" for n in counts)
    return TextTable(title, ("routine",), heads, rows, (source,), about)


def _cost(cost: PrintedCost) -> str:
    about = {"processes": cost.processes}
    return write_plain(cost.microseconds, "us", 9, quantity="time of a call", about=about)


def _bandwidth(cost: PrintedCost) -> str:
    seconds = cost.microseconds * 1e-6
    rate = rus.compute_aggregated_bandwidth(cost.routine, cost.bytes, cost.processes, seconds)
    about = {"processes": cost.processes}
    return write_rate(rate, quantity="aggregated bandwidth", about=about)


def _taboada(history: History, against: str | None) -> list[TextTable]:
    return [*_models(history), _substitutions(history), *_kernels(history)]


def _models(history: History) -> Iterable[TextTable]:
    heads = ("t0 (us)", "ti (us)", "tb (ns/B)", "pi0 (KB/s)", "pi0 follows", "Bw (MB/s)", "Bw follows")
    for source in dict.fromkeys(model.source for model in history.models):
        models = [model for model in history.models if model.source == source]
        rows = tuple(
            (
                *(model.routine, model.library, _growth(model.t0, "us")),
                *(_growth(model.ti, "us"), _growth(model.tb, "ns/B")),
                *_peaks(model),
            )
            for model in models
        )
        title = f"{models[0].machine}: T(n) = t0 + tb n + ti tb n / (t0 + tb n), and peaks"
        yield TextTable(
            title,
            ("routine", "library"),
            heads,
            rows,
            (source, "follows: the peak that follows from the model, where it is not the one in print"),
            (("machine", models[0].machine),),
        )


def _growth(growth: Growth | None, unit: str) -> str:
    """Write a parameter as printed; a number where it is one."""
    if growth is None:
        return NO_MODEL
    constant = all(not name for _, name in growth.terms)
    return Number(growth.text, growth.at(2), unit) if constant else growth.text


def _peaks(each: PrintedModel) -> tuple[str, ...]:
    """Return both peaks in print, each with what follows from the model if that is another."""
    counts = list_powers_of_two(each.least, each.most)
    startup = compute_peak_startup(each.model, each.routine, counts) / 1e3
    shown = Number(f"{each.startup:.4g}", each.startup, "KB/s")
    cells = (shown, _other(startup, each.startup, "KB/s"))
    if each.bandwidth is None:
        return (*cells, NO_MODEL, "")
    bandwidth = compute_peak_bandwidth(each.model, each.routine, counts) / 1e6
    shown = Number(f"{each.bandwidth:.4g}", each.bandwidth, "MB/s")
    return (*cells, shown, _other(bandwidth, each.bandwidth, "MB/s"))


def _other(follows: float, printed: float, unit: str) -> str:
    differs = abs(follows / printed - 1) > ROUNDED
    return Number(f"{follows:.4g}", follows, unit) if differs else ""


def _substitutions(history: History) -> TextTable:
    reductions = {
        (reduction.machine, reduction.library, reduction.routine, reduction.processes): reduction
        for reduction in history.reductions
    }
    rows = []
    for crossover in history.crossovers:
        key = (crossover.machine, crossover.library, crossover.routine, crossover.processes)
        example = reductions.get(key)
        saved = _saved(example) if example else NOT_PRINTED
        steps = " + ".join(COMPOSITIONS[crossover.routine])
        text = f"{crossover.side} {_amount(crossover.bytes)}"
        printed = Number(text, crossover.bytes, "B", note=crossover.side)
        rows.append(
            (
                *key[:2],
                f"{crossover.routine} by {steps}",
                str(key[3]),
                printed,
                _model(history, crossover),
                saved,
            )
        )
    return TextTable(
        "Where a composition is faster than what it replaces",
        ("machine", "library", "replace", "processes"),
        ("in print", "by the model", "measured saving"),
        tuple(rows),
        ("Taboada Table 5", "Allreduce of MPJ/Ibis: in print, replace always"),
    )


def _saved(example: PrintedReduction) -> Number:
    text = f"{example.percent:g}% at {_amount(example.bytes)}"
    return Number(text, example.percent, "%", about={"bytes": example.bytes})


def _model(history: History, each: PrintedCrossover) -> str:
    place = (each.machine, each.library)
    models = {m.routine: m.model for m in history.models if (m.machine, m.library) == place}
    found = find_crossovers(models, each.routine, each.processes)
    return ", ".join(f"{side} {_amount(count)}" for count, side in found) or "never crosses"


def _amount(count: float) -> str:
    """Write a size of RUS's or Taboada's, whose KB is 1024 bytes."""
    if count < KB:
        return f"{count:.0f} B"
    return f"{count / KB:.4g} KiB" if count % KB**2 else f"{count / KB**2:.0f} MiB"


def _kernels(history: History) -> Iterable[TextTable]:
    for source in dict.fromkeys(each.source for each in history.kernels):
        kernels = [each for each in history.kernels if each.source == source]
        heads = dict.fromkeys((each.size, each.processes, each.over_processes) for each in kernels)
        cells = {
            (e.kernel, e.library, (e.size, e.processes, e.over_processes)): Number(
                f"{e.ratio:.2f}",
                e.ratio,
                quantity="ratio",
                about={"processes": e.processes},
                note=f"size {e.size}, over {e.over_processes} processes",
            )
            for e in kernels
        }
        places = dict.fromkeys((each.library, each.kernel) for each in kernels)
        first = kernels[0]
        over = f"{first.per_node} per node over {first.over_per_node} per node"
        yield TextTable(
            f"{source}: kernels, time with {over}",
            ("library", "kernel"),
            tuple(f"size {kind}, p = {n} over {over}" for kind, n, over in heads),
            tuple(
                (library, kernel, *(cells[kernel, library, head] for head in heads))
                for library, kernel in places
            ),
            (
                "size: of the kernel, A the smallest; p: processes of the one over those of the other; above "
                "1: the denser placement is faster",
            ),
        )


def _text_figures(history: History, paper: Paper) -> TextTable:
    rows = tuple(
        (
            *(figure.machine, figure.library, figure.routine, figure.processes, figure.bytes),
            *(figure.quantity.replace("_", " "), _text_value(figure)),
        )
        for figure in history.figures
        if figure.paper == paper.text
    )
    labels = ("machine", "library", "routine", "processes", "bytes", "quantity")
    return TextTable("Figures of the text", labels, ("value",), rows)


def _text_value(each: PrintedFigure) -> str:
    if each.unit == "bool":
        return "yes" if each.value else "no"
    text = f"{each.value:.10g}{UNITS.get(each.unit, f' {each.unit}')}"
    return Number(text, each.value, "%" if each.unit == "percent" else each.unit)


def _none(history: History, against: str | None) -> list[TextTable]:
    """Return nothing: the figures of the text are all that the paper has in numbers."""
    return []


PAPERS = {
    "luecke2001": Paper("Luecke et al. (2001)", "Luecke 2001", _ratios),
    "luecke2003": Paper("Luecke, Kraeva and Ju (2003)", "Luecke 2003", _none),
    "rus": Paper("RUS Stuttgart: MPI on the T3E-512", "RUS", _costs),
    "taboada": Paper("Taboada et al.", "Taboada", _taboada),
    "commtest": Paper("COMMTEST", "COMMTEST", _none),
}
