"""The model of Taboada et al., fitted to measured times over sizes and processes, and its figures.

T(n) = t0 + tb n + ti tb n / (t0 + tb n): t0 is the time of an empty message; tb and ti are slope and
intercept of T - t0 over n for long messages. The paper takes them from a line through long messages and does
not say which are long; here all of the form is fitted, by least relative errors. Where an MPI changes its
protocol one form does not do: then each segment (:mod:`postprocess.stats.curves`) has its own ti and
tb. Hockney's is t0 + tb n. Fitted to sizes of 0 and powers of two; how good a model is tell the other sizes,
which it has not seen. Seconds, bytes.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from postprocess.base.formats import MEGABYTES, SECONDS, plural
from postprocess.extensions.papers import figures
from postprocess.extensions.papers.linear_model import FACTORS, TERMS, Growth, LinearModel
from postprocess.extensions.papers.measurements import PaperMeasurements, Place, compute_time
from postprocess.model.routines.mpicost import BARRIER
from postprocess.report.panels import FROM_ZERO, Panel
from postprocess.stats.curves import Segment, compute_mean_error, find_segment, fit_line, fit_segments

#: Operations whose n is that of all processes' blocks together; of all others it is mpicost's ``bytes``
IN_ALL = frozenset({"scatter", "gather", "allgather", "alltoall", "reduce_scatter_sum"})
LEAST_SIZES = 4  #: beside the empty message, to which a model is fitted
LEAST_COUNTS = 3  #: of processes, to which a growth is fitted
GOOD = 0.25  #: average relative error beyond which nothing is drawn or derived
SKIPPED = 0.5  #: of the time of the next size: a collective call without data that takes less sent nothing
FLAT = 0.05  #: relative: what differs less over the processes does not grow with them
#: Of one t0, ti and tb as in print; with a ti and tb for each segment; of Hockney's best t0 + tb n; of the
#: same with the model's t0 and tb
ERRORS = ("model", "in segments", "Hockney", "Hockney, model's t0 and tb")
BOUND = 1e-3  #: of t0: so near to -t0, or a tb so near to none, no fit has found ti


def find_model_size(routine: str, size: int, processes: int) -> int:
    """Find Taboada's n of a size of mpicost, for a routine or what it is put together to replace."""
    return size * processes if routine.partition("_as_")[0] in IN_ALL else size


@dataclass(frozen=True)
class FittedModel:
    """The model at one process count, by the sizes that were measured."""

    t0: float
    ti: float
    tb: float
    segments: tuple[Segment, ...]  #: in each, ``start`` is t0 + ti of the segment and ``slope`` its tb
    errors: Mapping[str, float]  #: of each of ``ERRORS``: average absolute relative error
    held_out: int  #: sizes behind the errors; 0 where there were none: then they are of the fitted sizes
    hockney: Segment  #: his t0 and tb of least relative errors

    def time(self, size: float, processes: int = 0) -> float:
        """Compute the time of ``size`` bytes in seconds, by the segment it lies in; ``processes`` as fitted."""
        if self.is_parted:
            return _in_segments(self.t0, self.segments, size)
        return _form(self.t0, self.ti, self.tb, size)

    @property
    def error(self) -> float:
        """The average relative error of :meth:`time`."""
        return self.errors[ERRORS[self.is_parted]]

    @property
    def is_parted(self) -> bool:
        """Whether a ti and tb for each segment is better than one for all, by the sizes that judge."""
        return len(self.segments) > 1 and self.errors[ERRORS[1]] <= self.errors[ERRORS[0]]

    @property
    def is_good(self) -> bool:
        """Whether its times may be drawn and derived from."""
        return self.error <= GOOD

    @property
    def is_degenerate(self) -> bool:
        """Whether ti lies at the end of what it may be, where it says nothing."""
        return self.ti <= -(1 - BOUND) * self.t0 or self.tb <= 0

    @property
    def holds(self) -> bool:
        """Whether its t0, ti and tb may be told: one form fits all sizes."""
        return self.errors[ERRORS[0]] <= GOOD and not self.is_degenerate

    @property
    def breaks(self) -> list[tuple[float, float]]:
        """Where the protocol changes: the last size of one and the first of the next."""
        return [(a.last, b.first) for a, b in itertools.pairwise(self.segments)]


