"""Messages both ways: who swaps with whom, by which protocol; and ping-pong by modes of sending."""

from __future__ import annotations

from pathlib import Path

import pytest

from postprocess.model.routines.mpicost import FAMILIES as GROUPS
from postprocess.model.routines.mpicost import SENDS, SWAPS
from postprocess.parsers.mpicost import read_launch
from tests.support.mpicost import FAMILIES, program

SHORT = ("--cache", "warm", "--trials", "3")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_every_experiment_is_measured_and_right_by_every_protocol(family, processes, tmp_path):
    """With an odd number of processes one has no partner, but in the ring."""
    file = tmp_path / "out.jsonl"
    program(family).measure(*(processes, file, *SHORT, "--family", "swaps", "--bytes", "0,7,100000"))
    cases = read_launch(file).cases
    assert not any(each.wrong for each in cases)
    found = {(each.routine, each.bytes) for each in cases}
    assert found == {(name, size) for name in GROUPS[SWAPS] for size in (0, 7, 100_000)}


def test_one_process_has_nobody_to_swap_with() -> None:
    ended = program("mpich").run(1, *SHORT, "--family", "swaps")
    assert (ended.status, len(ended.complaints)) == (2, 1)
    assert "swap_first_sendrecv needs 2 processes" in ended.complaints[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_modes_of_sending_are_measured_and_right(family: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    program(family).measure(*(2, file, *SHORT, "--family", "sends", "--bytes", "0,8,4096,1000000"))
    cases = read_launch(file).cases
    assert not any(each.wrong for each in cases)
    assert {each.routine for each in cases} == {*GROUPS[SENDS]} and len(cases) == 12


def test_room_for_buffered_sends_is_a_part_of_what_must_fit() -> None:
    asked = ("--bytes", "1000000", "--memory-limit", "4000000")
    fits = program("mpich").run(2, *SHORT, "--routine", "pingpong_standard", *asked)
    assert fits.status == 0, fits.complaints
    ended = program("mpich").run(2, *SHORT, "--routine", "pingpong_buffered", *asked)
    assert ended.status == 2
    assert "pingpong_buffered with 1000000 bytes does not fit" in ended.complaints[0]
