"""What would run and how long it would take, from what earlier sessions took."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from postprocess.base.files import write_summary
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.commands import list_cases
from postprocess.commands.list_cases import (
    describe_left_out_launches,
    describe_totals,
    format_sizes,
    group_sizes_by_routine,
    print_full_list,
)
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.case import LaunchPlace
from postprocess.model.plan import PlannedLaunch, SkippedCase
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.session import Request, Selection, Session
from postprocess.results.launch_costs import (
    ROUGH_RATE,
    ROUGH_SIZE,
    ROUGH_START,
    ROUGH_TRIAL,
    Job,
    estimate_job_seconds,
    list_jobs,
    read_job_seconds,
)
from postprocess.results.summary import summarise_session
from postprocess.session.lifecycle.context import SessionContext
from postprocess.setup.prepare import PreparedMachine
from tests.support.factories.launch import CASES, book_of, case, finished, planned


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path / "home", tmp_path)


def job(**changes) -> Job:
    """A job of one start."""
    (only,) = list_jobs([planned(**changes)])
    return only


def session(work: WorkDirectory, name: str, seconds: float, **launch) -> Path:
    """The summary of a session with one launch that took so long."""
    directory = work.sessions / name
    done = replace(finished(directory, **launch), seconds=seconds)
    results = evaluate_launches([done], book_of(done), "local")
    opened = Session(directory, "nightly", "local", [], False)
    summary = summarise_session(opened, "CMake (no Spack)", (), [done], results, 0, [], {})
    write_summary(directory / "summary.json", summary.to_dict())
    return directory / "summary.json"


def test_what_took_so_long_before_is_expected_to_again(work: WorkDirectory):
    session(work, "20261121T090000Z-1", 30.0)
    session(work, "20261121T100000Z-1", 12.0)
    known = read_job_seconds(work)
    assert known == {(LaunchPlace.of(CASES[0]), len(CASES), "evict"): 12.0}
    assert estimate_job_seconds(job(), known) == 12.0


@pytest.mark.parametrize(
    "other",
    [
        {"cases": CASES[:2]},
        {"environment": "openmpi-5_0_11"},
        {"partition": "local:gpu"},
        {"cases": (case(processes=4, per_node=4),)},
        {"program": "imb"},
        {"cases": tuple(replace(each, cache="warm") for each in CASES)},
    ],
    ids=lambda each: next(iter(each)),
)
def test_of_another_launch_the_time_is_guessed(work: WorkDirectory, other):
    session(work, "20261121T090000Z-1", 30.0)
    other_job = job(**other)
    known = read_job_seconds(work)
    assert other_job.key not in known
    expected = ROUGH_START + other_job.cases * planned().trials * ROUGH_TRIAL
    assert estimate_job_seconds(other_job, known) == pytest.approx(expected)


def test_a_launch_that_failed_tells_nothing_of_the_time(work: WorkDirectory):
    path = session(work, "20261121T090000Z-1", 30.0)
    data = json.loads(path.read_text())
    data["launches"][0]["outcome"] = "timeout"
    path.write_text(json.dumps(data))
    assert read_job_seconds(work) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"schema": 99}'])
def test_a_summary_that_cannot_be_read_is_passed_over(work: WorkDirectory, text: str):
    session(work, "20261121T090000Z-1", 30.0)
    damaged = work.sessions / "20261121T100000Z-1" / "summary.json"
    damaged.parent.mkdir()
    damaged.write_text(text)
    assert list(read_job_seconds(work).values()) == [30.0]


def test_sizes_are_listed_by_routine():
    expected = {"bcast": [8, 1_000_000], "pingpong x 1": [8], "barrier": [0]}
    assert group_sizes_by_routine(job()) == expected
    assert format_sizes([0]) == "no payload"
    assert format_sizes([8, 1_000_000]) == "8 B, 1 MB"
    assert format_sizes([0, 8]) == "0 B, 8 B"
    assert format_sizes([2**n for n in range(21)]) == "1 B to 1 MiB (21 sizes)"


def benchmark(routine: str, number: int = 1, **changes) -> PlannedLaunch:
    """One start of OSU of several in a job: a benchmark at twenty sizes."""
    cases = tuple(case(routine, 2**n, program="osu", cache="warm") for n in range(20))
    more = {"test": "osu", "program": "osu", "trials": 1000, "start": routine, "cases": cases}
    benchmark = Benchmark(f"osu_{routine}", routine, "title", "Latency (us)")
    return planned(number=number, benchmarks=(benchmark,), **more | changes)


def test_the_starts_of_a_job_are_one_job_and_take_its_time_once(work: WorkDirectory):
    plan = [planned(), benchmark("bw"), benchmark("latency"), benchmark("bw", number=2)]
    assert [len(each.launches) for each in list_jobs(plan)] == [1, 2, 1]
    together = list_jobs(plan)[1]
    assert together.key == (("local:cpu", "mpich-5_0_2", "osu", 2, 2), 40, "warm")
    sent = 2 * 1000 * (2**20 - 1) / ROUGH_RATE
    rough = 2 * ROUGH_START + 40 * ROUGH_SIZE + sent
    assert estimate_job_seconds(together, {}) == pytest.approx(rough)
    path = session(work, "20261121T090000Z-1", 30.0)
    data = json.loads(path.read_text())
    (launch,) = data["launches"]
    starts = [launch | {"program": "osu", "start": name, "cases": 20} for name in ("bw", "latency")]
    data["launches"] += [each | {"directory": "stage/osu"} for each in starts]
    path.write_text(json.dumps(data))
    assert read_job_seconds(work) == {list_jobs([planned()])[0].key: 30.0, together.key: 30.0}
    data["launches"][-1]["outcome"] = "crashed"
    path.write_text(json.dumps(data))
    assert together.key not in read_job_seconds(work)


def test_windows_of_large_messages_take_minutes():
    """OSU's bibw at 4 MiB took 28 to 43 s on two cores: 200 iterations with their data checked."""
    line = Benchmark("osu_bibw", "bibw", "title", "Bandwidth (MB/s)", "MB/s", window=True)
    cases = (case("bibw", 2**26, program="osu", cache="warm"),)
    one = replace(benchmark("bibw", trials=200, cases=cases), benchmarks=(line,))
    (largest,) = list_jobs([one])
    assert 240 < estimate_job_seconds(largest, {}) < 960


