"""What flushing the caches costs a session, told before it is paid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postprocess.base.formats import duration
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import FLUSH
from site_configs.topology.flush import measure_flush_seconds


def flushes(launch: PlannedLaunch) -> bool:
    """Return whether a launch walks through memory before each trial. Simulated processors have no caches."""
    return not launch.exact and any(case.cache == FLUSH for case in launch.cases)


def describe_flush(planned: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Describe how long a flush takes here and how many there are; empty if no launch flushes."""
    trials = sum(launch.trials * len(launch.cases) for launch in planned if flushes(launch))
    if trials:
        each = measure_flush_seconds()
        yield (
            f"--cache flush: a walk through the caches takes {1e3 * each:.3g} ms here, "
            f"{duration(each * trials)} before {trials} trials; --cache evict takes a small part of that"
        )
