"""The references of a session: loaded and checked before anything runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from launch_samples import CASES, ORIGIN, PLACE, case, write_references

from postprocess import provenance
from postprocess.reference_book import METHOD, Shelf, method_of, open_book
from postprocess.references import Reference, ReferenceError
from site_configs.common import PLATFORM_HASH

WHERE = (":".join(PLACE[:2]), PLACE[2])
RUN = {"suite_version": "0.1.0", "trials": 51, "dropped": 1, "cpu_model": "a processor"}


def test_a_book_has_the_references_of_the_places_that_have_a_file(tmp_path: Path):
    write_references(tmp_path)
    book = open_book([tmp_path], [WHERE, WHERE, ("local:cpu", "openmpi-5_0_11")])
    assert list(book.shelves) == [WHERE]
    assert book.reference(CASES[0]).center == 1e-6
    for other in (
        case(size=16),
        case(environment="openmpi-5_0_11"),
        case(partition="gpu"),
        case(system="other"),
    ):
        assert book.reference(other) is None


def test_the_first_root_that_has_the_file_wins(tmp_path: Path):
    reviewed, provisional = tmp_path / "reviewed", tmp_path / "provisional"
    write_references(provisional, 2e-6)
    assert open_book([reviewed, provisional], [WHERE]).reference(CASES[0]).center == 2e-6
    path = write_references(reviewed, 1e-6)
    book = open_book([reviewed, provisional], [WHERE])
    assert book.reference(CASES[0]).center == 1e-6
    assert book.shelf(CASES[0]).path == path


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text(path.read_text().replace("\ts\t", "\tus\t", 1)),
        lambda path: path.write_text(path.read_text() + path.read_text().split("\n")[-2] + "\n"),
        lambda path: path.write_text("colour\n"),
        lambda path: path.write_text(""),
        lambda path: provenance.beside(path).unlink(),
        lambda path: provenance.beside(path).write_text("{"),
        lambda path: provenance.beside(path).write_text(json.dumps(ORIGIN | {"method": "mine"})),
        lambda path: provenance.beside(path).write_text(json.dumps(ORIGIN | {"method": None})),
    ],
)
def test_a_file_with_a_fault_stops_the_session_in_one_line(tmp_path: Path, damage):
    path = write_references(tmp_path)
    damage(path)
    with pytest.raises(ReferenceError) as refused:
        open_book([tmp_path], [WHERE])
    assert str(path.with_suffix("")) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_fault_in_the_first_root_does_not_make_the_second_count(tmp_path: Path):
    reviewed, provisional = tmp_path / "reviewed", tmp_path / "provisional"
    write_references(provisional)
    write_references(reviewed).write_text("")
    with pytest.raises(ReferenceError):
        open_book([reviewed, provisional], [WHERE])


def shelf(**origin: Any) -> Shelf:
    return Shelf(Path("mpich.tsv"), {}, ORIGIN | origin)


def test_the_same_method_does_not_differ():
    assert shelf(method=method_of(RUN, exact=False)).difference(RUN, exact=False) == ""
    assert set(method_of(RUN, exact=False)) == set(METHOD)


@pytest.mark.parametrize(
    ("key", "value"),
    [("suite_version", "0.2.0"), ("trials", 11), ("dropped", 0), ("cpu_model", "another")],
)
def test_another_method_is_named_with_both_values(key: str, value: Any):
    found = shelf(method=method_of(RUN, exact=False)).difference(RUN | {key: value}, exact=False)
    assert found == (f"{key} is {value!r}, and {RUN[key]!r} in mpich.tsv; calibrate again")
    without = {name: fact for name, fact in RUN.items() if name != key}
    assert (
        shelf(method=method_of(RUN, exact=False))
        .difference(without, exact=False)
        .startswith(f"{key} is None")
    )


def test_sampling_that_may_stop_early_is_another_method():
    assert "relative_error" in shelf(method=method_of(RUN, exact=False)).difference(
        RUN | {"relative_error": 0.1}, exact=False
    )


def test_references_that_tell_no_method_compare_with_nothing():
    assert "does not tell the trials" in shelf().difference(RUN, exact=False)
    assert "suite_version" in shelf().difference(RUN | {"suite_version": "0.2.0"}, exact=False)


@pytest.mark.parametrize("key", [key for key in METHOD if key != "suite_version"])
def test_every_part_of_the_method_must_be_told(key: str):
    partly = {name: value for name, value in method_of(RUN, exact=False).items() if name != key}
    assert f"does not tell the {key}" in shelf(method=partly).difference(RUN, exact=False)


def simulated(method: dict[str, Any]) -> Shelf:
    return replace(shelf(method=method), references={1: Reference(1, 1.0, 0.0, 2, exact=True)})


def test_simulated_time_is_the_same_on_every_processor():
    """All else still counts."""
    known = simulated(method_of(RUN, exact=True))
    assert known.difference(RUN | {"cpu_model": "another"}, exact=True) == ""
    assert "trials" in known.difference(RUN | {"trials": 11}, exact=True)


def test_simulated_time_is_of_one_simulator_and_one_platform():
    environment = {PLATFORM_HASH: "0123456789abcdef"}
    run = RUN | {"mpi_library": "SMPI 3.32", "environment": environment}
    known = simulated(method_of(run, exact=True))
    assert known.difference(run, exact=True) == ""
    assert "mpi_library is" in known.difference(run | {"mpi_library": "SMPI 3.33"}, exact=True)
    other = run | {"environment": {PLATFORM_HASH: "another"}}
    assert known.difference(other, exact=True).startswith("platform is 'another', and '0123")


@pytest.mark.parametrize("exact", [False, True])
def test_simulated_and_measured_time_compare_with_each_other_never(exact: bool):
    method = method_of(RUN, exact) | method_of(RUN, not exact)
    known = shelf(method=method) if exact else simulated(method)
    assert known.difference(RUN, exact=not exact) == ""
    assert known.difference(RUN, exact).startswith("time is ")
