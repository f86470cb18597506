"""What people decided on a comparison: of a side that they rejected no reference is made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from postprocess.base.documents.records import read_record
from postprocess.base.errors import UsageError

FILE = "decision.json"  #: beside a comparison
ACCEPTED, REJECTED = "accepted", "rejected"


@dataclass(frozen=True)
class DecisionOutcome:
    """What was decided, and why."""

    decision: str  #: ``accepted`` or ``rejected``
    reason: str


def require_not_rejected(folder: Path) -> None:
    """Check that the new side of a comparison was not rejected; where nothing is decided, it was not.

    :raises UsageError: if it was, or the decision is damaged
    """
    path = folder / FILE
    if not path.exists():
        return
    try:
        outcome = read_record(path, DecisionOutcome, exact=False)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; nothing is decided") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}: is damaged") from None
    if outcome.decision == REJECTED:
        raise UsageError(f"{folder}: its new side was rejected: {outcome.reason}")
