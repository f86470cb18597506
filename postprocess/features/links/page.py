"""The page of a sweep: what was found, and heat maps of all pairs; the same as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base.formats import size
from postprocess.features.links import levels
from postprocess.features.links.data import PairSweep
from postprocess.features.links.detect import SweepAnalysis
from postprocess.features.links.plot import STEPS, PairHeatMap, draw_heat_map
from postprocess.features.links.text import LinkFinding
from postprocess.model.session import Session
from postprocess.report import templating
from postprocess.report.judged_value import NOT_STEADY

PAGE = "links.html"


@dataclass(frozen=True)
class SweepReport:
    """A sweep with its analysis, findings and remarks."""

    sweep: PairSweep
    analysis: SweepAnalysis
    findings: Sequence[LinkFinding]
    remarks: Sequence[str]

    @property
    def title(self) -> str:
        """Where it ran."""
        return f"{self.sweep.partition}, {self.sweep.environment}"


def write_links_page(
    session: Session, told: Sequence[SweepReport], failures: Sequence[str], headline: str
) -> Path:
    """Write ``links.html`` and ``links.json`` beside the session's report; the path of the page.

    :raises UsageError: if they cannot be written.
    """
    page = session.directory / PAGE
    html = render_links_page(told, failures, headline, session.name, session.site)
    data = json.dumps(links_as_data(told, failures, session.name), indent=1) + "\n"
    templating.write_pages({page: html, page.with_suffix(".json"): data})
    return page


def links_as_data(
    told: Sequence[SweepReport], failures: Sequence[str], session: str
) -> dict[str, Any]:
    """Return the findings as data."""
    sweeps = [
        {
            "partition": each.sweep.partition,
            "environment": each.sweep.environment,
            "nodes": list(each.sweep.nodes),
            "findings": [
                {
                    "kind": found.kind,
                    "who": [[each.sweep.nodes[node] for node in who] for who in found.who],
                    "text": found.text,
                }
                for found in each.findings
            ],
            "remarks": list(each.remarks),
        }
        for each in told
    ]
    return {"session": session, "failures": list(failures), "sweeps": sweeps}


def render_links_page(
    told: Sequence[SweepReport], failures: Sequence[str], headline: str, session: str, site: str
) -> str:
    """Render the page as one HTML file that needs nothing but itself."""
    context = {
        "good": not failures and not any(each.findings for each in told),
        "headline": headline,
        "session": session,
        "site": site,
        "failures": failures,
        "steps": STEPS,
        "not_steady": NOT_STEADY,
        "sweeps": [
            {
                "title": each.title,
                "findings": [found.text for found in each.findings],
                "remarks": each.remarks,
                "maps": build_pair_heat_maps(each.sweep, each.analysis),
            }
            for each in told
        ],
    }
    return templating.render_html_template("links.html.j2", context, drawn=draw_heat_map)


def build_pair_heat_maps(sweep: PairSweep, analysis: SweepAnalysis) -> list[PairHeatMap]:
    """Build the heat maps of all pairs with all nodes busy, by size and statistic."""
    shown = []
    for measure in sweep.measures:
        nodes = [each.who[0] for each in analysis.nodes if each.measure is measure]
        same = (measure.bytes, measure.statistic)  # the pairs' measure may lack the slow nodes
        pairs = [
            each.who
            for each in analysis.pairs
            if (each.measure.bytes, each.measure.statistic) == same
        ]
        title = f"{size(measure.bytes)}, all nodes busy, {measure.statistic} of the trials"
        ratios = levels.compute_pair_ratios(measure.log)
        shown.append(PairHeatMap(title, sweep.nodes, ratios, nodes, pairs))
    return shown
