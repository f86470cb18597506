"""The summary of a session, read back from its ``summary.json``."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from postprocess.base.documents.records import parse_record
from postprocess.base.documents.strict_json import read_json
from postprocess.model.verdict import CaseResult, count_verdicts
from postprocess.results.summary import SCHEMA, SessionSummary, SummaryError

FIX = "run the session again, or report with the Plumbline that wrote it"
#: Keys of a case that must be there; of hosts the log of alarms tells.
#: What only the session itself knows of a result, and its value elsewhere
OWN: dict[str, Any] = {"slow_on": (), "elsewhere": False, "core_latency": None}
WANTED = {each.name for each in fields(CaseResult)} - {"case", "summary", *OWN}


@dataclass(frozen=True)
class _Document:
    """What is looked at before the rest is known."""

    schema: int
    counts: dict[str, int]
    cases: list[dict[str, Any]]


@dataclass(frozen=True)
class _Judged:
    cases: tuple[CaseResult, ...]


def load_summary(path: Path) -> SessionSummary:
    """Read a summary file.

    :raises SummaryError: if the file cannot be read, is not JSON, or does not follow the schema.
    """
    try:
        document = read_json(path)
    except OSError as error:
        raise SummaryError(f"{path}: {error.strerror}; {FIX}") from None
    except ValueError as error:
        raise SummaryError(f"{path}: {error}; {FIX}") from None
    return parse_summary(document, str(path))


def parse_summary(document: Any, source: str = "summary.json") -> SessionSummary:
    """Turn the JSON object of a summary into a ``SessionSummary``.

    :raises SummaryError: if a key is missing or of the wrong type, a verdict or unit is not of the closed
        list, a case is there twice, or ``counts`` disagrees with the cases. The text begins with ``source``.
    """
    try:
        return _parse(document)
    except ValueError as error:
        raise SummaryError(f"{source}: {error}; {FIX}") from None


def _parse(document: Any) -> SessionSummary:
    told = parse_record(document, _Document)
    if told.schema != SCHEMA:
        raise ValueError(f"schema: is {told.schema}, and this Plumbline reads {SCHEMA}")
    cases = [_nest(each, number) for number, each in enumerate(told.cases)]
    results = parse_record({"cases": cases}, _Judged).cases
    if len({result.case for result in results}) < len(results):
        raise ValueError("cases: a case is there twice")
    counts = count_verdicts(results)
    if {word: number for word, number in told.counts.items() if number} != counts:
        raise ValueError(f"counts: disagrees with the cases, of which there are {counts}")
    return replace(parse_record(document | {"results": []}, SessionSummary), results=results)


def _nest(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the object of a case in the form of its classes. Raises ValueError if a key is missing."""
    if missing := sorted({*WANTED, "statistics"} - entry.keys()):
        raise ValueError(f"cases[{number}].{missing[0]}: is missing")
    return entry | {"case": entry, "summary": entry["statistics"], **OWN}
