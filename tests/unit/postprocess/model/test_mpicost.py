"""What Python knows of a routine of mpicost is what the program's own table says."""

from __future__ import annotations

import pytest

from postprocess.model.case import Case
from postprocess.model.mpicost import (
    CONTROLS,
    ROUTINES,
    TOURNAMENT,
    Routine,
    find_routine,
    format_routines,
)
from tests.support.suite_source import Entry, read_entries

ENTRIES = {each.name: each for each in read_entries()}
#: Blocks on all of so many processes, by the functions that count them for one.
BLOCKS = {
    "none": lambda p: 0,
    "one": lambda p: p,
    "all": lambda p: p * p,
    "root_one": lambda p: 1,
    "root_all": lambda p: p,
    "others_one": lambda p: p - 1,
    "pair_one": lambda p: p,
}
WITH_ROOT = {"root_one", "root_all", "others_one"}


def pairs() -> list:
    return [pytest.param(each, ENTRIES.get(each.name), id=each.name) for each in ROUTINES]


def test_both_tables_have_the_same_routines_in_the_same_order():
    assert [each.name for each in ROUTINES] == list(ENTRIES)


@pytest.mark.parametrize(("routine", "entry"), pairs())
def test_a_routine_is_what_the_program_times(routine: Routine, entry: Entry):
    delayed = entry.calls if routine.name != TOURNAMENT else frozenset()  # it is in no self-test
    assert set(routine.calls) == delayed
    assert routine.scaling.name == entry.scaling
    assert routine.in_pairs == (entry.pairing != "NONE")
    assert routine.rooted == bool(WITH_ROOT & {entry.sends, entry.receives})


@pytest.mark.parametrize(("routine", "entry"), pairs())
def test_a_test_of_the_papers_has_a_size_in_them(routine: Routine, entry: Entry):
    both = entry.sizes[0]
    assert bool(routine.test) == (both != "NULL")
    operator = "" if entry.combine == "NOTHING" else f"_{entry.combine.lower()}"
    assert routine.test in ("", routine.name.removesuffix(operator))


@pytest.mark.parametrize(("routine", "entry"), pairs())
def test_a_control_calls_no_mpi_and_has_one_size(routine: Routine, entry: Entry):
    assert bool(routine.control_bytes) == entry.operation.startswith("alone_")
    if routine.control_bytes:
        assert entry.sizes[-1] == f'"{routine.control_bytes}"'
        assert CONTROLS[routine.name] == [routine.control_bytes]


@pytest.mark.parametrize("processes", [2, 3, 64])
@pytest.mark.parametrize(("routine", "entry"), pairs())
def test_no_memory_of_a_routine_is_forgotten(routine: Routine, entry: Entry, processes: int):
    """Where processes share a machine's memory, too little would end in a crash; a little more does no harm."""
    needed = BLOCKS[entry.sends](processes) + BLOCKS[entry.receives](processes)
    known = routine.count_blocks(processes)
    assert needed <= known
    assert known <= 2 * needed + 2 * processes + processes**2


def test_an_unknown_routine_is_told_where_to_enter_it():
    assert find_routine("bcast").name == "bcast"
    with pytest.raises(ValueError, match=r"^bcst: no routine of mpicost; enter it in .*mpicost"):
        find_routine("bcst")


def test_mpicost_is_told_each_size_once_the_empty_message_too_and_none_of_a_barrier():
    cases = [
        Case("s", "p", "mpi", "mpicost", routine, peer, "warm", "barrier", 4, 4, size)
        for routine, peer, size in (
            *(("bcast", 0, 0), ("barrier", 0, 0), ("bcast", 0, 8)),
            *(("pingpong", 1, 8), ("pingpong", 3, 8), ("gather", 0, 0)),
        )
    ]
    assert format_routines(cases) == "bcast:0:8,barrier,pingpong:8,gather:0"
