"""Comparisons on the cluster of the tests: pairs on the same nodes, and nodes that are taken away."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from postprocess.features.compare import data
from postprocess.features.compare.data import ComparisonPass
from postprocess.features.compare.pairs import collect_pairs
from tests.support.faults import Declared, plants
from tests.support.mpi import find_mpi
from tests.support.plumbline_runner import LIMIT, Ended
from tests.support.slurm import Cluster, cluster_or_skip
from tests.support.slurm.login import HeadNode, signal_program
from tests.support.slurm.machines import wait_until
from tests.support.slurm.site import write_site

FEW = ("--program", "mpicost", "--routine", "bcast", "--bytes", "8", "--trials", "5")
FEW += ("--processes", "2", "--per-node", "1", "--cache", "warm", "--control", "--seed", "1")


@dataclass(frozen=True)
class Place:
    """A cluster, its head node, and an MPI that is held against itself."""

    cluster: Cluster
    head: HeadNode
    site: Path
    mpi: str

    def compare(self, folder: Path) -> subprocess.Popen[str]:
        """Begin a comparison whose new side is delayed: no noise makes the sides the same."""
        words = ("--site", str(self.site), *FEW, "--plant", "slower-400:bcast")
        return self.head.start("compare", self.mpi, self.mpi, *words, "--output", str(folder))

    def nodes(self, names: str, state: str) -> None:
        """Drain nodes, or have them used again."""
        words = (f"nodename={names}", f"state={state}", "reason=cables")
        self.cluster.run("scontrol", "update", *words, check=state == "drain")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("slurm")
    with cluster_or_skip(directory / "cluster", nodes=4, cores=2) as cluster:
        mpi = find_mpi("mpich")
        head = HeadNode(directory / "home", cluster=cluster)
        patience = {"max_pending_time": "2s"}
        site = write_site(directory / "testcluster.py", cluster, [mpi], defaults=patience)
        yield Place(cluster, head, site, mpi.name)


def passes(folder: Path) -> list[ComparisonPass]:
    """The passes that are written down."""
    path = folder / data.FILE
    return list(data.read_comparison(path).passes) if path.exists() else []


def wait_for(begun: subprocess.Popen[str], what: str, is_there: Callable[[], bool]) -> None:
    """Wait until a comparison that runs has come so far."""
    wait_until(what, lambda: begun.poll() is not None or is_there())
    assert begun.poll() is None, begun.communicate()


def nodes_of(done: ComparisonPass) -> str:
    (launch,) = done.launches
    return launch.place["nodes"]


def test_pairs_are_on_the_same_nodes_and_one_whose_node_is_taken_away_does_not_count(
    place: Place, tmp_path: Path
) -> None:
    folder = tmp_path / "dossier"

    def is_written(block: int, position: int) -> bool:
        return any((each.block, each.position) == (block, position) for each in passes(folder))

    begun = place.compare(folder)
    try:
        wait_for(begun, "the trials", lambda: len(passes(folder)) == 2)
        wait_for(begun, "a pass", lambda: is_written(1, 0))
        taken = nodes_of(passes(folder)[-1]).split(",")[0]
        place.nodes(taken, "drain")
        wait_for(begun, "the other side", lambda: is_written(1, 1))
        place.nodes(taken, "resume")  # where Slurm sends a job that asks for no nodes
        wait_for(begun, "a block", lambda: is_written(1, 3))
        signal_program(begun, signal.SIGTERM)
        output, _ = begun.communicate(timeout=LIMIT)
    finally:
        begun.kill()
        for name in ("n1", "n2", "n3", "n4"):
            place.nodes(name, "resume")
    first, *others = [nodes_of(each) for each in passes(folder) if each.block == 1]
    assert taken == "n1", first
    assert len(others) == 3 and len(set(others)) == 1 and taken not in others[0].split(","), others
    assert "launched again, on any nodes: never started: waited" in " ".join(output.split())
    (pairs,) = (
        each
        for key, each in collect_pairs(passes(folder), 1).items()
        if not data.SharedCase.from_key(key).is_control
    )
    assert len(pairs.differences) == len(pairs.void) == 1
    assert "nodes differs" in next(iter(pairs.void))


@plants("schedulers", "a side whose jobs never start", "Slurm, below a comparison", "incomplete", 1,
        "never started: waited")  # fmt: skip
def test_a_side_whose_jobs_never_start_is_broken(place: Place, tmp_path: Path, declared: Declared):
    folder = tmp_path / "dossier"
    begun = place.compare(folder)
    try:
        wait_for(begun, "the old side", lambda: len(passes(folder)) == 1)
        place.nodes("n1,n2,n3,n4", "drain")
        output, errors = begun.communicate(timeout=LIMIT)
    finally:
        begun.kill()
        for name in ("n1", "n2", "n3", "n4"):
            place.nodes(name, "resume")
    ended = Ended(begun.returncode, output, errors)
    assert "Not safe: of 1 case" in ended.said and "1 broken" in ended.said
    said = [
        value
        for each in passes(folder)
        if each.side == data.NEW
        for launch in each.launches
        for value in launch.cases.values()
    ]
    declared.check({each.verdict for each in said}, ended.status, [each.reason for each in said])
