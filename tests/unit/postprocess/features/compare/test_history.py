"""A history finds the version at which a case stepped, and tells what fails with a version or is not in it."""

from dataclasses import replace

import numpy as np
import pytest

from postprocess.features.compare import history_page
from postprocess.features.compare.data import CaseValue, ComparedSide, StoredComparison
from postprocess.features.compare.history import draw_round, judge_history
from postprocess.stats.paired_verdicts import PairedVerdict
from tests.support.factories.comparison import HEADER, failing, make_pass

NAMES = ("mpich-4_3_1", "mpich-4_3_2", "mpich-5_0_0", "mpich-5_0_2")
VERSIONS = tuple(ComparedSide(n.replace("-", "@").replace("_", "."), n) for n in NAMES)
STEPPING, STEADY = (f"cpu/mpicost/{each}/warm-barrier/2x2/8" for each in ("bcast", "allreduce_sum"))
CONTROL = "cpu/mpicost/control_timer/warm-barrier/2x2/8"


SLOWER, FASTER = PairedVerdict.SLOWER, PairedVerdict.FASTER


def measure(
    factors: dict[str, tuple[float | None, ...]], rounds: int = 8, unit: str = "s", exact: bool = False
) -> StoredComparison:
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
                crashed = failing("crashed", "signal 11")
                cases[key] = CaseValue(value, unit, exact=exact) if value else crashed
            passes.append(make_pass(number, position, name, cases))
    header = replace(HEADER, versions=VERSIONS, left_out={"mpich@3.4.3": "no wheel"})
    return StoredComparison(header, (rounds,), tuple(passes))


@pytest.mark.parametrize(
    ("factors", "more", "steps"),
    [
        ((1, 1, 1.3, 1.1), {}, [(2, SLOWER), (3, FASTER)]),
        ((1, 1, 1, 1), {}, []),
        ((1, 1, 0.7, 0.7), {"unit": "MB/s"}, [(2, SLOWER)]),  # a bandwidth that fell
        ((1, 1, 1.3, 1.3), {"rounds": 5}, []),  # too few
        ((1, 1, 1.3, 1.3), {"rounds": 1, "exact": True}, [(2, SLOWER)]),
    ],
)
def test_the_release_at_which_a_case_stepped_is_found(factors, more, steps) -> None:
    """Of simulated time one round tells."""
    judged = judge_history(measure({STEPPING: factors}, **more))
    (case,) = judged.cases
    assert [(step.after, step.verdict) for step in case.found] == steps
    assert judged.status == int(any(verdict == SLOWER for _, verdict in steps))


def test_the_cases_are_counted_at_each_version() -> None:
    judged = judge_history(measure({STEPPING: (1, 1, 1.3, 1.1), STEADY: (1, 1, 1, 1)}))
    assert judged.count_steps(2) == {"same": 1, "slower": 1} and judged.rounds == 8


def test_a_version_that_crashes_fails_and_the_step_is_over_the_gap() -> None:
    judged = judge_history(measure({STEPPING: (1, None, 1.4, 1.4), STEADY: (1, 1, 1, 1)}))
    (case,) = (history for history in judged.cases if history.case.key == STEPPING)
    assert case.failures == [1] and case.versions[1].problem == "crashed: signal 11"
    assert ([(step.before, step.after) for step in case.found], judged.status) == ([(0, 2)], 1)


def test_a_control_that_steps_voids_the_history() -> None:
    judged = judge_history(measure({STEADY: (1, 1, 1, 1), CONTROL: (1, 1, 1.5, 1.5)}))
    assert judged.status == 3 and history_page.format_history_text(judged).strip().startswith("Void: control")
    assert "1 of 1 changed, control_timer by +" in " ".join(history_page.format_history_facts(judged))
    steady = judge_history(measure({STEADY: (1, 1, 1, 1), CONTROL: (1, 1, 1, 1)}))
    assert steady.status == 0


def test_the_order_of_a_round_is_drawn_and_comes_again() -> None:
    orders = [tuple(draw_round(7, number, NAMES)) for number in range(20)]
    assert orders == [tuple(draw_round(7, number, NAMES)) for number in range(20)]
    assert all(sorted(order) == sorted(NAMES) for order in orders) and len(set(orders)) > 5
