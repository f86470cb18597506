"""The page of guidelines: what is violated, what helps, and every guideline; the same as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from postprocess.base.text_table import TextTable
from postprocess.features.guidelines import text
from postprocess.features.guidelines.judge import JudgedGuideline
from postprocess.features.guidelines.text import GuidelineResult
from postprocess.model.session import Session
from postprocess.report import templating

PAGE = "guidelines.html"


def write_guideline_page(session: Session, found: GuidelineResult) -> Path:
    """Write ``guidelines.html``, ``.md`` and ``.json`` beside the session's report; the path of the page.

    :raises UsageError: if they cannot be written.
    """
    context = {
        "good": not found.failures and bool(found.judged) and not found.violated,
        "headline": text.format_title(found),
        "summary": text.summarise(found),
        "session": session.name,
        "site": session.site,
        "failures": found.failures,
        "caveats": found.caveats,
        "violations": text.build_violation_tables(found.violated),
        "overrides": text.build_override_tables(found.overrides),
        "rules": text.build_rule_table(found.judged),
        "every": build_full_table(found.judged),
        "how": text.HOW_TO_READ,
    }
    page = session.directory / PAGE
    data = json.dumps(build_guideline_json(found, session.name), indent=1) + "\n"
    templating.write_pages(
        {
            page: templating.render_html_template("guidelines.html.j2", context),
            page.with_suffix(".md"): templating.render_markdown_template(
                "guidelines.md.j2", context
            ),
            page.with_suffix(".json"): data,
        }
    )
    return page


def build_full_table(judged: tuple[JudgedGuideline, ...]) -> TextTable:
    """Build a table of every guideline."""
    return TextTable(
        "Every guideline",
        ("place", "operation", "not slower than", "standing"),
        ("ratio",),
        tuple(
            (
                str(each.place),
                text.format_measured(each.guideline.special),
                text.format_other_side(each.guideline),
                str(each.standing),
                text.format_ratio(each.ratio, each.limits),
            )
            for each in judged
        ),
    )


def build_guideline_json(found: GuidelineResult, session: str) -> dict[str, Any]:
    """Build guidelines and overrides as data; times in seconds."""
    return {
        "session": session,
        "summary": text.summarise(found),
        "failures": list(found.failures),
        "caveats": found.caveats,
        "guidelines": [
            {
                "partition": each.place.partition,
                "environment": each.place.environment,
                "layout": each.place.layout,
                "rule": str(each.guideline.rule),
                "special": [each.guideline.special.routine, each.guideline.special.bytes],
                "general": [each.guideline.general.routine, each.guideline.general.bytes],
                "times": each.guideline.times,
                "standing": str(each.standing),
                "launches": each.launches,
                "special_seconds": each.special,
                "general_seconds": each.general,
                "ratio": each.ratio,
                "limits": each.limits,
                "q": each.q,
            }
            for each in found.judged
        ],
        "overrides": [
            {
                "partition": override.place.partition,
                "environment": override.place.environment,
                "layout": override.place.layout,
                "operation": [override.operation.routine, override.operation.bytes],
                "setting": override.setting,
                "variables": dict(override.variables),
                "tried": override.tried,
                "advised": override.helps,
                "ratio": override.ratio,
                "limits": override.limits,
                "q": override.q,
            }
            for override in found.overrides
        ],
    }
