"""The form in all its forms, as it is written; and held against what somebody handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from postprocess.base import files
from postprocess.base.same_values import is_same_page
from postprocess.extensions.procurement.check.data import RULES
from postprocess.extensions.procurement.check.offer import OpenedOffer
from postprocess.extensions.procurement.check.violations import Code, Violation
from postprocess.extensions.procurement.form.commitments import StoredCommitments
from postprocess.extensions.procurement.form.page import FORM_HTML, render_form_page
from postprocess.extensions.procurement.form.rows import (
    TYPED_DIGITS,
    Cell,
    FormRow,
    build_form,
    show,
)
from postprocess.extensions.procurement.form.spreadsheet import (
    CSV,
    XLSX,
    build_xlsx,
    format_csv,
    is_same_book,
)
from postprocess.extensions.procurement.rules.rules_data import hash_rules

#: Whether two files of a form say the same, by the name of the file.
COMPARED: Mapping[str, Callable[[bytes, bytes], bool]] = {
    CSV: lambda ours, theirs: ours == theirs,
    FORM_HTML: lambda ours, theirs: is_same_page(ours.decode(), theirs.decode(errors="replace")),
    XLSX: is_same_book,
}


def render_form(
    offer: OpenedOffer, rows: list[FormRow], kept: StoredCommitments | None
) -> dict[str, bytes]:
    """Render the form with what was typed, by the names of the files."""
    typed = list_typed(rows, kept)
    code = hash_rules(offer.stored.folder / RULES)
    title = f"{offer.rules.title}: offer of {offer.told.offeror or 'somebody'}"
    facts = [f"rules {code}", f"{offer.told.system}, {offer.told.interconnect}".strip(", ")]
    return {
        CSV: format_csv(rows, typed).encode(),
        XLSX: build_xlsx(title, code, rows, typed),
        FORM_HTML: render_form_page(title, [each for each in facts if each], rows, typed).encode(),
    }


def list_typed(
    rows: list[FormRow], kept: StoredCommitments | None
) -> Mapping[str, Mapping[str, Cell]]:
    """List what was typed before, in the unit that people read."""
    units = {row.key.key: row.unit for row in rows}
    return {
        each.key: {
            "committed": show(each.committed, units[each.key], TYPED_DIGITS),
            "projected": show(each.projected, units[each.key], TYPED_DIGITS),
            "model": each.model or None,
        }
        for each in (kept.rows if kept else ())
        if each.key in units
    }


def check_form(offer: OpenedOffer, kept: StoredCommitments) -> Iterator[Violation]:
    """Check that the form, as far as it is there, says what was measured and committed: people read it."""
    folder = offer.stored.folder
    there = [name for name in COMPARED if (folder / name).exists()]
    ours = render_form(offer, build_form(offer), kept) if there else {}
    for name in there:
        try:
            same = COMPARED[name](ours[name], files.read_regular(folder / name))
        except OSError:
            same = False
        if not same:
            what = "is not what was measured and committed"
            yield Violation(Code.FORM_OTHER, name, what)
