"""The report of recorded nights: in the terminal, as pages, and in the forms of other programs."""

import json

from postprocess.report.exports import format_junit, format_openmetrics
from postprocess.results.store import write_session
from postprocess.results.summary import load_summary
from tests.golden.stage import Stage
from tests.support.factories.report import SESSION, Night, bad_night, cases, few_cases, healthy_night, hostile

SHOWN = ("pingpong", "bcast", "barrier")  #: routines of the good night


def play(stage: Stage) -> None:
    """Write the reports of a good night, of one with all that can go wrong, and of one with hostile names."""
    good = cases((2, 4), ("mpich-5.0.2", "openmpi-5.0.9"))
    bad = [case for case in few_cases() if case.processes > 2 or case.routine == "allgather"]
    for name, night in {
        "healthy": healthy_night([case for case in good if case.routine in SHOWN]),
        "bad": bad_night([case for case in bad if case.bytes != 8 and case.routine != "scan_sum"]),
        "hostile": hostile(bad_night(few_cases()[::12])),
    }.items():
        report(stage, name, night)


def report(stage: Stage, name: str, night: Night) -> None:
    """Write the report of a night again, as ``report`` does, and its other forms."""
    folder = night.write(stage.home / "sessions" / SESSION)
    stored = stage.home / "store" / f"{SESSION}.parquet"
    stored.parent.mkdir(exist_ok=True)
    stored.unlink(missing_ok=True)
    write_session(stored, night.rows)
    stage.run(name, ["report", SESSION], [folder / "report.html", folder / "report.md"])
    summary = load_summary(folder / "summary.json")
    stage.keep(f"{name}.summary.json", json.dumps(summary.to_dict(), indent=1) + "\n")
    if name != "hostile":  # its dates are none
        stage.keep(f"{name}.junit.xml", format_junit(summary))
    if name == "healthy":
        stage.keep(f"{name}.openmetrics.txt", format_openmetrics(summary))
