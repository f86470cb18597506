"""Outputs of OSU and IMB for the tests: those in the corpus, and writers of both formats.

The writers know nothing of the parsers: each line is put together from the widths of the programs'
own columns, beside the tables that a reader must find in it.
"""

import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from postprocess.parsers.text_output import FailureLine, OutputError, OutputTable, ProgramOutput, TableRow
from tests.support.paths import DATA

CORPUS = DATA / "outputs"
OSU = sorted((CORPUS / "osu").glob("*.txt"))
IMB = sorted((CORPUS / "imb").glob("*.txt"))

HUNDREDTHS = st.integers(min_value=0, max_value=10**9)
SIZES = st.lists(st.integers(min_value=0, max_value=2**31), unique=True, max_size=5).map(sorted)


def printed(hundredths: int) -> str:
    """A number with two decimals, as C prints it."""
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def amount(hundredths: int) -> float:
    """The number that is printed so."""
    return float(printed(hundredths))


# --- OSU ---

LATENCY = ["Avg Latency(us)", "Min Latency(us)", "Max Latency(us)"]
OVERLAP = ["Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"]
FULL_OVERLAP = [
    *["Overall(us)", "Compute(us)", "Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)"],
    *["Pure Comm.(us)", "Min Comm.(us)", "Max Comm.(us)", "Overlap(%)"],
]
WINDOW = {"Window creation": "MPI_Win_allocate", "Synchronization": "MPI_Win_flush"}
#: kind of table: title, columns, lines before the header and what a reader notes of them
OSU_KINDS: dict[str, tuple[str, list[str], list[str], dict[str, str]]] = {
    "latency": ("OSU MPI Latency Test", LATENCY[:1], [], {}),
    "old latency": ("OSU MPI Latency Test", ["Latency (us)"], [], {}),
    "bandwidth": ("OSU MPI Bandwidth Test", ["Bandwidth (MB/s)"], [], {}),
    "collective": ("OSU MPI Allreduce Latency Test", LATENCY[:1], [], {}),
    "full collective": ("OSU MPI Allreduce Latency Test", [*LATENCY, "Iterations"], [], {}),
    "overlap": (
        "OSU MPI Non-blocking Allreduce Latency Test",
        OVERLAP,
        ["# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait", ""],
        {},
    ),
    "full overlap": (
        "OSU MPI Non-blocking Allreduce Latency Test",
        FULL_OVERLAP,
        ["# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait", ""],
        {},
    ),
    "pairs": (
        "OSU MPI Multiple Bandwidth / Message Rate Test",
        ["MB/s", "Messages/s"],
        ["# [ pairs: 2 ] [ window size: 64 ]"],
        {"pairs": "2", "window size": "64"},
    ),
    "one-sided": (
        "OSU MPI_Put Latency Test",
        ["Latency (us)"],
        [f"# {key}: {value}" for key, value in WINDOW.items()],
        WINDOW,
    ),
}


def osu_cells(draw: Callable[..., Any], columns: list[str]) -> dict[str, tuple[str, float]]:
    """A number for every column, printed and as it is."""
    cells = {}
    for name in columns:
        hundredths = draw(HUNDREDTHS)
        cells[name] = (printed(hundredths), amount(hundredths))
        if name in ("Iterations", "Transmit Size"):
            cells[name] = (str(hundredths), float(hundredths))
    for low, middle, high in (LATENCY[1::-1] + LATENCY[2:], FULL_OVERLAP[6:4:-1] + FULL_OVERLAP[7:8]):
        if high in cells:
            ordered = sorted((cells[name] for name in (low, middle, high)), key=lambda cell: cell[1])
            cells |= dict(zip((low, middle, high), ordered, strict=True))
    return cells