def fit_model(times: Mapping[int, float], is_sent: bool = False) -> FittedModel | None:
    """Fit the model to times in seconds by size in bytes; None for too few sizes of 0 or powers of two.

    :param is_sent: whether an empty message is sent all the same, as in ping-pong: its time is then always t0
    """
    fitted = {size: times[size] for size in sorted(times) if size & (size - 1) == 0}
    sizes = [size for size in fitted if size]
    if not is_sent and 0 in fitted and sizes and fitted[0] < SKIPPED * fitted[sizes[0]]:
        del fitted[0]
    if len(sizes) < LEAST_SIZES:
        return None
    t0 = fitted[min(fitted)]
    segments = _refine(t0, fitted)
    hockney = fit_line([*fitted], [*fitted.values()])
    whole = _fit_form(t0, hockney, fitted)
    ti, tb = whole.start - t0, whole.slope
    held_out = [size for size in times if size and size not in fitted]
    judged = held_out or sizes
    predicted = (
        [_form(t0, ti, tb, size) for size in judged],
        [_in_segments(t0, segments, size) for size in judged],
        [hockney.time(size) for size in judged],
        [t0 + tb * size for size in judged],
    )
    measured = [times[size] for size in judged]
    errors = {name: compute_mean_error(told, measured) for name, told in zip(ERRORS, predicted, strict=True)}
    return FittedModel(t0, ti, tb, segments, errors, len(held_out), hockney)


def fit_growth(values: Mapping[int, float]) -> Growth | None:
    """Fit c0 + c1 f(p) by least squares, f(p) being ceil(log2 p) or p, whichever fits better; None of too few.

    What differs over the processes by less than ``FLAT`` of its mean is constant.
    """
    counts = sorted(values)
    if len(counts) < LEAST_COUNTS:
        return None
    y = np.array([values[count] for count in counts])
    mean = float(y.mean())
    if np.abs(y - mean).max() <= FLAT * abs(mean):
        return Growth(f"{mean:.4g}", ((mean, ""),))
    fits = [(_fit_term(counts, y, name), name) for name in ("ceil(log2 p)", "p")]
    (_, c0, c1), name = min(fits, key=lambda fit: fit[0][0])
    text = f"{c0:.4g}{'-' if c1 < 0 else '+'}{abs(c1):.4g}*{name}"
    return Growth(text, ((c0, ""), (c1, name)))


def name_growth(growth: Growth) -> str:
    """Name the term with which something grows; ``1`` for nothing."""
    return next((name for _, name in growth.terms if name), "1")


def _fit_term(counts: Sequence[int], y: np.ndarray, name: str) -> tuple[float, float, float]:
    """Return the sum of squared relative errors, c0 and c1."""
    weight = 1 / np.where(y == 0, 1.0, np.abs(y))
    grows = np.array([TERMS[name](count) for count in counts])
    rows = np.stack([weight, grows * weight], axis=1)
    found = np.linalg.lstsq(rows, y * weight, rcond=None)[0]
    errors = rows @ found - y * weight
    return float(errors @ errors), float(found[0]), float(found[1])


def _form(t0: float, ti: float, tb: float, size: float) -> float:
    moving = tb * size
    return t0 + moving + (ti * moving / (t0 + moving) if moving else 0.0)


def _in_segments(t0: float, segments: Sequence[Segment], size: float) -> float:
    part = find_segment(segments, size)
    return _form(t0, part.start - t0, part.slope, size)


def _refine(t0: float, times: Mapping[int, float]) -> tuple[Segment, ...]:
    """Find the segments, and in each the ti and tb of the form that fit its times best."""
    return tuple(
        _fit_form(t0, part, {size: time for size, time in times.items() if part.first <= size <= part.last})
        for part in fit_segments([*times], [*times.values()])
    )


def _fit_form(t0: float, part: Segment, times: Mapping[int, float]) -> Segment:
    """Return the segment with ``start`` t0 + ti and ``slope`` tb of least relative errors."""
    x, y = np.array([*times], float), np.array([*times.values()])
    scale = np.array([t0, float(y[-1]) / max(float(x[-1]), 1.0)])

    def errors(told: np.ndarray) -> np.ndarray:
        ti, tb = told * scale
        moving = tb * x
        return np.asarray((t0 + moving + ti * moving / (t0 + moving)) / y - 1)

    first = np.array([max(part.start - t0, -0.9 * t0), part.slope]) / scale
    found = scipy.optimize.least_squares(errors, first, bounds=([-1.0, 0.0], [math.inf, math.inf])).x * scale
    return Segment(part.first, part.last, t0 + float(found[0]), float(found[1]))


