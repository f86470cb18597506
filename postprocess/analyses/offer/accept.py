"""Acceptance: every committed row on the delivered machine, by the same rules."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from postprocess.analyses.offer.check.evidence import MeasuredRow, RowKey
from postprocess.analyses.offer.check.offer import OpenedOffer
from postprocess.analyses.offer.form.commitments import Commitment, StoredCommitments
from postprocess.analyses.offer.form.rows import from_log, logs_of
from postprocess.analyses.offer.rules.rules_data import Rules
from postprocess.stats.procurement.acceptance import (
    AcceptedRow,
    OperatingCharacteristic,
    RowVerdict,
    choose_acceptance_looks,
    judge_acceptance,
    simulate_characteristic,
)

SLOWER = tuple(each / 100 for each in range(-10, 31))  #: of the operating characteristic
ALL_PAIRS = "links"  #: the row of all pairs of nodes
USUAL_SPREAD = 0.05  #: where no row tells one


@dataclass(frozen=True)
class JudgedRow:
    """A committed row and what the delivered machine says of it. Values are in the unit of the case."""

    key: RowKey
    demand: str
    unit: str
    committed: float
    tolerance: float
    limit: float  #: the commitment with its tolerance
    found: AcceptedRow
    launches: int
    value: float | None  #: the center of the launches
    bounds: tuple[float, float] | None  #: confidence limits of that, the lower number first


@dataclass(frozen=True)
class JudgedLinks:
    """The verdict on the delivered machine's pairs of nodes."""

    demand: str
    verdict: RowVerdict
    launches: int
    launches_more: int | None = None  #: that the next look takes
    slow: tuple[str, ...] = ()  #: each node, link or path that is named, in words
    remarks: tuple[str, ...] = ()  #: what was measured, or why not


@dataclass(frozen=True)
class Acceptance:
    """All rows."""

    rules: Rules
    rows: tuple[JudgedRow, ...]
    looks: tuple[int, ...]
    spread: float  #: of ln value between launches, of the median row
    links: JudgedLinks | None = None  #: None where the rules do not ask for them

    @cached_property
    def characteristic(self) -> OperatingCharacteristic:
        """How often a row is met and missed, by how much slower than committed the machine is."""
        risk = self.rules.risk
        return simulate_characteristic(
            self.spread,
            self.rules.tolerance,
            self.looks,
            risk.good_failed,
            risk.slow_accepted,
            SLOWER,
        )

    @property
    def counts(self) -> dict[str, int]:
        """Rows by verdict, all four."""
        found = [each for each, _ in self.verdicts]
        return {str(verdict): found.count(verdict) for verdict in RowVerdict}

    @property
    def verdicts(self) -> list[tuple[RowVerdict, str]]:
        """Verdict and demand of every row, and of all pairs of nodes."""
        own = [(row.found.verdict, row.demand) for row in self.rows]
        return own + ([(self.links.verdict, self.links.demand)] if self.links else [])

    @property
    def status(self) -> int:
        """The exit status: 0 all met, 1 a must or should row missed or not run, 3 undecided."""
        bad = (RowVerdict.MISSED, RowVerdict.NOT_RUN)
        asked = [verdict for verdict, demand in self.verdicts if demand != "information"]
        if not asked or any(each in bad for each in asked):
            return 1
        return 3 if RowVerdict.UNDECIDED in asked else 0


def judge_delivery(
    rules: Rules,
    offered: Sequence[MeasuredRow],
    commitments: StoredCommitments,
    delivered: Sequence[MeasuredRow],
    links: JudgedLinks | None = None,
) -> Acceptance:
    """Judge every committed row. One that was not run counts as missed."""
    by_key = commitments.by_key()
    rows = [
        judge_row(rules, row, by_key[row.key.key], delivered)
        for row in offered
        if row.key.key in by_key and by_key[row.key.key].committed
    ]
    spreads = [
        statistics.stdev(logs_of(row.values, row.unit))
        for row in (delivered or offered)
        if len(row.values) > 1 and not row.exact
    ]
    spread = statistics.median(spreads) if spreads else USUAL_SPREAD
    looks = choose_acceptance_looks(rules.launches, rules.risk.most_launches)
    return Acceptance(rules, tuple(rows), looks, spread, links)


def judge_row(
    rules: Rules, row: MeasuredRow, committed: Commitment, delivered: Sequence[MeasuredRow]
) -> JudgedRow:
    """Judge one row."""
    assert committed.committed
    tolerance = rules.tolerance_of(row.rule)
    sign_log = logs_of([committed.committed], row.unit)[0] + math.log1p(tolerance)
    limit = from_log(sign_log, row.unit)
    known = row.key, row.rule.demand, row.unit, committed.committed, tolerance, limit
    found = find_delivered(row, delivered)
    if found is None or found.unit != row.unit:
        return JudgedRow(*known, AcceptedRow(RowVerdict.NOT_RUN), 0, None, None)
    distances = [log - sign_log for log in logs_of(found.values, row.unit)]
    looks = choose_acceptance_looks(rules.launches_of(row.rule), rules.risk.most_launches)
    risks = rules.risk.good_failed, rules.risk.slow_accepted
    worst = row.rule.statistic == "worst"
    judged = judge_acceptance(distances, looks, *risks, exact=found.exact, worst=worst)
    value = bounds = None
    if math.isfinite(judged.mean):
        value = from_log(judged.mean + sign_log, row.unit)
        ends = [from_log(each + sign_log, row.unit) for each in (judged.lower, judged.upper)]
        bounds = min(ends), max(ends)
    return JudgedRow(*known, judged, len(found.values), value, bounds)


def find_delivered(row: MeasuredRow, delivered: Sequence[MeasuredRow]) -> MeasuredRow | None:
    """Find the row of the delivered machine: of the same environment, else of the same family of MPI."""
    own = [
        each
        for each in delivered
        if (each.key.case, each.key.bytes, each.key.category)
        == (row.key.case, row.key.bytes, row.key.category)
        and each.family == row.family
    ]
    same = [each for each in own if each.key.environment == row.key.environment]
    return (same or own or [None])[0]


def list_undecided(acceptance: Acceptance) -> list[JudgedRow]:
    """List the rows that need more launches."""
    return [row for row in acceptance.rows if row.found.verdict == RowVerdict.UNDECIDED]


def open_categories(offer: OpenedOffer, commitments: StoredCommitments) -> list[str]:
    """List the categories in which something is committed."""
    keys = commitments.by_key()
    return list(
        dict.fromkeys(
            row.key.category
            for row in offer.rows
            if row.key.key in keys and keys[row.key.key].committed
        )
    )
