"""The measurement of one case in one launch by any program, and the lateness of the launch's ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from postprocess.base.formats import SECONDS, Unit


@dataclass(frozen=True, eq=False)
class Measurement:
    """The judged value and the figures that accompany it."""

    #: The value that is compared, in ``unit``: mpicost's steady time, OSU's fast quarter, IMB's mean.
    value: float
    unit: Unit = SECONDS
    #: mpicost's fastest trial, in ``unit``; None for a program that does not report single trials
    best: float | None = None
    #: All columns that a reference benchmark prints
    figures: Mapping[str, float] = field(default_factory=dict)
    summary: TrialSummary | None = None  #: statistics of the trials, if there are trials
    record: CaseRecord | None = None  #: every trial, from mpicost
    #: Latency between the cores of neighbouring ranks; None if unknown
    core_latency: CoreLatency | None = None
    #: The mean of the trials, which reveals a few slow trials: mpicost filters it as in the papers. None if the
    #: mean itself is judged.
    headline: float | None = None

    @property
    def unseen(self) -> bool:
        """Whether a program printed 0.00, as happens to the rate of single bytes on a busy machine."""
        return self.record is None and self.value == 0


def measure_trials(record: CaseRecord) -> Measurement:
    summary = record.summary
    return Measurement(
        summary.steady,
        best=summary.minimum,
        summary=summary,
        record=record,
        core_latency=record.core_latency,
        headline=summary.headline,
    )


#: Smallest and largest time from core to core, in seconds: mpicost waits a millisecond for a word.
CORE_LATENCIES = (1e-10, 1e-3)


@dataclass(frozen=True)
class CoreLatency:
    """Seconds until a word written by one rank is read by its neighbour, without MPI.

    None if the two did not run at the same time.
    """

    before: float | None  #: before the case
    after: float | None  #: after the case


@dataclass(frozen=True, eq=False)
class LaunchProvenance:
    """Provenance of one launch: recorded by mpicost itself, and for OSU and IMB by their witness."""

    run: dict[str, Any]  #: the run record as written

    @property
    def processes(self) -> int:
        return self.run["processes"]

    @property
    def per_node(self) -> int:
        return self.run["per_node"]

    @property
    def mpi_library(self) -> str:
        return self.run["mpi_library"]

    @property
    def wrong(self) -> dict[str, str]:
        """Damaged data by variable of the case: only mpicost reports it per case."""
        return {}

    @property
    def lateness(self) -> Lateness | None:
        """The ranks' lateness: only mpicost records it."""
        return None


@dataclass(frozen=True)
class TrialSummary:
    """Statistics of one case in one launch, over the m trials that are neither dropped nor late.

    Times are in the unit of the trials. ``kept + removed == m`` and ``removed <= candidates``.
    """

    headline: float  #: mean of the kept trials, as in the papers
    steady: float  #: mean of the fastest quarter
    median: float
    minimum: float
    p90: float  #: linear between order statistics (Hyndman and Fan's type 7)
    p99: float
    kept: int
    candidates: int  #: trials above 1.8 medians
    removed: int  #: candidates that the filter removed, at most floor(m / 10)
    filter_saturated: bool  #: whether there were more candidates than the filter may remove
    bimodal: bool  #: whether a gap wider than 3 MAD splits the data, with at least 20 % on each side


@dataclass(frozen=True, eq=False)
class CaseRecord:
    """All trials of one case in one launch, in the order of their execution. Times are in seconds."""

    routine: str
    peer: int
    bytes: int
    t_max: NDArray[np.float64]  #: maximum over the ranks of the local interval
    t_min: NDArray[np.float64]  #: minimum over the ranks of the local interval
    t_global: NDArray[np.float64]  #: last stop minus first start on the common clock
    skew: NDArray[np.float64]  #: last start minus first start
    late: NDArray[np.bool_]  #: whether the trial missed its start window
    summary: TrialSummary  #: recomputed from ``t_max``
    pairs: tuple[PairTime, ...] = ()  #: all pairs of a round of a tournament; else empty
    #: Largest mean time of a rank; only for trials back to back
    slowest_mean: float | None = None
    core_latency: CoreLatency | None = None  #: None if no two ranks are neighbours
    wrong: str = ""  #: description of damaged data, in one line; empty if all data was right

    @property
    def variable(self) -> str:
        """Name of the case inside its launch, the same as :attr:`Case.variable`."""
        label = f"{self.routine}@{self.peer}" if self.peer else self.routine
        return f"{label}_{self.bytes}"


@dataclass(frozen=True, eq=False)
class PairTime:
    """Times of two ranks that played with each other in a round of a tournament, in seconds."""

    a: int  #: the lower rank
    b: int  #: the higher rank
    t: NDArray[np.float64]  #: per trial, the longer of the two local intervals, halved


Interruption = tuple[float, float]  #: end and length, in seconds


@dataclass(frozen=True)
class RankLateness:
    """Kernel counts of one rank over the launch, and a probe of 40 ms after its last case, in seconds."""

    voluntary: int  #: context switches
    involuntary: int
    faults: int  #: minor page faults
    quantum: float  #: the fastest of many equal pieces of work, about a microsecond each
    span: float  #: length of the probe
    lost: float  #: seconds in pieces that took more than twice the fastest
    longest: float
    #: Time in which the rank was ready but another process ran; None if the kernel does not count it
    waited: float | None = None
    interrupts: int | None = None  #: on the CPUs that it may run on; None if the kernel does not count them
    #: The longest interruptions since the probe began; empty if the rank lost little
    detours: tuple[Interruption, ...] = ()
    holds: tuple[Interruption, ...] = ()  #: the longest waits of at least a millisecond, since 1970 (UTC)


@dataclass(frozen=True)
class Lateness:
    """All ranks of a launch. Simulated ones have ``reach`` only."""

    watched: float  #: seconds that the kernel's counts cover
    ranks: tuple[RankLateness, ...] = ()  #: in rank order
    #: median round trips by host, in the order of ``hosts``, to partners of 8 bytes and of 32 KiB, in s
    reach: tuple[tuple[float, float], ...] = ()
    partners: tuple[tuple[int, ...], ...] = ()  #: of each host that has ``reach``: numbers of hosts
