"""Tell which forms of a paper mean nothing on a machine where only two processes were measured."""

from __future__ import annotations

from postprocess.extensions.papers.common.data import PaperMeasurements

PAIR = 2
TELLS_NOTHING = {
    "luecke2001": "nothing tells how a time grows with the processes, and a ratio is that of one pair",
    "luecke2003": "an operation is one message, whatever algorithm a library has for more",
    "rus": "a tree, a loop and a single send are the same message, so that their ratios tell nothing",
    "taboada": "a model is of this count alone: f(p) is unknown, and aggregated peaks are those of one pair",
    "commtest": "all experiments swap between the same two processes: factors are noise, and tell nothing "
    "about contention",
}


def describe_few_processes(measured: PaperMeasurements, paper: str) -> str:
    """Describe on which machines a form of ``PAPERS`` is of one pair of processes; empty for none."""
    most: dict[str, int] = {}
    for cell in measured.results:
        most[cell.machine] = max(cell.processes, most.get(cell.machine, 0))
    pairs = sorted(machine for machine, count in most.items() if count == PAIR)
    return f"{', '.join(pairs)}: 2 processes only: {TELLS_NOTHING[paper]}" if pairs else ""
