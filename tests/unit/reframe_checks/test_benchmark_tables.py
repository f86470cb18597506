"""The tables of benchmarks of OSU and IMB, held against what the programs print, and the starts they make."""

import subprocess
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.model.routines.benchmark import WHOLE_START, Benchmark
from postprocess.model.routines.requested import FAMILIES, REQUESTED
from postprocess.parsers.imb import parse_imb
from postprocess.parsers.osu import parse_osu
from postprocess.parsers.osu_imb_launch import find_unit_scale
from postprocess.parsers.text_output import OutputTable
from tests.support.factories.benchmark_table import checks, starts
from tests.support.factories.launch import case, planned
from tests.support.factories.output import IMB, OSU

CHECKS = checks()
PROGRAMS = sorted(CHECKS)
LINES = [(program, line) for program in PROGRAMS for line in CHECKS[program].table]
#: What mpicost calls the same operation.
OURS = {
    "osu_latency": "pingpong",
    "osu_allreduce": "allreduce_sum",
    "osu_reduce": "reduce_sum",
    **{f"osu_{name}": name for name in ("bcast", "alltoall", "allgather", "gather", "scatter")},
    "osu_barrier": "barrier",
    "PingPong": "pingpong",
    "Allreduce": "allreduce_sum",
    "Reduce": "reduce_sum",
    **{name: name.lower() for name in ("Bcast", "Alltoall", "Allgather", "Gather", "Scatter")},
    "Barrier": "barrier",
}


def corpus(program: str) -> dict[str, list[OutputTable]]:
    """The tables of every output in the corpus, by the file's words for what was run."""
    files, parse = {"osu": (OSU, parse_osu), "imb": (IMB, parse_imb)}[program]
    return {file.stem: parse(file.read_text()).tables for file in files}


OUTPUTS = {program: corpus(program) for program in PROGRAMS}
TABLES = {program: [table for tables in OUTPUTS[program].values() for table in tables] for program in PROGRAMS}


def misfits(fits: Callable[[str, Benchmark], bool]) -> list[str]:
    """The lines of both tables that something does not hold for."""
    return [f"{program} {line.name} {line.routine}" for program, line in LINES if not fits(program, line)]


def test_a_real_output_has_the_title_and_the_columns_of_a_line():
    def has_title_and_columns(program: str, line: Benchmark) -> bool:
        found = [
            table
            for table in TABLES[program]
            if table.benchmark == line.title and (table.mode or "") in (line.mode, "")
        ]
        # what -z adds is the same for all of a unit
        steady = not line.steady or any(line.steady in table.columns for table in TABLES[program])
        return steady and any(line.column in table.columns for table in found)

    assert misfits(has_title_and_columns) == []


def test_what_a_line_starts_has_printed_its_title():
    """Outputs are named after the family of the MPI, and then OSU's benchmark or IMB's executable."""

    def has_printed_it(program: str, line: Benchmark) -> bool:
        started = (line.executable.lower() or line.name).removeprefix("imb-").removeprefix("osu_")
        own = [tables for name, tables in OUTPUTS[program].items() if f"-{started}" in name]
        return line.title in {table.benchmark for tables in own for table in tables}

    assert misfits(has_printed_it) == []


def test_the_columns_of_a_line_count_in_its_unit():
    def count_in_it(_: str, line: Benchmark) -> bool:
        columns = (line.column, line.judged)
        rates = {find_unit_scale(column) == 1.0 and column != WHOLE_START for column in columns}
        return line.unit in (SECONDS, MEGABYTES) and rates == {line.unit == MEGABYTES}

    assert misfits(count_in_it) == []


def test_a_collective_is_judged_by_its_slowest_rank_and_never_by_a_mean():
    """Point to point and one-sided, a program prints a single number."""
    alone = ("Latency (us)", "Bandwidth (MB/s)", "MB/s", "Mbytes/sec", "t[usec]", WHOLE_START)
    overall = ("Overall(us)", "t_ovrl[usec]", "t_pure[usec]")
    # osu_latency prints nothing but its mean, osu_multi_lat that over all pairs
    means = ("osu_latency", "osu_multi_lat", "osu_latency_persistent", "osu_latency_mt", "osu_latency_mp")

    def is_judged_so(_: str, line: Benchmark) -> bool:
        return line.column in (*alone, *overall) or "max" in line.column.lower() or line.name in means

    assert misfits(is_judged_so) == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_two_lines_are_one_case(program: str):
    routines = Counter(line.routine for line in CHECKS[program].table)
    assert set(routines.values()) == {1}


