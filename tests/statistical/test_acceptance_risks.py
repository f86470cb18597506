"""Acceptances of machines 0, 2, 5, 10% slower than committed: verdicts come as often as the protocol states."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from postprocess.extensions.procurement.commitments import Commitment, StoredCommitments
from postprocess.extensions.procurement.judge import judge_delivery
from postprocess.extensions.procurement.offer import MeasuredRow, RowKey
from postprocess.extensions.procurement.rules.rules import Rules, lint_text
from postprocess.stats.acceptance import RowVerdict, choose_acceptance_looks
from tests.statistical.noise import NOISES
from tests.statistical.simulated_acceptances import Delivery, count_verdicts
from tests.support.factories.offer import BCAST, RULES_TEXT

ACCEPTANCES, SPREAD, COMMITTED = 400, 0.04, 1e-6


@cache
def rules() -> Rules:
    found, faults = lint_text(RULES_TEXT)
    assert found and not faults
    return found


def row(values: np.ndarray, rate: bool) -> MeasuredRow:
    own = rules()
    key = RowKey("broadcast", 8, "mpich-5_0_2", "baseline")
    told = tuple((1e3 * 1e-6 / values if rate else values).tolist())
    unit = "MB/s" if rate else "s"
    return MeasuredRow(key, own.case[0], BCAST, "mpich", unit, told, False)


def accept(random: np.random.Generator, slower: float, rate: bool) -> RowVerdict:
    """An acceptance as the session makes it: look by look, with fresh launches."""
    own = rules()
    committed = 1e3 if rate else COMMITTED
    kept = StoredCommitments(1, "", (Commitment("broadcast/8/mpich-5_0_2/baseline", committed),))
    noise = random.normal(0.0, SPREAD, own.risk.most_launches)
    values = COMMITTED * (1 + slower) * np.exp(noise)
    offered = row(values[:5], rate)
    for look in choose_acceptance_looks(own.launches, own.risk.most_launches):
        found = judge_delivery(own, [offered], kept, [row(values[:look], rate)]).rows[0].found
        if found.verdict != RowVerdict.UNDECIDED:
            break
    return found.verdict


@pytest.mark.parametrize("rate", [False, True], ids=["time", "rate"])
@pytest.mark.parametrize("slower", [0.0, 0.02, 0.05, 0.10, 0.15])
def test_verdicts_come_as_often_as_the_characteristic_says(slower: float, rate: bool) -> None:
    random = np.random.default_rng([int(1000 * slower), rate])
    counts = Counter(accept(random, slower, rate) for _ in range(ACCEPTANCES // 4))
    own = rules()
    values = COMMITTED * np.exp(np.random.default_rng(1).normal(0.0, SPREAD, 400))
    offered = row(values, rate)
    kept = StoredCommitments(1, "", (Commitment(offered.key.key, 1e3 if rate else COMMITTED),))
    drawn = judge_delivery(own, [offered], kept, [offered]).characteristic
    place = min(range(len(drawn.slower)), key=lambda n: abs(drawn.slower[n] - slower))
    number = ACCEPTANCES // 4
    for verdict, chance in ((RowVerdict.MET, drawn.met[place]), (RowVerdict.MISSED, drawn.missed[place])):
        room = 4 * np.sqrt(number * max(chance * (1 - chance), 0.01))
        assert abs(counts[verdict] - number * chance) <= room


@pytest.mark.parametrize("noise", NOISES)
def test_the_risks_hold_under_noise_that_is_not_normal(noise: str) -> None:
    """At the tolerance both verdicts are wrong; a skewed tail is slower than its normal share, and may miss."""
    counts = count_verdicts(1, Delivery(0.05, noise=noise), 8)
    number = counts.total()
    room = 4 * np.sqrt(number * 0.05)
    assert counts[RowVerdict.MET] <= 0.05 * number + room, counts
    assert counts[RowVerdict.MISSED] <= 0.05 * number + room, counts
    slow = count_verdicts(2, Delivery(0.10, 0.02, noise), 2)
    assert slow[RowVerdict.MISSED] >= 0.95 * slow.total(), slow


def test_launches_that_share_a_day_break_what_is_stated() -> None:
    """Why a protocol says over which time its launches were made."""
    own, shared = (count_verdicts(3, Delivery(0.05, 0.02, day=day), 4) for day in (0.0, 0.02))
    assert shared[RowVerdict.MET] + shared[RowVerdict.MISSED] > 3 * (
        own[RowVerdict.MET] + own[RowVerdict.MISSED]
    )


def test_a_row_that_was_not_run_is_missed() -> None:
    values = COMMITTED * np.exp(np.random.default_rng(1).normal(0.0, SPREAD, 5))
    offered = row(values, rate=False)
    kept = StoredCommitments(1, "", (Commitment(offered.key.key, COMMITTED),))
    found = judge_delivery(rules(), [offered], kept, [])
    assert (found.rows[0].found.verdict, found.status) == (RowVerdict.NOT_RUN, 1)
