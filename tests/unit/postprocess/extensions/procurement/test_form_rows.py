"""The form: written, filled by a spreadsheet library, read back; what is altered or impossible is named."""

import csv
import io
import math
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.procurement import spreadsheet
from postprocess.extensions.procurement.commitments import read_commitments
from postprocess.extensions.procurement.form_rows import COLUMNS, build_form, round_to_worse, show, take
from postprocess.extensions.procurement.offer import open_offer
from postprocess.extensions.procurement.spreadsheet import (
    CSV,
    HEAD,
    MOST_BYTES,
    MOST_ROWS,
    XLSX,
    pack_anew,
    read_form,
)
from postprocess.main import main
from tests.support.factories.offer import RULES_TEXT, make_offer
from tests.support.faults import Declared, plants

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl: ./plumbline test brings it")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_offer(tmp_path_factory.mktemp("form") / "offer")
    assert sheet(folder) == 0
    return folder


@pytest.fixture
def offer(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "offer")


def sheet(folder: Path, *words: str) -> int:
    return main(str(folder), str(folder / "home"), ["offer", "sheet", str(folder), *words])


def fill(folder: Path, **cells: object) -> Path:
    """Type into the spreadsheet: a cell by its column and line, as ``committed4``; saved as a user would."""
    book = openpyxl.load_workbook(folder / XLSX)
    for name, value in cells.items():
        column = COLUMNS.index(name.rstrip("0123456789").replace("_", " ")) + 1
        line = int(name.lstrip("abcdefghijklmnopqrstuvwxyz_"))
        book["offer"].cell(line, column).value = value
    book.save(folder / XLSX)
    return folder / XLSX


def type_csv(
    folder: Path,
    name: str = CSV,
    *,
    committed: Sequence[str] = ("1.3", "130", "45"),
    model: str = "",
    above: str = "",
    encoding: str = "utf-8",
    delimiter: str = ",",
) -> Path:
    """Type a commitment and a model into each row of the form as CSV, and save it as some program does."""
    lines = list(csv.reader((folder / CSV).open()))
    for line, value in zip(lines[1:], committed, strict=True):
        line[COLUMNS.index("committed")], line[COLUMNS.index("model")] = value, model
    with (folder / name).open("w", encoding=encoding, newline="") as file:
        file.write(above)
        csv.writer(file, delimiter=delimiter).writerows(lines)
    return folder / name


def read(folder: Path, path: Path) -> int:
    return sheet(folder, "--read", str(path))


ALL = {"committed4": 1.3, "committed5": 130.0, "committed6": 45.0}


def test_what_is_proposed_is_a_tolerance_limit_with_its_risk_in_words(written: Path) -> None:
    row = build_form(open_offer(written))[0]
    logs = [math.log(value) for value in row.measured.values]
    mean, spread = sum(logs) / 5, row.spread or 0
    assert row.proposed == pytest.approx(math.exp(mean + 5.741 * spread), rel=1e-4)
    assert row.risk.startswith("with 95% confidence 99% of later launches are no slower (mean and 5.74")
    assert "differences between days are not in it" in row.risk
    assert row.reference == pytest.approx(2e-6)


def test_launches_that_differ_much_give_no_proposal(tmp_path: Path) -> None:
    row = build_form(open_offer(make_offer(tmp_path / "offer", [1.0, 3.0, 1.0, 9.0, 1.0])))[0]
    assert row.proposed is None and row.risk.startswith("launches differ too much for a proposal")


def test_a_filled_form_is_read_back_and_kept(offer: Path, capsys) -> None:
    assert read(offer, fill(offer, **ALL)) == 0
    assert "3 commitments: no violation" in " ".join(capsys.readouterr().out.split())
    kept = [row.committed for row in read_commitments(offer).rows]
    assert kept == [pytest.approx(1.3e-6), pytest.approx(1.3e-4), pytest.approx(4.5e-5)]
    assert sheet(offer) == 0  # a form written anew keeps what was typed
    again = openpyxl.load_workbook(offer / XLSX)["offer"]
    assert again.cell(4, COLUMNS.index("committed") + 1).value == 1.3


