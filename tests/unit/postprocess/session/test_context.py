"""What is said of the plan before it is run."""

from __future__ import annotations

from dataclasses import replace

from postprocess.session.context import describe_left_out_sizes
from tests.support.factories.launch import planned


def test_sizes_that_mpicost_leaves_out_are_named_and_no_others():
    mpicost = planned()
    assert mpicost.program == "mpicost" and mpicost.cases
    said = "--bytes 1,4: not measured by mpicost, whose messages are 8-byte numbers"
    assert describe_left_out_sizes([mpicost], [0, 1, 4, 8]) == [said]
    assert describe_left_out_sizes([mpicost], [0, 8]) == []
    assert describe_left_out_sizes([replace(mpicost, program="osu")], [1, 4]) == []
