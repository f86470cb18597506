"""Nights on the cluster of the tests: real jobs and MPIs, and all that keeps a job from its end."""

import json
import resource
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from postprocess.references.reference_file import locate_references
from postprocess.results.store import read_sessions
from site_configs.mpi.family import Mpi
from site_configs.schedulers import slurm_jobs
from tests.support.factories.stated_references import restate_references
from tests.support.faults import Declared, plants
from tests.support.mpi import fault_library, find_mpi, of_family
from tests.support.plumbline_runner import LIMIT, Ended
from tests.support.slurm import Cluster, cluster_or_skip, faults
from tests.support.slurm.login import HeadNode, signal_program
from tests.support.slurm.machines import wait_until
from tests.support.slurm.site import write_site

#: As small as a launch can be, on two nodes. Without references: ``no-reference`` is a case that was measured
#: and is right.
SHORT = ("--strict", "--program", "mpicost", "--routine", "bcast", "--bytes", "8", "--trials", "5")
APART = ("--processes", "2", "--per-node", "1")
CENTER, SPREAD = 1.0, 0.1  #: of references that no noise of a shared machine exceeds, seconds


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

    def begin(self, *families: str, words: Sequence[str] = (), **more: str) -> subprocess.Popen[str]:
        """Begin a night of a launch of each of these MPIs, the last of which hangs; wait for that one."""
        begun, ended = (len(self.left("jsonl")) + len(families), len(self.left("exit")) + len(families) - 1)
        options = [*self.site(*families), *SHORT, *APART, *self.hanging(families[-1]), *words]
        night = self.head.start("run", *options, **more)

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
        return self.cluster.queue()

    def queue_is_empty(self) -> bool:
        """Whether no job is in the queue, nor about to leave it."""
        return not self.jobs()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("slurm")
    with cluster_or_skip(directory / "cluster", nodes=4, cores=2) as cluster:
        mpis = {family: find_mpi(family) for family in ("mpich", "openmpi")}
        yield Place(cluster, HeadNode(directory / "home", cluster=cluster), mpis)


def measure_in_job(place: Place, *words: str) -> Ended:
    """Measure from within a job of one core, as one of scrontab does, whose launches are jobs too."""
    home = place.head.home
    command = place.head.command("run", "--json", str(home / "summary.json"), *words)
    own = place.head.environment()
    variables = ("PLUMBLINE_HOME", "PLUMBLINE_NO_SPACK", "PATH")
    lines = ["#!/bin/sh", *(f"export {name}={shlex.quote(own[name])}" for name in variables)]
    (home / "night.sh").write_text("\n".join([*lines, shlex.join(command)]))
    options = ["--wait", "--time=00:10:00", f"--chdir={home}", f"--output={home}/night.log"]
    done = place.cluster.run("sbatch", *options, str(home / "night.sh"), check=False)
    told = json.loads((home / "summary.json").read_text())
    return Ended(done.returncode, (home / "night.log").read_text(), done.stderr, told)


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
    ended = place.head.run("calibrate", *short, *calibrating).expect(0)
    for mpi in place.mpis.values():
        restate_references(locate_references(root, "testcluster", "work", mpi.name), CENTER, SPREAD)
    ended = measure_in_job(place, *short, "--strict", "--processes", "2,3", "--references", str(root))
    found = {}
    for case in summary(ended):
        layout = (case["processes"], case["per_node"])
        found.setdefault(layout, set()).add(case["verdict"])
    assert len(summary(ended)) == 6
    assert found.pop((3, 2)) == {"fast"}  # one more than a node has cores
    assert found == {(2, 1): {"no-reference"}, (2, 2): {"no-reference"}}  # apart and together
    assert place.queue_is_empty()


@plants("schedulers", "the launcher of another MPI", "a site file", "incorrect", 1,
        "the launcher does not match the MPI of ")  # fmt: skip
def test_launcher_of_another_mpi_is_incorrect_and_named(place: Place, declared: Declared) -> None:
    site = place.site(launchers={"mpich": "'srun'", "openmpi": "slurm.SRUN_PMI2"})
    ended = place.head.measure(*site, *SHORT, "--processes", "3")
    for family, (_, reason) in by_family(ended).items():
        assert f"the launcher does not match the MPI of {family}" in reason
    declared.check_session(ended)


@plants("schedulers", "a job that waits too long for a node, and one too large", "Slurm",
        "incomplete", 1, "never started: waited … s in the queue ( | "
        "never started: Slurm cannot run it as it is asked for (Part")  # fmt: skip
def test_launches_that_cannot_start_are_told_why_and_the_others_run(place: Place, declared):
    place.cluster.run("sbatch", "--nodelist=n4", "--output=/dev/null", "--job-name=a\nb", "--wrap", "sleep 600")
    try:
        site = place.site("mpich", nodes=8, defaults={"max_pending_time": "2s"})
        ended = place.head.measure(*site, *SHORT, "--processes", "2,4,8", "--per-node", "1")
        assert place.jobs()[0].endswith("RUNNING a") and place.jobs()[1:] == ["b"]  # the other one's
    finally:
        place.cluster.run("scancel", "--user=root")
        wait_until("an empty queue", place.queue_is_empty)
    two, four, eight = sorted(summary(ended), key=lambda case: case["processes"])
    assert two["verdict"] == "no-reference"
    late = [four, eight]
    declared.check([case["verdict"] for case in late], ended.status, [each["reason"] for each in late])
    assert "never started: waited" in four["reason"] and "s in the queue (" in four["reason"]
    assert "max_pending_time" in four["reason"]
    assert "never started: Slurm cannot run it as it is asked for (Part" in eight["reason"]
    assert "topology, layouts and access of the partition" in eight["reason"]


