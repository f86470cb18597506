"""Read the output of the programs in ``suite/bindings``, and compute the times of a launch relative to C.

A launch has several rounds, each with one start of C and one of the language. Their output is kept unchanged,
each behind a line with the round, the language and the library that it had to run on.
"""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.formats import RATIO, SECONDS, plural, size
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.text_output import OutputTable, ProgramOutput, TableRow
from site_configs.mpi.exchange import BATCHES, RANKS, ROUTINES, C, Case, list_cases
from site_configs.mpi.family import is_library


@dataclass(frozen=True)
class Exchange:
    """The thread level and the times of one start."""

    level: str  #: provided thread level: ``single`` or ``multiple``
    seconds: Mapping[Case, float]  #: time of a call, the minimum of the batches


def read_exchange(output: str, library: str, sizes: Sequence[int] = ()) -> Exchange:
    """Read the output of a start, which must be complete and correct.

    :param sizes: sizes in bytes, rising; if empty, those of the ping-pong
    :raises RecordError: for any fault, in one line
    """
    lines = [line.split() for line in output.splitlines() if line.strip()]
    world = next((line for line in lines if line[0] == "world" and len(line) > 3), None)
    if world is None:
        raise RecordError(Verdict.INCOMPLETE, "said nothing of its world")
    loaded = " ".join(world[3:])
    if world[1] != str(RANKS):
        what = f"world of {world[1]}, not of {RANKS}: the launcher does not belong to the library that "
        raise RecordError(Verdict.INCORRECT, f"{what}was loaded, {loaded[:60]}")
    if not is_same_library(loaded, library):
        what = f"wrong library: it ran on {loaded[:60]}, not on {library[:60]}"
        raise RecordError(Verdict.INCORRECT, what)
    try:
        expected_lines = [line for line in lines if line[0] in (*ROUTINES, "end")]
        rows = {(line[0], int(line[1])): line[2:] for line in expected_lines[:-1]}
        wrong = {case: math.ceil(float(rest[0])) for case, rest in rows.items()}
        times = {case: [float(word) for word in rest[1:]] for case, rest in rows.items()}
    except (ValueError, IndexError, OverflowError):
        raise RecordError(Verdict.INCORRECT, "a line that is none of ours") from None
    for (routine, bytes_), count in wrong.items():
        if count:
            what = f"wrong data: {routine} of {size(bytes_)}: {plural(count, 'wrong number')} received"
            raise RecordError(Verdict.INCORRECT, what)
    planned = list_cases(sizes or [bytes_ for routine, bytes_ in times if routine == ROUTINES[0]])
    if [*times] != planned or len(expected_lines) != len(planned) + 1 or expected_lines[-1] != ["end"]:
        raise RecordError(Verdict.INCOMPLETE, "ended before its last case")
    if any(len(seconds) != BATCHES or not all(0 < t < math.inf for t in seconds) for seconds in times.values()):
        raise RecordError(Verdict.INCORRECT, f"a case has not {BATCHES} times above 0")
    level = "single" if world[2] == "0" else "multiple"
    return Exchange(level, {case: min(seconds) for case, seconds in times.items()})


def is_same_library(said: str, wanted: str) -> bool:
    """Return whether a library is the wanted one; a path is compared with the loaded file."""
    if wanted.startswith("/"):
        return Path(said).resolve().is_relative_to(Path(wanted).resolve())
    return is_library(said, wanted)


HEAD = re.compile(r"# round ([0-9]{1,9}), ([a-z0-9_-]{1,40}), on (.*)\n")
VERSION = "1"  #: version of the programs' output, which states none itself
REPETITIONS = "#repetitions"  #: column: batches in all rounds
TIME, C_TIME = "time (s)", "C (s)"  #: columns: seconds of a call
COLUMNS = {SECONDS: TIME, RATIO: RATIO}  #: judged column, by unit


def format_start(number: int, language: str, library: str, output: str) -> str:
    return f"# round {number}, {language}, on {library}\n{output.rstrip()}\n"


def parse_bindings(text: str) -> ProgramOutput:
    """Parse the output of a launch of one language: for each case the median of its rounds.

    :raises RecordError: with the verdict on the launch.
    """
    _, *parts = HEAD.split(text)
    rounds: dict[str, dict[Case, list[float]]] = {}
    for number, language, library, output in zip(*(parts[n::4] for n in range(4)), strict=True):
        try:
            exchange = read_exchange(output, library)
        except RecordError as error:
            raise RecordError(error.verdict, f"round {number}, {language}: {error}") from None
        for case, seconds in exchange.seconds.items():
            rounds.setdefault(language, {}).setdefault(case, []).append(seconds)
    if C not in rounds:
        raise RecordError(Verdict.INCOMPLETE, "no start of C is there")
    language = next((name for name in rounds if name != C), C)
    times, basis = rounds[language], rounds[C]
    counts = {len(values) for cases in (times, basis) for values in cases.values()}
    if times.keys() != basis.keys() or len(counts) != 1:
        raise RecordError(Verdict.INCOMPLETE, "rounds of C and of the language are not the same")
    tables = []
    for routine in ROUTINES:
        rows = [
            TableRow(case[1], build_values(times[case], basis[case]), True)
            for case in times
            if case[0] == routine
        ]
        tables.append(OutputTable(f"{routine}.{language}", tuple(rows[0].values), tuple(rows), RANKS))
    return ProgramOutput(VERSION, tuple(tables))


def build_values(own: Sequence[float], basis: Sequence[float]) -> dict[str, float]:
    """Build the columns of a case. Ratios are taken within a round."""
    return {
        RATIO: statistics.median(mine / c for mine, c in zip(own, basis, strict=True)),
        TIME: statistics.median(own),
        C_TIME: statistics.median(basis),
        REPETITIONS: float(BATCHES * len(own)),
    }
