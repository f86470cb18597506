"""What monitoring shows beside verdicts: nodes that are away, and the age of references."""

from __future__ import annotations

from types import SimpleNamespace

from postprocess.base.formats import parse_utc
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.reference_file import load_references
from postprocess.session.lifecycle import finish as monitored
from site_configs.schedulers.base import UsableNodes
from tests.support.paths import ROOT

FILE = ROOT / "reference_data" / "simulated" / "fattree" / "simgrid-mpich.tsv"


def test_the_moment_of_a_reference_and_the_nodes_that_are_away_are_exported(monkeypatch) -> None:
    known = list(load_references(FILE, "simulated", "fattree", "simgrid-mpich").values())[:2]
    results = [CaseResult(each.case, Verdict.PASS, value=1.0, reference=1.0) for each in known]
    results.append(CaseResult(known[0].case, Verdict.NO_REFERENCE, value=1.0))
    prepared = SimpleNamespace(usable_nodes={"cpu": UsableNodes(3, "n4 (drained: fan)", 1)})
    context = SimpleNamespace(reference_roots=[ROOT / "reference_data"], prepared=prepared)
    date = "2026-01-02T03:04:05Z"
    monkeypatch.setattr(monitored, "find_calibration_date", lambda told, _: date if told else "")
    moments = monitored.find_calibration_moments(context, results)
    assert moments == dict.fromkeys((each.case for each in known), parse_utc(date).timestamp())
    said: list[object] = []
    monkeypatch.setattr(monitored, "format_openmetrics", lambda *each: said.extend(each) or "")
    monitored.format_monitored(context, SimpleNamespace(results=results))
    assert said[1] == {"cpu": monitored.PartitionNodes(3, 1)} and said[2] == moments
