"""Acceptances on a real MPI with calls delayed by a known share, beside what the protocol states of them.

Usage: ``python -m tests.statistical.delayed_acceptances FOLDER [ACCEPTANCES] [FAMILY]``: so many acceptances of
each delay (default 10) with an MPI of the work directory (default mpich). FOLDER keeps the programs and the
records of every launch; a second call with more acceptances goes on there, and tells of all.

The offer is measured with the library of the self-test loaded and idle. A row is committed to the center of its
launches. Acceptances with 0, 2, 5 and 10% and the offer take turns launch by launch, so that all see the same
machine, and those of one are minutes apart, as ``accept`` has them: launches within seconds of each other share
what the machine does at that time. Each goes on until its rows are decided or looks end. The functions of
``accept`` judge it. Launches are made without ReFrame, by which those of one acceptance would take minutes.
"""

import math
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path

from postprocess.extensions.procurement.commitments import Commitment, StoredCommitments
from postprocess.extensions.procurement.judge import (
    Acceptance,
    JudgedRow,
    find_apart,
    find_next_look,
    judge_delivery,
    list_undecided,
)
from postprocess.extensions.procurement.offer import MeasuredRow, RowKey
from postprocess.extensions.procurement.rules.rules import RuleCase, Rules, lint_text
from postprocess.parsers.mpicost import LaunchRecords, read_launch
from postprocess.stats.acceptance import (
    OperatingCharacteristic,
    choose_acceptance_looks,
    simulate_characteristic,
)
from postprocess.stats.launches import find_farthest
from tests.statistical.simulated_acceptances import COUNTED, SLOWER
from tests.support.factories.offer import BCAST
from tests.support.mpicost import Program, program
from tests.support.shared_files import VARIABLE

FUNCTIONS = {"bcast": "MPI_Bcast", "allreduce_sum": "MPI_Allreduce", "allgather": "MPI_Allgather"}
SIZES = {"bcast": (8, 100000), "allreduce_sum": (8, 100000), "allgather": (8, 10000)}
OPTIONS = ("--trials=31", "--cache", "warm")
RULES_TEXT = """\
schema = 1
title = "calls delayed by a known share"
launches = 10
tolerance = 0.05
tell = ["offeror"]
cache = "warm"
[risk]
most_launches = 40
[category.baseline]
text = "as it is"
"""
CASE_TEXT = """\
[[case]]
name = "{name}"
program = "mpicost"
routine = "{name}"
bytes = {sizes}
nodes = "one"
per_node = "two"
"""


@cache
def rules() -> Rules:
    """The rules: a case for each routine."""
    cases = (CASE_TEXT.format(name=name, sizes=list(SIZES[name])) for name in FUNCTIONS)
    found, faults = lint_text(RULES_TEXT + "".join(cases))
    assert found and not faults, faults
    return found


