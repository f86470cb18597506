"""The cluster of the tests: real, private, quick to come and without a trace when it goes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.slurm import Cluster, Unavailable, availability, cluster_or_skip, faults, reason_not_here
from tests.support.slurm.machines import running_supervisor, wait_until

#: Brings a cluster up with a job that runs, tells so, and waits to be killed.
HOLD = """
import sys, time
from pathlib import Path
from tests.support.slurm import Cluster
with Cluster(Path(sys.argv[1]), nodes=2) as cluster:
    cluster.run("sbatch", "--nodes=2", "--output=/dev/null", "--wrap", "srun sleep 600")
    while not any("RUNNING" in job for job in cluster.queue()):
        time.sleep(0.1)
    print("up", flush=True)
    time.sleep(600)
"""
SPIN = "sum(range(2_000_000))"  #: Python that takes many periods of a control group


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_or_skip(tmp_path_factory.mktemp("cluster"), nodes=4) as cluster:
        yield cluster


@pytest.fixture
def needs_slurm() -> None:
    if reason := reason_not_here():
        pytest.skip(reason)


def traces(directory: Path) -> list[str]:
    """What is there of a cluster outside its files: processes, mounts and control groups."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if str(directory).encode() in words and int(process.name) != os.getpid():
                found.append(f"process {process.name}: {words[:80]!r}")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return found + [line for line in mounts if str(directory) in line]


def test_every_node_is_a_host_of_its_own(cluster: Cluster) -> None:
    ask = "hostname; readlink /proc/self/ns/pid /proc/self/ns/ipc /proc/self/ns/net; ls /dev/shm"
    said = cluster.run("srun", "-N4", "sh", "-c", f"echo $({ask})").stdout.splitlines()
    columns = list(zip(*(line.split() for line in said), strict=True))
    assert sorted(columns[0]) == cluster.names
    assert [len(set(column)) for column in columns] == [4, 4, 4, 4]
    outside = {os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "ipc", "net")}
    assert not outside & {each for column in columns for each in column}


def test_network_leads_nowhere(cluster: Cluster) -> None:
    for machine in ("head", "n1"):
        assert "default" not in cluster.run("ip", "route", machine=machine).stdout
    listening = Path("/proc/net/tcp").read_text()
    assert f":{6817:04X} 00000000:0000 0A" not in listening


def test_commands_of_the_outside_enter_by_themselves(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nsrun -N3 hostname\npwd\n")
    words = ["sbatch", "--wait", "--nodes=3", "--output=job.out", "job.sh"]
    environment = {**os.environ, **cluster.environment()}
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, timeout=60)
    *hosts, directory = (tmp_path / "job.out").read_text().split()
    assert sorted(hosts) == cluster.names[:3]
    assert directory == str(tmp_path)


def test_temporary_files_are_the_cluster_s(cluster: Cluster) -> None:
    said = cluster.run("srun", "-N2", "sh", "-c", "echo $TMPDIR").stdout.split()
    assert {Path(each).parent for each in said} == {cluster.directory / "tmp"}
    assert len(set(said)) == 2


