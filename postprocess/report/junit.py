"""A session as JUnit's XML, which Jenkins and GitLab show: one test case a case."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from postprocess.base.formats import SHOWN, format_band, parse_utc
from postprocess.base.sanitize import sanitize_line
from postprocess.model.verdict import UNASSERTED, CaseResult
from postprocess.report import case_lines
from postprocess.results.summary import SessionSummary

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'


def format_junit(summary: SessionSummary) -> str:
    """Format a session. What is not healthy says why, and has its band and the command that measures it again.

    A session that failed without a failed case, by a cause in common or since it measured nothing, has an
    error of its own.
    """
    again = {
        result.case: case_lines.format_again(group, number, summary)
        for number, group in enumerate(case_lines.list_groups(summary), 1)
        for result in group.results
    }
    cases = [build_case(r, summary.strict, again.get(r.case)) for r in summary.results]
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


def build_case(result: CaseResult, strict: bool, again: str | None) -> ET.Element:
    """Build the test case of one result.

    :param again: the command that measures it again; None if it is healthy and as it was expected
    """
    case = result.case
    where = ".".join((case.system, case.partition, case.environment, case.program))
    element = ET.Element("testcase", {"classname": where, "name": case.key})
    why = sanitize_line(case_lines.explain(result) or result.verdict)
    band = f"{format_band(result.band, result.unit)} {SHOWN[result.unit][1]}"
    told = {"band": result.band and band, "again": again}
    more = "\n".join(f"{name}: {text}" for name, text in told.items() if text)
    if not result.counts_as_healthy(strict):
        about = {"type": str(result.verdict), "message": why}
        ET.SubElement(element, "failure", about).text = more
    elif result.verdict in UNASSERTED:
        ET.SubElement(element, "skipped", {"message": why})
    elif again is not None:  # worth a look
        ET.SubElement(element, "system-out").text = f"{result.verdict}: {why}\n{more}"
    return element


def build_session_error(summary: SessionSummary) -> ET.Element:
    """Build the test case of a session that failed as a whole."""
    element = ET.Element("testcase", {"classname": "plumbline", "name": "session"})
    told = "; ".join(summary.causes or summary.notes) or "no case failed, and none was measured"
    said = sanitize_line(f"exit status {summary.exit_status}: {told}")
    ET.SubElement(element, "error", {"type": "session", "message": said})
    return element
