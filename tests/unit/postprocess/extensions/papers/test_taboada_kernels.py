"""Kernels of a session in the tables of Taboada et al."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.formats import NOT_PRINTED
from postprocess.extensions.papers.printed import load_history
from postprocess.extensions.papers.taboada_kernels import (
    Calls,
    MeasuredKernels,
    build_kernel_tables,
    build_model_comparison,
    collect_kernels,
    describe_missing_kernels,
    describe_missing_models,
    list_calls,
)
from postprocess.model.case import Case
from postprocess.model.routines.kernels import BYTES
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.results.summary import SummaryLaunch
from tests.support.factories.papers import arrange_results
from tests.support.factories.summary import summarise


def result(layout: str, seconds: float, name: str = "lufact_A", verdict: Verdict = Verdict.PASS):
    processes, per_node = map(int, layout.split("x"))
    case = Case(
        *("s", "cpu", "mpi", "kernels", name, 0, "warm", "dissemination"), *(processes, per_node, BYTES[name])
    )
    return CaseResult(case, verdict, value=seconds)


def collect(folder: Path, results: Sequence[CaseResult], dense: Sequence[str] = ()):
    """The kernels of a session; layouts in ``dense`` had two ranks a core."""
    launches = [
        SummaryLaunch(
            *("kernels", "", 1, "mpi", "s:cpu", *map(int, layout.split("x")), 1, 1.0, "ok", "", ""),
            ranks_per_core=2,
        )
        for layout in dense
    ]
    return collect_kernels([replace(summarise(folder, results=results), launches=tuple(launches))])


def tabulate(measured: MeasuredKernels) -> dict[str, list[dict[str, str]]]:
    return {
        table.title: [dict(zip((*table.labels, *table.columns), row, strict=True)) for row in table.rows]
        for table in build_kernel_tables(measured, load_history())
    }


RESULTS = [
    result("1x1", 8.0),
    result("1x1", 6.0, "lufact_A_compute"),
    result("4x1", 2.5),
    result("4x1", 2.0, "lufact_A_compute"),
    result("4x2", 2.0),
    result("8x2", 1.25),
    result("8x1", 9.0, verdict=Verdict.INCORRECT),
    result("16x4", 2.5),
    result("64x16", 0.5),
    result("128x32", 0.4),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return tabulate(collect(tmp_path_factory.mktemp("night"), RESULTS, dense=("16x4", "128x32")))


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
    assert [title[-8:-1] for title in titles] == ["Table 6", "Table 7", "Table 8"]
    (six,), seven, eight = (tables[title] for title in titles)
    assert (six["reading"], six["layouts"], six["ratio"]) == ("as printed", "4x1 over 4x2", "1.25")
    assert six["in print, ScaMPI"] == "0.93"
    found = {(row["reading"], row["layouts"]): row for row in seven}
    printed = found["as printed", "4x1 over 8x2"]
    assert (printed["ratio"], printed["in print, ScaMPI"]) == ("2.00", "0.92")
    today = found["today", "4x1 over 64x16"]  # all cores, and not two ranks on each
    assert (today["ratio"], today["in print, ScaMPI"]) == ("5.00", "-")
    found = {row["reading"]: row for row in eight}
    printed, today = found["as printed"], found["today"]
    assert (printed["layouts"], printed["ratio"]) == ("8x2 over 16x4", "0.50")
    assert printed["in print, ScaMPI"] == "0.61"
    assert (today["layouts"], today["ratio"]) == ("64x16 over 128x32", "1.25")


def test_table_8_is_empty_without_hardware_threads(tmp_path):
    """Twice as many ranks on a node are none on hardware threads."""
    found = tabulate(collect(tmp_path, [result("1x1", 8.0), result("8x2", 1.25), result("16x4", 2.5)]))
    (title,) = (title for title in found if "Table 8" in title)
    (row,) = found[title]
    assert row.pop("reading") == "today"
    assert (row.pop("machine"), row.pop("MPI")) == ("cpu", "mpi")
    assert {*row.values()} == {NOT_PRINTED}


def test_on_one_node_table_7_says_that_it_is_the_speed_up(tmp_path):
    for layouts, told in ((("1x1", "2x2"), True), (("4x1", "8x2"), False)):
        measured = collect(tmp_path, [result(layout, 1.0) for layout in layouts])
        (seven,) = (
            table for table in build_kernel_tables(measured, load_history()) if "Table 7" in table.title
        )
        assert len(seven.rows) == 1
        assert any("one node, where the ratio is the speed-up" in note for note in seven.notes) is told


def test_what_is_not_measured_is_told(tmp_path):
    assert describe_missing_kernels(MeasuredKernels()).startswith(
        "Kernels: in a session of their own: ./plumbline run"
    )
    one = collect(tmp_path, [result("1x1", 1.0), result("2x2", 0.5)])
    told = describe_missing_kernels(one)
    assert "table 6" in told and "table 7" not in told and "table 8" in told


def test_kernels_stand_beside_what_the_models_predict(tmp_path):
    """LUFact A: 500 columns and as many pivots, and the half of the matrix that is returned."""
    calls = [Calls("bcast", 4008, 500), Calls("bcast", 4, 500), Calls("send", 1_002_000, 1)]
    assert list_calls("lufact", "A", 2) == calls
    assert list_calls("sor", "A", 4) == [Calls("send", 8000, 400), Calls("send", 2_000_000, 3)]
    assert list_calls("sparse", "A", 1) == []
    t0, tb = 4e-6, 2e-9
    sent = [
        CaseResult(
            Case("s", "cpu", "mpi", "mpicost", name, int(name == "pingpong"), "warm", "barrier", 2, 1, size),
            Verdict.PASS,
            value=t0 + tb * size,
        )
        for name in ("bcast", "pingpong")
        for size in (0, *(4**power for power in range(11)))
    ]
    kernels = collect(tmp_path, [result("1x1", 0.1), result("2x2", 0.066)])
    table = build_model_comparison(kernels, arrange_results(sent))
    (row,) = (dict(zip((*table.labels, *table.columns), row, strict=True)) for row in table.rows)
    messages = 1000 * t0 + 500 * 4012 * tb + t0 + 1_002_000 * tb
    assert float(row["messages (us)"]) == pytest.approx(messages * 1e6, rel=0.01)
    assert row["time / predicted"] == f"{0.066 / (0.05 + messages):.2f}"
    assert describe_missing_models(table, kernels) == ""
    bare = build_model_comparison(kernels, arrange_results([]))
    assert not bare.rows and "--family taboada" in describe_missing_models(bare, kernels)
