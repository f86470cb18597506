"""Each row of a reference file keeps its own provenance, and lint finds a row that has none, or two."""

import json
from collections.abc import Callable
from datetime import datetime, timezone

import pytest

from postprocess.base.errors import UsageError
from postprocess.calibration.staleness import find_stale
from postprocess.calibration.update import update_references
from postprocess.model.conditions import conditions_of
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import load_catalog, read_provenance
from postprocess.references.reference_file import ReferenceFileError
from tests.support.damage import changed, look_up, places
from tests.support.factories import record as record_samples
from tests.support.factories.launch import CASES
from tests.support.factories.ledger import launch, launches_behind
from tests.support.faults import Declared, plants

KEYS = [case.key for case in CASES]


@pytest.fixture
def written(tmp_path):
    """Two cases calibrated on two days in November; then the others, with another library and compiler."""
    root = tmp_path / "references"
    update_references(root, [launch(1.0, 1, cases=CASES[:2]), launch(2.0, 2, cases=CASES[:2])])
    other = {"mpi_library": "MPICH Version: 5.1", "compiler": "gcc 13.1.0", "spec": "b"}
    (path,) = update_references(root, [launch(3.0, 9, cases=CASES[2:], facts=other)])
    return path


def save(path, known) -> list[str]:
    provenance.locate_provenance(path).write_bytes(provenance.encode_provenance(known))
    return reference_file.lint_reference_file(path)


def test_each_row_keeps_its_own_provenance(written):
    entry = read_provenance(written)["programs"]["mpicost"]
    first, last = (provenance.find_case_calibration(entry, key) for key in (KEYS[0], KEYS[-1]))
    assert (first["mpi_library"], first["compiler"]) == ("MPICH Version: 5.0.2", "gcc 12.2.0")
    assert (last["mpi_library"], last["compiler"]) == ("MPICH Version: 5.1", "gcc 13.1.0")
    assert (first["date_utc"][:10], last["date_utc"][:10]) == ("2026-11-02", "2026-11-09")
    assert provenance.find_calibration_date(first, KEYS[0])[:10] == "2026-11-01"  # of two, the first counts
    expected = ["20261101", "20261102"]
    assert [each["session"][:8] for each in launches_behind(entry, KEYS[1])] == expected
    assert provenance.list_values(first)[KEYS[0]] == [1.0, 2.0]
    assert reference_file.lint_reference_file(written) == []


def test_simulated_rows_that_stay_keep_theirs(tmp_path):
    (path,) = update_references(tmp_path, [launch(1e-6, 1, exact=True, circumstances={})])
    assert "series" not in read_provenance(path)["programs"]["mpicost"]["calibrations"][0]
    update_references(tmp_path, [launch(2e-6, 2, cases=CASES[:1], exact=True, circumstances={})])
    entry = read_provenance(path)["programs"]["mpicost"]
    days = [provenance.find_case_calibration(entry, key)["date_utc"][8:10] for key in KEYS]
    assert days == ["02"] + ["01"] * (len(CASES) - 1)
    assert reference_file.lint_reference_file(path) == []


def told_cores(key: str, *times: float | None) -> Callable[[dict], object]:
    """Tell a time from core to core of each launch behind a case."""
    return lambda each: each["series"][0].update(core_latencies={key: list(times)})