def test_what_is_the_same_operation_has_mpicosts_name():
    def has_it(_: str, line: Benchmark) -> bool:
        return line.routine == OURS[line.name] if line.name in OURS else line.routine not in OURS.values()

    assert misfits(has_it) == []


def test_threads_and_files_are_of_families_and_of_no_night():
    own = {line.routine for line in CHECKS["imb"].table if line.executable in ("IMB-MT", "IMB-IO")}
    assert own == {*FAMILIES["imb-mt"], *FAMILIES["imb-io"]}
    assert own <= REQUESTED


@pytest.mark.parametrize(("executable", "left"), [("IMB-IO", False), ("IMB-MPI1", True)])
def test_a_start_with_files_finds_none_of_another_and_leaves_none(tmp_path, monkeypatch, executable, left):
    """IMB-IO opens what is there: it would read what an earlier start wrote, or not be able to write."""
    from reframe_checks.common.osu_imb import OsuImbCheck
    from reframe_checks.imb import FILES

    names = FILES.replace("*", "_0").split()
    for name in names:
        tmp_path.joinpath(name).touch()
    own = ["ls > found", f"touch {' '.join(names)}"]  # as the program does
    monkeypatch.setattr(OsuImbCheck, "lines_of", lambda *_: iter(own))
    check = object.__new__(CHECKS["imb"])
    start = SimpleNamespace(executable=executable)
    script = "\n".join(CHECKS["imb"].lines_of(check, start, "mpiexec"))
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True)
    found = set(tmp_path.joinpath("found").read_text().split()) - {"found"}
    after = {path.name for path in tmp_path.iterdir()} - {"found"}
    assert found == after == ({*names} if left else set())


@pytest.mark.parametrize(("cores", "per_node", "threads"), [(2, 2, 1), (4, 2, 2), (64, 2, 2), (0, 2, 1)])
def test_threads_have_cores_of_their_own(monkeypatch, cores: int, per_node: int, threads: int):
    monkeypatch.setattr(CHECKS["imb"], "facts", SimpleNamespace(cores_per_node=cores))
    check = object.__new__(CHECKS["imb"])
    check.__dict__.update(num_tasks_per_node=per_node)
    assert CHECKS["imb"].count_threads(check) == threads


def test_a_start_with_threads_is_told_counts_of_integers():
    """IMB-MT takes counts, a barrier too, and would read no file of sizes."""
    from reframe_checks.imb import build_thread_options

    lines = [line for line in CHECKS["imb"].table if line.executable == "IMB-MT"]
    told = {}
    for start in starts(CHECKS["imb"], lines, [6, 8, 1024]):
        names = tuple(start.benchmarks)
        cases = tuple(case(line.routine, size, program="imb") for line in names for size in start.sizes)
        words = build_thread_options(planned(cases=cases, benchmarks=names))
        assert words[words.index("-thread_level") + 1] == "multiple"
        told |= {line.name: words[words.index("-count") + 1] for line in names}
    assert told == {line.name: "1" if line.name == "BarrierMT" else "2,256" for line in lines}


@pytest.mark.parametrize(("own", "loaded"), [("", "/a b/witness.so"), ("/own.so", "/a b/witness.so:/own.so")])
def test_what_a_site_preloads_is_preloaded_into_osu_and_imb_too(own: str, loaded: str):
    from reframe_checks.common.osu_imb import preload_first

    script = f'[[ -z $1 ]] || LD_PRELOAD=$1; found={preload_first(Path("/a b/witness.so"))}; echo "$found"'
    ended = subprocess.run(["bash", "-c", script, "x", own], check=True, capture_output=True, text=True)
    assert ended.stdout == f"{loaded}\n"


def test_every_routine_on_request_has_a_line():
    assert {line.routine for program in PROGRAMS for line in CHECKS[program].table} >= REQUESTED


SIZES = st.lists(st.integers(0, 2**20), min_size=1, max_size=12, unique=True)


@given(SIZES.map(sorted))
@pytest.mark.parametrize("program", PROGRAMS)
def test_so_it_is_with_any_sizes(program: str, sizes: list[int]):
    lines = CHECKS[program].table
    made = starts(CHECKS[program], lines, sizes)
    planned = [(line.routine, size) for start in made for line in start.benchmarks for size in start.sizes]
    wanted = {(line.routine, size) for line in lines for size in line.chosen_sizes(sizes)}
    assert Counter(planned) == Counter(wanted)
    assert len({start.name for start in made}) == len(made)
    assert all(start.sizes for start in made)


