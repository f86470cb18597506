"""Sends under several settings of an MPI, as RUS Stuttgart varied the limit of what is buffered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import PaperMeasurements
from postprocess.extensions.papers.common.numbers import write_bytes, write_time

STANDARD = "pingpong_standard"
OPTION = "--set-env"
USUAL = "as it is"  #: the setting of a session without any
CLEAR = 1.25  #: times the shortest: below, settings count as equal


def read_settings(command: Sequence[str]) -> dict[str, str]:
    """Read what ``--set-env ENVIRONMENT:NAME=VALUE`` set in a command, by environment."""
    told = [word.removeprefix(f"{OPTION}=") for word in command if word.startswith(f"{OPTION}=")]
    told += [value for word, value in pairwise(command) if word == OPTION]
    found: dict[str, list[str]] = {}
    for word in told:
        environment, _, setting = word.partition(":")
        found.setdefault(environment, []).append(setting)
    return {name: ", ".join(each) for name, each in found.items()}


def build_sweep_table(measured: PaperMeasurements) -> TextTable | None:
    """Build a row for each size of standard sends, a column for each setting; None without two settings."""
    times: dict[tuple[str, ...], dict[int, dict[str, float]]] = {}
    for cell in sorted(measured.results):
        time = measured.times[cell]
        if cell.operation.routine == STANDARD and time is not None:
            place = (":".join(measured.systems[cell.machine]), cell.environment)
            conditions = f"{cell.operation.cache}, {cell.operation.sync}"
            setting = measured.find_setting(cell.machine, cell.environment) or USUAL
            sizes = times.setdefault((*place, conditions, str(cell.processes)), {})
            sizes.setdefault(cell.operation.bytes, {})[setting] = time
    swept = {
        place: sizes
        for place, sizes in times.items()
        if len({setting for each in sizes.values() for setting in each}) > 1
    }
    if not swept:
        return None
    settings = list(
        dict.fromkeys(s for sizes in swept.values() for each in sizes.values() for s in each)
    )
    rows = [
        (*place, write_bytes(size), *_cells(settings, sizes[size]))
        for place, sizes in swept.items()
        for size in sorted(sizes)
    ]
    return TextTable(
        "Standard sends by setting: half a ping-pong in us",
        ("machine", "MPI", "conditions", "processes", "size"),
        (*settings, "shortest"),
        tuple(rows),
        (
            f"shortest: told where settings differ by a factor of {CLEAR:g} and more; less is noise",
            "in print: no effect of buffering on messages below 4096 bytes, so that 4096 is the best limit",
        ),
    )


def _cells(settings: Sequence[str], times: dict[str, float]) -> list[str]:
    least = min(times.values())
    best = [setting for setting in settings if times.get(setting, math.inf) < CLEAR * least]
    shown = [
        write_time(times[each], quantity="half a ping-pong", note=each)
        if each in times
        else NOT_PRINTED
        for each in settings
    ]
    return [*shown, NOT_PRINTED if len(best) == len(times) else "; ".join(best)]
