"""The common clock of mpicost across hosts, on two hosts made of one."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.mpicost import FAMILIES, TINY, Ended, Records, library, preload, program, read

pytestmark = pytest.mark.alone

AHEAD = 1000.0  #: seconds by which the second host's clock is ahead


def launched(family: str, file: Path, *options: str, sizes: str = "8", drift: float = 0) -> Ended:
    wrapper = preload(library(family, "two_hosts"))
    selected = (*TINY, "--routine", "bcast", "--bytes", sizes, "--output", str(file))
    variables = {"PLUMBLINE_DRIFT": str(drift)}
    return program(family).run(2, *selected, *options, wrapper=wrapper, variables=variables)


def on_two_hosts(family: str, file: Path, *options: str, sizes: str = "8", drift: float = 0) -> Records:
    ended = launched(family, file, *options, sizes=sizes, drift=drift)
    assert ended.status == 0, ended.complaints
    return read(file)


@pytest.mark.parametrize("family", FAMILIES)
def test_hosts_are_told_apart(family: str, tmp_path: Path) -> None:
    run = on_two_hosts(family, tmp_path / "a", "--trials", "3").run
    assert [host["ranks"] for host in run["hosts"]] == [1, 1]
    assert run["per_node"] == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_offset_between_hosts_is_taken_out(family: str, tmp_path: Path) -> None:
    records = on_two_hosts(family, tmp_path / "a")
    assert 0 < records.run["clock_error"] < AHEAD / 1000
    (case,) = records.cases
    assert np.median(np.abs(case["skew"])) < AHEAD / 1000
    assert (np.array(case["t_global"]) >= case["t_max"]).all()
    assert np.median(case["t_global"]) < AHEAD / 1000


@pytest.mark.parametrize("family", FAMILIES)
def test_windows_open_on_the_common_clock(family: str, tmp_path: Path) -> None:
    """A rank that took the opening for a time of its own clock would be late always, or wait 1000 s.

    Where others keep the cores busy, all trials of a launch may be late, but not those of every launch.
    """
    options = ("--sync", "window", "--trials", "300")
    statuses = (launched(family, tmp_path / "a", *options).status for _ in range(5))
    assert 0 in statuses
    (case,) = read(tmp_path / "a").cases
    in_time = np.array(case["skew"])[np.array(case["late"]) == 0]
    assert in_time.size > 0
    assert np.median(in_time) < AHEAD / 1000


@pytest.mark.parametrize("family", FAMILIES)
def test_offset_of_a_clock_that_drifts_is_followed(family: str, tmp_path: Path) -> None:
    """The second clock runs faster by half: an offset of the start is wrong by half the time since then.

    Where others keep the cores busy, the offsets of a launch may be poor, but not those of every launch.
    """
    sizes = ",".join(str(8 * number) for number in range(1, 101))

    def share_of_time() -> float:
        """The skew of the last cases, in the time that the launch had taken until then."""
        file = tmp_path / "a"
        records = on_two_hosts(family, file, "--trials", "500", sizes=sizes, drift=0.5)
        assert 0 < records.end["clock_deviation"] < AHEAD / 1000
        skew = np.median([np.median(case["skew"]) for case in records.cases[-10:]])
        return float(skew / records.end["elapsed"])

    assert any(share_of_time() < 0.1 for _ in range(5))


def expected(*rows: tuple[int, ...]) -> list[int]:
    """For each row, when, value and error of the first offset and of the last, and now: the offset."""
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    driver = program("mpich").build / "offset_driver"
    done = subprocess.run([driver], input=text, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def test_offset_is_expected_to_go_on_as_it_did() -> None:
    first, last = (1000, 50, 1), (3000, 60, 1)  # 5 in 1,000
    assert expected(first + last + (5000,)) == [70]
    assert expected(first + last + (2000,)) == [55]
    assert expected((1000, -50, 1, 3000, -60, 1, 5000)) == [-70]


def test_what_errors_account_for_is_no_drift() -> None:
    for change in (20, -20):
        assert expected((0, 0, 4, 1000, change, 6, 9000)) == [change]
        assert expected((0, 0, 4, 1000, change, 5, 9000)) == [9 * change]
    assert expected((0, 0, 0, 0, 0, 0, 9000), (7, 3, 5, 7, 3, 5, 9000)) == [0, 3]


LARGE = st.integers(min_value=-(2**60), max_value=2**60)
DRIFT = st.floats(min_value=-1e-3, max_value=1e-3)
ERROR = st.integers(min_value=0, max_value=10**7)
TIME = st.integers(min_value=1, max_value=10**12)
SHARE = st.floats(min_value=-1, max_value=1)  #: of the bound on an error


@given(LARGE, DRIFT, ERROR, SHARE, ERROR, SHARE, TIME, TIME)
@example(0, -0.0005838, 0, 0, 9109, -1, 3426, 10**9)
@settings(max_examples=100)
def test_a_rate_is_at_most_twice_the_true_one(
    start: int, drift: float, error1: int, share1: float, error2: int, share2: float, passed: int, later: int
) -> None:
    """However wrong the two measurements are, within the bounds on their errors."""
    first, last = int(share1 * error1), int(drift * passed) + int(share2 * error2)
    row = (start, first, error1, start + passed, last, error2, start + passed + later)
    moved = abs(expected(row)[0] - last)
    assert moved <= (2 * abs(drift) + 2 / passed) * later + 1  # measured in whole ns
