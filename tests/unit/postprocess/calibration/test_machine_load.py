"""Who uses this machine beside us, and how long a calibration waits for its end."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from postprocess.base.progress import Progress
from postprocess.calibration import machine_load


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> Progress:
    """Of a machine on which calibrations wait, with a clock of its own."""
    clock = [0.0]
    monkeypatch.delenv(machine_load.BESIDE_OTHERS)
    monkeypatch.setattr(machine_load.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(machine_load.time, "sleep", lambda s: clock.__setitem__(0, clock[0] + s))
    return Progress(Console(quiet=True))


def looks(monkeypatch: pytest.MonkeyPatch, *shares: float) -> Iterator[float]:
    """What each look finds, the last again and again."""
    found = iter(shares)
    monkeypatch.setattr(machine_load, "measure_other_load", lambda: next(found, shares[-1]))
    return found


def test_times_beside_others_tell_little_unless_that_is_on_purpose(monkeypatch: pytest.MonkeyPatch):
    assert not machine_load.is_disturbed(0.9)  # of all tests
    monkeypatch.delenv(machine_load.BESIDE_OTHERS)
    assert machine_load.is_disturbed(0.9)
    assert not machine_load.is_disturbed(machine_load.BUSY_SHARE) and not machine_load.is_disturbed(None)


@pytest.mark.parametrize(
    ("shares", "told", "waited"),
    [
        ([machine_load.BUSY_SHARE], 0, 0),
        ([*10 * [0.9], 0.05], 0, 20.0),
        ([0.9, 0.4], 0.4, machine_load.WAIT_SECONDS),
    ],
    ids=["quiet", "ends", "goes on"],
)
def test_others_are_waited_for_and_after_a_minute_told(progress: Progress, monkeypatch, shares, told, waited):
    looks(monkeypatch, *shares)
    assert machine_load.wait_for_idle(progress) == told
    assert progress.phases.get("waiting", 0) == pytest.approx(waited)


def test_who_says_so_measures_beside_others(progress: Progress, monkeypatch):
    looks(monkeypatch, 0.9)
    monkeypatch.setenv(machine_load.BESIDE_OTHERS, "1")
    assert machine_load.wait_for_idle(progress) == 0


def test_a_look_counts_what_others_use_and_not_what_we_start_meanwhile(monkeypatch):
    """ReFrame is loaded in a process of its own while a command looks at the machine."""
    second = machine_load.os.sysconf("SC_CLK_TCK")
    ticks, seconds = iter([(0, 0), (2 * second, 4 * second)]), iter([5.0, 6.0])
    monkeypatch.setattr(machine_load, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(machine_load, "read_cpu_times", lambda: next(ticks))
    monkeypatch.setattr(machine_load, "read_own_cpu_seconds", lambda: next(seconds))
    assert machine_load.measure_other_load() == pytest.approx(0.25)


@pytest.mark.parametrize(("own", "share"), [(0.0, 0.75), (1.0, 0.5), (9.0, 0.0)])
def test_what_others_use_is_what_our_own_processes_do_not(monkeypatch, own, share):
    """Of four seconds, all CPUs counted, three were busy."""
    second = machine_load.os.sysconf("SC_CLK_TCK")
    times = iter([(0, 0), (second, 4 * second)])
    seconds = iter([5.0, 5.0 + own])
    monkeypatch.setattr(machine_load, "read_cpu_times", lambda: next(times))
    monkeypatch.setattr(machine_load, "read_own_cpu_seconds", lambda: next(seconds))
    assert machine_load.start_load_monitor().share() == pytest.approx(share)


def test_where_no_times_are_told_nobody_is_accused(monkeypatch):
    monkeypatch.setattr(machine_load, "read_cpu_times", lambda: (0, 0))
    assert machine_load.start_load_monitor().share() is None


def test_children_that_ended_are_our_own():
    before = machine_load.read_own_cpu_seconds()
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    assert machine_load.read_own_cpu_seconds() - before >= 0.3


@pytest.mark.parametrize(("share", "notes"), [(machine_load.BUSY_SHARE, 0), (0.5, 1)])
def test_other_work_is_noted(progress: Progress, monkeypatch, share: float, notes: int):
    looks(monkeypatch, share)
    machine_load.note_other_work(progress)
    assert len(progress.notes) == notes


def test_what_has_ended_below_a_running_child_is_no_other_load():
    """Launches are below a process that has loaded ReFrame and runs as long as the command."""
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    script = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); print(flush=True); input()"
    )
    before = machine_load.read_own_cpu_seconds()
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        while_it_runs = machine_load.read_own_cpu_seconds() - before
        child.communicate("\n")
    assert while_it_runs > 0.4


def test_only_children_are_our_own_work(tmp_path, monkeypatch):
    """Each with what ended below it; another program may have any name, and end before it is read."""
    tick = os.sysconf("SC_CLK_TCK")
    for number, name, parent in [(1, "init", 0), (2, "ours", os.getpid()), (3, f") S {os.getpid()} (", 1)]:
        (tmp_path / str(number)).mkdir()
        used = f"{tick} {2 * tick} {3 * tick} {4 * tick}"
        stat = f"{number} ({name}) S {parent} 1 1 0 -1 4194560 1 1 0 0 {used} 20 0 1 0\n"
        (tmp_path / str(number) / "stat").write_text(stat)
    (tmp_path / "4" / "stat").mkdir(parents=True)
    monkeypatch.setattr(machine_load, "PROC", tmp_path)
    assert machine_load.read_running_children_seconds() == 10
