"""COMMTEST: what swapping messages costs when others do so too. Factor, where it begins, protocol changes.

Four experiments: rank 0 swaps with 1; i with i+1; i with i+P/2; a ring, each receiving from the one before and
sending to the next. Bandwidth is that of one process in both directions, 2 n / T.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.formats import MEGABYTES, NOT_PRINTED, TextTable
from postprocess.base.formats import size as format_size
from postprocess.extensions.papers import cells, figures
from postprocess.extensions.papers.asides import PAIR
from postprocess.extensions.papers.measurements import LABELS, PaperMeasurements, Place
from postprocess.report.panels import FROM_ZERO, thin_values
from postprocess.stats.curves import fit_segments

ALONE = "0 with 1"
NEIGHBOURS = "i with i+1"
RING = "ring"
#: How the routines of each experiment begin; of its protocols the fastest counts: the paper's peak
EXPERIMENTS = {"swap_first_": ALONE, "swap_next_": NEIGHBOURS, "swap_half_": "i with i+P/2", "swap_ring_": RING}
SHIFT = "rightshift"  #: a ring too, and of two processes a swap
LOST = 0.1  #: a share of the bandwidth that contention must take at least
SYNCHRONOUS = "_synchronous"  #: how the routines end that wait for the receiver at every size
COMMAND = "./plumbline run --family commtest"
FEWEST = 6  #: sizes among which a change of the protocol is looked for
Times = Mapping[int, float]


@dataclass(frozen=True)
class Swaps:
    """Least times of the experiments of one MPI by experiment, processes and bytes, in seconds."""

    place: Place
    times: Mapping[str, Mapping[int, Times]]
    protocols: Mapping[tuple[str, str], Mapping[int, Times]]  #: by experiment and routine

    @property
    def counts(self) -> list[int]:
        """The counts of processes at which experiments stand beside one pair alone."""
        counts = sorted({c for name, each in self.times.items() if name != ALONE for c in each})
        return counts or sorted(self.times[ALONE])

    def at(self, processes: int) -> dict[str, Times]:
        """Return the experiments at one count of processes, one pair alone beside the others that sleep."""
        found = {ALONE: self.alone_at(processes)}
        others = {name: each for name, each in self.times.items() if name != ALONE}
        return found | {name: each[processes] for name, each in others.items() if processes in each}

    def alone_at(self, processes: int) -> Times:
        """Return the times of one pair: beside others that sleep, else of the fewest processes."""
        found = self.times[ALONE]
        return found.get(processes, found[min(found)])


def compute_bandwidth(size: int, time: float) -> float:
    """Compute bytes/s of one process, sent and received."""
    return 2 * size / time


def compute_factors(alone: Times, together: Times) -> dict[int, float]:
    """Compute the bandwidth beside others over that alone, from times in seconds by size in bytes."""
    return {size: alone[size] / together[size] for size in sorted(together) if size in alone}


def find_onset(factors: Mapping[int, float]) -> int | None:
    """Find the least size in bytes from which on all lose ``LOST`` of their bandwidth, or None.

    Of the bandwidth beside others at the least size: what is lost there already is distance, as where the
    partners lie on other nodes than 0 and 1, or waiting. It is no contention for a link.
    """
    onset = None
    before = min(1.0, factors[min(factors)]) if factors else 1.0
    for size in sorted(factors, reverse=True):
        if factors[size] > (1 - LOST) * before:
            break
        onset = size
    return onset


def collect_swaps(measured: PaperMeasurements) -> list[Swaps]:
    """Collect the experiments of each machine and MPI, where there are times of one pair."""
    found: dict[Place, dict[str, dict[int, dict[int, float]]]] = {}
    ways: dict[Place, dict[tuple[str, str], dict[int, dict[int, float]]]] = {}
    for (place, routine, count), every in measured.group_sizes(least=True).items():
        times = {size: time for size, time in every.items() if size}
        for name in _experiments(routine, count) if times else ():
            least = found.setdefault(place, {}).setdefault(name, {}).setdefault(count, {})
            least |= {size: min(time, least.get(size, time)) for size, time in times.items()}
            ways.setdefault(place, {}).setdefault((name, routine), {})[count] = times
    return [Swaps(place, _select_swaps(times), ways[place]) for place, times in found.items() if ALONE in times]


def _select_swaps(times: Mapping[str, Mapping[int, Times]]) -> dict[str, Mapping[int, Times]]:
    """Put experiments in the order of the paper's, without two processes where more were measured.

    Two swap with each other in all of them, which is no contention.
    """
    several = {
        name: {count: sizes for count, sizes in each.items() if count > PAIR or name == ALONE}
        for name, each in times.items()
    }
    return {name: several[name] or times[name] for name in EXPERIMENTS.values() if name in times}


def _experiments(routine: str, processes: int) -> list[str]:
    if routine == SHIFT and processes > 1:
        return [ALONE] if processes == 2 else [RING]
    return [name for start, name in EXPERIMENTS.items() if routine.startswith(start)]


def build_contention_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build a table of what contention costs and where it begins, of peaks, and of protocol changes."""
    swaps = collect_swaps(measured)
    return [_contention(swaps), _peaks(swaps), _changes(swaps)]


