"""Resolution and cost of the clock, as Luecke, Kraeva and Ju (2003) report them of their machines."""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import PaperMeasurements
from postprocess.extensions.papers.common.numbers import write_plain
from postprocess.extensions.papers.common.printed import History

PLACE = ("system", "partition", "environment")


def read_timers(
    frame: pl.DataFrame, session: str
) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Read resolution and overhead of the clock, in seconds, by system, partition and environment."""
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    if frame.is_empty():
        return found
    rows = frame.filter((pl.col("session") == session) & (pl.col("program") == "mpicost"))
    for row in rows.select(*PLACE, "provenance").unique().iter_rows(named=True):
        timer = json.loads(row["provenance"] or "{}").get("timer")
        if isinstance(timer, dict) and {"resolution", "overhead"} <= timer.keys():
            place = (row["system"], row["partition"], row["environment"])
            before = found.get(place, (0.0, 0.0))
            told = (float(timer["resolution"]), float(timer["overhead"]))
            found[place] = (max(before[0], told[0]), max(before[1], told[1]))
    return found


def build_timer_table(
    measured: PaperMeasurements,
    timers: Mapping[str, Mapping[tuple[str, str, str], tuple[float, float]]],
    history: History,
) -> TextTable | None:
    """Build a row for each machine and MPI, and those in print; None if no session tells."""
    rows = []
    for machine in measured.machines:
        known = [timers.get(session, {}) for session in measured.sessions[machine]]
        for environment in measured.environments_on(machine):
            place = (*measured.systems[machine], environment)
            if told := [each[place] for each in known if place in each]:
                largest = (
                    write_plain(max(seconds) * 1e6, "us", 3) for seconds in zip(*told, strict=True)
                )
                rows.append((machine, environment, *largest))
    if not rows:
        return None
    printed = [
        (f"{each.machine} (in print)", NOT_PRINTED, write_plain(each.value, "us"), NOT_PRINTED)
        for each in history.figures
        if each.paper == "Luecke 2003" and each.quantity == "timer_resolution"
    ]
    return TextTable(
        "The clock",
        ("machine", "MPI"),
        ("resolution (us)", "a reading takes (us)"),
        (*rows, *printed),
        (
            "in print: of MPI_Wtime; ours: of the clock that mpicost reads, the largest of all launches",
        ),
    )