def test_two_clusters_at_once_do_not_meet(cluster: Cluster, tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as other:
        other.run("sbatch", "--output=/dev/null", "--wrap", "sleep 600")
        assert len(other.queue()) == 1
        assert cluster.queue() == []


def test_node_that_dies_is_seen_and_comes_back(tmp_path: Path) -> None:
    with cluster_or_skip(tmp_path, nodes=2, settings={"SlurmdTimeout": "3"}) as cluster:
        faults.power_off(cluster, "n2")
        wait_until("n2 to be down", lambda: cluster.state("n2").startswith("down"))
        assert cluster.run("srun", "-N1", "hostname").stdout == "n1\n"
        faults.power_on(cluster, "n2")
        assert sorted(cluster.run("srun", "-N2", "hostname").stdout.split()) == ["n1", "n2"]


def test_scheduler_goes_away_and_comes_back_with_its_jobs(cluster: Cluster) -> None:
    cluster.run("sbatch", "--output=/dev/null", "--wrap", "sleep 600")
    faults.stop_controller(cluster)
    assert cluster.run("squeue", check=False).returncode != 0
    cluster.start_controller()
    assert len(cluster.queue()) == 1
    cluster.run("scancel", "--user=root")
    wait_until("an empty queue", lambda: not cluster.queue())


def test_slow_node_is_held_back_and_the_others_are_not(cluster: Cluster) -> None:
    try:
        group = faults.slow_down(cluster, "n3", 0.1)
    except Unavailable as reason:
        pytest.skip(str(reason))
    spin = f"{sys.executable} -c '{SPIN}'; cat /proc/self/cgroup"
    said = cluster.run("srun", "-N4", "sh", "-c", spin).stdout
    waits = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    faults.slow_down(cluster, "n3", 1)
    assert int(waits["nr_throttled"]) > 10
    assert said.count(group.name) == 1


def test_accounting_knows_how_a_job_ended(tmp_path: Path) -> None:
    with cluster_or_skip(tmp_path, nodes=1, accounting=True) as cluster:
        sent = cluster.run("sbatch", "--wait", "--output=/dev/null", "--wrap", "exit 3", check=False)
        assert sent.returncode == 3
        ask = ["sacct", "-X", "--noheader", "--parsable2", "--format=state,exitcode,nodelist"]
        ended = "FAILED|3:0|n1\n"
        wait_until("the job's end to be known", lambda: cluster.run(*ask).stdout == ended)


@pytest.mark.usefixtures("needs_slurm")
@pytest.mark.parametrize("victim", ["the test", "the supervisor"])
def test_nothing_is_left_of_a_cluster_whose_test_was_killed(tmp_path: Path, victim: str) -> None:
    home = tmp_path / "cluster"
    command = [sys.executable, "-c", HOLD, str(home)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    assert traces(home)
    os.kill(process.pid if victim == "the test" else running_supervisor(home), signal.SIGKILL)
    try:
        wait_until("the supervisor to end", lambda: not running_supervisor(home))
    finally:
        process.kill()
        process.communicate()
    wait_until(f"the end of {traces(home)}", lambda: not traces(home))


@pytest.mark.usefixtures("needs_slurm")
def test_nothing_is_left_of_a_cluster_after_its_block(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Cluster(tmp_path / "cluster", nodes=2) as cluster:
        cluster.run("sbatch", "--nodes=2", "--output=/dev/null", "--wrap", "srun sleep 600")
        with suppress(Unavailable):
            faults.slow_down(cluster, "n1", 0.5)
        raise ZeroDivisionError
    assert traces(tmp_path / "cluster") == []
    groups = list(faults.CONTROL_GROUPS.glob(f"{faults.GROUP}-{cluster.processes['n1']}"))
    assert groups == []


@pytest.mark.usefixtures("needs_slurm")
def test_cluster_for_a_person(tmp_path: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.support.slurm", *words, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    try:
        up = command("up", "--nodes=2")
        assert up.returncode == 0, up.stderr
        assert command("up").stderr == f"{tmp_path}: a cluster is up already\n"
        ask = ["sh", "-c", f"{up.stdout}\nsrun -N2 hostname"]
        assert sorted(subprocess.check_output(ask, text=True).split()) == ["n1", "n2"]
    finally:
        down = command("down")
    assert down.returncode == 0, down.stderr
    assert traces(tmp_path) == []
    assert "no cluster is up" in command("down").stderr


def test_missing_program_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"sh": "dash", "no-such-daemon": "no-such-package"}
    monkeypatch.setattr(availability, "PROGRAMS", programs)
    reason = reason_not_here()
    assert "no-such-daemon is not installed (Debian: apt-get install no-such-package)" in reason
    assert "\n" not in reason


def test_cluster_that_cannot_be_had_skips_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(availability, "PROGRAMS", {})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="needs root"), cluster_or_skip(tmp_path):
        pass
