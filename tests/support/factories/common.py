"""Nights in which many cases are slower together, and calibrations whose launches differ as launches do."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from postprocess.judging.common_cause import CommonCause, find_common_causes
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from postprocess.stats.band import compute_band
from postprocess.stats.priors import add_priors
from tests.support.factories.launch import case, origin_of

MPIS = ("mpich", "openmpi", "intel")
CENTER = 1e-5
Slower = Callable[[Case], float]


def cases(environments: Sequence[str] = MPIS, each: int = 42, controls: bool = True) -> list[Case]:
    """So many cases of every MPI, a third in each class of sizes, and the controls."""
    found = [
        case(f"routine_{number}", (8, 1_000, 100_000)[number % 3], environment=name)
        for name in environments
        for number in range(each)
    ]
    if controls:
        found += [
            case(name, size, environment=environment)
            for environment in environments
            for name, sizes in CONTROLS.items()
            for size in sizes
        ]
    return sorted(found)


@dataclass(frozen=True)
class Noise:
    """Of a launch: what is common to the cases of a night and of a launch, and what is a case's own.

    The case's own is of a Student's t where ``tails`` says how many degrees of freedom it has.
    """

    night: float = 0.01
    launch: float = 0.01
    own: float = 0.02
    tails: int = 0

    def drawn(self, random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Of unit variance."""
        if not self.tails:
            return random.normal(size=shape)
        return random.standard_t(self.tails, size=shape) / math.sqrt(self.tails / (self.tails - 2))

    def of_night(self, random: np.random.Generator) -> float:
        """What all launches of a night have in common."""
        return self.night * self.drawn(random, (1,))[0]

    def logs(
        self, random: np.random.Generator, some: Sequence[Case], common: float | None = None
    ) -> np.ndarray:
        """ln of what launches measure of these cases over their center, one launch for each MPI.

        :param common: what they have of their night; None for another night
        """
        names = sorted({each.environment for each in some})
        launches = dict(zip(names, self.launch * self.drawn(random, (len(names),)), strict=True))
        common = self.of_night(random) if common is None else common
        shared = np.array([launches[each.environment] for each in some])
        return common + shared + self.own * self.drawn(random, (len(some),))


def calibrated(
    random: np.random.Generator, some: Sequence[Case], noise: Noise, launches: int = 20, told: bool = True
) -> ReferenceCatalog:
    """The references that follow from so many nights; with the values behind them if ``told``."""
    logs = np.array([noise.logs(random, some) for _ in range(launches)])
    sets = {}
    for name in sorted({each.environment for each in some}):
        own = [index for index, each in enumerate(some) if each.environment == name]
        known = {
            some[index]: Reference(
                some[index],
                CENTER * math.exp(logs[:, index].mean()),
                float(logs[:, index].std(ddof=1)),
                launches,
            )
            for index in own
        }
        values = {some[index].key: list(CENTER * np.exp(logs[:, index])) for index in own}
        origin = origin_of(headlines=values) if told else origin_of()
        place = (f"{some[0].system}:{some[0].partition}", name)
        sets[place] = ReferenceSet(Path(f"{name}.tsv"), add_priors(known), origin)
    return ReferenceCatalog(sets)


def night(
    random: np.random.Generator,
    some: Sequence[Case],
    catalog: ReferenceCatalog,
    noise: Noise,
    slower: Slower = lambda _: 0.0,
) -> list[CaseResult]:
    """What a night says of these cases. ``slower``: by which fraction each of them is."""
    logs = noise.logs(random, some)
    return [
        judged(each, catalog, CENTER * math.exp(log) * (1 + slower(each)))
        for each, log in zip(some, logs, strict=True)
    ]


def judged(one: Case, catalog: ReferenceCatalog, value: float) -> CaseResult:
    """The result of a case by its band alone."""
    reference = catalog.reference(one)
    limits = compute_band(reference)
    slow, reason = (Verdict.REGRESSED, "above the limit"), (Verdict.PASS, "")
    verdict, why = slow if limits.too_slow(value) else reason
    return CaseResult(
        one,
        verdict,
        why,
        value=value,
        reference=reference.center,
        band=(limits.lower, limits.upper),
        launches=1,
        reference_launches=reference.launches,
    )


def causes(
    seed: int,
    slower: Slower = lambda _: 0.0,
    noise: Noise = Noise(),
    hosts: Mapping[Case, tuple[str, ...]] | None = None,
    **how,
) -> tuple[list[CommonCause], list[CaseResult]]:
    """What is found in a night after a calibration of its own, and the night."""
    random = np.random.default_rng(seed)
    some = cases(**{key: how.pop(key) for key in ("environments", "each", "controls") if key in how})
    catalog = calibrated(random, some, noise, **how)
    results = night(random, some, catalog, noise, slower)
    return find_common_causes(results, catalog, hosts or {}), results
