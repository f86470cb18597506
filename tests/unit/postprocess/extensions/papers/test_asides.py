"""What stands beside the papers' own tables: skew, and what ``agree --bindings`` wrote of languages."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from postprocess.base.errors import UsageError
from postprocess.base.formats import render_text
from postprocess.extensions.papers.asides import build_skew_table, load_languages, read_skews
from postprocess.extensions.papers.command import PAPERS, Asked, build_paper
from tests.support.factories import papers as samples
from tests.support.factories.papers import arrange_results


def test_a_short_call_whose_start_took_long_is_told_and_no_other():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8, 32], ["bcast", "scan_sum", "pingpong"])
    night = samples.session(planned)
    measured = arrange_results(night.results)
    times = {result.case.key: result.value for result in night.results}
    waits = {"bcast": 0.5, "scan_sum": 0.2, "pingpong": 1.0}
    skews = {case.key: waits[case.routine] * times[case.key] for case in planned}
    table = build_skew_table(measured, {"": skews})
    (row,) = table.rows
    assert row[:6] == ("torus", "simgrid-mpich", "warm, dissemination", "bcast", "8 B", "32")
    assert row[8] == "0.50"
    assert build_skew_table(measured, {}).rows == ()


def test_the_skew_of_a_case_is_the_median_of_its_counted_trials():
    frame = pl.DataFrame(
        {
            "session": ["a", "a", "b"],
            "key": ["x", "x", "x"],
            "skew": [[9.0, 1.0, 2.0], [9.0, 3.0, 8.0], [5.0, 5.0, 5.0]],
            "late": [[False] * 3, [False, False, True], [False] * 3],
            "dropped": [1, 1, 1],
        }
    )
    assert read_skews(frame, "a") == {"x": 2.0}
    assert read_skews(pl.DataFrame(), "a") == {}


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
    text = render_text(samples.list_tables(build_paper(Asked("rus", languages=found), None))[0])
    assert "1.04" in text and "3.00" not in text and "0.98 to 1.02" in text
    assert "no significant difference" in text


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.9, 1.1, "none shown"), (1.02, 1.1, "slower"), (0.8, 0.97, "faster")]
)
def test_the_interval_has_its_word(tmp_path, low, high, word):
    write_rows(tmp_path, "1.json", {"low": low, "high": high})
    page = build_paper(Asked("rus", languages=load_languages(tmp_path)), None)
    assert word in samples.list_tables(page)[0].rows[0]


def test_a_paper_shows_its_own_language_alone(tmp_path):
    assert load_languages(tmp_path) == []
    write_rows(tmp_path, "1.json", {"language": "java-mpj"})
    rows = load_languages(tmp_path)
    pages = {name: build_paper(Asked(name, languages=rows), None) for name in PAPERS}
    titles = {name: [table.title for table in samples.list_tables(page)] for name, page in pages.items()}
    assert [name for name, each in titles.items() if each[0] == "Java against C"] == ["taboada"]


def test_a_damaged_file_is_named(tmp_path):
    write_rows(tmp_path, "1.json", {"ratio": 0})
    with pytest.raises(UsageError, match=r"1\.json: rows\[0\]\.ratio: .*; remove it"):
        load_languages(tmp_path)