@st.composite
def osu_outputs(draw: Callable[..., Any]) -> tuple[str, ProgramOutput]:
    kind = draw(st.sampled_from(sorted(OSU_KINDS)))
    title, columns, before, notes = OSU_KINDS[kind]
    version = draw(st.sampled_from(["", "5.6.3", "7.4"]))
    sized = draw(st.booleans()) or not columns[0].startswith(("Avg", "Overall"))
    validated = sized and draw(st.booleans())
    tails = draw(st.lists(st.integers(1, 99), unique=True, max_size=3))
    names = draw(st.lists(st.sampled_from(["MPI_CHAR", "MPI_INT", "MPI_FLOAT"]), unique=True))
    tail = "Tail BW(MB/s)" if "MB/s" in columns[0] else "Tail Lat(us)"
    columns = [*columns, *(f"P{percent} {tail}" for percent in tails)]
    lines = [*draw(st.sampled_from([[], [""]])), f"# {title}{version and ' v'}{version}", *before]
    tables = []
    for name in names or [None]:
        lines += [f"# Datatype: {name}."] if name else []
        lines.append(osu_header(columns, sized, validated, len(tails)))
        rows = []
        for size in draw(SIZES) if sized else [None]:
            cells = osu_cells(draw, columns)
            rows.append(TableRow(size, {k: v[1] for k, v in cells.items()}, validated or None))
            lines.append(osu_row(size, [v[0] for v in cells.values()], validated, len(tails)))
        tables.append(OutputTable(title, tuple(columns), tuple(rows), datatype=name, notes=notes))
    return "\n".join([*lines, ""]), ProgramOutput(version, tuple(tables))


def osu_header(columns: list[str], sized: bool, validated: bool, tails: int) -> str:
    """The header words: 20 wide each, but the first one without sizes and the number of calls."""
    first = [f"{'# Size':<10}"] if sized else [f"# {columns[0]}"]
    words = columns if sized else columns[1:]
    cells = [f"{word:>{12 if word == 'Iterations' else 20}}" for word in words]
    cells.insert(len(cells) - tails, f"{'Validation':>20}" if validated else "")
    return "".join(first + [cell[-18:] if "Tail BW" in cell else cell for cell in cells])


def osu_row(size: int | None, numbers: list[str], validated: bool, tails: int) -> str:
    """A row under such a header."""
    cells = [f"{number:>20}" for number in numbers]
    cells.insert(len(cells) - tails, f"{'Pass':>20}" if validated else "")
    return ("" if size is None else f"{size:<10}") + "".join(cells)


@st.composite
def window_outputs(draw: Callable[..., Any]) -> tuple[str, ProgramOutput]:
    """What ``osu_mbw_mr -V`` prints: a column for each window size, bandwidths and then rates."""
    title, version = "OSU MPI Multiple Bandwidth / Message Rate Test", "7.4"
    windows = [str(2**power) for power in range(draw(st.integers(1, 8)))]
    notes = {"pairs": "1", "window size": "varied"}
    sizes = draw(SIZES)
    lines = [f"# {title} v{version}", "# [ pairs: 1 ] [ window size: varied ]", ""]
    tables = []
    for name in draw(st.lists(st.sampled_from(["MPI_CHAR", "MPI_INT"]), min_size=1, unique=True)):
        for caption in ("Uni-directional Bandwidth (MB/sec)", "Message Rate Profile"):
            lines += [f"# {caption}"] if not tables or "Rate" in caption else []
            lines += [f"# Datatype: {name}."] if "Band" in caption else []
            lines.append("#      " + "".join(f"  {window:>10}" for window in windows))
            rows = []
            for size in sizes:
                cells = {window: draw(HUNDREDTHS) for window in windows}
                rows.append(TableRow(size, {k: amount(v) for k, v in cells.items()}, None))
                lines.append(f"{size:<7}" + "".join(f"  {printed(v):>10}" for v in cells.values()))
            lines.append("")
            tables.append(
                OutputTable(
                    title, tuple(windows), tuple(rows), datatype=name, notes={**notes, "table": caption}
                )
            )
    return "\n".join(lines) + "\n", ProgramOutput(version, tuple(tables))


# --- IMB ---

TIMES = ["t_min[usec]", "t_max[usec]", "t_avg[usec]"]
OVERLAPS = ["t_ovrl[usec]", "t_pure[usec]", "t_CPU[usec]", "overlap[%]"]
#: benchmark: columns after the repetitions, and whether there are sizes
IMB_KINDS: dict[str, tuple[list[str], bool]] = {
    "PingPong": (["t[usec]", "Mbytes/sec"], True),
    "Sendrecv": ([*TIMES, "Mbytes/sec"], True),
    "Uniband": (["Mbytes/sec", "Msg/sec"], True),
    "Allreduce": (TIMES, True),
    "Barrier": (TIMES, False),
    "Iallreduce": (OVERLAPS, True),
    "Ibarrier": (OVERLAPS, False),
    "Unidir_put": (["t[usec]", "Mbytes/sec"], True),
    "Truly_passive_put": (["t_pure[usec]", "t_ovrl[usec]"], True),
}
REASONS = [
    'out-of-mem.; needed X=   0.003 GB; use flag "-mem X" or MAX_MEM_USAGE>=X (IMB_mem_info.h)',
    "int-overflow; The production rank*size caused int overflow;",
    "time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over",
]
#: three ages of the header: banner and version
BANNERS = [
    ("#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part", "2021.11"),
    ("#    Intel(R) MPI Benchmarks 2019 Update 6, MPI-1 part    ", "2019 Update 6"),
    ("#    Intel (R) MPI Benchmark Suite V3.2.4, MPI-1 part    ", "3.2.4"),
]
AGE_3 = [
    "",
    "# New default behavior from Version 3.2 on:",
    "",
    "# the number of iterations per message size is cut down ",
    "# dynamically when a certain run time (per message size sample) ",
    "# is expected to be exceeded. Time limit is defined by variable ",
    '# "SECS_PER_SAMPLE" (=> IMB_settings.h) ',
    "# or through the flag => -time ",
]


