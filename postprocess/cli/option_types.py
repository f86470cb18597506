"""The types of options: each parses a word, or raises ArgumentTypeError with one line on what is wrong."""

import argparse
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from postprocess.base.errors import UsageError, propose_word
from postprocess.base.formats import parse_since, parse_whole
from postprocess.model.routines.benchmark import LEAST_ITERATIONS
from postprocess.model.routines.known import may_be_routine, propose_routine
from site_configs.programs.program import PROGRAMS

LARGEST = 10**12  #: of any number; ReFrame and the store have no room for one of any size
MOST_TRIALS = 1_000_000  #: as mpicost has it
MOST_ROUNDS = 1000  #: the same
MOST_LAUNCHES = 1000  #: of a case; ReFrame makes a test of each
ASSIGNMENT = re.compile(r"(?P<environment>[^:]+):(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.S | re.A)


def parse_comma_list(text: str) -> list[str]:
    """Parse a comma-separated list, each word once. An empty one is wrong: no option would mean all."""
    words = list(dict.fromkeys(word for word in text.split(",") if word))
    if not words:
        raise argparse.ArgumentTypeError("names nothing; leave it out for all")
    return words


def parse_routines(text: str) -> list[str]:
    """Parse names of routines; one that no check can have is refused before anything starts."""
    words = parse_comma_list(text)
    for word in words:
        if not may_be_routine(word):
            near = propose_routine(word)
            fix = f"did you mean {near}?" if near else "./plumbline list shows them"
            raise argparse.ArgumentTypeError(f"{word!r} is not a routine of any check; {fix}")
    return words


def parse_count(text: str) -> int:
    """Parse a whole number from one to ``LARGEST``."""
    try:
        number = parse_whole(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of one or more")
    if number > LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is too large a number")
    return number


def parse_iterations(text: str) -> int:
    """Parse a number of iterations; of fewer than four OSU tells no quarter."""
    number = parse_count(text)
    if number < LEAST_ITERATIONS:
        what = f"{text} is too few: a quarter of the iterations is judged; take at least {LEAST_ITERATIONS}"
        raise argparse.ArgumentTypeError(what)
    return number


#: How many seconds a unit of time has, and how many bytes one of size, as results are printed.
TIME_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600}
SIZE_UNITS = {
    **{"b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9},
    **{"ki": 2**10, "kib": 2**10, "mi": 2**20, "mib": 2**20, "gi": 2**30, "gib": 2**30},
}
WITH_UNIT = re.compile(r"(?P<number>\d+(\.\d+)?) ?(?P<unit>[A-Za-z]+)", re.A)


def parse_with_unit(text: str, units: Mapping[str, int], small: int = 1) -> int:
    """Parse a number with one of these units, such as ``3min``; without a unit it is a plain count.

    :param small: of the smallest unit, that the result is counted in
    """
    match = WITH_UNIT.fullmatch(text)
    if not match:
        return parse_count(text)
    factor = units.get(match["unit"].lower())
    if factor is None:
        raise argparse.ArgumentTypeError(f"{text!r}: the unit is none of {', '.join(units)}")
    number = Decimal(match["number"]) * factor / small
    if number != number.to_integral_value():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number in the unit of this option")
    return parse_count(str(int(number)))


def parse_seconds(text: str) -> int:
    """Parse a time in seconds, or with a unit, as ``90``, ``90s``, ``3min`` or ``2h``; one second or more."""
    return parse_with_unit(text, TIME_UNITS)


def parse_minutes(text: str) -> int:
    """Parse a time of whole minutes, 0 or more: in minutes, or with a unit, as ``20``, ``20min`` or ``2h``."""
    return 0 if text == "0" else parse_with_unit(text, TIME_UNITS, TIME_UNITS["min"])


def parse_trials(text: str) -> int:
    """Parse a number of trials that mpicost takes: the first one is dropped."""
    number = parse_count(text)
    if not 2 <= number <= MOST_TRIALS:
        raise argparse.ArgumentTypeError(f"{text} is not from 2 to {MOST_TRIALS}")
    return number


def parse_rounds(text: str) -> int:
    """Parse a number of rounds that mpicost takes."""
    number = parse_count(text)
    if number > MOST_ROUNDS:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to {MOST_ROUNDS}")
    return number


def parse_launches(text: str) -> int:
    """Parse a number of launches that a session can make."""
    number = parse_count(text)
    if number > MOST_LAUNCHES:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to {MOST_LAUNCHES}")
    return number


#: Numbers of processes that the papers name; of the Origin those on both sides of a hypercube's dimensions.
PAPER_COUNTS = {
    "luecke2001": (2, 4, 8, 16, 32, 64, 96, 128),
    "luecke2003-t3e": (2, 4, 8, 16, 32, 48, 64),
    "luecke2003-origin": (*(2, 4, 8, 16, 17, 32, 33, 48, 49, 64, 65, 80, 81, 96, 97, 112, 113, 126, 128),),
    "rus": (32, 64, 128, 256),
    "taboada": tuple(range(2, 17)),
}


def parse_processes(text: str) -> list[int]:
    """Parse numbers of processes separated by commas; the name of a paper stands for its numbers."""
    found: list[int] = []
    for word in parse_comma_list(text):
        found += PAPER_COUNTS[word] if word in PAPER_COUNTS else [parse_count(word)]
    return list(dict.fromkeys(found))


def parse_counts(text: str) -> list[int]:
    """Parse whole numbers of one or more, separated by commas."""
    return [parse_count(word) for word in parse_comma_list(text)]


def parse_sizes(text: str) -> list[int]:
    """Parse message sizes in bytes, or with a unit as results have it (1 kB is 1000 bytes, 1 KiB 1024).

    They are separated by commas; 0 is an empty message.
    """
    words = parse_comma_list(text)
    found = (0 if word == "0" else parse_with_unit(word, SIZE_UNITS) for word in words)
    return list(dict.fromkeys(found))


def parse_programs(text: str) -> list[str]:
    """Parse names of benchmark programs, separated by commas."""
    words = parse_comma_list(text)
    if unknown := [word for word in words if word not in PROGRAMS]:
        proposed = propose_word(unknown[0], PROGRAMS)
        what = f"{unknown[0]!r} is none of {', '.join(PROGRAMS)}"
        raise argparse.ArgumentTypeError(f"{what}; {proposed}" if proposed else what)
    return words


class GatherLists(argparse.Action):
    """The words of several lists, and of the option given again, as one list."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Sequence[list[str]],  # type: ignore[override]  # what its type makes of a word
        option_string: str | None = None,
    ) -> None:
        """Put them behind those that are there."""
        setattr(namespace, self.dest, sum(values, getattr(namespace, self.dest)))


def parse_moment(text: str) -> str:
    """Parse a time as in the name of a session, or a day, which is before all times of it."""
    try:
        begin = parse_since(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return f"{begin.isoformat()}Z".removesuffix("T00:00:00Z")


def parse_assignment(text: str) -> tuple[str, str, str]:
    """Parse ENVIRONMENT:NAME=VALUE into its three parts."""
    match = ASSIGNMENT.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not ENVIRONMENT:NAME=VALUE")
    return match["environment"], match["name"], match["value"]
