"""The store as CSV: every row that is asked for, to the last digit, or no file."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from postprocess.commands.export import open_output
from postprocess.main import main
from postprocess.results.store import SCHEMA, read_sessions, write_session
from tests.support.factories.store import Site, session_name
from tests.support.paths import ROOT
from tests.unit.postprocess.results.test_store import LOST, ROW

SITE = Site(cases=20)
HARD = 'comma, "quotes"\r\nand lines = 1 \u2028'
LISTS = {name for name, kind in SCHEMA.items() if isinstance(kind, pl.List)}
MADE = {pl.Int64: int, pl.Float64: float, pl.Boolean: {"true": True, "false": False}.get}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with two nights, and a session with what is hard to write."""
    made = tmp_path / "home" / "store"
    for number in range(2):
        SITE.write(made, number)
    write_session(made / f"{ROW.session}.parquet", [replace(ROW, reason=HARD, mode="run"), LOST])
    return made


def export(folder: Path, *words: str) -> int:
    return main(str(ROOT), str(folder.parent), ["export", *words])


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def value(name: str, text: str):
    """What a field says; csv tells no value and an empty text alike."""
    if name in LISTS:
        return json.loads(text)
    kind = SCHEMA[name]
    return text if kind == pl.String else MADE[kind](text) if text else None


def as_exported(row: dict) -> dict:
    return {name: "" if row[name] is None and SCHEMA[name] == pl.String else row[name] for name in row}


def same(found: list[dict[str, str]], frame: pl.DataFrame) -> bool:
    return [{name: value(name, row[name]) for name in row} for row in found] == [
        as_exported(row) for row in frame.rows(named=True)
    ]


def test_every_row_is_exported_to_the_last_digit(folder, capfd):
    assert export(folder) == 0
    shown = capfd.readouterr()
    assert shown.err == "exported 42 rows\n"
    frame = read_sessions(folder).drop(*LISTS, "provenance")
    found = rows(shown.out)
    assert list(found[0]) == frame.columns
    assert same(found, frame)


def test_with_trials_nothing_is_left_out(folder, tmp_path):
    assert export(folder, "--trials", "--output", str(tmp_path / "all.csv")) == 0
    frame = read_sessions(folder)
    found = rows((tmp_path / "all.csv").read_bytes().decode())
    assert list(found[0]) == SCHEMA.names()
    assert same(found, frame)
    assert any(json.loads(row["t_max"]) for row in found)


def test_lines_end_as_rfc_4180_says_and_what_needs_quotes_has_them(folder, tmp_path):
    export(folder, "--output", str(tmp_path / "x.csv"))
    data = (tmp_path / "x.csv").read_bytes()
    assert data.count(b"\r\n") == 1 + 42 + 1  # the header, the rows, and one inside a field
    assert data.endswith(b"\r\n") and data.count(b"\n") == data.count(b"\r\n") + 1  # in a field
    assert HARD.replace('"', '""').encode() in data


def test_some_cases(folder, capfd):
    keys = [SITE.keys()[3].key, ROW.case.key]
    assert export(folder, "--case", *keys) == 0
    found = [row["key"] for row in rows(capfd.readouterr().out)]
    assert found == [keys[0]] * 2 + [keys[1]] * 2
    assert export(folder, "--case", ",".join(keys)) == 0
    assert [row["key"] for row in rows(capfd.readouterr().out)] == found


def test_cases_of_a_pattern(folder, capfd):
    assert export(folder, "--case", "*:mpich-5_0_2:*", "--since", "2021-11-23") == 0
    found = {row["environment"] for row in rows(capfd.readouterr().out)}
    assert found == {"mpich-5_0_2"}


def refused(folder: Path, capfd, *words: str) -> str:
    assert export(folder, *words) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and said.startswith("plumbline: ")
    return said


def test_what_is_wrong_is_one_line_and_no_file(folder, tmp_path, capfd):
    target = tmp_path / "x.csv"
    output = ["--output", str(target)]
    said = refused(folder, capfd, *output, "--since", "yesterday")
    assert "--since: 'yesterday' is not a date" in said
    assert "--case no:such: no row of it" in refused(folder, capfd, *output, "--case", "no:such")
    said = refused(folder, capfd, "--output", str(tmp_path / "none" / "x.csv"))
    assert "none is not there" in said
    path = folder / f"{session_name(1)}.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    target.write_text("of yesterday")
    assert f"{path.name}: is damaged" in refused(folder, capfd, *output, "--force")
    assert target.read_text() == "of yesterday"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home", "x.csv"]


@pytest.mark.parametrize(
    ("name", "told"),
    [(word, "is a folder; name a file") for word in (".", "folder")]
    + [("", "--output: is empty; name a file or a folder")],
)
def test_a_folder_is_refused_before_anything_is_read(tmp_path, capfd, monkeypatch, name, told):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert told in refused(tmp_path / "no" / "store", capfd, "--output", name)


def test_a_link_stays_and_its_file_is_replaced(folder, tmp_path):
    link, target = tmp_path / "link.csv", tmp_path / "real.csv"
    link.symlink_to(target)
    for _ in range(2):  # a link to nothing, and to a file
        assert export(folder, "--output", str(link)) == 0
        assert link.is_symlink() and len(rows(target.read_bytes().decode())) == 42


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with open_output(pipe) as stream:
            stream.write(b"rows")
        assert os.read(reader, 10) == b"rows"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_reader_that_goes_away_is_no_fault_of_ours(folder):
    for number in range(2, 30):
        SITE.write(folder, number)
    script = "import sys; from postprocess.main import main; "
    script += "sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))"
    command = [sys.executable, "-c", script, str(ROOT), str(folder.parent), "export", "--trials"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        done.stdout.read(10)
        done.stdout.close()
        assert b"Traceback" not in done.stderr.read()
