"""Figures of COMMTEST of sessions: bandwidth of swaps over bytes, log-log and log-linear."""

from __future__ import annotations

from collections.abc import Mapping

from postprocess.base.formats import size as format_size
from postprocess.base.units import MEGABYTES
from postprocess.extensions.papers.common.data import PaperMeasurements
from postprocess.extensions.papers.common.paper_figure import (
    MOST_LINES,
    Curve,
    PaperFigure,
    build_panel,
    number_styles,
)
from postprocess.extensions.papers.commtest import contention
from postprocess.report.panels import FROM_ZERO, thin_values

LOG_LINEAR = (2**21, 2**17, 2**13)  #: largest sizes of the pictures with a linear bandwidth
MOST_COUNTS = 2  #: of processes, each a figure


def draw_swaps(measured: PaperMeasurements) -> list[PaperFigure]:
    """Draw the experiments of each MPI at one count of processes, then platform against platform."""
    swaps = contention.collect_swaps(measured)
    figures = []
    for each in swaps:
        for count in thin_values(each.counts, MOST_COUNTS):
            title = f"{each.machine}, {each.environment}, {each.conditions}, {count} processes"
            curves = {name: _bandwidths(times) for name, times in each.at(count).items()}
            figures.append(_swap_figure(title, curves))
    for experiment in (contention.ALONE, contention.NEIGHBOURS):
        platforms = {
            f"{each.machine}, {each.environment}": _bandwidths(each.at(each.counts[-1])[experiment])
            for each in swaps
            if each.counts and experiment in each.at(each.counts[-1])
        }
        if len(platforms) > 1:
            kept = {name: platforms[name] for name in list(platforms)[:MOST_LINES]}
            figures.append(_swap_figure(f"Platforms, {experiment}", kept))
    return figures


def _bandwidths(times: contention.Times) -> Curve:
    return {size: contention.compute_bandwidth(size, times[size]) / 1e6 for size in times}


def _swap_figure(title: str, curves: Mapping[str, Curve]) -> PaperFigure:
    styles = number_styles([*curves])
    panels = [build_panel("all sizes, log-log", "bytes", curves, styles, MEGABYTES)]
    for most in LOG_LINEAR:
        small = {n: {s: v for s, v in curve.items() if s <= most} for n, curve in curves.items()}
        if any(len(curve) > 2 for curve in small.values()):
            name = f"to {format_size(most)}, log-linear"
            panel = build_panel(name, "bytes", small, styles, MEGABYTES, scale=FROM_ZERO)
            panels.append(panel)
    return PaperFigure(f"{title}: bandwidth in both directions", tuple(filter(None, panels)))
