"""Figures of Taboada et al. of sessions: all MPIs of a machine in one, measured and by the models."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.extensions.papers.common.data import PaperMeasurements
from postprocess.extensions.papers.common.numbers import write_plain, write_rate, write_ratio, write_share
from postprocess.extensions.papers.common.paper_figure import (
    MOST_LINES,
    Curve,
    PaperFigure,
    build_panel,
    number_styles,
)
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.taboada.model_fit import SEND, FittedModel, MeasuredModel, fit_measured
from postprocess.report.panels import FROM_ZERO, Panel

FORM = "[MACHINE=]US:MB/S"
NUMBER = r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
TOLD = re.compile(rf"(?:(?P<machine>[^=]+)=)?{NUMBER}:{NUMBER}", re.ASCII)
PAPER, STARTUP, BANDWIDTH = "Taboada", "theoretical_startup", "theoretical_bandwidth"
NATIVE = ("MPICH-GM", "ScaMPI", "SCI-MPICH")  #: libraries in print that are no Java
TESTBED = "-single"  #: of the two on SCI the one with a process on each node


@dataclass(frozen=True)
class NetworkTheory:
    """The best that a network can do: start-up in seconds, bandwidth in bytes/s."""

    startup: float
    bandwidth: float


def parse_theory(words: Sequence[str]) -> dict[str, NetworkTheory]:
    """Parse what the user tells of networks, by machine; under an empty name what holds for all others.

    :raises UsageError: for a word that is not of ``FORM``, or two of one machine.
    """
    found: dict[str, NetworkTheory] = {}
    for word in words:
        match = TOLD.fullmatch(word)
        numbers = [float(match[2]) * 1e-6, float(match[3]) * 1e6] if match else [0.0]
        if not match or not all(0 < number < math.inf for number in numbers):
            raise UsageError(f"--theory {word}: is not {FORM}; write as in 1.3:12500 or torus=1.8:350")
        machine = match["machine"] or ""
        if machine in found:
            raise UsageError(f"--theory {word}: tells a machine twice; tell it once")
        found[machine] = NetworkTheory(*numbers)
    return found


def build_theory_table(
    measured: PaperMeasurements, theories: Mapping[str, NetworkTheory], history: History
) -> TextTable | None:
    """Build a row for each machine and MPI with a model of its send, and those in print; None without one.

    :raises UsageError: if a theory is of a machine that is not there.
    """
    strangers = sorted(theories.keys() - {"", *measured.machines})
    if strangers:
        there = ", ".join(measured.machines)
        raise UsageError(f"--theory {strangers[0]}: no such machine; there is {there}")
    rows = []
    for model in fit_measured(measured):
        if model.place.routine == SEND and model.fits:
            fit = model.fits[min(model.fits)]
            place = model.place
            rate = 1 / fit.tb if fit.holds else None
            theory = theories.get(place.machine, theories.get(""))
            about = (place.machine, place.environment, f"{place.cache}, {place.sync}")
            rows.append((*about, *_cells(fit.t0, rate, theory)))
    if not rows:
        return None
    return TextTable(
        "Send against what the network can do",
        ("machine", "MPI", "conditions"),
        ("t0 (us)", "in theory", "over it", "1 / tb (MB/s)", "in theory", "share"),
        (*rows, *_printed(history)),
        (
            f"in theory: as --theory {FORM} tells it, in print of the network's card and its bus",
            "no bandwidth where the model is off by more than a quarter",
        ),
    )


def _cells(t0: float, rate: float | None, theory: NetworkTheory | None) -> tuple[str, ...]:
    best = (write_plain(theory.startup * 1e6, "us"), write_ratio(t0 / theory.startup)) if theory else None
    shown = write_rate(rate) if rate else NOT_PRINTED
    part = rate / theory.bandwidth if theory and rate else None
    share = write_share(part, f"{part:.0%}") if part is not None else NOT_PRINTED
    most = write_rate(theory.bandwidth) if theory else NOT_PRINTED
    return (write_plain(t0 * 1e6, "us"), *(best or (NOT_PRINTED,) * 2), shown, most, share)


def _printed(history: History) -> list[tuple[str, ...]]:
    """Return the rows of the networks of which the paper tells what they can do."""
    told = {(f.machine, f.quantity): f.value for f in history.figures if f.paper == PAPER}
    rows = []
    for each in history.models:
        network = each.machine.removesuffix(TESTBED)
        startup, bandwidth = (told.get((network, name)) for name in (STARTUP, BANDWIDTH))
        if each.routine == SEND and each.library in NATIVE and startup and bandwidth:
            theory = NetworkTheory(startup * 1e-6, bandwidth * 1e6)
            t0, tb = each.model.t0.at(2), each.model.tb.at(2)
            about = (f"{each.machine} (in print)", each.library, NOT_PRINTED)
            rows.append((*about, *_cells(t0, 1 / tb, theory)))
    return rows


LINES = ("measured", "model", "Hockney")
#: Of figures 3 and 4, in their order, and then what the paper does not draw
COLLECTIVE = (
    *("bcast", "reduce_sum", "scatter", "alltoall"),
    *("gather", "allgather", "allreduce_sum", "reduce_scatter_sum", "scan_sum"),
)
_Chosen = Mapping[str, tuple[int, FittedModel, Mapping[int, float]]]  #: by MPI: count, fit and times


def draw_models(measured: PaperMeasurements) -> list[PaperFigure]:
    """Draw figures 1 to 4 of each machine under each condition."""
    groups: dict[tuple[str, str], dict[str, list[MeasuredModel]]] = {}
    for model in fit_measured(measured):
        place = model.place
        whose = (place.machine, f"cache {place.cache}, sync {place.sync}")
        groups.setdefault(whose, {}).setdefault(place.routine, []).append(model)
    figures = []
    for (machine, conditions), routines in groups.items():
        title = f"{machine}, {conditions}"
        if sends := _choose(routines.get(SEND, ())):
            figures += [_compare(f"{title}: bandwidth of a send (Fig. 1)", sends)]
            figures += [_draw_sends(f"{title}: latency and bandwidth of a send (Fig. 2)", sends)]
        chosen = {name: _choose(routines.get(name, ())) for name in COLLECTIVE}
        figures.append(_draw_collective(f"{title}: bandwidth n / T(n) (Figs. 3 and 4)", chosen))
    return figures


def _choose(models: Sequence[MeasuredModel]) -> _Chosen:
    """Choose the most processes at which all MPIs have a model, as the paper does; else of each its own."""
    kept = [model for model in models if model.fits][:MOST_LINES]
    shared = set.intersection(*(set(model.fits) for model in kept)) if kept else set()
    found = {}
    for model in kept:
        count = max(shared or model.fits)
        found[model.place.environment] = (count, model.fits[count], model.times[count])
    return found


def _compare(title: str, chosen: _Chosen) -> PaperFigure:
    """Draw a panel for each MPI: measured, the model, and Hockney's."""
    panels = []
    for name, (_, fit, times) in chosen.items():
        curves: dict[str, Curve] = {LINES[0]: _rates(times)}
        if fit.is_good:
            curves[LINES[1]] = {s: s / fit.time(s) / 1e6 for s in _spread(times)}
            curves[LINES[2]] = {s: s / fit.hockney_time(s) / 1e6 for s in _spread(times)}
        styles = number_styles(LINES)
        panels.append(build_panel(name, "bytes", curves, styles, MEGABYTES, LINES[1:], FROM_ZERO))
    return PaperFigure(title, tuple(filter(None, panels)), _name_poor(chosen))


