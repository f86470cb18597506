"""What the passes of a comparison say of what is to be measured next, and where."""

from __future__ import annotations

from postprocess.analyses.compare.data import SharedCase, StoredComparison
from postprocess.analyses.compare.judge import ComparisonVerdict, judge_comparison

LaunchKind = tuple[str, str, str]  #: partition, program and layout of a job


def list_block_nodes(stored: StoredComparison, block: int) -> dict[LaunchKind, tuple[str, ...]]:
    """List the nodes of the last launches of a block: the next ones are to run on the same."""
    found: dict[LaunchKind, tuple[str, ...]] = {}
    for each in stored.passes:
        for launch in each.launches if each.block == block else ():
            if nodes := launch.place.get("nodes"):
                for key in launch.cases:
                    found[kind_of(SharedCase.from_key(key))] = tuple(nodes.split(","))
    return found


def kind_of(case: SharedCase) -> LaunchKind:
    """Return what all cases of a job have in common."""
    return case.partition, case.program, case.layout


def list_open_cases(stored: StoredComparison) -> list[SharedCase]:
    """List the cases that still need pairs, and the controls; none if all are decided or have had each look."""
    judged = judge_comparison(stored)
    still = [
        each.case
        for each in judged.cases
        if each.verdict == ComparisonVerdict.UNDECIDED and each.pairs < stored.looks[-1]
    ]
    return [*still, *(each.case for each in judged.controls)] if still else []


def is_exact(stored: StoredComparison) -> bool:
    """Return whether time is simulated, where no MPI library tells anything."""
    launches = (launch for each in stored.passes for launch in each.launches)
    return any(said.exact for launch in launches for said in launch.cases.values())


def is_timed(key: str) -> bool:
    """Return whether the case of a key times MPI calls, as the controls do not."""
    return not SharedCase.from_key(key).is_control
