"""What a case costs on a machine when all is well, and how much its launches differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postprocess.base.units import SECONDS
from postprocess.model.case import Case

ENOUGH_LAUNCHES = 10  #: a reference of fewer is provisional


@dataclass(frozen=True)
class Reference:
    """Cost of a case on a healthy machine, on the logarithm: launches scatter by factors."""

    case: Case
    center: float  #: in ``unit``; exp of the mean of ln headline over the launches
    spread: float  #: standard deviation (ddof 1) of ln headline between launches
    launches: int
    unit: str = SECONDS
    exact: bool = False  #: of simulated time, which repeats: any difference is a change
    prior: Prior | None = None  #: from the other cases of its file; None if they are too few

    @property
    def provisional(self) -> bool:
        """Whether so few launches are behind it that it can assert gross changes only."""
        return self.launches < ENOUGH_LAUNCHES and not self.exact

    @property
    def moderated(self) -> tuple[float, float]:
        """Spread and its degrees of freedom, from its own launches and from its kin."""
        own = self.launches - 1.0
        return self.prior.moderate(self.spread, own) if self.prior else (self.spread, own)


@dataclass(frozen=True)
class Prior:
    """What the kin of a case say of its spread; see :mod:`postprocess.stats.shrinkage`."""

    spread: float  #: typical standard deviation of ln headline between launches
    degrees: float  #: of freedom that it is worth

    def moderate(self, own: Any, degrees: float) -> tuple[Any, float]:
        """Spread and its degrees of freedom, from a case's own (one or an array) and from its kin."""
        worth = degrees + self.degrees
        return ((degrees * own**2 + self.degrees * self.spread**2) / worth) ** 0.5, worth
