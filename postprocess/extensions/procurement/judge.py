"""Acceptance: every committed row on the delivered machine, by the same rules."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from postprocess.base.formats import compute_slowdown
from postprocess.extensions.procurement.commitments import Commitment, StoredCommitments
from postprocess.extensions.procurement.form_rows import from_log, logs_of
from postprocess.extensions.procurement.offer import MeasuredRow, RowKey
from postprocess.extensions.procurement.rules.rules import Rules
from postprocess.stats.acceptance import (
    AcceptedRow,
    Open,
    OperatingCharacteristic,
    RowVerdict,
    choose_acceptance_looks,
    compute_exceedance,
    judge_acceptance,
    simulate_characteristic,
)
from postprocess.stats.launches import is_farther

MADE_UP = 2  #: times the most launches: that are made in all, those that do not count included
SLOWER = tuple(each / 100 for each in range(-10, 31))  #: of the operating characteristic
ALL_PAIRS = "links"  #: the row of all pairs of nodes
EASY = 1.5  #: slack of a commitment from which on it tests little
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
    launches: int = 0  #: that count
    value: float | None = None  #: the center of the launches
    bounds: tuple[float, float] | None = None  #: confidence limits of that, the lower number first
    apart: int = 0  #: launches that do not count: their cores were farther apart than any of the offer

    @property
    def slack(self) -> float | None:
        """How many times as slow as it was measured the machine may be; below 1 it is slower than committed."""
        if self.value is None:
            return None
        return compute_slowdown(self.committed, self.value, self.unit)

    @property
    def made(self) -> int:
        return self.launches + self.apart


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
            self.spread, self.rules.tolerance, self.looks, risk.good_failed, risk.slow_accepted, SLOWER
        )

    @property
    def counts(self) -> dict[str, int]:
        """Rows by verdict, all four."""
        found = [each for each, _ in self.verdicts]
        return {str(verdict): found.count(verdict) for verdict in RowVerdict}

    @property
    def slacks(self) -> list[float]:
        """The slack of each row that was measured, the smallest first."""
        return sorted(row.slack for row in self.rows if row.slack is not None)

    @property
    def easy(self) -> int:
        """Rows whose commitment is so far from what the machine does that it tests little."""
        return sum(slack >= EASY for slack in self.slacks)

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
    rows = [judge_row(rules, row, own, delivered) for row, own in commitments.list_committed(offered)]
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
    assert committed.committed
    tolerance = rules.tolerance_of(row.rule)
    limit_log = logs_of([committed.committed], row.unit)[0] + math.log1p(tolerance)
    not_run = JudgedRow(
        row.key,
        row.rule.demand,
        row.unit,
        committed.committed,
        tolerance,
        from_log(limit_log, row.unit),
        AcceptedRow(RowVerdict.NOT_RUN),
    )
    found = find_delivered(row, delivered)
    if found is None or found.unit != row.unit:
        return not_run
    distances = [log - limit_log for log in logs_of(found.values, row.unit)]
    judged, apart = judge_placed(rules, row, found, distances)
    told = replace(not_run, found=judged, launches=len(found.values) - apart, apart=apart)
    if not math.isfinite(judged.mean):
        return told
    value, *ends = (from_log(log + limit_log, row.unit) for log in (judged.mean, judged.lower, judged.upper))
    return replace(told, value=value, bounds=(min(ends), max(ends)))


def judge_placed(
    rules: Rules, row: MeasuredRow, found: MeasuredRow, distances: Sequence[float]
) -> tuple[AcceptedRow, int]:
    """Judge a row by the launches that lay as those of the offer. Returns how many did not.

    What lay farther apart does not count as long as chance explains it: on a machine that moves ranks, both
    would have them. Else it is the machine's own: all launches must then keep the commitment, and a row that
    they do not keep is undecided, since the offer says nothing of such cores. Both ways share the risk.

    :param distances: of each launch from the limit, on the logarithm
    """
    looks = looks_of(rules, row.rule.name)
    failed, accepted = rules.risk.good_failed, rules.risk.slow_accepted
    worst = row.rule.statistic == "worst"
    apart = [] if worst or found.exact else find_apart(row.cores, found.cores)
    if not any(apart):
        return judge_acceptance(distances, looks, failed, accepted, found.exact, worst), 0
    own = [each for each, far in zip(distances, apart, strict=True) if not far]
    near = judge_acceptance(own, looks, failed, accepted / 2)
    if near.verdict == RowVerdict.MISSED or is_chance(rules, row, apart):
        return near, sum(apart)
    whole = judge_acceptance(distances, looks, failed, accepted / 2)
    if whole.verdict == RowVerdict.MET:
        return whole, 0
    open_row = replace(near, verdict=RowVerdict.UNDECIDED, why=Open.APART, launches_more=None)
    return replace(open_row, needed=None), sum(apart)


def find_apart(offered: Sequence[float | None], delivered: Sequence[float | None]) -> list[bool]:
    """Find the launches whose cores were clearly farther apart than those of every launch of the offer.

    None where a launch of the offer does not tell: it may have been as far.

    :param offered: longest time from core to core of each launch, in seconds
    """
    known = [value for value in offered if value is not None]
    if not known or len(known) < len(offered):
        return [False] * len(delivered)
    return [value is not None and is_farther(value, max(known)) for value in delivered]


def is_chance(rules: Rules, row: MeasuredRow, apart: Sequence[bool]) -> bool:
    """Return whether chance explains launches that lay farther apart, and more of them may be made up for."""
    if len(apart) >= MADE_UP * rules.risk.most_launches:
        return False
    probability = compute_exceedance(len(row.values), len(apart), sum(apart))
    return probability > rules.risk.good_failed


def find_delivered(row: MeasuredRow, delivered: Sequence[MeasuredRow]) -> MeasuredRow | None:
    """Find the row of the delivered machine: of the same environment, else of the same family of MPI."""
    own = [
        each
        for each in delivered
        if (each.key.case, each.key.bytes, each.key.category) == (row.key.case, row.key.bytes, row.key.category)
        and each.family == row.family
    ]
    same = [each for each in own if each.key.environment == row.key.environment]
    return next(iter(same or own), None)


def list_undecided(acceptance: Acceptance) -> list[JudgedRow]:
    return [row for row in acceptance.rows if row.found.verdict == RowVerdict.UNDECIDED]


def looks_of(rules: Rules, case: str) -> tuple[int, ...]:
    """Return after how many launches one looks at the rows of a case."""
    return choose_acceptance_looks(rules.launches_of(rules.find_case(case)), rules.risk.most_launches)


def find_next_look(rules: Rules, row: JudgedRow) -> int | None:
    """Return the launches of a row at its next look; None if there is none.

    Those that do not count are made up for, as long as all together are not too many.
    """
    most = MADE_UP * rules.risk.most_launches
    later = [look for look in looks_of(rules, row.key.case) if look > row.launches]
    return min(later[0] + row.apart, most) if later and row.made < most else None
