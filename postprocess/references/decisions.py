"""Decisions by people: failures that are expected for a while, and comparisons whose new side was rejected.

A row names cases, with one pattern per column of the key (``*`` is any text, ``?`` any letter), their expected
verdicts, the reason, and the last day. A case keeps its verdict but does not count against the exit status. A
verdict that the row does not name fails, and so does everything once the row has expired. Wrong data is never
expected, and neither is a slowdown with a common cause.
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
    """Check that the new side of a comparison was not rejected; without a decision it was not.

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
#: a row names one of them, because a program or a layout alone is too broad
NAMING = ("routine", "environment")
COLUMNS = (*KEYS, "verdicts", "factor", "reason", "ticket", "expires")
VERDICTS = {  #: verdicts that can be expected
    str(verdict): verdict for verdict in Verdict if verdict in FAILED and verdict is not Verdict.INCORRECT
}
MOST_DAYS = 400  #: longest life of an expectation before it must be renewed
PATTERN = re.compile(r"[A-Za-z0-9_.+*?-]+")
FACTOR = re.compile(r"[1-9][0-9]*(\.[0-9]+)?")


@dataclass(frozen=True)
class ExpectedFailure:
    """One row of the file."""

    path: Path
    row: int
    patterns: tuple[str, ...]  #: in the order of ``KEYS``
    verdicts: frozenset[Verdict]
    factor: float | None  #: largest expected slowdown of a regression; None if none is expected
    reason: str
    ticket: str
    expires: date  #: the last day on which it holds

    @property
    def place(self) -> str:
        """The file and the row, for people."""
        return f"{self.path}: row {self.row}"

    def is_about(self, case: Case) -> bool:
        """Return whether the patterns match a case of this system."""
        words = (str(getattr(case, key)) for key in KEYS)
        return all(map(fnmatchcase, words, self.patterns))

    def holds(self, today: date) -> bool:
        """Return whether the expectation has not expired."""
        return today <= self.expires

    def allows(self, result: CaseResult) -> bool:
        """Return whether exactly this failure is expected, and not a worse one."""
        if result.verdict not in self.verdicts or not self.is_about(result.case):
            return False
        if self.factor is None or result.verdict is not Verdict.REGRESSED:
            return True
        return result.slowdown is not None and result.slowdown <= self.factor

    def covers(self, other: ExpectedFailure) -> bool:
        """Return whether a later row would have no effect."""
        pairs = zip(self.patterns, other.patterns, strict=True)
        wider = all(pattern in ("*", theirs) for pattern, theirs in pairs)
        limits = (self.factor or float("inf"), other.factor or float("inf"))
        later = self.expires >= other.expires
        return wider and later and self.verdicts >= other.verdicts and limits[0] >= limits[1]


def load_expected_failures(roots: Sequence[Path], systems: Iterable[str]) -> dict[str, list[ExpectedFailure]]:
    """Load the expectations of each system, from the first root that has a file for it.

    :raises ReferenceFileError: for the first fault. An expired row is not one: it merely has no effect.
    """
    expectations = {}
    for system in sorted(set(systems)):
        paths = [root / system / NAME for root in roots]
        path = next((path for path in paths if path.is_file()), None)
        if path:
            expectations[system], problems = parse_expected_file(path)
            if problems:
                raise ReferenceFileError(problems[0])
    return expectations


def apply_expected_failures(
    results: Sequence[CaseResult], known: dict[str, list[ExpectedFailure]], today: date
) -> list[CaseResult]:
    """Mark the results whose failure is expected; return all results."""
    return [apply_expected_failure(result, known.get(result.case.system, ()), today) for result in results]


def apply_expected_failure(result: CaseResult, known: Iterable[ExpectedFailure], today: date) -> CaseResult:
    """Mark a result that an expectation allows, with its reason. None allows a common cause."""
    for expectation in () if result.cause else known:
        if expectation.holds(today) and expectation.allows(result):
            why = f"{expectation.reason} ({expectation.ticket})" if expectation.ticket else expectation.reason
            reason = f"{result.reason}; expected until {expectation.expires}: {why}"
            return replace(result, expected=why, reason=reason.removeprefix("; "))
    return result


