"""All pairs of nodes at acceptance: a bad cable is missed, too few nodes or launches are no pass."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.extensions.procurement.judge import JudgedLinks
from postprocess.extensions.procurement.links import find_links_verdict, judge_links, list_links_looks
from postprocess.extensions.procurement.offer import LaunchEvidence, OfferPass
from postprocess.extensions.procurement.rules.layouts import MachineFacts
from postprocess.extensions.procurement.rules.rules import Rules, lint_text
from postprocess.features.links.data import PairSweep
from postprocess.features.links.detect import DetectionLimits, PairTimes, SlowItem, SweepAnalysis
from postprocess.stats.acceptance import RowVerdict
from tests.support.factories.links import Tournament
from tests.support.factories.offer import RULES_TEXT, moment

EIGHT = tuple(f"n{number}" for number in range(8))
DONE = OfferPass(1, "", "s", "baseline", MachineFacts("cpu", 8, 1), moment(1), moment(2), ("./plumbline",))


def rules(text: str = "[links]\n") -> Rules:
    found, faults = lint_text(RULES_TEXT.replace("[category.baseline]", f"{text}[category.baseline]"))
    assert found and not faults
    return found


def judge_all(evidence: Sequence[LaunchEvidence], there: int, **asked: int) -> JudgedLinks:
    """Launches on a machine of so many nodes, by rules that ask for all of them, or for fewer."""
    own = rules()
    assert own.links
    return judge_links(own, replace(own.links, **asked), MachineFacts("cpu", there, 1), evidence)


def judge(folder: Path, slow: dict[str, float], launches: int, nodes: int = 8) -> JudgedLinks:
    """Launches on a machine on which the pairs of some nodes, or a pair ``n2-n5``, take longer."""

    def seconds(a: str, b: str, size: int) -> float:
        factors = (slow.get(a, 1.0), slow.get(b, 1.0), slow.get("-".join(sorted((a, b))), 1.0))
        return 1e-6 * (1 + size / 1000) * max(factors)

    evidence = []
    for number in range(1, launches + 1):
        session = folder / str(number)
        done = Tournament(seconds, EIGHT[:nodes], number=number).finished(session)
        evidence.append(LaunchEvidence(DONE, done.launch, session))
    return judge_all(evidence, nodes)


NEEDED = list_links_looks(rules(), 8, exact=False)[0]


@pytest.mark.parametrize(
    ("slow", "verdict", "named"),
    [
        ({}, RowVerdict.MET, ""),
        ({"n3": 1.5}, RowVerdict.MISSED, "node n3"),
        ({"n2-n5": 1.5}, RowVerdict.MISSED, "link n2-n5"),
        ({"n3": 1.05}, RowVerdict.MET, ""),  # within what the rules allow
    ],
)
def test_what_is_slow_is_missed_and_named(tmp_path, slow, verdict, named) -> None:
    found = judge(tmp_path, slow, NEEDED)
    assert found.verdict == verdict, found
    assert [text.partition(":")[0] for text in found.slow] == ([named] if named else [])
    assert "8 nodes, 28 pairs" in found.remarks[0]


def test_too_few_launches_are_undecided_and_too_few_nodes_not_run(tmp_path: Path) -> None:
    found = judge(tmp_path / "a", {"n3": 1.5}, NEEDED - 1)
    assert (found.verdict, found.launches_more) == (RowVerdict.UNDECIDED, 1)
    found = judge(tmp_path / "b", {}, 1, nodes=3)
    assert found.verdict == RowVerdict.NOT_RUN and "3 nodes" in found.remarks[0]
    assert judge_all([], 8).verdict == RowVerdict.NOT_RUN


@pytest.mark.parametrize(
    ("node", "pair", "suspects", "verdict"),
    [
        (0.1, 0.1, 0, RowVerdict.MET),
        (math.inf, 0.1, 0, RowVerdict.UNDECIDED),
        (0.1, math.inf, 0, RowVerdict.UNDECIDED),
        (0.1, 0.1, 1, RowVerdict.UNDECIDED),
    ],
)
def test_what_could_not_have_been_named_is_not_met(node, pair, suspects, verdict) -> None:
    """At 8 bytes one statistic could have named something; at a megabyte neither, however slow it were."""
    one = np.ones((NEEDED, 8, 8))
    small, large = PairTimes(8, "median", one), PairTimes(1_000_000, "median", one)
    limits = (
        DetectionLimits(small, 0.1, 0.1),
        DetectionLimits(replace(small, statistic="mean"), math.inf, math.inf),
        DetectionLimits(large, node, pair),
    )
    slow = (SlowItem((3,), large, 1.2, 1.1, 1.3, 7, 7, 0.5),) * suspects
    analysis = SweepAnalysis((), (), slow, limits, 72, exact=False)
    sweep = PairSweep("cpu", "mpich", EIGHT, (small, large), {}, exact=False)
    assert find_links_verdict(analysis, sweep, (NEEDED,)) == verdict


def test_a_part_of_the_nodes_is_not_the_machine(tmp_path: Path) -> None:
    launch = Tournament(lambda *_: 1e-6, EIGHT).finished(tmp_path / "1")
    evidence = [LaunchEvidence(DONE, launch.launch, tmp_path / "1")]
    found = judge_all(evidence, 9)
    assert found.verdict == RowVerdict.NOT_RUN and "8 of 9 nodes" in found.remarks[0]
    found = judge_all(evidence, 9, nodes=8)  # what is asked for is measured
    assert found.verdict == RowVerdict.UNDECIDED and found.launches == 1


@pytest.mark.parametrize(("key", "value"), [("nodes_per_switch", "-1"), ("nodes", '"many"')])
def test_faults_of_the_rules_are_told(key: str, value: str) -> None:
    text = RULES_TEXT.replace("[risk]", f"[links]\n{key} = {value}\n[risk]")
    assert [fault.key for fault in lint_text(text)[1]] == [f"links.{key}"]
