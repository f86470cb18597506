"""An environment that had references and is gone is seen, and only in a whole night."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from launch_samples import PLACE, case, origin_of, planned, write_references

from postprocess import references
from postprocess.absent import absent, is_whole, unplanned
from postprocess.plan import Skip
from postprocess.reference_book import open_book
from postprocess.references import Reference
from postprocess.reframe_driver import Selection
from postprocess.units import MEGABYTES
from postprocess.verdicts import Verdict, exit_status


def test_a_case_without_its_environment_is_incomplete(tmp_path: Path):
    write_references(tmp_path)
    here = planned()
    gone = absent([tmp_path], [replace(here, environment="other")])
    assert {result.case for result in gone} == set(here.cases)
    assert {result.verdict for result in gone} == {Verdict.INCOMPLETE}
    assert all(here.environment in result.reason for result in gone)
    assert exit_status(gone, strict=False) == 1


def test_what_is_gone_keeps_its_unit_and_is_measured_again_by_its_program(tmp_path: Path):
    rate = Reference(case(program="osu"), 100.0, 0.1, 20, MEGABYTES)
    references.write(references.location(tmp_path, *PLACE), [rate], origin_of("osu"))
    (gone,) = absent([tmp_path], [planned(environment="other")])
    assert (gone.case, gone.reference, gone.unit) == (rate.case, 100.0, MEGABYTES)
    assert gone.rerun == f"./plumbline run --environment {PLACE[2]} --program osu"


def test_nothing_is_gone_where_every_environment_is_planned(tmp_path: Path):
    write_references(tmp_path)
    assert absent([tmp_path], [planned()]) == []
    assert absent([tmp_path / "none"], [planned()]) == []


@pytest.mark.parametrize("name", ["programs", "routines", "sizes", "processes", "cache", "sync"])
def test_a_choice_makes_a_night_partial(name: str):
    assert is_whole(Selection(Path()))
    assert is_whole(Selection(Path(), choice={"trials": 11, "iterations": 50}))
    assert not is_whole(Selection(Path(), choice={name: ["x"]}))
    assert not is_whole(Selection(Path(), environments=["mpich"]))


def test_a_reviewed_case_that_is_not_planned_any_more_is_incomplete(tmp_path: Path):
    write_references(tmp_path / "reviewed")
    launch = planned()
    book = open_book([tmp_path / "reviewed"], [(launch.partition, launch.environment)])
    fewer = replace(launch, cases=launch.cases[1:])
    (found,) = unplanned(book, [fewer], tmp_path / "provisional")
    assert (found.case, found.verdict) == (launch.cases[0], Verdict.INCOMPLETE)
    assert "is not measured any more" in found.reason
    skipped = replace(fewer, skips=(Skip(launch.cases[0], "too large"),))
    assert unplanned(book, [skipped], tmp_path / "provisional") == []
    assert unplanned(book, [launch], tmp_path / "provisional") == []
    assert unplanned(book, [fewer], tmp_path / "reviewed") == []
