"""The page of an agreement: findings, ratios as tables and pictures, and why ratios are not 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from postprocess.analyses.agreement import text as words
from postprocess.analyses.agreement.compare import PAIRS, Opinions, Topic
from postprocess.analyses.agreement.plot import draw
from postprocess.model.session import Session
from postprocess.report import legend, templating

PAGE = "agreement.html"


def write_page(session: Session, opinions: Opinions, failures: list[str]) -> Path:
    """Write ``agreement.html``, ``.md`` and ``.json`` beside the session's report; the path of the page.

    :raises UsageError: if they cannot be written.
    """
    context = {
        "good": opinions.good and not failures,
        "headline": words.headline(opinions),
        "summary": words.summary(opinions),
        "session": session.name,
        "site": session.site,
        "failures": failures,
        "findings": [words.finding(each) for each in opinions.findings],
        "gaps": words.gaps(opinions.gaps, most=None),
        "why": words.WHY,
        "ranges": words.ranges(),
        "chapters": words.sheets(opinions.comparisons),
        "pairs": [f"{over}/{under}" for over, under in PAIRS],
    }
    drawing = {"ratios": draw, "marker": legend.key_of_marker}
    page = session.directory / PAGE
    templating.write(
        {
            page: templating.html("agree.html.j2", context, **drawing),
            page.with_suffix(".md"): templating.markdown("agree.md.j2", context),
            page.with_suffix(".json"): json.dumps(as_data(opinions, session.name), indent=1) + "\n",
        }
    )
    return page


def as_data(opinions: Opinions, session: str) -> dict[str, Any]:
    """All ratios, findings and gaps, for programs."""
    return {
        "session": session,
        "good": opinions.good,
        "ratios": [
            {
                **about(each.topic),
                "over": each.over,
                "under": each.under,
                "launches": each.launches,
                "ratio": each.ratio,
                "interval": each.interval,
                "definition": each.definition,
                "expected": [each.expected.low, each.expected.high],
                "reason": each.expected.reason,
                "standing": each.standing.value,
            }
            for each in opinions.comparisons
        ],
        "findings": [
            {"name": each.name, **about(each.topic), "text": words.finding(each)}
            for each in opinions.findings
        ],
        "gaps": [
            {**about(each.topic), "program": each.program, "reason": each.reason}
            for each in opinions.gaps
        ],
    }


def about(topic: Topic) -> dict[str, Any]:
    """The keys of a topic."""
    return {
        "place": topic.place,
        "environment": topic.environment,
        "layout": topic.layout,
        "routine": topic.routine,
        "bytes": topic.bytes,
    }
