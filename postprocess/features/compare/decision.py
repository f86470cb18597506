"""The decision of people on a comparison: nothing slower, undecided or missing is accepted without a waiver.

A waiver keeps the rules of expected failures (docs/references.md): it names a routine or an environment, the
verdicts that it covers, the most slowdown, a reason and a last day that is near; wrong data are never waived.
A decision is made anew when it is verified: what would not be signed does not verify.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import first_of, parse_day, parse_utc, plural, utc_now
from postprocess.base.records import read_record
from postprocess.features.compare.cases import BAD, ComparedCase, ComparisonVerdict
from postprocess.features.compare.data import ComparisonHeader, SharedCase
from postprocess.features.compare.judge import Decision, JudgedComparison
from postprocess.references.decisions import ACCEPTED, FILE, MOST_DAYS, REJECTED, is_any, utc_today
from site_configs.schema.waivers import LEAST_REASON

SCHEMA = 2
MOST_FACTOR = 1e6  #: as of an expected failure
NAMED = 3  #: cases that a refusal names
#: Verdicts that a waiver may name, and those that it covers where it names none.
WAIVABLE = (*BAD, ComparisonVerdict.UNDECIDED)
USUAL = (ComparisonVerdict.SLOWER, ComparisonVerdict.UNDECIDED)
PART = re.compile(r"[A-Za-z0-9_.+*?@:-]+")  #: of a pattern
PARTS = len(SharedCase._fields)
ROUTINE = SharedCase._fields.index("label")
PLANTED = "planted delay"  #: as sides tell their differences


@dataclass(frozen=True)
class CaseWaiver:
    """Cases that are accepted although they are not proven fine, why and how long."""

    pattern: str  #: of keys, a part each: ``cpu/mpicost/bcast/*``; a star at the end is all that follows
    reason: str
    until: str  #: last day, as ``2027-03-31``
    cases: tuple[str, ...]  #: keys that it covers; empty while it is asked for
    verdicts: tuple[str, ...]
    factor: float | None  #: most slowdown of what is slower
    ticket: str

    def is_about(self, case: SharedCase) -> bool:
        """Return whether the pattern fits a case."""
        return all(map(fnmatchcase, case.key.split("/"), spread_pattern(self.pattern)))

    def covers(self, each: ComparedCase) -> bool:
        """Return whether it covers a case with its verdict."""
        if each.wrong_data or str(each.verdict) not in self.verdicts or not self.is_about(each.case):
            return False
        slower = each.verdict == ComparisonVerdict.SLOWER
        return not slower or (each.ratio or 0.0) <= (self.factor or 0.0)


@dataclass(frozen=True)
class SignedDecision:
    decision: str  #: ``accepted`` or ``rejected``
    sentence: str  #: of the comparison
    reason: str
    waivers: tuple[CaseWaiver, ...]
    decided_utc: str
    schema: int = SCHEMA


def list_open_cases(judged: JudgedComparison) -> list[ComparedCase]:
    return [case for case in judged.cases if case.verdict in WAIVABLE]


def decide(
    judged: JudgedComparison, accept: bool, asked: Sequence[CaseWaiver], reason: str, decided_utc: str = ""
) -> SignedDecision:
    """Decide on a comparison.

    :param asked: waivers, of which the reason and the cases are found here
    :param decided_utc: when, as it is written everywhere; empty for now
    :raises UsageError: if it cannot be accepted so
    """
    moment = decided_utc or utc_now()
    require_signable(judged.header)
    left = list_open_cases(judged)
    today = parse_utc(moment).date()
    waivers = [waive(replace(waiver, reason=reason), left, today) for waiver in asked]
    if accept:
        require_acceptable(judged, left, waivers)
    if not accept and not reason.strip():
        raise UsageError("--reject: needs --reason")
    decision = ACCEPTED if accept else REJECTED
    return SignedDecision(decision, tell_outcome(judged), reason, tuple(waivers), moment)


def require_signable(header: ComparisonHeader) -> None:
    """Require a comparison of two sides as they are: nothing that was planted says anything of an MPI.

    :raises UsageError: if it is a history, or a delay was planted
    """
    if header.versions:
        raise UsageError("a history of versions has no decision to sign; compare two of them")
    told = [*(side.plant for side in (header.old, header.new)), *list_planted(header)]
    if planted := next((each for each in told if each), ""):
        raise UsageError(
            f"the comparison has a planted delay ({planted}): it shows what is noticed, and validates "
            "nothing; sign one without --plant"
        )


def list_planted(header: ComparisonHeader) -> list[str]:
    """List what else tells of a planted delay: the differences of the sides, and the command."""
    told = [f"{old} to {new}" for what, old, new in header.differences if what == PLANTED]
    return told + [word for word in header.command if word.startswith("--plant")]


def spread_pattern(pattern: str) -> list[str]:
    """Return the patterns of all parts of a key: a star at the end stands for all that follow."""
    parts = pattern.split("/")
    return parts + ["*"] * (PARTS - len(parts)) if parts[-1] == "*" else parts


def waive(asked: CaseWaiver, left: Sequence[ComparedCase], today: date) -> CaseWaiver:
    """Waive cases. Raises UsageError if it is too much, too long, or nothing."""
    pattern = asked.pattern
    require_pattern(pattern)
    if len(asked.reason.strip()) < LEAST_REASON:
        raise UsageError(f"--waive {pattern}: needs --reason, of {LEAST_REASON} letters or more")
    require_near_day(asked.until, today)
    if unknown := [verdict for verdict in asked.verdicts if verdict not in list(map(str, WAIVABLE))]:
        choice = ", ".join(map(str, WAIVABLE))
        raise UsageError(f"--verdicts: {unknown[0]!r} is none of {choice}")
    about = [each for each in left if asked.is_about(each.case)]
    if wrong := [each.case.key for each in about if each.wrong_data]:
        raise UsageError(f"--waive {pattern}: {wrong[0]} received wrong data, which is never waived")
    slower = [case for case in about if case.verdict == ComparisonVerdict.SLOWER]
    named = slower and str(ComparisonVerdict.SLOWER) in asked.verdicts
    if (named or asked.factor) and not 1 < (asked.factor or 0.0) < MOST_FACTOR:
        raise UsageError(f"--waive {pattern}: needs --factor, the most slowdown, as in 1.5")
    covered = tuple(each.case.key for each in about if asked.covers(each))
    if not covered:
        what = "matches no case that needs a waiver, of these verdicts and within the factor"
        raise UsageError(f"--waive {pattern}: {what}")
    return replace(asked, cases=covered)


def require_pattern(pattern: str) -> None:
    """Require a pattern that names a routine or an environment: one for everything is no waiver.

    :raises UsageError: if it does not, or is not a pattern
    """
    parts = spread_pattern(pattern)
    form = "partition/program/routine/variant/layout/bytes"
    if len(parts) != PARTS or not all(map(PART.fullmatch, parts)):
        raise UsageError(
            f"--waive {pattern}: is not a pattern of {form}; write * for any, at the end for the rest"
        )
    environment = parts[0].partition(":")[2]
    if is_any(parts[ROUTINE]) and is_any(environment):
        raise UsageError(f"--waive {pattern}: fits every routine; name one, as cpu/mpicost/bcast/*")


def require_near_day(text: str, today: date) -> None:
    """Require a last day that is to come, and not too far. Raises UsageError if it is none."""
    try:
        until = parse_day(text)
    except ValueError as error:
        raise UsageError(f"--until: {error}; a waiver needs a last day") from None
    if until < today:
        raise UsageError(f"--until {until}: is over")
    if until > today + timedelta(days=MOST_DAYS):
        raise UsageError(f"--until {until}: is more than {MOST_DAYS} days ahead; name a nearer day")


def require_acceptable(
    judged: JudgedComparison, left: Sequence[ComparedCase], waivers: Sequence[CaseWaiver]
) -> None:
    """Require that nothing stands against accepting.

    :raises UsageError: if a case does, or the whole comparison
    """
    if judged.decision == Decision.VOID or not judged.cases:
        raise UsageError("--accept: the comparison is void; measure again")
    waived = {key for waiver in waivers for key in waiver.cases}
    if rest := [case.case.key for case in left if case.case.key not in waived]:
        raise UsageError(
            f"--accept: {plural(len(rest), 'case')} slower, undecided, failed or missing: "
            f"{first_of(rest, NAMED)}; measure more pairs, or --waive them"
        )


def find_decision_fault(judged: JudgedComparison, decided: SignedDecision) -> str:
    """Find why a decision is none that is made of this comparison, in one line; empty if it is."""
    try:
        moment = parse_utc(decided.decided_utc)
        if not parse_utc(judged.header.started_utc) <= moment <= parse_utc(utc_now()) + timedelta(1):
            raise UsageError(f"decided at {decided.decided_utc}: before the comparison, or to come")
        accept = decided.decision == ACCEPTED
        anew = decide(judged, accept, decided.waivers, decided.reason, decided.decided_utc)
    except (UsageError, ValueError) as error:
        return f"would not be signed: {error}"
    return "" if anew == decided else "is not what ./plumbline dossier sign makes of the comparison"


def tell_outcome(judged: JudgedComparison) -> str:
    """Tell the outcome of a comparison in one line."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in judged.counts.items())
    header = judged.header
    return f"{header.old.label} to {header.new.label}: {judged.decision}; {counts}"


