"""A comparison of two versions of an MPI, for tests that run, store and judge it."""

from __future__ import annotations

from postprocess.features.compare.data import ComparedSide, ComparisonHeader

SIDES = (ComparedSide("a", "mpich-4_3_2"), ComparedSide("b", "mpich-5_0_2"))
FACTS = (("MPI library", "4.3.2", "5.0.2"),)
HEADER = ComparisonHeader(
    *("local", *SIDES, {}, (0.05, 0.05, 0.05), None, False, 7, FACTS),
    *("2026-11-23T00:00:00Z", ("./plumbline", "compare")),
)
