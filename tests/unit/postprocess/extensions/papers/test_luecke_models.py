"""Time over the divisor of the papers' models: flat where the model holds."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.base.formats import MISSING
from postprocess.extensions.papers import luecke_models
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories import papers as samples
from tests.support.factories.papers import arrange_results


def measured(planned, seconds=samples.modelled):
    return arrange_results(samples.session(planned, seconds).results)


@pytest.mark.parametrize(
    ("routine", "processes", "divisor"),
    [("bcast", 96, math.log2(96)), ("bcast", 128, 7), ("alltoall", 2, 1), ("alltoall", 128, 127)],
)
def test_the_divisor_is_that_of_the_paper_whatever_the_count(routine, processes, divisor):
    assert luecke_models.compute_divisor(routine, processes) == divisor


@pytest.mark.parametrize(("routine", "processes"), [("bcast", 1), ("scan_sum", 8)])
def test_what_has_no_model_has_no_divisor(routine, processes):
    with pytest.raises(ValueError, match="model"):
        luecke_models.compute_divisor(routine, processes)


@settings(max_examples=30)
@given(
    routine=st.sampled_from(sorted(luecke_models.SCALING)),
    unit=st.floats(1e-9, 10),
    counts=st.sets(st.integers(2, 5000), min_size=2, max_size=9),
)
def test_the_time_of_the_model_is_a_flat_line(routine, unit, counts):
    planned = samples.cases(["torus"], ["simgrid-mpich"], sorted(counts), [routine])
    flat = measured(planned, lambda case: unit * luecke_models.compute_divisor(case.routine, case.processes))
    (figure,) = luecke_models.draw_scalability(flat, False)
    for panel in figure.panels:
        values = [point.value for point in panel.lines[0].points]
        assert (len(values), max(values)) == (len(counts), pytest.approx(min(values), rel=1e-12))
    assert all(row[-1] == "1.00" for row in luecke_models.build_growth_tables(flat)[0].rows)


def test_an_mpi_keeps_its_style_where_others_are_not():
    planned = samples.cases(["torus"]) + samples.cases(["fattree"], ["simgrid-ompi"])
    fattree, torus = luecke_models.draw_scalability(measured(planned), False)
    assert [line.style for line in torus.panels[0].lines] == [0, 1]
    assert [line.style for line in fattree.panels[0].lines] == [1]


def test_values_and_bands_are_divided_and_failures_stay():
    case = next(c for c in samples.cases(counts=[96, 128]) if c.routine == "bcast")
    other = replace(case, processes=128)
    regressed = CaseResult(case, Verdict.REGRESSED, value=2.0, band=(0.5, 1.0))
    passed = CaseResult(other, Verdict.PASS, value=1.0, band=(0.5, 2.0))
    (figure,) = luecke_models.draw_scalability(arrange_results([regressed, passed]), False)
    first, last = figure.panels[0].lines[0].points
    assert first.value == 2.0 / math.log2(96)
    assert first.band == (0.5 / math.log2(96), 1.0 / math.log2(96))
    assert (first.failed, last.failed) == (True, False)
    assert last.value == 1.0 / 7


def test_one_process_count_or_one_process_is_no_view():
    assert luecke_models.draw_scalability(measured(samples.cases(counts=[8])), False) == []
    assert not any(
        table.rows for table in luecke_models.build_growth_tables(measured(samples.cases(counts=[8])))
    )
    of_one = [c for c in samples.cases(counts=[1, 8]) if c.routine in luecke_models.SCALING]
    assert luecke_models.draw_scalability(measured(of_one, lambda case: 1.0), False) == []


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([2, 4, 8, 16, 128], (8, 128)), ([2, 4, 8], (2, 8)), ([2, 4], (2, 4)), ([8], None), ([], None)],
)
def test_growth_is_from_eight_processes_on_where_that_can_be(counts, expected):
    assert luecke_models.select_end_counts(counts) == expected


def test_growth_shows_what_does_not_scale_and_what_is_missing():
    def quadratic(case):
        lost = case.environment == "simgrid-ompi" and case.processes == 16
        return None if lost else float(case.processes**2)

    some = measured(samples.cases(["torus"], counts=[8, 16, 32]), quadratic)
    (table,) = luecke_models.build_growth_tables(some)
    row = next(row for row in table.rows if row[0] == "alltoall")
    assert row[2:] == ("(p-1)", "8 to 32", "3.61", "3.61")  # 1024 / 31 over 64 / 7
    (table,) = luecke_models.build_growth_tables(measured(samples.cases(["torus"], counts=[8, 16]), quadratic))
    assert {row[-1] for row in table.rows} == {MISSING}
    points = luecke_models.draw_scalability(some, False)[0].panels[0].lines[1].points
    assert [(p.x, p.value is None, p.failed) for p in points if p.x == 16] == [(16, True, True)]


def test_conditions_that_differ_are_kept_apart():
    warm = samples.session(samples.cases(["torus"], counts=[8, 16])).results
    flush = [replace(r, case=replace(r.case, cache="flush"), value=2 * r.value) for r in warm]
    both = arrange_results([*warm, *flush])
    titles = [panel.title for panel in luecke_models.draw_scalability(both, False)[0].panels]
    assert "bcast, cache flush, 8 B: time / log2 p" in titles
    assert "bcast, cache warm, 8 B: time / log2 p" in titles
    (table,) = luecke_models.build_growth_tables(both)
    assert table.labels == ("routine", "size", "cache", "divisor", "processes")


def test_a_page_has_no_more_panels_than_it_can_bear(monkeypatch):
    monkeypatch.setattr(luecke_models, "MOST_ON_PAGE", 30)
    found = luecke_models.draw_scalability(measured(samples.cases()), False)
    assert sum(len(figure.panels) for figure in found) <= 30
    assert all("2 further sizes of bcast" in figure.remark for figure in found)
