"""The form of an offer: a row for each test, size, MPI and category, with a proposal and its risk in words."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.base.formats import SECONDS, SHOWN, parse_utc, plural
from postprocess.extensions.procurement.offer import MeasuredRow, OpenedOffer, RowKey
from postprocess.extensions.procurement.rules.rules import RuleCase, Rules, parse_quantity
from postprocess.stats.acceptance import EXACT, LEAST_LAUNCHES, ORDERED, ToleranceLimit, compute_tolerance_limit

DIGITS = 4  #: of a value that the form fills in
TYPED_DIGITS = 12  #: of one that was typed before
#: Of a proposal from the mean, on the logarithm: a commitment to more than twice the measured says nothing.
MOST_DISTANCE = math.log(2)
#: Columns that the form fills in, and those that the bidder types.
FILLED = (
    *("row", "demand", "test", "bytes", "layout", "MPI", "category", "unit", "launches", "measured"),
    *("spread %", "slowest", "proposed", "risk", "reference system", "limit"),
)
TYPED = ("committed", "projected", "model")
COLUMNS = (*FILLED, *TYPED)
Cell = str | float | int | None


@dataclass(frozen=True)
class FormRow:
    """A row of the form. Values are in the unit of the case."""

    measured: MeasuredRow
    value: float  #: by the statistic of the rules
    slowest: float
    spread: float | None  #: standard deviation of ln value between launches
    proposed: float | None
    risk: str
    reference: float | None

    @property
    def key(self) -> RowKey:
        """What tells it from other rows."""
        return self.measured.key

    @property
    def unit(self) -> str:
        return self.measured.unit

    def cells(self) -> tuple[Cell, ...]:
        """Return what the form fills in, in the unit that people read."""
        rule, row = self.measured.rule, self.measured
        return (
            self.key.key,
            rule.demand,
            f"{rule.program} {rule.routine}",
            self.key.bytes,
            row.case.layout,
            self.key.environment,
            self.key.category,
            SHOWN[self.unit][1],
            len(row.values),
            show(self.value, self.unit),
            None if self.spread is None else float(f"{100 * self.spread:.3g}"),
            show(self.slowest, self.unit),
            show(round_to_worse(self.proposed, self.unit), self.unit),
            self.risk,
            show(self.reference, self.unit),
            rule.limit or None,
        )


def show(value: float | None, unit: str, digits: int = DIGITS) -> float | None:
    """Return a value in the unit that people read, to a few digits."""
    return None if value is None else float(f"{value * SHOWN[unit][0]:.{digits}g}")


def round_to_worse(value: float | None, unit: str) -> float | None:
    """Return a value, in its unit, that is no better after it was shown with its digits."""
    step = 5 * 10.0**-DIGITS
    return None if value is None else value * (1 + step if unit == SECONDS else 1 - step)


def take(shown: float, unit: str) -> float:
    """Return a value that people wrote in the unit of a case."""
    return shown / SHOWN[unit][0]


def logs_of(values: Sequence[float], unit: str) -> list[float]:
    """Return ln of how slow values are: more is worse in every unit."""
    sign = 1.0 if unit == SECONDS else -1.0
    return [sign * math.log(value) for value in values]


def from_log(log: float, unit: str) -> float:
    """Return the value, in its unit, whose ln slowness is ``log``."""
    return math.exp(log if unit == SECONDS else -log)


def is_worse(one: float, two: float, unit: str) -> bool:
    """Return whether one value is worse than another of its unit: a longer time or a lower rate."""
    return one > two if unit == SECONDS else one < two


def find_slowest(values: Sequence[float], unit: str) -> float:
    """Find the worst of values of one unit: the longest time or the lowest rate."""
    return max(values) if unit == SECONDS else min(values)


def summarise_values(rule: RuleCase, values: Sequence[float], unit: str) -> float:
    """Return the value of a row, in its unit, by the statistic of the rules."""
    if rule.statistic == "worst":
        return find_slowest(values, unit)
    return statistics.median(values)


def build_form(offer: OpenedOffer) -> list[FormRow]:
    when = describe_when(offer)
    return [build_form_row(offer.rules, row, when) for row in offer.rows]


def build_form_row(rules: Rules, row: MeasuredRow, when: str) -> FormRow:
    logs = logs_of(row.values, row.unit)
    risk, proposed, limit = "too few launches for a proposal", None, None
    if row.exact or len(logs) >= LEAST_LAUNCHES:
        limit = compute_tolerance_limit(logs, rules.risk.confidence, rules.risk.coverage, row.exact)
        risk = describe_risk(rules, limit, when)
        if limit.limit - statistics.fmean(logs) <= MOST_DISTANCE:
            proposed = from_log(limit.limit, row.unit)
        else:
            risk = "launches differ too much for a proposal; make more, with nothing else running"
    spread = statistics.stdev(logs) if len(logs) > 1 else None
    return FormRow(
        row,
        summarise_values(row.rule, row.values, row.unit),
        find_slowest(row.values, row.unit),
        spread,
        proposed,
        risk,
        rules.reference_of(row.key.case, row.key.bytes),
    )


def describe_risk(rules: Rules, limit: ToleranceLimit, when: str) -> str:
    """Describe in words what a proposal risks."""
    if limit.method == EXACT:
        return "simulated time repeats: no spread"
    sure, share = f"{rules.risk.confidence:.0%}", f"{rules.risk.coverage:.0%}"
    launches = plural(limit.launches, "launch", "es")
    if limit.method == ORDERED:
        how = f"the largest that {launches} allow, whatever their distribution"
    else:
        how = f"mean and {limit.factor:.2f} spreads of ln value, {launches}, if it is normal"
    return f"with {sure} confidence {share} of later launches are no slower ({how}; {when})"


def describe_when(offer: OpenedOffer) -> str:
    """Describe over which time the launches were made: what differs between days is not in those of an hour."""
    moments = [parse_utc(each.began_utc) for each in offer.stored.passes]
    if not moments:
        return "nothing was launched"
    hours = (max(moments) - min(moments)).total_seconds() / 3600
    if hours < 24:
        return f"all within {max(hours, 0.1):.1f} h: differences between days are not in it"
    return f"over {hours / 24:.1f} days"


def limit_of(rule: RuleCase) -> float | None:
    """Return the limit that a commitment must keep, in the unit of the case."""
    return parse_quantity(rule.limit).value if rule.limit else None
