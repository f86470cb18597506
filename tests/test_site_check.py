"""``site check``: what is wrong, with file, line, key and fix; where nothing is, what a night costs."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_samples import case, planned
from rich.console import Console
from scheduler_samples import CRAY, answering
from site_samples import OPENMPI, PLAIN, slurm, text_of

from postprocess import site_check
from postprocess.errors import UsageError
from postprocess.formats import duration
from postprocess.plan import PlannedLaunch
from postprocess.progress import Progress
from postprocess.site_check import Cost, aligned, cost, how_estimated, read_site, too_long
from postprocess.workdir import WorkDirectory
from site_configs import scheduler_slurm, site_here
from site_configs.site_here import Here

ROOT = Path(__file__).resolve().parent.parent
TEXT = text_of(slurm(CRAY, OPENMPI))
HERE = Here(16, PLAIN.modules, scheduler_slurm.read(answering(CRAY)))


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path / "home", ROOT)


@pytest.fixture
def progress() -> Progress:
    return Progress(Console(file=io.StringIO(), width=10_000))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound site file of a Cray."""
    path = tmp_path / "mine.py"
    path.write_text(TEXT)
    return path


def said(progress: Progress) -> list[str]:
    return progress.console.file.getvalue().splitlines()


def launch(processes: int, per_node: int, **changes) -> PlannedLaunch:
    """A launch of this layout: two cases of ten trials."""
    layout = {"processes": processes, "per_node": per_node}
    cases = (case(**layout), case(size=80, **layout))
    return planned(trials=10, cases=cases, **changes)


# Costs.


def test_a_part_of_a_node_costs_all_of_it():
    found = cost([launch(4, 4), launch(5, 4), launch(3, 1)], {})
    each = 1 + 2 * 10 * 0.006  # seconds, by rule of thumb
    assert found == Cost(3, 6, 3, pytest.approx(3 * each), pytest.approx(6 * each))
    assert found.words == ("3", "6", "3", "3.4 s", "0.00")


def test_a_simulated_machine_costs_the_node_on_which_it_is_simulated():
    one = cost([launch(128, 1, exact=True)], {})
    assert one.nodes == 128
    assert one.node_seconds == one.seconds


def test_what_was_measured_before_is_better_than_a_rule():
    launches = [launch(4, 4), launch(5, 4)]
    known = {("local:cpu", "mpich-5_0_2", 4, 4, 2): 3600.0}
    assert cost(launches[:1], known).node_seconds == 3600
    rule = "1 launch roughly, 1 s and 6 ms a trial"
    rest = "whole nodes, no waiting in a queue"
    assert how_estimated(launches, known) == (
        f"estimated: 1 launch as long as the last time; {rule}; {rest}"
    )
    assert how_estimated(launches[1:], known) == f"estimated: {rule}; {rest}"
    assert (
        how_estimated(launches[:1], known)
        == f"estimated: 1 launch as long as the last time; {rest}"
    )


def test_nothing_costs_nothing():
    assert cost([], {}) == Cost(0, 0, 0, 0, 0)


@given(st.lists(st.lists(st.text("ab é", max_size=9), min_size=3, max_size=3), min_size=1))
def test_columns_are_under_each_other(rows: list[list[str]]):
    lines = aligned(rows, texts=1)
    starts = max(len(row[0]) for row in rows) + 2
    for row, line in zip(rows, lines, strict=True):
        assert line[:starts].rstrip() == row[0].rstrip()
        assert line[starts:].strip().endswith(row[2].strip())


def test_a_launch_that_its_queue_would_end_is_a_fault(work, path):
    reading = read_site(work, path)
    limit = HERE.scheduler.queue("standard").seconds
    place = {"partition": "mine:standard", "time_limit": limit + 1}
    text = f"partition 'standard': a launch of 4 processes, 4 per node asks for {duration(limit)}"
    found = too_long(reading, [launch(2, 2), launch(4, 4, **place)], HERE.scheduler)
    assert [line.partition(", and")[0] for line in found] == [text]
    assert (
        f"its queue ends jobs after {duration(limit)}; name a queue for longer jobs in access"
        in found[0]
    )
    place["time_limit"] = limit
    assert too_long(reading, [launch(4, 4, **place)], HERE.scheduler) == []
    assert too_long(reading, [launch(4, 4, **place, test="x")], None) == []


