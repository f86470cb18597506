"""A session as metrics in OpenMetrics' text format, for the node exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from postprocess.base.sanitize import sanitize_line
from postprocess.model.case import Case
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.results.summary import SessionSummary

#: Of a case, told by labels.
PARTS = (*("system", "partition", "environment", "program", "routine", "peer", "variant", "layout"), "bytes")
NOTHING_MORE: Mapping[Any, Any] = {}
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True)
class PartitionNodes:
    """How many nodes of a partition could be used, and how many were down or taken out."""

    usable: int
    away: int


def format_openmetrics(
    summary: SessionSummary,
    nodes: Mapping[str, PartitionNodes] = NOTHING_MORE,
    calibrated: Mapping[Case, float] = NOTHING_MORE,
) -> str:
    """Format a session as gauges, each with ``site``; those of a case have the parts of its key too.

    Whether the numbers are old tells ``plumbline_session_end_seconds``, and whether what they are held against
    is, ``plumbline_case_reference_seconds``.

    :param nodes: by partition, where the scheduler tells them
    :param calibrated: Unix time at which the reference of a case was measured, where that is known
    """
    site = {"site": summary.site}
    ended = datetime.fromisoformat(summary.ended_utc.replace("Z", "+00:00")).timestamp()
    lines = [
        *format_gauge("session_end_seconds", "When the session ended, in Unix time.", ended, site),
        *format_gauge("session_exit_status", "0 if every case is healthy.", summary.exit_status, site),
        *format_count_metrics(summary, site),
        *format_node_metrics(nodes, site),
    ]
    healthy = {
        each: float(each.counts_as_healthy(summary.strict) and each.verdict is not Verdict.SUSPECT)
        for each in summary.results
    }
    limits = {each: each.detectable for each in summary.results}
    moments = {each: calibrated.get(each.case) for each in summary.results}
    spreads = {each: each.spread for each in summary.results}
    values = {each: each.value for each in summary.results}
    references = {each: each.reference for each in summary.results}
    slowdowns = {each: each.slowdown for each in summary.results}
    for name, told, found in (
        ("case_healthy", "1 if the case does not fail the session and is not suspect.", healthy),
        ("case_value", "Judged value of the case, in the unit of its label.", values),
        ("case_reference", "Center of its reference, in the same unit.", references),
        ("case_slowdown", "How many times as slow as its reference.", slowdowns),
        ("case_detectable", "Smallest slowdown that one night calls, as a fraction.", limits),
        ("case_spread", "Standard deviation of the logarithm of values, all in all.", spreads),
        ("case_reference_seconds", "When its reference was measured, in Unix time.", moments),
    ):
        lines += [f"# HELP plumbline_{name} {told}", f"# TYPE plumbline_{name} gauge"]
        for result, number in found.items():
            if number is not None:
                lines.append(format_sample(name, {**site, **list_labels(result)}, number))
    return "\n".join([*lines, "# EOF", ""])


def list_labels(result: CaseResult) -> dict[str, str]:
    """List the labels of a case: the parts of its key, and the unit of its values."""
    return {name: str(getattr(result.case, name)) for name in PARTS} | {"unit": result.unit}


def format_count_metrics(summary: SessionSummary, site: Mapping[str, str]) -> Iterator[str]:
    """Format how many cases have each verdict, those of no case included."""
    yield "# HELP plumbline_cases Cases of the session with this verdict."
    yield "# TYPE plumbline_cases gauge"
    for verdict in Verdict:
        number = sum(result.verdict is verdict for result in summary.results)
        yield format_sample("cases", {**site, "verdict": str(verdict)}, number)


def format_node_metrics(nodes: Mapping[str, PartitionNodes], site: Mapping[str, str]) -> Iterator[str]:
    """Format how many nodes of each partition could be used, and how many could not."""
    counts = (
        ("nodes_usable", "Nodes of the partition that jobs can use.", "usable"),
        ("nodes_away", "Nodes of the partition that are down or taken out.", "away"),
    )
    for name, told, attribute in counts:
        yield f"# HELP plumbline_{name} {told}"
        yield f"# TYPE plumbline_{name} gauge"
        for partition, counted in nodes.items():
            labels = {**site, "partition": partition}
            yield format_sample(name, labels, getattr(counted, attribute))


def format_gauge(name: str, told: str, value: float, labels: Mapping[str, str]) -> Iterator[str]:
    """Format a gauge of one value."""
    yield f"# HELP plumbline_{name} {told}"
    yield f"# TYPE plumbline_{name} gauge"
    yield format_sample(name, labels, value)


def format_sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """Format one line."""
    words = (f'{key}="{sanitize_line(text).translate(ESCAPED)}"' for key, text in labels.items())
    return f"plumbline_{name}{{{','.join(words)}}} {value!r}"
