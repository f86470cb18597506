"""The trials and rounds that references were measured with: a night takes them, so that it compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.model.conditions import ROUNDS
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import PAPERS
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import read_provenance

PROGRAM = "mpicost"


def read_reference_trials(
    roots: Sequence[Path], system: str, partition: str, environment: str
) -> tuple[int, int] | None:
    """Read trials and rounds of a launch of mpicost behind the references of an environment; None if unknown.

    A file that cannot be read has no count here: whoever compares with it says what is wrong.
    """
    try:
        path = reference_file.find_reference_file(roots, system, partition, environment)
        told = read_provenance(path)["programs"].get(PROGRAM) if path else None
        method = provenance.list_calibrations(told)[0]["method"] if told else {}
        trials, rounds = method.get("trials"), method.get(ROUNDS, 1)
    except (UsageError, OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    if type(trials) is not int or type(rounds) is not int:
        return None
    return (trials, rounds) if trials > 1 and rounds > 0 else None


def describe_unusual_trials(planned: Iterable[PlannedLaunch]) -> list[str]:
    """Describe, a line per number, the environments measured with other trial counts than the papers'."""
    found: dict[int, set[str]] = {}
    for launch in planned:
        if launch.program == PROGRAM and launch.cases and launch.trials != PAPERS:
            found.setdefault(launch.trials, set()).add(launch.environment)
    return [
        f"{trials} trials of mpicost, not {PAPERS}: {', '.join(sorted(environments))}"
        for trials, environments in sorted(found.items())
    ]