# A site file is a program, and is read by a process of its own.


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import os\nos._exit(3)\n", "ended the process that reads it: exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "exit code -9"),
        (
            "import os, sys\nprint('no licence', file=sys.stderr, flush=True)\nos._exit(3)\n",
            "ended the process that reads it: no licence",
        ),
        ("while True: pass\n", "does not end within 1 s when it is run"),
    ],
)
def test_a_file_that_ends_its_reader_is_one_line(work, path, monkeypatch, text, complaint):
    monkeypatch.setattr(site_check, "READ_SECONDS", 1 if "while" in text else 60)
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_site(work, path)
    assert str(refused.value) == f"{path}: " + str(refused.value).partition(": ")[2]
    assert complaint in str(refused.value)


def test_a_site_is_read_as_it_is_and_in_no_session(work, path, monkeypatch):
    """Within a session it would apply to every host, and only looked at it would have no modules."""
    monkeypatch.setenv("PLUMBLINE_SESSION", str(work.root))
    monkeypatch.setenv("PLUMBLINE_ONLY_LOOKING", "1")
    system = read_site(work, path).configuration["systems"][0]
    assert system["hostnames"] == ["login\\d+"] and system["modules_system"] == "lmod"


# The command.


def test_every_fault_is_told_with_file_and_line(work, path, progress):
    path.write_text(
        TEXT.replace("max_jobs=", "jobs=").replace("cores_per_node=128", "cores_per_node=0")
    )
    assert site_check.check(work, str(path), progress) == 1
    *faults, last = said(progress)
    numbers = [1 + TEXT[: TEXT.index(word)].count("\n") for word in ("partition(\n", "Topology(\n")]
    assert (
        faults[0]
        == f"{path}:{numbers[0]}: partition 'standard': jobs: is not known; did you mean max_jobs?"
    )
    assert faults[1].startswith(f"{path}:{numbers[1]}: Topology: cores_per_node: write 1 or more")
    assert last == f"{path}: 2 wrong"


def test_on_another_host_it_is_said_what_is_not_looked_at(work, path, progress):
    reading = read_site(work, path)
    assert site_check.file_problems(reading, path, progress) == ([], None)
    assert said(progress)[0].startswith(
        "note: this host is none of login\\d+ (hostnames), so modules"
    )
    assert len(said(progress)) == 1


def test_on_its_host_the_machine_is_asked(work, path, progress, monkeypatch):
    here = replace(HERE, scheduler=None)
    monkeypatch.setattr(site_here, "look", lambda: here)
    path.write_text(TEXT.replace("login\\\\d+", ".*"))
    found, scheduler = site_check.file_problems(read_site(work, path), path, progress)
    assert scheduler is None and said(progress) == []
    assert len(found) == 1 and "no scheduler is on this machine's search path" in found[0]


def test_what_reframe_refuses_is_a_fault(work, path, progress, monkeypatch):
    def refuse(*_):
        raise UsageError("ReFrame refuses: that")

    monkeypatch.setattr(site_check, "make_plan", refuse)
    assert site_check.check(work, str(path), progress) == 1
    assert said(progress)[-2:] == [f"{path}: ReFrame refuses: that", f"{path}: 1 wrong"]


def test_a_launch_that_never_runs_makes_a_site_wrong(work, path, progress, monkeypatch):
    own = launch(4, 4, partition="mine:standard", time_limit=1e9)
    monkeypatch.setattr(site_here, "look", lambda: HERE)
    monkeypatch.setattr(site_here, "wrapper", lambda *_: ())
    monkeypatch.setattr(site_check, "dry_run", lambda *_: ([own], []))
    path.write_text(TEXT.replace("login\\\\d+", ".*"))
    assert site_check.check(work, str(path), progress) == 1
    assert "its queue ends jobs after" in said(progress)[-2]
    assert said(progress)[-1] == f"{path}: 1 wrong"
