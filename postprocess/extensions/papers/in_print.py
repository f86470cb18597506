"""The tables of the papers as they are printed, with what follows from them beside. They need no session."""

from collections.abc import Callable, Sequence

from postprocess.base.formats import NOT_PRINTED, TextTable, size
from postprocess.base.grouping import group_pairs
from postprocess.extensions.papers import cells, linear_model
from postprocess.extensions.papers import rus_costs as rus
from postprocess.extensions.papers.printed import (
    History,
    PrintedCost,
    PrintedCrossover,
    PrintedFigure,
    PrintedModel,
)
from postprocess.model.routines.rus import LATENCY

ROUNDED = 8e-4  #: relative: a peak in print that follows from its model is no further off
NO_MODEL = "N/A"
KERNEL_SIZES = (
    "size: of the kernel, A the smallest; p: processes of the one over those of the other; above 1: the denser "
    "placement is faster"
)
UNITS = {"count": "", "ratio": "", "fraction": "", "percent": "%"}  #: behind a figure of the text


def list_ratio_machines(history: History) -> list[str]:
    """List the machines of tables 1 to 9 of Luecke et al. (2001), that of the divisor first."""
    against = dict.fromkeys(ratio.against for ratio in history.ratios)
    return list(dict.fromkeys([*against, *(ratio.machine for ratio in history.ratios)]))


def build_ratio_tables(history: History, against: str | None) -> list[TextTable]:
    """Build tables 1 to 9 of Luecke et al. (2001), divided by a machine in print; None for the paper's own."""
    machines = list_ratio_machines(history)
    tables = []
    for source, rows in group_pairs((row.source, row) for row in history.ratios).items():
        first = rows[0]
        sizes = sorted({ratio.bytes for ratio in rows})
        times = {(each.machine, each.bytes): each.ratio for each in rows}
        times |= {(first.against, count): 1.0 for count in sizes}
        basis = against or first.against
        tables.append(
            TextTable(
                f"{first.routine}: time over that of the {basis}, {first.processes} processes",
                ("machine",),
                tuple(size(count) if count else "ratio" for count in sizes),
                tuple(
                    (name, *(_write_ratio(times[name, n] / times[basis, n], n) for n in sizes))
                    for name in machines
                    if name != basis
                ),
                (source, *(() if basis == first.against else ("ratios of ratios in print",))),
                (("routine", first.routine), ("processes", str(first.processes))),
            )
        )
    return tables


def _write_ratio(value: float, count: int) -> cells.Number:
    return cells.Number(f"{value:.3g}", value, quantity="ratio", about={"bytes": count} if count else {})


def build_cost_tables(history: History) -> list[TextTable]:
    """Build the tables of RUS Stuttgart, with the aggregated bandwidths that follow from them."""
    tables = []
    for source, costs in group_pairs((row.source, row) for row in history.costs).items():
        machine, buffer = costs[0].machine, cells.size(costs[0].bytes)
        title = f"{machine}: time per call in us, buffer of {buffer}"
        tables.append(_by_count(title, source, costs, _write_cost))
        if costs[0].bytes > LATENCY:
            moved = [cost for cost in costs if cost.routine in rus.MOVED_BY_ALL]
            title = f"{machine}: aggregated bandwidth in MB/s, buffer of {buffer}"
            tables.append(_by_count(title, f"from {source}", moved, _write_bandwidth))
    return tables


def _by_count(
    title: str, source: str, costs: Sequence[PrintedCost], show: Callable[[PrintedCost], str]
) -> TextTable:
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for cost in costs:
        rows.setdefault((cost.routine,), {})[f"p = {cost.processes}"] = show(cost)
    about = (("machine", costs[0].machine), ("bytes", str(costs[0].bytes)))
    return cells.build_grid(title, ("routine",), rows.items(), (source,), about)


def _write_cost(cost: PrintedCost) -> str:
    about = {"processes": cost.processes}
    return cells.plain(cost.microseconds, "us", 9, quantity="time of a call", about=about)


def _write_bandwidth(cost: PrintedCost) -> str:
    seconds = cost.microseconds * 1e-6
    rate = rus.compute_aggregated_bandwidth(cost.routine, cost.bytes, cost.processes, seconds)
    return cells.rate(rate, quantity="aggregated bandwidth", about={"processes": cost.processes})


def build_model_tables(history: History) -> list[TextTable]:
    """Build tables 1 to 4 of Taboada et al., with the peaks that follow from the models."""
    return [
        TextTable(
            f"{models[0].machine}: T(n) = t0 + tb n + ti tb n / (t0 + tb n), and peaks",
            ("routine", "library"),
            ("t0 (us)", "ti (us)", "tb (ns/B)", "pi0 (KB/s)", "pi0 follows", "Bw (MB/s)", "Bw follows"),
            tuple(
                (
                    *(model.routine, model.library, _write_growth(model.t0, "us")),
                    *(_write_growth(model.ti, "us"), _write_growth(model.tb, "ns/B")),
                    *_write_peaks(model),
                )
                for model in models
            ),
            (source, "follows: the peak that follows from the model, where it is not the one in print"),
            (("machine", models[0].machine),),
        )
        for source, models in group_pairs((row.source, row) for row in history.models).items()
    ]


