"""What is said of the plan before it is run."""

from __future__ import annotations

from dataclasses import replace

from postprocess.base.progress import Progress
from postprocess.session.lifecycle.context import describe_left_out_sizes, report_plan
from tests.support.factories.launch import planned


def test_sizes_that_mpicost_leaves_out_are_named_and_no_others():
    mpicost = planned()
    assert mpicost.program == "mpicost" and mpicost.cases
    said = "--bytes 1,4: not measured of reduce_sum, which compute with 8-byte numbers"
    chosen = {"sizes": [0, 1, 4, 8], "routines": ["bcast", "reduce_sum"]}
    assert describe_left_out_sizes([mpicost], chosen) == [said]
    assert describe_left_out_sizes([mpicost], {**chosen, "routines": ["bcast"]}) == []
    (line,) = describe_left_out_sizes([mpicost], {"sizes": [4]})
    assert "scan_max" in line and "gather" not in line and "compositions" not in line
    assert describe_left_out_sizes([mpicost], {"sizes": [0, 8]}) == []
    assert describe_left_out_sizes([replace(mpicost, program="osu")], chosen) == []


def test_a_session_says_what_it_leaves_out_before_it_runs(capsys):
    report_plan([planned()], Progress(), {"sizes": [4], "routines": ["reduce_sum"]})
    assert "--bytes 4: not measured of reduce_sum" in capsys.readouterr().out
