"""Three programs' values of the same cases: ratios, intervals, findings, gaps."""

import math
import random
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.extensions.agreement import compare
from postprocess.stats.launches import bound_slowest_mean

ROUTINES = ("bcast", "allreduce_sum", "alltoall", "gather", "scatter", "reduce_sum", "allgather")
SIZES = (8, 1024, 65536, 1048576)
TOPICS = [
    compare.Topic("here:cpu", environment, "2x2", routine, size)
    for environment in ("mpich", "openmpi")
    for routine in ROUTINES
    for size in SIZES
]
LAUNCHES = 8


def samples(noise, planted=None, seed=1, launches=LAUNCHES, topics=TOPICS, programs=compare.PROGRAMS):
    """Values of all programs with a common noise of each round and one of each value's own.

    ``planted``: (program, topic) -> factor by which that program is wrong there.
    """
    rng = random.Random(seed)
    found = []
    for number in range(1, launches + 1):
        for topic in topics:
            weather = math.exp(rng.gauss(0, 0.5))  # what slows all three in this round
            for program in programs:
                time = 1e-6 * topic.bytes**0.5 * weather * math.exp(rng.gauss(0, noise))
                factor = (planted or {}).get((program, topic), 1.0)
                found.append(compare.ProgramSample(topic, program, number, time * factor, "s"))
    return found


def planned(topics=TOPICS, programs=compare.PROGRAMS):
    return {topic: dict.fromkeys(programs, "") for topic in topics}


# --- planted faults, and none ---


@pytest.mark.parametrize("program", compare.PROGRAMS)
@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_a_wrong_program_at_one_size_is_exactly_one_finding(program, factor):
    topic = compare.Topic("here:cpu", "mpich", "2x2", "alltoall", 1048576)
    found = compare.compare_programs(samples(0.02, {(program, topic): factor}), planned())
    assert [(finding.name, finding.topic) for finding in found.findings] == [(f"{program}-alone", topic)]
    apart = found.findings[0].comparisons
    assert all(program in (comparison.over, comparison.under) for comparison in apart)
    assert {comparison.slower == program for comparison in apart} == {factor > 1}
    assert not found.good


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("launches", [3, 5, 8, 20])
def test_noise_alone_is_no_finding(noise, launches):
    found = compare.compare_programs(samples(noise, seed=launches, launches=launches), planned())
    assert found.findings == () and found.gaps == ()
    assert found.good == found.decided
    assert not found.decided or found.count(compare.RatioStatus.AGREE) > 0
    assert len(found.comparisons) == len(TOPICS) * len(compare.PAIRS)


def test_values_that_lie_near_each_other_by_chance_are_no_finding():
    """On a restless machine, where a mean is one of many, three rounds may well give nearly the same."""
    rng = random.Random(2)
    said = []
    for topic in TOPICS[:20]:
        for number in range(3):
            wild = 114 * (1 + number / 100) if topic == TOPICS[3] else math.exp(rng.gauss(0, 2))
            said += [
                compare.ProgramSample(topic, "osu", number, wild, "s"),
                compare.ProgramSample(topic, "imb", number, 1.0, "s"),
            ]
    found = compare.compare_programs(said, planned(TOPICS[:20], ("osu", "imb")))
    assert not found.findings and found.count(compare.RatioStatus.AGREE) == 0
    alone = [sample for sample in said if sample.topic == TOPICS[3]]
    like_that = compare.compare_programs(alone, planned([TOPICS[3]], ("osu", "imb")))
    assert like_that.findings  # where all rounds are


