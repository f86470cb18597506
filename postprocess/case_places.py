"""Where a case belongs: to one reference file, and to one launch."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from postprocess.cases import Case
from postprocess.plan import PlannedLaunch
from postprocess.summaries import Launch


class ReferencePlace(NamedTuple):
    """What one reference file is about."""

    system: str
    partition: str
    environment: str

    @classmethod
    def of(cls, case: Case) -> ReferencePlace:
        """That of the reference of a case."""
        return cls(case.system, case.partition, case.environment)

    @classmethod
    def of_file(cls, path: Path) -> ReferencePlace:
        """What a file is about, by where it lies."""
        return cls(path.parent.parent.name, path.parent.name, path.stem)


class LaunchPlace(NamedTuple):
    """What one launch measures all cases of."""

    partition: str  #: ``system:partition``
    environment: str
    program: str
    processes: int
    per_node: int

    @classmethod
    def of(cls, case: Case) -> LaunchPlace:
        """That of the launch of a case."""
        partition = f"{case.system}:{case.partition}"
        return cls(partition, case.environment, case.program, case.processes, case.per_node)

    @classmethod
    def of_launch(cls, launch: PlannedLaunch | Launch) -> LaunchPlace:
        """That of a launch, whether it is planned or over."""
        layout = launch.processes, launch.per_node
        return cls(launch.partition, launch.environment, launch.program, *layout)