def _list_times(swaps: Sequence[Swaps]) -> list[tuple[Swaps, str, int, Times]]:
    """List the times of each experiment at each count of processes."""
    return [
        (swap, name, count, times)
        for swap in swaps
        for name, counts in swap.times.items()
        for count, times in sorted(counts.items())
    ]


def _contention(swaps: Sequence[Swaps]) -> TextTable:
    rows = []
    for each, name, count, times in _list_times(swaps):
        factors = compute_factors(each.alone_at(count), times) if name != ALONE else {}
        if factors:
            onset = find_onset(factors)
            rows.append(
                (
                    *(*each.place.cells, name, str(count)),
                    *(cells.size(min(factors)), cells.ratio(factors[min(factors)])),
                    *(cells.size(max(factors)), cells.ratio(factors[max(factors)])),
                    *(cells.ratio(min(factors.values())), cells.size(onset) if onset else "none"),
                )
            )
    return TextTable(
        "Bandwidth of a process beside others, over that of 0 with 1 at the same count",
        (*LABELS, "experiment", "processes"),
        ("least size", "factor", "largest size", "factor there", "lowest", "contention from"),
        tuple(rows),
        (
            f"contention from: the size from which on {LOST:.0%} and more is lost at every size, beyond what "
            "is lost at the least size already",
            "factor: at the least size; below 1 the partners lie farther apart than 0 and 1, or wait for "
            "others",
            "0 with 1: beside others that sleep; of several protocols the fastest at each size",
            "ring: waits for all its members, who leave the barrier before the trial one after the "
            "other; pairs begin at the same time",
            "in print: contention above 32 KB on a NEC SX-6/8 with four pairs",
        ),
    )


def _peaks(swaps: Sequence[Swaps]) -> TextTable:
    return TextTable(
        "Peak bandwidth of a process in both directions",
        (*LABELS, "experiment", "processes"),
        ("peak (MB/s)", "at"),
        tuple(
            (*each.place.cells, name, str(count), *_peak(times))
            for each, name, count, times in _list_times(swaps)
        ),
        ("2 n / T, of several protocols the fastest",),
    )


def _peak(times: Times) -> tuple[str, str]:
    size = max(times, key=lambda each: compute_bandwidth(each, times[each]))
    return cells.rate(compute_bandwidth(size, times[size])), cells.size(size)


