"""The statistic of the papers, against a version written from the text without NumPy."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.model.measurement import CoreLatency, TrialSummary
from postprocess.stats import launches

TIMES = st.floats(min_value=1e-9, max_value=1e3)
TICKS = st.integers(min_value=1, max_value=12).map(lambda ticks: ticks * 1e-9)
TRIALS = st.lists(TIMES, min_size=2, max_size=70) | st.lists(TICKS, min_size=2, max_size=70)
MANY = st.lists(TIMES | TICKS, min_size=12, max_size=70)


def naive_median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def naive_quantile(values: list[float], fraction: float) -> float:
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def naive_steady(values: list[float]) -> float:
    fastest = sorted(values)[: math.ceil(len(values) / 4)]
    return math.fsum(fastest) / len(fastest)


def naive_bimodal(values: list[float], resolution: float) -> bool:
    ordered = sorted(values)
    median = naive_median(values)
    deviation = naive_median([abs(value - median) for value in values])
    for left in range(1, len(ordered)):
        right = len(ordered) - left
        gap = ordered[left] - ordered[left - 1]
        wide = gap > 3 * deviation and gap > 2 * resolution
        if wide and 5 * left >= len(ordered) and 5 * right >= len(ordered):
            return True
    return False


def naive_summary(trials: list[float], late: list[bool], dropped: int, resolution: float) -> TrialSummary:
    values = [t for i, t in enumerate(trials) if i >= dropped and not late[i]]
    median = naive_median(values)
    candidates = sum(1 for value in values if value > 1.8 * median)
    rest, removed = list(values), 0
    while removed < math.floor(len(values) / 10) and max(rest) > 1.8 * median:
        rest.remove(max(rest))
        removed += 1
    return TrialSummary(
        headline=math.fsum(rest) / len(rest),
        steady=naive_steady(values),
        median=median,
        minimum=min(values),
        p90=naive_quantile(values, 0.90),
        p99=naive_quantile(values, 0.99),
        kept=len(rest),
        candidates=candidates,
        removed=removed,
        filter_saturated=candidates > math.floor(len(values) / 10),
        bimodal=naive_bimodal(values, resolution),
    )


def assert_same(ours: TrialSummary, theirs: TrialSummary, factor: float = 1.0) -> None:
    for name, value in asdict(theirs).items():
        if isinstance(value, float):
            assert getattr(ours, name) == pytest.approx(factor * value, rel=1e-12), name
        else:
            assert getattr(ours, name) == value, name


@given(TRIALS, st.data())
def test_agrees_with_a_version_written_from_the_text(trials, data):
    late = data.draw(st.lists(st.booleans(), min_size=len(trials), max_size=len(trials)))
    dropped = data.draw(st.integers(min_value=0, max_value=len(trials) - 1))
    late[-1] = False
    resolution = data.draw(st.sampled_from([0.0, 1e-9, 2e-9]))
    ours = launches.summarise_trials(np.array(trials), np.array(late), dropped, resolution)
    assert_same(ours, naive_summary(trials, late, dropped, resolution))


@given(TRIALS)
def test_without_flags_no_trial_is_late(trials):
    values = np.array(trials)
    found = launches.summarise_trials(values)
    assert found == launches.summarise_trials(values, np.zeros(len(trials), dtype=bool), 1, 0.0)


@given(MANY, st.data())
def test_mask_leaves_exactly_what_the_headline_averages(trials, data):
    late = np.array(data.draw(st.lists(st.booleans(), min_size=len(trials), max_size=len(trials))))
    late[-1] = False
    values = np.array(trials)
    mask, summary = launches.mark_removed_trials(values, late, 1), launches.summarise_trials(values, late, 1)
    assert mask.shape == values.shape and mask.dtype == bool
    assert mask[0] and mask[late].all()
    assert np.count_nonzero(~mask) == summary.kept
    assert np.mean(values[~mask]) == pytest.approx(summary.headline, rel=1e-12)
    spikes = values[mask & ~late & (np.arange(len(values)) > 0)]
    assert spikes.size == summary.removed
    assert (spikes > 1.8 * summary.median).all()


def test_the_papers_51_trials():
    """Nine spikes among 50 values: five are removed, the largest, and four leak into the mean."""
    spikes = [30.0, 31.0, 32.0, 33.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    trials = np.array([1e6] + [10.0] * 41 + spikes)
    summary = launches.summarise_trials(trials)
    assert (summary.candidates, summary.removed, summary.kept) == (9, 5, 45)
    assert summary.headline == pytest.approx((41 * 10 + 30 + 31 + 32 + 33) / 45)
    assert summary.filter_saturated
    assert (summary.median, summary.minimum) == (10.0, 10.0)
    assert launches.mark_removed_trials(trials).nonzero()[0].tolist() == [0, 46, 47, 48, 49, 50]


def test_the_steady_time_is_that_of_the_fastest_quarter_whatever_slows_the_others():
    """Of 50 trials that count the fastest 13; what is slow in each of them is slow in it."""
    trials = np.array([1e6] + [10.0] * 13 + [20.0] * 37)
    assert launches.summarise_trials(trials).steady == 10.0
    assert launches.summarise_trials(np.where(trials == 20.0, 500.0, trials)).steady == 10.0
    assert launches.summarise_trials(1.1 * trials).steady == pytest.approx(11.0)
    assert launches.summarise_trials(trials[:13]).steady == 10.0


def test_a_spike_is_above_the_threshold_not_at_it():
    at = np.array([1.0] + [5.0] * 19 + [9.0])
    above = np.array([1.0] + [5.0] * 19 + [np.nextafter(9.0, 10.0)])
    assert launches.summarise_trials(at).candidates == 0
    assert launches.summarise_trials(above).candidates == 1


def test_as_many_candidates_as_the_cap_do_not_saturate_it():
    assert not launches.summarise_trials(np.array([1.0] + [1.0] * 18 + [5.0] * 2)).filter_saturated
    assert launches.summarise_trials(np.array([1.0] + [1.0] * 17 + [5.0] * 3)).filter_saturated


def modes(low: int, high: int, spikes: int = 0) -> np.ndarray:
    """A dropped trial, then two modes of width 0.1 around 1 and 2, and spikes."""
    return np.concatenate(
        [[1.0], 1 + 0.002 * np.arange(low), 2 + 0.002 * np.arange(high), np.full(spikes, 90.0)]
    )


def test_two_modes_are_told_from_one_with_a_few_spikes():
    assert launches.summarise_trials(modes(40, 10)).bimodal
    assert launches.summarise_trials(modes(10, 40)).bimodal
    assert not launches.summarise_trials(modes(41, 9)).bimodal
    assert not launches.summarise_trials(modes(9, 41)).bimodal
    assert not launches.summarise_trials(modes(50, 0)).bimodal
    assert not launches.summarise_trials(modes(45, 0, spikes=5)).bimodal
    assert launches.summarise_trials(modes(39, 10, spikes=1)).bimodal  # which a spike does not hide


def test_a_gap_of_two_ticks_is_no_gap():
    ticks = np.array([1.0] + [10.0] * 30 + [12.0] * 20)
    assert not launches.summarise_trials(ticks, resolution=1.0).bimodal
    assert launches.summarise_trials(ticks, resolution=0.99).bimodal


@pytest.mark.parametrize(
    ("trials", "late", "dropped"),
    [
        ([1.0], None, 1),
        ([], None, 0),
        ([1.0, 2.0], [False, True], 1),
        ([1.0, 2.0], [False], 1),
        ([[1.0, 2.0]], None, 0),
        ([1.0, 2.0, 3.0], None, -1),
        ([1.0, math.nan, 2.0], None, 1),
        ([1.0, math.inf, 2.0], None, 1),
    ],
)
@pytest.mark.parametrize("function", [launches.summarise_trials, launches.mark_removed_trials])
def test_refuses_what_has_no_headline(function, trials, late, dropped):
    flags = None if late is None else np.array(late)
    with pytest.raises(ValueError, match="trial"):
        function(np.array(trials), flags, dropped)


def test_a_dropped_or_late_trial_may_be_anything():
    trials = np.array([math.nan, 2.0, math.inf])
    assert launches.summarise_trials(trials, np.array([False, False, True])).headline == 2.0


def test_input_is_left_as_it_was():
    trials = np.array([3.0, 2.0, 1.0])
    late = np.zeros(3, dtype=bool)
    launches.summarise_trials(trials, late)
    launches.mark_removed_trials(trials, late)
    assert trials.tolist() == [3.0, 2.0, 1.0]
    assert not late.any()


CORE_TIMES = st.floats(1e-300, 1e300)


def test_two_places_are_told_apart_and_the_one_of_most_launches_is_first():
    far = [260e-9, 245e-9, 290e-9]
    near = [52e-9, 55e-9, 51e-9, 40e-9]
    first, second = launches.group_placements([far[0], *near, *far[1:]])
    assert first.members == (1, 2, 3, 4) and math.isclose(first.core_latency or 0, 51.5e-9)
    assert second.members == (0, 5, 6) and second.core_latency == 260e-9


def test_of_as_many_launches_the_nearer_cores_are_first():
    assert [placement.core_latency for placement in launches.group_placements([2e-7, 4e-8])] == [4e-8, 2e-7]


def test_launches_of_which_nothing_is_known_are_of_one_place():
    (only,) = launches.group_placements([None, None])
    assert only.core_latency is None and only.members == (0, 1)
    assert launches.group_placements([]) == []


STAYED = [138e-9, 142e-9] * 5  #: core-to-core times before and after five visits


@pytest.mark.parametrize(
    ("visits", "moved"),
    [
        (STAYED, False),
        ([138e-9, 476e-9, *STAYED[2:]], False),  # one reading was disturbed
        ([None, 142e-9, None, None, *STAYED[4:]], False),
        ([62e-9, 142e-9, 138e-9, 476e-9, *STAYED[4:]], False),
        ([260e-9, 262e-9, *STAYED[2:]], True),  # a fifth of the trials is of another place
        ([260e-9, None, *STAYED[2:]], True),
        ([138e-9, 250e-9] * 3 + STAYED[6:], True),  # no visit is, but many readings are
        (STAYED[:6] + [260e-9] * 4, True),
        ([138e-9, 476e-9], True),  # of one visit nothing else is known
    ],
)
def test_ranks_moved_if_a_visit_was_elsewhere_not_if_a_reading_was(visits: list[float | None], moved: bool):
    """The ten readings around five visits, on a virtual machine where one in fifteen is disturbed."""
    assert (launches.locate_case(launches.summarise_visits(visits)) == launches.MOVED) is moved
    assert launches.locate_case(launches.summarise_visits([None] * 10)) is None


@given(st.lists(st.none() | CORE_TIMES, max_size=30))
def test_each_launch_is_in_one_place_near_to_another_of_it(latencies: list[float | None]):
    found = launches.group_placements(latencies)
    assert sorted(number for placement in found for number in placement.members) == [*range(len(latencies))]
    sizes = [len(placement.members) for placement in found]
    assert sizes == sorted(sizes, reverse=True)
    for placement in found:
        times = [latencies[number] for number in placement.members]
        known = [time for time in times if time is not None]
        assert not known or len(known) == len(times)
        assert not known or max(known) <= launches.REACH**2 * min(known) * (1 + 1e-9)


@given(CORE_TIMES, CORE_TIMES)
def test_a_case_lay_where_both_times_say_or_was_moved(before: float, after: float):
    place = launches.locate_case(CoreLatency(before, after))
    if launches.is_near(before, after):
        assert place is not None and min(before, after) * (1 - 1e-9) <= place <= max(before, after) * (1 + 1e-9)
    else:
        assert place == launches.MOVED and not launches.is_same_place(place, before)


def test_other_cores_make_a_call_five_times_as_slow_or_by_the_farther_time():
    for measured, reference, limit in (
        (None, 5e-8, 5.0),
        (CoreLatency(9e-7, 9e-7), None, 5.0),
        (CoreLatency(7e-8, 7e-8), 5e-8, 5.0),
        (CoreLatency(5e-8, 2.5e-7), 5e-8, 12.5),
        (CoreLatency(2.5e-7, None), 5e-8, 12.5),
        (CoreLatency(1e-3, 1e-3), 5e-8, 30.0),  # whatever a record says of its cores
    ):
        assert math.isclose(launches.limit_slowdown(measured, reference), limit)


def test_without_a_time_nothing_is_kept_apart():
    assert launches.locate_case(None) is None and launches.locate_case(CoreLatency(None, None)) is None
    for latency in (CoreLatency(None, 5e-8), CoreLatency(5e-8, None)):
        assert math.isclose(launches.locate_case(latency) or 0, 5e-8)
    assert launches.is_same_place(None, 1e-7) and launches.is_same_place(1e-7, None)


HOUR, DAY = 3600.0, 86400.0


def train(random: np.random.Generator, period: float) -> list[tuple[float, float]]:
    """A probe of 40 ms beside a daemon, with the short detours that every kernel makes."""
    times = np.arange(random.uniform(0, period), 0.04, period)
    ticks = random.uniform(0, 0.04, 8)
    events = [(when, 1e-3) for when in times] + [(when, 2e-5) for when in ticks]
    return sorted(events)


@pytest.mark.parametrize("period", [0.002, 0.004, 0.01, 0.012])
def test_a_daemon_has_its_period(period: float) -> None:
    random = np.random.default_rng(1)
    found = launches.find_period([train(random, period) for _ in range(20)], 0.001, 0.02)
    assert found == pytest.approx(period, rel=0.02)


def test_what_comes_at_random_has_none() -> None:
    random = np.random.default_rng(2)
    named = 0
    for _ in range(200):
        trains = [[(when, 1e-3) for when in np.sort(random.uniform(0, 0.04, 4))] for _ in range(20)]
        named += launches.find_period(trains, 0.001, 0.02) is not None
    assert named <= 2


def test_one_event_of_a_train_tells_no_period() -> None:
    assert launches.find_period([[(0.01, 1e-3)]] * 20, 0.001, 0.02) is None
    assert launches.find_period([], 0.001, 0.02) is None


def test_a_timer_of_each_hour_is_found() -> None:
    """Nights of two hours begin at random; the timer goes off at 17 minutes past."""
    random = np.random.default_rng(3)
    begins = np.array([DAY * day + random.uniform(0, HOUR) for day in range(10)])
    moments = np.concatenate([begin + np.arange(0, 2 * HOUR, 60) for begin in begins])
    hits = [when for when in moments if (when - 17 * 60) % HOUR < 60]
    assert launches.find_timer(hits, [*moments]) == HOUR


def test_that_nights_begin_at_the_same_hour_is_no_timer() -> None:
    random = np.random.default_rng(4)
    moments = np.concatenate([DAY * day + np.arange(0, HOUR, 60) for day in range(20)])
    found = [launches.find_timer([*random.choice(moments, 12, replace=False)], [*moments]) for _ in range(12)]
    assert sum(each is not None for each in found) <= 1
