"""What a case costs on a machine when all is well, and how much its launches differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postprocess.base.formats import SECONDS, Unit
from postprocess.model.case import Case

#: launches of a place that a calibration takes; a reference of fewer is not replaced by fewer
ENOUGH_LAUNCHES = 10
#: Sessions below which the spread between them is mostly what other machines had
ENOUGH_SESSIONS = 3
#: Sessions that a provisional reference learns from; then it stands still
MOST_SESSIONS = 10


@dataclass(frozen=True)
class Reference:
    """Cost of a case on a healthy machine, on the logarithm: launches scatter by factors."""

    case: Case
    center: float  #: in ``unit``; exp of the mean of ln value over the sessions
    spread: float  #: standard deviation (ddof 1) of ln value between launches
    launches: int
    unit: Unit = SECONDS
    exact: bool = False  #: of simulated time, which repeats: any difference is a change
    prior: Prior | None = None  #: from the other cases of its file; None if they are too few
    evidence: SessionEvidence | None = None  #: None: all launches are of one session
    #: What is known of its sessions beforehand; None: nothing is asked of sessions, as in simulated time
    session_prior: Prior | None = None
    #: Median time from core to core of its launches, in seconds; None where nothing tells
    core_latency: float | None = None
    #: End (UTC) of the last launch behind it that was calibrated, not learned; empty where none is told
    since: str = ""
    #: The same of the papers' headline, which sees slow trials that are few; None where it is not told
    headline: Reference | None = None

    @property
    def few_launches(self) -> bool:
        """Whether a calibration would take more launches."""
        return self.launches < ENOUGH_LAUNCHES and not self.exact

    @property
    def few_sessions(self) -> bool:
        """Whether other machines tell more of its sessions than this one does."""
        return self.session_prior is not None and self.sessions < ENOUGH_SESSIONS

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
    def days(self) -> tuple[int, ...]:
        """The day of each session, numbered in any way; empty where none is told."""
        return self.evidence.days if self.evidence else ()

    @property
    def inverse_launches(self) -> float:
        """Mean over the sessions of 1 / launches."""
        return self.evidence.inverse_launches if self.evidence else 1.0 / self.launches


@dataclass(frozen=True)
class SessionEvidence:
    """What the sessions of a case tell of it, on ln value; see :mod:`postprocess.stats.sessions`."""

    sessions: int
    inverse_launches: float  #: mean over the sessions of 1 / launches
    between: float = 0.0  #: variance of the means of the sessions; 0 of one session
    #: Of each session, as :func:`postprocess.stats.sessions.number_day` numbers them
    days: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prior:
    """What is known of a spread beside a case's own values; see :mod:`postprocess.stats.priors`."""

    spread: float  #: typical standard deviation of ln headline, between launches or sessions
    degrees: float  #: of freedom that it is worth

    def moderate(self, own: Any, degrees: float) -> tuple[Any, float]:
        """Combine a case's own spread (one or an array) with that of similar cases."""
        worth = degrees + self.degrees
        return ((degrees * own**2 + self.degrees * self.spread**2) / worth) ** 0.5, worth
