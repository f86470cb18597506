"""Dossiers of a self-test: comparisons of an MPI with itself, one side of which is delayed in a known way.

What comes of them is judged again from their own passes, which are kept: every figure can be computed again.
"""

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.records import Count, find_other_field, read_record
from postprocess.model.case import Case
from postprocess.session.lifecycle.injections import (
    EVERYTHING,
    IDLE,
    INJECTION_KINDS,
    Injection,
    InjectionKind,
    list_injectable_routines,
)

FILE = "dossiers.json"
#: What must be asked for again to continue a self-test.
SAME_AGAIN = ("site", "times", "unchanged", "plants", "seconds", "keys")
#: Planted unless others are asked for: small ones, a range of sizes, one rank, one launch in four.
USUAL_PLANTS = ("slower-5", "slower-10", "slower-20", "large", "one-rank", "some-launches")


@dataclass(frozen=True)
class DossiersHeader:
    """What a self-test of ``compare`` was begun with. A call that continues it must ask for the same."""

    site: str
    seed: int
    times: Count  #: dossiers with each plant
    unchanged: Count  #: dossiers with nothing planted
    plants: tuple[str, ...]
    seconds: Count | None  #: for each dossier
    keys: tuple[str, ...]  #: of all cases, of all environments


@dataclass(frozen=True)
class PlannedDossier:
    """One dossier: an environment against itself, and what delays its new side."""

    number: int
    environment: str
    plant: str = ""  #: name, in ``INJECTION_KINDS``; empty if nothing is planted
    routine: str = ""  #: that is delayed; empty for all

    @property
    def injection(self) -> Injection:
        """What delays the launches of the new side; those of the old side have it idle."""
        return Injection(self.environment, self.plant or IDLE.name, self.routine)

    @property
    def order(self) -> str:
        """The plant as ``compare --plant`` takes it."""
        return f"{self.plant}:{self.routine}" if self.plant else IDLE.name

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.environment}, {self.injection.words if self.plant else 'nothing planted'}"

    def slows(self, case: Case) -> bool:
        """Return whether the plant delays a call of a case."""
        return bool(self.plant) and self.injection.slows(case)


@dataclass(frozen=True)
class DossierCase:
    """What a dossier says of one case."""

    key: str
    routine: str
    target: bool  #: whether the plant slows it
    verdict: str  #: of the comparison
    ratio: float | None  #: new over old; above 1 is worse
    scatter: float | None  #: standard deviation of ln ratio between pairs
    margin: float  #: as a fraction


@dataclass(frozen=True)
class FinishedDossier:
    """What came of one dossier."""

    planned: PlannedDossier
    seconds: float
    looks: tuple[int, ...]  #: pairs after which one looked
    void: bool  #: whether a control without MPI moved: then its verdicts count for nothing
    cases: tuple[DossierCase, ...]
    #: Verdicts of the same rules on launches of one side against each other
    one_side: Mapping[str, int]


def schedule_dossiers(
    cases: Sequence[Case], plants: Sequence[InjectionKind], times: int, unchanged: int, seed: int
) -> list[PlannedDossier]:
    """Schedule all dossiers in an order drawn by ``seed``, over environments and routines in turn.

    :param cases: of all environments
    :raises UsageError: for a plant that slows none of an environment's cases
    """
    environments = sorted({case.environment for case in cases})
    units = [(name, plant) for name in range(times) for plant in plants]
    had: Counter[tuple[str, str]] = Counter()  # plants by routine
    chosen: list[tuple[str, str, str]] = []
    for number, (turn, plant) in enumerate(units):
        name = environments[(number + turn) % len(environments)]
        own = [case for case in cases if case.environment == name]
        routines = [EVERYTHING] if plant.everything else list_injectable_routines(own, plant.least)
        if not routines:
            raise UsageError(f"{plant.name}: slows no case of {name}; choose other --plants or more --routine")
        start = number % len(routines)
        order = (*routines[start:], *routines[:start])
        routine = min(order, key=lambda each, kind=plant.name: had[kind, each])  # type: ignore[misc]
        had[plant.name, routine] += 1
        chosen.append((name, plant.name, routine))
    chosen += [(environments[number % len(environments)], "", "") for number in range(unchanged)]
    random.Random(seed).shuffle(chosen)
    return [PlannedDossier(number, *each) for number, each in enumerate(chosen, start=1)]


def list_dossiers(begun: DossiersHeader) -> list[PlannedDossier]:
    """List all dossiers of a self-test, done or not. Raises UsageError as :func:`schedule_dossiers` does."""
    cases = [Case.from_key(key) for key in begun.keys]
    plants = [INJECTION_KINDS[name] for name in begun.plants]
    return schedule_dossiers(cases, plants, begun.times, begun.unchanged, begun.seed)


def locate_dossier(directory: Path, planned: PlannedDossier) -> Path:
    return directory / f"dossier-{planned.number:03}"


def resume_or_begin_dossiers(directory: Path, asked: DossiersHeader) -> DossiersHeader:
    """Read what a self-test was begun with; begin it if it was not begun.

    :raises UsageError: if it was begun otherwise, or cannot be written
    """
    path = directory / FILE
    if not path.exists():
        write_summary(path, json.loads(json.dumps(asdict(asked))))
        return asked
    begun = read_dossiers_header(directory)
    if other := find_other_field(begun, asked, SAME_AGAIN):
        raise UsageError(f"{path}: was begun with other {other}; choose another DIR")
    return begun


def read_dossiers_header(directory: Path) -> DossiersHeader:
    """Read what a self-test was begun with. Raises UsageError if the file is missing or damaged."""
    path = directory / FILE
    try:
        begun = read_record(path, DossiersHeader)
        if unknown := sorted({*begun.plants} - INJECTION_KINDS.keys()):
            raise ValueError(f"plants: {unknown[0]} is not a plant")
        for key in begun.keys:
            Case.from_key(key)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name the folder of a self-test") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}: is damaged; choose another DIR") from None
    return begun
