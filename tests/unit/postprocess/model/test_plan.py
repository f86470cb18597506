"""The plan of a session: written before anything runs, read back whole or refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.errors import UsageError
from postprocess.model.plan import list_planned_cases, locate_plan_file, read_plan, write_launch
from tests.support.factories.launch import CASES, case, planned
from tests.support.faults import Declared, plants


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path):
    launches = [planned(number=number, test=f"luecke_{number}") for number in (1, 2)]
    for launch in (*launches, launches[0]):  # the same launch planned twice is planned once
        write_launch(tmp_path, launch)
    assert read_plan(tmp_path) == launches
    assert launches[0].records(tmp_path).parent.is_dir()


def test_launches_that_differ_have_different_files(tmp_path: Path):
    other = (case(processes=4, per_node=4),)
    launches = [
        planned(),
        planned(number=2),
        planned(test="luecke_1"),
        planned(partition="local:gpu"),
        planned(environment="openmpi-5_0_11"),
        planned(cases=other),
    ]
    for path in (lambda x: locate_plan_file(tmp_path, x), lambda x: x.records(tmp_path)):
        assert len({path(launch) for launch in launches}) == len(launches)
    assert all("/" not in launch.name and ":" not in launch.name for launch in launches)


def test_a_launch_of_no_case_has_no_processes():
    assert (planned(cases=()).processes, planned(cases=()).per_node) == (0, 0)


@plants("files", "a key lost, unknown or of another type, or a case twice, in 10 ways",
        "the plan of a session", "", 2, "the plan is damaged; run the session again")  # fmt: skip
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: None,
        lambda data: [data],
        lambda data: data | {"colour": "red"},
        lambda data: {key: value for key, value in data.items() if key != "cases"},
        lambda data: {key: value for key, value in data.items() if key != "trials"},
        lambda data: data | {"cases": 7},
        lambda data: data | {"cases": [{}]},
        lambda data: data | {"cases": [data["cases"][0] | {"routine": "a/b"}]},
        lambda data: data | {"cases": [data["cases"][0] | {"bytes": -8}]},
        lambda data: data | {"cases": data["cases"] * 2},
    ],
)
def test_a_damaged_plan_is_refused_in_one_line(tmp_path: Path, damage, declared: Declared):
    write_launch(tmp_path, planned())
    path = locate_plan_file(tmp_path, planned())
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    with declared.raises(UsageError) as refused:
        read_plan(tmp_path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


@given(st.integers(min_value=0))
def test_a_plan_that_is_cut_off_is_refused(tmp_path_factory: pytest.TempPathFactory, length: int):
    session = tmp_path_factory.mktemp("session")
    write_launch(session, planned())
    path = locate_plan_file(session, planned())
    whole = path.read_bytes()
    path.write_bytes(whole[: length % (len(whole) - 1)])
    with pytest.raises(UsageError):
        read_plan(session)


def test_cases_of_several_launches_are_planned_once_and_in_order():
    launches = [planned(number=2), planned(cases=CASES[::-1]), planned(cases=())]
    assert list_planned_cases(launches) == sorted(CASES)