def imb_head(banner: str, listed: list[str], old: bool) -> list[str]:
    """The lines before the first table."""
    rule = "#" + "-" * (60 if old else 64)
    lines = [rule, banner, rule, "# Date                  : Sat Nov 21 01:30:29 2026"]
    lines += ["# Machine               : x86_64", "# Version               : #1 SMP @0"]
    lines += ["# MPI Version           : 3.1", "# MPI Thread Environment: ", ""]
    lines += [*(AGE_3 if old else []), "", "# Calling sequence was: ", ""]
    lines += ["# ./IMB-MPI1 -npmin 2 "] + (["#            -iter 3 "] if old else []) + [""]
    lines += ["# Message lengths were user defined", "#"]
    lines += ["# MPI_Datatype                   :   MPI_BYTE ", "# MPI_Op    :   MPI_SUM  "]
    lines += ["# ", "# ", "", "# List of Benchmarks to run:", ""]
    for name in listed:
        lines += [f"# {'(Multi-)' if old else ''}{name}"]
        lines += ["#     Uses MPI_INT data type"] if name == "Unidir_put" else []
    return lines


@st.composite
def imb_outputs(draw: Callable[..., Any]) -> tuple[str, ProgramOutput]:
    banner, version = draw(st.sampled_from(BANNERS))
    listed = draw(st.lists(st.sampled_from(sorted(IMB_KINDS)), min_size=1, unique=True))
    old = version.startswith("3")
    lines, tables, invalid = imb_head(banner, listed, old), [], []
    checked, shown = draw(st.booleans()), draw(st.booleans())  # CHECK build; -multi 1
    for name in listed:
        if draw(st.integers(0, 9)) == 0:
            lines += ["", f"# !! Benchmark {name} invalid for 1 processes !! ", ""]
            invalid.append(f"{name} with 1 processes")
            continue
        modes = ["NON-AGGREGATE", "AGGREGATE"] if name == "Unidir_put" else [None]
        for groups in draw(st.sampled_from([[1], [2, 1], [3]])):
            for mode in modes:
                tables += imb_table(draw, lines, name, groups, mode, (checked, shown))
    lines += ["", "", "# All processes entering MPI_Finalize", "", ""]
    return "\n".join(lines), ProgramOutput(version, tuple(tables), tuple(invalid))


def imb_table(
    draw: Callable[..., Any], lines: list[str], name: str, groups: int, mode: str | None, how: tuple[bool, bool]
) -> Iterator[OutputTable]:
    checked, shown = how
    columns, sized = IMB_KINDS[name]
    checked = checked and sized
    processes, waiting = draw(st.sampled_from([2, 20])), draw(st.integers(0, 3))
    title = f"Multi-{name}" if groups > 1 else name
    rule = "#" + "-" * (13 * (len(columns) + 2 + shown + checked) - 1)
    lines += ["", rule, f"# Benchmarking {title} ", *imb_processes(groups, processes, waiting), rule]
    lines += ["#", f"#    MODE: {mode} ", "#"] if mode else []
    header = [*["Group"] * shown, *["#bytes"] * sized, "#repetitions", *columns]
    lines.append("".join(f"{word:>13}" for word in [*header, *["defects"] * checked]))
    sizes = draw(SIZES.filter(bool)) if sized else [None]
    failing = draw(st.sampled_from([None, *REASONS]))
    numbers = list(range(groups)) if shown else [None]
    rows: dict[int | None, list[TableRow]] = {number: [] for number in numbers}
    failures: dict[int | None, list[FailureLine]] = {number: [] for number in numbers}
    for index, size in enumerate(sizes):
        lines += [""] if shown else []
        for number in numbers:
            start = [str(each) for each in (number, size) if each is not None]
            if failing and index == len(sizes) - 1:
                start = [str(each) for each in (number, size or 0) if each is not None]
                lines.append("".join(f"{word:>13}" for word in start) + f" {failing}")
                what = f"{title}, {size or 0} bytes: {' '.join(failing.split())}"
                what = what if len(what) <= 100 else what[:100] + "..."
                failures[number].append(FailureLine(size, f"line {len(lines)}: {what}"))
                continue
            cells = imb_cells(draw, columns)
            words = [*start, *(cell[0] for cell in cells.values()), *["0.00"] * checked]
            lines.append("".join(f"{word:>13}" for word in words))
            values = {key: cell[1] for key, cell in cells.items()}
            rows[number].append(TableRow(size, values, checked or None))
    for number in numbers:
        yield OutputTable(
            title,
            ("#repetitions", *columns),
            tuple(rows[number]),
            processes=processes,
            waiting=waiting,
            groups=groups,
            group=number,
            mode=mode,
            failures=tuple(failures[number]),
        )


