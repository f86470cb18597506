"""The statistics of the trials of a launch: the papers' headline, and the steady time. Times in and times out.

The headline is the filtered mean of Luecke et al. (2001). The first trial is dropped. Of the m values left,
those above 1.8 times their median are spikes. The largest spikes are removed, at most a tenth of the data
(Luecke et al. 2003 settle that the tenth is of the data). The rest is averaged.

The steady time is the mean of the fastest quarter of the same m values. Whatever disturbs a call makes it
slower, so the fast trials stay where they were; a call that became slower is slower in every trial. Taboada et
al. (2003, section 3) go further and take the minimum. The mean of a quarter differs least between launches of
all that were tried (docs/statistics.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from postprocess.model.measurement import TrialSummary

SPIKE_FACTOR = 1.8
CAP_DIVISOR = 10  #: at most one value in ten is removed
SIDE_DIVISOR = 5  #: each mode of bimodal data holds at least one value in five
GAP_IN_MAD = 3.0
GAP_IN_RESOLUTIONS = 2.0
QUARTER = 4  #: the fastest trials, one in four, make the steady time


def summarise_trials(
    trials: NDArray[np.float64],
    late: NDArray[np.bool_] | None = None,
    dropped: int = 1,
    resolution: float = 0.0,
) -> TrialSummary:
    """Compute headline and health of the trials of one case.

    ``trials``: shape (n,), in the order they were run; ``late``: shape (n,), true where a trial
    missed its start window; ``dropped``: leading trials to leave out; ``resolution``: of the timer,
    in the unit of ``trials``. Raises ValueError if no trial is left or one is not finite.
    """
    values = np.sort(trials[_entering(trials, late, dropped)])
    median = float(np.median(values))
    candidates, removed = _spikes(values, median)
    kept = values.size - removed
    return TrialSummary(
        headline=float(np.mean(values[:kept])),
        steady=float(np.mean(values[: -(-values.size // QUARTER)])),
        median=median,
        minimum=float(values[0]),
        p90=float(np.percentile(values, 90)),
        p99=float(np.percentile(values, 99)),
        kept=kept,
        candidates=candidates,
        removed=removed,
        filter_saturated=candidates > removed,
        bimodal=_is_bimodal(values, median, resolution),
    )


def bound_slowest_mean(
    t_max: NDArray[np.float64], t_min: NDArray[np.float64], ranks: int, dropped: int = 1
) -> tuple[float, float]:
    """Bound the largest of the ranks' means, from the longest and shortest time of each trial.

    OSU and IMB average each rank's times over the trials, without a filter, and print the largest of these
    means. It is at most the mean of the maxima, and at least the mean of all ranks. That mean is at least
    (max + (p - 1) min) / p: one rank had the longest time, and none had less than the shortest.

    ``t_max``, ``t_min``: shape (n,), in the order they were run; ``ranks``: how many took part;
    ``dropped``: leading trials to leave out. The result has the unit of the trials. Raises ValueError if
    no trial is left, or the shapes differ.
    """
    if t_max.shape != t_min.shape or t_max.size <= dropped or ranks < 1:
        raise ValueError("longest and shortest times of the same trials are needed")
    most, least = float(np.mean(t_max[dropped:])), float(np.mean(t_min[dropped:]))
    return (most + (ranks - 1) * least) / ranks, most


def mark_removed_trials(
    trials: NDArray[np.float64], late: NDArray[np.bool_] | None = None, dropped: int = 1
) -> NDArray[np.bool_]:
    """Mark the trials that do not enter the headline: the dropped, the late and the removed spikes.

    Shapes and errors as in :func:`summarise_trials`; the result has the shape of ``trials``.
    """
    entering = np.flatnonzero(_entering(trials, late, dropped))
    order = entering[np.argsort(trials[entering], kind="stable")]
    _, removed = _spikes(trials[order], float(np.median(trials[order])))
    excluded = np.ones(trials.shape, dtype=bool)
    excluded[order[: order.size - removed]] = False
    return excluded


def _entering(trials: NDArray[np.float64], late: NDArray[np.bool_] | None, dropped: int) -> NDArray[np.bool_]:
    """Return a mask of the m trials that the statistics are taken over."""
    if trials.ndim != 1 or (late is not None and late.shape != trials.shape):
        raise ValueError("trials and late flags must be two lists of the same length")
    if dropped < 0:
        raise ValueError(f"cannot drop {dropped} trials")
    entering = np.ones(trials.shape, dtype=bool) if late is None else ~late.astype(bool)
    entering[:dropped] = False
    if not entering.any():
        raise ValueError(f"none of {trials.size} trials is left without the dropped and late ones")
    if not np.isfinite(trials[entering]).all():
        raise ValueError("a trial is not a finite number")
    return entering


def _spikes(values: NDArray[np.float64], median: float) -> tuple[int, int]:
    """Count the candidates above the threshold, and how many of them the filter removes."""
    candidates = int(np.count_nonzero(values > SPIKE_FACTOR * median))
    return candidates, min(candidates, values.size // CAP_DIVISOR)


def _is_bimodal(ordered: NDArray[np.float64], median: float, resolution: float) -> bool:
    """Return whether some gap with a fifth of the data on each side is wider than 3 MAD and 2 ticks."""
    side = -(-ordered.size // SIDE_DIVISOR)
    gaps = np.diff(ordered)[side - 1 : ordered.size - side]
    if not gaps.size:
        return False
    deviation = float(np.median(np.abs(ordered - median)))
    limit = max(GAP_IN_MAD * deviation, GAP_IN_RESOLUTIONS * resolution)
    return bool(gaps.max() > limit)
