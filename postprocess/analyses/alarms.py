"""The log of alarms: what every night called regressed, by month, beside the number expected by chance.

``<work>/alarms.jsonl`` has one line of JSON per night, and one per mark that a person made. It is rewritten
whole for each, so that a line is there or it is not; the work directory's lock is held.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import scipy

from postprocess.base import files, strict_json
from postprocess.base.errors import UsageError, explaining
from postprocess.base.records import Amount, Count, Text, parse_record
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.stats.detection import FALSE_CALLS, compute_limit_distance, extract_scatter

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
    common: tuple[str, ...]  #: keys of those of them that one common cause explains
    causes: tuple[str, ...]  #: what was told of such causes
    said: Mapping[str, str] = field(default_factory=dict, kw_only=True)  #: ``real`` or ``false``, by key
    #: Of the keys of cleared cases that were fine on other hosts alone, the hosts that they were slow on.
    slow_on: Mapping[str, tuple[str, ...]]
    suspect: tuple[str, ...]  #: keys of cases that the next night decides about

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
        {r.case.key: r.slow_on for r in counted if r.slow_on},
        tuple(sorted(r.case.key for r in counted if r.verdict == Verdict.SUSPECT)),
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
    """Add a night to the log. Raises UsageError if it cannot be written."""
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
        raise UsageError(f"{session}: is not a session of {path}; the last ones are {last}")
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
    with explaining(f"{path}: cannot be written", "make room"):
        before = files.read_regular(path) if path.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"  # a line that was cut off stays one by itself, and is refused
        line = json.dumps(entry, allow_nan=False).encode()
        files.replace_files({path: before + line + b"\n"})


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


CONFIDENCE = 0.95
MOST_CLEARED = 10
OFTEN = 2  #: nights on which a case is cleared before it is named


@dataclass(frozen=True)
class AlarmCount:
    """A count against its prediction."""

    predicted: float
    counted: int
    dispersion: float  #: variance between nights, in that of independent events; 1 or more

    @property
    def interval(self) -> tuple[float, float]:
        """Where the expectation behind the count lies with 95% confidence.

        Exact for events by chance (Garwood, Biometrika 28, 1936), stretched by the dispersion: nights have
        effects of their own, and such events come together.
        """
        low, high = compute_poisson_interval(self.counted / self.dispersion)
        return self.dispersion * low, self.dispersion * high

    @property
    def verdict(self) -> str:
        """``as predicted``, ``more`` or ``fewer``."""
        low, high = self.interval
        if low <= self.predicted <= high:
            return "as predicted"
        return "more" if self.predicted < low else "fewer"


@dataclass(frozen=True)
class AlarmMonth:
    """The nights of a site in a month, or in all."""

    site: str
    name: str
    nights: int
    judged: int
    screened: AlarmCount
    regressed: AlarmCount
    common: int  #: nights on which many cases were slow by one cause
    real: int  #: alarms that a person called so
    false: int

    @property
    def unmarked(self) -> int:
        """Alarms without a mark."""
        return self.regressed.counted - self.real - self.false


def tally_by_month(nights: Iterable[NightAlarms]) -> list[AlarmMonth]:
    """Tally each month and all of them together, site by site, because machines differ."""
    found: dict[str, dict[str, list[NightAlarms]]] = {}
    for night in nights:
        found.setdefault(night.site, {}).setdefault(night.started_utc[:7], []).append(night)
    return [month for site in sorted(found) for month in tally_site_by_month(site, found[site])]


def tally_site_by_month(site: str, found: Mapping[str, Sequence[NightAlarms]]) -> list[AlarmMonth]:
    """Tally the months of one site, by name, and all of them together if they are several."""
    every = [night for some in found.values() for night in some]
    named = [tally_month(site, name, found[name]) for name in sorted(found)]
    return [*named, tally_month(site, "all", every)] if len(named) > 1 else named


def tally_month(site: str, name: str, nights: Sequence[NightAlarms]) -> AlarmMonth:
    screened = [(night.predicted_screened, night.screened) for night in nights]
    regressed = [(night.predicted_regressed, len(night.alarms)) for night in nights]
    return AlarmMonth(
        site,
        name,
        len(nights),
        sum(night.judged for night in nights),
        sum_alarm_counts(screened),
        sum_alarm_counts(regressed),
        sum(bool(night.common or night.causes) for night in nights),
        sum(night.marked(REAL) for night in nights),
        sum(night.marked(FALSE) for night in nights),
    )


def sum_alarm_counts(nights: Sequence[tuple[float, int]]) -> AlarmCount:
    """Sum (predicted, counted) of some nights.

    The dispersion is Pearson's, about the rate that the nights have themselves: a prediction that is wrong
    must not widen its own interval.
    """
    predicted, counted = sum(p for p, _ in nights), sum(c for _, c in nights)
    if len(nights) < 2 or not counted or not predicted:
        return AlarmCount(predicted, counted, 1.0)
    rate = counted / predicted
    due = [(rate * p, c) for p, c in nights if p]
    spread = sum((c - e) ** 2 / e for e, c in due) / (len(nights) - 1)
    return AlarmCount(predicted, counted, max(spread, 1.0))


def compute_poisson_interval(count: float) -> tuple[float, float]:
    """Compute the means under which so few, or so many, events have a probability of 2.5% or more."""
    tail = (1 - CONFIDENCE) / 2
    low = float(scipy.special.gammaincinv(count, tail)) if count else 0.0
    return low, float(scipy.special.gammaincinv(count + 1, 1 - tail))


def find_often_cleared(nights: Iterable[NightAlarms]) -> list[tuple[str, int]]:
    """Find cases that were cleared on several nights: their references may be stale."""
    counts = Counter(key for night in nights for key in night.cleared)
    often = [(key, number) for key, number in counts.items() if number >= OFTEN]
    return sorted(often, key=lambda each: (-each[1], each[0]))[:MOST_CLEARED]


def find_slow_hosts(nights: Iterable[NightAlarms], key: str) -> tuple[str, ...]:
    """Find the hosts on which a case looks slow that is often cleared; empty if hosts do not explain it.

    It was slow on them on several nights, in half of its clearings or more, and fine on others alone. A second
    look avoids hosts wherever it can: those of one night say nothing.
    """
    cleared = [night for night in nights if key in night.cleared]
    counts = Counter(host for night in cleared for host in night.slow_on.get(key, ()))
    least = max(OFTEN, len(cleared) / 2)
    return tuple(sorted(host for host, number in counts.items() if number >= least))