def imb_processes(groups: int, processes: int, waiting: int) -> list[str]:
    """The comments that say who takes part."""
    lines = [f"# #processes = {processes} "]
    if groups > 1:
        lines = [f"# ( {groups} groups of {processes} processes each running simultaneous ) "]
        for group in range(groups):
            ranks = [f" {group * processes + rank:>4}" for rank in range(processes)]
            lines += [f"# Group  {group}: " + "".join(ranks[:16])]
            lines += ["# " + "".join(ranks[16:])] if processes > 16 else []
            lines += ["# "]
    word = "process" if waiting == 1 else "processes"
    return lines + ([f"# ( {waiting} additional {word} waiting in MPI_Barrier)"] if waiting else [])


def imb_cells(draw: Callable[..., Any], columns: list[str]) -> dict[str, tuple[str, float]]:
    """A number for every column, printed and as it is."""
    cells = {"#repetitions": (draw(st.integers(1, 1000).map(str)), 0.0)}
    cells["#repetitions"] = (cells["#repetitions"][0], float(cells["#repetitions"][0]))
    for name in columns:
        hundredths = draw(HUNDREDTHS)
        cells[name] = (printed(hundredths), amount(hundredths))
        if name == "Msg/sec":
            cells[name] = (str(hundredths), float(hundredths))
    if "t_avg[usec]" in cells:
        low, middle, high = sorted((cells[name] for name in TIMES), key=lambda cell: cell[1])
        cells |= {"t_min[usec]": low, "t_avg[usec]": middle, "t_max[usec]": high}
    return cells


# --- for both ---


def outcome(parse: Callable[[str], ProgramOutput], text: str) -> ProgramOutput | OutputError:
    """What comes of a text; any other error is the parser's fault."""
    try:
        return parse(text)
    except OutputError as error:
        message = str(error)
        assert message.isprintable() and len(message) < 700, message
        assert message.startswith("line ")
        return error


def cuts(text: str) -> Iterator[str]:
    """The text up to each line end, to the middle of each line, and to a character before its end.

    Of lines that are alike but for their words and numbers, and that stand between such lines, the first and
    the last.
    """
    lines = text.splitlines(keepends=True)
    shapes = [re.sub(r"[\w.-]+", "x", " ".join(line.split())) for line in lines]
    places: dict[tuple[str, ...], list[int]] = {}
    for number in range(len(lines)):
        places.setdefault(tuple(shapes[max(number - 1, 0) : number + 2]), []).append(number)
    for number in sorted({each for alike in places.values() for each in (alike[0], alike[-1])}):
        line, start = lines[number], sum(map(len, lines[:number]))
        yield text[:start]
        yield text[: start + len(line) // 2]
        yield text[: start + len(line) - 1]


def calls(work: Callable[[], object]) -> int:
    """How many calls of functions, Python's own included, some work makes."""
    number = 0

    def count(*_: object) -> None:
        nonlocal number
        number += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


def least_growth(work: Callable[[str], object], small: str, large: str, enough: float) -> float:
    """How often as much processor time the larger text takes; looked at again if it is not below ``enough``."""
    growth = math.inf
    for _ in range(10):
        growth = min(growth, seconds(lambda: work(large)) / seconds(lambda: work(small)))
        if growth < enough:
            break
    return growth


def seconds(work: Callable[[], object]) -> float:
    """Processor time that some work takes at least."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)
