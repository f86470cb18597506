"""Lint finds what no loader refuses: any cell of a sound pair of files that is changed is named."""

import json
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postprocess.base.formats import DATE_FORMAT
from postprocess.model.reference import Reference
from postprocess.references import lint as reference_lint
from postprocess.references import provenance, reference_file
from postprocess.references.lint import lint_reference, lint_references
from postprocess.references.reference_file import COLUMNS
from postprocess.stats.priors import SPREAD_COLUMNS
from tests.support.factories.launch import CASES, PLACE, origin_of, write_references
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

#: Other values of a cell, each of another meaning, that are as well-formed as the one that is there.
OTHERS = {
    "program": ["osu", "imb", "mpicost2"],
    "routine": ["barrier", "bcast", "alltoall", "pingpong"],
    "peer": ["0", "1", "2"],
    "cache": ["flush", "warm", "rotate"],
    "sync": ["dissemination", "barrier", "window", "loop"],
    "processes": ["2", "3", "4"],
    "per_node": ["1", "2", "3"],
    "bytes": ["0", "8", "9", "1000000"],
    "unit": ["s", "MB/s"],
    "center": ["1e-06", "1.00001e-06", "0.001", "1e-10", "5000.0"],
    "spread": ["0.1", "0.10001", "0.0", "0.2", "3.0", "exact"],
    "launches": ["1", "19", "20", "21", "200"],
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference file without a fault; every test that changes it puts it back."""
    path = write_references(tmp_path_factory.mktemp("references"))
    assert lint_reference(path) == []
    return path


def faults_of(path: Path, text: str, told: str | None = None) -> list[str]:
    """What lint says of other texts in the places of a table and its provenance."""
    sidecar = provenance.locate_provenance(path)
    before = path.read_text(), sidecar.read_text()
    try:
        path.write_text(text)
        sidecar.write_text(told or before[1])
        return lint_reference(path)
    finally:
        path.write_text(before[0])
        sidecar.write_text(before[1])


@plants("references", "one cell changed, in any way", "a reference file, in `lint`", "", 1,
        "mpich-5_0_2.")  # fmt: skip
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_change_of_one_cell_is_found(sound: Path, declared: Declared, data: st.DataObject):
    rows = [line.split("\t") for line in sound.read_text().splitlines()]
    row = data.draw(st.integers(1, len(rows) - 1))
    column = data.draw(st.integers(0, len(COLUMNS) - 1))
    rows[row][column] = data.draw(
        st.sampled_from([o for o in OTHERS[COLUMNS[column]] if not same(o, rows[row][column])])
    )
    text = "".join("\t".join(cells) + "\n" for cells in rows)
    found = faults_of(sound, text)
    assert found, rows[row]
    assert all(line.startswith(str(sound.with_suffix(""))) and "\n" not in line for line in found)
    declared.check((), 1, found)


def same(one: str, other: str) -> bool:
    """Whether two cells mean the same."""
    try:
        return math.isclose(float(one), float(other))
    except ValueError:
        return one == other


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_change_of_one_headline_is_found(sound: Path, data: st.DataObject):
    origin = json.loads(provenance.locate_provenance(sound).read_text())
    values = origin["programs"]["mpicost"]["calibrations"][0]["headlines"][
        data.draw(st.sampled_from(CASES)).key
    ]
    place = data.draw(st.integers(0, len(values) - 1))
    values[place] *= data.draw(st.sampled_from([0.5, 0.999, 1.001, 2.0, 1e6]))
    found = faults_of(sound, sound.read_text(), json.dumps(origin))
    assert any("headlines of the provenance make" in line for line in found)


def changed(path: Path, **told) -> list[str]:
    """What lint says if this is told of mpicost."""
    origin = json.loads(provenance.locate_provenance(path).read_text())
    origin["programs"]["mpicost"]["calibrations"][0] |= told
    return faults_of(path, path.read_text(), json.dumps(origin))


def later(**delta: float) -> str:
    return (datetime.now(timezone.utc) + timedelta(**delta)).strftime(DATE_FORMAT)


STRANGE = {"session": "x", "ended_utc": "2026-11-21T09:00:00Z", "hosts": ["n1"]}


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ({"date_utc": later(days=3)}, "is in the future"),
        ({"date_utc": "2026-11-20T09:00:00Z"}, "is before its session 20261121T090000Z-1 began"),
        ({"sessions": ["20261121T090000Z-1"] * 2}, "is there 2 times"),
        ({"sessions": ["mine"]}, "'mine' is not a session's name"),
        ({"headlines": {}}, "has no headlines in the provenance"),
        ({"headlines": {case.key: ["fast"] for case in CASES}}, "has no headlines"),
        ({"headlines": {case.key: [-1.0] for case in CASES}}, "has no headlines"),
        ({"circumstances": None}, "circumstances: None is not of type dict"),
        ({"circumstances": {"colour": "green"}}, "circumstances: 'colour' is unknown"),
        ({"series": [{"launches": [STRANGE], "headlines": {}}]}, "of session 'x'"),
        ({"series": [{"launches": [STRANGE], "headlines": {}}]}, "not read beside series"),
        ({"headlines": "fast"}, "headlines: 'fast' is not of type dict"),
    ],
)
def test_a_provenance_that_cannot_be_is_found(sound: Path, told, fault: str):
    found = changed(sound, **told)
    assert any(fault in line for line in found), found


def test_headlines_without_a_row_are_found(sound: Path):
    lines = sound.read_text().splitlines(keepends=True)
    found = faults_of(sound, "".join(lines[:-1]))
    assert any("has no row in the table" in line for line in found)


def test_a_program_without_a_row_is_found(sound: Path):
    origin = json.loads(provenance.locate_provenance(sound).read_text())
    origin["programs"] |= origin_of("osu")["programs"]
    found = faults_of(sound, sound.read_text(), json.dumps(origin))
    assert any("programs: osu: has no row in the table" in line for line in found)


def test_a_time_that_falls_steeply_with_size_is_found_but_not_of_few_launches():
    def known(launches: int) -> dict:
        small, large = CASES[:2]
        return {small: Reference(small, 1e-4, 0.1, launches), large: Reference(large, 1e-6, 0.1, launches)}

    assert [case for case, _ in reference_lint.find_steep_drops(known(20))] == [CASES[1]]
    assert not list(reference_lint.find_steep_drops(known(5)))


def test_all_of_the_repository_is_well():
    assert lint_references(ROOT / "reference_data") == []


def test_expected_failures_are_looked_at_with_the_references(tmp_path: Path):
    write_references(tmp_path)
    path = tmp_path / PLACE[0] / reference_file.EXPECTED
    path.write_text("colour\n")
    (line,) = lint_references(tmp_path)
    assert line.startswith(f"{path}: row 1: is not the header")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"spread": math.log(11)}, "launches differ by a factor of 11; calibrate again"),
        ({"spread": math.log(11), "launches": 10}, "launches differ by a factor of 11"),
        ({"spread": math.log(11), "launches": 9}, ""),
        ({"spread": math.log(10)}, ""),
        ({"spread": 0.0}, "spread: 0 of 20 launches: none repeats to the last digit; correct it"),
        ({"spread": 0.0, "launches": 1}, ""),
        ({"spread": 0.0, "exact": True}, ""),
        ({"unit": "MB/s", "center": 1.0}, "unit: mpicost measures times; write s"),
        ({"center": 1e-9}, ""),
        ({"center": 0.99e-9}, "is not within"),
    ],
)
def test_numbers_that_no_machine_has_are_found(changes, said: str):
    known = replace(Reference(sorted(CASES)[0], 1e-6, 0.1, 20), **changes)
    found = "; ".join(text for _, text in reference_lint.find_implausible({known.case: known}))
    assert bool(found) == bool(said) and said in found


HEAD = "# from where\n" + "\t".join(SPREAD_COLUMNS) + "\n"
ROW = "evict\t8\t{}\t{}\t5\t40\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        *(
            (text, "has not the columns cache, ")
            for text in ("", HEAD, HEAD.replace("degrees", "weight") + ROW)
        ),
        *(
            (HEAD + ROW.format(0.1, 1) + ROW.format(*each), "row 4: spread or degrees out of range")
            for each in ((0, 9), (1, 9), (0.1, 0.9), (0.1, 1000), ("nan", 9))
        ),
        (HEAD + ROW.format("wide", 9), "row 3: could not convert"),
    ],
)
def test_a_table_of_spreads_between_sessions_with_a_fault_is_found(tmp_path: Path, text: str, fault: str):
    path = tmp_path / "spreads.tsv"
    path.write_text(text)
    (found,) = reference_file.lint_session_priors(path)
    assert found.startswith(f"{path}: {fault}")
    (found,) = reference_file.lint_session_priors(tmp_path / "none.tsv")
    assert "cannot be read" in found
