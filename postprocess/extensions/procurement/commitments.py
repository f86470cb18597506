"""What a bidder commits to: read from the form, checked against the rules and what was measured, and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import DASH, SECONDS, TextTable, format_significant, parse_decimal, quantity, size
from postprocess.base.records import Measured, is_measurable, is_same_page, read_record
from postprocess.base.sanitize import sanitize_line
from postprocess.extensions.procurement import form_rows, spreadsheet
from postprocess.extensions.procurement.offer import (
    COMMITMENTS,
    RULES,
    MeasuredRow,
    OpenedOffer,
    ToldFacts,
    UnmeasuredMpi,
)
from postprocess.extensions.procurement.rules.rules import hash_rules
from postprocess.extensions.procurement.run_rules import list_speed_limits
from postprocess.extensions.procurement.violations import Code, Violation
from postprocess.report.document import Document, Tone, table_section
from postprocess.report.rendering import render_html

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
    rows: Sequence[form_rows.FormRow],
    typed: Mapping[str, Mapping[str, form_rows.Cell]],
    unmeasured: Sequence[UnmeasuredMpi] = (),
) -> str:
    """Render the form as a page. An MPI of which nothing came has a row that says so."""
    shown = [name for name in form_rows.FILLED if name not in ("row", "risk")]
    places = [form_rows.FILLED.index(name) for name in shown]
    lines = tuple(
        tuple(
            [show_cell(row.cells()[place]) for place in places]
            + [
                show_cell(typed.get(row.key.key, {}).get(name), form_rows.TYPED_DIGITS)
                for name in form_rows.TYPED
            ]
        )
        for row in rows
    )
    empty = {name: DASH for name in (*shown, *form_rows.TYPED)}
    lines += tuple(
        tuple((empty | {"test": "no result", "MPI": mpi.environment, "category": mpi.category}).values())
        for mpi in unmeasured
    )
    risks = tuple(dict.fromkeys(row.risk for row in rows))
    table = TextTable("Rows", tuple(shown[:TEXTS]), tuple([*shown[TEXTS:], *form_rows.TYPED]), lines, ())
    notes = [*(mpi.words for mpi in unmeasured), *NOTES, *(f"proposed: {risk}" for risk in risks)]
    return render_html(
        Document(
            "form of an offer", (), Tone.PLAIN, title, facts, [table_section(table)], notes, landscape=True
        )
    )


def show_cell(cell: form_rows.Cell, digits: int = form_rows.DIGITS) -> str:
    if cell is None:
        return DASH
    return format_significant(cell, digits) if isinstance(cell, float) else str(cell)


#: Whether two files of a form say the same, by the name of the file.
COMPARED: Mapping[str, Callable[[bytes, bytes], bool]] = {
    spreadsheet.CSV: lambda ours, theirs: ours == theirs,
    FORM_HTML: lambda ours, theirs: is_same_page(ours.decode(), theirs.decode(errors="replace")),
    spreadsheet.XLSX: spreadsheet.is_same_book,
}


def render_form(
    offer: OpenedOffer, rows: list[form_rows.FormRow], kept: StoredCommitments | None
) -> dict[str, bytes]:
    """Render the form with what was typed, by the names of the files."""
    typed = list_typed(rows, kept)
    code = hash_rules(offer.stored.folder / RULES)
    title = f"{offer.rules.title}: offer of {offer.told.offeror or 'somebody'}"
    facts = [f"rules {code}", f"{offer.told.system}, {offer.told.interconnect}".strip(", ")]
    return {
        spreadsheet.CSV: spreadsheet.format_csv(rows, typed).encode(),
        spreadsheet.XLSX: spreadsheet.build_xlsx(title, code, rows, typed),
        FORM_HTML: render_form_page(
            title, [fact for fact in facts if fact], rows, typed, offer.unmeasured
        ).encode(),
    }


def list_typed(
    rows: list[form_rows.FormRow], kept: StoredCommitments | None
) -> Mapping[str, Mapping[str, form_rows.Cell]]:
    """List what was typed before, in the unit that people read."""
    units = {row.key.key: row.unit for row in rows}
    return {
        commitment.key: {
            "committed": form_rows.show(commitment.committed, units[commitment.key], form_rows.TYPED_DIGITS),
            "projected": form_rows.show(commitment.projected, units[commitment.key], form_rows.TYPED_DIGITS),
            "model": commitment.model or None,
        }
        for commitment in (kept.rows if kept else ())
        if commitment.key in units
    }


def check_form(offer: OpenedOffer, kept: StoredCommitments) -> Iterator[Violation]:
    """Check that the form, as far as it is there, says what was measured and committed: people read it."""
    folder = offer.stored.folder
    there = [name for name in COMPARED if (folder / name).exists()]
    ours = render_form(offer, form_rows.build_form(offer), kept) if there else {}
    for name in there:
        try:
            same = COMPARED[name](ours[name], files.read_regular(folder / name))
        except OSError:
            same = False
        if not same:
            yield Violation(Code.FORM_OTHER, name, "is not what was measured and committed")


ROUNDING = 1e-5  #: by which a value in the form may be better than it was
SAME = 1e-6  #: relative difference of a number that went through a spreadsheet


@dataclass(frozen=True)
class Commitment:
    """What is committed of a row, in the unit of its case."""

    key: str
    committed: Measured | None = None
    projected: Measured | None = None
    model: str = ""


@dataclass(frozen=True)
class StoredCommitments:
    schema: int
    rules: str
    rows: tuple[Commitment, ...]

    def by_key(self) -> dict[str, Commitment]:
        """Return them by the key of their row."""
        return {row.key: row for row in self.rows}

    def list_committed(self, rows: Iterable[MeasuredRow]) -> list[tuple[MeasuredRow, Commitment]]:
        """List the rows, out of those that were measured, in which a value is committed."""
        by_key = self.by_key()
        return [(row, own) for row in rows if (own := by_key.get(row.key.key)) and own.committed]


def read_commitments(folder: Path) -> StoredCommitments:
    """Read what was committed. Raises UsageError if nothing was, or the file is damaged."""
    path = folder / COMMITMENTS
    fix = "./plumbline offer sheet FOLDER --read FORM writes it"
    try:
        return read_record(path, StoredCommitments)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; {fix}") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}; {fix}") from None


def write_commitments(folder: Path, rules: str, rows: Sequence[Commitment]) -> None:
    """Keep what was committed."""
    text = json.dumps(asdict(StoredCommitments(1, rules, tuple(rows))), indent=1, allow_nan=False)
    files.replace_files({folder / COMMITMENTS: f"{text}\n".encode()})


def take_form(
    rows: Sequence[form_rows.FormRow], typed: Sequence[spreadsheet.TypedRow], name: str
) -> tuple[list[Commitment], list[Violation]]:
    """Take what was typed into a form, and name each cell that was altered or is impossible."""
    known = {row.key.key: row for row in rows}
    found: list[Commitment] = []
    wrong: list[Violation] = []
    for each in typed:
        row = known.pop(str(each.filled[0]), None)
        place = f"{name}, line {each.line}"
        if row is None:
            wrong.append(Violation(Code.FORM_ALTERED, place, f"{each.filled[0]}: is not a row, or twice"))
            continue
        for head, ours, theirs in zip(form_rows.FILLED, row.cells(), each.filled, strict=True):
            if not is_same_cell(ours, theirs):
                what = f"{head} is {theirs!r}, and was {ours!r}"
                wrong.append(Violation(Code.FORM_ALTERED, place, what))
        commitment, bad = take_row(row, each, place)
        found.append(commitment)
        wrong += bad
    wrong += [Violation(Code.FORM_ALTERED, name, f"{key}: its row is gone") for key in known]
    return found, wrong


def is_same_cell(ours: form_rows.Cell, theirs: form_rows.Cell) -> bool:
    """Return whether a cell came back as it was written; CSV has texts alone."""
    if ours is None or isinstance(ours, str):
        return (ours or None) == (theirs or None)
    number = parse_number(theirs)
    return number is not None and math.isclose(float(ours), number, rel_tol=SAME)


def parse_number(cell: form_rows.Cell) -> float | None:
    """Parse a cell as a finite number, a text as people write one; None if it is none."""
    if cell is None:
        return None
    try:
        value = parse_decimal(cell) if isinstance(cell, str) else float(cell)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def take_row(
    row: form_rows.FormRow, typed: spreadsheet.TypedRow, place: str
) -> tuple[Commitment, list[Violation]]:
    wrong, numbers = [], {}
    for name in ("committed", "projected"):
        cell = typed.typed[name]
        if cell is None and not (name == "projected" and typed.formula):
            continue
        number = parse_number(cell)
        if number is None or isinstance(cell, bool) or not is_measurable(form_rows.take(number, row.unit)):
            told = "a formula that was not computed" if cell is None else repr(cell)
            point = spreadsheet.read_decimal_comma(cell) if isinstance(cell, str) else cell
            fix = f"; write {point}" if point != cell else ""
            what = f"{name}: {told} is not a value{fix}"
            wrong.append(Violation(Code.COMMITMENT_IMPOSSIBLE, place, what))
        else:
            numbers[name] = form_rows.take(number, row.unit)
    model = sanitize_line(str(typed.typed["model"] or "").strip()) or typed.formula
    key = row.key.key
    return Commitment(key, numbers.get("committed"), numbers.get("projected"), model), wrong


def check_commitments(offer: OpenedOffer, kept: StoredCommitments) -> Iterator[Violation]:
    """Check what was committed: whole, possible, within the limits of the rules, with models."""
    rows, by_key = offer.rows, kept.by_key()
    known = {row.key.key: row for row in rows}
    for key in by_key:
        if key not in known:
            yield Violation(Code.FORM_ALTERED, key, "no launch measured this row")
    measured = {(row.key.case, row.key.bytes) for row in rows}
    committed = {(row.key.case, row.key.bytes) for row, _ in kept.list_committed(rows)}
    for case in offer.rules.case:
        for count in case.bytes if case.demand != "information" else ():
            if (case.name, count) in measured - committed:
                where = f"{case.name} {size(count)}"
                yield Violation(Code.COMMITMENT_MISSING, where, "nothing is committed with any MPI")
    for key, each in by_key.items():
        if key in known:
            yield from check_commitment(known[key], each, offer.told)


def check_commitment(row: MeasuredRow, each: Commitment, told: ToldFacts) -> Iterator[Violation]:
    for name, value in (("committed", each.committed), ("projected", each.projected)):
        if value is None:
            continue
        shown = f"{name} {quantity(value, row.unit)}"
        for limit in () if row.exact else list_speed_limits(row.case, row.unit, told):
            if limit.is_broken(value, row.unit):
                what = f"{shown} is faster than {limit.what} allows"
                yield Violation(Code.COMMITMENT_IMPOSSIBLE, row.key.key, what)
    bound = form_rows.limit_of(row.rule)
    if each.committed and bound and form_rows.is_worse(each.committed, bound, row.unit):
        what = f"{quantity(each.committed, row.unit)}, and the limit is {quantity(bound, row.unit)}"
        yield Violation(Code.COMMITMENT_BEYOND_LIMIT, row.key.key, what)
    if each.projected and not each.model:
        yield Violation(Code.PROJECTION_WITHOUT_MODEL, row.key.key, "projected, but no model is stated")
    best = -form_rows.find_slowest([-value for value in row.values], row.unit)
    rounded = best * (1 - ROUNDING if row.unit == SECONDS else 1 + ROUNDING)
    if each.committed and form_rows.is_worse(rounded, each.committed, row.unit) and not each.model:
        what = f"{quantity(each.committed, row.unit)} is better than every launch, but no model is stated"
        yield Violation(Code.PROJECTION_WITHOUT_MODEL, row.key.key, what)
