"""Which routines a confirmation run measures again, and where.

The targets reach the checks as plain data within a choice (``Selection.choice``), so that one pass of ReFrame
measures again what looked slow in a night, and nothing else. A check imports this module at every start of
ReFrame, so it must import nothing slow.
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
    avoided: tuple[str, ...] = ()  #: hosts on which it was slow
    wanted: tuple[str, ...] = ()  #: hosts on which it must run; empty for any


def build_retest_choice(
    cases: Iterable[Case],
    hosts: Mapping[Case, Sequence[str]],
    wanted: Mapping[Case, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """Build the choice that makes checks measure just these cases again.

    :param hosts: hosts on which each case ran when it looked slow
    :param wanted: hosts on which each case must run
    """
    targets = {
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
    return [asdict(target) for target in sorted(targets)]


def select_targets(choice: Sequence[Mapping[str, Any]], **place: str) -> list[RetestTarget]:
    """Select the retest targets of one place, some parts of which may be unknown yet."""
    names = [field.name for field in fields(RetestTarget)]
    targets = [RetestTarget(**{name: _hashable(entry[name]) for name in names}) for entry in choice]
    return [target for target in targets if all(getattr(target, key) == place[key] for key in place)]


def list_avoided_nodes(targets: Iterable[RetestTarget], nodes: int, needed: int) -> list[str]:
    """List the nodes on which something was slow, as the scheduler names them: without domain.

    Empty if too few others are left.
    """
    avoided = {host.split(".")[0] for target in targets for host in target.avoided}
    return sorted(avoided) if nodes - len(avoided) >= needed else []


def list_wanted_nodes(targets: Iterable[RetestTarget]) -> list[str]:
    """List the nodes on which a job must run, as the scheduler names them: without domain."""
    return sorted({host.split(".")[0] for target in targets for host in target.wanted})


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
