"""The models of Taboada et al. of everything that sessions measured, and what follows from them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.extensions.papers.common.data import UNUSABLE, PaperCell, PaperMeasurements
from postprocess.extensions.papers.common.linear_model import FACTORS, Growth, LinearModel
from postprocess.extensions.papers.taboada.model_fit import (
    ERRORS,
    FittedModel,
    find_model_size,
    fit_growth,
    fit_model,
    name_growth,
)
from postprocess.model.routines.mpicost import BARRIER
from postprocess.model.verdict import CaseResult

SEND = "send"  #: what the paper calls half a ping-pong
EFFICIENT = {"bcast", "barrier", "reduce_sum", "allreduce_sum", "scan_sum"}  #: of log2 p steps

Times = Mapping[int, float]  #: seconds by n


@dataclass(frozen=True, order=True)
class ModelPlace:
    """What a model over processes is of. ``routine`` is ``send`` for ping-pong."""

    machine: str
    environment: str
    routine: str
    cache: str
    sync: str

    @property
    def whose(self) -> str:
        """Machine, MPI and conditions, as a title has them."""
        return f"{self.machine}, {self.environment}, cache {self.cache}, sync {self.sync}"


@dataclass(frozen=True)
class MeasuredModel:
    """Times and models by process count. A count has times but no model if it has too few sizes."""

    place: ModelPlace
    times: Mapping[int, Times]
    fits: Mapping[int, FittedModel]
    between: str = ""  #: of a send: which processes

    @property
    def growth(self) -> LinearModel | None:
        """t0(p), ti(p) and tb(p); None of too few counts, or where not all follow from times alone."""
        parts = [fit_growth({p: getattr(m, name) for p, m in self.fits.items()}) for name in _PARTS]
        t0, ti, tb = parts
        if not all(fit.holds for fit in self.fits.values()):
            return None
        return LinearModel(t0, ti, tb) if t0 and ti and tb else None

    @property
    def startup(self) -> Growth | None:
        """t0(p) by the times of the smallest size, for a routine without a payload too."""
        least = {p: times[min(times)] for p, times in self.times.items()}
        return fit_growth(least)

    @property
    def error(self) -> float | None:
        """The largest error of t0, ti and tb as they are told; None without a model."""
        return max((fit.errors[ERRORS[0]] for fit in self.fits.values()), default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The parameters that grow with p where log2 p steps would do, as of a scan from rank to rank."""
        if self.place.routine not in EFFICIENT:
            return ()
        grown = {"t0": self.startup, "tb": self.growth.tb if self.growth else None}
        return tuple(name for name, each in grown.items() if each and name_growth(each) == "p")


_PARTS = ("t0", "ti", "tb")


def fit_measured(measured: PaperMeasurements) -> list[MeasuredModel]:
    """Fit a model to each routine on each machine with each MPI, where it was measured at enough sizes."""
    found: dict[ModelPlace, dict[int, dict[int, float]]] = {}
    for cell, results in sorted(measured.results.items()):
        if cell.operation.routine not in FACTORS or cell.processes < 2:
            continue
        time = compute_minimum(results)
        if time is not None:
            size = find_model_size(cell.operation.routine, cell.operation.bytes, cell.processes)
            found.setdefault(_place(cell), {}).setdefault(cell.processes, {})[size] = time
    models = []
    for place, counts in found.items():
        fits = {p: fit for p, times in counts.items() if (fit := fit_model(times))}
        if fits or place.routine == BARRIER:
            models.append(MeasuredModel(place, counts, fits))
    return sorted([*_fit_sends(measured), *models], key=lambda model: model.place)


def _fit_sends(measured: PaperMeasurements) -> list[MeasuredModel]:
    """Fit a model to the sends of each machine with each MPI, of two nodes if there are."""
    found = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for cache, sync in sorted({(o.cache, o.sync) for o in measured.operations}):
                chosen = measured.select_sends(machine, environment, cache, sync)
                if chosen is None:
                    continue
                layout, results = chosen
                least = {size: compute_minimum(each) for size, each in results.items()}
                times = {size: time for size, time in least.items() if time is not None}
                fit = fit_model(times, is_sent=True)
                if fit:
                    place = ModelPlace(machine, environment, SEND, cache, sync)
                    count = layout.processes
                    found.append(MeasuredModel(place, {count: times}, {count: fit}, str(layout)))
    return found


def compute_minimum(results: Sequence[CaseResult]) -> float | None:
    """Compute the paper's statistic: the least of all trials, for ping-pong the median over the partners.

    Of a case without trials its value. None if one is missing.
    """
    times = [
        (each.summary.minimum if each.summary else each.value)
        for each in results
        if each.value is not None and each.verdict not in UNUSABLE
    ]
    known = [time for time in times if time]
    return statistics.median(known) if known and len(known) == len(results) else None


def _place(cell: PaperCell) -> ModelPlace:
    operation = cell.operation
    return ModelPlace(
        cell.machine, cell.environment, operation.routine, operation.cache, operation.sync
    )