SEND = "send"  #: what the paper calls half a ping-pong
EFFICIENT = {"bcast", "barrier", "reduce_sum", "allreduce_sum", "scan_sum"}  #: of log2 p steps

Times = Mapping[int, float]  #: seconds by n


@dataclass(frozen=True)
class MeasuredModel:
    """Times and models of a routine by process count. A count with too few sizes has times and no model."""

    place: Place
    routine: str  #: ``send`` for ping-pong
    times: Mapping[int, Times]
    fits: Mapping[int, FittedModel]
    between: str = ""  #: of a send: which processes

    @property
    def growth(self) -> LinearModel | None:
        """t0(p), ti(p) and tb(p); None of too few counts, or where not all follow from times alone."""
        if not all(fit.holds for fit in self.fits.values()):
            return None
        t0, ti, tb = (
            fit_growth({p: getattr(fit, name) for p, fit in self.fits.items()}) for name in ("t0", "ti", "tb")
        )
        return LinearModel(t0, ti, tb) if t0 and ti and tb else None

    @property
    def startup(self) -> Growth | None:
        """t0(p) by the times of the smallest size, for a routine without a payload too."""
        return fit_growth({p: times[min(times)] for p, times in self.times.items()})

    @property
    def error(self) -> float | None:
        """The largest error of t0, ti and tb as they are told; None without a model."""
        return max((fit.errors[ERRORS[0]] for fit in self.fits.values()), default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The parameters that grow with p where log2 p steps would do, as of a scan from rank to rank."""
        if self.routine not in EFFICIENT:
            return ()
        grown = {"t0": self.startup, "tb": self.growth.tb if self.growth else None}
        return tuple(name for name, each in grown.items() if each and name_growth(each) == "p")


def fit_measured(measured: PaperMeasurements) -> list[MeasuredModel]:
    """Fit a model to each routine on each machine with each MPI, where it was measured at enough sizes."""
    found: dict[tuple[Place, str], dict[int, Times]] = {}
    for (place, routine, count), times in measured.group_sizes(least=True).items():
        if routine in FACTORS and count > 1:
            told = {find_model_size(routine, size, count): time for size, time in times.items()}
            found.setdefault((place, routine), {})[count] = told
    models = [*filter(None, (_fit_sends(measured, place) for place in measured.places))]
    for (place, routine), counts in found.items():
        fits = {p: fit for p, times in counts.items() if (fit := fit_model(times))}
        if fits or routine == BARRIER:
            models.append(MeasuredModel(place, routine, counts, fits))
    order = [*FACTORS]
    return sorted(models, key=lambda model: (model.place, order.index(model.routine)))


def _fit_sends(measured: PaperMeasurements, place: Place) -> MeasuredModel | None:
    """Fit a model to the sends at a place, of two nodes if there are."""
    chosen = measured.select_sends(place)
    if chosen is None:
        return None
    layout, results = chosen
    times = {
        size: time for size, each in results.items() if (time := compute_time(each, least=True)) is not None
    }
    fit = fit_model(times, is_sent=True)
    count = layout.processes
    return MeasuredModel(place, SEND, {count: times}, {count: fit}, str(layout)) if fit else None


LINES = ("measured", "model", "Hockney")
BY_MODEL = ", by the model"
#: Of figures 3 and 4, in their order, and then what the paper does not draw
COLLECTIVE = (
    *("bcast", "reduce_sum", "scatter", "alltoall"),
    *("gather", "allgather", "allreduce_sum", "reduce_scatter_sum", "scan_sum"),
)


@dataclass(frozen=True)
class ChosenModel:
    """The model of one MPI at the process count that is drawn, and the times behind it in seconds by bytes."""

    count: int
    fit: FittedModel
    times: Mapping[int, float]

    @property
    def sizes(self) -> list[int]:
        """The measured sizes and the powers of two between them: where a model is drawn."""
        sizes = sorted(size for size in self.times if size)
        doubled = (sizes[0] * 2**k for k in range(60))
        return sorted({*sizes, *(size for size in doubled if size < sizes[-1])})

    @property
    def rates(self) -> figures.Curve:
        """Measured MB/s by bytes."""
        return {size: size / self.times[size] / 1e6 for size in sorted(self.times) if size}

    @property
    def modelled_rates(self) -> figures.Curve:
        """MB/s by the model, by bytes."""
        return {size: size / self.fit.time(size) / 1e6 for size in self.sizes}


_Chosen = Mapping[str, ChosenModel]  #: by MPI


def draw_models(measured: PaperMeasurements) -> list[figures.PaperFigure]:
    groups: dict[tuple[str, str], dict[str, list[MeasuredModel]]] = {}
    for model in fit_measured(measured):
        machine, _, cache, sync = model.place
        routines = groups.setdefault((machine, f"cache {cache}, sync {sync}"), {})
        routines.setdefault(model.routine, []).append(model)
    drawn = []
    for (machine, conditions), routines in groups.items():
        title = f"{machine}, {conditions}"
        if sends := _choose(routines.get(SEND, ())):
            drawn += [_compare(f"{title}: bandwidth of a send (Fig. 1)", sends)]
            drawn += [_draw_sends(f"{title}: latency and bandwidth of a send (Fig. 2)", sends)]
        chosen = {name: _choose(routines.get(name, ())) for name in COLLECTIVE}
        drawn.append(_draw_collective(f"{title}: bandwidth n / T(n) (Figs. 3 and 4)", chosen))
    return drawn


def _choose(models: Sequence[MeasuredModel]) -> _Chosen:
    """Choose the most processes at which all MPIs have a model, as the paper does; else of each its own."""
    kept = [model for model in models if model.fits][: figures.MOST_LINES]
    shared = set.intersection(*(set(model.fits) for model in kept)) if kept else set()
    found = {}
    for model in kept:
        count = max(shared or model.fits)
        found[model.place.environment] = ChosenModel(count, model.fits[count], model.times[count])
    return found


def _compare(title: str, chosen: _Chosen) -> figures.PaperFigure:
    """Draw a panel for each MPI: measured, the model, and Hockney's."""
    panels = []
    for name, each in chosen.items():
        curves = {LINES[0]: each.rates}
        if each.fit.is_good:
            hockney = {size: size / each.fit.hockney.time(size) / 1e6 for size in each.sizes}
            curves |= {figures.Modelled(LINES[1]): each.modelled_rates, figures.Modelled(LINES[2]): hockney}
        panels.append(figures.build_panel(name, "bytes", curves, LINES, MEGABYTES, FROM_ZERO))
    return figures.build_figure(title, panels, _name_poor(chosen))


def _draw_sends(title: str, chosen: _Chosen) -> figures.PaperFigure:
    """Draw latency, logarithmic, and bandwidth of all MPIs: measured, and by the models."""
    latency: dict[str, figures.Curve] = {}
    for name, each in chosen.items():
        latency[name] = {size: time for size, time in each.times.items() if size}
        if each.fit.is_good:
            latency[figures.Modelled(name, BY_MODEL)] = {size: each.fit.time(size) for size in each.sizes}
    panels = [
        figures.build_panel("latency", "bytes", latency, chosen, SECONDS),
        _rate_panel("bandwidth", chosen),
    ]
    return figures.build_figure(title, panels, _name_poor(chosen))


def _draw_collective(title: str, routines: Mapping[str, _Chosen]) -> figures.PaperFigure:
    panels, poor = [], []
    for routine, chosen in routines.items():
        if chosen:
            counts = sorted({model.count for model in chosen.values()})
            panels.append(_rate_panel(f"{routine}, {'/'.join(map(str, counts))} processes", chosen))
            poor += [f"{routine} of {name}" for name, each in chosen.items() if not each.fit.is_good]
    remark = f"{plural(len(poor), 'model')} off by more than a quarter, not drawn: {', '.join(poor)}"
    return figures.build_figure(title, panels, remark if poor else "")


def _rate_panel(title: str, chosen: _Chosen) -> Panel | None:
    curves: dict[str, figures.Curve] = {}
    for name, each in chosen.items():
        curves[name] = each.rates
        if each.fit.is_good:
            curves[figures.Modelled(name, BY_MODEL)] = each.modelled_rates
    return figures.build_panel(title, "bytes", curves, chosen, MEGABYTES, FROM_ZERO)


def _name_poor(chosen: _Chosen) -> str:
    poor = [name for name, each in chosen.items() if not each.fit.is_good]
    return f"model not drawn, off by more than a quarter: {', '.join(poor)}" if poor else ""
