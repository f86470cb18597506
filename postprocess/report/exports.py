"""A session for other programs: JUnit's XML, and metrics in OpenMetrics' text format."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any
from xml.etree import ElementTree as ET

from postprocess.base.formats import SHOWN, format_band, parse_utc
from postprocess.base.sanitize import sanitize_line
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.verdict import UNASSERTED, CaseResult, Verdict
from postprocess.report import overview
from postprocess.results.launch_costs import list_timed_jobs
from postprocess.results.summary import SessionSummary

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'


def format_junit(summary: SessionSummary) -> str:
    """Format a session. What is not healthy says why, and has its band and the command that measures it again.

    A session that failed without a failed case, by a cause in common or since it measured nothing, has an
    error of its own.
    """
    again = {
        result.case: overview.format_again(group, number, summary)
        for number, group in enumerate(overview.list_groups(summary), 1)
        for result in group.results
    }
    cases = [build_case(r, summary.strict, again.get(r.case)) for r in summary.results]
    shares = share_job_seconds(summary)
    for result, case in zip(summary.results, cases, strict=True):
        if result.value is not None and (seconds := shares.get(LaunchPlace.of(result.case))):
            case.set("time", f"{seconds:.3f}")
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


def share_job_seconds(summary: SessionSummary) -> dict[LaunchPlace, float]:
    """Share the seconds of the jobs at each place among its measured cases, as readers of JUnit add them up."""
    cases = Counter(LaunchPlace.of(result.case) for result in summary.results if result.value is not None)
    seconds: defaultdict[LaunchPlace, float] = defaultdict(float)
    for job in list_timed_jobs(summary.launches):
        seconds[job.place] += job.seconds
    return {place: seconds[place] / number for place, number in cases.items()}


def build_case(result: CaseResult, strict: bool, again: str | None) -> ET.Element:
    """Build the test case of one result.

    :param again: the command that measures it again; None if it is healthy and as it was expected
    """
    case = result.case
    where = ".".join((case.system, case.partition, case.environment, case.program))
    element = ET.Element("testcase", {"classname": where, "name": case.key})
    why = sanitize_line(overview.explain(result) or result.verdict)
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


#: Of a case, told by labels.
PARTS = (*("system", "partition", "environment", "program", "routine", "peer", "variant", "layout"), "bytes")
NOTHING_MORE: Mapping[Any, Any] = {}
#: Its name, what it is, and its numbers by their labels; what has no number is left out.
Gauge = tuple[str, str, Sequence[tuple[Mapping[str, str], float | None]]]
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
    counts = Counter(result.verdict for result in summary.results)
    gauges: list[Gauge] = [
        ("session_end_seconds", "When the session ended, in Unix time.", [({}, ended)]),
        ("session_exit_status", "0 if every case is healthy.", [({}, summary.exit_status)]),
        (
            "cases",
            "Cases of the session with this verdict.",
            [({"verdict": str(verdict)}, counts[verdict]) for verdict in Verdict],
        ),
    ]
    for name, told in (
        ("usable", "Nodes of the partition that jobs can use."),
        ("away", "Nodes of the partition that are down or taken out."),
    ):
        samples = [({"partition": place}, getattr(counted, name)) for place, counted in nodes.items()]
        gauges.append((f"nodes_{name}", told, samples))
    read: Callable[[CaseResult], float | None]
    for name, told, read in (
        (
            "healthy",
            "1 if the case does not fail the session and is not suspect.",
            lambda each: float(each.counts_as_healthy(summary.strict) and each.verdict is not Verdict.SUSPECT),
        ),
        ("value", "Judged value of the case, in the unit of its label.", attrgetter("value")),
        ("reference", "Center of its reference, in the same unit.", attrgetter("reference")),
        ("slowdown", "How many times as slow as its reference.", attrgetter("slowdown")),
        ("detectable", "Smallest slowdown that one night calls, as a fraction.", attrgetter("detectable")),
        ("spread", "Standard deviation of the logarithm of values, all in all.", attrgetter("spread")),
        (
            "reference_seconds",
            "When its reference was measured, in Unix time.",
            lambda each: calibrated.get(each.case),
        ),
    ):
        gauges.append((f"case_{name}", told, [(list_labels(each), read(each)) for each in summary.results]))
    lines = (line for gauge in gauges for line in format_gauge(site, *gauge))
    return "\n".join([*lines, "# EOF", ""])


def list_labels(result: CaseResult) -> dict[str, str]:
    """List the labels of a case: the parts of its key, and the unit of its values."""
    return {name: str(getattr(result.case, name)) for name in PARTS} | {"unit": result.unit}


def format_gauge(
    site: Mapping[str, str], name: str, told: str, samples: Sequence[tuple[Mapping[str, str], float | None]]
) -> Iterator[str]:
    yield f"# HELP plumbline_{name} {told}"
    yield f"# TYPE plumbline_{name} gauge"
    for labels, number in samples:
        if number is not None:
            yield format_sample(name, {**site, **labels}, number)


def format_sample(name: str, labels: Mapping[str, str], value: float) -> str:
    words = (f'{key}="{sanitize_line(text).translate(ESCAPED)}"' for key, text in labels.items())
    return f"plumbline_{name}{{{','.join(words)}}} {value!r}"
