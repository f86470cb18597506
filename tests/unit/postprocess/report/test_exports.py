"""JUnit's XML and OpenMetrics, read by the readers of others."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import junitparser
import pytest
from prometheus_client.openmetrics import parser

from postprocess.cli.output_files import is_own_output
from postprocess.model.case import LaunchPlace
from postprocess.model.verdict import Verdict
from postprocess.report.exports import PartitionNodes, format_junit, format_openmetrics
from postprocess.report.terminal import render_terminal
from postprocess.results.summary import SessionSummary, load_summary
from postprocess.session.lifecycle.finish import publish_summary
from tests.support.factories import report as samples
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> SessionSummary:
    night = samples.bad_night(samples.few_cases())
    loaded = load_summary(night.write(tmp_path_factory.mktemp("night")) / "summary.json")
    first, *rest = loaded.results
    hostile = replace(first, verdict=Verdict.CRASHED, reason=samples.HOSTILE)
    well = [number for number, each in enumerate(rest) if each.verdict is Verdict.PASS]
    for number, verdict in zip(well, (Verdict.PROVISIONAL, Verdict.SUSPECT), strict=False):
        rest[number] = replace(rest[number], verdict=verdict, reason="it waits")
    return replace(loaded, results=(hostile, *rest), notes=(samples.HOSTILE,))


def test_junit_has_every_case_and_what_each_failure_says(summary: SessionSummary, tmp_path: Path):
    path = tmp_path / "junit.xml"
    path.write_text(format_junit(summary))
    (suite,) = junitparser.JUnitXml.fromfile(str(path))
    read = {case.name: case for case in suite}
    assert read.keys() == {result.case.key for result in summary.results}
    failed = {name for name, case in read.items() if case.is_failure}
    assert failed == {result.case.key for result in summary.failed} and suite.failures == len(failed)
    skipped = {name for name, case in read.items() if case.is_skipped}
    silent = (Verdict.SKIPPED, Verdict.PROVISIONAL)
    assert skipped == {result.case.key for result in summary.results if result.verdict in silent}
    for place in {LaunchPlace.of(result.case) for result in summary.results}:
        shares = [
            read[result.case.key].time for result in summary.results if LaunchPlace.of(result.case) == place
        ]
        jobs = {
            launch.directory: launch.seconds
            for launch in summary.launches
            if LaunchPlace.of_launch(launch) == place
        }
        assert sum(filter(None, shares)) == pytest.approx(sum(jobs.values()), abs=0.05), place
    slow = next(result for result in summary.results if result.verdict is Verdict.REGRESSED)
    (told,) = read[slow.case.key].result
    text = render_terminal(summary, 0, terminal=False)
    lines, sentences = text.splitlines(), " ".join(text.split())
    assert (told.type, f" why: {told.message} again: " in sentences) == ("regressed", True)
    assert [line.partition(": ")[0] for line in told.text.splitlines()] == ["band", "again"]
    assert f"  {told.text.splitlines()[1]}" in lines
    doubtful = next(outlier for outlier in summary.outliers if outlier.verdict is Verdict.CLEARED)
    assert read[doubtful.case.key].system_out.startswith("cleared: ")


def test_a_session_that_measured_nothing_is_an_error(summary: SessionSummary, tmp_path: Path):
    path = tmp_path / "junit.xml"
    path.write_text(format_junit(replace(summary, results=(), exit_status=1)))
    (suite,) = junitparser.JUnitXml.fromfile(str(path))
    assert (suite.tests, suite.errors) == (1, 1)


def test_openmetrics_has_every_case(summary: SessionSummary):
    families = {
        family.name: family.samples
        for family in parser.text_string_to_metric_families(format_openmetrics(summary))
    }
    healthy = families["plumbline_case_healthy"]
    assert len(healthy) == len(summary.results)
    assert {Verdict.SUSPECT, Verdict.PROVISIONAL} <= {result.verdict for result in summary.results}
    unsure = sum(result.verdict is Verdict.SUSPECT for result in summary.results)
    assert sum(sample.value == 0 for sample in healthy) == len(summary.failed) + unsure
    told = families["plumbline_case_detectable"]
    assert len(told) == sum(result.detectable is not None for result in summary.results)
    assert sum(each.value for each in families["plumbline_cases"]) == len(summary.results)


@pytest.mark.parametrize(("status", "told"), [(1, True), (0, False)])
def test_a_failed_session_is_told_to_a_command(summary, tmp_path, progress, status, told):
    """Even if a file that was asked for too cannot be written."""
    file = tmp_path / "told"
    request = SimpleNamespace(
        json_file=None, junit_file=None, openmetrics_file=None, on_failure=f"cat > {file}"
    )
    publish_summary(request, replace(summary, exit_status=status), progress)
    assert file.exists() is told
    if told:
        assert json.loads(file.read_text())["exit_status"] == 1


def test_the_files_of_the_last_night_may_be_written_over(summary: SessionSummary, tmp_path: Path):
    for number, text in enumerate((format_junit(summary), format_openmetrics(summary))):
        path = tmp_path / str(number)
        path.write_text(text)
        assert is_own_output(path)
    path.write_text("<testsuites/>")
    assert not is_own_output(path)


DASHBOARD = json.loads((ROOT / "docs" / "grafana" / "plumbline-prometheus.json").read_text())
METRIC = re.compile(r"plumbline_\w+")
#: What PromQL has in braces, in ``by (...)``, and behind ``label_values(metric, ``
LABELS = re.compile(r"(\w+)=~|by \(([\w, ]+)\)|, (\w+)\)$")


def list_queries() -> list[str]:
    """Every query of the dashboard over Prometheus, of its panels and of its variables."""
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    listed = DASHBOARD["templating"]["list"]
    return asked + [each["query"]["query"] for each in listed if each["type"] == "query"]


def test_each_metric_and_label_of_the_dashboard_is_exported(summary: SessionSummary):
    """And each metric that is exported is in a panel."""
    moments = dict.fromkeys((result.case for result in summary.results), 1.7e9)
    text = format_openmetrics(summary, {"cpu": PartitionNodes(3, 1)}, moments)
    families = {
        family.name: {name for sample in family.samples for name in sample.labels}
        for family in parser.text_string_to_metric_families(text)
        if family.samples
    }
    asked: set[str] = set()
    for query in list_queries():
        metrics = set(METRIC.findall(query))
        labels = {
            label.strip()
            for found in LABELS.findall(query)
            for label in ",".join(found).split(",")
            if label.strip()
        }
        assert metrics and metrics <= families.keys(), query
        assert all(labels <= families[metric] for metric in metrics), query
        asked |= metrics
    assert asked == families.keys()
