"""Rows of an acceptance whose ranks lay on other cores than those of the offer."""

import math
from collections.abc import Sequence

import pytest

from postprocess.extensions.procurement.commitments import Commitment
from postprocess.extensions.procurement.judge import JudgedRow, find_next_look, judge_row
from postprocess.extensions.procurement.offer import MeasuredRow, RowKey
from postprocess.extensions.procurement.protocol import describe_launches, describe_row_verdict
from postprocess.extensions.procurement.rules.rules import Rules, lint_text
from tests.support.factories.offer import BCAST, RULES_TEXT

KEY = RowKey("broadcast", 8, "mpich-5_0_2", "baseline")
NEAR, FAR, SAME, NEARER = 52e-9, 240e-9, 60e-9, 26e-9
WAVE = (-0.01, 0.01, -0.005, 0.005, 0.0)
GOOD, SLOW, LIMIT = 0.0, math.log(1.2), math.log(1.05)
Launches = list[tuple[float, float | None]]  #: ln slowdown against what is committed, cores


def rules(statistic: str = "median") -> Rules:
    """Looks at 5, 10 and 20 launches; a good row fails with 5% at most."""
    text = RULES_TEXT.replace("limit =", f'statistic = "{statistic}"\nlimit =')
    found, faults = lint_text(text)
    assert found and not faults
    return found


def launches(count: int, slower: float, cores: float | None) -> Launches:
    return [(slower + WAVE[number % 5], cores) for number in range(count)]


def row(own: Rules, told: Launches) -> MeasuredRow:
    values = tuple(1e-6 * math.exp(log) for log, _ in told)
    cores = tuple(each for _, each in told)
    return MeasuredRow(KEY, own.case[0], BCAST, "mpich", "s", values, False, cores)


def judge(offered: Sequence[float | None], told: Launches, statistic: str = "median") -> JudgedRow:
    own = rules(statistic)
    offer = row(own, [(GOOD, value) for value in offered])
    return judge_row(own, offer, Commitment(KEY.key, 1e-6), [row(own, told)])


TEN = [NEAR] * 10
ALIKE, ELSEWHERE = launches(5, GOOD, SAME), launches(5, GOOD, FAR)
SLOW_FAR = launches(2, 3.0, FAR)
HALF = launches(5, LIMIT - 0.0127, SAME)  # met with all of the risk, undecided with half of it
UNSURE = [(LIMIT + (-1) ** n, SAME) for n in range(19)]
APART = "undecided ({} of {} launches on cores farther apart than any of the offer)"


@pytest.mark.parametrize(
    ("offered", "told", "verdict", "apart"),
    [
        pytest.param(TEN, ALIKE, "met", 0, id="as offered"),
        pytest.param(TEN, SLOW_FAR + ALIKE, "met", 2, id="some far, as chance has it"),
        pytest.param(TEN, HALF, "met", 0, id="all of the risk"),
        pytest.param(TEN, HALF + SLOW_FAR, "undecided (5 launches more)", 2, id="half of the risk"),
        pytest.param(TEN, launches(5, SLOW, SAME) + SLOW_FAR, "missed", 2, id="slow as offered"),
        pytest.param(TEN, launches(5, 3.0, FAR) + ALIKE, APART.format(5, 10), 5, id="too many far for chance"),
        pytest.param(TEN, launches(5, 3.0, FAR), APART.format(5, 5), 5, id="none as offered"),
        pytest.param(TEN, ELSEWHERE, "met", 0, id="all far, and within the commitment"),
        pytest.param(TEN, launches(5, SLOW, SAME) + launches(9, SLOW, FAR), "missed", 9, id="slow anywhere"),
        pytest.param([*TEN, FAR], launches(5, SLOW, FAR), "missed", 0, id="as far as once offered"),
        pytest.param([*TEN, None], launches(5, SLOW, FAR), "missed", 0, id="offer does not record it"),
        pytest.param([], launches(5, SLOW, FAR), "missed", 0, id="nothing tells"),
        pytest.param(TEN, launches(5, SLOW, None), "missed", 0, id="delivery does not record it"),
        pytest.param(TEN, launches(5, GOOD, NEARER), "met", 0, id="nearer counts"),
        pytest.param([NEAR] * 3, UNSURE + launches(21, 3.0, FAR), APART.format(21, 40), 21, id="enough made"),
    ],
)
def test_launches_farther_apart_than_any_of_the_offer_decide_nothing(offered, told, verdict, apart) -> None:
    found = judge(offered, told)
    assert (describe_row_verdict(found, 20), found.apart) == (verdict, apart)
    assert (found.launches, found.made) == (len(told) - apart, len(told))


def test_the_worst_launch_counts_wherever_it_lay() -> None:
    assert describe_row_verdict(judge(TEN, ALIKE + SLOW_FAR, "worst"), 20) == "missed"


def test_launches_that_do_not_count_are_made_up_for() -> None:
    own, found = rules(), judge(TEN, HALF + SLOW_FAR)
    assert (find_next_look(own, found), describe_launches(found)) == (12, "5 (and 2 farther apart)")
    many = judge(TEN, HALF + launches(32, 3.0, FAR))
    assert find_next_look(own, many) == 40  # twice the most launches, and no more
    assert find_next_look(own, judge(TEN, HALF + launches(35, 3.0, FAR))) is None
