"""Sizes of Taboada et al.: n of the paper as bytes of mpicost."""

import pytest

from postprocess.cli.request import choose_family
from postprocess.model.options import check_choice
from postprocess.model.routines import taboada
from postprocess.model.routines.mpicost import FAMILIES, SWAPS
from postprocess.model.routines.mpicost import ROUTINES as KNOWN


def test_eleven_primitives_at_zero_and_the_powers_of_four():
    assert len(taboada.ROUTINES) == len({*taboada.ROUTINES}) == 11
    assert {*taboada.ROUTINES} <= {routine.name for routine in KNOWN}
    assert taboada.TOTALS[:4] == (0, 1, 4, 16) and taboada.TOTALS[-1] == 2**20


@pytest.mark.parametrize("processes", [2, 4, 6])
def test_what_all_have_together_is_shared_evenly_or_left_out(processes: int):
    for routine in taboada.SHARED:
        sizes = taboada.convert_totals(routine, taboada.TOTALS, processes)
        assert 0 in sizes and all(size * processes in taboada.TOTALS for size in sizes)
    assert taboada.convert_totals("bcast", taboada.TOTALS, processes) == [*taboada.TOTALS]


def test_the_command_line_chooses_family_routines_and_synchroniser():
    choice: dict = {}
    choose_family(choice, taboada.TABOADA)
    assert choice == {"family": taboada.TABOADA, "routines": [*taboada.MEASURED], "sync": "barrier"}
    named = {"routines": ["bcast"], "sync": "dissemination"}
    choose_family(named, taboada.TABOADA)
    assert named == {"family": taboada.TABOADA, "routines": ["bcast"], "sync": "dissemination"}
    check_choice(choice)
    others: dict = {}
    choose_family(others, SWAPS)
    assert others == {"routines": [*FAMILIES[SWAPS]]}


def test_numbers_are_whole_and_a_barrier_has_no_size():
    assert taboada.convert_totals("allreduce_sum", taboada.TOTALS, 4)[:3] == [0, 16, 64]
    assert taboada.convert_totals("reduce_scatter_sum", taboada.TOTALS, 4)[:3] == [0, 16, 64]
    assert taboada.convert_totals("scatter", taboada.TOTALS, 6) == [0]  # no power of four is a multiple of six
    assert taboada.convert_totals("barrier", taboada.TOTALS, 4) == [0]
    assert {*taboada.WHOLE} & {*taboada.SHARED} == set()
