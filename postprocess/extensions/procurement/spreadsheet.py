"""The form as CSV and as a spreadsheet, in which only what is to be typed can be; and both read back."""

import codecs
import csv
import io
import itertools
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.sanitize import sanitize_line
from postprocess.base.strict_json import format_external
from postprocess.extensions.procurement.form_rows import COLUMNS, FILLED, TYPED, Cell, FormRow

XLSX, CSV = "offer.xlsx", "offer.csv"
MOST_BYTES, MOST_ROWS = 100_000_000, 100_000  #: of a spreadsheet, unpacked
HEAD = 3  #: line of the heads of columns in the spreadsheet; above it are title and hash
#: Letters that a column is wide; others have 11
WIDTHS = {"row": 36, "test": 20, "risk": 44, "model": 26, "MPI": 19, "demand": 11, "unit": 7, "bytes": 9}
USUAL_WIDTH = 11
WRAPPED = ("row", "test", "MPI", "risk", "model")
LINE_HEIGHT = 14.5  #: points
A4 = 9  #: as spreadsheets number papers
SEPARATORS = (",", ";", "\t", "|")  #: of CSV, by the country of the spreadsheet program; ours first
MOST_ABOVE = 10  #: lines that may stand above the heads, as ``sep=;`` and empty ones
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?")  #: a number, where commas separate no columns
FIX_HEADS = "give it its name again, or copy what was typed into a form that is written anew"
TEXTS = (".csv", ".txt", ".tsv")  #: what spreadsheet programs call their files of text
FIRST_HEAD = re.compile(rf"\W*{COLUMNS[0]}\W")
FORMULA, TEXT = "f", "s"  #: what a cell of a spreadsheet holds, as openpyxl tells it


@dataclass(frozen=True)
class TypedRow:
    """What a file holds of a row: the cells that were filled in, and what was typed; texts as they are."""

    line: int
    filled: tuple[Cell, ...]
    typed: Mapping[str, Cell]
    formula: str = ""  #: of ``projected``, if it is one


def format_csv(rows: Sequence[FormRow], typed: Mapping[str, Mapping[str, Cell]]) -> str:
    """Format the form as CSV.

    :param typed: what was typed before, by the key of the row
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        known = typed.get(row.key.key, {})
        cells = [*row.cells(), *(known.get(name) for name in TYPED)]
        writer.writerow(["" if cell is None else guard_cell(cell) for cell in cells])
    return stream.getvalue()


def guard_cell(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet program takes for a formula."""
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@"):
        return f"'{cell}"
    return cell


