"""Sessions that tell what their launches took, for the tests of costs."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from postprocess.model.case import LaunchPlace
from tests.support.factories import record, report
from tests.support.factories.launch import CASES, leave, planned

PLACE = LaunchPlace.of(CASES[0])
SECONDS, ELAPSED = 30.6, 10.2  #: of a job, and of that in mpicost: 0.2 s a trial of 51


def entry(seconds: float = SECONDS, directory: str = "stage", **changes) -> dict:
    """A launch in a summary."""
    partition, environment, program, processes, per_node = PLACE
    made = {"program": program, "start": "", "cases": len(CASES), "environment": environment}
    made |= {"partition": partition, "processes": processes, "per_node": per_node, "launch": 1}
    made |= {"seconds": seconds, "outcome": "ok", "reason": "", "directory": directory}
    made |= {"spec": "cmake"}
    return made | changes


@cache
def document() -> dict:
    """A summary."""
    return report.healthy_night(report.few_cases()).document()


def write_session_directory(directory: Path, launches: list[dict], site: str = "mycluster") -> Path:
    """A session that ended, with what it says of its launches, and with records of one of mpicost."""
    directory.mkdir(parents=True)
    told = document() | {"launches": launches, "site": site}
    (directory / "summary.json").write_text(json.dumps(told))
    end = {**record.end_record(1), "elapsed": ELAPSED}
    leave(directory, planned(trials=51), [{"record": "run"}, end])
    return directory