def check_expected_failures(
    results: Sequence[CaseResult], known: dict[str, list[ExpectedFailure]], today: date, whole: bool
) -> Iterator[str]:
    """Describe what is wrong with the expectations themselves, in one line each.

    :param whole: whether the session has all cases, so that an expectation without a case is useless.
    """
    for system, expectation in (
        (system, expectation) for system, rows in known.items() for expectation in rows
    ):
        matching = [r for r in results if r.case.system == system and expectation.is_about(r.case)]
        if not expectation.holds(today):
            yield f"{expectation.place}: expired on {expectation.expires}; remove or renew it"
        elif common := sum(bool(r.cause) and expectation.allows(r) for r in matching):
            cases = f"{plural(common, 'case')} that it expects, which one cause slows with many others"
            yield f"{expectation.place}: did not apply to {cases}"
        elif whole and not matching:
            yield f"{expectation.place}: nothing that is measured fits it; remove or correct it"
        elif whole and all(r.verdict in HEALTHY - WITHOUT_VALUE for r in matching):
            yield f"{expectation.place}: what it expects no longer fails; remove it"


def lint_expected_file(path: Path, today: date, cases: Sequence[Case] | None = None) -> list[str]:
    """Find every fault of a file, one line each, including expired rows.

    :param cases: those that exist, if known: a row that matches none of them is a fault.
    """
    rows, problems = parse_expected_file(path, today)
    for row in rows:
        if not row.holds(today):
            problems.append(f"{row.place}: expired on {row.expires}; remove or renew it")
        if cases is not None and not any(map(row.is_about, cases)):
            problems.append(f"{row.place}: no case with a reference fits it; correct or remove it")
    return problems


def parse_expected_file(path: Path, today: date | None = None) -> tuple[list[ExpectedFailure], list[str]]:
    """Parse the sound rows of a file, and find all of its faults.

    :param today: day from which ``expires`` may not be too far; None for today, UTC.
    """
    try:
        text = read_text(path, "restore or remove the file")
    except ValueError as error:
        return [], [str(error)]
    day = today or utc_today()
    rows, problems = parse_rows(
        str(path), text, COLUMNS, lambda number, cell: parse_expected_row(path, number, cell, day)
    )
    expectations = list(rows.values())
    return expectations, problems + list(find_shadowed_rows(expectations))


def utc_today() -> date:
    """Return today's date in UTC, which dates nights and files."""
    return datetime.now(timezone.utc).date()


def find_shadowed_rows(known: Sequence[ExpectedFailure]) -> Iterator[str]:
    """Find rows without effect because a row above covers them."""
    for place, row in enumerate(known):
        above = next((other for other in known[:place] if other.covers(row)), None)
        if above:
            yield f"{row.place}: has no effect beside row {above.row}; remove one of them"


def parse_expected_row(path: Path, number: int, cell: Mapping[str, str], today: date) -> ExpectedFailure:
    """Parse one row. Raises ValueError, ``column: what is wrong; fix``."""
    for key in KEYS:
        if not PATTERN.fullmatch(cell[key]):
            raise ValueError(f"{key}: {format_external(cell[key])} is not a pattern; write * for any")
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
    """Return whether a pattern names nothing: ``*-*`` matches every environment too."""
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
    """Return the largest expected slowdown of a regression; the cell is a dash if none is expected."""
    if Verdict.REGRESSED not in verdicts:
        if text != "-":
            raise ValueError("factor: only what regressed has one; write -")
        return None
    if not FACTOR.fullmatch(text) or not 1 < float(text) < 1e6:
        raise ValueError(f"factor: {format_external(text)}; write the most slowdown of regressed, as in 1.3")
    return float(text)


def _expires(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expires: {format_external(text)}; write a day, as in 2027-03-31") from None
    if text != day.isoformat():  # newer Pythons accept other forms too
        raise ValueError(f"expires: {format_external(text)}; write a day, as in 2027-03-31")
    if day > today + timedelta(days=MOST_DAYS):
        raise ValueError(f"expires: {text} is more than {MOST_DAYS} days ahead; write a nearer day")
    return day
