"""What a confirmation run measures: the routines that looked slow, each where it did, and on other nodes.

It goes to the checks as plain data within a choice (``Selection.choice``), so that one pass of ReFrame
measures again what looked slow in a night, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch
from site_configs.schedulers.registry import SCHEDULERS


@dataclass(frozen=True, order=True)
class RetestTarget:
    """A routine that is measured again at one place."""

    program: str
    partition: str
    environment: str
    layout: str  #: processes and processes per node, as ``4x2``
    routine: str
    avoided: tuple[str, ...] = ()  #: hosts that it was slow on
    wanted: tuple[str, ...] = ()  #: hosts that it must run on; empty for any


def select_launches_of_value(
    case: Case, fresh: Iterable[FinishedLaunch], value: int, median_of: int
) -> list[FinishedLaunch]:
    """Select the fresh launches whose median is one value of a case; empty if they are not all there.

    :param value: number of the value, from 0 on
    :param median_of: launches behind a value
    """
    own = sorted((run for run in fresh if case in run.launch.cases), key=lambda each: each.launch.number)
    some = own[value * median_of : (value + 1) * median_of]
    return some if len(some) == median_of else []


def build_retest_choice(
    cases: Iterable[Case],
    hosts: Mapping[Case, Sequence[str]],
    wanted: Mapping[Case, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """Build the choice that makes checks measure just these cases again.

    :param hosts: that each case ran on when it looked slow
    :param wanted: hosts that each case must run on
    """
    found = {
        RetestTarget(
            case.program,
            case.partition,
            case.environment,
            case.layout,
            case.routine,
            tuple(sorted(hosts.get(case, ()))),
            tuple(sorted((wanted or {}).get(case, ()))),
        )
        for case in cases
    }
    return [asdict(target) for target in sorted(found)]


def select_targets(choice: Sequence[Mapping[str, Any]], **place: str) -> list[RetestTarget]:
    """Select the retest targets of one place, of which some parts may not be known yet."""
    names = [field.name for field in fields(RetestTarget)]
    found = [RetestTarget(**{name: _hashable(entry[name]) for name in names}) for entry in choice]
    return [each for each in found if all(getattr(each, key) == place[key] for key in place)]


def list_avoided_nodes(targets: Iterable[RetestTarget], nodes: int, needed: int) -> list[str]:
    """List the nodes on which something was slow, as a scheduler knows them: without their domain.

    Empty if too few others are left.

    :param nodes: of the partition
    :param needed: by the job
    """
    avoided = {host.split(".")[0] for target in targets for host in target.avoided}
    return sorted(avoided) if nodes - len(avoided) >= needed else []


def list_wanted_nodes(targets: Iterable[RetestTarget]) -> list[str]:
    """List the nodes that a job must run on, as a scheduler knows them: without their domain."""
    return sorted({host.split(".")[0] for target in targets for host in target.wanted})


def describe_unavoidable_nodes(launches: Iterable[PlannedLaunch]) -> list[str]:
    """Describe, in a line each, the partitions whose confirmation run could not exclude the slow nodes."""
    able = " and ".join(scheduler.title for scheduler in SCHEDULERS if scheduler.exclude_option)
    return [
        f"{partition}: confirmation runs may have used the same nodes: excluding nodes is supported on "
        f"{able} only"
        for partition in sorted({launch.partition for launch in launches if launch.anywhere})
    ]


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
