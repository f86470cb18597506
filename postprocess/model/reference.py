"""What a case costs on a machine when all is well, and how much its launches differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postprocess.base.units import SECONDS
from postprocess.model.case import Case

ENOUGH_LAUNCHES = 10  #: a reference of fewer asserts gross changes only
#: Sessions, of calibrations and nights, below which the spread between them is mostly what other machines had:
#: the reference is provisional
ENOUGH_SESSIONS = 3


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
    evidence: SessionEvidence | None = None  #: None: all launches are of one session
    #: What is known of its sessions beforehand; None: nothing is asked of sessions, as in simulated time
    session_prior: Prior | None = None
    #: Median time from core to core of its launches, in seconds; None where nothing tells
    core_latency: float | None = None

    @property
    def few_launches(self) -> bool:
        """Whether so few launches are behind it that it can assert gross changes only."""
        return self.launches < ENOUGH_LAUNCHES and not self.exact

    @property
    def few_sessions(self) -> bool:
        """Whether other machines tell more of its sessions than this one does."""
        return self.session_prior is not None and self.told_by < ENOUGH_SESSIONS

    @property
    def provisional(self) -> bool:
        """Whether too few sessions, or launches, are known for a value inside the band to prove much."""
        return self.few_launches or self.few_sessions

    @property
    def moderated(self) -> tuple[float, float]:
        """Spread and its degrees of freedom, from its own launches and from similar cases."""
        own = max(float(self.launches - self.sessions), 0.0)
        return self.prior.moderate(self.spread, own) if self.prior else (self.spread, own)

    @property
    def sessions(self) -> int:
        """Sessions behind the center: bursts of launches."""
        return self.evidence.sessions if self.evidence else 1

    @property
    def inverse_launches(self) -> float:
        """Mean over the sessions of 1 / launches."""
        return self.evidence.inverse_launches if self.evidence else 1.0 / self.launches

    @property
    def told_by(self) -> int:
        """Sessions that tell how sessions differ: those of the calibration, and nights."""
        return self.sessions + (self.evidence.nights if self.evidence else 0)


@dataclass(frozen=True)
class SessionEvidence:
    """What the sessions of a case tell of it, on ln headline; see :mod:`postprocess.stats.sessions`."""

    sessions: int
    inverse_launches: float  #: mean over the sessions of 1 / launches
    between: float = 0.0  #: variance of the means of the sessions; 0 of one session
    nights: int = 0  #: that tell of the variance besides
    night_variance: float = 0.0  #: of sessions, by the nights alone
    night_degrees: float = 0.0


@dataclass(frozen=True)
class Prior:
    """What is known of a spread beside a case's own values; see :mod:`postprocess.stats.shrinkage`."""

    spread: float  #: typical standard deviation of ln headline, between launches or sessions
    degrees: float  #: of freedom that it is worth

    def moderate(self, own: Any, degrees: float) -> tuple[Any, float]:
        """Combine a case's own spread (one or an array) with that of similar cases."""
        worth = degrees + self.degrees
        return ((degrees * own**2 + self.degrees * self.spread**2) / worth) ** 0.5, worth
