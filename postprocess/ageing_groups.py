"""The references of a file that have the same launches behind them, and what is said of the age of such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from postprocess import provenance
from postprocess.cases import Case
from postprocess.formats import plural
from postprocess.references import Reference


@dataclass(frozen=True)
class Finding:
    """Something that is to be said of the age of some references of one file."""

    place: str
    program: str
    what: (
        str  #: ``old``, ``changed``, ``provisional``, ``one-sided``, ``kernels``, ``one moment`` or
        #: ``one node set``
    )
    stale: bool
    text: str
    cases: tuple[str, ...]

    def entry(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "cases": list(self.cases)}

    def __str__(self) -> str:
        sign = "STALE" if self.stale else "note"
        return (
            f"{sign}: {self.place}, {self.program}, {plural(len(self.cases), 'case')}: {self.text}"
        )


@dataclass(frozen=True)
class Group:
    """The cases of one calibration that have the same launches behind them."""

    place: str
    program: str
    told: Mapping[str, Any]
    cases: tuple[Case, ...]

    @property
    def launches(self) -> Sequence[Mapping[str, Any]]:
        """When and where each ran; none where a provenance does not tell."""
        return provenance.launches_of(self.told, self.cases[0].key)

    @property
    def machines(self) -> list[Mapping[str, Any]]:
        """Those from which the launches were started; of the last alone where no more is told."""
        told = [each["machine"] for each in self.launches if "machine" in each]
        return told or [self.told.get("machine", {})]

    def finding(self, what: str, stale: bool, text: str) -> Finding:
        """Something said of all of them."""
        keys = tuple(case.key for case in self.cases)
        return Finding(self.place, self.program, what, stale, text, keys)


def merged(found: Iterable[Finding]) -> list[Finding]:
    """The same said of several groups in one finding."""
    said: dict[Finding, list[str]] = {}
    for each in found:
        said.setdefault(replace(each, cases=()), []).extend(each.cases)
    return [replace(each, cases=tuple(sorted(set(keys)))) for each, keys in said.items()]


def groups(
    place: str, known: Mapping[Case, Reference], origin: Mapping[str, Any]
) -> Iterator[Group]:
    """The cases of each calibration of a file, those of the same launches together."""
    for program, entry in sorted(origin["programs"].items()):
        cases = [case for case in sorted(known) if case.program == program]
        for told in provenance.calibrations(entry):
            own: dict[int, list[Case]] = {}
            for case in cases:
                if provenance.calibration_of(entry, case.key) is told:
                    own.setdefault(id(provenance.launches_of(told, case.key)), []).append(case)
            yield from (Group(place, program, told, tuple(some)) for some in own.values())