def test_each_program_has_its_totals():
    plan = [planned(), *(benchmark(name) for name in ("bw", "latency", "bcast"))]
    lines = list(describe_totals(plan, {}))
    assert lines[0].startswith("mpicost: 4 cases in 1 start, 1 job: about ")
    assert lines[1].startswith("osu: 60 cases in 3 starts, 1 job: about ")
    assert lines[2] == "64 cases in 4 starts, 2 jobs"
    known = {each.key: 5.0 for each in list_jobs(plan)}
    assert list(describe_totals(plan, known))[1] == "osu: 60 cases in 3 starts, 1 job: about 5.0 s"


def test_what_is_left_out_is_said_with_the_way_to_get_it():
    whole = benchmark("bw")
    skips = tuple(SkippedCase(each, "another sentence", no_program=True) for each in whole.cases)
    skipped = replace(whole, cases=(), skips=skips)
    lines = list(describe_left_out_launches([planned(), skipped]))
    assert lines == [
        "left out: 20 cases of osu: another sentence (./plumbline doctor tells what is missing)",
        "left out: imb: nothing of theirs was chosen (--program mpicost,osu,imb)",
    ]
    assert next(describe_totals([planned(), skipped], {})).startswith("4 cases in 1 start, 1 job")
    assert list(print_full_list([skipped])) == []
    big = replace(planned(), cases=(), skips=(SkippedCase(CASES[0], "needs 900 GB, and no Spack"),))
    said = list(describe_left_out_launches([big]))
    assert "left out: 1 case of mpicost: needs 900 GB, and no Spack" in said


def test_a_job_of_many_starts_is_one_paragraph():
    lines = list(print_full_list([benchmark("bw"), benchmark("latency")]))
    assert lines == [
        "local:cpu mpich-5_0_2 osu, 2 processes, 2 per node",
        "  bw               1 B to 512 KiB (20 sizes)",
        "  latency          1 B to 512 KiB (20 sizes)",
    ]


def test_the_list_names_every_case(work, monkeypatch, capsys):
    """``list`` itself, with a plan that was made without ReFrame."""
    looked: list[Selection] = []

    def look(reframe, selection):
        looked.append(selection)
        return [planned(), planned(number=2)]

    progress = Progress(Console(file=io.StringIO()))
    request = Request("list", [], "local", Selection(Path("site.py")), launches=2)
    monkeypatch.setattr(
        list_cases,
        "open_session_context",
        lambda *_: SessionContext(work, request, PreparedMachine(None, None), progress),
    )
    monkeypatch.setattr(SessionContext, "preview", look)
    assert list_cases.list_cases(work, request, progress) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "local:cpu mpich-5_0_2 mpicost, 2 processes, 2 per node"
    assert lines[1] == "  bcast            8 B, 1 MB"
    assert lines[-4].startswith("left out: osu, imb: ")
    assert lines[-3] == "4 cases in 2 starts, 2 jobs"
    assert re.fullmatch(
        r"tonight: about .* for 20 launches of a first calibration \(roughly: not all .*\)", lines[-2]
    )
    assert lines[-1].startswith("every later night: about ")
    assert [each.only_looking for each in looked] == [True]
