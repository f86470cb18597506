"""Where each thing that the papers show is proven: on a page that CI makes, or by a test.

The table of ``docs/papers.md`` calls done what stands here, and nothing else. Numbers as there.
"""

import re
import shlex
from dataclasses import dataclass

from tests.support.paths import ROOT

TEXT = (ROOT / "docs" / "papers.md").read_text()
ITEM = re.compile(r"(?:(?P<paper>\d{3}))?-(?P<first>\d+)(?: to -(?P<last>\d+))?")


@dataclass(frozen=True)
class OnPage:
    """What a page made by the documented command holds: each of these words."""

    paper: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class ByTest:
    """A test that CI runs, where a thing is on no page."""

    path: str


def read_commands() -> list[list[str]]:
    """Words of each command of the page, without variables, comments and where its output goes."""
    lines = [line for line in TEXT.splitlines() if line.startswith("    ") and "./plumbline" in line]
    commands = [part for line in lines for part in line.split("#")[0].split(";")]
    return [shlex.split(part.partition("./plumbline ")[2].split(" > ")[0]) for part in commands]


def read_numbers(text: str, paper: str = "") -> list[tuple[str, int]]:
    """Paper and number of each thing in a list such as ``000-1 to -3, -5``."""
    found = []
    for item in text.split(", "):
        match = ITEM.fullmatch(item)
        assert match, item
        paper = match["paper"] or paper
        first, last = int(match["first"]), int(match["last"] or match["first"])
        found += [(paper, number) for number in range(first, last + 1)]
    return found


_RECORDS = ByTest("tests/integration/mpicost/test_records.py")
_SIZES = ByTest("tests/integration/mpicost/test_list_option.py")
_HEADLINE = ByTest("tests/unit/postprocess/stats/test_launches.py")
_TRIALS = ByTest("tests/unit/postprocess/report/test_trial_selection.py")
_COUNTS = ByTest("tests/unit/site_configs/topology/test_layouts.py")
_FAMILY = ByTest("tests/unit/reframe_checks/test_precedence.py")
_BINDINGS = ByTest("tests/integration/mpi/test_bindings.py")
_LUECKE = {
    12: "pingpong: time over the partner",
    13: "rightshift: time over processes",
    14: "barrier: time over processes",
    15: "bcast: time over processes",
    16: "scatter: time over processes",
    17: "gather: time over processes",
    18: "allgather: time over processes",
    19: "alltoall: time over processes",
    20: "reduce_sum: time over processes",
    21: "allreduce_sum: time over processes",
    22: "scan_sum: time over processes",
    23: "pingpong: time over the partner",
    24: "bcast: time over processes",
    25: "A message takes alpha + M beta, by ping-pong",
    26: "time / log2 p",
    27: "time / (p-1)",
    28: "time / (p-1)",
    29: "time / (p-1)",
    30: "barrier: time over that of torus, 16 processes",
    31: "bcast: time over that of torus, 16 processes",
    32: "scatter: time over that of torus, 16 processes",
    33: "gather: time over that of torus, 16 processes",
    34: "allgather: time over that of torus, 16 processes",
    35: "alltoall: time over that of torus, 16 processes",
    36: "reduce_sum: time over that of torus, 16 processes",
    37: "allreduce_sum: time over that of torus, 16 processes",
}
_TESTS_2003 = ("pingpong", "rightshift", "bcast", "reduce_sum", "scatter", "gather", "alltoall")

