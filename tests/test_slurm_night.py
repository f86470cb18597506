"""Nights on the cluster of the tests: real jobs and MPIs, and all that keeps a job from its end."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from mpi_support import fault_library, of_family
from slurm import Cluster, cluster_or_skip, faults
from slurm.login import HeadNode, signal_program
from slurm.machines import wait_until
from slurm.site import write_site
from workshop import LIMIT, Ended

from postprocess import provenance
from postprocess.references import Reference, load, location, write
from postprocess.store import read_sessions
from site_configs import inventory
from site_configs.common import work_directory
from site_configs.mpis import Mpi

pytestmark = pytest.mark.mpi
#: As small as a launch can be, on two nodes. Without references: ``no-reference`` is a case that was measured
#: and is right.
SHORT = ("--strict", "--routine", "bcast", "--bytes", "8", "--trials", "5")
APART = ("--processes", "2", "--per-node", "1")
CENTER, SPREAD = 1e-3, 2.2  #: of references that no noise of a shared machine contradicts, seconds


@dataclass(frozen=True)
class Place:
    """A cluster, its head node and its MPIs."""

    cluster: Cluster
    head: HeadNode
    mpis: dict[str, Mpi]  #: by family

    def site(self, *families: str, **how: object) -> tuple[str, str]:
        """Write a site file with these MPIs, in this order; the options that choose it."""
        chosen = [self.mpis[family] for family in families or self.mpis]
        path = write_site(self.head.home / "testcluster.py", self.cluster, chosen, **how)
        return "--site", str(path)

    def hanging(self, family: str) -> list[str]:
        """Options with which every launch of an MPI hangs."""
        mpi = of_family(family)
        library = fault_library(mpi, self.head.home)
        planted = {"LD_PRELOAD": library, "PLANTED_FAULT": "hang"}
        return [f"--set-env={mpi.name}:{name}={value}" for name, value in planted.items()]

    def begin(self, *families: str, words: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Begin a night of a launch of each of these MPIs, the last of which hangs; wait for that one."""
        begun, ended = (
            len(self.left("jsonl")) + len(families),
            len(self.left("exit")) + len(families) - 1,
        )
        options = [*self.site(*families), *SHORT, *APART, *self.hanging(families[-1]), *words]
        night = self.head.start("run", *options)

        def hangs() -> bool:
            return len(self.left("jsonl")) == begun and len(self.left("exit")) == ended

        try:
            wait_until("the launch that hangs", lambda: night.poll() is not None or hangs())
            assert night.poll() is None, night.communicate()
        except BaseException:
            night.kill()
            raise
        return night

    def left(self, kind: str) -> list[Path]:
        """What launches of all sessions left: ``jsonl`` of those that began, ``exit`` of those that ended."""
        return list(self.head.home.glob(f"sessions/*/raw/*.{kind}"))

    def jobs(self) -> list[str]:
        """What is in the queue."""
        return self.cluster.queue()

    def queue_is_empty(self) -> bool:
        """Whether no job is in the queue, nor about to leave it."""
        return not self.jobs()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("slurm")
    with cluster_or_skip(directory / "cluster", nodes=4, cores=2) as cluster:
        known = {mpi.family: mpi for mpi in inventory.load(work_directory()).mpis}
        mpis = {family: known[family] for family in ("mpich", "openmpi")}
        yield Place(cluster, HeadNode(directory / "home", cluster=cluster), mpis)


def by_family(ended: Ended) -> dict[str, tuple[str, str]]:
    """Verdict and reason of the case of each family, of a session that had one case of each."""
    cases = [(case["environment"], case["verdict"], case["reason"]) for case in summary(ended)]
    assert len({name for name, *_ in cases}) == len(cases)
    return {name.partition("-")[0]: (verdict, reason) for name, verdict, reason in cases}


def summary(ended: Ended) -> list[dict]:
    return ended.summary["cases"]


def finish(night: subprocess.Popen[str]) -> Ended:
    """Wait for a night that was begun."""
    output, errors = night.communicate(timeout=LIMIT)
    return Ended(night.returncode, output, errors)


def kept(place: Place) -> dict[str, str]:
    """Verdict by family of what the store has of the last session."""
    last = max(place.head.home.glob("store/*.parquet"))
    rows = read_sessions(last.parent, [last.stem])
    return {
        name.partition("-")[0]: verdict
        for name, verdict in zip(rows["environment"], rows["verdict"], strict=True)
    }


def test_two_mpis_and_all_kinds_of_layouts_get_their_verdicts(place: Place) -> None:
    root = place.head.home / "reviewed"
    short = (*place.site(), *SHORT[1:])
    calibrating = ("--processes", "3", "--launches", "1", "--output", str(root))
    ended = place.head.run("calibrate", *short, *calibrating)
    assert ended.status == 0, ended.output + ended.errors
    for mpi in place.mpis.values():
        widen(location(root, "testcluster", "work", mpi.name), mpi)
    ended = place.head.measure(*short, "--strict", "--processes", "2,3", "--references", str(root))
    found = {}
    for case in summary(ended):
        layout = (case["processes"], case["per_node"])
        found.setdefault(layout, set()).add(case["verdict"])
    assert len(summary(ended)) == 6
    assert found.pop((3, 2)) <= {"pass", "fast"}  # one more than a node has cores
    assert found == {(2, 1): {"no-reference"}, (2, 2): {"no-reference"}}  # apart and together
    assert place.queue_is_empty()


def widen(path: Path, mpi: Mpi) -> None:
    """Give measured references a stated center and spread."""
    known = load(path, "testcluster", "work", mpi.name)
    wide = [Reference(each.case, CENTER, SPREAD, 20) for each in known.values()]
    write(path, wide, json.loads(provenance.beside(path).read_text()))


