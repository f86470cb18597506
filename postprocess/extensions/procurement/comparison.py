"""Offers side by side: must rows met or not, ratios to the buyer's system, means over common rows only."""

import csv
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from postprocess.base.files import write_output
from postprocess.base.formats import TextTable, compute_slowdown, factor, format_percent, number, plural, size
from postprocess.base.grouping import group_pairs
from postprocess.base.sanitize import sanitize_line
from postprocess.extensions.procurement.commitments import StoredCommitments
from postprocess.extensions.procurement.form_rows import is_worse, limit_of, summarise_values
from postprocess.extensions.procurement.offer import OpenedOffer
from postprocess.extensions.procurement.rules.rules import BASELINE, RuleCase, Rules
from postprocess.extensions.procurement.spreadsheet import guard_cell
from postprocess.report.document import Document, Picture, Section, Tone, Toned, table_section
from postprocess.report.drawing import INK, MUTED, SERIES, apply_style, render_inline_svg
from postprocess.report.rendering import write_document

#: Values of a system by case and bytes, in the unit of the case.
PresentSystem = dict[tuple[str, int], float]


@dataclass(frozen=True)
class OfferedValue:
    """What an offer says of a row of the rules, with its best MPI. Values are in the unit of the case."""

    unit: str
    committed: float
    projected: float | None
    environment: str
    category: str

    @property
    def mpi(self) -> str:
        """The MPI that it is of, and the category beside it unless that is the usual one."""
        usual = self.category in ("", BASELINE)
        return self.environment if usual else f"{self.environment}, {self.category}"


@dataclass(frozen=True)
class RankedOffer:
    name: str
    violations: int  #: reasons to reject
    values: Mapping[tuple[str, int], OfferedValue]  #: by case and bytes; a row that is not there is missing


@dataclass(frozen=True)
class ComparedValue:
    """What an offer commits to in a row, beside the others. Values are in the unit of the row."""

    committed: float
    projected: float | None
    ratio: float  #: how many times as fast as the reference system, or the slowest offer
    kept: bool  #: whether the limit of the rules is kept
    mpi: str  #: as of :class:`OfferedValue`


@dataclass(frozen=True)
class ComparedRow:
    """A row of the rules with what every offer commits to."""

    case: RuleCase
    bytes: int
    unit: str
    reference: float | None
    offers: tuple[ComparedValue | None, ...]  #: None is missing, which is worst

    @property
    def is_common(self) -> bool:
        return all(self.offers)

    def ratio_of(self, number: int) -> float:
        """Return the ratio of an offer; 0 if it commits to nothing."""
        offer = self.offers[number]
        return offer.ratio if offer else 0.0

    def is_kept_by(self, number: int) -> bool:
        """Return whether an offer commits to a value within the limit of the rules."""
        offer = self.offers[number]
        return offer is not None and offer.kept


@dataclass(frozen=True)
class OfferScore:
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
    rows: tuple[ComparedRow, ...]
    scores: tuple[OfferScore, ...]
    shared: tuple[str, ...] = ()  #: which have the same launches

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(score.name for score in self.scores)

    @property
    def common(self) -> int:
        """The number of rows to which every offer commits."""
        return sum(row.is_common for row in self.rows)

    @property
    def families(self) -> list[str]:
        """The routines of which an offer has a mean."""
        return sorted({name for score in self.scores for name in score.families})


def rank_offer(name: str, offer: OpenedOffer, kept: StoredCommitments, violations: int) -> RankedOffer:
    """Take from an offer its best commitment of each row."""
    values: dict[tuple[str, int], OfferedValue] = {}
    for row, own in kept.list_committed(offer.rows):
        place = row.key.case, row.key.bytes
        assert own.committed
        if place not in values or is_worse(values[place].committed, own.committed, row.unit):
            told = row.key.environment, row.key.category
            values[place] = OfferedValue(row.unit, own.committed, own.projected, *told)
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
    rows = compare_rows(rules, offers, present or {})
    scores = [score_offer(rows, offer, number) for number, offer in enumerate(offers)]
    ordered = sorted(
        zip(scores, offers, strict=True),
        key=lambda each: (not each[0].is_responsive, -each[0].must_kept, -(each[0].merit or 0.0)),
    )
    rows = compare_rows(rules, [offer for _, offer in ordered], present or {})
    return OfferComparison(rules, rows, tuple(score for score, _ in ordered), tuple(shared))


