"""What Python knows of a routine of mpicost is what the program's own table says."""

from itertools import product

import pytest

from postprocess.model.case import Case
from postprocess.model.routines import mpicost
from tests.support.suite_source import Entry, read_entries, read_families

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
    "all_at_once": lambda p: p * p,
    "root_all_at_once": lambda p: p,
    "others_all_at_once": lambda p: (p - 1) * p,
    "root_all_others_one": lambda p: 2 * p - 1,
    # a vector of one block, whose shares are rounded up by less than an element each
    "all_shares": lambda p: p,
    "root_shares": lambda p: 1,
    "others_shares": lambda p: p - 1,
    "root_shares_others_share": lambda p: 2,
    "root_one_others_part": lambda p: 2,
}


def pairs() -> list[tuple[mpicost.Routine, Entry]]:
    return [(routine, ENTRIES[routine.name]) for routine in mpicost.ROUTINES]


def test_both_tables_have_the_same_routines_in_the_same_order():
    assert [routine.name for routine in mpicost.ROUTINES] == list(ENTRIES)


def test_a_routine_is_what_the_program_times():
    for routine, entry in pairs():
        untried = routine.name == mpicost.TOURNAMENT or routine.on_request  # they are in no self-test
        assert set(routine.calls) == (frozenset() if untried else entry.calls)
        assert routine.computes == (entry.combine != "NOTHING")
        assert routine.scaling.name == entry.scaling
        assert routine.in_pairs == (entry.pairing in ("ROOT", "ROUND"))
        with_root = any(each.startswith(("root_", "others_")) for each in (entry.sends, entry.receives))
        assert routine.rooted == with_root


def test_a_test_of_the_papers_has_a_size_in_them():
    luecke = read_families()["luecke"]
    for routine, entry in pairs():
        assert bool(routine.test) == (routine.name in luecke)
        operator = "" if entry.combine == "NOTHING" else f"_{entry.combine.lower()}"
        assert routine.test in ("", routine.name.removesuffix(operator))


def test_a_control_calls_no_mpi_and_has_one_size():
    for routine, entry in pairs():
        assert bool(routine.control_bytes) == entry.operation.startswith("alone_")
        if routine.control_bytes:
            assert entry.sizes == str(routine.control_bytes)
            assert mpicost.CONTROLS[routine.name] == [routine.control_bytes]


def test_a_family_of_compositions_has_them_all_beside_what_they_replace():
    in_python = {routine.name for routine in mpicost.ROUTINES if routine.family == mpicost.COMPOSITIONS}
    replaced = {routine.replaces for routine in mpicost.ROUTINES if routine.replaces}
    assert set(read_families()["compositions"]) == in_python | replaced
    assert set(mpicost.FAMILIES["compositions"]) == in_python
    assert all(ENTRIES[name].name for name in replaced)


@pytest.mark.parametrize("family", ["swaps", "sends"])
def test_other_families_are_the_same_in_both_tables(family: str):
    assert tuple(read_families()[family]) == mpicost.FAMILIES[family]


def test_no_memory_of_a_routine_is_forgotten():
    """Where processes share a machine's memory, too little would end in a crash; a little more does no harm."""
    for (routine, entry), processes in product(pairs(), (2, 3, 64)):
        needed = BLOCKS[entry.sends](processes) + BLOCKS[entry.receives](processes)
        known = routine.count_blocks(processes)
        assert needed <= known <= 2 * needed + 2 * processes + processes**2, (routine.name, processes)


def test_an_unknown_routine_is_told_where_to_enter_it():
    assert mpicost.find_routine("bcast").name == "bcast"
    with pytest.raises(ValueError, match=r"^bcst: no routine of mpicost; enter it in .*mpicost"):
        mpicost.find_routine("bcst")


def test_mpicost_is_told_each_size_once_the_empty_message_too_and_none_of_a_barrier():
    cases = [
        Case("s", "p", "mpi", "mpicost", routine, peer, "warm", "barrier", 4, 4, size)
        for routine, peer, size in (
            *(("bcast", 0, 0), ("barrier", 0, 0), ("bcast", 0, 8)),
            *(("pingpong", 1, 8), ("pingpong", 3, 8), ("gather", 0, 0)),
        )
    ]
    assert mpicost.format_routines(cases) == "bcast:0:8,barrier,pingpong:8,gather:0"
