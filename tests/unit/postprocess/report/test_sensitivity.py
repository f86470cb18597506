"""What a night would miss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from postprocess.base.units import SECONDS
from postprocess.judging.rules import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report import sensitivity as view
from postprocess.report import session_report, terminal
from postprocess.report.sensitivity import (
    CLASSES,
    assess_sensitivity,
    build_sensitivity_row,
    classify_detectable,
    select_with_power,
    summarise_sensitivity,
)
from postprocess.results.summary import parse_summary
from tests.support.factories import report as samples

CASE = Case("local", "cpu", "mpich-5.0.2", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)


def result(size: int = 8, median_of: int = 1, **more) -> CaseResult:
    case = replace(CASE, bytes=size)
    facts = {"center": 1e-5, "spread": 0.03, "launches": 20, "prior": Prior(0.03, 6.0)} | more
    reference = Reference(case, **facts)
    value = reference.center
    return judge_case(case, Measurement(value, SECONDS, value), reference, 0.0, median_of)


@pytest.mark.parametrize(
    ("detectable", "name"),
    [(0.01, "5%"), (0.05, "5%"), (0.051, "10%"), (0.1, "10%"), (1.0, "100%"), (1.1, "more")],
)
def test_a_bound_belongs_to_its_class(detectable: float, name: str):
    assert CLASSES[classify_detectable(detectable)] == name
    assert CLASSES[classify_detectable(None)] == "nothing"


def test_a_row_counts_what_sees_nothing_as_the_worst():
    limits = (0.04, 0.03), (0.08, 0.06), (0.3, 0.1), (None, None)
    some = [replace(result(8), detectable=a, detectable_soon=b) for a, b in limits]
    found = build_sensitivity_row(("mpicost",), some)
    assert (found.cases, found.seen, found.shares) == (4, 3, (1, 1, 0, 1, 0, 0, 1))
    assert (found.median, found.most) == (0.08, None)
    assert build_sensitivity_row((), some[:3]).most == 0.3


def test_only_what_was_held_against_something_is_counted():
    lost = CaseResult(CASE, Verdict.CRASHED, "signal 11")
    blind = result(launches=1, spread=0.0, prior=None)
    old = replace(result(), detectable=None, spread=None, degrees=None)  # of an earlier Plumbline
    assert select_with_power([lost, blind, old, result(16)]) == [blind, result(16)]
    assert summarise_sensitivity([lost, old]) == ""


def test_one_line_tells_what_is_called_tonight_and_soon():
    limits = (0.1, 0.05, 0.05), (0.3, 0.1, 0.1), (1.5, 0.5, 0.1), (None, None, None)
    names = ("detectable", "detectable_soon", "detectable_learned")
    some = [replace(result(8), **dict(zip(names, each, strict=True))) for each in limits]
    tonight = "called from tonight on, of 4 cases: 2 times slower in 2, 50% in 2, 20% in 1, 10% in 1"
    assert summarise_sensitivity(some) == (
        f"{tonight}; if it lasts three nights: 50% in 3, 20% in 2, 10% in 2; "
        "by references of 10 nights: 50% in 3, 20% in 3, 10% in 3"
    )
    assert summarise_sensitivity(some[2:]).startswith(
        "called from tonight on, of 2 cases: 2 times slower in none, 2.5 times as slow at best; if"
    )
    assert "2 times slower in all" in summarise_sensitivity(some[:2])


def test_the_report_and_the_terminal_tell():
    night = samples.bad_night(samples.few_cases()[::5])
    summary = parse_summary(night.document())
    found = assess_sensitivity(summary)
    assert sum(each.cases for each in found.programs) == sum(each.cases for each in found.rows)
    assert found.line in terminal.render_terminal(summary, 200, False)
    (*_, worst) = (each for each in found.worst if each.detectable)
    html, markdown = (session_report.render_html(summary, {}), session_report.render_markdown(summary))
    for page in (html, markdown):
        assert found.line[1:] in page
        assert f"{worst.detectable:.0%}" in page
        assert f"{worst.detectable_soon:.0%}" in page
    assert "Slowdown that tonight would see" in html
    assert html.count('class="sight-') > len(CLASSES)
    old = replace(summary, results=())
    assert assess_sensitivity(old) is None
    assert "Detection limits" not in session_report.render_markdown(old)


def test_the_worst_come_first():
    some = [result(8 * n, spread=0.02 + n / 100, prior=None) for n in range(30)]
    some.append(result(8000, launches=1, spread=0.0, prior=None))
    first, second, *_ = shown = view.list_least_sensitive(some)
    assert len(shown) == view.MOST_WORST
    assert first.detectable is None
    assert second.detectable == max(each.detectable or 0 for each in some)