def compare_rows(
    rules: Rules, offers: Sequence[RankedOffer], present: PresentSystem
) -> tuple[ComparedRow, ...]:
    return tuple(compare_row(rules, case, size, offers, present) for case in rules.case for size in case.bytes)


def compare_row(
    rules: Rules, case: RuleCase, size: int, offers: Sequence[RankedOffer], present: PresentSystem
) -> ComparedRow:
    """Compare a row: ratios to the reference system, or where there is none to the slowest offer."""
    place = case.name, size
    found = [offer.values.get(place) for offer in offers]
    unit = next((each.unit for each in found if each), "s")
    known = [each.committed for each in found if each]
    reference = rules.reference_of(*place) or present.get(place)
    base = reference or max(known, key=lambda value: compute_slowdown(value, known[0], unit), default=1.0)
    bound = limit_of(case)

    def compare(offered: OfferedValue) -> ComparedValue:
        ratio = compute_slowdown(base, offered.committed, unit)
        kept = not (bound and is_worse(offered.committed, bound, unit))
        return ComparedValue(offered.committed, offered.projected, ratio, kept, offered.mpi)

    return ComparedRow(case, size, unit, reference, tuple(compare(each) if each else None for each in found))


def score_offer(rows: Sequence[ComparedRow], offer: RankedOffer, number: int) -> OfferScore:
    must = [row for row in rows if row.case.demand == "must"]
    should = [row for row in rows if row.case.demand == "should"]
    weights = sum(row.case.weight for row in should)
    kept = sum(row.case.weight for row in should if row.is_kept_by(number))
    asked = [row for row in rows if row.case.demand != "information"]
    families = group_pairs((row.case.routine, row.ratio_of(number)) for row in rows if row.is_common)
    return OfferScore(
        offer.name,
        offer.violations,
        sum(row.is_kept_by(number) for row in must),
        len(must),
        kept / weights if weights else 1.0,
        compute_weighted_mean([(row.case.weight, row.ratio_of(number)) for row in asked if row.is_common]),
        min((row.ratio_of(number) for row in asked), default=None),
        {name: statistics.geometric_mean(ratios) for name, ratios in families.items()},
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
PAGE = "offers.html"
COMPARE = (PAGE, "offers.md", "offers.csv", "offers.json")
MISSING = Toned("missing", Tone.BAD)
NOTES = (
    "responsive: every must row is committed within its limit, and no violation is a reason to reject.",
    "should: share of the weights of should rows that are committed within their limits.",
    "Of each row the best commitment of any MPI counts; that MPI stands beside it.",
    "A ratio: times as fast as the buyer's reference system; without one, as the slowest offer.",
    "merit, and the column of each routine: geometric means of ratios, over rows that all offers have.",
    "worst: the smallest ratio of any row. A missing row keeps no limit, and is 0 there.",
    "Projected values are of hardware that is not there. They stand apart, and count for nothing.",
)
BAR = 0.17  #: inches of a bar in height
LEGEND = 80  #: letters beside each other in the legend


def write_comparison(folder: Path, found: OfferComparison) -> Path:
    """Write offers side by side as HTML, Markdown, CSV and JSON; the path of the page.

    :raises UsageError: if they cannot be written
    """
    page = write_document(build_comparison_document(found), folder / PAGE)
    write_output(page.with_suffix(".csv"), format_comparison_csv(found))
    return page


def build_comparison_document(found: OfferComparison) -> Document:
    """Build what the pages say: what each offer comes to, and every row."""
    rows = plural(len(found.rows), "row")
    tables = (tabulate_scores(found), *tabulate_rows(found))
    return Document(
        "offers",
        [found.rules.title],
        Tone.GOOD if found.scores[0].is_responsive else Tone.BAD,
        describe_outcome(found),
        [f"figure of merit: {found.rules.merit} of ratios over {found.common} of {rows} that all offers have"],
        [
            *(table_section(table, new_page=place == 2) for place, table in enumerate(tables)),
            Section("", [Picture(partial(draw_families, found), width=900)]),
        ],
        NOTES,
        build_comparison_json(found),
        found.shared,
        landscape=True,
    )


def describe_outcome(found: OfferComparison) -> str:
    """Describe how many offers are responsive, and which comes first."""
    responsive = sum(score.is_responsive for score in found.scores)
    first = found.scores[0]
    many = plural(len(found.scores), "offer")
    return f"{responsive} of {many} responsive; first: {first.name}, merit {factor(first.merit)}"


def tabulate_scores(found: OfferComparison) -> TextTable:
    rows = tuple(
        (
            score.name,
            "yes" if score.is_responsive else "no",
            str(score.violations),
            f"{score.must_kept} of {score.must_rows}",
            format_percent(score.should),
            factor(score.merit),
            factor(score.worst),
            *(factor(score.families.get(name)) for name in found.families),
        )
        for score in found.scores
    )
    heads = ("responsive", "violations", "must", "should", "merit", "worst", *found.families)
    return TextTable("Offers, the best first", ("offer",), heads, rows)


def tabulate_rows(found: OfferComparison) -> tuple[TextTable, ...]:
    committed, ratios, projected = [], [], []
    for row in found.rows:
        label = (row.case.name, row.case.demand, size(row.bytes))
        unit = "us" if row.unit == "s" else row.unit
        reference = number(row.reference, row.unit)
        committed.append((*label, unit, reference, *(format_committed(row, offer) for offer in row.offers)))
        ratios.append((*label, *(factor(offer.ratio) if offer else MISSING for offer in row.offers)))
        values = [offer.projected if offer else None for offer in row.offers]
        if any(values):
            projected.append((*label, unit, *(number(value, row.unit) for value in values)))
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


def format_committed(row: ComparedRow, offer: ComparedValue | None) -> str:
    """Format what an offer commits to in a row, and with which MPI; ``!`` if it is beyond the limit."""
    if offer is None:
        return MISSING
    return f"{number(offer.committed, row.unit)}{'' if offer.kept else ' !'} ({offer.mpi})"


def format_comparison_csv(found: OfferComparison) -> str:
    """Format offers side by side as CSV: a line for each row and offer."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    heads = ("offer", "case", "demand", "bytes", "unit", "reference", "committed", "projected")
    writer.writerow((*heads, "ratio", "kept", "mpi"))
    for row in found.rows:
        about = row.case.name, row.case.demand, row.bytes, row.unit, row.reference
        for name, offer in zip(found.names, row.offers, strict=True):
            own: tuple[Any, ...] = (None, None, None, 0, None)
            if offer:
                own = offer.committed, offer.projected, offer.ratio, int(offer.kept), offer.mpi
            writer.writerow((guard_cell(name), *about, *own))
    return stream.getvalue()


def build_comparison_json(found: OfferComparison) -> dict[str, Any]:

    def by_name(row: ComparedRow, field: str, missing: str | None = None) -> dict[str, Any]:
        offers = zip(found.names, row.offers, strict=True)
        return {name: getattr(offer, field) if offer else missing for name, offer in offers}

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
                "committed": by_name(row, "committed"),
                "projected": by_name(row, "projected"),
                "ratios": by_name(row, "ratio"),
                "mpis": by_name(row, "mpi", ""),
            }
            for row in found.rows
        ],
    }


@apply_style
def draw_families(found: OfferComparison) -> str:
    """Draw the geometric means of each offer by routine, from 1 to either side, on a logarithmic axis."""
    families, longest = found.families, max(map(len, found.names))
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
        bars_of = axes.barh(spots, widths, height * 0.9, left=1.0, color=color, label=sanitize_line(score.name))
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
