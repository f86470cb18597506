"""The page of an agreement: findings, ratios as tables and pictures, and why ratios are not 1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from postprocess.extensions.agreement import text
from postprocess.extensions.agreement.compare import PAIRS, AgreementResult, Topic
from postprocess.extensions.agreement.plot import draw_ratio_plot
from postprocess.model.session import Session
from postprocess.report import legend, templating

PAGE = "agreement.html"


def write_agreement_page(session: Session, agreement: AgreementResult, failures: list[str]) -> Path:
    """Write ``agreement.html``, ``.md`` and ``.json`` beside the session's report; the path of the page.

    :raises UsageError: if they cannot be written.
    """
    context = {
        "good": agreement.good and not failures,
        "headline": text.format_agreement_title(agreement),
        "summary": text.summarise_agreement(agreement),
        "session": session.name,
        "site": session.site,
        "failures": failures,
        "findings": [text.format_disagreement(each) for each in agreement.findings],
        "gaps": text.format_gaps(agreement.gaps, most=None),
        "why": text.WHY,
        "ranges": text.describe_expected_ranges(),
        "chapters": text.build_ratio_tables(agreement.comparisons),
        "pairs": [f"{over}/{under}" for over, under in PAIRS],
    }
    drawing: dict[str, Callable[..., str]] = {
        "ratios": draw_ratio_plot,
        "marker": legend.draw_marker_key,
    }
    page = session.directory / PAGE
    templating.write_pages(
        {
            page: templating.render_html_template("agree.html.j2", context, **drawing),
            page.with_suffix(".md"): templating.render_markdown_template("agree.md.j2", context),
            page.with_suffix(".json"): json.dumps(
                agreement_as_data(agreement, session.name), indent=1
            )
            + "\n",
        }
    )
    return page


def agreement_as_data(agreement: AgreementResult, session: str) -> dict[str, Any]:
    """Return ratios, findings and gaps as data."""
    return {
        "session": session,
        "good": agreement.good,
        "ratios": [
            {
                **topic_as_data(each.topic),
                "over": each.over,
                "under": each.under,
                "launches": each.launches,
                "ratio": each.ratio,
                "interval": each.interval,
                "definition": each.definition,
                "expected": [each.expected.low, each.expected.high],
                "reason": each.expected.reason,
                "standing": each.status.value,
            }
            for each in agreement.comparisons
        ],
        "findings": [
            {
                "name": each.name,
                **topic_as_data(each.topic),
                "text": text.format_disagreement(each),
            }
            for each in agreement.findings
        ],
        "gaps": [
            {**topic_as_data(each.topic), "program": each.program, "reason": each.reason}
            for each in agreement.gaps
        ],
    }


def topic_as_data(topic: Topic) -> dict[str, Any]:
    """Return the keys of a topic."""
    return {
        "place": topic.place,
        "environment": topic.environment,
        "layout": topic.layout,
        "routine": topic.routine,
        "bytes": topic.bytes,
    }