def test_launcher_of_another_mpi_is_incorrect_and_named(place: Place) -> None:
    site = place.site(launchers={"mpich": "'srun'", "openmpi": "slurm.SRUN_PMI2"})
    ended = place.head.measure(*site, *SHORT, "--processes", "3")
    for family, (verdict, reason) in by_family(ended).items():
        assert verdict == "incorrect", reason
        assert f"the launcher does not belong to the MPI of {family}" in reason
    assert ended.status == 1


def test_job_that_can_never_run_is_told_at_once_and_the_others_run(place: Place) -> None:
    site = place.site("mpich", nodes=8)
    ended = place.head.measure(*site, *SHORT, "--processes", "2,8", "--per-node", "1")
    small, large = (next(c for c in summary(ended) if c["processes"] == n) for n in (2, 8))
    assert small["verdict"] == "no-reference"
    assert large["verdict"] == "incomplete"
    assert "never started: Slurm cannot run it as it is asked for (Part" in large["reason"]
    assert "topology, layouts and access of the partition" in large["reason"]
    assert place.queue_is_empty()


def test_job_that_waits_too_long_is_given_up(place: Place) -> None:
    place.cluster.run("sbatch", "--nodes=4", "--output=/dev/null", "--wrap", "sleep 600")
    try:
        site = place.site("mpich", defaults={"max_pending_time": "2s"})
        ended = place.head.measure(*site, *SHORT, *APART)
        assert len(place.jobs()) == 1  # the other one's
    finally:
        place.cluster.run("scancel", "--user=root")
        wait_until("an empty queue", place.queue_is_empty)
    verdict, reason = by_family(ended)["mpich"]
    assert verdict == "incomplete"
    assert "never started: waited" in reason and "in the queue (Resources)" in reason
    assert "max_pending_time" in reason


def test_drained_partition_is_named_with_its_nodes(place: Place) -> None:
    nodes = "nodename=n[1-4]"
    place.cluster.run("scontrol", "update", nodes, "state=drain", "reason=cables")
    try:
        site = place.site("mpich", defaults={"max_pending_time": "2s"})
        ended = place.head.measure(*site, *SHORT, *APART)
    finally:
        place.cluster.run("scontrol", "update", nodes, "state=resume")
    verdict, reason = by_family(ended)["mpich"]
    assert verdict == "incomplete"
    assert "never started: waited" in reason
    assert all(f"n{number} (drained)" in reason for number in range(1, 5))
    assert place.queue_is_empty()


def test_controller_away_for_a_while_is_waited_for(place: Place) -> None:
    night = place.begin("mpich", "openmpi", words=["--time-limit", "4"])
    faults.stop_controller(place.cluster)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            night.communicate(timeout=3)
    finally:
        place.cluster.start_controller()
    ended = finish(night)
    assert ended.status == 1
    assert kept(place) == {"mpich": "no-reference", "openmpi": "timeout"}, ended.output
    assert place.queue_is_empty()


def test_controller_that_stays_away_is_given_up(place: Place) -> None:
    faults.stop_controller(place.cluster)
    try:
        ended = place.head.measure(
            *place.site("mpich"), *SHORT, *APART, PLUMBLINE_SLURM_PATIENCE="2"
        )
    finally:
        place.cluster.start_controller()
    verdict, reason = by_family(ended)["mpich"]
    assert verdict == "incomplete"
    assert "never started: Slurm has not answered for" in reason


def test_stopped_driver_leaves_no_job(place: Place) -> None:
    night = place.begin("openmpi")
    signal_program(night, signal.SIGTERM)
    finish(night)
    wait_until("an empty queue", place.queue_is_empty)


def test_killed_driver_leaves_no_job(place: Place) -> None:
    night = place.begin("openmpi")
    signal_program(night, signal.SIGKILL)
    night.wait()
    wait_until("an empty queue", place.queue_is_empty)


def test_next_command_cancels_what_nobody_could(place: Place) -> None:
    night = place.begin("openmpi")
    place.cluster.run("sh", "-c", "kill -9 $(pgrep -f postprocess.start_reframe)", check=False)
    signal_program(night, signal.SIGKILL)
    night.wait()
    assert len(place.jobs()) == 1
    ended = place.head.measure(*place.site("mpich"), *SHORT, *APART)
    assert "cancelled a job that an earlier session left in the queue" in ended.output
    assert by_family(ended)["mpich"][0] == "no-reference"
    wait_until("an empty queue", place.queue_is_empty)


def test_node_that_dies_in_the_middle_is_named_and_the_rest_is_kept(
    place: Place, tmp_path: Path
) -> None:
    with cluster_or_skip(tmp_path, nodes=2, settings={"SlurmdTimeout": "4"}) as cluster:
        there = replace(place, cluster=cluster, head=replace(place.head, cluster=cluster))
        night = there.begin("openmpi", "mpich")
        faults.power_off(cluster, "n2")
        ended = finish(night)
        assert kept(there) == {"openmpi": "no-reference", "mpich": "crashed"}
        assert "Slurm ended the job: NODE_FAIL; n2 (down" in ended.output
        assert there.queue_is_empty()


def test_accounting_that_is_switched_off_is_not_missed(place: Place, tmp_path: Path) -> None:
    with cluster_or_skip(tmp_path, nodes=2, accounting=True) as cluster:
        there = replace(place, cluster=cluster, head=replace(place.head, cluster=cluster))
        cluster.run("sh", "-c", "kill $(pgrep slurmdbd)")
        ended = there.head.measure(*there.site("mpich"), *SHORT, *APART)
        assert by_family(ended)["mpich"][0] == "no-reference", ended.output