def first(change: Callable[[dict], object]) -> Callable[[list], object]:
    """Change the first calibration of two."""
    return lambda some: change(some[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda some: some[0]["series"][0]["headlines"].pop(KEYS[0]),
            f"{KEYS[0]} is in no calibration; calibrate ",
        ),
        (
            lambda some: some[1]["series"][0]["headlines"].update({KEYS[0]: [1.0]}),
            f"{KEYS[0]} is in 2 calibrations; ",
        ),
        (lambda some: [each.pop("series") for each in some], "two calibrations stand for all other cases"),
        (lambda some: some[1]["method"].update(trials=7), "made by different methods"),
        (first(lambda each: each.pop("date_utc")), "calibration 1: date_utc: is missing"),
        (first(lambda each: each.pop("mpi_library")), "calibration 1: mpi_library: is missing"),
        (first(lambda each: each["series"][0].pop("launches")), "series.launches: is missing"),
        (first(lambda each: each["series"][0]["launches"].pop()), "has 2 entries where 1 are due"),
        (first(lambda each: each["series"][0]["launches"][0].pop("session")), "session: is missing"),
        (first(lambda each: each["series"][0]["headlines"].update(x=[0, "1"])), "trial 2 is '1'"),
        (first(told_cores(KEYS[0], 1e100, None)), "number 1 is 1e+100, not 1e-10 to 0.001"),
        (first(told_cores(KEYS[0], 5e-8)), "has 1 entries where 2 are due"),
        (first(told_cores(KEYS[-1], 5e-8, 5e-8)), f"core_latencies: {KEYS[-1]} has no headlines"),
        (lambda some: some.clear(), "calibrations: is not a list of objects"),
        (lambda some: some.append(1), "calibrations: is not a list of objects"),
    ],
)
def test_lint_finds_calibrations_that_do_not_add_up(written, change, said: str):
    known = read_provenance(written)
    change(known["programs"]["mpicost"]["calibrations"])
    assert any(said in fault for fault in save(written, known))


def test_a_case_and_its_values_stand_in_one_line(written):
    lines = provenance.locate_provenance(written).read_text().splitlines()
    assert any(KEYS[0] in line and "[1.0, 2.0]" in line for line in lines)
    assert sum('"session": ' in line for line in lines) == 3  # and so does each launch
    found = json.loads(provenance.encode_provenance(read_provenance(written)))
    assert found == read_provenance(written)


@plants("references", "options beside the calibrations, where nothing reads them", "a provenance", "", 2,
        "programs: mpicost: options: stands beside calibrations")  # fmt: skip
def test_what_stands_a_storey_too_high_is_refused(written, declared: Declared):
    whole = read_provenance(written)
    whole["programs"]["mpicost"]["options"] = {"oversubscribe": True}
    provenance.locate_provenance(written).write_text(json.dumps(whole))
    with declared.raises(ReferenceFileError):
        load_catalog([written.parents[2]], [("local:cpu", written.stem)])


NESTED = {
    "in a list": lambda value: [value],
    "in an object": lambda value: {"x": value},
    "as text": str,
    "as nothing": lambda _: None,
}


@pytest.mark.parametrize("how", NESTED)
def test_wrong_nesting_anywhere_is_read_or_told_in_one_line_that_names_the_place(written, how: str):
    """Whoever uses the file afterwards finds what it needs: a session would end in a traceback."""
    whole, told, table = read_provenance(written), 0, written.read_bytes()
    # Of launches, values and cases one stands for all.
    ways = {tuple("#" if isinstance(e, int) or ":" in e else e for e in w): w for w in places(whole)}
    for way in ways.values():
        nested = changed(whole, way, NESTED[how](look_up(whole, way)))
        provenance.locate_provenance(written).write_text(json.dumps(nested))
        written.write_bytes(table)
        try:
            use_references(written)
        except UsageError as refused:
            key = next((each for each in reversed(way) if isinstance(each, str)), "JSON object")
            assert "\n" not in str(refused) and str(written.with_suffix("")) in str(refused), way
            told += key in str(refused)
    assert told >= 10


def use_references(path) -> None:
    """Do with them what a night, ``references age`` and a calibration do."""
    root, conditions = path.parents[2], conditions_of(record_samples.launch()[0], exact=False)
    (known,) = load_catalog([root], [("local:cpu", path.stem)]).sets.values()
    for case in known.references:
        assert isinstance(known.difference(conditions, case, {}, {}), str)
    now = datetime.now(timezone.utc)
    machine = {"host": "n1", "kernel": "6.1", "firmware": "1.0", "cpu_model": "a processor"}
    find_stale(path.name, known.references, known.provenance, {}, machine, 90, now)
    update_references(root, [launch(1.0, 12, cases=CASES[:1])])
