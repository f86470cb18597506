"""The measurement of one case in one launch, whichever program made it; and who was held up in the launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from postprocess.base.formats import SECONDS, Unit


@dataclass(frozen=True, eq=False)
class Measurement:
    """The value that is judged, and what stands beside it."""

    #: Judged by all that compares: mpicost's steady time, OSU's fast quarter, IMB's mean. In ``unit``
    value: float
    unit: Unit = SECONDS
    #: mpicost's fastest trial, in ``unit``; None where a program tells no single trial
    best: float | None = None
    #: All that a reference benchmark prints
    figures: Mapping[str, float] = field(default_factory=dict)
    summary: TrialSummary | None = None  #: statistics of the trials, where there are trials
    record: CaseRecord | None = None  #: every trial, from mpicost
    #: How far apart the cores of neighbouring ranks were; None where nothing tells
    core_latency: CoreLatency | None = None
    #: The mean of the trials, by which slow trials that are few are seen: mpicost's is filtered, as the papers
    #: have it. None where it is what is judged.
    headline: float | None = None

    @property
    def unseen(self) -> bool:
        """Whether a program printed it as 0.00, as it does the rate of single bytes on a busy machine."""
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


#: Least and most of a time from core to core, in seconds: mpicost waits a millisecond for a word.
CORE_LATENCIES = (1e-10, 1e-3)


@dataclass(frozen=True)
class CoreLatency:
    """Time in which a word written by one rank is read by its neighbour, without MPI, in seconds.

    None where the two did not run at the same time.
    """

    before: float | None  #: the case
    after: float | None


@dataclass(frozen=True, eq=False)
class LaunchProvenance:
    """Provenance of one launch: of mpicost by its own word, of OSU and IMB by their witness's."""

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
        """What arrived damaged, by variable of the case: only mpicost tells it case by case."""
        return {}

    @property
    def lateness(self) -> Lateness | None:
        """Who was held up: only mpicost tells it."""
        return None


@dataclass(frozen=True)
class TrialSummary:
    """Statistics of one case in one launch, over the m trials that are neither dropped nor late.

    Times in the unit of the trials. ``kept + removed == m`` and ``removed <= candidates``.
    """

    headline: float  #: mean of the kept trials, as the papers have it
    steady: float  #: mean of the fastest quarter
    median: float
    minimum: float
    p90: float  #: linear between order statistics (Hyndman and Fan's type 7)
    p99: float
    kept: int
    candidates: int  #: trials above 1.8 medians
    removed: int  #: candidates that the filter took out, floor(m / 10) at most
    filter_saturated: bool  #: there were more candidates than the filter may remove
    bimodal: bool  #: a gap wider than 3 MAD parts the data, with 20 % or more on each side


@dataclass(frozen=True, eq=False)
class CaseRecord:
    """All trials of one case in one launch, in the order they were run. Times in seconds."""

    routine: str
    peer: int
    bytes: int
    t_max: NDArray[np.float64]  #: maximum over ranks of the local interval
    t_min: NDArray[np.float64]  #: minimum over ranks of the local interval
    t_global: NDArray[np.float64]  #: last stop minus first start on the common clock
    skew: NDArray[np.float64]  #: last start minus first start
    late: NDArray[np.bool_]  #: the trial missed its start window
    summary: TrialSummary  #: recomputed from ``t_max``
    pairs: tuple[PairTime, ...] = ()  #: all that played in a round of a tournament; else none
    #: Largest of the ranks' mean times; of trials back to back only
    slowest_mean: float | None = None
    core_latency: CoreLatency | None = None  #: None where no two ranks are neighbours
    wrong: str = ""  #: what arrived damaged, in one line; empty if all data was right

    @property
    def variable(self) -> str:
        """Name of the case inside its launch, the same as :attr:`Case.variable`."""
        label = f"{self.routine}@{self.peer}" if self.peer else self.routine
        return f"{label}_{self.bytes}"


@dataclass(frozen=True, eq=False)
class PairTime:
    """What two ranks that played with each other in a round of a tournament took, in seconds."""

    a: int  #: the lower rank
    b: int  #: the higher rank
    t: NDArray[np.float64]  #: per trial, the longer of the two local intervals, halved


Interruption = tuple[float, float]  #: when it was over and how long it took, in seconds


@dataclass(frozen=True)
class RankLateness:
    """One rank: the kernel's counts over the launch, and a probe of 40 ms after its last case. In seconds."""

    voluntary: int  #: context switches
    involuntary: int
    faults: int  #: minor page faults
    quantum: float  #: the fastest piece of equal work, about a microsecond
    span: float  #: of the probe
    lost: float  #: by pieces that took more than twice the fastest
    longest: float
    waited: float | None = None  #: ready to run, and another ran; None if the kernel does not tell
    interrupts: int | None = None  #: of the CPUs that it may run on; None if the kernel does not tell
    #: The longest, since the probe began; none of a rank that lost little
    detours: tuple[Interruption, ...] = ()
    holds: tuple[Interruption, ...] = ()  #: the longest waits of a millisecond and more, since 1970 (UTC)


@dataclass(frozen=True)
class Lateness:
    """All ranks of a launch; simulated ones tell ``reach`` alone."""

    watched: float  #: seconds that the kernel's counts are of
    ranks: tuple[RankLateness, ...] = ()  #: in their order
    #: of each host, in the order of ``hosts``: median round trip with partners, of 8 bytes and of 32 KiB, in s
    reach: tuple[tuple[float, float], ...] = ()
    partners: tuple[tuple[int, ...], ...] = ()  #: of each host that has ``reach``: numbers of hosts
