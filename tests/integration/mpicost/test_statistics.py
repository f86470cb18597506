"""The statistics of the C program: worked cases, and agreement with the Python implementation."""

from __future__ import annotations

import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.stats.headline import summarise_trials
from tests.support.mpicost import program

FLOATS = ("headline", "steady", "median", "minimum", "p90", "p99", "standard_error")
COUNTS = ("kept", "candidates", "removed")
FLAGS = ("filter_saturated", "bimodal")


@pytest.fixture(scope="module")
def driver() -> Path:
    return program("mpich").build / "statistics_driver"


def computed(driver: Path, trials, late=None, dropped=1, resolution=0.0) -> dict | None:
    """What the C code makes of the trials; None if it says that none is left."""
    flags = late if late is not None else [False] * len(trials)
    rows = "".join(f"{float(time)!r} {int(flag)}\n" for time, flag in zip(trials, flags, strict=True))
    text = subprocess.run(
        [driver], input=f"{dropped} {resolution!r}\n{rows}", capture_output=True, text=True, check=True
    ).stdout.split()
    if text == ["none"]:
        return None
    values = [*map(float, text[:7]), *map(int, text[7:10]), *(word == "1" for word in text[10:])]
    return dict(zip(FLOATS + COUNTS + FLAGS, values, strict=True))


def test_first_trial_is_dropped(driver: Path) -> None:
    summary = computed(driver, [1000, 1, 2, 3])
    assert (summary["median"], summary["headline"], summary["kept"]) == (2, 2, 3)


def test_median_of_an_even_number_is_the_mean_of_the_middle_two(driver: Path) -> None:
    assert computed(driver, [0, 1, 2, 4, 5])["median"] == 3


def test_filter_removes_the_largest_tenth_of_the_data_and_no_more(driver: Path) -> None:
    summary = computed(driver, [0, *[1.0] * 43, *[10.0, 20, 30, 40, 50, 60, 70]])
    assert (summary["candidates"], summary["removed"], summary["kept"]) == (7, 5, 45)
    assert summary["headline"] == pytest.approx((43 + 10 + 20) / 45)
    assert summary["filter_saturated"]


def test_filter_removes_nothing_up_to_1_8_medians(driver: Path) -> None:
    summary = computed(driver, [0, *[1.0] * 45, *[1.8] * 5])
    assert (summary["candidates"], summary["removed"]) == (0, 0)


def test_fewer_than_ten_trials_lose_none(driver: Path) -> None:
    summary = computed(driver, [0, *[1.0] * 8, 100])
    assert (summary["candidates"], summary["removed"], summary["filter_saturated"]) == (1, 0, True)


def test_one_value(driver: Path) -> None:
    summary = computed(driver, [9, 5])
    assert [summary[name] for name in FLOATS[:6]] == [5] * 6
    assert summary["standard_error"] == float("inf")
    assert not summary["bimodal"]


@pytest.mark.parametrize("late", [[False], [False, True, True]])
def test_no_value(driver: Path, late: list[bool]) -> None:
    assert computed(driver, [1.0] * len(late), late) is None


def test_standard_error_is_that_of_the_kept_values(driver: Path) -> None:
    trials = [0, *np.linspace(1, 1.5, 45), *[10.0] * 5]
    kept = np.array(trials[1:46])
    error = kept.std(ddof=1) / np.sqrt(kept.size)
    assert computed(driver, trials)["standard_error"] == pytest.approx(error)


@pytest.mark.parametrize(("upper", "bimodal"), [(2, False), (3, True), (7, True), (8, False)])
def test_bimodal_needs_a_fifth_on_each_side(driver: Path, upper: int, bimodal: bool) -> None:
    trials = [0, *np.linspace(1, 1.01, 10 + 3 - upper), *np.linspace(5, 5.01, upper)]
    if upper == 8:
        trials = [0, *np.linspace(1, 1.01, 12), 5]
    assert computed(driver, trials)["bimodal"] == bimodal


def test_gap_within_two_ticks_is_not_bimodal(driver: Path) -> None:
    trials = [0, *[1.0] * 8, *[2.0] * 2]
    assert computed(driver, trials)["bimodal"]
    assert not computed(driver, trials, resolution=0.5)["bimodal"]


times = st.floats(1e-9, 1e3).map(lambda value: float(f"{value:.3g}"))


@settings(max_examples=150)
@given(
    rows=st.lists(st.tuples(times, st.booleans()), min_size=1, max_size=70),
    dropped=st.integers(0, 2),
    resolution=st.sampled_from([0.0, 1e-9, 1e-3]),
)
def test_agrees_with_python(driver: Path, rows, dropped: int, resolution: float) -> None:
    trials, late = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    ours = computed(driver, trials, late, dropped, resolution)
    if late[dropped:].all():
        assert ours is None
        return
    theirs = asdict(summarise_trials(trials, late, dropped, resolution))
    found = {name: ours[name] for name in COUNTS + FLAGS}
    assert found == {name: theirs[name] for name in COUNTS + FLAGS}
    for name in FLOATS[:6]:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-9)
