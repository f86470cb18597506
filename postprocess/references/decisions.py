"""What people decided: failures that are expected for a while, and sides of comparisons that they rejected.

A row names cases, one pattern a column of the key (``*`` is any text, ``?`` any letter), the verdicts that are
expected of them, why, and until when. A case keeps its verdict; it only does not count against the exit status.
A verdict that the row does not name fails, and so does everything once the row has expired. Wrong data are
never expected, nor is what is slow by one cause with many others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta, timezone
from fnmatch import fnmatchcase
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.records import read_record
from postprocess.base.strict_json import format_external
from postprocess.model.case import Case
from postprocess.model.verdict import FAILED, HEALTHY, WITHOUT_VALUE, CaseResult, Verdict
from postprocess.references.reference_file import EXPECTED as NAME
from postprocess.references.reference_file import ReferenceFileError, parse_rows, read_text
from site_configs.schema.waivers import LEAST_REASON

FILE = "decision.json"  #: beside a comparison
ACCEPTED, REJECTED = "accepted", "rejected"


@dataclass(frozen=True)
class DecisionOutcome:
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


KEYS = tuple(field.name for field in fields(Case) if field.name != "system")
NAMING = ("routine", "environment")  #: of which a row names one: a program or a layout is too much
COLUMNS = (*KEYS, "verdicts", "factor", "reason", "ticket", "expires")
VERDICTS = {  #: to expect
    str(each): each for each in Verdict if each in FAILED and each is not Verdict.INCORRECT
}
MOST_DAYS = 400  #: that an expectation may last before it must be renewed
PATTERN = re.compile(r"[A-Za-z0-9_.+*?-]+")
FACTOR = re.compile(r"[1-9][0-9]*(\.[0-9]+)?")


@dataclass(frozen=True)
class ExpectedFailure:
    """One row of the file."""

    path: Path
    row: int
    patterns: tuple[str, ...]  #: in the order of ``KEYS``
    verdicts: frozenset[Verdict]
    factor: float | None  #: most slowdown of what is expected to have regressed; None if nothing is
    reason: str
    ticket: str
    expires: date  #: the last day on which it holds

    @property
    def place(self) -> str:
        """The file and the row, for people."""
        return f"{self.path}: row {self.row}"

    def is_about(self, case: Case) -> bool:
        """Return whether the patterns fit a case of this system."""
        words = (str(getattr(case, key)) for key in KEYS)
        return all(map(fnmatchcase, words, self.patterns))

    def holds(self, today: date) -> bool:
        """Return whether it has not expired."""
        return today <= self.expires

    def allows(self, result: CaseResult) -> bool:
        """Return whether just this failure is expected, and no worse one."""
        if result.verdict not in self.verdicts or not self.is_about(result.case):
            return False
        if self.factor is None or result.verdict is not Verdict.REGRESSED:
            return True
        return result.slowdown is not None and result.slowdown <= self.factor

    def covers(self, other: ExpectedFailure) -> bool:
        """Return whether nothing is left to a later row."""
        pairs = zip(self.patterns, other.patterns, strict=True)
        wider = all(own in ("*", theirs) for own, theirs in pairs)
        limits = (self.factor or float("inf"), other.factor or float("inf"))
        later = self.expires >= other.expires
        return wider and later and self.verdicts >= other.verdicts and limits[0] >= limits[1]


def load_expected_failures(roots: Sequence[Path], systems: Iterable[str]) -> dict[str, list[ExpectedFailure]]:
    """Load the expectations of each system, from the first root that has a file of it.

    :raises ReferenceFileError: for the first fault. What has expired is none here: it only has no effect.
    """
    found = {}
    for system in sorted(set(systems)):
        paths = [root / system / NAME for root in roots]
        path = next((path for path in paths if path.is_file()), None)
        if path:
            found[system], problems = parse_expected_file(path)
            if problems:
                raise ReferenceFileError(problems[0])
    return found


def apply_expected_failures(
    results: Sequence[CaseResult], known: dict[str, list[ExpectedFailure]], today: date
) -> list[CaseResult]:
    """Mark the results that fail as expected; return all."""
    return [apply_expected_failure(result, known.get(result.case.system, ()), today) for result in results]


def apply_expected_failure(result: CaseResult, known: Iterable[ExpectedFailure], today: date) -> CaseResult:
    """Mark a result that an expectation allows, with the reason of the first; none allows a common cause."""
    for each in () if result.cause else known:
        if each.holds(today) and each.allows(result):
            why = f"{each.reason} ({each.ticket})" if each.ticket else each.reason
            reason = f"{result.reason}; expected until {each.expires}: {why}"
            return replace(result, expected=why, reason=reason.removeprefix("; "))
    return result


def check_expected_failures(
    results: Sequence[CaseResult], known: dict[str, list[ExpectedFailure]], today: date, whole: bool
) -> Iterator[str]:
    """Find what is wrong with the expectations themselves, one line each.

    :param whole: whether the session has all cases, so that one without a case is of no use.
    """
    for system, each in ((system, each) for system, some in known.items() for each in some):
        own = [r for r in results if r.case.system == system and each.is_about(r.case)]
        if not each.holds(today):
            yield f"{each.place}: expired on {each.expires}; remove or renew it"
        elif common := sum(bool(r.cause) and each.allows(r) for r in own):
            told = f"{plural(common, 'case')} that it expects, which one cause slows with many others"
            yield f"{each.place}: did not apply to {told}"
        elif whole and not own:
            yield f"{each.place}: nothing that is measured fits it; remove or correct it"
        elif whole and all(r.verdict in HEALTHY - WITHOUT_VALUE for r in own):
            yield f"{each.place}: what it expects no longer fails; remove it"


def lint_expected_file(path: Path, today: date, cases: Sequence[Case] | None = None) -> list[str]:
    """Find every fault of a file, one line each, what has expired among them.

    :param cases: those that exist, if they are known: a row that fits none of them is a fault.
    """
    known, problems = parse_expected_file(path, today)
    for each in known:
        if not each.holds(today):
            problems.append(f"{each.place}: expired on {each.expires}; remove or renew it")
        if cases is not None and not any(map(each.is_about, cases)):
            problems.append(f"{each.place}: no case with a reference fits it; correct or remove it")
    return problems


def parse_expected_file(path: Path, today: date | None = None) -> tuple[list[ExpectedFailure], list[str]]:
    """Parse what can be read of a file, and every fault of it.

    :param today: from which ``expires`` may not be too far; None for today, UTC.
    """
    try:
        text = read_text(path, "restore or remove the file")
    except ValueError as error:
        return [], [str(error)]
    day = today or utc_today()
    rows, problems = parse_rows(
        str(path), text, COLUMNS, lambda number, cell: parse_expected_row(path, number, cell, day)
    )
    known = list(rows.values())
    return known, problems + list(find_shadowed_rows(known))


def utc_today() -> date:
    """Return the day that nights and files are dated by."""
    return datetime.now(timezone.utc).date()


def find_shadowed_rows(known: Sequence[ExpectedFailure]) -> Iterator[str]:
    """Find rows that change nothing, since one above them says as much."""
    for place, each in enumerate(known):
        above = next((other for other in known[:place] if other.covers(each)), None)
        if above:
            yield f"{each.place}: has no effect beside row {above.row}; remove one of them"


def parse_expected_row(path: Path, number: int, cell: Mapping[str, str], today: date) -> ExpectedFailure:
    """Parse one row. Raises ValueError, ``column: what is wrong; fix``."""
    for key in KEYS:
        if not PATTERN.fullmatch(cell[key]):
            raise ValueError(f"{key}: {format_external(cell[key])} is no pattern; write * for any")
    if all(is_any(cell[key]) for key in KEYS):
        raise ValueError("fits every case, as if nothing were measured; name some")
    if all(is_any(cell[key]) for key in NAMING):
        raise ValueError("fits every routine of every environment; name a routine or an environment")
    verdicts = _verdicts(cell["verdicts"])
    if len(cell["reason"].strip()) < LEAST_REASON:
        raise ValueError(f"reason: {format_external(cell['reason'])}; write why it is expected")
    return ExpectedFailure(
        path=path,
        row=number,
        patterns=tuple(cell[key] for key in KEYS),
        verdicts=verdicts,
        factor=_factor(cell["factor"], verdicts),
        reason=cell["reason"].strip(),
        ticket=cell["ticket"].strip(),
        expires=_expires(cell["expires"], today),
    )


def is_any(pattern: str) -> bool:
    """Return whether a pattern names nothing: ``*-*`` fits every environment too."""
    return not any(map(str.isalnum, pattern))


def _verdicts(text: str) -> frozenset[Verdict]:
    words = text.split(",")
    for word in words:
        if word not in VERDICTS:
            raise ValueError(f"verdicts: {format_external(word)}: choose from {', '.join(VERDICTS)}")
    if len(set(words)) < len(words):
        raise ValueError("verdicts: one is there twice; write it once")
    return frozenset(VERDICTS[word] for word in words)


def _factor(text: str, verdicts: frozenset[Verdict]) -> float | None:
    """Return the most slowdown of what is expected to have regressed; a dash where nothing is."""
    if Verdict.REGRESSED not in verdicts:
        if text != "-":
            raise ValueError("factor: only what regressed has one; write -")
        return None
    if not FACTOR.fullmatch(text) or not 1 < float(text) < 1e6:
        raise ValueError(f"factor: {format_external(text)}; write the most slowdown of regressed, as in 1.3")
    return float(text)


def _expires(text: str, today: date) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expires: {format_external(text)}; write a day, as in 2027-03-31") from None
    if text != found.isoformat():  # newer Pythons read other forms too
        raise ValueError(f"expires: {format_external(text)}; write a day, as in 2027-03-31")
    if found > today + timedelta(days=MOST_DAYS):
        raise ValueError(f"expires: {text} is more than {MOST_DAYS} days ahead; write a nearer day")
    return found
