"""The form of an offer as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from postprocess.base.formats import DASH, format_significant
from postprocess.base.text_table import TextTable
from postprocess.extensions.procurement.form.rows import (
    DIGITS,
    FILLED,
    TYPED,
    TYPED_DIGITS,
    Cell,
    FormRow,
)
from postprocess.report import templating

FORM_HTML = "offer.html"
TEXTS = 6  #: columns, from demand to category
NOTES = (
    "layout: processes x processes of a node.",
    "measured: by the statistic of the rules; slowest: the worst launch; spread %: between launches.",
    "committed: what acceptance holds the machine against, in the unit of the row.",
    "projected: of hardware that is not there, by the model beside it.",
)


def render_form_page(
    title: str,
    facts: Sequence[str],
    rows: Sequence[FormRow],
    typed: Mapping[str, Mapping[str, Cell]],
) -> str:
    """Render the form as a page."""
    shown = [name for name in FILLED if name not in ("row", "risk")]
    places = [FILLED.index(name) for name in shown]
    lines = tuple(
        tuple(
            [show_cell(row.cells()[place]) for place in places]
            + [show_cell(typed.get(row.key.key, {}).get(name), TYPED_DIGITS) for name in TYPED]
        )
        for row in rows
    )
    risks = tuple(dict.fromkeys(row.risk for row in rows))
    table = TextTable("Rows", tuple(shown[:TEXTS]), tuple([*shown[TEXTS:], *TYPED]), lines, ())
    context = {
        "good": True,
        "headline": title,
        "kicker": "form of an offer",
        "facts": facts,
        "tables": (table,),
        "notes": [*NOTES, *(f"proposed: {each}" for each in risks)],
        "pictures": (),
    }
    return templating.render_html_template("offer.html.j2", context, draw=lambda _: "")


def show_cell(cell: Cell, digits: int = DIGITS) -> str:
    """Show a cell of the form."""
    if cell is None:
        return DASH
    return format_significant(cell, digits) if isinstance(cell, float) else str(cell)
