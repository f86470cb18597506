"""The summary of a session, read back from its ``summary.json``, whichever version of Plumbline wrote it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from postprocess.base.documents.records import parse_record
from postprocess.base.documents.strict_json import read_json
from postprocess.model.verdict import CaseResult, count_verdicts
from postprocess.results.summary import SCHEMA, SessionSummary, SummaryError

FIX = "run the session again, or report with the Plumbline that wrote it"
#: What a reason with a common cause begins with in a summary whose cases have no ``cause``.
EARLIER_CAUSE = "common cause: "
#: What a summary before the steady time does not tell of a case: its value was the headline
HEADLINES = ("headline", "headline_reference", "headline_limit")
#: By the schema that brought them: keys of a list's objects, and what stands for each in an earlier summary.
ADDED: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (2, "launches", {"program": "mpicost", "start": "", "cases": 0}),
    (2, "cases", {"figures": {}}),
    (3, "cases", dict.fromkeys(("q", "detectable", "spread", "degrees"))),
    (3, "cases", {"expected": "", "provisional": False}),
    (
        5,
        "cases",
        dict.fromkeys(("detectable_soon", "detectable_learned", *HEADLINES))
        | {"by_headline": False},
    ),
)
STEADY_SINCE = 5  #: schema whose statistics tell the steady time
ADDED_LISTS = {"programs": 2, "causes": 4}  #: of the summary itself, empty in an earlier one
#: Facts of the machine that earlier summaries do not tell, whatever their schema.
LATER_FACTS = {"hardware_threads": 0, "memory_bytes": 0, "firmware": ""}
#: Keys of a case that must be there; of hosts the log of alarms tells.
#: What only the session itself knows of a result, and its value elsewhere
OWN: dict[str, Any] = {"slow_on": (), "elsewhere": False, "core_latency": None}
WANTED = {each.name for each in fields(CaseResult)} - {"case", "summary", *OWN}


@dataclass(frozen=True)
class _Document:
    """What is looked at before the rest is known."""

    schema: int
    counts: dict[str, int]
    machine: dict[str, Any]
    launches: list[dict[str, Any]]
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
    if not 1 <= told.schema <= SCHEMA:
        raise ValueError(f"schema: {told.schema} is none of 1 to {SCHEMA}, which are read here")
    lists: dict[str, list[dict[str, Any]]] = {"launches": told.launches, "cases": told.cases}
    for schema, key, more in ADDED:
        if told.schema < schema:
            lists[key] = [more | each for each in lists[key]]
    if told.schema < STEADY_SINCE:
        lists["cases"] = [_add_steady(each) for each in lists["cases"]]
    empty: dict[str, Any] = {key: [] for key, schema in ADDED_LISTS.items() if told.schema < schema}
    cases = [_nest(each, number) for number, each in enumerate(lists["cases"])]
    results = parse_record({"cases": cases}, _Judged).cases
    if len({result.case for result in results}) < len(results):
        raise ValueError("cases: a case is there twice")
    counts = count_verdicts(results)
    if {word: number for word, number in told.counts.items() if number} != counts:
        raise ValueError(f"counts: disagrees with the cases, of which there are {counts}")
    rest = {"machine": LATER_FACTS | told.machine, "launches": lists["launches"], "results": []}
    return replace(parse_record(empty | document | rest, SessionSummary), results=results)


def _add_steady(entry: dict[str, Any]) -> dict[str, Any]:
    """Add what statistics did not tell before: of the steady time they know no more than the headline."""
    told = entry.get("statistics")
    if not isinstance(told, dict):
        return entry
    return entry | {"statistics": {"steady": told.get("headline")} | told}


def _nest(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the object of a case in the form of its classes. Raises ValueError if a key is missing."""
    reason = str(entry.get("reason"))
    cause = reason.partition(";")[0] if reason.startswith(EARLIER_CAUSE) else ""
    entry = {"cause": cause} | entry
    if missing := sorted({*WANTED, "statistics"} - entry.keys()):
        raise ValueError(f"cases[{number}].{missing[0]}: is missing")
    return entry | {"case": entry, "summary": entry["statistics"], **OWN}
