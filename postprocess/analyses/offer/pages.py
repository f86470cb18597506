"""The pages of offers: the form, offers side by side, and the protocol of an acceptance."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from postprocess.analyses.offer.accept import Acceptance, JudgedRow
from postprocess.analyses.offer.form import FILLED, TYPED, Cell, FormRow
from postprocess.analyses.offer.rank import OfferComparison
from postprocess.analyses.offer.rules_data import Rules
from postprocess.analyses.offer.violations import Violation, is_rejected
from postprocess.base.files import write_output, write_summary
from postprocess.base.formats import DASH, factor, format_percent, number, plural, quantity, size
from postprocess.base.text_table import TextTable
from postprocess.report import templating
from postprocess.report.svg import BAD, GOOD, MUTED, SERIES, apply_style, render_inline_svg
from postprocess.stats.acceptance import OperatingCharacteristic

SCHEMA = 1
FORM_HTML = "offer.html"
COMPARE = ("offers.html", "offers.csv", "offers.json")
ACCEPT = ("acceptance.html", "acceptance.csv", "acceptance.json")
MISSING = "missing"


def write_form_page(
    path: Path,
    title: str,
    facts: Sequence[str],
    rows: Sequence[FormRow],
    typed: Mapping[str, Mapping[str, Cell]],
) -> None:
    """Write the form as a page.

    :raises UsageError: if it cannot be written
    """
    shown = [name for name in FILLED if name not in ("row", "risk")]
    places = [FILLED.index(name) for name in shown]
    lines = tuple(
        tuple(
            [show_cell(row.cells()[place]) for place in places]
            + [show_cell(typed.get(row.key.key, {}).get(name)) for name in TYPED]
        )
        for row in rows
    )
    risks = tuple(dict.fromkeys(row.risk for row in rows))
    table = TextTable("Rows", ("demand",), tuple([*shown[1:], *TYPED]), lines, ())
    context = {
        "good": True,
        "headline": title,
        "kicker": "form of an offer",
        "facts": facts,
        "tables": (table,),
        "notes": [f"proposed: {each}" for each in risks],
        "pictures": (),
    }
    page = templating.render_html_template("offer.html.j2", context, draw=lambda _: "")
    templating.write_pages({path: page})


def show_cell(cell: Cell) -> str:
    """Show a cell of the form."""
    if cell is None:
        return DASH
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def write_comparison(folder: Path, found: OfferComparison) -> Path:
    """Write offers side by side as HTML, CSV and JSON.

    :raises UsageError: if they cannot be written
    """
    html, table, data = (folder / name for name in COMPARE)
    best = found.scores[0]
    responsive = sum(score.is_responsive for score in found.scores)
    context = {
        "good": best.is_responsive,
        "headline": f"{responsive} of {plural(len(found.scores), 'offer')} responsive; {describe_best(found)}",
        "kicker": f"offers · {found.rules.title}",
        "facts": [
            f"figure of merit: {found.rules.merit} of ratios over {found.common} of "
            f"{plural(len(found.rows), 'row')} that all offers have"
        ],
        "tables": (tabulate_scores(found), *tabulate_rows(found)),
        "notes": [
            "A ratio: times as fast as the buyer's reference system; without one, as the slowest offer.",
            "Missing is worst: it keeps no row, its smallest ratio is 0. Means are over rows that all have.",
            "Projected values stand apart, and count for nothing.",
        ],
        "pictures": (found,),
    }
    page = templating.render_html_template("offer.html.j2", context, draw=draw_families)
    templating.write_pages({html: page})
    write_output(table, format_comparison_csv(found))
    write_summary(data, build_comparison_json(found))
    return html


def describe_best(found: OfferComparison) -> str:
    """Describe the offer that comes first."""
    score = found.scores[0]
    return f"first: {score.name}, merit {factor(score.merit)}"


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
            MISSING if value is None else number(value, row.unit) + ("" if kept else " !")
            for value, kept in zip(row.committed, row.kept, strict=True)
        ]
        committed.append((*label, unit, known, *cells))
        ratios.append((*label, *(MISSING if each is None else factor(each) for each in row.ratios)))
        if any(row.projected):
            projected.append((*label, *(number(each, row.unit) for each in row.projected)))
    labels = ("case", "demand", "size")
    tables = [
        TextTable(
            "Committed (! beyond the limit)",
            labels,
            ("unit", "reference system", *found.names),
            tuple(committed),
        ),
        TextTable("Ratios", labels, found.names, tuple(ratios)),
    ]
    if projected:
        tables.append(TextTable("Projected", labels, found.names, tuple(projected)))
    return tuple(tables)


def format_comparison_csv(found: OfferComparison) -> str:
    """Format offers side by side as CSV: a line for each row and offer."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    heads = ("offer", "case", "demand", "bytes", "unit", "reference", "committed", "projected")
    writer.writerow((*heads, "ratio", "kept"))
    for row in found.rows:
        for place, name in enumerate(found.names):
            values = row.reference, row.committed[place], row.projected[place], row.ratios[place]
            one, two, three, four = ("" if each is None else each for each in values)
            writer.writerow(
                (
                    name,
                    row.case.name,
                    row.case.demand,
                    row.bytes,
                    row.unit,
                    one,
                    two,
                    three,
                    four,
                    int(row.kept[place]),
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
            }
            for row in found.rows
        ],
    }


