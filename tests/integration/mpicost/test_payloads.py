"""Payloads of any number of bytes, none included: single routines, operations put together, swaps and sends."""

from pathlib import Path

import pytest

from postprocess.model.routines.mpicost import FAMILIES as GROUPS
from postprocess.model.routines.mpicost import ROUTINES, SENDS, SWAPS, find_routine
from postprocess.parsers.mpicost import read_launch
from tests.support.mpicost import FAMILIES, library, preload, program

SHORT = ("--cache", "warm", "--trials", "3")
MOVERS = [routine.name for routine in ROUTINES if not routine.computes and routine.name != "barrier"]
REDUCTIONS = [name for name in GROUPS["compositions"] if find_routine(name).computes]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_what_computes_nothing_carries_any_number_of_bytes(family: str, processes: int, tmp_path):
    """1,001 bytes are no multiple of the processes either; 24 of 3 are, of doubles."""
    sizes = [0, 1, 7, 24, 1001]
    asked = [*(f"{name}:{':'.join(map(str, sizes))}" for name in MOVERS), *REDUCTIONS]
    file = tmp_path / "out.jsonl"
    program(family).measure(processes, file, *SHORT, "--routine", ",".join(asked))
    records = read_launch(file).cases
    assert not any(record.wrong for record in records)
    found = {(record.routine, record.bytes) for record in records}
    paired = (routine.name for routine in ROUTINES if routine.in_pairs or routine.family == SWAPS)
    lonely = {*paired} if processes == 1 else set()
    assert {(name, size) for name in MOVERS if name not in lonely for size in sizes} <= found
    assert {*REDUCTIONS} <= {name for name, _ in found}


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_bytes_are_noticed(family: str, tmp_path: Path) -> None:
    """An allgather that does nothing leaves what no sender has."""
    ended = program(family).run(
        *(2, *SHORT, "--routine", "allgather:7", "--output", str(tmp_path / "out.jsonl")),
        wrapper=preload(library(family, "wrong_data")),
        variables={"PLUMBLINE_FAULT": "skip", "PLUMBLINE_FAULT_AFTER": "1"},
    )
    assert ended.status == 1
    assert all("allgather peer 0 bytes 7: " in line for line in ended.complaints)
    assert all("index 0: 255 " in line and "in trial 1" in line for line in ended.complaints)


def test_a_family_lists_operations_beside_what_they_are_put_together_from() -> None:
    ended = program("mpich").run(2, "--list", "--family", "compositions")
    listed = {line.split()[0] for line in ended.output.splitlines()}
    expected = {*GROUPS["compositions"], *(routine.replaces for routine in ROUTINES if routine.replaces)}
    assert listed == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_every_experiment_is_measured_and_right_by_every_protocol(family, processes, tmp_path):
    """With an odd number of processes one has no partner, but in the ring."""
    file = tmp_path / "out.jsonl"
    program(family).measure(*(processes, file, *SHORT, "--family", "swaps", "--bytes", "0,7,100000"))
    cases = read_launch(file).cases
    assert not any(case.wrong for case in cases)
    found = {(case.routine, case.bytes) for case in cases}
    assert found == {(name, size) for name in GROUPS[SWAPS] for size in (0, 7, 100_000)}


@pytest.mark.parametrize("family", FAMILIES)
def test_modes_of_sending_are_measured_and_right(family: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    program(family).measure(*(2, file, *SHORT, "--family", "sends", "--bytes", "0,8,4096,1000000"))
    cases = read_launch(file).cases
    assert not any(case.wrong for case in cases)
    assert {case.routine for case in cases} == {*GROUPS[SENDS]} and len(cases) == 12


def test_room_for_buffered_sends_is_a_part_of_what_must_fit() -> None:
    asked = ("--bytes", "1000000", "--memory-limit", "4000000")
    fits = program("mpich").run(2, *SHORT, "--routine", "pingpong_standard", *asked)
    assert fits.status == 0, fits.complaints
    ended = program("mpich").run(2, *SHORT, "--routine", "pingpong_buffered", *asked)
    assert ended.status == 2
    assert "pingpong_buffered with 1000000 bytes does not fit" in ended.complaints[0]
