"""A history finds the version at which a case stepped, and tells what fails with a version or is not in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.features.compare import history_page
from postprocess.features.compare.data import (
    CaseValue,
    ComparedSide,
    ComparisonPass,
    LaunchValues,
    StoredComparison,
)
from postprocess.features.compare.history import JudgedHistory, draw_round, judge_history
from postprocess.features.compare.history_page import format_history_text
from postprocess.stats.comparison.paired_verdicts import PairedVerdict
from tests.unit.postprocess.features.compare.measure.test_run import HEADER

NAMES = ("mpich-4_3_1", "mpich-4_3_2", "mpich-5_0_0", "mpich-5_0_2")
VERSIONS = tuple(ComparedSide(n.replace("-", "@").replace("_", "."), n) for n in NAMES)
STEPPING, STEADY = (f"cpu/mpicost/{each}/warm-barrier/2x2/8" for each in ("bcast", "allreduce_sum"))
CONTROL = "cpu/mpicost/control_timer/warm-barrier/2x2/8"


def measure(factors: dict[str, tuple[float | None, ...]], rounds: int = 8, unit: str = "s") -> StoredComparison:
    """Cases by what each version multiplies their time with, None where it crashes; 1% noise."""
    random = np.random.default_rng(1)
    passes = []
    for number in range(rounds + 1):
        hour = float(np.exp(random.normal(0, 0.2)))  # cancels within a round
        for position, name in enumerate(draw_round(7, number, NAMES)):
            cases = {}
            for key, by_version in factors.items():
                factor = by_version[NAMES.index(name)]
                value = factor and 1e-6 * factor * hour * float(np.exp(random.normal(0, 0.01)))
                cases[key] = CaseValue(value, unit) if value else CaseValue(None, unit, "crashed", "signal 11")
            launch = LaunchValues("l", {"nodes": "n1"}, cases)
            passes.append(ComparisonPass(number, position, name, "s", 1.0, (launch,)))
    header = replace(HEADER, versions=VERSIONS, left_out={"mpich@3.4.3": "no wheel"})
    return StoredComparison(header, (rounds,), tuple(passes))


def find_steps(judged: JudgedHistory, key: str) -> list[tuple[int, PairedVerdict]]:
    (case,) = (each for each in judged.cases if each.case.key == key)
    return [(each.after, each.verdict) for each in case.found]


def test_the_release_at_which_a_case_stepped_is_found() -> None:
    judged = judge_history(measure({STEPPING: (1, 1, 1.3, 1.1), STEADY: (1, 1, 1, 1)}))
    assert find_steps(judged, STEPPING) == [(2, PairedVerdict.SLOWER), (3, PairedVerdict.FASTER)]
    assert find_steps(judged, STEADY) == []
    assert judged.count_steps(2) == {"same": 1, "slower": 1}
    assert (judged.rounds, judged.status) == (8, 1)


def test_a_bandwidth_that_fell_became_slower() -> None:
    judged = judge_history(measure({STEPPING: (1, 1, 0.7, 0.7)}, unit="MB/s"))
    assert find_steps(judged, STEPPING) == [(2, PairedVerdict.SLOWER)]


def test_a_version_that_crashes_fails_and_the_step_is_over_the_gap() -> None:
    judged = judge_history(measure({STEPPING: (1, None, 1.4, 1.4), STEADY: (1, 1, 1, 1)}))
    (case,) = (each for each in judged.cases if each.case.key == STEPPING)
    assert case.failures == [1] and case.versions[1].problem == "crashed: signal 11"
    assert [(each.before, each.after) for each in case.found] == [(0, 2)]
    assert judged.status == 1


def test_of_simulated_time_one_round_tells_and_of_measured_time_five_do_not() -> None:
    stored = measure({STEPPING: (1, 1, 1.3, 1.3)}, rounds=1)
    exact = [
        replace(
            each,
            launches=tuple(
                replace(one, cases={k: replace(said, exact=True) for k, said in one.cases.items()})
                for one in each.launches
            ),
        )
        for each in stored.passes
    ]
    judged = judge_history(replace(stored, passes=tuple(exact)))
    assert (2, PairedVerdict.SLOWER) in find_steps(judged, STEPPING)
    few = judge_history(measure({STEPPING: (1, 1, 1.3, 1.3)}, rounds=5))
    assert few.count_steps(2) == {"undecided": 1}


def test_a_control_that_steps_voids_the_history() -> None:
    judged = judge_history(measure({STEADY: (1, 1, 1, 1), CONTROL: (1, 1, 1.5, 1.5)}))
    assert judged.status == 3 and format_history_text(judged).strip().startswith("Void: control")
    steady = judge_history(measure({STEADY: (1, 1, 1, 1), CONTROL: (1, 1, 1, 1)}))
    assert steady.status == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_a_round_is_drawn_and_comes_again(seed: int) -> None:
    orders = [tuple(draw_round(seed, number, NAMES)) for number in range(20)]
    assert orders == [tuple(draw_round(seed, number, NAMES)) for number in range(20)]
    assert all(sorted(each) == sorted(NAMES) for each in orders) and len(set(orders)) > 5


def test_the_pages_show_each_case_over_versions(tmp_path: Path) -> None:
    judged = judge_history(measure({STEPPING: (1, None, 1.3, 1.1), STEADY: (1, 1, 1, 1)}))
    html = history_page.write_history(tmp_path, judged).read_text()
    markdown = (tmp_path / history_page.MARKDOWN).read_text()
    for text in (html, markdown, format_history_text(judged)):
        assert "mpich@5.0.0" in text and "▲" in text and "✗" in text
        assert "left out: mpich@3.4.3: no wheel" in text
    assert "<svg" in html and "slower, +" in html
    told = json.loads((tmp_path / history_page.JSON).read_text())
    assert told["exit_status"] == 1 and told["kind"] == "history" and len(told["cases"]) == 2