@plants("schedulers", "a drained node", "Slurm", "skipped", 1,
        "needs 4 nodes, and 3 can be used: n3 (drained since …: bad cables)")  # fmt: skip
def test_launches_on_drained_nodes_are_skipped_and_the_others_run(place: Place, declared):
    """Whatever limits the shell that submits has, the launch has those of the nodes."""
    drained = ("update", "nodename=n3")
    place.cluster.run("scontrol", *drained, "state=drain", "reason=bad cables")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (777, limits[1]))
    try:
        words = (*SHORT, "--processes", "2,4", "--per-node", "1")
        ended = place.head.measure(*place.site("mpich"), *words)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        place.cluster.run("scontrol", *drained, "state=resume")
    two, four = sorted(summary(ended), key=lambda case: case["processes"])
    assert two["verdict"] == "no-reference"
    declared.check([four["verdict"]], ended.status, [four["reason"]])
    (told,) = {path.read_text() for path in place.left("limits")[-1:]}
    assert dict(line.split(" ", 1) for line in told.splitlines())["n"] not in ("777", "")


@plants("schedulers", "a controller that is away for a while, and a launch that hangs", "Slurm",
        "timeout", 1, "no end within 10 s")  # fmt: skip
def test_controller_away_for_a_while_is_waited_for(place: Place, declared: Declared) -> None:
    night = place.begin("mpich", "openmpi", words=["--time-limit", "10"])
    faults.stop_controller(place.cluster)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            night.communicate(timeout=3)
    finally:
        place.cluster.start_controller()
    ended = finish(night)
    known = kept(place)
    assert known.pop("mpich") == "no-reference", ended.output
    declared.check(known.values(), ended.status, [ended.output])
    assert place.queue_is_empty()


@plants("schedulers", "a controller that stays away", "Slurm, in an earlier session", "no-reference", 1,
        "cancelled a job that an earlier session left in the queue")  # fmt: skip
def test_controller_that_stays_away_is_given_up_and_the_next_command_cancels_the_job(
    place: Place, declared: Declared
) -> None:
    night = place.begin("openmpi", PLUMBLINE_SLURM_PATIENCE="0")
    faults.stop_controller(place.cluster)
    try:
        ended = finish(night)
    finally:
        place.cluster.start_controller()
    told = ended.said
    assert "Slurm has not answered for" in told
    assert "jobs of this session may still be in the queue" in told
    assert len(place.jobs()) == 1
    ended = place.head.measure(
        *place.site("mpich"), *SHORT, *APART, SQUEUE_PARTITION="nope", SQUEUE_STATES="CD"
    )
    declared.check([by_family(ended)["mpich"][0]], ended.status, [ended.output])
    wait_until("an empty queue", place.queue_is_empty)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_driver_that_ends_early_leaves_no_job(place: Place, number: int) -> None:
    night = place.begin("openmpi")
    signal_program(night, number)
    night.communicate(timeout=LIMIT)
    wait_until("an empty queue", place.queue_is_empty)


@plants("schedulers", "a node that loses its power during a launch", "Slurm", "crashed", 1,
        "Slurm ended the job: NODE_FAIL; n2 (down")  # fmt: skip
def test_node_that_dies_in_the_middle_is_named_and_the_rest_is_kept(place, tmp_path, declared):
    with cluster_or_skip(tmp_path, nodes=2, settings={"SlurmdTimeout": "4"}) as cluster:
        there = replace(place, cluster=cluster, head=replace(place.head, cluster=cluster))
        night = there.begin("openmpi", "mpich")
        faults.power_off(cluster, "n2")
        ended = finish(night)
        known = kept(there)
        assert known.pop("openmpi") == "no-reference"
        declared.check(known.values(), ended.status, [ended.output])
        assert there.queue_is_empty()


def test_accounting_that_is_switched_off_is_not_missed(tmp_path, monkeypatch):
    with cluster_or_skip(tmp_path, nodes=1, accounting=True) as cluster:
        for name, value in cluster.environment().items():
            monkeypatch.setenv(name, value)
        cluster.run("sh", "-c", "kill $(pgrep slurmdbd)")
        words = ["sbatch", "--wait", "--parsable", "--output=/dev/null", "--wrap", "exit 3"]
        number = cluster.run(*words, check=False).stdout.strip()
        assert (slurm_jobs.look_up_job(number).state, slurm_jobs.look_up_job(number).exit_code) == ("FAILED", 3)
        with pytest.raises(slurm_jobs.UnknownJob):
            slurm_jobs.look_up_job("999")
