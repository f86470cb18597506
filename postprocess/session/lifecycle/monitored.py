"""What monitoring shows of a session beside its verdicts: nodes that are away, and how old references are."""

from __future__ import annotations

from collections.abc import Iterable

from postprocess.base.formats import parse_utc
from postprocess.model.case import Case
from postprocess.model.verdict import CaseResult
from postprocess.references.catalog import load_catalog
from postprocess.references.provenance import find_calibration_date
from postprocess.report.openmetrics import PartitionNodes, format_openmetrics
from postprocess.results.summary import SessionSummary
from postprocess.session.lifecycle.context import SessionContext


def format_monitored(context: SessionContext, summary: SessionSummary) -> str:
    """Format a session as OpenMetrics, with the nodes of its partitions and the moments of its references."""
    nodes = {
        name: PartitionNodes(each.count, each.away)
        for name, each in context.prepared.usable_nodes.items()
    }
    return format_openmetrics(summary, nodes, find_calibration_moments(context, summary.results))


def find_calibration_moments(
    context: SessionContext, results: Iterable[CaseResult]
) -> dict[Case, float]:
    """Find when the reference of each case was measured, in Unix time; nothing where no file tells."""
    cases = [each.case for each in results if each.reference is not None]
    places = {(f"{case.system}:{case.partition}", case.environment) for case in cases}
    sets = load_catalog(context.reference_roots, sorted(places)).sets
    found = {}
    for case in cases:
        known = sets.get((f"{case.system}:{case.partition}", case.environment))
        if calibration := known.find_calibration(case) if known else None:
            when = find_calibration_date(calibration, case.key)
            found[case] = parse_utc(when).timestamp()
    return found
