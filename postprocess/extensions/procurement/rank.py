"""Offers side by side: must rows met or not, ratios to the buyer's system, means over common rows only."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from postprocess.base.units import compute_slowdown
from postprocess.extensions.procurement.check.offer import OpenedOffer
from postprocess.extensions.procurement.form.commitments import StoredCommitments
from postprocess.extensions.procurement.form.rows import is_worse, limit_of, summarise_values
from postprocess.extensions.procurement.rules.rules_data import BASELINE, RuleCase, Rules

#: Values of a system by case and bytes, in the unit of the case.
PresentSystem = dict[tuple[str, int], float]


@dataclass(frozen=True)
class OfferedValue:
    """What an offer says of a row of the rules, with its best MPI. Values are in the unit of the case."""

    unit: str
    committed: float | None
    projected: float | None
    environment: str = ""
    category: str = ""

    @property
    def mpi(self) -> str:
        """The MPI that it is of, and the category beside it unless that is the usual one."""
        usual = self.category in ("", BASELINE)
        return self.environment if usual else f"{self.environment}, {self.category}"


@dataclass(frozen=True)
class RankedOffer:
    """An offer in a comparison."""

    name: str
    violations: int  #: reasons to reject
    values: Mapping[tuple[str, int], OfferedValue]  #: by case and bytes; a row that is not there is missing


@dataclass(frozen=True)
class ComparedRow:
    """A row of the rules with what every offer commits to."""

    case: RuleCase
    bytes: int
    unit: str
    reference: float | None
    committed: tuple[float | None, ...]  #: an entry for each offer; None is missing, which is worst
    projected: tuple[float | None, ...]
    ratios: tuple[float | None, ...]  #: how many times as fast as the reference system, or the slowest offer
    kept: tuple[bool, ...]  #: whether the limit of the rules is kept; False if missing
    #: Environment that each commitment is of, with its category unless that is the usual one; empty if missing
    mpis: tuple[str, ...]

    @property
    def is_common(self) -> bool:
        """Whether every offer commits to it."""
        return all(each is not None for each in self.committed)


@dataclass(frozen=True)
class OfferScore:
    """What an offer comes to."""

    name: str
    violations: int
    must_kept: int
    must_rows: int
    should: float  #: share of the weights of should rows that are kept
    merit: float | None  #: weighted geometric mean of ratios over common rows
    worst: float | None  #: the smallest ratio of any row; 0 if a must or should row is missing
    families: Mapping[str, float]  #: geometric mean by routine, over common rows

    @property
    def is_responsive(self) -> bool:
        """Whether it keeps every must row and has no reason to reject."""
        return self.must_kept == self.must_rows and not self.violations


@dataclass(frozen=True)
class OfferComparison:
    """Offers side by side, the best first."""

    rules: Rules
    names: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    scores: tuple[OfferScore, ...]
    common: int
    shared: tuple[str, ...] = ()  #: which have the same launches


def rank_offer(name: str, offer: OpenedOffer, kept: StoredCommitments, violations: int) -> RankedOffer:
    """Take from an offer its best commitment of each row."""
    by_key = kept.by_key()
    values: dict[tuple[str, int], OfferedValue] = {}
    for row in offer.rows:
        each = by_key.get(row.key.key)
        if each is None or each.committed is None:
            continue
        place = row.key.case, row.key.bytes
        known = values.get(place)
        if known is None or known.committed is None or is_worse(known.committed, each.committed, row.unit):
            values[place] = OfferedValue(
                row.unit, each.committed, each.projected, row.key.environment, row.key.category
            )
    return RankedOffer(name, violations, values)


def take_measured(offer: OpenedOffer) -> PresentSystem:
    """Take what was measured of each row, with the best MPI, as the buyer's present system."""
    found: PresentSystem = {}
    for row in offer.rows:
        place = row.key.case, row.key.bytes
        value = summarise_values(row.rule, row.values, row.unit)
        if place not in found or is_worse(found[place], value, row.unit):
            found[place] = value
    return found