def _changes(swaps: Sequence[Swaps]) -> TextTable:
    """Build a row for each MPI: where the protocol changes in all experiments by all ways to send."""
    return TextTable(
        "Where the protocol changes",
        LABELS,
        ("for all experiments",),
        tuple((*swap.place.cells, _write_changes(find_protocol_changes(swap))) for swap in swaps),
        (
            "a break of the curves of all experiments, by every way to send but the synchronous one, which has "
            f"one protocol; others are contention or noise; {NOT_PRINTED}: fewer than {FEWEST} sizes",
            "in print: a change between 64 KB and 128 KB",
        ),
    )


def _write_changes(changes: Sequence[tuple[int, int]] | None) -> str:
    if changes is None:
        return NOT_PRINTED
    return ", ".join(f"{format_size(low)} to {format_size(high)}" for low, high in changes) or "none"


def find_protocol_changes(swaps: Swaps) -> list[tuple[int, int]] | None:
    """Find the breaks that all experiments show by all ways to send, as sizes before and after.

    A break counts as the same where it is found one size further. None of fewer sizes than :data:`FEWEST`.
    """
    found = [
        _find_breaks(each[max(each)])
        for (_, routine), each in swaps.protocols.items()
        if not routine.endswith(SYNCHRONOUS)
    ]
    if not found or any(each is None for each in found):
        return None
    first, *others = [each for each in found if each is not None]
    return [
        (low, high)
        for low, high in first
        if all(any(a <= high and low <= b for a, b in other) for other in others)
    ]


def _find_breaks(times: Times) -> list[tuple[int, int]] | None:
    if len(times) < FEWEST:
        return None
    segments = fit_segments(sorted(times), [times[size] for size in sorted(times)])
    return [(int(a.last), int(b.first)) for a, b in itertools.pairwise(segments)]


def describe_missing_swaps(measured: PaperMeasurements) -> str:
    """Describe which command measures what no session has of the experiments."""
    there = {name for swaps in collect_swaps(measured) for name in swaps.times}
    lacking = [name for name in EXPERIMENTS.values() if name not in there]
    return f"Not measured: {', '.join(lacking)}; {COMMAND}" if lacking else ""


LOG_LINEAR = (2**21, 2**17, 2**13)  #: largest sizes of the pictures with a linear bandwidth
MOST_COUNTS = 2  #: of processes, each a figure


def draw_swaps(measured: PaperMeasurements) -> list[figures.PaperFigure]:
    """Draw the experiments of each MPI at one count of processes, then platform against platform."""
    swaps = collect_swaps(measured)
    drawn = []
    for swap in swaps:
        for count in thin_values(swap.counts, MOST_COUNTS):
            title = f"{', '.join(swap.place)}, {count} processes"
            curves = {name: _bandwidths(times) for name, times in swap.at(count).items()}
            drawn.append(_swap_figure(title, curves))
    for experiment in (ALONE, NEIGHBOURS):
        platforms = {
            ", ".join(swap.place[:2]): _bandwidths(swap.at(swap.counts[-1])[experiment])
            for swap in swaps
            if swap.counts and experiment in swap.at(swap.counts[-1])
        }
        if len(platforms) > 1:
            kept = {name: platforms[name] for name in list(platforms)[: figures.MOST_LINES]}
            drawn.append(_swap_figure(f"Platforms, {experiment}", kept))
    return drawn


def _bandwidths(times: Times) -> figures.Curve:
    return {size: compute_bandwidth(size, times[size]) / 1e6 for size in times}


def _swap_figure(title: str, curves: Mapping[str, figures.Curve]) -> figures.PaperFigure:
    panels = [figures.build_panel("all sizes, log-log", "bytes", curves, curves, MEGABYTES)]
    for most in LOG_LINEAR:
        small = {n: {s: v for s, v in curve.items() if s <= most} for n, curve in curves.items()}
        if any(len(curve) > 2 for curve in small.values()):
            name = f"to {format_size(most)}, log-linear"
            panels.append(figures.build_panel(name, "bytes", small, curves, MEGABYTES, FROM_ZERO))
    return figures.build_figure(f"{title}: bandwidth in both directions", panels)
