"""Check the launches of a sweep: every rank on a node of its own, every pair measured, no data wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from postprocess.base.formats import plural
from postprocess.features.links.data import find_unplayed_pairs, list_rank_hosts
from postprocess.features.links.text import format_pairs
from postprocess.model.launch import FinishedLaunch, fail_launch
from postprocess.model.verdict import Verdict


def check_sweep_launch(finished: FinishedLaunch) -> FinishedLaunch:
    """Return the launch; failed if data was wrong, a rank's node is unknown, or cases were skipped."""
    if not finished.outcome.records:
        return finished
    if finished.wrong:
        reason = next(iter(finished.wrong.values()))
        return replace(finished, outcome=fail_launch(Verdict.INCORRECT, reason))
    if problem := describe_misplaced_ranks(finished.run):
        return replace(finished, outcome=fail_launch(Verdict.INCORRECT, problem))
    if skips := finished.launch.skips:
        reason = f"{skips[0].reason}; choose fewer --nodes"
        return replace(finished, outcome=fail_launch(Verdict.INCOMPLETE, reason))
    if missing := find_unplayed_pairs(finished):
        reason = f"pairs missing in launch {finished.launch.number}: {format_pairs(missing)}"
        return replace(finished, outcome=fail_launch(Verdict.INCOMPLETE, reason))
    return finished


def describe_misplaced_ranks(run: Mapping[str, Any]) -> str:
    """Describe what is wrong with the ranks of a run record; empty if each has a node of its own."""
    try:
        names = list_rank_hosts(dict(run))
    except (KeyError, TypeError) as error:
        return f"the run record does not say where each rank ran: ranks: {error}"
    if len(set(names)) < len(names) or len(names) != run["processes"]:
        return f"{len(names)} ranks on {plural(len(set(names)), 'node')}: one on each is needed"
    return ""
