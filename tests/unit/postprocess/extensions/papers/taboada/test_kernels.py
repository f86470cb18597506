"""Kernels of a session in the tables of Taboada et al."""

from __future__ import annotations

import pytest

from postprocess.extensions.papers.common.printed import load_history
from postprocess.extensions.papers.taboada.kernels import (
    build_kernel_tables,
    collect_kernels,
    describe_missing_kernels,
)
from postprocess.model.case import Case
from postprocess.model.routines.kernels import BYTES
from postprocess.model.verdict import CaseResult, Verdict


def result(layout: str, seconds: float, name: str = "lufact_A", verdict: Verdict = Verdict.PASS):
    processes, per_node = map(int, layout.split("x"))
    case = Case(
        *("s", "cpu", "mpi", "kernels", name, 0, "warm", "dissemination"), *(processes, per_node, BYTES[name])
    )
    return CaseResult(case, verdict, value=seconds)


RESULTS = [
    result("1x1", 8.0),
    result("1x1", 6.0, "lufact_A_compute"),
    result("4x1", 2.5),
    result("4x1", 2.0, "lufact_A_compute"),
    result("4x2", 2.0),
    result("8x2", 1.25),
    result("8x1", 9.0, verdict=Verdict.INCORRECT),
    result("64x16", 0.5),
]


@pytest.fixture(scope="module")
def tables():
    found = build_kernel_tables(collect_kernels({"night": RESULTS}), load_history())
    return {
        each.title: [dict(zip((*each.labels, *each.columns), row, strict=True)) for row in each.rows]
        for each in found
    }


def test_speed_up_and_efficiency_are_of_one_process(tables):
    found = tables["Kernels: speed-up and efficiency (Fig. 5)"]
    rows = {(row["processes"], row["per node"]): row for row in found}
    assert ("8", "1") not in rows  # a wrong result is none
    row = rows["4", "1"]
    assert (row["kernel"], row["class"]) == ("lufact", "A")
    assert (row["speed-up"], row["efficiency"]) == ("3.2", "80%")
    assert (row["speed-up without return"], row["efficiency without return"]) == ("3", "75%")
    assert row["share of the return"] == "20%"


def test_placements_stand_beside_those_in_print(tables):
    titles = [title for title in tables if "Table" in title]
    assert [title[-8:-1] for title in titles] == ["Table 6", "Table 7"]
    (six,), seven = (tables[title] for title in titles)
    assert (six["reading"], six["layouts"], six["ratio"]) == ("as printed", "4x1 over 4x2", "1.25")
    assert six["in print, ScaMPI"] == "0.93"
    found = {(row["reading"], row["layouts"]): row for row in seven}
    printed = found["as printed", "4x1 over 8x2"]
    assert (printed["ratio"], printed["in print, ScaMPI"]) == ("2.00", "0.92")
    today = found["today", "4x1 over 64x16"]
    assert (today["ratio"], today["in print, ScaMPI"]) == ("5.00", "-")


def test_what_is_not_measured_is_told():
    assert describe_missing_kernels({}).startswith("Kernels: in a session of their own: ./plumbline run")
    one = collect_kernels({"night": [result("1x1", 1.0), result("2x2", 0.5)]})
    told = describe_missing_kernels(one)
    assert "table 6" in told and "table 7" not in told and "table 8" in told
