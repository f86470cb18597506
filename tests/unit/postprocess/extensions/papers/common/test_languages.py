"""What ``agree --bindings`` wrote, on the pages of the papers that compare languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.text_table import render_text
from postprocess.extensions.papers.common.languages import build_language_tables, load_languages
from postprocess.extensions.papers.one_paper import Asked, build_paper


def write_rows(work: Path, name: str, *rows: dict[str, Any]) -> None:
    folder = work / "bindings"
    folder.mkdir(exist_ok=True)
    usual = {
        **{"environment": "mpich-5_0_2", "title": "Fortran mpi", "routine": "bcast", "bytes": 8},
        **{"launches": 8, "ratio": 1.0, "low": 0.9, "high": 1.1, "seconds": 1e-6, "extra": 0.0},
    }
    found = [{"language": "fortran-mpi", **usual, **row} for row in rows]
    (folder / name).write_text(json.dumps({"schema": 1, "machine": "CPU", "rows": found}))


def test_the_newest_rows_of_a_language_stand_on_the_page_without_a_session(tmp_path):
    control = {"language": "c-again", "low": 0.98, "high": 1.02}
    write_rows(tmp_path, "1.json", {"ratio": 3.0}, {**control, "low": 0.45})
    write_rows(tmp_path, "2.json", {"ratio": 1.04}, control)
    write_rows(tmp_path, "3.json", {"language": "rust"}, {**control, "low": 0.56})  # of other rounds
    found = load_languages(tmp_path)
    view, *_ = build_paper(Asked("rus", languages=found), None)
    text = render_text(view.tables[0])
    assert "1.04" in text and "3.00" not in text and "0.98 to 1.02" in text
    assert "no significant difference" in text


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.9, 1.1, "none shown"), (1.02, 1.1, "slower"), (0.8, 0.97, "faster")]
)
def test_the_interval_has_its_word(tmp_path, low, high, word):
    write_rows(tmp_path, "1.json", {"low": low, "high": high})
    (table,) = build_language_tables("rus", load_languages(tmp_path))
    assert word in table.rows[0]


def test_a_paper_shows_its_own_language_alone(tmp_path):
    assert load_languages(tmp_path) == []
    write_rows(tmp_path, "1.json", {})
    rows = load_languages(tmp_path)
    assert build_language_tables("taboada", rows) == [] == build_language_tables("luecke2001", rows)
    write_rows(tmp_path, "2.json", {"language": "java-mpj"})
    assert build_language_tables("taboada", load_languages(tmp_path))


def test_a_damaged_file_is_named(tmp_path):
    write_rows(tmp_path, "1.json", {"ratio": 0})
    with pytest.raises(UsageError, match=r"1\.json: rows\[0\]\.ratio: .*; remove it"):
        load_languages(tmp_path)