@pytest.mark.parametrize("rate", [False, True], ids=["time", "rate"])
def test_a_proposal_is_no_better_for_being_rounded(rate: bool) -> None:
    unit = "MB/s" if rate else "s"
    for value in (1.00000499e-6, 9.9999951e-6, 8.1600049e-6, 0.123456499):
        shown = take(show(round_to_worse(value, unit), unit), unit)
        assert (shown <= value) if rate else (shown >= value)
        assert shown == pytest.approx(value, rel=1.1e-3)


def test_a_spreadsheet_prints_as_wide_as_the_paper_and_hides_no_line(offer: Path) -> None:
    """Of the longest text of a row all lines fit its height."""
    page = openpyxl.load_workbook(offer / XLSX)["offer"]
    assert page.page_setup.orientation == "landscape" and page.sheet_properties.pageSetUpPr.fitToPage
    assert (page.page_setup.fitToWidth, page.page_setup.fitToHeight) == (1, 0)
    assert page.print_title_rows == f"${HEAD}:${HEAD}"
    (risk,) = (cell for cell in page[HEAD] if cell.value == "risk")
    wide = page.column_dimensions[risk.column_letter].width
    for line in range(HEAD + 1, page.max_row + 1):
        lines = -(-len(page.cell(line, risk.column).value) // wide)
        assert lines > 1 and page.row_dimensions[line].height >= 12 * lines


def test_only_the_cells_to_be_typed_are_open(offer: Path) -> None:
    page = openpyxl.load_workbook(offer / XLSX)["offer"]
    assert page.protection.sheet
    open_cells = {
        page.cell(HEAD, cell.column).value
        for line in page.iter_rows(min_row=HEAD + 1)
        for cell in line
        if not cell.protection.locked
    }
    assert open_cells == {"committed", "projected", "model"}


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"above": "a title,\nrules 0123,\n"},
        {"delimiter": ";", "encoding": "utf-8-sig"},
        {"delimiter": ";", "name": "offer.CSV", "above": "sep=;\r\n"},
        {"delimiter": "\t", "name": "offer.txt", "encoding": "utf-16"},
        {"delimiter": "\t", "name": "offer.tsv", "above": "\r\n"},
    ],
    ids=str,
)
def test_csv_is_read_back_as_programs_of_any_country_save_it(offer: Path, how: dict[str, str]) -> None:
    """Also the spreadsheet saved as CSV, with its lines above the heads; decimal commas, other separators."""
    committed = ("1,3", "130", "45,5") if "delimiter" in how else ("1.3", "130", "45.5")
    assert read(offer, type_csv(offer, committed=committed, **how)) == 0
    assert read_commitments(offer).rows[2].committed == pytest.approx(4.55e-5)


@plants("offers", "a decimal comma where commas separate columns, and the code page of a country",
        "the form of an offer", "", 2, "committed: '1,25' is not a value; write 1.25 | "
        "line 2 is not in UTF-8 (byte 0xb5); save it")  # fmt: skip
def test_what_cannot_be_told_of_csv_is_said(offer, capsys, declared: Declared) -> None:
    read(offer, type_csv(offer, committed=("1,25", "130", "45")))
    comma = "".join(capsys.readouterr())
    status = read(offer, type_csv(offer, model="\xb5", encoding="cp1252"))
    declared.check((), status, [comma, capsys.readouterr().err])


@pytest.mark.parametrize(
    ("cells", "code", "said"),
    [
        ({"committed4": 1.3}, "commitment-missing", "broadcast 1 MB and 1 more: nothing is committed"),
        ({**ALL, "committed4": "soon"}, "commitment-impossible", "committed: 'soon' is not a value"),
        ({**ALL, "committed4": -1}, "commitment-impossible", "-1 is not a value"),
        ({**ALL, "committed4": 0.001}, "commitment-impossible", "faster than light"),
        ({**ALL, "committed5": 0.5}, "commitment-impossible", "faster than memory"),
        ({**ALL, "committed5": 2e6}, "commitment-beyond-limit", "the limit is 1000000 us"),
        ({**ALL, "committed4": 0.3}, "projection-without-model", "better than every launch"),
        ({**ALL, "projected4": 0.9}, "projection-without-model", "projected, but no model"),
        ({**ALL, "projected4": "=K4*0.8"}, "commitment-impossible", "not computed"),
        ({**ALL, "measured4": 0.5}, "form-altered", "measured is 0.5, and was"),
        ({**ALL, "launches6": 50}, "form-altered", "launches is 50, and was 5"),
        ({**ALL, "row4": "mine"}, "form-altered", "mine: is not a row, or twice"),
    ],
)
def test_a_cell_that_is_untouched_altered_or_impossible_is_named(offer, capsys, cells, code, said: str) -> None:
    assert read(offer, fill(offer, **cells)) == 1
    told = capsys.readouterr().err
    assert f"plumbline: {code}" in told and said in told


