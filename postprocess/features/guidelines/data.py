"""Times of guideline launches, by place, setting and launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from postprocess.model.launch import FinishedLaunch
from postprocess.model.routines.guidelines import Measured


@dataclass(frozen=True, order=True)
class Place:
    """Where operations are compared with each other."""

    partition: str  #: ``system:partition``
    environment: str
    layout: str  #: processes and processes per node, as in ``4x2``

    @property
    def processes(self) -> int:
        """Processes of the layout."""
        return int(self.layout.partition("x")[0])

    @property
    def per_node(self) -> int:
        """Processes per node of the layout."""
        return int(self.layout.partition("x")[2])

    def __str__(self) -> str:
        return f"{self.partition}, {self.environment}, {self.layout}"


@dataclass(frozen=True)
class LaunchTimes:
    """What one launch measured, in seconds."""

    place: Place
    number: int  #: of the round
    setting: str  #: name of the settings that were tried; empty for the usual ones
    library: str
    exact: bool  #: whether time is simulated
    times: Mapping[Measured, float]


def extract_times(finished: Sequence[FinishedLaunch]) -> Iterator[LaunchTimes]:
    """Extract what the launches that ended well measured: of each case the median of the trials, as PGMPI does.

    The papers' mean keeps what exceeds a tenth of the trials. Long calls are interrupted more often than short
    ones, so that on a machine that others use it would find every operation too slow for its size.
    """
    for each in finished:
        launch = each.launch
        times = {
            Measured(case.routine, case.bytes): measured.summary.median
            for case in launch.cases
            if (measured := each.measurements.get(case.variable)) and measured.summary
        }
        if times:
            place = Place(launch.partition, launch.environment, launch.cases[0].layout)
            library = str(each.run.get("mpi_library", ""))
            yield LaunchTimes(place, launch.number, launch.start, library, launch.exact, times)
