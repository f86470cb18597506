"""What had references and is gone is seen by every session that would have measured it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.units import MEGABYTES
from postprocess.judging.missing_cases import (
    RequestedCases,
    find_unplanned_cases,
    find_unplanned_environments,
    is_whole,
)
from postprocess.model.plan import PlannedLaunch, SkippedCase
from postprocess.model.reference import Reference
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.references import reference_file
from postprocess.references.catalog import load_catalog
from tests.support.factories.launch import PLACE, case, origin_of, planned, write_references
from tests.support.faults import Declared, plants

EVERYTHING = RequestedCases(Selection(Path()))
UNREVIEWED = Path("unreviewed")


def asked(families: list[str] | None = None, environments: Sequence[str] = (), **choice) -> RequestedCases:
    return RequestedCases(Selection(Path(), environments=environments, choice=choice), families)


@plants("builds", "an environment that is gone, with reviewed references",
        "MPIs of the machine", "incomplete", 1, "mpich-5_0_2")  # fmt: skip
def test_a_case_without_its_environment_is_incomplete(tmp_path: Path, declared: Declared):
    write_references(tmp_path)
    here = planned()
    gone = find_unplanned_environments([tmp_path], [replace(here, environment="other")], UNREVIEWED, EVERYTHING)
    assert {result.case for result in gone} == set(here.cases)
    status = compute_exit_status(gone, strict=False)
    declared.check((r.verdict for r in gone), status, (r.reason for r in gone))


def test_what_is_gone_keeps_its_unit_and_is_measured_again_by_its_program(tmp_path: Path):
    rate = Reference(case(program="osu"), 100.0, 0.1, 20, MEGABYTES)
    reference_file.write_references(
        reference_file.locate_references(tmp_path, *PLACE), [rate], origin_of("osu")
    )
    (gone,) = find_unplanned_environments([tmp_path], [planned(environment="other")], UNREVIEWED, EVERYTHING)
    assert (gone.case, gone.reference, gone.unit) == (rate.case, 100.0, MEGABYTES)
    assert gone.rerun == f"./plumbline run --environment {PLACE[2]} --program osu"


def test_nothing_is_gone_where_every_environment_is_planned(tmp_path: Path):
    write_references(tmp_path)
    assert find_unplanned_environments([tmp_path], [planned()], UNREVIEWED, EVERYTHING) == []
    assert not find_unplanned_environments([tmp_path / "none"], [planned()], UNREVIEWED, EVERYTHING)


def test_what_only_its_name_measures_is_not_missed_by_a_night_that_does_not_name_it():
    composed = Reference(case(routine="bcast_as_sends"), 1.0, 0.1, 20)
    known = {composed.case: composed}
    assert EVERYTHING.among(known) == []
    assert asked(sizes=[composed.case.bytes]).among(known) == []
    assert asked(routines=["bcast_as_sends"]).among(known) == [composed]


@pytest.mark.parametrize("routine", ["bcast.persistent", "iscatterv", "get_acc_latency"])
def test_what_a_week_measured_is_missed_only_where_it_was_named(routine: str):
    weekly = Reference(case(routine, 8, program="osu", cache="warm"), 1.0, 0.1, 5)
    known = {weekly.case: weekly}
    assert asked().among(known) == []
    assert asked(routines=[routine]).among(known) == [weekly]


def test_kernels_are_missed_where_their_program_or_a_kernel_was_named():
    kernel = Reference(case("sor_A", 8_000_000, program="kernels", cache="warm"), 1.0, 0.1, 5)
    known = {kernel.case: kernel}
    assert EVERYTHING.among(known) == asked(programs=["mpicost"]).among(known) == []
    assert asked(programs=["kernels"]).among(known) == [kernel]
    assert asked(routines=["sor_A"]).among(known) == [kernel]


@pytest.mark.parametrize("name", ["programs", "routines", "sizes", "processes", "cache", "sync"])
def test_a_choice_makes_a_night_partial(name: str):
    assert is_whole(Selection(Path()))
    assert is_whole(Selection(Path(), choice={"trials": 11, "iterations": 50}))
    assert not is_whole(Selection(Path(), choice={name: ["x"]}))
    assert not is_whole(Selection(Path(), environments=["mpich"]))


@plants("use", "a case with a reviewed reference that nothing measures any more",
        "tables of routines", "incomplete", 1, "is not measured any more")  # fmt: skip
def test_a_reviewed_case_that_is_not_planned_any_more_is_incomplete(tmp_path, declared):
    write_references(tmp_path / "reviewed")
    launch = planned()
    catalog = load_catalog([tmp_path / "reviewed"], [(launch.partition, launch.environment)])
    fewer = replace(launch, cases=launch.cases[1:])
    (found,) = find_unplanned_cases(catalog, [fewer], tmp_path / "provisional", EVERYTHING)
    assert (found.case, found.verdict) == (launch.cases[0], Verdict.INCOMPLETE)
    skipped = replace(fewer, skips=(SkippedCase(launch.cases[0], "too large"),))
    assert find_unplanned_cases(catalog, [skipped], tmp_path / "provisional", EVERYTHING) == []
    assert find_unplanned_cases(catalog, [launch], tmp_path / "provisional", EVERYTHING) == []
    declared.check_case(found.verdict, found.reason)


def cut(launch: PlannedLaunch) -> PlannedLaunch:
    """The same launch without its first case."""
    return replace(launch, cases=launch.cases[1:])


def test_an_unreviewed_case_of_enough_launches_is_missed_too(tmp_path: Path):
    """Few launches are no promise, and what only a calibration of its own had, no night ever measured."""
    root = tmp_path / "unreviewed"
    path = write_references(root)
    launch = planned()
    catalog = load_catalog([root], [(launch.partition, launch.environment)])
    (found,) = find_unplanned_cases(catalog, [cut(launch)], root, EVERYTHING)
    assert (found.case, found.verdict) == (launch.cases[0], Verdict.INCOMPLETE)
    assert f"{path}: measure it again, or remove the row if it is given up" in found.reason
    warm = [replace(each, cache="warm") for each in launch.cases]
    assert find_unplanned_cases(catalog, [replace(launch, cases=tuple(warm))], root, EVERYTHING) == []
    other = replace(launch, cases=(case(program="osu"),))
    assert len(find_unplanned_cases(catalog, [other], root, EVERYTHING)) == len(launch.cases)
    (reference_set,) = catalog.sets.values()
    known = {of: replace(each, launches=9) for of, each in reference_set.references.items()}
    few = replace(catalog, sets={PLACE: replace(reference_set, references=known)})
    assert find_unplanned_cases(few, [cut(launch)], root, EVERYTHING) == []
    (told,) = reference_set.provenance["programs"]["mpicost"]["calibrations"]
    told["options"] = {"oversubscribe": True}
    assert find_unplanned_cases(catalog, [cut(launch)], root, EVERYTHING) == []


def test_a_whole_partition_that_left_the_site_is_missed(tmp_path: Path):
    reviewed, root = tmp_path / "reviewed", tmp_path / "unreviewed"
    path = write_references(reviewed)
    elsewhere = [planned(partition="local:gpu")]
    gone = find_unplanned_environments([reviewed, root], elsewhere, root, EVERYTHING)
    assert {each.case for each in gone} == set(planned().cases)
    said = gone[0].reason
    assert f"of partition cpu nothing is measured now, and has references in {path}: " in said
    assert find_unplanned_environments([reviewed], elsewhere, root, asked(partitions=["gpu"])) == []
    assert len(
        find_unplanned_environments([reviewed], elsewhere, root, asked(partitions=["gpu", "cpu"]))
    ) == len(gone)
    assert find_unplanned_environments([reviewed], [planned(partition="another:gpu")], root, EVERYTHING) == []
    found = len(find_unplanned_environments([reviewed], elsewhere, reviewed, EVERYTHING))
    assert found == len(gone)
    few = [Reference(case(), 1e-6, 0.1, 9)]
    reference_file.write_references(reference_file.locate_references(root, *PLACE), few, origin_of())
    assert find_unplanned_environments([root], elsewhere, root, EVERYTHING) == []
    assert len(find_unplanned_environments([root], [planned(environment="other")], root, EVERYTHING)) == 1


@pytest.mark.parametrize(
    ("choice", "missed"),
    [
        *((choice, 4) for choice in ({}, {"trials": 11, "as_references": True, "programs": []})),
        *(({"programs": ["mpicost"]}, 4), ({"programs": ["osu"]}, 0)),
        ({"routines": ["bcast", "scatter"]}, 2),
        ({"sizes": [8, 123]}, 3),  # and the barrier, which has no size
        ({"sizes": [1_000_000]}, 2),
        *(({"partitions": ["cpu"]}, 4), ({"partitions": ["gpu"]}, 0)),
        *(({"processes": [2, 77]}, 4), ({"processes": [4]}, 0), ({"per_node": [1]}, 0)),
        *(({"peers": [1]}, 4), ({"peers": [3]}, 3)),
        *(({"cache": "evict"}, 4), ({"cache": "flush"}, 0), ({"cache": "warm"}, 0), ({"sync": "window"}, 0)),
        *(({"environments": [PLACE[2]]}, 4), ({"environments": ["other"]}, 0)),
        *(({"families": ["openmpi", "mpich"]}, 4), ({"families": ["openmpi"]}, 0)),
    ],
)
def test_a_partial_session_misses_what_it_would_have_measured(tmp_path: Path, choice, missed: int):
    write_references(tmp_path)
    of = asked(**choice)
    gone = find_unplanned_environments([tmp_path], [planned(environment="other")], UNREVIEWED, of)
    assert len(gone) == missed
    found = compute_exit_status([*gone, CaseResult(case("x"), Verdict.PASS)], False)
    assert found == (1 if missed else 0)
    if not {"environments", "families"} & {*choice}:
        catalog = load_catalog([tmp_path], [(planned().partition, PLACE[2])])
        here = [planned(cases=(case("x"),))]
        assert len(find_unplanned_cases(catalog, here, UNREVIEWED, of)) == missed


def test_an_empty_message_is_one_size_among_others_where_a_routine_has_several(tmp_path: Path):
    imb = [Reference(case(size=size, program="imb", sync="barrier"), 1e-6, 0.1, 20) for size in (0, 8)]
    reference_file.write_references(reference_file.locate_references(tmp_path, *PLACE), imb, origin_of("imb"))
    gone = find_unplanned_environments([tmp_path], [planned(environment="other")], UNREVIEWED, asked(sizes=[8]))
    assert [each.case.bytes for each in gone] == [8]
    gone = find_unplanned_environments([tmp_path], [planned(environment="other")], UNREVIEWED, asked(peers=[1]))
    assert gone == []  # of IMB and OSU what has no partner is left out then


def test_controls_have_no_size_that_is_chosen(tmp_path: Path):
    known = [Reference(case("control_compute", 8), 1e-6, 0.1, 20)]
    reference_file.write_references(reference_file.locate_references(tmp_path, *PLACE), known, origin_of())
    here = [planned(environment="other")]
    assert len(find_unplanned_environments([tmp_path], here, UNREVIEWED, asked(sizes=[1000]))) == 1


def test_a_damaged_file_of_what_was_not_asked_for_disturbs_nobody(tmp_path: Path):
    write_references(tmp_path).write_text("x")
    here = [planned(environment="other")]
    found = find_unplanned_environments([tmp_path], here, UNREVIEWED, asked(environments=["other"]))
    assert found == []
    with pytest.raises(reference_file.ReferenceFileError):
        find_unplanned_environments([tmp_path], here, UNREVIEWED, EVERYTHING)
