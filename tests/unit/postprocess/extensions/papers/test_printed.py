"""The printed figures: whole, as the papers' own words and sums have them, and read without trust."""

import shutil
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.extensions.papers import printed
from postprocess.extensions.papers.printed import load_history

HISTORY = load_history()
RATIOS = {(r.routine, r.bytes, r.machine): r.ratio for r in HISTORY.ratios}
MYRINET, ETHERNET = "Myrinet Linux Cluster", "Ethernet Linux Cluster"


def test_ethernet_is_slower_than_myrinet_everywhere_as_the_paper_concludes():
    pairs = [(key[:2], value) for key, value in RATIOS.items() if key[2] == ETHERNET]
    assert len(pairs) == 16
    assert all(value > RATIOS[(*what, MYRINET)] for what, value in pairs)


def test_what_stands_for_a_machine_names_one_that_is_printed():
    machines = {r.machine for r in HISTORY.ratios} | {r.against for r in HISTORY.ratios}
    assert {each.machine for each in HISTORY.stand_ins} <= machines
    for each in HISTORY.stand_ins:
        assert len(each.remark) > 40


def test_a_fit_is_to_a_printed_ratio_of_the_machine_that_the_model_stands_for():
    stands = {(s.system, s.partition): s.machine for s in HISTORY.stand_ins}
    for fit in HISTORY.fits:
        assert (fit.routine, fit.bytes, stands[fit.system, fit.partition]) in RATIOS


FILES = tuple(name for name, _ in printed.FILES.values())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(printed.DIRECTORY, tmp_path / "historical"))


def complaint(directory: Path) -> str:
    with pytest.raises(UsageError) as error:
        load_history(directory)
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    assert complaint(copy).startswith(f"{copy / name}: No such file")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-1], "is cut off"),
        (lambda text: text.splitlines()[0] + "\n", "row 2: there is none"),
        (lambda text: text.replace(",", ";", 1), "row 1: is not the header"),
        (lambda text: text + text.splitlines()[2] + "\n", "is the same as row 3"),
        (lambda text: text + "1,2\n", "has 2 cells"),
        (lambda text: text + "\n", "has 0 cells"),
        (lambda text: text + '"open\n', "no CSV in UTF-8"),
    ],
)
def test_a_damaged_file_is_named_with_its_row(copy, name, change, said):
    path = copy / name
    path.write_text(change(path.read_text()))
    text = complaint(copy)
    assert text.startswith(f"{path}: ") and said in text


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("luecke2001_ratios.csv", "bcast,x,128,A,B,2,t,9", "bytes: 'x'; write an integer, 0"),
        ("luecke2001_ratios.csv", "bcast,-8,128,A,B,2,t,9", "bytes: '-8'"),
        ("luecke2001_ratios.csv", "bcast,8.0,128,A,B,2,t,9", "bytes: '8.0'"),
        ("luecke2001_ratios.csv", "bcast,8,1,A,B,2,t,9", "processes: '1'; write an integer, 2"),
        ("luecke2001_ratios.csv", "bcast,8,128,A,B,0,t,9", "ratio: '0'; write a number above"),
        ("luecke2001_ratios.csv", "bcast,8,128,A,B,-1,t,9", "ratio: '-1'"),
        ("luecke2001_ratios.csv", "bcast,8,128,A,B,nan,t,9", "ratio: 'nan'"),
        ("luecke2001_ratios.csv", "bcast,8,128,A,B,1e400,t,9", "ratio: '1e400'"),
        ("luecke2001_ratios.csv", "bcast,8,128,A,B,,t,9", "ratio: ''"),
        ("luecke2001_ratios.csv", "bcast,8,128,,B,2,t,9", "machine: ''; write words"),
        ("luecke2001_ratios.csv", "bcast,8,128, A,B,2,t,9", "machine: ' A'"),
        ("luecke2001_ratios.csv", "bcast,8,128,A,B,2,\x1b[31m,9", "source: "),
        ("luecke2001_ratios.csv", "bcast,8,128,A,B,2,t,0", "line: '0'; write an integer, 1"),
        ("taboada_models.csv", "A,B,bcast,2,8,3+8q,N/A,N/A,2,N/A,t,9", "t0: '3+8q' is not a sum"),
        ("taboada_models.csv", "A,B,bcast,2,8,3++8p,N/A,N/A,2,N/A,t,9", "t0: '3++8p' is not a sum"),
        ("taboada_models.csv", "A,B,bcast,2,8,N/A,N/A,N/A,2,N/A,t,9", "t0: 'N/A' is not a sum"),
        ("taboada_models.csv", "A,B,bcast,2,8,3p,N/A,N/A,2,-,t,9", "bandwidth: '-'; write a number"),
    ],
)
def test_a_wrong_cell_is_named(copy, name, row, said):
    path = copy / name
    lines = path.read_text().count("\n")
    path.write_text(path.read_text() + row + "\n")
    assert complaint(copy).startswith(f"{path}: row {lines + 1}: {said}")


def test_text_that_is_no_utf8_is_named(copy):
    path = copy / "luecke2001_ratios.csv"
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*data[:3], b"\xff" + data[3], *data[4:]]))
    assert complaint(copy).startswith(f"{path}: no CSV in UTF-8")


def test_the_same_figure_twice_with_another_value_is_refused(copy):
    path = copy / "luecke2001_ratios.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1].replace("5.8", "5.9"), ""]))
    assert "is the same as row 2; remove one" in complaint(copy)
