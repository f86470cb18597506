"""The ledger: every launch of a calibration that ended well is in it, whatever became of its session."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.calibration import ledger
from tests.support.factories.launch import (
    CASES,
    finished,
    finished_with_wrong_data,
    headline,
    leave,
    planned,
    steady,
)
from tests.support.factories.ledger import METHOD, launch
from tests.support.faults import Declared, plants

SHELL = {"UCX_TLS": "tcp"}


def interrupted(work: Path, name: str = "20261101T010000Z-1", **marker: Any) -> Path:
    """A calibration of three launches that was ended in the second; its marker, where that is told."""
    directory = work / "sessions" / name
    finished(directory, number=1)
    finished(directory, number=2)
    leave(directory, planned(number=2), code=None)
    leave(directory, planned(number=3), code=None)
    by_hand = {"mpich-5_0_2": {"A": "1"}, "other": {"B": "2"}}
    ledger.open_calibration(directory, by_hand, True, False, SHELL)
    (directory / "raw" / f"{planned(number=2).name}.exit").unlink(missing_ok=True)
    if marker:
        told = {"set_env": {}, "oversubscribe": False, "afresh": False, "shell": {}, "transports": {}} | marker
        (directory / ledger.OPENED).write_text(json.dumps(told))
    return directory


def test_what_is_kept_is_read_back(tmp_path: Path):
    some = [launch(1.5, 2), launch(2.5, 1, by_hand={"oversubscribe": True})]
    ledger.append_launches(tmp_path, "a", some[:1])
    ledger.append_launches(tmp_path, "b", some[1:])
    assert ledger.read_ledger(tmp_path) == some[::-1]


def test_an_interrupted_calibration_loses_no_launch_that_ended(tmp_path: Path):
    directory = interrupted(tmp_path)
    (line,) = ledger.recover_interrupted(tmp_path)
    assert line == f"calibration {directory.name} was interrupted: its 1 launch that ended count"
    (only,) = ledger.read_ledger(tmp_path)
    done = finished(tmp_path / "same", number=1)
    assert only.values == {case.key: steady(done, case) for case in CASES}
    assert only.headlines == {case.key: headline(done, case) for case in CASES}
    assert only.by_hand == {"oversubscribe": True, "set_env": {"A": "1"}, "shell": SHELL}
    assert only.hosts and only.session == directory.name
    assert ledger.recover_interrupted(tmp_path) == [] and ledger.read_ledger(tmp_path) == [only]


def test_what_begins_afresh_forgets_earlier_launches_of_its_cases_alone(tmp_path: Path):
    """Those that it meant to measure, whether or not it did."""
    for day, cases, afresh in ((1, CASES, []), (2, CASES[:1], CASES[:2]), (3, CASES[2:3], [])):
        near = {case.key: 5e-8 for case in cases}
        one = launch(float(day), day, cases=cases, core_latencies=near)
        ledger.append_launches(tmp_path, one.session, [one], afresh)
    assert all(each.core_latencies.keys() == each.values.keys() for each in ledger.read_ledger(tmp_path))
    found = [pair for each in ledger.read_ledger(tmp_path) for pair in each.values.items()]
    first, _, third, last = (each.key for each in CASES)
    assert sorted(found) == sorted([(first, 2.0), (third, 1.0), (third, 3.0), (last, 1.0)])


def test_an_interrupted_calibration_had_begun_afresh_too(tmp_path: Path):
    one = launch(1.0, 1, "20261031T010000Z-1")
    ledger.append_launches(tmp_path, one.session, [one])
    directory = interrupted(tmp_path)
    ledger.open_calibration(directory, {}, False, True, {})
    ledger.recover_interrupted(tmp_path)
    assert {each.session for each in ledger.read_ledger(tmp_path)} == {directory.name}


def test_simulated_time_is_not_gathered(tmp_path: Path):
    """ReFrame asks it for a proof that no file keeps."""
    directory = tmp_path / "sessions" / "a"
    finished(directory, exact=True)
    ledger.open_calibration(directory, {}, False, False, {})
    assert ledger.recover_interrupted(tmp_path) == [] and ledger.read_ledger(tmp_path) == []


def test_simulated_time_knows_no_shell(tmp_path: Path):
    """No variable of an MPI changes it."""
    opened = ledger.CalibrationHeader("a", oversubscribe=True, shell=SHELL)
    (one,) = ledger.collect_launches(opened, tmp_path, [finished(tmp_path, exact=True)])
    assert one.by_hand == {"oversubscribe": True}


DAMAGED = [{"shell": shell} for shell in ({"UCX_TLS": 1}, "x", None)]
DAMAGED += [{"set_env": told} for told in ({"mpich-5_0_2": "x"}, {"mpich-5_0_2": {"A": 1}}, "x")]


@pytest.mark.parametrize("marker", DAMAGED, ids=str)
def test_a_damaged_marker_is_told_and_stops_nobody(tmp_path: Path, marker):
    directory = interrupted(tmp_path, **marker)
    (line,) = ledger.recover_interrupted(tmp_path)
    assert f"{directory / ledger.OPENED}: " in line and next(iter(marker)) in line and "remove it" in line
    assert ledger.recover_interrupted(tmp_path) == [] and ledger.read_ledger(tmp_path) == []


def test_a_session_that_was_no_calibration_is_left_alone(tmp_path: Path):
    finished(tmp_path / "sessions" / "night")
    assert ledger.recover_interrupted(tmp_path) == [] and ledger.read_ledger(tmp_path) == []


@pytest.mark.parametrize("file", [ledger.OPENED, "plan"])
def test_a_damaged_session_is_told_and_stops_nobody(tmp_path: Path, file: str):
    directory = interrupted(tmp_path)
    path = directory / file if file == ledger.OPENED else next((directory / "plan").iterdir())
    path.write_text("{")
    (line,) = ledger.recover_interrupted(tmp_path)
    assert line.startswith("launches of an interrupted calibration are lost: ")
    assert str(path) in line
    assert ledger.recover_interrupted(tmp_path) == [] and ledger.read_ledger(tmp_path) == []


@plants("files", "a value of a launch that cannot be, in 17 ways",
        "the ledger of calibrations", "", 2, "is damaged; move it away")  # fmt: skip
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("values", {"x": -1}), ("units", {}), ("exact", 0), ("program", "osu"), ("machine", {})),
        *(("ended_utc", ended) for ended in ("", "yesterday")),
        *(("place", place) for place in (["a", "b", "c"], [])),
        *(("others", share) for share in ("much", -0.1)),
        ("circumstances", {"binding": "x"}),
        ("units", {case.key: "parsec" for case in CASES}),
        ("facts", []),
        ("facts", {"version": "1", "mpi_library": "m"}),
        ("facts", {"version": "1", "mpi_library": "m", "method": "x"}),
        ("facts", {"mpi_library": "m", "method": METHOD}),
    ],
)
def test_a_damaged_ledger_is_refused(tmp_path: Path, key: str, value, declared: Declared):
    damage_ledger(tmp_path, lambda data: data["launches"][0].update({key: value}))
    with declared.raises(UsageError, match=r"a\.json: "):
        ledger.read_ledger(tmp_path)


def damage_ledger(root: Path, damage: Callable[[dict], object]) -> None:
    path = ledger.append_launches(root, "a", [launch()])
    data = json.loads(path.read_text())
    damage(data)
    path.write_text(json.dumps(data))


@plants("files", "launches that are none", "the ledger of calibrations", "", 2,
        "is damaged; move it away")  # fmt: skip
@pytest.mark.parametrize(("key", "value"), [("launches", ["x"]), ("afresh", ["x"]), ("afresh", 1)])
def test_a_damaged_session_of_the_ledger_is_refused(tmp_path, key: str, value, declared):
    damage_ledger(tmp_path, lambda data: data.update({key: value}))
    with declared.raises(UsageError, match=r"a\.json: "):
        ledger.read_ledger(tmp_path)


@plants("files", "written by another version", "the ledger of calibrations", "", 2,
        "schema: is not 1")  # fmt: skip
def test_a_ledger_of_another_version_is_refused(tmp_path: Path, declared: Declared):
    damage_ledger(tmp_path, lambda data: data.update(schema=2))
    with declared.raises(UsageError):
        ledger.read_ledger(tmp_path)


def test_of_a_launch_with_wrong_data_nothing_becomes_a_reference(tmp_path: Path):
    bad = finished_with_wrong_data(tmp_path)
    assert bad.measurements
    assert ledger.collect_launches(ledger.CalibrationHeader("a"), tmp_path, [bad]) == []