def compare_offers(
    rules: Rules,
    offers: Sequence[RankedOffer],
    present: PresentSystem | None = None,
    shared: Sequence[str] = (),
) -> OfferComparison:
    """Compare offers by the rules that all of them share.

    :param present: values of the buyer's present system, where the rules have none
    :param shared: which of them have the same launches
    """
    rows = tuple(
        compare_row(rules, case, size, offers, present or {}) for case in rules.case for size in case.bytes
    )
    scores = [score_offer(rows, offers, number) for number in range(len(offers))]
    order = sorted(
        range(len(offers)),
        key=lambda n: (not scores[n].is_responsive, -scores[n].must_kept, -(scores[n].merit or 0.0)),
    )
    common = sum(row.is_common for row in rows)
    return OfferComparison(
        rules,
        tuple(offers[n].name for n in order),
        tuple(reorder_row(row, order) for row in rows),
        tuple(scores[n] for n in order),
        common,
        tuple(shared),
    )


def reorder_row(row: ComparedRow, order: Sequence[int]) -> ComparedRow:
    """Return a row with its offers in another order."""
    return replace(
        row,
        committed=tuple(row.committed[n] for n in order),
        projected=tuple(row.projected[n] for n in order),
        ratios=tuple(row.ratios[n] for n in order),
        kept=tuple(row.kept[n] for n in order),
        mpis=tuple(row.mpis[n] for n in order),
    )


def compare_row(
    rules: Rules, case: RuleCase, size: int, offers: Sequence[RankedOffer], present: PresentSystem
) -> ComparedRow:
    """Compare a row: ratios to the reference system, or where there is none to the slowest offer."""
    found = [offer.values.get((case.name, size)) for offer in offers]
    unit = next((each.unit for each in found if each), "s")
    committed = tuple(each.committed if each else None for each in found)
    known = [value for value in committed if value is not None]
    reference = rules.reference_of(case.name, size) or present.get((case.name, size))
    base = reference
    if base is None and known:
        base = max(known, key=lambda value: compute_slowdown(value, known[0], unit))
    bound = limit_of(case)
    return ComparedRow(
        case,
        size,
        unit,
        reference,
        committed,
        tuple(each.projected if each else None for each in found),
        tuple(compute_slowdown(base, value, unit) if value and base else None for value in committed),
        tuple(value is not None and not (bound and is_worse(value, bound, unit)) for value in committed),
        tuple(each.mpi if each else "" for each in found),
    )


def score_offer(rows: Sequence[ComparedRow], offers: Sequence[RankedOffer], number: int) -> OfferScore:
    """Score an offer."""
    must = [row for row in rows if row.case.demand == "must"]
    should = [row for row in rows if row.case.demand == "should"]
    weights = sum(row.case.weight for row in should)
    kept = sum(row.case.weight for row in should if row.kept[number])
    common = [row for row in rows if row.is_common and row.case.demand != "information"]
    ratios = [row.ratios[number] or 0.0 for row in rows if row.case.demand != "information"]
    families: dict[str, list[float]] = {}
    for row in rows:
        if row.is_common:
            families.setdefault(row.case.routine, []).append(row.ratios[number] or 0.0)
    return OfferScore(
        offers[number].name,
        offers[number].violations,
        sum(row.kept[number] for row in must),
        len(must),
        kept / weights if weights else 1.0,
        compute_weighted_mean([(row.case.weight, row.ratios[number] or 0.0) for row in common]),
        min(ratios, default=None),
        {name: statistics.geometric_mean(some) for name, some in families.items()},
    )


def compute_weighted_mean(parts: Sequence[tuple[float, float]]) -> float | None:
    """Compute the weighted geometric mean of weights and ratios; None of nothing, 0 with a 0 among them."""
    total = sum(weight for weight, _ in parts)
    if not total:
        return None
    if any(ratio <= 0 and weight for weight, ratio in parts):
        return 0.0
    return math.exp(sum(weight * math.log(ratio) for weight, ratio in parts if weight) / total)
