"""Size by size: every case of the reference benchmarks in its table, what is outside first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.model.verdict import Verdict, is_healthy
from postprocess.report import size_tables
from postprocess.report.panels import list_environments
from tests.support.factories import size as samples

NIGHT = samples.three_programs()
OTHERS = [r for r in NIGHT.results if r.case.program != "mpicost"]


def shown(results, strict=False):
    return size_tables.build_program_tables(results, strict, list_environments(results))


def curves(results, strict=False):
    return [c for program in shown(results, strict) for c in (*program.findings, *program.others)]


def cases(found):
    return [r.case for curve in found for _, results in curve.rows for r in results if r]


def test_our_own_program_has_trials_and_is_shown_otherwise():
    assert [program.name for program in shown(NIGHT.results)] == ["imb", "osu"]
    assert shown([r for r in NIGHT.results if r.case.program == "mpicost"]) == []


def test_what_was_skipped_by_all_has_no_diagram():
    skipped = [r for r in OTHERS if r.verdict is Verdict.SKIPPED]
    (program,) = shown(skipped)
    assert (program.findings, program.others, program.left_out) == ((), (), "")
    assert program.counts == "241 cases: 241 skipped: no Spack"


MEASURED = [r for r in OTHERS if r.verdict is not Verdict.SKIPPED]


@given(st.lists(st.sampled_from(MEASURED), unique_by=lambda r: r.case), st.booleans())
def test_every_case_is_in_one_table_under_its_size_and_its_mpi(results, strict):
    found = curves(results, strict)
    assert sorted(cases(found)) == sorted(r.case for r in results)
    for curve in found:
        assert curve.panel.unit == curve.unit
        assert [size for size, _ in curve.rows] == sorted({size for size, _ in curve.rows})
        for size, row in curve.rows:
            for name, result in zip(curve.columns, row, strict=True):
                assert result is None or (result.case.bytes, result.case.environment) == (
                    size,
                    name,
                )
    assert sum(curve.failed for curve in found) == sum(
        not is_healthy(r.verdict, strict) for r in results
    )


def test_one_benchmark_at_one_layout_is_one_diagram_with_a_line_for_each_mpi():
    planned = samples.cases(["osu"], (2, 4))
    found = curves(samples.healthy(planned).results)
    expected = ["allgather, 2 processes", "allgather, 4 processes"]
    assert [curve.panel.title for curve in found[:2]] == expected
    assert len(found) == 2 * len(samples.ROUTINES["osu"])
    assert all(len(curve.panel.lines) == 3 for curve in found)
    assert {curve.unit for curve in found if curve.title.startswith("bw")} == {"MB/s"}
    spread = [replace(case, per_node=1) for case in samples.cases(["osu"], (4,))]
    found = curves(samples.healthy([*planned, *spread]).results)
    assert "bcast, 4 processes (1 per node)" in [curve.title for curve in found]


def test_what_differs_is_never_in_one_diagram():
    """As IMB with and without changing buffers: two cases of one size."""
    planned = samples.cases(["imb"])
    rotated = [replace(case, cache="rotate") for case in planned]
    found = curves(samples.healthy([*planned, *rotated]).results)
    assert "bcast, rotate" in [curve.title for curve in found]
    assert sorted(cases(found)) == sorted([*planned, *rotated])


def test_what_differs_between_routines_only_is_in_no_title():
    """As in OSU, where some benchmarks have a barrier between calls and others time the loop."""
    planned = samples.cases(["osu"])
    loops = [replace(c, sync="loop") if c.routine == "bw" else c for c in planned]
    titles = [curve.title for curve in curves(samples.healthy(loops).results)]
    assert titles == sorted(samples.ROUTINES["osu"])


def test_findings_come_first():
    imb, osu = shown(NIGHT.results)
    expected = [("alltoall", 20, 0), ("bcast", 1, 0)]
    assert [(c.title, c.failed, c.outside) for c in imb.findings] == expected
    expected = [("bibw", 0, 1), ("bw", 4, 0)]
    assert [(c.title, c.failed, c.outside) for c in osu.findings] == expected
    assert not any(c.failed or c.outside for program in (imb, osu) for c in program.others)
    strict = shown(NIGHT.results, strict=True)[1]
    assert strict.others == ()  # a third of it was skipped


def test_a_case_without_a_value_does_not_decide_the_unit():
    first, *rest = [r for r in OTHERS if r.case.program == "osu" and r.case.routine == "bw"]
    (curve,) = curves([samples.lost(first.case), *rest])
    assert curve.unit == "MB/s"


@pytest.mark.parametrize(("name", "most"), [("MOST_PANELS", 5), ("MOST_CASES", 300)])
def test_beyond_what_a_page_bears_findings_stay_and_the_rest_is_counted(monkeypatch, name, most):
    whole = shown(NIGHT.results)
    monkeypatch.setattr(size_tables, name, most)
    imb, osu = shown(NIGHT.results)
    assert len(curves(NIGHT.results)) == 5
    assert [imb.findings, osu.findings] == [program.findings for program in whole]
    for program, before in zip((imb, osu), whole, strict=True):
        missing = len(before.others) - len(program.others)
        assert program.left_out.startswith(f"{missing} further diagrams not shown; ")
        assert program.counts == before.counts
    assert whole[0].left_out == ""
