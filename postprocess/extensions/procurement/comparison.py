"""Offers side by side: must rows met or not, ratios to the buyer's system, means over common rows only."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from postprocess.base.files import write_output, write_summary
from postprocess.base.formats import DASH, factor, format_percent, number, plural, size
from postprocess.base.text_table import TextTable
from postprocess.base.units import compute_slowdown
from postprocess.extensions.procurement.check.offer import OpenedOffer
from postprocess.extensions.procurement.form.commitments import StoredCommitments
from postprocess.extensions.procurement.form.rows import is_worse, limit_of, summarise_values
from postprocess.extensions.procurement.form.spreadsheet import guard_cell
from postprocess.extensions.procurement.rules.rules import BASELINE, RuleCase, Rules
from postprocess.report import templating
from postprocess.report.svg import INK, MUTED, SERIES, apply_style, render_inline_svg

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


SCHEMA = 1
COMPARE = ("offers.html", "offers.csv", "offers.json")
MISSING = "missing"
BAR = 0.17  #: inches of a bar in height
LEGEND = 80  #: letters beside each other in the legend


def write_comparison(folder: Path, found: OfferComparison) -> Path:
    """Write offers side by side as HTML, CSV and JSON.

    :raises UsageError: if they cannot be written
    """
    html, table, data = (folder / name for name in COMPARE)
    context = {
        "good": found.scores[0].is_responsive,
        "headline": describe_outcome(found),
        "failures": list(found.shared),
        "kicker": f"offers · {found.rules.title}",
        "facts": [
            f"figure of merit: {found.rules.merit} of ratios over {found.common} of "
            f"{plural(len(found.rows), 'row')} that all offers have"
        ],
        "tables": (tabulate_scores(found), *tabulate_rows(found)),
        "notes": [
            "responsive: every must row is committed within its limit, and no violation is a reason to reject.",
            "should: share of the weights of should rows that are committed within their limits.",
            "Of each row the best commitment of any MPI counts; that MPI stands beside it.",
            "A ratio: times as fast as the buyer's reference system; without one, as the slowest offer.",
            "merit, and the column of each routine: geometric means of ratios, over rows that all offers have.",
            "worst: the smallest ratio of any row. A missing row keeps no limit, and is 0 there.",
            "Projected values are of hardware that is not there. They stand apart, and count for nothing.",
        ],
        "pictures": (found,),
        "sheet": 2,
    }
    page = templating.render_html_template("offer.html.j2", context, draw=draw_families)
    templating.write_pages({html: page})
    write_output(table, format_comparison_csv(found))
    write_summary(data, build_comparison_json(found))
    return html


def describe_outcome(found: OfferComparison) -> str:
    """Describe how many offers are responsive, and which comes first."""
    responsive = sum(score.is_responsive for score in found.scores)
    first = found.scores[0]
    many = plural(len(found.scores), "offer")
    return f"{responsive} of {many} responsive; first: {first.name}, merit {factor(first.merit)}"


def tabulate_scores(found: OfferComparison) -> TextTable:
    """Tabulate what each offer comes to."""
    families = sorted({name for score in found.scores for name in score.families})
    rows = tuple(
        (
            score.name,
            "yes" if score.is_responsive else "no",
            str(score.violations),
            f"{score.must_kept} of {score.must_rows}",
            format_percent(score.should),
            factor(score.merit),
            factor(score.worst),
            *(factor(score.families.get(name)) for name in families),
        )
        for score in found.scores
    )
    heads = ("responsive", "violations", "must", "should", "merit", "worst", *families)
    return TextTable("Offers, the best first", ("offer",), heads, rows)


def tabulate_rows(found: OfferComparison) -> tuple[TextTable, ...]:
    """Tabulate commitments, ratios and projections."""
    committed, ratios, projected = [], [], []
    for row in found.rows:
        label = (row.case.name, row.case.demand, size(row.bytes))
        known = number(row.reference, row.unit) if row.reference else DASH
        unit = "us" if row.unit == "s" else row.unit
        cells = [
            MISSING if value is None else f"{number(value, row.unit)}{'' if kept else ' !'} ({mpi})"
            for value, kept, mpi in zip(row.committed, row.kept, row.mpis, strict=True)
        ]
        committed.append((*label, unit, known, *cells))
        ratios.append((*label, *(MISSING if ratio is None else factor(ratio) for ratio in row.ratios)))
        if any(row.projected):
            projected.append((*label, unit, *(number(each, row.unit) for each in row.projected)))
    labels = ("case", "demand", "size")
    tables = [
        TextTable(
            "Committed, and with which MPI (! beyond the limit)",
            labels,
            ("unit", "reference system", *found.names),
            tuple(committed),
        ),
        TextTable(
            "Times as fast as the reference system, or the slowest offer", labels, found.names, tuple(ratios)
        ),
    ]
    if projected:
        tables.append(TextTable("Projected", labels, ("unit", *found.names), tuple(projected)))
    return tuple(tables)


def format_comparison_csv(found: OfferComparison) -> str:
    """Format offers side by side as CSV: a line for each row and offer."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    heads = ("offer", "case", "demand", "bytes", "unit", "reference", "committed", "projected")
    writer.writerow((*heads, "ratio", "kept", "mpi"))
    for row in found.rows:
        for place, name in enumerate(found.names):
            values = row.reference, row.committed[place], row.projected[place], row.ratios[place]
            one, two, three, four = ("" if value is None else value for value in values)
            writer.writerow(
                (
                    guard_cell(name),
                    row.case.name,
                    row.case.demand,
                    row.bytes,
                    row.unit,
                    one,
                    two,
                    three,
                    four,
                    int(row.kept[place]),
                    row.mpis[place],
                )
            )
    return stream.getvalue()


