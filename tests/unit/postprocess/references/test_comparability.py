"""Conditions of several launches that one calibration may have, and which it may not."""

from __future__ import annotations

import pytest

from postprocess.model.conditions import circumstances_of
from postprocess.references.comparability import join_conditions
from tests.support.factories.record import bound_run


def test_a_calibration_has_the_bindings_of_all_its_layouts():
    two, four = (circumstances_of(bound_run(*cpus)) for cpus in (["0", "1"], ["0-3"] * 4))
    found = join_conditions(two, four)
    expected = {"2x2": "2 ranks of 1 CPU", "4x4": "4 ranks of 4 CPUs shared by 4"}
    assert found["binding"] == expected
    assert join_conditions({}, found) == join_conditions(found, {}) == found


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (bound_run("0-1", "0-1"), "binding"),
        (bound_run("0", "1", compiler="gcc 13"), "compiler"),
        (bound_run("0", "1", mpi_library="MPICH Version: 5.0.3"), "mpi_library"),
    ],
)
def test_launches_under_other_conditions_make_no_calibration(other, name):
    with pytest.raises(ValueError, match=name):
        join_conditions(circumstances_of(bound_run("0", "1")), circumstances_of(other))