def build_xlsx(
    title: str, code: str, rows: Sequence[FormRow], typed: Mapping[str, Mapping[str, Cell]]
) -> bytes:
    """Build the form as a spreadsheet whose open cells are those to be typed.

    :param code: hash of the rules
    """
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font, PatternFill, Protection
    from openpyxl.utils import get_column_letter

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "offer"
    sheet.append([sanitize_line(title)])
    sheet.append([f"rules {code}; type in the yellow cells only, in the unit of the row"])
    sheet.append(list(COLUMNS))
    for cell in sheet[HEAD]:
        cell.font = Font(bold=True)
    sheet["A1"].font = Font(bold=True, size=14)
    open_fill = PatternFill("solid", fgColor="FFF2CC")
    for row in rows:
        known = typed.get(row.key.key, {})
        cells = [*row.cells(), *(known.get(name) for name in TYPED)]
        sheet.append([sanitize_line(cell) if isinstance(cell, str) else cell for cell in cells])
        for cell in sheet[sheet.max_row][len(FILLED) :]:
            cell.protection = Protection(locked=False)
            cell.fill = open_fill
    for number, name in enumerate(COLUMNS, 1):
        letter = get_column_letter(number)
        sheet.column_dimensions[letter].width = WIDTHS.get(name, USUAL_WIDTH)
        for cell in sheet[letter][HEAD - 1 :]:
            cell.alignment = Alignment(wrap_text=name in WRAPPED or cell.row == HEAD, vertical="top")
    for number in range(HEAD, sheet.max_row + 1):
        sheet.row_dimensions[number].height = LINE_HEIGHT * count_lines(sheet[number])
    set_up_printing(sheet, title)
    for cell in (cell for row in sheet for cell in row if cell.data_type == FORMULA):
        cell.data_type = TEXT
    sheet.freeze_panes = f"B{HEAD + 1}"
    sheet.protection.sheet = True
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def count_lines(cells: Sequence[Any]) -> int:
    """Count the lines that the longest wrapped text of a row takes: no program finds that out by itself."""
    told = zip(COLUMNS, cells, strict=True)
    return max(
        sum(
            -(-max(len(part), 1) // WIDTHS.get(name, USUAL_WIDTH))
            for part in str(cell.value or "").splitlines() or [""]
        )
        if cell.alignment.wrap_text
        else 1
        for name, cell in told
    )


def set_up_printing(sheet: Any, title: str) -> None:
    """Set a sheet up for A4: landscape, as wide as the paper, heads on every page, without the keys of rows."""
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.properties import PageSetupProperties

    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.paperSize = A4
    sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight = 1, 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.page_margins.left = sheet.page_margins.right = 0.3
    sheet.page_margins.top, sheet.page_margins.bottom = 0.6, 0.4
    sheet.print_title_rows = f"{HEAD}:{HEAD}"
    sheet.print_area = f"B{HEAD}:{get_column_letter(len(COLUMNS))}{sheet.max_row}"
    sheet.oddHeader.left.text = sanitize_line(title).replace("&", "&&")
    sheet.oddFooter.right.text = "&P / &N"


def is_same_book(ours: bytes, theirs: bytes) -> bool:
    """Return whether two spreadsheets have the same parts, and the same in every cell."""
    try:
        return list_book(ours) == list_book(theirs)
    except Exception:  # whatever a damaged archive, XML or style brings
        return False


def list_book(data: bytes) -> list[Any]:
    """List the parts of a spreadsheet, and the cells of its sheets. Raises whatever its damage brings."""
    from openpyxl import load_workbook

    data = pack_anew(data)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        found: list[Any] = [sorted(packed.namelist())]
    for sheet in load_workbook(io.BytesIO(data), read_only=True).worksheets:
        sheet.reset_dimensions()
        rows = itertools.islice(sheet.iter_rows(values_only=True), MOST_ROWS + 1)
        found += [sheet.title, *rows]
    return found


def read_form(path: Path) -> list[TypedRow]:
    """Read a form back, as CSV or as a spreadsheet.

    :raises UsageError: if it is none, or its heads are others
    """
    with explaining(path, "./plumbline offer sheet writes it"):
        data = files.read_regular(path)
    if path.suffix.lower() in TEXTS:
        return read_csv(path, data)
    return read_xlsx(path, data)


def read_csv(path: Path, data: bytes) -> list[TypedRow]:
    """Read the form from CSV: ours, or the spreadsheet saved as such, with its lines above the heads.

    :raises UsageError: if it is no CSV, or has other heads.
    """
    text = decode_csv(path, data)
    separator = find_separator(text)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise UsageError(f"{path}: {error}; save it as CSV in UTF-8 with commas") from None
    above = next((n for n, cells in enumerate(lines[:MOST_ABOVE]) if is_head(cells)), 0)
    heads = [cell.strip() for cell in lines[above]] if lines else []
    check_heads(path, heads)
    found = []
    for number, cells in enumerate(lines[above + 1 :], above + 2):
        if any(cells):
            read = cells if separator == "," else map(read_decimal_comma, cells)
            whole = [cell or None for cell in read][: len(COLUMNS)]
            whole += [None] * (len(COLUMNS) - len(whole))
            found.append(split_row(number, whole))
    return found


def decode_csv(path: Path, data: bytes) -> str:
    """Decode a CSV file as spreadsheet programs save it: UTF-8 or UTF-16 by its mark, else UTF-8.

    :raises UsageError: if it is in the code page of a country, which nobody can tell
    """
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        what = f"line {line} is not in UTF-8 (byte {data[error.start]:#04x})" if not marked else str(error)
        raise UsageError(f"{path}: {what}; save it as 'CSV UTF-8', or as .xlsx") from None


def find_separator(text: str) -> str:
    """Find what separates the columns: that with which most columns follow the first head."""
    heads = next((line for line in text.splitlines()[:MOST_ABOVE] if FIRST_HEAD.match(line)), "")
    return max(SEPARATORS, key=heads.count)


def read_decimal_comma(cell: str) -> str:
    """Return a number with a point where a cell has it with a comma; other cells as they are."""
    return cell.strip().replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def is_head(cells: Sequence[str]) -> bool:
    """Return whether a line begins as the heads of the columns do."""
    return [cell.strip() for cell in cells[:1]] == [COLUMNS[0]]


def read_xlsx(path: Path, data: bytes) -> list[TypedRow]:
    """Read the form from a spreadsheet, row by row: no merged cell and no link of it is spread out.

    :raises UsageError: if it is no such spreadsheet.
    """
    from openpyxl import load_workbook

    try:
        data = pack_anew(data)
        books = [load_workbook(io.BytesIO(data), read_only=True, data_only=each) for each in (True, False)]
        values, formulas = (list_rows(book["offer"]) for book in books)
    except Exception as error:  # whatever a damaged archive, XML or style brings
        raise UsageError(
            f"{path}: {type(error).__name__}: is not a form; save it as .xlsx or CSV, or write it anew"
        ) from None
    check_heads(path, [cell.value for cell in values[0]] if values else [])
    place = COLUMNS.index("projected")
    found = []
    for number, (row, other) in enumerate(zip(values, formulas, strict=True), HEAD):
        cells = [cell.value for cell in row]
        if number > HEAD and any(cell is not None for cell in cells):
            told = other[place]
            formula = str(told.value) if told.data_type == FORMULA else ""
            found.append(split_row(number, cells, formula))
    return found


def pack_anew(data: bytes) -> bytes:
    """Pack the parts of a spreadsheet anew, without compression: what it says of their sizes may be less.

    :raises ValueError: if they are larger than a form; what else a damaged archive brings
    """
    stream, left = io.BytesIO(), MOST_BYTES
    with zipfile.ZipFile(io.BytesIO(data)) as packed, zipfile.ZipFile(stream, "w") as whole:
        for part in packed.infolist():
            if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("of other methods a small piece becomes large at once")
            if part.file_size > left:
                raise ValueError("too large")
            whole.writestr(part.filename, packed.read(part))
            left -= part.file_size
    return stream.getvalue()


def list_rows(sheet: Any) -> list[Sequence[Any]]:
    """List the rows from the heads of columns on, of each no more cells than the form has columns.

    :raises ValueError: if they are more than a form has
    """
    sheet.reset_dimensions()  # what it says of them may be anything
    rows = sheet.iter_rows(min_row=HEAD, max_col=len(COLUMNS))
    found = list(itertools.islice(rows, MOST_ROWS + 1))
    if len(found) > MOST_ROWS:
        raise ValueError("too many rows")
    return found


def check_heads(path: Path, heads: Sequence[Any]) -> None:
    """Check that the columns are those of the form. Raises UsageError naming the first that is another."""
    for number, name in enumerate(COLUMNS):
        here = heads[number] if number < len(heads) else None
        if here != name:
            raise UsageError(
                f"{path}: column {number + 1} is {format_external(here)}, not {name!r}; {FIX_HEADS}"
            )


def split_row(line: int, cells: Sequence[Any], formula: str = "") -> TypedRow:
    """Split a line into what was filled in and what was typed."""
    filled = tuple(cells[: len(FILLED)])
    return TypedRow(line, filled, dict(zip(TYPED, cells[len(FILLED) :], strict=True)), formula)
