"""Tell the records of a launch from those of another one: by its token, its command and its times.

A launcher that starts nothing may leave the records of an earlier launch, and they are whole and without
contradiction. Only what the plan knows of this launch alone shows that they are not its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.formats import DATE_FORMAT, parse_utc
from postprocess.model.plan import PlannedLaunch

CLOCKS_DIFFER = 60  #: seconds that the clocks of two nodes of a job may differ


def describe_foreign_records(
    launch: PlannedLaunch, session: Path, run: Mapping[str, Any], end: Mapping[str, Any]
) -> str:
    """Describe why records are not of this launch, in one line; empty if they are.

    A plan without a token does not tell.

    :param run: the first record of mpicost or of a witness, ``end`` the last one
    """
    if not launch.token:
        return ""
    fix = "look at what its launcher starts"
    if {run.get("token"), end.get("token")} != {launch.token}:
        return f"the records are not of this launch: they have not its token; {fix}"
    if not launch.benchmarks and run["command"][1:] != [*launch.options, f"--token={launch.token}"]:
        return f"the records are not of this launch: their command is another one; {fix}"
    moments = [read_moment(run["date_utc"]), read_moment(end["ended_utc"])]
    span = read_span(launch, session)
    if span is None:
        return f"{launch.span(session)}: does not tell when the launch began and ended; {fix}"
    began, ended = span
    if not began - CLOCKS_DIFFER <= moments[0] <= moments[1] <= ended + CLOCKS_DIFFER:
        lasted = " to ".join(
            time.strftime(DATE_FORMAT, time.gmtime(each)) for each in (began, ended)
        )
        told = f"{run['date_utc']} to {end['ended_utc']}"
        return f"the records tell of {told}, and the launch was from {lasted}; set the clocks of the nodes"
    return ""


def read_moment(text: str) -> int:
    """Read a date of a record, in seconds since 1970. ValueError if it is none."""
    return int(parse_utc(text).timestamp())


def read_span(launch: PlannedLaunch, session: Path) -> tuple[int, int] | None:
    """Read when a launch began and ended, in seconds since 1970; None if its job script did not tell."""
    try:
        began, ended = map(int, files.read_text(launch.span(session)).split())
    except (OSError, ValueError):
        return None
    return began, ended
