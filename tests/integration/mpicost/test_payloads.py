"""Payloads of any number of bytes, none included; and operations put together from other calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from postprocess.model.routines.mpicost import FAMILIES as GROUPS
from postprocess.model.routines.mpicost import ROUTINES, SWAPS, find_routine
from postprocess.parsers.mpicost import read_launch
from tests.support.mpicost import FAMILIES, library, preload, program

SHORT = ("--cache", "warm", "--trials", "3")
MOVERS = [each.name for each in ROUTINES if not each.computes and each.name != "barrier"]
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
    assert not any(each.wrong for each in records)
    found = {(each.routine, each.bytes) for each in records}
    paired = (each.name for each in ROUTINES if each.in_pairs or each.family == SWAPS)
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
    expected = {*GROUPS["compositions"], *(each.replaces for each in ROUTINES if each.replaces)}
    assert listed == expected
