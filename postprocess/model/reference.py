"""The reference of a case: its cost on a healthy machine, and how much its launches differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postprocess.base.formats import SECONDS, Unit
from postprocess.model.case import Case

#: launches of a place that a calibration takes; a reference is not replaced by one with fewer than both
ENOUGH_LAUNCHES = 10
#: Sessions below which their spread is mostly taken from other machines
ENOUGH_SESSIONS = 3
#: Sessions that a provisional reference learns from before it is frozen
MOST_SESSIONS = 10


@dataclass(frozen=True)
class Reference:
    """The reference of a case: its cost on a healthy machine.

    Means and spreads are of the logarithm, because launches differ by factors.
    """

    case: Case
    center: float  #: in ``unit``; exp of the mean of ln value over the sessions
    spread: float  #: standard deviation (ddof 1) of ln value between launches
    launches: int
    unit: Unit = SECONDS
    exact: bool = False  #: whether time is simulated and repeats: any difference is a change
    prior: Prior | None = None  #: from the other cases of its file; None if there are too few
    evidence: SessionEvidence | None = None  #: None if all launches are of one session
    #: Prior of the spread between sessions; None if sessions do not matter, as in simulated time
    session_prior: Prior | None = None
    #: Median time from core to core in its launches, in seconds; None if unknown
    core_latency: float | None = None
    #: End (UTC) of its last launch that was calibrated, not learned; empty if unknown
    since: str = ""
    #: Reference of the papers' headline, which reveals a few slow trials; None if unknown
    headline: Reference | None = None

    @property
    def few_launches(self) -> bool:
        """Whether a calibration would take more launches."""
        return self.launches < ENOUGH_LAUNCHES and not self.exact

    @property
    def few_sessions(self) -> bool:
        """Whether the spread between sessions is mostly taken from other machines."""
        return self.session_prior is not None and self.sessions < ENOUGH_SESSIONS

    @property
    def moderated(self) -> tuple[float, float]:
        """Spread and its degrees of freedom, from its own launches and from similar cases."""
        degrees = max(float(self.launches - self.sessions), 0.0)
        return self.prior.moderate(self.spread, degrees) if self.prior else (self.spread, degrees)

    @property
    def sessions(self) -> int:
        """Number of sessions behind the center."""
        return self.evidence.sessions if self.evidence else 1

    @property
    def days(self) -> tuple[int, ...]:
        """The day of each session as a number; empty if unknown."""
        return self.evidence.days if self.evidence else ()

    @property
    def inverse_launches(self) -> float:
        """Mean over the sessions of 1 / launches."""
        return self.evidence.inverse_launches if self.evidence else 1.0 / self.launches


@dataclass(frozen=True)
class SessionEvidence:
    """Evidence from the sessions of a case, on ln value; see :mod:`postprocess.stats.sessions`."""

    sessions: int
    inverse_launches: float  #: mean over the sessions of 1 / launches
    between: float = 0.0  #: variance of the means of the sessions; 0 for one session
    #: By session, numbered as in :func:`postprocess.stats.sessions.number_day`
    days: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prior:
    """Prior knowledge of a spread; see :mod:`postprocess.stats.priors`."""

    spread: float  #: typical standard deviation of ln headline, between launches or sessions
    degrees: float  #: degrees of freedom that the prior is worth

    def moderate(self, own: Any, degrees: float) -> tuple[Any, float]:
        """Combine a case's own spread, a number or an array, with the prior.

        Return the spread and its degrees of freedom.
        """
        worth = degrees + self.degrees
        return ((degrees * own**2 + self.degrees * self.spread**2) / worth) ** 0.5, worth