def test_little_noise_is_agreement_and_much_is_left_open():
    quiet = compare.compare_programs(samples(0.01), planned())
    assert quiet.count(compare.RatioStatus.AGREE) == len(quiet.comparisons)
    loud = compare.compare_programs(samples(1.0), planned())
    assert loud.count(compare.RatioStatus.OPEN) == len(loud.comparisons)
    assert quiet.good and not loud.good  # what shows nothing is not well


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"imb": 9.0}, ["osu-against-imb"]),
        ({"osu": 3.0, "imb": 9.0}, ["mpicost-against-osu-mpicost-against-imb-osu-against-imb"]),
    ],
)
def test_two_programs_that_differ_are_named_both_and_three_by_pairs(wrong, names):
    topic = replace(TOPICS[0], bytes=1048576, routine="alltoall")
    programs = compare.PROGRAMS if len(wrong) > 1 else ("osu", "imb")
    planted = {(program, topic): factor for program, factor in wrong.items()}
    said = samples(0.01, planted, topics=[topic], programs=programs)
    found = compare.compare_programs(said, planned([topic], programs))
    assert [finding.name for finding in found.findings] == names


def test_a_program_between_the_others_does_not_stand_alone():
    """mpicost/osu and osu/imb are outside on two sides of osu, and mpicost/imb is not judged to be."""
    here = [compared(over, under, ratio) for (over, under), ratio in zip(compare.PAIRS, (3, 1, 3), strict=True)]
    assert compare.find_disagreements(here)[0].name == "mpicost-against-osu-osu-against-imb"


def compared(over, under, ratio, low=0.5, high=2.0):
    return compare.ProgramComparison(
        TOPICS[0],
        over,
        under,
        5,
        ratio,
        (ratio * 0.99, ratio * 1.01),
        1.0,
        compare.ExpectedRange((), None, 0, low, high, ""),
        disagrees=not low <= ratio <= high,
    )


# --- status ---


@pytest.mark.parametrize(
    "bounds, disagrees, status",
    [
        ((0.6, 1.9), False, compare.RatioStatus.AGREE),
        ((0.5, 2.0), False, compare.RatioStatus.AGREE),
        ((0.49, 1.0), False, compare.RatioStatus.OPEN),
        ((1.0, 2.01), False, compare.RatioStatus.OPEN),
        ((0.1, 9.0), False, compare.RatioStatus.OPEN),
        ((2.01, 3.0), False, compare.RatioStatus.OPEN),
        ((2.01, 3.0), True, compare.RatioStatus.DISAGREE),
        ((0.1, 0.49), True, compare.RatioStatus.DISAGREE),
        (None, False, compare.RatioStatus.UNJUDGED),
        (None, True, compare.RatioStatus.UNJUDGED),
    ],
)
def test_standing(bounds, disagrees, status):
    each = replace(compared("mpicost", "osu", 1.0), interval=bounds, disagrees=disagrees)
    assert each.status is status


def test_what_is_compared_is_defined_alike():
    """mpicost's own headline is twice what it says by the definition of the others."""
    topic = TOPICS[0]
    said = [
        compare.ProgramSample(topic, name, number, 2e-6, "s", 1e-6 if name == "mpicost" else None)
        for number in range(3)
        for name in compare.PROGRAMS
    ]
    found = compare.compare_programs(said, planned([topic])).comparisons
    ratios = {(comparison.over, comparison.under): comparison for comparison in found}
    assert ratios["mpicost", "osu"].ratio == pytest.approx(0.5)
    assert ratios["mpicost", "osu"].definition == pytest.approx(2)
    assert ratios["osu", "imb"].ratio == ratios["osu", "imb"].definition == 1


def test_rates_are_turned_so_that_above_one_is_slower():
    topic = compare.Topic("here:cpu", "mpich", "2x2", "bw", 65536)
    values = {"osu": 50.0, "imb": 100.0}
    rates = [(n, *each) for n in range(4) for each in values.items()]
    said = [compare.ProgramSample(topic, name, n, value, "MB/s") for n, name, value in rates]
    (each,) = compare.compare_programs(said, planned([topic], tuple(values))).comparisons
    assert each.ratio == pytest.approx(2) and each.slower == "osu"


# --- few launches, gaps, wrong input ---


@pytest.mark.parametrize("launches", [1, 2])
def test_too_few_launches_judge_nothing_and_are_not_good(launches):
    found = compare.compare_programs(samples(0.0, {("imb", TOPICS[0]): 99.0}, launches=launches), planned())
    assert found.count(compare.RatioStatus.UNJUDGED) == len(found.comparisons)
    assert all(comparison.interval is None for comparison in found.comparisons)
    assert not found.findings and not found.good


