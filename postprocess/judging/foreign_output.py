"""Report lines of others on the output of OSU and IMB, which were taken out before it was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from postprocess.base.formats import plural
from postprocess.model.launch import FinishedLaunch
from postprocess.parsers.osu_imb_launch import FIRST_FOREIGN, FOREIGN


def describe_foreign_lines(finished: Iterable[FinishedLaunch]) -> Iterator[str]:
    """Describe, for each environment and program, how many lines of others there were, and the first."""
    counts: dict[str, int] = {}
    launches: dict[str, int] = {}
    first: dict[str, str] = {}
    for each in finished:
        if count := each.run.get(FOREIGN, 0):
            place = f"{each.launch.partition}, {each.launch.environment}, {each.launch.program}"
            counts[place] = counts.get(place, 0) + count
            launches[place] = launches.get(place, 0) + 1
            first.setdefault(place, each.run[FIRST_FOREIGN])
    for place, count in sorted(counts.items()):
        yield (
            f"{place}: {plural(count, 'line')} in the output of {plural(launches[place], 'launch', 'es')} "
            f"that the program did not write, taken out; the first: {first[place]}"
        )