def launch_once(built: Program, name: Path, slower: float) -> None:
    """Launch mpicost on two processes, if it was not launched before. Only whole records are kept."""
    path = name.with_suffix(".jsonl")
    if path.exists():
        return
    routines = ",".join(":".join((name, *map(str, SIZES[name]))) for name in FUNCTIONS)
    told = {
        "LD_PRELOAD": built.build / "libdelay.so",
        "PLUMBLINE_DELAY_FRACTION": slower or 1.0,
        "PLUMBLINE_DELAY_ROUTINES": ",".join(FUNCTIONS.values()),
        "PLUMBLINE_DELAY_LAUNCHES": 1 if slower else 0,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_suffix(".part")
    words = (f"--routine={routines}", *OPTIONS, f"--output={begun}")
    ended = built.run(2, *words, wrapper=("env", *(f"{k}={v}" for k, v in told.items())))
    assert ended.status == 0, ended
    begun.rename(path)


@cache
def read_records(path: Path) -> LaunchRecords:
    return read_launch(path)


def list_launches(folder: Path) -> list[LaunchRecords]:
    """Read the launches of an offer or acceptance, in their order."""
    return [read_records(path) for path in sorted(folder.glob("*.jsonl"))]


def build_rows(launches: Sequence[LaunchRecords]) -> list[MeasuredRow]:
    """Build the rows of an offer or acceptance."""
    sizes = [(case, size) for case in rules().case for size in case.bytes] if launches else []
    return [build_row(case, size, launches) for case, size in sizes]


def build_row(case: RuleCase, size: int, launches: Sequence[LaunchRecords]) -> MeasuredRow:
    found = [launch.measurements[f"{case.routine}_{size}"] for launch in launches]
    return MeasuredRow(
        RowKey(case.name, size, "here", "baseline"),
        case,
        BCAST,
        "mpi",
        "s",
        tuple(measurement.value for measurement in found),
        False,
        tuple(find_farthest(measurement.core_latency) for measurement in found),
    )


def commit(offered: Sequence[MeasuredRow]) -> StoredCommitments:
    """Commit to the center of the launches of the offer."""
    committed = (Commitment(row.key.key, math.exp(mean_log(row.values))) for row in offered)
    return StoredCommitments(1, "", tuple(committed))


def mean_log(values: Sequence[float]) -> float:
    return statistics.fmean(map(math.log, values))


def measure(built: Program, folder: Path, acceptances: int) -> None:
    """Launch in rounds until all is decided: each open acceptance once, and the offer some times."""
    places = {
        name_folder(folder, slower, number): slower for slower in SLOWER for number in range(1, acceptances + 1)
    }
    for n in count(1):
        since = time.monotonic()
        offered = build_rows(list_launches(folder / "offer")) if n > rules().launches else None
        wanted = {
            place: slower
            for place, slower in places.items()
            if offered is None or n <= count_wanted(judge(offered, place))
        }
        if not wanted:
            return
        for number, slower in enumerate(SLOWER):
            if offered is None:
                launch_once(built, folder / "offer" / f"{len(SLOWER) * (n - 1) + number:03d}", 0.0)
            for place in (path for path in wanted if wanted[path] == slower):
                launch_once(built, place / f"{n:03d}", slower)
        print(f"round {n}: {len(wanted)} launches, {time.monotonic() - since:.0f} s", flush=True)


def name_folder(folder: Path, slower: float, number: int) -> Path:
    return folder / f"{slower:.0%}" / f"{number:03d}"


def judge(offered: list[MeasuredRow], place: Path) -> Acceptance:
    return judge_delivery(rules(), offered, commit(offered), build_rows(list_launches(place)))


def count_wanted(found: Acceptance) -> int:
    """Count the launches of the next look: the first one of all rows, then those of undecided rows."""
    later = [find_next_look(rules(), row) or 0 for row in list_undecided(found)]
    return max([found.looks[0], *later])


def print_outcome(folder: Path, offered: list[MeasuredRow], acceptances: int) -> None:
    """Print how slow rows really were, and what acceptances say of them, beside what is stated."""
    spreads, means = {}, {}
    for slower in SLOWER:
        places = [name_folder(folder, slower, n) for n in range(1, acceptances + 1)]
        found = [judge(offered, place) for place in places]
        launches = [launch for place in places for launch in list_launches(place)]
        for row, own in zip(build_rows(launches), offered, strict=True):
            apart = find_apart(own.cores, row.cores)
            near = [value for value, far in zip(row.values, apart, strict=True) if not far]
            spreads[slower, row.key] = statistics.stdev(map(math.log, near))
            means[slower, row.key] = mean_log(near)
        rows = [row for acceptance in found for row in acceptance.rows]
        real = {row.key: means[slower, row.key] - math.log(row.committed) for row in rows}
        print_counts(slower, rows, {key: spreads[slower, key] for key in real}, real)
        statuses = Counter(acceptance.status for acceptance in found)
        words = ((0, "accepted"), (1, "not accepted"), (3, "undecided"))
        told = ", ".join(f"{statuses[status]} {word}" for status, word in words)
        print(f"    {len(launches)} launches; {told}")
    print("row: spread; slower than committed, by delay")
    for own in offered:
        drifts = (math.expm1(means[s, own.key] - mean_log(own.values)) for s in SLOWER)
        shown = ", ".join(f"{drift:+.1%}" for drift in drifts)
        print(f"{own.key.case} {own.key.bytes}: {spreads[0.0, own.key]:.1%}; {shown}")


def print_counts(
    slower: float, rows: Sequence[JudgedRow], spreads: Mapping[RowKey, float], real: Mapping
) -> None:
    """Print the verdicts of rows, beside those stated of the delay, and of how slow each row really was."""
    counts = Counter(row.found.verdict for row in rows)
    stated = {"asked": [0.0, 0.0], "real": [0.0, 0.0]}
    for row in rows:
        drawn = state(spreads[row.key], (slower, math.expm1(real[row.key])))
        for number, each in enumerate(stated.values()):
            each[0] += drawn.met[number]
            each[1] += drawn.missed[number]
    asked, own = (f"{met:.1f} met, {missed:.1f} missed" for met, missed in stated.values())
    shares = ", ".join(f"{counts[verdict]} {verdict}" for verdict in COUNTED)
    apart = sum(row.apart for row in rows)
    print(f"{slower:.0%} slower: {len(rows)} rows: {shares}; {apart} values not counted")
    print(f"    stated {asked}; of rows as slow as they were {own}")


@cache
def state(spread: float, slower: tuple[float, ...]) -> OperatingCharacteristic:
    """Return what the protocol states of launches that differ so much."""
    own = rules()
    looks = choose_acceptance_looks(own.launches, own.risk.most_launches)
    risks = own.risk.good_failed, own.risk.slow_accepted
    return simulate_characteristic(spread, own.tolerance, looks, *risks, slower)


def main(folder: Path, acceptances: int, family: str) -> None:
    """Measure what is not there yet, and print what all of it says."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(VARIABLE, str(folder))  # where the program is built
    built = program(family)
    measure(built, folder, acceptances)
    print_outcome(folder, build_rows(list_launches(folder / "offer")), acceptances)


if __name__ == "__main__":
    told = sys.argv[2:]
    main(Path(sys.argv[1]).absolute(), int((told or ["10"])[0]), (told[1:] or ["mpich"])[0])