def test_nothing_is_not_good():
    assert not compare.compare_programs([], {}).good
    assert not compare.compare_programs([], planned()).good


def test_a_program_that_lacks_a_case_is_named():
    topic, other = TOPICS[:2]
    wanted = {topic: {"mpicost": "", "osu": ""}, other: {"mpicost": "", "osu": "no Spack", "imb": ""}}
    said = [
        each
        for each in samples(0.01, topics=[topic, other])
        if each.program in ("mpicost", "osu")[: 2 if each.topic == topic else 1]
    ]
    found = compare.compare_programs(said, wanted)
    assert [(gap.topic, gap.program, gap.reason) for gap in found.gaps] == [
        (topic, "imb", "does not measure it"),
        (other, "osu", "no Spack"),
        (other, "imb", "no value"),
    ]


def test_a_launch_without_a_value_is_named_and_its_round_left_out():
    topic = TOPICS[0]
    said = [
        each for each in samples(0.01, topics=[topic]) if not (each.program == "osu" and each.launch in (2, 5))
    ]
    found = compare.compare_programs(said, planned([topic]))
    assert [gap.reason for gap in found.gaps] == ["a value in 6 of 8 launches"]
    assert [comparison.launches for comparison in found.comparisons] == [6, 8, 6]


def test_values_of_different_rounds_are_not_compared():
    topic = TOPICS[0]
    said = [compare.ProgramSample(topic, name, n, 1.0, "s") for n, name in enumerate(("mpicost", "osu"))]
    found = compare.compare_programs(said, planned([topic], ("mpicost", "osu")))
    assert not found.comparisons and len(found.gaps) == 3 and not found.good


def test_wrong_input_is_refused():
    topic = TOPICS[0]
    one = compare.ProgramSample(topic, "osu", 1, 1.0, "s")
    with pytest.raises(ValueError, match="twice"):
        compare.compare_programs([one, one], planned([topic]))
    with pytest.raises(ValueError, match="not planned"):
        compare.compare_programs([one], planned([topic], ("mpicost",)))
    with pytest.raises(ValueError, match="count in"):
        compare.compare_programs([one, replace(one, program="imb", unit="MB/s")], planned([topic]))
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="osu"):
            replace(one, value=value)
        with pytest.raises(ValueError, match="osu"):
            replace(one, alike=value)


# --- statistics ---


def test_interval_of_a_known_sample():
    """t(0.975; 4) = 2.7764; logarithms 0.1 apart have s / sqrt(5) = 0.1581 / 2.236."""
    logs = [-0.2, -0.1, 0.0, 0.1, 0.2]
    low, high = compare.compute_ratio_interval(logs)
    assert math.log(high) == pytest.approx(2.7764 * 0.158114 / math.sqrt(5), rel=1e-4)
    assert low * high == pytest.approx(1)


@given(st.lists(st.floats(-5, 5), max_size=2))
def test_no_interval_of_too_few(logs):
    assert compare.compute_ratio_interval(logs) is None


def test_outside_is_the_probability_of_the_nearer_end():
    """t = (ln 2 - ln 1.5) / (0.1581 / sqrt(5)) = 4.068; of t(4) that is 2 x 0.00763."""
    logs = [math.log(2) + step for step in (-0.2, -0.1, 0.0, 0.1, 0.2)]
    assert compare.compute_outside_probability(logs, 0.5, 1.5) == pytest.approx(0.01525, rel=2e-3)
    mirrored = compare.compute_outside_probability([-log for log in logs], 1 / 1.5, 2.0)
    assert mirrored == pytest.approx(0.01525, rel=2e-3)
    assert compare.compute_outside_probability(logs, 0.5, 2.5) == 1
    assert compare.compute_outside_probability([1.0] * 3, 0.5, 2.0) == 0
    assert compare.compute_outside_probability([0.0] * 3, 0.5, 2.0) == 1
    assert compare.compute_outside_probability([9.0] * 2, 0.5, 2.0) == 1