@apply_style
def draw_families(found: OfferComparison) -> str:
    """Draw the geometric means of each offer by routine."""
    families = sorted({name for score in found.scores for name in score.families})
    figure = Figure(figsize=(8.5, 0.6 + 0.28 * max(len(families), 1) * len(found.scores)))
    axes = figure.subplots()
    height = 0.8 / len(found.scores)
    for place, score in enumerate(found.scores):
        spots = [
            line + (place - (len(found.scores) - 1) / 2) * height for line in range(len(families))
        ]
        values = [score.families.get(name, 0.0) for name in families]
        axes.barh(spots, values, height * 0.9, color=SERIES[place % len(SERIES)], label=score.name)
    axes.set_yticks(range(len(families)), families)
    axes.invert_yaxis()
    axes.axvline(1.0, color=MUTED, linewidth=0.8)
    axes.set_xlabel("times as fast as the reference system, or the slowest offer")
    if families:
        axes.legend(frameon=False, loc="lower right", fontsize=9)
    figure.tight_layout()
    told = "; ".join(
        f"{score.name}: "
        + ", ".join(f"{name} {value:.2f}" for name, value in score.families.items())
        for score in found.scores
    )
    return render_inline_svg(figure, f"geometric means by routine: {told}")


def write_protocol(
    folder: Path,
    title: str,
    rules: Rules,
    found: Acceptance,
    facts: Sequence[str],
    violations: Sequence[Violation],
) -> Path:
    """Write the protocol of an acceptance as HTML, CSV and JSON.

    :raises UsageError: if it cannot be written
    """
    html, table, data = (folder / name for name in ACCEPT)
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items() if count)
    status = find_status(found, violations)
    context = {
        "good": status == 0,
        "headline": f"{describe_status(status)}: {counts or 'nothing is committed'}",
        "kicker": f"acceptance · {title}",
        "facts": [*facts, *describe_risks(rules, found)],
        "tables": (tabulate_acceptance(found), tabulate_violations(violations)),
        "notes": [
            "met: the confidence limit is within the commitment times its tolerance; missed: it is beyond.",
            "A row that was not run is missed. An undecided row says how many launches more would decide.",
        ],
        "pictures": (found.characteristic,),
    }
    page = templating.render_html_template("offer.html.j2", context, draw=draw_characteristic)
    templating.write_pages({html: page})
    write_output(table, format_acceptance_csv(found))
    write_summary(data, build_acceptance_json(rules, found, violations))
    return html


def find_status(found: Acceptance, violations: Sequence[Violation]) -> int:
    """Find the exit status: a run rule that was broken is no acceptance, whatever the rows say."""
    return 1 if is_rejected(violations) else found.status


def describe_status(status: int) -> str:
    """Describe the outcome in a word."""
    return {0: "Accepted", 1: "Not accepted"}.get(status, "Undecided")


def describe_risks(rules: Rules, found: Acceptance) -> list[str]:
    """Describe both risks of a row, as the operating characteristic has them."""
    drawn, tolerance = found.characteristic, rules.tolerance
    beyond = tolerance + 0.1
    slow = drawn.met[nearest(drawn, beyond)]
    own = drawn.missed[nearest(drawn, 0.0)]
    looks = ", ".join(map(str, found.looks))
    return [
        f"each row is looked at after {looks} launches; a machine just within the tolerance of "
        f"{format_percent(tolerance)} is missed with {format_percent(rules.risk.good_failed)} at most, one "
        f"just beyond it met with at most {format_percent(rules.risk.slow_accepted)}",
        f"with launches that differ by {format_percent(found.spread)}: a machine as committed is missed with "
        f"{own:.1%}, one {format_percent(beyond)} slower met with {slow:.1%}",
    ]


