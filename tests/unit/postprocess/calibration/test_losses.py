"""Launches that do not count for a reference: each is told with its reason, and none of them is judged."""

from dataclasses import replace
from pathlib import Path

from postprocess.calibration.losses import (
    Loss,
    LostLaunch,
    describe_losses,
    family_of,
    list_lost,
    restrict_to_counted,
)
from postprocess.model.launch import FinishedLaunch, fail_launch
from postprocess.model.verdict import Verdict
from tests.support.factories.launch import CASES, finished, finished_with_wrong_data
from tests.support.faults import Declared, plants

MOVING = (5e-8, 2.5e-7)  #: time from core to core before and after a case


def numbered(run: FinishedLaunch, number: int) -> FinishedLaunch:
    """The same as another launch of its session."""
    return replace(run, launch=replace(run.launch, number=number))


def three(tmp_path: Path) -> list[FinishedLaunch]:
    """A launch that counts, one that crashed, and one whose ranks were moved."""
    folders = [tmp_path / name for name in ("well", "crashed", "moved")]
    for folder in folders:
        folder.mkdir()
    crashed = finished(folders[1], outcome=fail_launch(Verdict.CRASHED, "signal 11"))
    some = [finished(folders[0]), crashed, finished(folders[2], core_latency=MOVING)]
    return [numbered(run, number) for number, run in enumerate(some, 1)]


@plants("environment", "a launch that crashes, and one whose ranks are moved, of three", "a calibration", "", 0,
        "local:cpu, mpich-5_0_2, mpicost: 1 of 3 launches does not count: crashed (signal 11)",
        )  # fmt: skip
def test_each_lost_launch_has_its_reason(tmp_path: Path, declared: Declared) -> None:
    launches = three(tmp_path)
    lost = list_lost("s1", launches)
    assert [launch.whole for launch in lost[:1]] == [True]
    lines = list(describe_losses(lost, launches))
    declared.check((), 0, lines[:1])
    assert "their ranks were moved to other cores" in lines[1]


def test_launches_that_some_cases_lose_are_counted_by_case(tmp_path: Path) -> None:
    """Each of four launches loses some case, but no case loses them all."""
    launches = [numbered(finished(tmp_path), number) for number in range(1, 5)]
    some = [
        LostLaunch("s1", run.launch.name, family_of(run.launch), Loss("moved"), frozenset({CASES[0]}), False)
        for run in launches
    ]
    other = [replace(some[3], cases=frozenset(CASES[1:2]))]
    (line,) = describe_losses([*some[:3], *other], launches)
    assert line.endswith(
        f"mpicost: 1 to 3 of 4 launches (median 3) do not count for 2 of {len(CASES)} cases: moved"
    )


def test_of_a_launch_with_wrong_data_nothing_counts(tmp_path: Path) -> None:
    (lost,) = list_lost("s1", [finished_with_wrong_data(tmp_path)])
    assert (lost.loss.kind, lost.whole, lost.cases) == (str(Verdict.INCORRECT), True, {*CASES})


def test_all_that_counts_loses_nothing(tmp_path: Path) -> None:
    assert list_lost("s1", [finished(tmp_path)]) == []


def test_what_counts_is_judged_and_what_never_counts_keeps_its_fault(tmp_path: Path) -> None:
    launches = three(tmp_path)[:2]
    kept = restrict_to_counted({"s1": launches}, list_lost("s1", launches))
    assert [run.launch.cases for run in kept] == [CASES, ()]
    alone = launches[1:]
    (only,) = restrict_to_counted({"s1": alone}, list_lost("s1", alone))
    assert only.launch.cases == CASES
