"""What the synchroniser leaves in a time is told where it is much of it."""

from __future__ import annotations

import polars as pl

from postprocess.extensions.papers.common.skew import build_skew_table, read_skews
from tests.support.factories import papers as samples
from tests.support.factories.papers import arrange_results


def test_a_short_call_whose_start_took_long_is_told_and_no_other():
    planned = samples.cases(["torus"], ["simgrid-mpich"], [8, 32], ["bcast", "scan_sum", "pingpong"])
    night = samples.session(planned)
    measured = arrange_results(night.results)
    times = {each.case.key: each.value for each in night.results}
    waits = {"bcast": 0.5, "scan_sum": 0.2, "pingpong": 1.0}
    skews = {case.key: waits[case.routine] * times[case.key] for case in planned}
    table = build_skew_table(measured, {"": skews})
    assert table
    (row,) = table.rows
    assert row[:6] == ("torus", "simgrid-mpich", "warm, dissemination", "bcast", "8 B", "32")
    assert row[8] == "0.50"
    assert build_skew_table(measured, {}) is None


def test_the_skew_of_a_case_is_the_median_of_its_counted_trials():
    frame = pl.DataFrame(
        {
            "session": ["a", "a", "b"],
            "key": ["x", "x", "x"],
            "skew": [[9.0, 1.0, 2.0], [9.0, 3.0, 8.0], [5.0, 5.0, 5.0]],
            "late": [[False] * 3, [False, False, True], [False] * 3],
            "dropped": [1, 1, 1],
        }
    )
    assert read_skews(frame, "a") == {"x": 2.0}
    assert read_skews(pl.DataFrame(), "a") == {}
