"""Which routines a confirmation run measures again, and where.

It goes to the checks as plain data within a choice (``Selection.choice``), so that one pass of ReFrame
measures again what looked slow in a night, and nothing else. A check imports this module each time that ReFrame
starts: it needs nothing that takes long to import.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from postprocess.model.case import Case


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
    """
    avoided = {host.split(".")[0] for target in targets for host in target.avoided}
    return sorted(avoided) if nodes - len(avoided) >= needed else []


def list_wanted_nodes(targets: Iterable[RetestTarget]) -> list[str]:
    """List the nodes that a job must run on, as a scheduler knows them: without their domain."""
    return sorted({host.split(".")[0] for target in targets for host in target.wanted})


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