def test_a_projection_with_its_model_is_taken(offer: Path) -> None:
    cells = {**ALL, "committed4": 0.3, "projected4": 0.3, "model4": "LogGP with the new adapter"}
    assert read(offer, fill(offer, **cells)) == 0
    assert read_commitments(offer).rows[0].projected == pytest.approx(3e-7)


def test_characters_that_no_spreadsheet_takes_are_spelled_out_in_a_model(offer: Path) -> None:
    assert read(offer, type_csv(offer, model="LogGP\x0b of \ufffe")) == 0
    assert read_commitments(offer).rows[0].model == r"LogGP\x0b of \ufffe"
    path = offer / "commitments.json"  # may be another's, who typed into it
    path.write_text(path.read_text().replace(r"LogGP\\x0b", r"LogGP\u000b"))
    assert read_commitments(offer).rows[0].model == "LogGP\x0b of \\ufffe"
    assert sheet(offer) == 0
    assert read_form(offer / XLSX)[0].typed["model"] == r"LogGP\x0b of \ufffe"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.xlsx", "no archive", "is not a form; save it as .xlsx or CSV, or write it anew"),
        ("x.csv", "a,b\n1,2\n", "column 1 is 'a', not 'row'"),
    ],
)
def test_what_is_no_form_is_an_error_of_one_line(offer: Path, capsys, name: str, text: str, said: str) -> None:
    (offer / name).write_text(text)
    assert read(offer, offer / name) == 2
    assert said in capsys.readouterr().err


