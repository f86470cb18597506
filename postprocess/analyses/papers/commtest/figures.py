"""Figures of COMMTEST of sessions: bandwidth of swaps over bytes, logarithmic and linear."""

from __future__ import annotations

from collections.abc import Mapping

from postprocess.analyses.papers.common.data import PaperMeasurements
from postprocess.analyses.papers.common.paper_figure import (
    MOST_LINES,
    Curve,
    PaperFigure,
    build_panel,
    number_styles,
)
from postprocess.analyses.papers.commtest import contention
from postprocess.base.formats import size as format_size
from postprocess.base.units import MEGABYTES
from postprocess.report.panels import thin_values

LOG_LINEAR = (2**21, 2**17, 2**13)  #: largest sizes of the pictures with linear axes


def draw_swaps(measured: PaperMeasurements) -> list[PaperFigure]:
    swaps = contention.collect_swaps(measured)
    figures = []
    for each in swaps:
        curves = _swap_curves(each)
        names = list(curves)[:MOST_LINES]
        kept = {name: curves[name] for name in names}
        figures.append(_swap_figure(f"{each.machine}, {each.environment}, {each.conditions}", kept))
    for experiment in (contention.ALONE, contention.NEIGHBOURS):
        platforms = {
            f"{each.machine}, {each.environment}": _bandwidths(_at_most(each, experiment))
            for each in swaps
            if experiment in each.times
        }
        if len(platforms) > 1:
            kept = {name: platforms[name] for name in list(platforms)[:MOST_LINES]}
            figures.append(_swap_figure(f"Platforms, {experiment}", kept))
    return figures


def _swap_curves(swaps: contention.Swaps) -> dict[str, Curve]:
    """Return the bandwidth of each experiment: alone, and at the most processes beside others."""
    curves = {contention.ALONE: _bandwidths(_first(swaps))}
    for name, counts in swaps.ordered.items():
        if name != contention.ALONE:
            for count in thin_values(sorted(counts), 2):
                curves[f"{name}, {count} processes"] = _bandwidths(counts[count])
    return curves


def _first(swaps: contention.Swaps) -> contention.Times:
    """Return the times of one pair at the fewest processes."""
    return swaps.alone_at(0)


def _at_most(swaps: contention.Swaps, experiment: str) -> contention.Times:
    """Return the times of an experiment at the most processes; of one pair at the fewest."""
    counts = swaps.times[experiment]
    return _first(swaps) if experiment == contention.ALONE else counts[max(counts)]


def _bandwidths(times: contention.Times) -> Curve:
    return {size: contention.compute_bandwidth(size, times[size]) / 1e6 for size in times}


def _swap_figure(title: str, curves: Mapping[str, Curve]) -> PaperFigure:
    styles = number_styles([*curves])
    panels = [build_panel("all sizes, logarithmic", "bytes", curves, styles, MEGABYTES)]
    for most in LOG_LINEAR:
        small = {n: {s: v for s, v in curve.items() if s <= most} for n, curve in curves.items()}
        if any(len(curve) > 2 for curve in small.values()):
            name = f"to {format_size(most)}, linear"
            panel = build_panel(name, "bytes", small, styles, MEGABYTES, linear=True)
            panels.append(panel)
    return PaperFigure(f"{title}: bandwidth in both directions", tuple(filter(None, panels)))
