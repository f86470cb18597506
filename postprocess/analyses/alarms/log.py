"""The log of alarms: what every night called regressed or cleared, and the number expected by chance.

``<work>/alarms.jsonl`` has one line of JSON per night, and one per mark that a person made. It is rewritten
whole for each, so that a line is there or it is not; the work directory's lock is held.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from postprocess.base import files
from postprocess.base.documents import strict_json
from postprocess.base.documents.records import Amount, Count, Text, parse_record, require_fields
from postprocess.base.errors import UsageError
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.stats.false_discovery import compute_limit_distance, extract_scatter
from postprocess.stats.sequence import FALSE_CALLS

SCHEMA = 1
FILE = "alarms.jsonl"
REAL, FALSE = "real", "false"  #: what a person says of an alarm


@dataclass(frozen=True)
class NightAlarms:
    """The alarms of one night, and the number expected of a healthy machine."""

    session: Text
    started_utc: Text
    site: Text
    judged: Count  #: cases that it could have called regressed
    predicted_screened: Amount  #: of these, by chance
    predicted_regressed: Amount
    cleared: tuple[str, ...]  #: keys
    regressed: Mapping[str, Amount | None]  #: keys with the slowdown
    common: tuple[str, ...] = ()  #: keys of those of them that one common cause explains
    causes: tuple[str, ...] = ()  #: what was told of such causes
    said: Mapping[str, str] = field(default_factory=dict)  #: ``real`` or ``false``, by key
    #: Of the keys of cleared cases that were fine on other hosts alone, the hosts that they were slow on.
    slow_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suspect: tuple[str, ...] = ()  #: keys of cases that the next night decides about

    @property
    def alarms(self) -> tuple[str, ...]:
        """Keys of the alarms that stand each for itself."""
        return tuple(key for key in self.regressed if key not in self.common)

    @property
    def screened(self) -> int:
        """Cases that looked slow at first, each for itself."""
        return len(self.cleared) + len(self.suspect) + len(self.alarms)

    def marked(self, word: str) -> int:
        """Count the alarms that a person marked so."""
        return sum(self.said.get(key) == word for key in self.alarms)


def summarise_night_alarms(
    session: str, started_utc: str, site: str, results: Sequence[CaseResult], causes: Sequence[str] = ()
) -> NightAlarms:
    """Summarise the results of a night for the log. Expected failures are no alarms.

    :param causes: confirmed causes in common, a line each
    """
    counted = [result for result in results if result.verdict in JUDGED and not result.expected]
    chances = [chance for result in counted if (chance := predict_false_alarm(result)) is not None]
    slow = sorted((r.case.key, r) for r in counted if r.verdict == Verdict.REGRESSED)
    return NightAlarms(
        session,
        started_utc,
        site,
        len(chances),
        sum(screened for screened, _ in chances),
        sum(called for _, called in chances),
        tuple(sorted(r.case.key for r in counted if r.verdict == Verdict.CLEARED)),
        {key: each.slowdown for key, each in slow},
        tuple(key for key, each in slow if each.cause),
        tuple(causes),
        slow_on={r.case.key: r.slow_on for r in counted if r.slow_on},
        suspect=tuple(sorted(r.case.key for r in counted if r.verdict == Verdict.SUSPECT)),
    )


def predict_false_alarm(result: CaseResult) -> tuple[float, float] | None:
    """Predict how probably a healthy case is beyond its band, and called regressed.

    None where it could not have been: no scatter is known, or its reference fails nothing.
    """
    known = extract_scatter(result)
    if known is None or result.detectable is None or result.band is None:
        return None
    screened = known.screened(compute_limit_distance(result))
    return screened, min(screened, FALSE_CALLS)


def append_night(path: Path, night: NightAlarms) -> None:
    """Add a night to the log.

    :raises UsageError: if it cannot be written.
    """
    entry = {"schema": SCHEMA, "kind": "night"} | asdict(night)
    del entry["said"]
    _add(path, entry)


def mark_alarm(path: Path, session: str, key: str, word: str) -> None:
    """Note what a person says of an alarm; the last word counts.

    :raises UsageError: if there was no such alarm, or the log cannot be used.
    """
    nights = {night.session: night for night in read_alarm_log(path)}
    if session not in nights:
        last = ", ".join(sorted(nights)[-3:]) or "none"
        raise UsageError(f"{session}: is no session of {path}; the last ones are {last}")
    if key not in nights[session].regressed:
        alarms = ", ".join(sorted(nights[session].regressed)[:3]) or "none"
        raise UsageError(f"{key}: was no alarm of session {session}, which had {alarms}")
    _add(path, {"schema": SCHEMA, "kind": "mark", "session": session, "key": key, "said": word})


def read_alarm_log(path: Path) -> list[NightAlarms]:
    """Read every night of a log with its marks, as written; none if there is no log.

    :raises UsageError: for the first line that is damaged, naming it.
    """
    try:
        *lines, rest = files.read_regular(path).split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; make it readable") from None
    nights: dict[str, NightAlarms] = {}
    for row, line in enumerate([*lines, *([rest] if rest else [])], 1):
        try:
            if row > len(lines):
                raise ValueError("is cut off")
            _take(strict_json.parse_json(line.decode()), nights)
        except ValueError as error:
            fix = "correct or remove the line"
            raise UsageError(f"{path}: row {row}: {error}; {fix}") from None
    return list(nights.values())


def _add(path: Path, entry: Mapping[str, Any]) -> None:
    try:
        before = files.read_regular(path) if path.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"  # a line that was cut off stays one by itself, and is refused
        line = json.dumps(entry, allow_nan=False).encode()
        files.replace_files({path: before + line + b"\n"})
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; make room") from None


@dataclass(frozen=True)
class _Line:
    """What every line of the log has."""

    schema: int
    kind: Literal["night", "mark"]
    session: Text


@dataclass(frozen=True)
class _Mark:
    """What a person said of an alarm."""

    key: Text
    said: Literal["real", "false"]


def _take(value: Any, nights: dict[str, NightAlarms]) -> None:
    """Take one line of the log."""
    line = parse_record(value, _Line)
    if line.schema != SCHEMA:
        raise ValueError(f"schema: {line.schema} is not {SCHEMA}")
    night = nights.get(line.session)
    if line.kind == "night":
        if night:
            raise ValueError(f"session {line.session}: is there twice")
        nights[line.session] = _night(value)
        return
    mark = parse_record(value, _Mark) if night else None
    if not night or not mark or mark.key not in night.regressed:
        raise ValueError("marks an alarm that is not above it")
    nights[line.session] = replace(night, said={**night.said, mark.key: mark.said})


def _night(value: dict[str, Any]) -> NightAlarms:
    require_fields(value, NightAlarms, ("said", "slow_on", "suspect"))
    night = parse_record(value, NightAlarms)
    lists = {"cleared": night.cleared, "common": night.common, "suspect": night.suspect}
    for name, keys in (lists | {"causes": night.causes, **night.slow_on}).items():
        if len({*keys}) < len(keys):
            raise ValueError(f"{name}: has a text twice")
    if not {*night.common} <= {*night.regressed}:
        raise ValueError("common: names a case that is not regressed")
    if not {*night.slow_on} <= {*night.cleared}:
        raise ValueError("slow_on: names a case that is not cleared")
    return night