def build_comparison_json(found: OfferComparison) -> dict[str, Any]:
    """Build offers side by side for programs."""
    return {
        "schema": SCHEMA,
        "kind": "offers",
        "title": found.rules.title,
        "common_rows": found.common,
        "shared_launches": list(found.shared),
        "offers": [{**asdict(score), "responsive": score.is_responsive} for score in found.scores],
        "rows": [
            {
                "case": row.case.name,
                "demand": row.case.demand,
                "bytes": row.bytes,
                "unit": row.unit,
                "reference": row.reference,
                "committed": dict(zip(found.names, row.committed, strict=True)),
                "projected": dict(zip(found.names, row.projected, strict=True)),
                "ratios": dict(zip(found.names, row.ratios, strict=True)),
                "mpis": dict(zip(found.names, row.mpis, strict=True)),
            }
            for row in found.rows
        ],
    }


@apply_style
def draw_families(found: OfferComparison) -> str:
    """Draw the geometric means of each offer by routine, from 1 to either side, on a logarithmic axis."""
    families = sorted({name for score in found.scores for name in score.families})
    longest = max(len(name) for name in found.names)
    columns = max(1, min(4, len(found.names), LEGEND // (longest + 6)))
    lines = -(-len(found.names) // columns)
    bars = max(len(families), 1) * (len(found.scores) + 1)
    figure = Figure(figsize=(8.5, 0.8 + 0.2 * lines + BAR * bars))
    axes = figure.subplots()
    height = 0.8 / len(found.scores)
    for place, score in enumerate(found.scores):
        middle = (len(found.scores) - 1) / 2
        spots = [line + (place - middle) * height for line in range(len(families))]
        ratios = [score.families.get(name) or 1.0 for name in families]
        widths = [ratio - 1.0 for ratio in ratios]
        color = SERIES[place % len(SERIES)]
        bars_of = axes.barh(spots, widths, height * 0.9, left=1.0, color=color, label=score.name)
        told = [factor(score.families.get(name)) for name in families]
        axes.bar_label(bars_of, told, padding=3, fontsize=8, color=INK)
    axes.set_xscale("log")
    axes.margins(x=0.1)
    # Whatever the range, a few numbers on the axis, and none in mathematical notation.
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(range(len(families)), families)
    axes.invert_yaxis()
    axes.axvline(1.0, color=MUTED, linewidth=0.8)
    axes.set_xlabel("times as fast as the reference system, or the slowest offer")
    if families:
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, fontsize=9)
    figure.tight_layout()
    means = "; ".join(
        f"{score.name}: " + ", ".join(f"{name} {value:.3g}" for name, value in score.families.items())
        for score in found.scores
    )
    return render_inline_svg(figure, f"geometric means by routine: {means}")
