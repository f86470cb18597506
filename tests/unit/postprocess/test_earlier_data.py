"""What an earlier Plumbline wrote is read as it was meant: store, references, ledger and sessions.

``tests/data/earlier`` is the work directory of two short nights and two calibrations, before the packages of
``postprocess`` came. It is never written again by a later version.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from postprocess.main import main
from postprocess.references.catalog import read_provenance
from postprocess.references.reference_file import load_references
from tests.support.paths import DATA, ROOT

EARLIER = DATA / "earlier"
NIGHTS = ("20261122T175826Z-5081", "20261122T180431Z-21863")
REFERENCES = Path("local", "cpu", "mpich-5_0_2.tsv")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A copy of the earlier work directory."""
    return shutil.copytree(EARLIER, tmp_path / "work")


def run(work: Path, *words: str) -> int:
    return main(str(ROOT), str(work), words)


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def to_twelve_digits(row: list[str]) -> list[str]:
    """Return the cells of a row without a float's last digits, which differ between processors."""
    return [f"{float(cell):.12g}" if "." in cell or "e-" in cell else cell for cell in row]


@pytest.mark.parametrize("night", NIGHTS)
def test_a_night_is_reported_with_its_verdicts(work: Path, night: str):
    summary = json.loads((EARLIER / "sessions" / night / "summary.json").read_text())
    assert run(work, "report", night) == summary["exit_status"]
    page = (work / "sessions" / night / "report.md").read_text()
    for verdict, number in summary["counts"].items():
        assert not number or f"{number} {verdict}" in page
    for case in summary["cases"]:
        assert case["routine"] in page


def test_every_value_of_the_store_is_exported_to_the_last_digit(work: Path, tmp_path: Path):
    stored = pl.concat(
        [pl.read_parquet(path) for path in sorted((EARLIER / "store").glob("*.parquet"))],
        how="diagonal",
    )
    assert run(work, "export", "--output", str(tmp_path / "all.csv")) == 0
    with (tmp_path / "all.csv").open() as file:
        exported = {
            (row["session"], row["launch"], row["key"]): row for row in csv.DictReader(file)
        }
    assert len(exported) == stored.height > 0
    for row in stored.iter_rows(named=True):
        told = exported[row["session"], str(row["launch"]), row["key"]]
        assert told["verdict"] == row["verdict"]
        assert (float(told["value"]) if told["value"] else None) == row["value"]


def test_the_calibrations_make_the_references_that_they_made(work: Path, tmp_path: Path):
    assert run(work, "references", "propose", "--output", str(tmp_path / "proposal")) == 0
    proposed = [to_twelve_digits(row) for row in rows(tmp_path / "proposal" / REFERENCES)]
    assert proposed == [to_twelve_digits(row) for row in rows(work / "references" / REFERENCES)]


def test_references_are_read_with_their_calibrations(work: Path):
    path = work / "references" / REFERENCES
    known = load_references(path, "local", "cpu", "mpich-5_0_2")
    assert [str(each.launches) for each in known.values()] == [row[-1] for row in rows(path)[1:]]
    assert [each.center for each in known.values()] == [float(row[-3]) for row in rows(path)[1:]]
    assert read_provenance(path)["programs"].keys() == {"mpicost"}
