"""Offers side by side, as page, CSV and JSON."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from postprocess.base.files import write_output, write_summary
from postprocess.base.formats import DASH, factor, format_percent, number, plural, size
from postprocess.base.text_table import TextTable
from postprocess.extensions.procurement.form.spreadsheet import guard_cell
from postprocess.extensions.procurement.rank import OfferComparison
from postprocess.report import templating
from postprocess.report.svg import INK, MUTED, SERIES, apply_style, render_inline_svg

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
