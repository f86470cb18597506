"""A launch that visits its cases several times, each time for a share of their trials."""

from pathlib import Path

import pytest

from postprocess.parsers.mpicost import read_launch
from tests.support.mpicost import FAMILIES, Record, Records, program

CASES = ("--routine", "bcast:8:80:800,rightshift:8:80:800,tournament:8,barrier")
WARM = ("--cache", "warm", "--seed", "5")


def order(records: Records) -> list[tuple[str, int]]:
    return [(case["routine"], case["bytes"]) for case in records.cases]


def measured(file: Path, *options: str, family: str = "mpich", processes: int = 3) -> Records:
    records = program(family).measure(processes, file, *CASES, *options)
    read_launch(file)  # which holds pairs and statistics against the trials
    return records


def visits(records: Records) -> list[list[int]]:
    return [case["visits"] for case in records.cases]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_case_has_all_its_trials_in_shares(family: str, tmp_path: Path) -> None:
    records = measured(tmp_path / "a", *WARM, "--trials", "13", family=family)
    assert records.run["rounds"] == 5
    assert visits(records) == [[3, 3, 3, 2, 2]] * len(records.cases)
    assert all(len(case["t_max"]) == 13 for case in records.cases)


def test_each_round_has_an_order_of_its_own(tmp_path: Path) -> None:
    """Records come in the order of the last round; the order of the first is that of a launch with one."""
    orders = [
        order(measured(tmp_path / str(number), *WARM, "--trials", "6", "--rounds", str(number)))
        for number in (1, 2, 3)
    ]
    assert len({tuple(each) for each in orders}) == 3
    assert len({tuple(sorted(each)) for each in orders}) == 1


@pytest.mark.parametrize(
    ("options", "rounds"),
    [
        (("--trials", "2"), 1),
        (("--trials", "5"), 2),
        (("--trials", "30", "--relative-error", "0.9"), 1),
        (("--trials", "6", "--back-to-back", "1"), 1),
        (("--trials", "6", "--sync", "loop", "--loop-seconds", "0.0001"), 3),
        (("--trials", "6", "--sync", "barrier"), 3),
        (("--trials", "6", "--rounds", "1"), 1),
    ],
)
def test_as_many_rounds_as_there_can_be(options: tuple[str, ...], rounds: int, tmp_path: Path) -> None:
    """A visit has two trials, and where they must follow each other there is one visit."""
    records = measured(tmp_path / "a", *WARM, *options)
    assert records.run["rounds"] == rounds
    assert {len(each) for each in visits(records)} == {rounds}
    if "loop" in options:
        assert all(case["calls"] >= 1 for case in records.cases)


def test_a_window_that_was_missed_is_marked_in_any_round(tmp_path: Path) -> None:
    file = tmp_path / "a"
    options = (*WARM, "--routine", "bcast:8,barrier", "--sync", "window", "--trials", "40")
    ended = program("mpich").run(2, *options, "--output", str(file))
    assert ended.status in (0, 4)
    if ended.status == 0:
        assert all(len(case.late) == 40 for case in read_launch(file).cases)


def test_room_for_the_trials_of_all_cases_is_asked_for_first(tmp_path: Path) -> None:
    few = ("--routine", "rightshift:8:80:800", *WARM, "--trials")

    def peak(trials: int) -> int:
        end: Record = program("mpich").measure(1, tmp_path / "a", *few, str(trials)).end
        return end["memory_bytes"]

    assert peak(400) - peak(200) > 200 * 3 * 33
    ended = program("mpich").run(1, *few, "1000000", "--memory-limit", "100000000")
    assert ended.status == 2
    assert "trials and list of cases do not fit" in ended.complaints[0]
