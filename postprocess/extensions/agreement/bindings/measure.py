"""Start the languages in rounds, each in a drawn order, and compare them within the round."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from postprocess.extensions.agreement.bindings.bench import Bench, Unavailable
from postprocess.extensions.agreement.bindings.exchange import (
    ROUTINES,
    Exchange,
    ExchangeError,
    Program,
    start_exchange,
)
from postprocess.extensions.agreement.bindings.languages import Language
from postprocess.extensions.agreement.compare import compute_ratio_interval
from site_configs.mpi.identify import extract_identity

SCHEMA = 1
BASIS = "c"


@dataclass(frozen=True)
class LanguageRatio:
    """The time of a call in a language over that in C."""

    environment: str
    language: str
    title: str
    level: str  #: of threads that was provided
    routine: str
    bytes: int
    launches: int
    ratio: float
    low: float
    high: float
    seconds: float  #: of a call, median over launches
    extra: float  #: seconds over C, median of the differences within the rounds


@dataclass(frozen=True)
class LanguageFault:
    """A language that was skipped, or that did something wrong."""

    environment: str
    language: str
    title: str
    reason: str


@dataclass
class BindingsResult:
    """All that was found, as it is written."""

    machine: str
    seed: int
    libraries: dict[str, str] = field(default_factory=dict)  #: by environment
    rows: list[LanguageRatio] = field(default_factory=list)
    skipped: list[LanguageFault] = field(default_factory=list)
    failures: list[LanguageFault] = field(default_factory=list)
    schema: int = SCHEMA

    @property
    def status(self) -> int:
        """The exit status: 1 for any failure, and where nothing was compared."""
        return 1 if self.failures or not self.rows else 0

    def as_json(self) -> dict[str, Any]:
        """Return what is written into files."""
        return asdict(self)


Say = Callable[[str], None]


def measure_mpi(
    bench: Bench,
    languages: Sequence[Language],
    sizes: Sequence[int],
    rounds: int,
    result: BindingsResult,
    say: Say,
) -> None:
    """Measure the languages with an MPI, and add what was found to the result."""
    name = bench.mpi.name
    result.libraries[name] = bench.mpi.library
    draw = random.Random(f"{result.seed} {name}")
    ready: dict[Language, Program] = {}
    for language in languages:
        say(f"{name}: making {language.title} ready")
        try:
            ready[language] = language.prepare(bench)
        except Unavailable as lacking:
            fault = LanguageFault(name, language.name, language.title, str(lacking))
            result.skipped.append(fault)
    found: dict[Language, list[Exchange]] = {language: [] for language in ready}
    for number in range(rounds):
        say(f"{name}: round {number + 1} of {rounds}")
        for language in draw.sample([*found], len(found)):
            try:
                started = start_exchange(
                    ready[language], bench.mpi.launcher, extract_identity(bench.mpi.library), sizes, bench.env
                )
            except ExchangeError as error:
                fault = LanguageFault(name, language.name, language.title, str(error))
                result.failures.append(fault)
                del found[language]
            else:
                found[language].append(started)
    result.rows += compare_with_c(name, found)


def compare_with_c(environment: str, found: dict[Language, list[Exchange]]) -> list[LanguageRatio]:
    """Compare each language with C, round by round; nothing without C."""
    basis = next((runs for language, runs in found.items() if language.name == BASIS), None)
    if not basis:
        return []
    cases = sorted(basis[0].seconds, key=lambda case: (ROUTINES.index(case[0]), case[1]))
    rows = []
    for language, runs in found.items():
        for case in cases:
            pairs = [(own.seconds[case], c.seconds[case]) for own, c in zip(runs, basis, strict=True)]
            logs = [math.log(own / c) for own, c in pairs]
            ratio = math.exp(statistics.fmean(logs))
            low, high = compute_ratio_interval(logs) or (0.0, math.inf)
            rows.append(
                LanguageRatio(
                    *(environment, language.name, language.title, runs[0].level, *case, len(pairs)),
                    *(ratio, low, high, statistics.median(own for own, _ in pairs)),
                    statistics.median(own - c for own, c in pairs),
                )
            )
    return rows