def test_holm_of_a_known_sample():
    """Levels are 0.05 / 4, / 3, / 2, / 1; what follows the first that is too large stays."""
    assert compare.reject_by_holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert compare.reject_by_holm([0.01, 0.02, 0.015, 0.005], 0.05) == [True] * 4
    assert compare.reject_by_holm([], 0.05) == []


def test_findings_by_chance_are_as_rare_as_they_say():
    """All programs sound, every ratio at the edge of its range: the worst case that is allowed."""
    topics, alarms = TOPICS[:14], 0
    for seed in range(200):
        rng = random.Random(seed)
        said = []
        for topic in topics:
            edge = compare.find_expected_range("osu", "imb", topic.routine, topic.bytes).high
            for number in range(6):
                noise = math.exp(rng.gauss(0, 0.3))
                said.append(compare.ProgramSample(topic, "osu", number, edge * noise, "s"))
                said.append(compare.ProgramSample(topic, "imb", number, 1.0, "s"))
        alarms += bool(compare.compare_programs(said, planned(topics, ("osu", "imb"))).findings)
    assert alarms <= 18  # 10 expected at most, 3 standard deviations above


@given(
    st.integers(1, 6).flatmap(
        lambda p: st.lists(st.lists(st.floats(1e-7, 1e-2), min_size=p, max_size=p), min_size=2, max_size=30)
    )
)
def test_bounds_of_the_other_definition_hold(times):
    """``times``: by trial, by rank. OSU's and IMB's value is the largest of the ranks' means."""
    ranks = len(times[0])
    trials = np.array(times)
    low, high = bound_slowest_mean(trials.max(axis=1), trials.min(axis=1), ranks)
    largest = max(statistics.fmean(t[rank] for t in times[1:]) for rank in range(ranks))
    assert low <= largest * (1 + 1e-12) and largest <= high * (1 + 1e-12)


# --- the data of the ranges ---


def test_every_ratio_has_a_range_that_holds_one_and_says_why():
    for over, under in compare.PAIRS:
        for routine in (*ROUTINES, "barrier", "pingpong", "bw", "something_new"):
            for size in (0, 1, *SIZES, 2**40):
                found = compare.find_expected_range(over, under, routine, size)
                assert 0 < found.low < 1 < found.high and found.reason


def test_every_rule_is_reached():
    """A rule that another one covers says something that is not so."""
    reached = {
        id(compare.find_expected_range(over, under, routine, size))
        for over, under in compare.PAIRS
        for routine in (*ROUTINES, "barrier", "pingpong", "bw", "something_new")
        for size in (0, *SIZES, 2**40)
    }
    assert set(map(id, compare.RANGES)) == reached


def test_an_unknown_pair_is_refused():
    with pytest.raises(ValueError, match="no range"):
        compare.find_expected_range("osu", "mpicost", "bcast", 8)


def test_programs_that_differ_everywhere_are_not_well_even_if_nothing_is_proved():
    """Three rounds among very many ratios prove nothing; a program that is off in all of them must show."""
    rng = random.Random(3)
    said = [
        compare.ProgramSample(topic, name, number, factor * math.exp(rng.gauss(0, 0.05)), "s")
        for topic in TOPICS
        for name, factor in (("mpicost", 1.0), ("osu", 3.0), ("imb", 1.0))
        for number in range(3)
    ]
    found = compare.compare_programs(said, planned())
    assert found.doubtful > 0 or found.findings
    assert not found.good


def test_every_two_programs_must_agree_somewhere():
    def said(factor: float) -> list[compare.ProgramSample]:
        return [
            compare.ProgramSample(TOPICS[0], name, number, value * (1 + number / 1e4), "s")
            for name, value in (("osu", 1.0), ("imb", factor))
            for number in range(5)
        ]

    assert compare.compare_programs(said(1.0), planned(TOPICS[:1], ("osu", "imb"))).good
    assert not compare.compare_programs(said(1.9), planned(TOPICS[:1], ("osu", "imb"))).good
