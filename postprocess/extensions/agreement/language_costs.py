"""Compare languages with C: a ratio with its interval for each case, and a table of them."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from postprocess.base.formats import DASH, TextTable, factor, microseconds, plural, render_text, size
from postprocess.extensions.agreement.compare import compute_ratio_interval
from postprocess.parsers.bindings import Exchange
from site_configs.mpi.exchange import BATCHES, ROUTINES
from site_configs.mpi.exchange import C as BASIS
from site_configs.mpi.languages import CONTROL, Language

SCHEMA = 1


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
    def compared(self) -> set[tuple[str, str]]:
        """MPI and language of each comparison; C again is a control, and none."""
        measured = {(row.environment, row.language) for row in self.rows}
        return {(environment, name) for environment, name in measured if name not in (BASIS, CONTROL)}

    @property
    def status(self) -> int:
        """The exit status: 1 for any failure, and where nothing was compared."""
        return 1 if self.failures or not self.compared else 0


def compare_with_c(
    environment: str, language: Language, pairs: Sequence[tuple[Exchange, Exchange]]
) -> Iterator[LanguageRatio]:
    """Compare a language with C, round by round.

    :param pairs: what both measured in each round, ``FEWEST_LAUNCHES`` at least
    """
    cases = sorted(pairs[0][1].seconds, key=lambda case: (ROUTINES.index(case[0]), case[1]))
    for case in cases:
        seconds = [(own.seconds[case], c.seconds[case]) for own, c in pairs]
        logs = [math.log(own / c) for own, c in seconds]
        interval = compute_ratio_interval(logs)
        assert interval  # there are enough
        yield LanguageRatio(
            *(environment, language.name, language.title, pairs[0][0].level, *case, len(pairs)),
            *(math.exp(statistics.fmean(logs)), *interval, statistics.median(own for own, _ in seconds)),
            statistics.median(own - c for own, c in seconds),
        )


MPI4PY = "mpi4py: thread level single as C's, or its default; in brackets what the MPI provided"


def format_bindings(result: BindingsResult) -> str:
    """Format all of it for a terminal, with a line at the end that counts."""
    tables = [
        build_language_table(environment, [*rows])
        for environment, rows in groupby(result.rows, key=lambda row: row.environment)
    ]
    lines = [
        f"{word}: {fault.environment}: {fault.title}: {fault.reason}"
        for word, faults in (("skipped", result.skipped), ("error", result.failures))
        for fault in faults
    ]
    lines.append(
        f"{plural(len(result.compared), 'comparison')} with C, {len(result.skipped)} skipped, "
        f"{plural(len(result.failures), 'error')}"
    )
    return "\n".join([*map(render_text, tables), ""]) + "".join(f"{line}\n" for line in lines)


def build_language_table(environment: str, rows: list[LanguageRatio]) -> TextTable:
    """Build a row for each language and routine, a column for each size."""
    sizes = sorted({row.bytes for row in rows})
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        title = row.title + (f" ({row.level})" if row.language.startswith("mpi4py") else "")
        cells.setdefault((row.routine, title), {})[row.bytes] = format_cost(row)
    return TextTable(
        f"{environment}: time of a call over that in C",
        ("routine", "language"),
        tuple(size(each) for each in sizes),
        tuple((*about, *(found.get(each, DASH) for each in sizes)) for about, found in order(cells)),
        (
            f"ratio within the round, with its 95 % interval over {plural(rows[0].launches, 'launch', 'es')}, "
            f"and microseconds over C; a launch counts by the least of {BATCHES} batches",
            "C: microseconds of a call; C again: the same program once more, and so what cannot be told apart",
            *([MPI4PY] if any(row.language.startswith("mpi4py") for row in rows) else []),
        ),
    )


def order(cells: dict[tuple[str, str], dict[int, str]]) -> Iterator[tuple[tuple[str, str], dict[int, str]]]:
    """Order rows by routine, the languages of each as they were measured."""
    routines = [*dict.fromkeys(routine for routine, _ in cells)]
    yield from sorted(cells.items(), key=lambda item: routines.index(item[0][0]))


def format_cost(row: LanguageRatio) -> str:
    """Format a ratio with its interval and the time over C; of C itself its time."""
    if row.language == BASIS:
        return microseconds(row.seconds)
    extra = f"{'+' if row.extra >= 0 else '-'}{microseconds(abs(row.extra))}"
    return f"{factor(row.ratio)} ({factor(row.low)} to {factor(row.high)}), {extra}"