def _draw_sends(title: str, chosen: _Chosen) -> PaperFigure:
    """Draw latency, logarithmic, and bandwidth of all MPIs: measured, and by the models."""
    latency: dict[str, Curve] = {}
    for name, (_, fit, times) in chosen.items():
        latency[name] = {s: t for s, t in times.items() if s}
        if fit.is_good:
            latency[_modelled(name)] = {s: fit.time(s) for s in _spread(times)}
    models = [_modelled(name) for name in chosen]
    panels = [
        build_panel("latency", "bytes", latency, _number(chosen), SECONDS, models),
        _rate_panel("bandwidth", chosen),
    ]
    return PaperFigure(title, tuple(filter(None, panels)), _name_poor(chosen))


def _draw_collective(title: str, routines: Mapping[str, _Chosen]) -> PaperFigure:
    panels, poor = [], []
    for routine, chosen in routines.items():
        counts = {count for count, _, _ in chosen.values()}
        if chosen:
            shown = "/".join(map(str, sorted(counts)))
            panels.append(_rate_panel(f"{routine}, {shown} processes", chosen))
            poor += [f"{routine} of {name}" for name, (_, fit, _) in chosen.items() if not fit.is_good]
    remark = f"{plural(len(poor), 'model')} off by more than a quarter, not drawn: {', '.join(poor)}"
    return PaperFigure(title, tuple(filter(None, panels)), remark if poor else "")


def _rate_panel(title: str, chosen: _Chosen) -> Panel | None:
    curves: dict[str, Curve] = {}
    for name, (_, fit, times) in chosen.items():
        curves[name] = _rates(times)
        if fit.is_good:
            curves[_modelled(name)] = {s: s / fit.time(s) / 1e6 for s in _spread(times)}
    models = [_modelled(name) for name in chosen]
    return build_panel(title, "bytes", curves, _number(chosen), MEGABYTES, models, FROM_ZERO)


def _modelled(name: str) -> str:
    return f"{name}, by the model"


def _number(chosen: _Chosen) -> dict[str, int]:
    styles = number_styles([*chosen])
    return styles | {_modelled(name): style for name, style in styles.items()}


def _rates(times: Mapping[int, float]) -> dict[int, float]:
    return {s: s / times[s] / 1e6 for s in sorted(times) if s}


def _spread(times: Mapping[int, float]) -> list[int]:
    """Return the measured sizes and the powers of two between them."""
    sizes = sorted(size for size in times if size)
    doubled = (sizes[0] * 2**k for k in range(60))
    return sorted({*sizes, *(size for size in doubled if size < sizes[-1])})


def _name_poor(chosen: _Chosen) -> str:
    poor = [name for name, (_, fit, _) in chosen.items() if not fit.is_good]
    return f"model not drawn, off by more than a quarter: {', '.join(poor)}" if poor else ""