@given(SIZES.map(sorted))
def test_benchmarks_of_one_start_of_imb_have_the_same_sizes(sizes: list[int]):
    """IMB measures all of them at the sizes of one file, and rounds those of a reduction up."""
    for start in starts(CHECKS["imb"], CHECKS["imb"].table, sizes):
        for line in start.benchmarks:
            assert line.chosen_sizes(sizes) == start.sizes
        assert len({line.executable for line in start.benchmarks}) == 1


@given(SIZES.map(sorted))
def test_a_start_of_osu_is_one_program_at_sizes_that_double(sizes: list[int]):
    for start in starts(CHECKS["osu"], CHECKS["osu"].table, sizes):
        assert len({(line.name, line.options) for line in start.benchmarks}) == 1
        assert all(after == 2 * before for before, after in pairwise(start.sizes))


def test_large_windows_are_starts_of_their_own_and_told_their_size():
    from reframe_checks.osu import build_osu_options

    lines = [line for line in CHECKS["osu"].table if line.name == "osu_bw"]
    small, large = starts(CHECKS["osu"], lines, [8, 16])
    assert (small.name, small.sizes) == ("osu_bw", [8, 16])
    assert (large.name, large.sizes) == ("osu_bw.large", [4_194_304])
    cases = (case("bw.large", 4_194_304, program="osu"),)
    told = build_osu_options(planned(cases=cases, benchmarks=tuple(large.benchmarks)), 10)
    assert told[told.index("-m") + 1] == "4194304:4194304"


def test_windows_of_imb_are_as_long_as_those_of_osu(tmp_path: Path):
    """IMB sends 256 messages in one, in versions before 2021.1 it sent 64; other benchmarks have none."""
    from reframe_checks.imb import build_imb_options

    lines = [line for line in CHECKS["imb"].table if line.executable != "IMB-MT"]  # which is always told
    told = {}
    for start in starts(CHECKS["imb"], lines, [8]):
        names = tuple(start.benchmarks)
        cases = tuple(case(line.routine, 8, program="imb") for line in names)
        words = build_imb_options(planned(cases=cases, benchmarks=names), tmp_path)
        size = words[words.index("-window_size") + 1] if "-window_size" in words else ""
        told |= {line.name: size for line in names}
    assert {name for name, size in told.items() if size} == {"Uniband", "Biband"}
    assert set(told.values()) == {"", "64"}


def test_a_file_is_as_long_as_all_that_is_read_of_it(tmp_path: Path, monkeypatch):
    """IMB-IO reads as often as it times before it times; behind the end of the file it would time nothing."""
    from reframe_checks.common.osu_imb import OsuImbCheck
    from reframe_checks.imb import build_imb_options

    monkeypatch.setattr(OsuImbCheck, "count_calls", lambda *_: 100)
    check = object.__new__(CHECKS["imb"])
    lines = tuple(line for line in CHECKS["imb"].table if line.routine.startswith("p_read"))
    for sizes in ([8], [8, 1 << 20], [8, 4 << 20]):
        cases = tuple(case(line.routine, size, program="imb") for line in lines for size in sizes)
        (start,) = starts(CHECKS["imb"], lines, sizes)
        calls = CHECKS["imb"].count_calls(check, start)
        words = build_imb_options(planned(cases=cases, benchmarks=lines, trials=calls), tmp_path)
        told, megabytes = map(int, words[words.index("-iter") + 1].split(","))
        length = min(megabytes << 20, 50 * sizes[-1])  # as IMB makes it
        assert told == calls and 2 * calls * sizes[-1] <= length


def doubling(sizes: list[int]) -> list[list[int]]:
    from reframe_checks.osu import split_into_chains  # which was imported for a site

    return split_into_chains(sizes)


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_chains_have_every_size_once_and_are_as_few_as_can_be(sizes: list[int]):
    chains = doubling(sizes)
    assert sorted(size for chain in chains for size in chain) == sorted(sizes)
    for chain in chains:
        assert all(after == 2 * before for before, after in pairwise(chain))
    assert not any(2 * one[-1] == other[0] for one, other in pairwise(chains))


def test_powers_of_two_are_a_single_chain():
    assert doubling([2**power for power in range(21)]) == [[2**power for power in range(21)]]
    assert doubling([8, 1000, 16, 2000, 4000, 64]) == [[8, 16], [64], [1000, 2000, 4000]]
    assert doubling([0]) == [[0]]
    assert doubling([]) == []
