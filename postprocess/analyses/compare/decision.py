"""The decision of people on a comparison: nothing slower, undecided or missing is accepted without a waiver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from postprocess.analyses.compare.cases import BAD, ComparisonVerdict
from postprocess.analyses.compare.judge import Decision, JudgedComparison
from postprocess.base.documents.records import read_record
from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import first_of, plural, utc_now

FILE = "decision.json"
SCHEMA = 1
NAMED = 3  #: cases that a refusal names
ACCEPTED, REJECTED = "accepted", "rejected"


@dataclass(frozen=True)
class CaseWaiver:
    """Cases that are accepted although they are not proven fine, why and how long."""

    pattern: str  #: of keys, as ``cpu/mpicost/bcast/*``
    reason: str
    until: str  #: last day, as ``2027-03-31``
    cases: tuple[str, ...]  #: keys that it covers


@dataclass(frozen=True)
class SignedDecision:
    """What was decided on a comparison."""

    decision: str  #: ``accepted`` or ``rejected``
    sentence: str  #: of the comparison
    reason: str
    waivers: tuple[CaseWaiver, ...]
    decided_utc: str
    schema: int = SCHEMA


def list_open_keys(judged: JudgedComparison) -> list[str]:
    """List the keys of the cases that are bad or undecided."""
    bad = (*BAD, ComparisonVerdict.UNDECIDED)
    return [each.case.key for each in judged.cases if each.verdict in bad]


def decide(
    judged: JudgedComparison, accept: bool, patterns: Sequence[str], reason: str, until: date | None
) -> SignedDecision:
    """Decide on a comparison.

    :raises UsageError: if it cannot be accepted so
    """
    if patterns and not (reason and until):
        raise UsageError(f"--waive {patterns[0]}: needs --reason and --until")
    if until and until < date.today():
        raise UsageError(f"--until {until}: is over")
    left = list_open_keys(judged)
    waivers = []
    for pattern in patterns:
        covered = [key for key in left if fnmatchcase(key, pattern)]
        if not covered:
            raise UsageError(f"--waive {pattern}: matches no case that needs a waiver")
        waivers.append(CaseWaiver(pattern, reason, str(until), tuple(covered)))
    if accept:
        require_acceptable(judged, left, waivers)
    if not accept and not reason:
        raise UsageError("--reject: needs --reason")
    return SignedDecision(
        ACCEPTED if accept else REJECTED, tell_outcome(judged), reason, tuple(waivers), utc_now()
    )


def require_acceptable(
    judged: JudgedComparison, left: Sequence[str], waivers: Sequence[CaseWaiver]
) -> None:
    """Require that nothing stands against accepting.

    :raises UsageError: if a case does, or the whole comparison
    """
    if judged.decision == Decision.VOID or not judged.cases:
        raise UsageError("--accept: the comparison is void; measure again")
    waived = {key for each in waivers for key in each.cases}
    if rest := [key for key in left if key not in waived]:
        raise UsageError(
            f"--accept: {plural(len(rest), 'case')} slower, undecided, failed or missing: "
            f"{first_of(rest, NAMED)}; measure more pairs, or --waive them"
        )


def tell_outcome(judged: JudgedComparison) -> str:
    """Tell the outcome of a comparison in one line."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in judged.counts.items())
    header = judged.header
    return f"{header.old.label} to {header.new.label}: {judged.decision}; {counts}"


def write_decision(folder: Path, decision: SignedDecision) -> None:
    """Write a decision into its dossier.

    :raises UsageError: if it cannot be written
    """
    write_summary(folder / FILE, asdict(decision))


def read_decision(folder: Path) -> SignedDecision:
    """Read the decision of a dossier.

    :raises UsageError: if there is none, or it is damaged
    """
    try:
        return read_record(folder / FILE, SignedDecision)
    except OSError as error:
        raise UsageError(f"{folder / FILE}: {error.strerror}; nothing is decided") from None
    except ValueError as error:
        raise UsageError(f"{folder / FILE}: {error}: is damaged") from None


def tell_waivers(decision: SignedDecision) -> list[str]:
    """Tell the waivers of a decision, a line each."""
    return [
        f"waived until {each.until}: {each.pattern} ({plural(len(each.cases), 'case')}): {each.reason}"
        for each in decision.waivers
    ]


def list_expired(decision: SignedDecision) -> list[CaseWaiver]:
    """List the waivers that are over."""
    today = date.today().isoformat()
    return [each for each in decision.waivers if each.until < today]
