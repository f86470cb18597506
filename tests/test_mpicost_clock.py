"""The common clock of mpicost across hosts, on two hosts made of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpicost_program import FAMILIES, TINY, Records, library, preload, program, read

pytestmark = pytest.mark.mpi
AHEAD = 1000.0  #: seconds by which the second host's clock is ahead


def on_two_hosts(family: str, file: Path, *options: str) -> Records:
    wrapper = preload(library(family, "two_hosts"))
    selected = (*TINY, "--routine", "bcast", "--bytes", "8", "--output", str(file))
    ended = program(family).run(2, *selected, *options, wrapper=wrapper)
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
    """A rank that took the opening for a time of its own clock would be late always, or wait 1000 s."""
    (case,) = on_two_hosts(family, tmp_path / "a", "--sync", "window", "--trials", "300").cases
    in_time = np.array(case["skew"])[np.array(case["late"]) == 0]
    assert in_time.size > 0
    assert np.median(in_time) < AHEAD / 1000
