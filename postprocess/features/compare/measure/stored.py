"""Two stored sessions, or nights, held against each other: nothing is measured, and nothing proven safe."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.formats import first_of, utc_now
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare import data
from postprocess.features.compare.data import (
    NEW,
    OLD,
    ComparedSide,
    ComparisonHeader,
    ComparisonPass,
    LaunchValues,
    SharedCase,
)
from postprocess.features.compare.measure.bench import find_case_noise
from postprocess.features.compare.measure.run import (
    conclude_comparison,
    is_finished,
    name_new_folder,
    report_differences,
)
from postprocess.features.compare.measure.sides import describe_run_place
from postprocess.features.compare.measure.stored_sides import StoredCase, StoredSide, read_side
from postprocess.model.conditions import library_identity

NAMED = 3  #: things that a line names
NO_PAIR = 1  #: block of all passes: none is a trial run


@dataclass(frozen=True)
class StoredDemand:
    """What the user asked for."""

    old: str  #: a session or a day, with ``:ENVIRONMENT`` to choose one
    new: str
    margins: tuple[float, float, float]  #: as fractions, by class of sizes
    choice: Mapping[str, Any]  #: of cases, by variables of the checks
    command: Sequence[str]
    directory: Path | None = None
    json_file: Path | None = None


def compare_stored(work: WorkDirectory, demand: StoredDemand, progress: Progress) -> int:
    """Compare stored sessions. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend
    """
    sides = {
        name: read_side(work, word, demand.choice) for name, word in ((OLD, demand.old), (NEW, demand.new))
    }
    require_comparable(sides[OLD], sides[NEW])
    mixed = any(len(each.environments) > 1 for each in sides.values())
    header = describe_stored(demand, sides, mixed)
    report_differences(header, progress)
    folder = demand.directory or name_new_folder(work, header)
    path = folder / data.FILE
    if path.exists() or is_finished(folder):
        raise UsageError(f"{folder}: holds a comparison; choose another --output")
    data.append_record(path, header)
    for name, side in sides.items():
        for number, session in enumerate(side.sessions):
            launches = collect_launches([r for r in side.rows if r.session == session], mixed)
            data.append_record(path, ComparisonPass(NO_PAIR, number, name, session, 0.0, launches))
    measured = {name: group_measured(side, mixed) for name, side in sides.items()}
    data.append_record(path, data.KnownNoise(find_case_noise(work, measured)))
    return conclude_comparison(folder, progress, demand.json_file)


def require_comparable(old: StoredSide, new: StoredSide) -> None:
    """Require that both sides are of one machine, and that it is known which MPI to hold against which.

    :raises UsageError: if they are not, or it is not
    """
    if len(old.systems | new.systems) > 1:
        both = first_of(sorted(old.systems | new.systems), NAMED)
        raise UsageError(f"{old.label} and {new.label}: are of {both}; ./plumbline papers compares machines")
    several = len(old.environments) > 1 or len(new.environments) > 1
    if several and not old.environments & new.environments:
        raise UsageError(
            f"{old.label} and {new.label}: have no environment in common; choose one of each side, as "
            f"{old.label.partition(':')[0]}:{min(old.environments)}"
        )
    if (old.sessions, old.environments) == (new.sessions, new.environments):
        raise UsageError(f"{old.label} and {new.label} are the same launches; name another session")


def describe_stored(
    demand: StoredDemand, sides: Mapping[data.Side, StoredSide], mixed: bool
) -> ComparisonHeader:
    """Describe an unpaired comparison."""
    old, new = sides[OLD], sides[NEW]
    return ComparisonHeader(
        site=next(iter(old.systems)),
        old=describe_side(old),
        new=describe_side(new),
        choice=demand.choice,
        margins=demand.margins,
        seconds=None,
        control=False,
        seed=0,
        differences=tuple(list_told_differences(old, new, mixed)),
        started_utc=utc_now(),
        command=tuple(demand.command),
        unpaired=True,
    )


def describe_side(side: StoredSide) -> ComparedSide:
    """Describe a side as the pages show it."""
    return ComparedSide(side.label, first_of(sorted(side.environments), None))


def list_told_differences(old: StoredSide, new: StoredSide, mixed: bool) -> list[tuple[str, str, str]]:
    """List in what the launches of both sides differ, by their records: what, the old side, the new one."""
    told = [tell_side(each, mixed) for each in (old, new)]
    one, two = ({what: first_of(sorted(each[what]), NAMED) for what in told[0]} for each in told)
    return [(what, one[what], two[what]) for what in told[0] if one[what] != two[what]]


def tell_side(side: StoredSide, mixed: bool) -> dict[str, set[str]]:
    """Tell what the launches of a side ran on, and with what."""
    runs = {(row.case.environment, row.session, row.provenance): row.run for row in side.rows if row.provenance}
    hosts = [host for run in runs.values() for host in run.get("hosts") or ()]
    return {
        "sessions": set(side.sessions),
        "environment": side.environments,
        "MPI library": {
            f"{key[0]}: {said}" if mixed else said
            for key, run in runs.items()
            if (said := library_identity(run.get("mpi_library")))
        },
        "processor": {run.get("cpu_model") or "unknown" for run in runs.values()},
        "kernel": {str(host.get("kernel", "unknown")) for host in hosts},
        "nodes": {str(host["name"]) for host in hosts},
        "suite": {str(run.get("suite_version", "unknown")) for run in runs.values()},
    }


def name_case(row: StoredCase, mixed: bool) -> str:
    """Return the key that a case shares with the other side: with its environment if there are several."""
    shared = SharedCase.of(row.case)
    if mixed:
        shared = shared._replace(partition=f"{shared.partition}:{row.case.environment}")
    return shared.key


def collect_launches(rows: Sequence[StoredCase], mixed: bool) -> tuple[LaunchValues, ...]:
    """Collect the launches of a stored session, each with all its cases."""
    seen: Counter[str] = Counter()
    found: dict[tuple[str, int, int], list[StoredCase]] = defaultdict(list)
    for row in rows:
        same = f"{row.case.key} {row.launch}"
        found[row.provenance, row.launch, seen[same]].append(row)
        seen[same] += 1
    return tuple(
        LaunchValues(
            f"{some[0].case.program} {some[0].case.layout} {some[0].launch}",
            describe_run_place(some[0].run, some[0].hosts),
            {name_case(each, mixed): each.value for each in some},
        )
        for some in found.values()
    )


def group_measured(side: StoredSide, mixed: bool) -> dict[str, list[StoredCase]]:
    """Group the launches that have a value by the key of their case."""
    found: dict[str, list[StoredCase]] = defaultdict(list)
    for row in side.rows:
        if row.value.value is not None:
            found[name_case(row, mixed)].append(row)
    return found
