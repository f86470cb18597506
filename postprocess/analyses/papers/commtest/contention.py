"""COMMTEST: what swapping messages costs when others do so too. Factor, where it begins, protocol changes.

Four experiments: rank 0 swaps with 1; i with i+1; i with i+P/2; a ring, each receiving from the one before and
sending to the next. Bandwidth is that of one process in both directions, 2 n / T.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.analyses.papers.common.data import PaperMeasurements
from postprocess.analyses.papers.taboada.measured_models import compute_minimum
from postprocess.base.formats import format_significant
from postprocess.base.formats import size as format_size
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.stats.curves.segments import fit_segments

ALONE = "0 with 1"
NEIGHBOURS = "i with i+1"
RING = "ring"
#: How the routines of each experiment begin; of its protocols the fastest counts: the paper's peak
EXPERIMENTS = {
    "swap_first_": ALONE,
    "swap_next_": NEIGHBOURS,
    "swap_half_": "i with i+P/2",
    "swap_ring_": RING,
}
SHIFT = "rightshift"  #: a ring too, and of two processes a swap
PAIR = 2  #: processes
LOST = 0.1  #: a share of the bandwidth that contention must take at least
FEWEST = 6  #: sizes among which a change of the protocol is looked for
Times = Mapping[int, float]


@dataclass(frozen=True)
class Swaps:
    """Least times of the experiments of one MPI by experiment, processes and bytes, in seconds."""

    machine: str
    environment: str
    conditions: str
    times: Mapping[str, Mapping[int, Times]]

    @property
    def ordered(self) -> Mapping[str, Mapping[int, Times]]:
        """The times in the order of the paper's experiments.

        Two processes swap with each other in all of them, which is no contention: they are left out where more
        were measured.
        """
        return {
            name: self.times[name] if name == ALONE else _leave_pairs_out(self.times[name])
            for name in EXPERIMENTS.values()
            if name in self.times
        }

    def alone_at(self, processes: int) -> Times:
        """Return the times of one pair: beside others that sleep, else of the fewest processes."""
        found = self.times[ALONE]
        return found.get(processes, found[min(found)])


def _leave_pairs_out(times: Mapping[int, Times]) -> Mapping[int, Times]:
    return {count: each for count, each in times.items() if count > PAIR} or times


def compute_bandwidth(size: int, time: float) -> float:
    """Compute bytes/s of one process, sent and received."""
    return 2 * size / time


def compute_factors(alone: Times, together: Times) -> dict[int, float]:
    """Compute the bandwidth beside others over that alone, from times in seconds by size in bytes."""
    return {size: alone[size] / together[size] for size in sorted(together) if size in alone}


def find_onset(factors: Mapping[int, float]) -> int | None:
    """Find the least size in bytes from which on all lose ``LOST`` of their bandwidth, or None."""
    onset = None
    for size in sorted(factors, reverse=True):
        if factors[size] > 1 - LOST:
            break
        onset = size
    return onset


def collect_swaps(measured: PaperMeasurements) -> list[Swaps]:
    """Collect the experiments of each machine and MPI, where there are times of one pair."""
    found: dict[tuple[str, str, str], dict[str, dict[int, dict[int, float]]]] = {}
    for cell, results in sorted(measured.results.items()):
        time = compute_minimum(results)
        if time is None or not cell.operation.bytes:
            continue
        place = (
            cell.machine,
            cell.environment,
            f"cache {cell.operation.cache}, sync {cell.operation.sync}",
        )
        for name in _experiments(cell.operation.routine, cell.processes):
            times = found.setdefault(place, {}).setdefault(name, {}).setdefault(cell.processes, {})
            size = cell.operation.bytes
            times[size] = min(time, times.get(size, time))
    return [Swaps(*place, times) for place, times in found.items() if ALONE in times]


def _experiments(routine: str, processes: int) -> list[str]:
    if routine == SHIFT and processes > 1:
        return [ALONE] if processes == 2 else [RING]
    return [name for start, name in EXPERIMENTS.items() if routine.startswith(start)]


def build_contention_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build a table of what contention costs and where it begins, and one of protocol changes."""
    swaps = collect_swaps(measured)
    rows = [row for each in swaps for row in _rows(each)]
    if not swaps:
        return []
    tables = [
        TextTable(
            "Bandwidth of a process beside others, over that of 0 with 1",
            ("machine", "MPI", "conditions", "experiment", "processes"),
            ("least size", "largest size", "factor there", "lowest", "contention from"),
            tuple(rows),
            (
                f"contention from: the size from which on {LOST:.0%} and more is lost at every size",
                "0 with 1: beside others that sleep, or without any; of several protocols the fastest at each "
                "size; a ring also waits for all its members",
                "in print: contention above 32 KB on a NEC SX-6/8 with four pairs",
            ),
        )
    ]
    return [*tables, _protocols(swaps)] if rows else [_protocols(swaps)]


def _rows(swaps: Swaps) -> list[tuple[str, ...]]:
    rows = []
    for name, counts in swaps.ordered.items():
        for count, times in sorted(counts.items()) if name != ALONE else ():
            factors = compute_factors(swaps.alone_at(count), times)
            if factors:
                onset = find_onset(factors)
                rows.append(
                    (
                        *(swaps.machine, swaps.environment, swaps.conditions, name, str(count)),
                        *(format_size(min(factors)), format_size(max(factors))),
                        f"{factors[max(factors)]:.2f}",
                        f"{min(factors.values()):.2f}",
                        format_size(onset) if onset else "none",
                    )
                )
    return rows


def _protocols(swaps: Sequence[Swaps]) -> TextTable:
    rows = []
    for each in swaps:
        for name, counts in each.ordered.items():
            for count, times in sorted(counts.items()):
                rows.append(
                    (
                        *(each.machine, each.environment, each.conditions, name, str(count)),
                        *_peak(times),
                        _breaks(times),
                    )
                )
    return TextTable(
        "Bandwidth of a process in both directions, and where the protocol changes",
        ("machine", "MPI", "conditions", "experiment", "processes"),
        ("peak (MB/s)", "at", "protocol changes"),
        tuple(rows),
        (
            f"protocol changes: {NOT_PRINTED} of fewer than {FEWEST} sizes",
            "in print: a change between 64 KB and 128 KB",
        ),
    )


def _peak(times: Times) -> tuple[str, str]:
    size = max(times, key=lambda each: compute_bandwidth(each, times[each]))
    return format_significant(compute_bandwidth(size, times[size]) / 1e6), format_size(size)


def _breaks(times: Times) -> str:
    if len(times) < FEWEST:
        return NOT_PRINTED
    segments = fit_segments(sorted(times), [times[size] for size in sorted(times)])
    return (
        ", ".join(
            f"{format_size(int(a.last))} to {format_size(int(b.first))}"
            for a, b in itertools.pairwise(segments)
        )
        or "none"
    )


def describe_missing_swaps(measured: PaperMeasurements) -> str:
    """Describe which command measures what no session has of the experiments."""
    there = {name for each in collect_swaps(measured) for name in each.times}
    lacking = [name for name in EXPERIMENTS.values() if name not in there]
    if not lacking:
        return ""
    command = "./plumbline run --program mpicost --family swaps --cache warm"
    return f"Not measured: {', '.join(lacking)}; {command}"
