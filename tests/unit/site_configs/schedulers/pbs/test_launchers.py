"""PBS is asked for every node of a layout, and Cray's launcher is told it."""

from types import SimpleNamespace

import pytest
from reframe.core.backends import getlauncher, getscheduler
from reframe.core.schedulers import JobScheduler

from site_configs import pbs as pbs_launchers


@pytest.mark.parametrize(
    ("processes", "per_node", "nodes"), [(64, 64, 1), (65, 64, 2), (2, 1, 2), (128, 64, 2), (3, 64, 1)]
)
@pytest.mark.parametrize("words", ["-l select={}:mpiprocs=64:ncpus=64", "-l nodes={}:ppn=64"])
def test_a_node_for_the_processes_that_do_not_fill_one(processes, per_node, nodes, words):
    said = f"#PBS {words.format(processes // per_node)}:mem=4gb"
    lines = pbs_launchers.request_all_nodes(["#PBS -q work", said], processes, per_node)
    assert lines == ["#PBS -q work", f"#PBS {words.format(nodes)}:mem=4gb"]


@pytest.mark.parametrize("name", [pbs_launchers.SCHEDULER, pbs_launchers.TORQUE])
def test_the_script_that_reframe_writes_has_them(name: str, monkeypatch: pytest.MonkeyPatch):
    """With ReFrame's own class: its script is what is corrected."""
    monkeypatch.setattr(JobScheduler, "get_option", lambda *_: False)
    scheduler = getscheduler(name)()
    job = SimpleNamespace(
        name="check", stdout="out", stderr="err", time_limit=60.0, workdir="/tmp",
        num_tasks=65, num_tasks_per_node=64, num_cpus_per_task=None,
        sched_access=["-q work", "-l place=scatter:excl"], options=[], cli_options=[],
    )  # fmt: skip
    (line,) = [each for each in scheduler.emit_preamble(job) if "-l select" in each or "-l nodes" in each]
    assert "=2:" in line and "64" in line


def test_pals_is_told_processes_and_nodes():
    job = SimpleNamespace(num_tasks=65, num_tasks_per_node=64, num_tasks_per_core=None)
    command = getlauncher(pbs_launchers.PALS)().command(job)
    assert command == ["mpiexec", "-n", "65", "--ppn", "64", "--cpu-bind", "core"]
    job.num_tasks_per_core = 2
    assert getlauncher(pbs_launchers.PALS)().command(job)[-1] == "thread"
