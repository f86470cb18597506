"""A line of a table of benchmarks: refused if it means nothing, and the same again once it was stored."""

import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.errors import UsageError
from postprocess.base.formats import UNITS
from postprocess.base.records import parse_record
from postprocess.model.plan import SkippedCase, locate_plan_file, read_plan, write_launch
from postprocess.model.routines.benchmark import RANKS, Benchmark
from tests.support.factories.benchmark import ALLREDUCE, BARRIER, BW, IBCAST, INIT, PINGPONG, UNIBAND, start
from tests.support.faults import Declared, plants

ALL = (ALLREDUCE, BARRIER, BW, *IBCAST, INIT, PINGPONG, UNIBAND)
WORDS = st.text(max_size=20)
SIZES = st.lists(st.integers(0, 2**40), max_size=8)
BENCHMARKS = st.builds(
    Benchmark,
    name=WORDS,
    routine=WORDS,
    title=WORDS,
    column=WORDS,
    unit=st.sampled_from(sorted(UNITS)),
    sync=st.sampled_from(["barrier", "loop"]),
    ranks=st.sampled_from(RANKS),
    sizes=st.none() | SIZES.map(tuple),
    least=st.integers(0, 8),
    options=st.lists(WORDS).map(tuple),
    executable=WORDS,
    mode=WORDS,
    steady=WORDS,
)


@pytest.mark.parametrize("unit", ["us", "MB", "Mbytes/sec", ""])
def test_a_line_in_an_unknown_unit_is_refused(unit: str):
    with pytest.raises(ValueError, match=f"unit {unit!r} is none of s, MB/s"):
        replace(ALLREDUCE, unit=unit)


@pytest.mark.parametrize("ranks", ["one", "odd", "2", ""])
def test_a_line_for_an_unknown_number_of_ranks_is_refused(ranks: str):
    with pytest.raises(ValueError, match=f"osu_allreduce: ranks {ranks!r} is none of two, even"):
        replace(ALLREDUCE, ranks=ranks)


@pytest.mark.parametrize(
    ("ranks", "expected"), [("two", {2}), ("even", {2, 4, 6, 8}), ("any", set(range(2, 9)))]
)
def test_the_process_counts_at_which_a_benchmark_means_something(ranks: str, expected: set[int]):
    line = replace(ALLREDUCE, ranks=ranks)
    assert {count for count in range(9) if line.is_measured_at(count, per_node=1)} == expected


def test_a_benchmark_may_need_more_processes_or_nodes():
    neighbours = replace(ALLREDUCE, from_processes=4)
    assert [count for count in range(9) if neighbours.is_measured_at(count, 8)] == [4, 5, 6, 7, 8]
    congestion = replace(ALLREDUCE, from_nodes=3)
    assert [count for count in range(9) if congestion.is_measured_at(count, 2)] == [5, 6, 7, 8]


def test_rank_0_of_a_ping_pong_has_a_partner():
    """The same as mpicost tells it, so that the two are one case but for the program."""
    assert PINGPONG.peer == 1
    assert {line.peer for line in ALL if line.routine != "pingpong"} == {0}


@given(SIZES, st.integers(0, 64))
def test_sizes_of_no_whole_elements_are_passed_over_and_no_others(sizes: list[int], least: int):
    """OSU would send fewer bytes than it says, and IMB round up."""
    line = replace(ALLREDUCE, least=least)
    whole = [size for size in sizes if least == 0 or (size > 0 and size % least == 0)]
    assert line.chosen_sizes(sizes) == whole
    assert replace(ALLREDUCE, least=4).chosen_sizes([0, 2, 4, 6, 8, 1000]) == [4, 8, 1000]


@given(SIZES)
def test_a_benchmark_with_sizes_of_its_own_has_no_others(sizes: list[int]):
    assert BARRIER.chosen_sizes(sizes) == [0]


@given(BENCHMARKS)
def test_a_line_is_read_back_as_it_was_stored(line: Benchmark):
    assert parse_record(json.loads(json.dumps(asdict(line))), Benchmark, exact=True) == line


def test_the_plan_of_a_start_is_read_back_with_its_lines(tmp_path: Path):
    one = start("imb", (PINGPONG, UNIBAND), (8, 1024))
    other = start("osu", IBCAST, (8,), number=2)
    skipped = start("osu", (INIT,), (0,))
    reason = "no Spack"
    skipped = replace(skipped, cases=(), skips=tuple(SkippedCase(case, reason) for case in skipped.cases))
    for launch in (one, other, skipped):
        write_launch(tmp_path, launch)
    assert sorted(read_plan(tmp_path), key=lambda each: each.start) == [one, other, skipped]


def test_starts_of_one_job_have_different_files(tmp_path: Path):
    one, other = start(), start(start="osu_allreduce_1000")
    assert one.test == other.test
    for name in ("output", "witness", "ending", "records"):
        assert getattr(one, name)(tmp_path) != getattr(other, name)(tmp_path)
    assert locate_plan_file(tmp_path, one) != locate_plan_file(tmp_path, other)
    files = [getattr(one, name)(tmp_path) for name in ("output", "witness", "ending", "records")]
    assert len(set(files)) == len(files)


@pytest.mark.parametrize("key", [field.name for field in fields(Benchmark)])
def test_a_plan_whose_lines_lack_something_is_refused(tmp_path: Path, key: str):
    write_launch(tmp_path, start())
    path = locate_plan_file(tmp_path, start())
    data = json.loads(path.read_text())
    del data["benchmarks"][0][key]
    path.write_text(json.dumps(data))
    if key in ("name", "routine", "title", "column", "sizes", "options"):
        with pytest.raises(UsageError, match="the plan is damaged"):
            read_plan(tmp_path)
    else:  # as a plan of an earlier version: the line is what it says, and its default
        (launch,) = read_plan(tmp_path)
        assert getattr(launch.benchmarks[0], key) == Benchmark.__dataclass_fields__[key].default


@plants("files", "a line of OSU or IMB that means nothing", "the plan of a session", "", 2,
        "the plan is damaged")  # fmt: skip
@pytest.mark.parametrize("damage", [{"unit": "us"}, {"ranks": "one"}, {"colour": "red"}])
def test_a_plan_whose_lines_mean_nothing_is_refused(tmp_path: Path, damage, declared: Declared):
    write_launch(tmp_path, start())
    path = locate_plan_file(tmp_path, start())
    data = json.loads(path.read_text())
    data["benchmarks"][0] |= damage
    path.write_text(json.dumps(data))
    with declared.raises(UsageError):
        read_plan(tmp_path)