def _write_growth(growth: linear_model.Growth | None, unit: str) -> str:
    """Write a parameter as printed; a number where it is one."""
    if growth is None:
        return NO_MODEL
    constant = all(not name for _, name in growth.terms)
    return cells.Number(growth.text, growth.at(2), unit) if constant else growth.text


def _write_peaks(each: PrintedModel) -> tuple[str, ...]:
    """Return both peaks in print, each with what follows from the model if that is another."""
    counts = linear_model.list_powers_of_two(each.least, each.most)
    startup = _write_peak(
        each.startup, linear_model.compute_peak_startup(each.model, each.routine, counts) / 1e3, "KB/s"
    )
    if each.bandwidth is None:
        return (*startup, NO_MODEL, "")
    follows = linear_model.compute_peak_bandwidth(each.model, each.routine, counts) / 1e6
    return (*startup, *_write_peak(each.bandwidth, follows, "MB/s"))


def _write_peak(printed: float, follows: float, unit: str) -> tuple[str, str]:
    differs = abs(follows / printed - 1) > ROUNDED
    told = cells.Number(f"{printed:.4g}", printed, unit)
    return told, cells.Number(f"{follows:.4g}", follows, unit) if differs else ""


def build_substitution_table(history: History) -> TextTable:
    """Build table 5 of Taboada et al., with the crossovers that follow from the models."""
    saved = {
        (reduction.machine, reduction.library, reduction.routine, reduction.processes): cells.Number(
            f"{reduction.percent:g}% at {cells.size(reduction.bytes)}",
            reduction.percent,
            "%",
            about={"bytes": reduction.bytes},
        )
        for reduction in history.reductions
    }
    return TextTable(
        "Where a composition is faster than what it replaces",
        ("machine", "library", "replace", "processes"),
        ("in print", "by the model", "measured saving"),
        tuple(
            (
                *(crossover.machine, crossover.library),
                f"{crossover.routine} by {' + '.join(linear_model.COMPOSITIONS[crossover.routine])}",
                str(crossover.processes),
                cells.Number(
                    f"{crossover.side} {cells.size(crossover.bytes)}", crossover.bytes, "B", note=crossover.side
                ),
                _find_crossovers(history, crossover),
                saved.get(
                    (crossover.machine, crossover.library, crossover.routine, crossover.processes), NOT_PRINTED
                ),
            )
            for crossover in history.crossovers
        ),
        ("Taboada Table 5", "Allreduce of MPJ/Ibis: in print, replace always"),
    )


def _find_crossovers(history: History, each: PrintedCrossover) -> str:
    place = (each.machine, each.library)
    models = {m.routine: m.model for m in history.models if (m.machine, m.library) == place}
    found = linear_model.find_crossovers(models, each.routine, each.processes)
    return ", ".join(f"{side} {cells.size(count)}" for count, side in found) or "never crosses"


def build_kernel_tables(history: History) -> list[TextTable]:
    """Build tables 6 to 8 of Taboada et al."""
    tables = []
    for source, kernels in group_pairs((row.source, row) for row in history.kernels).items():
        rows: dict[tuple[str, ...], dict[str, str]] = {}
        for kernel in kernels:
            note = f"size {kernel.size}, over {kernel.over_processes} processes"
            about = {"processes": kernel.processes}
            told = cells.Number(f"{kernel.ratio:.2f}", kernel.ratio, quantity="ratio", about=about, note=note)
            head = f"size {kernel.size}, p = {kernel.processes} over {kernel.over_processes}"
            rows.setdefault((kernel.library, kernel.kernel), {})[head] = told
        nodes = f"{kernels[0].per_node} per node over {kernels[0].over_per_node} per node"
        title = f"{source}: kernels, time with {nodes}"
        tables.append(cells.build_grid(title, ("library", "kernel"), rows.items(), (KERNEL_SIZES,)))
    return tables


def build_text_table(history: History, paper: str) -> TextTable:
    """Build the table of the figures in the running text of a paper, by its name in their file."""
    return TextTable(
        "Figures of the text",
        ("machine", "library", "routine", "processes", "bytes", "quantity"),
        ("value",),
        tuple(
            (
                *(figure.machine, figure.library, figure.routine, figure.processes, figure.bytes),
                *(figure.quantity.replace("_", " "), _write_figure(figure)),
            )
            for figure in history.figures
            if figure.paper == paper
        ),
    )


def _write_figure(each: PrintedFigure) -> str:
    if each.unit == "bool":
        return "yes" if each.value else "no"
    text = f"{each.value:.10g}{UNITS.get(each.unit, f' {each.unit}')}"
    return cells.Number(text, each.value, "%" if each.unit == "percent" else each.unit)