def write_decision(folder: Path, decision: SignedDecision) -> None:
    """Write down a decision. Raises UsageError if it cannot be written."""
    write_summary(folder / FILE, asdict(decision))


def read_decision(folder: Path) -> SignedDecision:
    """Read the decision of a dossier. Raises UsageError if there is none, or it is damaged."""
    try:
        return read_record(folder / FILE, SignedDecision)
    except OSError as error:
        raise UsageError(f"{folder / FILE}: {error.strerror}; nothing is decided") from None
    except ValueError as error:
        raise UsageError(f"{folder / FILE}: {error}: is damaged") from None


def tell_waivers(decision: SignedDecision) -> list[str]:
    """Tell the waivers of a decision, a line each."""
    return [
        f"waived until {waiver.until}: {waiver.pattern} ({plural(len(waiver.cases), 'case')}; "
        f"{', '.join(waiver.verdicts)}{f', {waiver.factor:g} times at most' if waiver.factor else ''}): "
        f"{waiver.reason}{f' ({waiver.ticket})' if waiver.ticket else ''}"
        for waiver in decision.waivers
    ]


def list_expired(decision: SignedDecision) -> list[CaseWaiver]:
    today = utc_today().isoformat()
    return [waiver for waiver in decision.waivers if waiver.until < today]
