"""The statistics of the C program agree with those in Python, which are held against the text of the papers."""

import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.stats.launches import summarise_trials
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


@pytest.mark.parametrize("late", [[False], [False, True, True]])
def test_no_value(driver: Path, late: list[bool]) -> None:
    assert computed(driver, [1.0] * len(late), late) is None


def test_standard_error_is_that_of_the_kept_values(driver: Path) -> None:
    trials = [0, *np.linspace(1, 1.5, 45), *[10.0] * 5]
    kept = np.array(trials[1:46])
    error = kept.std(ddof=1) / np.sqrt(kept.size)
    assert computed(driver, trials)["standard_error"] == pytest.approx(error)


WORKED = {
    "the first trial is dropped": [1000, 1, 2, 3],
    "the median of an even number": [0, 1, 2, 4, 5],
    "more to be removed than a tenth": [0, *[1.0] * 43, *[10.0, 20, 30, 40, 50, 60, 70]],
    "nothing above 1.8 medians": [0, *[1.0] * 45, *[1.8] * 5],
    "fewer than ten": [0, *[1.0] * 8, 100],
    "one value": [9, 5],
    "two modes, and hardly a fifth above": [0, *np.linspace(1, 1.01, 10), *np.linspace(5, 5.01, 3)],
    "two modes, and hardly a fifth below": [0, *np.linspace(1, 1.01, 6), *np.linspace(5, 5.01, 7)],
    "less than a fifth above": [0, *np.linspace(1, 1.01, 11), *np.linspace(5, 5.01, 2)],
    "a single one above": [0, *np.linspace(1, 1.01, 12), 5],
    "a gap of a few ticks": [0, *[1.0] * 8, *[2.0] * 2],
}


@pytest.mark.parametrize("resolution", [0.0, 0.5])
@pytest.mark.parametrize("trials", WORKED.values(), ids=WORKED)
def test_agrees_with_python_at_every_limit(driver: Path, trials: list[float], resolution: float) -> None:
    check_agreement(driver, np.array(trials, dtype=float), np.zeros(len(trials), dtype=bool), 1, resolution)


def check_agreement(driver: Path, trials: np.ndarray, late: np.ndarray, *how: float) -> None:
    """Hold all numbers of both against each other. ``how``: trials dropped, resolution."""
    ours, theirs = computed(driver, trials, late, *how), asdict(summarise_trials(trials, late, *how))
    assert {name: ours[name] for name in COUNTS + FLAGS} == {name: theirs[name] for name in COUNTS + FLAGS}
    for name in FLOATS[:6]:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-9)


times = st.floats(1e-9, 1e3).map(lambda value: float(f"{value:.3g}"))


@settings(max_examples=150)
@given(
    rows=st.lists(st.tuples(times, st.booleans()), min_size=1, max_size=70),
    dropped=st.integers(0, 2),
    resolution=st.sampled_from([0.0, 1e-9, 1e-3]),
)
def test_agrees_with_python(driver: Path, rows, dropped: int, resolution: float) -> None:
    trials, late = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    if late[dropped:].all():
        assert computed(driver, trials, late, dropped, resolution) is None
    else:
        check_agreement(driver, trials, late, dropped, resolution)
