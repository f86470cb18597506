"""What a calibration still has to launch, and that it ends."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.progress import Progress
from postprocess.calibration.ledger import drop_forgotten
from postprocess.calibration.schedule import (
    CalibrationProgress,
    LaunchTarget,
    PassResult,
    calibrate_all,
    plan_rounds,
)
from postprocess.model.case import ReferencePlace
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories.launch import CASES, PLACE, planned
from tests.support.factories.ledger import launch

OTHER = "openmpi-5_0_11"
PLAN = [planned(), planned(environment=OTHER, cases=tuple(replace(each, environment=OTHER) for each in CASES))]
SELECTION = Selection(Path("site.py"))


class Machine:
    """Runs launches; each family may fail so many times first."""

    def __init__(self, fails: dict[str, int] | None = None, exact: bool = False):
        self.ledger: list = []
        self.passes: list[tuple[tuple[str, ...], int]] = []
        self.fails = fails or {}
        self.facts: dict = {}
        self.exact = exact
        self.begun: dict[str, str] = {}

    def run(self, selection: Selection, afresh: bool) -> PassResult:
        names = tuple(selection.environments) or ("mpich-5_0_2", OTHER)
        self.passes.append((names, selection.launches))
        new = []
        session = f"s{len(self.passes):03d}"
        for each in (each for each in PLAN if each.environment in names):
            if afresh:
                self.begun |= {case.key: session for case in each.cases}
            for _ in range(selection.launches):
                if self.fails.get(each.environment, 0) > 0:
                    self.fails[each.environment] -= 1
                    continue
                place = ReferencePlace("local", "cpu", each.environment)
                more = {"place": place, "facts": self.facts, "exact": self.exact}
                new.append(launch(1.0, 1, session, each.cases, **more))
        self.ledger += new
        return PassResult(new)

    def calibrate(self, **demand) -> CalibrationProgress:
        progress = Progress()
        return calibrate_all(PLAN, SELECTION, LaunchTarget(**demand), self.read, self.run, progress)

    def read(self) -> list:
        return drop_forgotten(self.ledger, self.begun)

    def count(self, name: str) -> int:
        return sum(each.place.environment == name for each in self.ledger)


def test_all_that_is_missing_is_taken_in_one_pass():
    machine = Machine()
    assert not machine.calibrate().failed
    assert machine.passes == [(("mpich-5_0_2", OTHER), 20)]


def test_references_that_stayed_slow_are_no_success():
    """A slowdown was measured, and not taken."""
    machine = Machine()

    def run(selection: Selection, afresh: bool) -> PassResult:
        return replace(machine.run(selection, afresh), held={CASES[0]: 1.5})

    assert calibrate_all(PLAN, SELECTION, LaunchTarget(), machine.read, run, Progress()).failed


def test_wrong_data_is_not_made_good_by_a_later_pass():
    """A crash is: a launch that comes in its place is as good."""
    for verdict, in_vain in ((Verdict.INCORRECT, True), (Verdict.CRASHED, False)):
        machine = Machine({"mpich-5_0_2": 1})
        failed = [CaseResult(CASES[0], verdict, "in the first pass")]

        def run(selection: Selection, afresh: bool, machine=machine, failed=failed) -> PassResult:
            done = machine.run(selection, afresh)
            return replace(done, failed=failed if len(machine.passes) == 1 else ())

        found = calibrate_all(PLAN, SELECTION, LaunchTarget(), machine.read, run, Progress())
        assert (found.failed, len(machine.passes) > 1) == (in_vain, True)


def test_simulated_time_needs_one_launch():
    exact = [replace(each, exact=True) for each in PLAN]
    assert {each.launches for each in plan_rounds(exact, {}, LaunchTarget(), {})} == {1}


def test_the_same_command_on_several_days_takes_the_rest(capsys):
    machine = Machine()
    for day in range(1, 5):
        assert not machine.calibrate(launches=18, at_most=5).failed
        assert machine.count(OTHER) == min(5 * day, 18)
    assert "15 of 18 launches are there; taking 3" in " ".join(capsys.readouterr().out.split())


def test_one_launch_is_taken_even_where_all_are_there(capsys):
    machine = Machine()
    machine.calibrate(launches=3)
    assert not machine.calibrate(launches=3).failed
    assert machine.count(OTHER) == 4
    assert "enough; to check that they still hold, taking 1" in " ".join(capsys.readouterr().out.split())


def test_another_program_needs_all_launches_again():
    machine = Machine()
    machine.calibrate(launches=4)
    machine.facts = {"source_hash": "new"}
    assert not machine.calibrate(launches=4).failed
    assert machine.count(OTHER) == 4 + 4


def test_what_always_fails_ends_and_is_told(capsys):
    machine = Machine({OTHER: 10**6})
    assert machine.calibrate(launches=3).failed
    assert machine.count("mpich-5_0_2") == 3
    assert f"{OTHER}, mpicost: 0 of 3 launches count; the same\n  command again" in capsys.readouterr().out


def test_what_fails_is_tried_once_more_with_a_single_launch():
    machine = Machine({OTHER: 3})
    assert not machine.calibrate(launches=3).failed
    assert machine.passes[1:] == [((OTHER,), 1), ((OTHER,), 2)]
    machine = Machine({OTHER: 10**6})
    assert machine.calibrate(launches=3).failed
    assert machine.passes[1:] == [((OTHER,), 1)]


def test_simulated_time_of_several_sessions_comes_to_an_end():
    machine = Machine({OTHER: 1}, exact=True)
    assert not machine.calibrate(launches=3).failed
    assert machine.count(OTHER) == 3


def test_what_never_adds_up_ends():
    """Such as sessions that land on nodes of two kinds in turn."""
    machine = Machine({OTHER: 1})
    run = machine.run

    def elsewhere(selection: Selection, afresh: bool) -> PassResult:
        machine.facts = {"source_hash": str(len(machine.passes))}
        return run(selection, afresh)

    machine.run = elsewhere  # type: ignore[method-assign]
    found = machine.calibrate(launches=3)
    assert found.lacking and not found.failed  # whether what is there suffices, its references tell
    assert len(machine.passes) <= 4


def test_afresh_takes_all_again():
    machine = Machine()
    machine.calibrate(launches=3)
    assert not machine.calibrate(launches=3, afresh=True).failed
    assert machine.count(OTHER) == 6
    assert len(machine.read()) == 6


@pytest.mark.parametrize("fails", [1, 3])
def test_afresh_forgets_what_failed_in_its_first_pass_too(fails: int):
    machine = Machine()
    machine.calibrate(launches=3)
    machine.fails = {OTHER: fails}
    assert not machine.calibrate(launches=3, afresh=True).failed
    found = [each.session for each in machine.read() if each.place.environment == OTHER]
    assert found == (["s002", "s002", "s003"] if fails == 1 else ["s003", "s004", "s004"])


@pytest.mark.parametrize("per_node", [[1, 2], []])
def test_a_round_asks_for_nothing_that_its_part_of_the_plan_has_not(per_node: list[int]):
    chosen = replace(SELECTION, choice={"per_node": per_node} if per_node else {})
    (first, _) = plan_rounds(PLAN, {}, LaunchTarget(), {})
    found = first.of(chosen)
    assert found.environments == ["mpich-5_0_2"] and found.launches == 20
    assert found.choice["processes"] == [2]
    assert found.choice.get("per_node", []) == per_node[1:]


@given(st.integers(1, 30), st.none() | st.integers(1, 9), st.integers(0, 40), st.integers(0, 5))
def test_a_calibration_ends_with_what_was_asked_for(wanted, at_most, before, fails):
    machine = Machine({OTHER: fails})
    machine.ledger = [launch(1.0, 1, "s000", place=PLACE)] * before
    found = machine.calibrate(launches=wanted, at_most=at_most)
    limit = at_most or 10**9
    assert machine.count("mpich-5_0_2") == before + min(max(wanted - before, 1), limit)
    assert machine.count(OTHER) <= min(wanted, limit)
    if machine.count(OTHER) < min(wanted, limit):
        assert found.lacking or at_most
    assert len(machine.passes) <= wanted + 3