def edit_sheet(path: Path, edit: Callable[[bytes], bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    """Pack a spreadsheet anew, with other bytes of its sheet."""
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    members["xl/worksheets/sheet1.xml"] = edit(members["xl/worksheets/sheet1.xml"])
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as packed:
        for name, data in members.items():
            packed.writestr(name, data)


def bomb(path: Path) -> None:
    """A hundred megabytes of blanks, of a hundred kilobytes; it can be read."""
    edit_sheet(path, lambda data: data + b" " * MOST_BYTES)


def bomb_at_once(path: Path) -> None:
    """By a method of which a few kilobytes are unpacked as one piece; it can be read too."""
    edit_sheet(path, lambda data: data + b" ", zipfile.ZIP_BZIP2)


def bomb_in_disguise(path: Path) -> None:
    """A part that is sixteen times as large as it is said to be, with the checksum of what is said."""
    said = b"<" + b" " * 4095
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("docProps/more.xml", said * 16)
        part = packed.getinfo("docProps/more.xml")
        part.file_size, part.CRC = len(said), zlib.crc32(said)


def put_cells(*places: str) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        book = openpyxl.load_workbook(path)
        for place in places:
            book["offer"][place] = 1
        book.save(path)

    return put


@plants("files", "a spreadsheet of a hundred megabytes, unpacked, or of a million rows",
        "the form of an offer", "", 2, "is not a form; save it as .xlsx or CSV, or write it anew")  # fmt: skip
@pytest.mark.parametrize("damage", [bomb, bomb_at_once, put_cells(f"A{HEAD + MOST_ROWS}")])
def test_a_spreadsheet_larger_than_any_form_is_not_read(offer: Path, tmp_path: Path, damage, declared) -> None:
    path = shutil.copy(offer / XLSX, tmp_path / "x.xlsx")
    damage(path)
    with declared.raises(UsageError):
        read_form(path)


def test_parts_together_are_no_larger_than_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheet, "MOST_BYTES", 100)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for name in "ab":
            packed.writestr(name, b" " * 60)
    with pytest.raises(ValueError, match="too large"):
        pack_anew(stream.getvalue())


def test_the_reader_of_a_spreadsheet_gets_what_was_packed_anew(offer: Path, monkeypatch) -> None:
    methods, load = set(), openpyxl.load_workbook

    def look(stream: io.BytesIO, **told: bool) -> openpyxl.Workbook:
        with zipfile.ZipFile(stream) as packed:
            methods.update(part.compress_type for part in packed.infolist())
        return load(stream, **told)

    monkeypatch.setattr(openpyxl, "load_workbook", look)
    read_form(offer / XLSX)
    assert methods == {zipfile.ZIP_STORED}


def test_what_a_sheet_says_of_its_dimensions_is_not_believed(offer: Path) -> None:
    rows = read_form(offer / XLSX)
    edit_sheet(offer / XLSX, lambda data: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:B2"', data))
    with zipfile.ZipFile(offer / XLSX) as packed:
        assert b'"A1:B2"' in packed.read("xl/worksheets/sheet1.xml")
    assert read_form(offer / XLSX) == rows


def test_what_a_part_says_of_its_size_is_not_believed(offer: Path) -> None:
    """openpyxl reads parts whole: two megabytes with a small number on them would take two gigabytes."""
    rows = read_form(offer / XLSX)
    bomb_in_disguise(offer / XLSX)
    data = (offer / XLSX).read_bytes()
    with zipfile.ZipFile(io.BytesIO(pack_anew(data))) as packed:
        sizes = {part.filename: (part.file_size, part.compress_size) for part in packed.infolist()}
    assert sizes["docProps/more.xml"] == (4096, 4096)
    assert read_form(offer / XLSX) == rows


def test_what_is_wide_in_a_spreadsheet_is_not_spread_out(offer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand rows of 16384 columns, or one merged cell of them, are more than any memory."""
    rows = read_form(offer / XLSX)
    put_cells("XFD4", "A202")(offer / XLSX)
    book = openpyxl.load_workbook(offer / XLSX)
    book["offer"].merge_cells("A200:XFD201")
    book.save(offer / XLSX)
    sheet, made = openpyxl.worksheet.worksheet, []
    make, merge = sheet.Worksheet._get_cell, sheet.MergedCell
    monkeypatch.setattr(sheet.Worksheet, "_get_cell", lambda *place: made.append(place) or make(*place))
    monkeypatch.setattr(sheet, "MergedCell", lambda *told: made.append(told) or merge(*told))
    assert read_form(offer / XLSX)[: len(rows)] == rows
    assert not made


def test_a_text_runs_nothing_in_the_spreadsheet_and_is_read_back(tmp_path: Path) -> None:
    folder = make_offer(tmp_path / "offer", rules=RULES_TEXT.replace('"a sample"', '"=cmd()"'))
    assert sheet(folder) == 0
    assert read(folder, type_csv(folder, model="=B4*2")) == 0
    before = read_commitments(folder)
    book = openpyxl.load_workbook(folder / XLSX)
    assert not [cell for row in book["offer"] for cell in row if cell.data_type == "f"]
    assert read(folder, folder / XLSX) == 0
    assert read_commitments(folder) == before


@pytest.mark.parametrize("cell", ["1e-320", "1e308", "9" * 400, "nan", "inf"])
def test_a_number_that_no_machine_has_replaces_no_commitment(offer: Path, cell: str, capsys):
    assert read(offer, fill(offer, **ALL)) == 0
    before = (offer / "commitments.json").read_bytes()
    assert read(offer, fill(offer, **{**ALL, "committed4": cell})) == 1
    assert "is not a value" in capsys.readouterr().err
    assert (offer / "commitments.json").read_bytes() == before


def test_cells_behind_the_last_column_do_not_matter(offer: Path, tmp_path: Path) -> None:
    lines = (offer / "offer.csv").read_text().splitlines()
    (tmp_path / "x.csv").write_text("".join(f"{line},,mine\n" for line in lines))
    assert len(read_form(tmp_path / "x.csv")) == len(lines) - 1