def nearest(drawn: OperatingCharacteristic, slower: float) -> int:
    """Return the place of the point nearest to a slowdown."""
    return min(range(len(drawn.slower)), key=lambda n: abs(drawn.slower[n] - slower))


def describe_row_verdict(row: JudgedRow) -> str:
    """Describe a verdict, with what would decide."""
    more = row.found.launches_more
    return (
        f"{row.found.verdict} ({plural(more, 'launch', 'es')} more)"
        if more
        else str(row.found.verdict)
    )


def tabulate_acceptance(found: Acceptance) -> TextTable:
    """Tabulate the rows of an acceptance."""
    rows = tuple(
        (
            row.key.key,
            row.demand,
            describe_row_verdict(row),
            quantity(row.committed, row.unit),
            quantity(row.limit, row.unit),
            quantity(row.value, row.unit),
            f"{number(row.bounds[0], row.unit)} to {number(row.bounds[1], row.unit)}"
            if row.bounds
            else DASH,
            str(row.launches),
        )
        for row in found.rows
    )
    heads = ("verdict", "committed", "with tolerance", "measured", "confidence", "launches")
    return TextTable("Rows", ("row", "demand"), heads, rows)


def tabulate_violations(found: Sequence[Violation]) -> TextTable:
    """Tabulate violations of run rules."""
    rows = tuple((each.code.word, each.place, f"{each.text}; {each.code.fix}") for each in found)
    return TextTable("Violations of run rules", ("code", "place", "what, and the fix"), (), rows)


def format_acceptance_csv(found: Acceptance) -> str:
    """Format the rows of an acceptance as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ("row", "demand", "verdict", "unit", "committed", "limit", "measured", "launches", "more")
    )
    for row in found.rows:
        more = row.found.launches_more
        cells = row.committed, row.limit, "" if row.value is None else row.value
        writer.writerow(
            (
                row.key.key,
                row.demand,
                str(row.found.verdict),
                row.unit,
                *cells,
                row.launches,
                "" if more is None else more,
            )
        )
    return stream.getvalue()


def build_acceptance_json(
    rules: Rules, found: Acceptance, violations: Sequence[Violation]
) -> dict[str, Any]:
    """Build the protocol for programs."""
    return {
        "schema": SCHEMA,
        "kind": "acceptance",
        "title": rules.title,
        "status": find_status(found, violations),
        "counts": found.counts,
        "risk": asdict(rules.risk),
        "looks": list(found.looks),
        "spread": found.spread,
        "characteristic": asdict(found.characteristic),
        "rows": [
            {
                "row": row.key.key,
                "demand": row.demand,
                "verdict": str(row.found.verdict),
                "launches_more": row.found.launches_more,
                "unit": row.unit,
                "committed": row.committed,
                "limit": row.limit,
                "measured": row.value,
                "launches": row.launches,
            }
            for row in found.rows
        ],
        "violations": [each.as_entry() for each in violations],
    }


@apply_style
def draw_characteristic(drawn: OperatingCharacteristic) -> str:
    """Draw the operating characteristic of a row."""
    figure = Figure(figsize=(8.5, 3.4))
    axes = figure.subplots()
    slower = [100 * each for each in drawn.slower]
    axes.plot(slower, [100 * each for each in drawn.met], color=GOOD, linewidth=2, label="met")
    axes.plot(slower, [100 * each for each in drawn.missed], color=BAD, linewidth=2, label="missed")
    undecided = [100 * (1 - a - b) for a, b in zip(drawn.met, drawn.missed, strict=True)]
    axes.plot(slower, undecided, color=MUTED, linewidth=1.2, linestyle="--", label="undecided")
    axes.set_xlabel("slower than committed, %")
    axes.set_ylabel("probability, %")
    axes.grid(True)
    axes.legend(frameon=False)
    figure.tight_layout()
    return render_inline_svg(
        figure, "operating characteristic: probability of met, missed, undecided"
    )
