"""Sizes of Taboada et al.: n of the paper as bytes of mpicost."""

import pytest

from postprocess.cli.request import choose_family
from postprocess.model.options import check_choice
from postprocess.model.routines.mpicost import FAMILIES, SWAPS
from postprocess.model.routines.mpicost import ROUTINES as KNOWN
from postprocess.model.routines.taboada import (
    MEASURED,
    ROUTINES,
    SHARED,
    TABOADA,
    TOTALS,
    WHOLE,
    convert_totals,
)


def test_eleven_primitives_at_zero_and_the_powers_of_four():
    assert len(ROUTINES) == len({*ROUTINES}) == 11
    assert {*ROUTINES} <= {each.name for each in KNOWN}
    assert TOTALS[:4] == (0, 1, 4, 16) and TOTALS[-1] == 2**20


@pytest.mark.parametrize("processes", [2, 4, 6])
def test_what_all_have_together_is_shared_evenly_or_left_out(processes: int):
    for routine in SHARED:
        sizes = convert_totals(routine, TOTALS, processes)
        assert 0 in sizes and all(size * processes in TOTALS for size in sizes)
    assert convert_totals("bcast", TOTALS, processes) == [*TOTALS]


def test_the_command_line_chooses_family_routines_and_synchroniser():
    choice: dict = {}
    choose_family(choice, TABOADA)
    assert choice == {"family": TABOADA, "routines": [*MEASURED], "sync": "barrier"}
    named = {"routines": ["bcast"], "sync": "dissemination"}
    choose_family(named, TABOADA)
    assert named == {"family": TABOADA, "routines": ["bcast"], "sync": "dissemination"}
    check_choice(choice)
    others: dict = {"routines": ["bcast"]}
    choose_family(others, SWAPS)
    assert others == {"routines": ["bcast", *FAMILIES[SWAPS]]}


def test_numbers_are_whole_and_a_barrier_has_no_size():
    assert convert_totals("allreduce_sum", TOTALS, 4)[:3] == [0, 16, 64]
    assert convert_totals("reduce_scatter_sum", TOTALS, 4)[:3] == [0, 16, 64]
    assert convert_totals("scatter", TOTALS, 6) == [0]  # no power of four is a multiple of six
    assert convert_totals("barrier", TOTALS, 4) == [0]
    assert {*WHOLE} & {*SHARED} == set()
