"""What the papers printed, and which simulated machines stand for theirs. These data are no references.

The files and their conventions: ``reference_data/historical/README.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.extensions.papers.common.linear_model import Growth, LinearModel
from postprocess.extensions.papers.common.rows import HistoricalError, read_rows

DIRECTORY = Path(__file__).resolve().parents[4] / "reference_data" / "historical"
NOTHING = Growth("0", ())


@dataclass(frozen=True)
class PrintedRatio:
    """Time on one machine over time on another, both at ``processes``."""

    routine: str
    bytes: int
    processes: int
    machine: str
    against: str
    ratio: float
    source: str
    line: int  #: of the text of the paper, as in all classes here


@dataclass(frozen=True)
class PrintedCost:
    """Time per call of RUS Stuttgart's loop. ``bytes`` is that report's buffer, see its README."""

    routine: str
    bytes: int
    processes: int
    machine: str
    microseconds: float
    source: str
    line: int


@dataclass(frozen=True)
class PrintedModel:
    """A model of Taboada et al. with its peaks over ``least`` to ``most`` processes.

    Start-up ``t0`` and intercept ``ti`` are in us, time per byte ``tb`` in ns, ``startup`` in 1000 bytes/s,
    ``bandwidth`` in 1e6 bytes/s. A barrier has a start-up only.
    """

    machine: str
    library: str
    routine: str
    least: int
    most: int
    t0: Growth
    ti: Growth | None
    tb: Growth | None
    startup: float
    bandwidth: float | None
    source: str
    line: int

    @property
    def model(self) -> LinearModel:
        """The model in seconds and bytes."""
        return LinearModel(
            self.t0.scaled(1e-6),
            (self.ti or NOTHING).scaled(1e-6),
            (self.tb or NOTHING).scaled(1e-9),
        )


@dataclass(frozen=True)
class PrintedCrossover:
    """From which size on a composition replaces a collective operation; ``bytes`` with KB = 1024."""

    machine: str
    library: str
    routine: str
    processes: int
    side: str  #: ``above`` or ``below``, as printed
    bytes: int
    source: str
    line: int


@dataclass(frozen=True)
class PrintedReduction:
    """By how much a composition was measured to be faster than what it replaces."""

    machine: str
    library: str
    routine: str
    processes: int
    bytes: int
    percent: float
    source: str
    line: int


@dataclass(frozen=True)
class PrintedKernel:
    """Time of a kernel in one placement over its time in another, on the SCI cluster."""

    kernel: str
    size: str
    library: str
    processes: int
    per_node: int
    over_processes: int
    over_per_node: int
    ratio: float
    source: str
    line: int


@dataclass(frozen=True)
class PrintedFigure:
    """A figure of the running text or of a small table; ``-`` where the paper leaves something open."""

    machine: str
    library: str
    routine: str
    processes: str
    bytes: str
    quantity: str
    value: float
    unit: str
    paper: str
    line: int


@dataclass(frozen=True)
class StandIn:
    """A simulated partition that stands for a machine of the papers, and how it differs from it."""

    system: str
    partition: str
    machine: str
    remark: str


@dataclass(frozen=True)
class FittedRatio:
    """A printed ratio from which a model was made: that it comes out again is no evidence."""

    system: str
    partition: str
    routine: str
    bytes: int


@dataclass(frozen=True)
class History:
    """All that was printed, in the order of the files."""

    ratios: tuple[PrintedRatio, ...]
    costs: tuple[PrintedCost, ...]
    models: tuple[PrintedModel, ...]
    crossovers: tuple[PrintedCrossover, ...]
    reductions: tuple[PrintedReduction, ...]
    kernels: tuple[PrintedKernel, ...]
    figures: tuple[PrintedFigure, ...]
    stand_ins: tuple[StandIn, ...]
    fits: tuple[FittedRatio, ...]


#: The files of the fields of :class:`History`, and the class of their rows
FILES: dict[str, tuple[str, type[Any]]] = {
    "ratios": ("luecke2001_ratios.csv", PrintedRatio),
    "costs": ("rus_costs.csv", PrintedCost),
    "models": ("taboada_models.csv", PrintedModel),
    "crossovers": ("taboada_crossovers.csv", PrintedCrossover),
    "reductions": ("taboada_reductions.csv", PrintedReduction),
    "kernels": ("taboada_kernels.csv", PrintedKernel),
    "figures": ("text_figures.csv", PrintedFigure),
    "stand_ins": ("stand_ins.csv", StandIn),
    "fits": ("fits.csv", FittedRatio),
}


def load_history(directory: Path = DIRECTORY) -> History:
    """Read every file of printed figures.

    :raises HistoricalError: for the first file that is missing or not as it should be, with its row.
    """
    return History(
        **{name: read_rows(directory / file, kind) for name, (file, kind) in FILES.items()}
    )


def lint_history(directory: Path = DIRECTORY) -> list[str]:
    """Find what is wrong with the files of printed figures, the first fault of each."""
    found = []
    for file, kind in FILES.values():
        try:
            read_rows(directory / file, kind)
        except HistoricalError as error:
            found.append(str(error))
    known = {file for file, _ in FILES.values()}
    strays = sorted(path for path in directory.glob("*.csv") if path.name not in known)
    return found + [f"{path}: is never read; remove it" for path in strays]
