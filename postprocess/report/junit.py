"""A session as JUnit's XML, which Jenkins and GitLab show: one test case a case."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from postprocess.base.formats import parse_utc, quantity
from postprocess.base.sanitize import sanitize_line
from postprocess.model.verdict import UNASSERTED, CaseResult
from postprocess.results.summary import SessionSummary

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'


def format_junit(summary: SessionSummary) -> str:
    """Format a session. A failure has value, reference, band and the command that measures again.

    A session that failed without a failed case, by a cause in common or since it measured nothing, has an
    error of its own.
    """
    cases = [build_case(result, summary.strict) for result in summary.results]
    if summary.exit_status and not summary.failed:
        cases.append(build_session_error(summary))
    failures = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    errors = sum(case.find("error") is not None for case in cases)
    counts = {"tests": len(cases), "failures": failures, "errors": errors, "skipped": skipped}
    told = {name: str(number) for name, number in counts.items()}
    root = ET.Element("testsuites", {"name": "plumbline", **told})
    name = f"plumbline {summary.mode} {sanitize_line(summary.site)}"
    begun = summary.started_utc.removesuffix("Z")
    took = parse_utc(summary.ended_utc) - parse_utc(summary.started_utc)
    about = {"name": name, "timestamp": begun, "time": f"{took.total_seconds():.0f}", **told}
    suite = ET.SubElement(root, "testsuite", about)
    suite.extend(cases)
    if lines := [sanitize_line(cause) for cause in (*summary.causes, *summary.notes)]:
        ET.SubElement(suite, "system-out").text = "\n".join(lines)
    ET.indent(root)
    return f"{DECLARATION}\n{ET.tostring(root, encoding='unicode')}\n"


def build_case(result: CaseResult, strict: bool) -> ET.Element:
    """Build the test case of one result."""
    case = result.case
    where = ".".join((case.system, case.partition, case.environment, case.program))
    element = ET.Element("testcase", {"classname": where, "name": case.key})
    about = {"type": str(result.verdict), "message": sanitize_line(result.reason or result.verdict)}
    if not result.counts_as_healthy(strict):
        ET.SubElement(element, "failure", about).text = "\n".join(list_details(result))
    elif result.verdict in UNASSERTED:
        ET.SubElement(element, "skipped", {"message": about["message"]})
    return element


def list_details(result: CaseResult) -> list[str]:
    """List what is known of a failed case, a line each."""
    lines = [f"verdict: {result.verdict}"]
    if result.value is not None:
        lines.append(f"value: {quantity(result.value, result.unit)}")
    if result.reference is not None:
        lines.append(f"reference: {quantity(result.reference, result.unit)}")
    if result.band is not None:
        lower, upper = (quantity(each, result.unit) for each in result.band)
        lines.append(f"band: {lower} to {upper}")
    lines += [f"rerun: {result.rerun}"] if result.rerun else []
    return [sanitize_line(line) for line in lines]


def build_session_error(summary: SessionSummary) -> ET.Element:
    """Build the test case of a session that failed as a whole."""
    element = ET.Element("testcase", {"classname": "plumbline", "name": "session"})
    told = "; ".join(summary.causes or summary.notes) or "no case failed, and none was measured"
    said = sanitize_line(f"exit status {summary.exit_status}: {told}")
    ET.SubElement(element, "error", {"type": "session", "message": said})
    return element
