"""The log of alarms: what every night called regressed or cleared, and the number expected by chance.

``<work>/alarms.jsonl`` has one line of JSON per night, and one per mark that a person made. It is rewritten
whole for each, so that a line is there or it is not; the work directory's lock is held.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from postprocess.base import files, strict_json
from postprocess.base.errors import UsageError
from postprocess.base.strict_json import JsonObject
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.stats.false_discovery import compute_limit_distance, extract_scatter

SCHEMA = 1
FILE = "alarms.jsonl"
REAL, FALSE = "real", "false"  #: what a person says of an alarm


@dataclass(frozen=True)
class NightAlarms:
    """The alarms of one night, and the number expected of a healthy machine."""

    session: str
    started_utc: str
    site: str
    judged: int  #: cases that it could have called regressed
    predicted_screened: float  #: of these, by chance
    predicted_regressed: float
    cleared: tuple[str, ...]  #: keys
    regressed: Mapping[str, float | None]  #: keys with the slowdown
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
    session: str,
    started_utc: str,
    site: str,
    results: Sequence[CaseResult],
    causes: Sequence[str] = (),
    retested: bool = True,
) -> NightAlarms:
    """Summarise the results of a night for the log. Expected failures are no alarms.

    :param causes: confirmed causes in common, a line each
    :param retested: whether what looked slow was measured again; if not, all of it is alarmed
    """
    counted = [each for each in results if each.verdict in JUDGED and not each.expected]
    chances = [chance for each in counted if (chance := predict_false_alarm(each)) is not None]
    slow = sorted((r.case.key, r) for r in counted if r.verdict == Verdict.REGRESSED)
    return NightAlarms(
        session,
        started_utc,
        site,
        len(chances),
        sum(screened for screened, _ in chances),
        sum(chance[retested] for chance in chances),
        tuple(sorted(r.case.key for r in counted if r.verdict == Verdict.CLEARED)),
        {key: each.slowdown for key, each in slow},
        tuple(key for key, each in slow if each.cause),
        tuple(causes),
        slow_on={r.case.key: r.slow_on for r in counted if r.slow_on},
        suspect=tuple(sorted(r.case.key for r in counted if r.verdict == Verdict.SUSPECT)),
    )


def predict_false_alarm(result: CaseResult) -> tuple[float, float] | None:
    """Probability that a healthy case is screened, and that it is called regressed; by its actual limit.

    None where it could not have been: no scatter is known, or its reference fails nothing. Of a provisional
    reference both are upper limits, for it asks for the best of the launch too.
    """
    known = extract_scatter(result)
    if known is None or result.detectable is None or result.band is None:
        return None
    distance = compute_limit_distance(result)
    return known.screened(distance), known.confirmed(distance)


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


def _take(value: Any, nights: dict[str, NightAlarms]) -> None:
    """Take one line of the log."""
    if not isinstance(value, dict):
        raise ValueError(f"{strict_json.format_external(value)} is not an object")
    entry = JsonObject(value)
    if entry.integer("schema") != SCHEMA:
        raise ValueError(f"schema: {value['schema']} is not {SCHEMA}")
    kind, session = entry.word("kind", ("night", "mark")), entry.text("session")
    if kind == "night":
        if session in nights:
            raise ValueError(f"session {session}: is there twice")
        nights[session] = _night(entry)
    elif session not in nights or entry.text("key") not in nights[session].regressed:
        raise ValueError("marks an alarm that is not above it")
    else:
        key, word, night = entry.text("key"), entry.word("said", (REAL, FALSE)), nights[session]
        nights[session] = replace(night, said={**night.said, key: word})


def _night(entry: JsonObject) -> NightAlarms:
    slow = entry.object("regressed")
    night = NightAlarms(
        entry.text("session"),
        entry.text("started_utc"),
        entry.text("site"),
        entry.integer("judged"),
        entry.number("predicted_screened"),
        entry.number("predicted_regressed"),
        _keys(entry, "cleared"),
        {key: slow.optional_number(key) for key in slow.fields},
        _keys(entry, "common"),
        _keys(entry, "causes"),
        suspect=_keys(entry, "suspect") if "suspect" in entry.fields else (),  # logged later
    )
    if not {*night.common} <= {*night.regressed}:
        raise ValueError("common: names a case that is not regressed")
    if "slow_on" not in entry.fields:  # logged before hosts were
        return night
    hosts = entry.object("slow_on")
    night = replace(night, slow_on={key: _keys(hosts, key) for key in hosts.fields})
    if not {*night.slow_on} <= {*night.cleared}:
        raise ValueError("slow_on: names a case that is not cleared")
    return night


def _keys(entry: JsonObject, name: str) -> tuple[str, ...]:
    keys = entry.get(name, list)
    if not all(isinstance(key, str) for key in keys) or len({*keys}) < len(keys):
        raise ValueError(f"{name}: is not a list of texts, each once")
    return tuple(keys)
