"""What one launch says of one case, whichever program measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from postprocess.record_schema import CaseRecord
from postprocess.statistics import Summary
from postprocess.units import SECONDS


@dataclass(frozen=True, eq=False)
class Measurement:
    """The value that is judged, and what stands beside it."""

    value: float  #: the headline, in ``unit``
    unit: str = SECONDS
    #: The best that the launch shows of the case, in ``unit``: mpicost's fastest trial, OSU's median trial.
    #: None where a program tells no more than its mean.
    best: float | None = None
    #: All that a reference benchmark prints
    figures: Mapping[str, float] = field(default_factory=dict)
    summary: Summary | None = None  #: statistics of the trials, where there are trials
    record: CaseRecord | None = None  #: every trial, from mpicost

    @property
    def unseen(self) -> bool:
        """Whether a program printed it as 0.00, as it does the rate of single bytes on a busy machine."""
        return self.record is None and self.value == 0


def of_trials(record: CaseRecord) -> Measurement:
    """A case of mpicost."""
    summary = record.summary
    return Measurement(summary.headline, best=summary.minimum, summary=summary, record=record)
