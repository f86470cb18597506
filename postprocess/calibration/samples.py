"""Select the ledger launches behind a reference: same method, same programs.

Of each place and program that is what ran last; launches of another build, library or processor are another
machine's, and stay in the ledger unused. So do those with options by hand, which no night has, wherever there
are some without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from postprocess.calibration.ledger import Taken
from postprocess.model.case import Case, ReferencePlace


@dataclass(frozen=True)
class Sample:
    """The launches of one case, the earliest first."""

    case: Case
    launches: tuple[Taken, ...]

    @property
    def values(self) -> list[float]:
        """Headlines, one a launch."""
        return [each.values[self.case.key] for each in self.launches]

    @property
    def unit(self) -> str:
        """Of its values."""
        return self.launches[-1].units[self.case.key]


@dataclass(frozen=True)
class Passed:
    """Launches that do not count, and the facts in which they differ from those that do."""

    place: ReferencePlace
    program: str
    launches: int
    differing: str


def by_program(launches: Iterable[Taken]) -> list[tuple[ReferencePlace, str, list[Taken]]]:
    """Launches of each place and program, the earliest first."""

    def which(each: Taken) -> tuple[ReferencePlace, str]:
        return each.place, each.program

    ordered = sorted(launches, key=lambda each: (*which(each), each.ended_utc, each.session))
    return [(*key, list(some)) for key, some in groupby(ordered, key=which)]


def current(launches: Iterable[Taken]) -> list[Taken]:
    """The launches that count: of each place and program those that are alike with the last one."""
    return [
        each for _, _, some in by_program(launches) for each in some if not apart(each, plain(some))
    ]


def passed(launches: Iterable[Taken]) -> list[Passed]:
    """The launches that do not count, grouped by what they differ in."""
    found: Counter[tuple[ReferencePlace, str, str]] = Counter()
    for place, program, some in by_program(launches):
        for each in some:
            if what := apart(each, plain(some)):
                found[place, program, what] += 1
    return [Passed(place, program, count, what) for (place, program, what), count in found.items()]


def plain(launches: Sequence[Taken]) -> Sequence[Taken]:
    """Those without options by hand; all of them if each has some."""
    return [each for each in launches if not each.by_hand] or launches


def apart(one: Taken, others: Sequence[Taken]) -> str:
    """The names of the facts for which a launch does not count beside others; empty if it does."""
    return differing(one, others[-1]) or bound_otherwise(one, others)


def differing(one: Taken, other: Taken) -> str:
    """The names of the facts in which two launches differ."""
    return ", ".join(different(one.shared, other.shared))


def bound_otherwise(one: Taken, others: Sequence[Taken]) -> str:
    """Whether a launch is bound to CPUs in another way than the last one of its layout."""
    last = next(
        (each for each in reversed(others) if each.binding.keys() == one.binding.keys()), one
    )
    return "binding" if last.binding != one.binding else ""


def different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys that two dictionaries do not share with the same value."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def samples(launches: Iterable[Taken]) -> dict[Case, Sample]:
    """Every case with all launches that count, by case."""
    found: dict[str, list[Taken]] = {}
    for each in sorted(current(launches), key=lambda each: (each.ended_utc, each.session)):
        for key in each.values:
            found.setdefault(key, []).append(each)
    cases = {Case.from_key(key): some for key, some in found.items()}
    return {case: Sample(case, tuple(some)) for case, some in sorted(cases.items())}