PROVEN: dict[str, OnPage | ByTest] = {
    "000-1 to -2, -5": _RECORDS,
    "000-3": ByTest("tests/integration/mpi/test_small_sessions.py"),
    "000-4": OnPage("luecke2001", ("Time with cold caches over that with warm ones",)),
    "000-6 to -7": _HEADLINE,
    "000-8": _TRIALS,
    "000-9": OnPage("luecke2001", ("Table I: standard deviation", "unfiltered / filtered")),
    "000-10": _SIZES,
    "000-11, 002-7 to -8": _COUNTS,
    **{f"000-{number}": OnPage("luecke2001", (words,)) for number, words in _LUECKE.items()},
    "002-1 to -2": _RECORDS,
    "002-3, -5": _HEADLINE,
    "002-4": ByTest("tests/unit/postprocess/extensions/papers/test_command.py"),
    "002-6": OnPage("luecke2003", ("The clock", "a reading takes")),
    "002-9": _SIZES,
    "002-10": ByTest("tests/unit/site_configs/schema/test_manual_settings.py"),
    "002-11": ByTest("tests/unit/postprocess/calibration/test_machine_load.py"),
    **{f"002-{12 + n}": OnPage("luecke2003", (f"{name}: time over ",)) for n, name in enumerate(_TESTS_2003)},
    "002-19 to -20": _TRIALS,
    "002-21 to -22": OnPage("luecke2003", ("Table I: standard deviation", "seven")),
    "002-23 to -24": OnPage("luecke2003", ("time over the partner", "bcast: time over processes")),
    "002-25": ByTest("tests/unit/postprocess/extensions/papers/test_sends_and_swaps.py"),
    "002-26 to -27": OnPage("luecke2003", (": time over that with mpich",)),
    "001-1 to -2": ByTest("tests/integration/mpicost/test_calls_in_a_row.py"),
    "001-3": OnPage("rus", ("The clock",)),
    "001-4": OnPage("rus", ("p = 4", "p = 8", "p = 32")),
    "001-5": OnPage("rus", ("Sends by mode", "eager to")),
    "001-6, -25": OnPage("rus", ("Time of a send of x bytes, in us", "peak (MB/s)")),
    "001-7": OnPage("rus", ("(Fig. 1)",)),
    "001-8": ByTest("tests/integration/mpi/test_compare.py"),
    "001-9, 003-30 to -33": _BINDINGS,
    "001-10": OnPage("rus", ("(Fig. 2)",)),
    "001-11 to -12": OnPage("rus", ("(Figs. 3 and 4)", "buffer of the report")),
    "001-13, -15, -18": OnPage("rus", ("Operations over the sends that they could be made of",)),
    "001-14": OnPage("rus", ("(Figs. 5 and 6)",)),
    "001-16": OnPage("rus", ("(Figs. 7 and 8)",)),
    "001-17": OnPage("rus", ("(Figs. 9 and 10)",)),
    "001-19 to -20": OnPage("rus", ("(Figs. 11 and 12)",)),
    "001-21": OnPage("rus", ("Reduce over a tree of sends and local reductions",)),
    "001-22 to -24": OnPage("rus", ("Time over that in print of the T3E-512", "8 B each")),
    "001-26": OnPage("rus", ("T3E-512: time per call in us, buffer of 1 KiB",)),
    "003-1 to -6": _FAMILY,
    "003-7 to -9, -18 to -21": OnPage("taboada", ("T(n) = t0 + tb n", "t0 (us)", "ceil(log2 p)")),
    "003-10": OnPage("taboada", ("f(p) of t0", "f(p) of tb", "p (log2 p would do)")),
    "003-11 to -12": OnPage("taboada", ("Average absolute relative error", "Hockney", "20 sizes")),
    "003-13": OnPage("taboada", ("bandwidth of a send (Fig. 1)",)),
    "003-14": OnPage("taboada", ("t0 / tb",)),
    "003-15 to -17": OnPage("taboada", ("pi0 (KB/s)", "Bw (MB/s)")),
    "003-22": OnPage("taboada", ("latency and bandwidth of a send (Fig. 2)",)),
    "003-23": OnPage("taboada", ("(Figs. 3 and 4)",)),
    "003-24": OnPage("taboada", ("Send against what the network can do",)),
    "003-25": OnPage("taboada", ("Time by the model over that in print of Myrinet:MPICH-GM",)),
    "003-34 to -38": ByTest("tests/integration/mpicost/test_kernels.py"),
    "003-39 to -40": ByTest("tests/integration/mpi/test_small_sessions.py"),
    "003-41 to -44": ByTest("tests/unit/postprocess/extensions/papers/test_taboada_kernels.py"),
    "003-26 to -28": OnPage("taboada", ("bcast by scatter + allgather", "measured saving")),
    "003-29": ByTest("tests/integration/simgrid/test_guidelines.py"),
    "003-45": ByTest("tests/unit/reframe_checks/common/test_user_options.py"),
    "003-46": ByTest("tests/unit/postprocess/extensions/papers/test_printed.py"),
    "003-47": ByTest("tests/unit/postprocess/extensions/papers/test_own_data.py"),
    "004-1 to -5": OnPage("commtest", ("0 with 1", "i with i+1", "i with i+P/2", "ring")),
    "004-6 to -9": OnPage("commtest", ("all sizes, log-log", "to 8 KiB, log-linear")),
    "004-10 to -11": OnPage("commtest", ("contention from", "factor there")),
    "004-12": OnPage("commtest", ("Where the protocol changes",)),
    "004-13 to -14": OnPage("commtest", ("Platforms, 0 with 1", "Platforms, i with i+1")),
    "004-15": OnPage("commtest", ("Figures of the text",)),
}


def list_proven() -> dict[tuple[str, int], OnPage | ByTest]:
    """List the proof of each thing."""
    found: dict[tuple[str, int], OnPage | ByTest] = {}
    for numbers, proof in PROVEN.items():
        for each in read_numbers(numbers):
            assert each not in found, each
            found[each] = proof
    return found
