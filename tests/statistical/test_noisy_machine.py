"""A simulated machine with noise of sessions and launches: the nights of the package keep what they promise."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from postprocess.analyses.selftest.score import predict_verdict
from tests.statistical.simulated_machine import (
    BURSTS,
    NIGHTS,
    PLANTS,
    build_bench,
    select_rows,
    spend_nights,
    spend_planted_nights,
)


def test_what_is_beyond_called_and_caught_is_what_was_predicted(tmp_path: Path):
    """Five bursts, sixty nights and three plants in single routines, by the package's own functions."""
    bench = build_bench(tmp_path, "measured")
    nights = spend_nights(bench)
    assert (len(nights), len(list((tmp_path / "store").iterdir())) > NIGHTS) == (60, True)
    reference = bench.catalog.reference(bench.machine.cases[0])
    assert (reference.sessions, reference.told_by > BURSTS + 40) == (BURSTS, True)

    rows = select_rows(nights, target=False)
    predicted = sum(predict_verdict(row, 0.0)[0] for row in rows)
    assert predicted / 1.5 < sum(row.screened for row in rows) < 1.5 * predicted
    assert sum(row.regressed for row in rows) <= 1  # 0.2 are predicted

    for by in PLANTS:
        planted = spend_planted_nights(bench, by, NIGHTS + 1)
        targets = select_rows(planted, target=True)
        chances = np.array([predict_verdict(row, math.log1p(by))[1] for row in targets])
        caught = sum(row.regressed for row in targets)
        room = 3 * math.sqrt(float(np.sum(chances * (1 - chances))) + 1)
        assert abs(caught - chances.sum()) < room
        assert sum(row.regressed for row in select_rows(planted, target=False)) <= 1
