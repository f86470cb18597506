"""A cluster that Plumbline has never seen, from nothing to a first verdict."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mpi import find_mpi
from tests.support.nights import MEASURED
from tests.support.slurm import Cluster, cluster_or_skip
from tests.support.slurm.login import HeadNode
from tests.support.slurm.site import write_site

PARTITIONS = {"cpu": "n[1-2]", "single": "n3"}
ONE_CASE = [
    *("--program=mpicost", "--processes=2", "--per-node=1", "--routine=bcast", "--bytes=8"),
    "--trials=5",
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with cluster_or_skip(directory, nodes=3, partitions=PARTITIONS) as cluster:
        yield cluster


def test_a_cluster_from_nothing_to_a_first_verdict(cluster: Cluster, tmp_path: Path):
    head, path = HeadNode(tmp_path / "work", cluster=cluster), tmp_path / "toy.py"
    mpich, openmpi = find_mpi("mpich"), find_mpi("openmpi")

    made = head.run("site", "new", "toy", "--output", str(path)).expect(0)
    assert "scheduler: Slurm; partitions: cpu, single" in made.said
    text = path.read_text()
    assert text.count("scheduler=slurm.SCHEDULER") == len(PARTITIONS)

    checked = head.run("site", "check", str(path)).expect(0)
    assert "this host is none of" not in checked.said  # so the cluster was asked
    told = re.search(r"a night is 498 cases in (\d+) launches: ", checked.said)
    assert told and 10 < int(told[1]) <= 5 * 10  # those of mpicost five times

    # Open MPI started as if it were MPICH: its processes do not find each other, and each of them ends well.
    right = f'[str(work_directory() / "mpi/{Path(openmpi.prefix).name}/bin/mpirun")]'
    assert text.count(right) == 1
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text.replace(right, "slurm.SRUN_PMI2"))
    tried = head.run("site", "try", str(wrong)).expect(1)
    rows = [line.split(maxsplit=2) for line in tried.output.splitlines()]
    rows = [row for row in rows if row[:1] in (["cpu"], ["single"])]
    assert [row[:2] for row in rows] == [
        [partition, mpi.name]
        for partition, launches in (("cpu", 2), ("single", 1))
        for mpi in (mpich, openmpi)
        for _ in range(launches)
    ]
    for _, environment, result in rows:
        expected = "works: " if environment == mpich.name else "incorrect: started 2 singleton processes"
        assert expected in result
    advice = f"{openmpi.name}: known to work with openmpi: launcher=['{head.home}/mpi/"
    assert advice in tried.said
    assert "3 of 6 work; files of the jobs: " in tried.said

    summary = tmp_path / "summary.json"
    words = ["--environment", openmpi.name, "--partition", "cpu", *ONE_CASE]
    head.run("calibrate", "--site", str(path), *words, "--launches", "2").expect(0)
    head.run("nightly", "--site", str(path), *words, "--json", str(summary)).expect(0)
    (case,) = json.loads(summary.read_text())["cases"]
    assert case["verdict"] in MEASURED - {"regressed"}
    assert cluster.queue() == []


def test_an_option_that_slurm_does_not_take_is_named(cluster: Cluster, tmp_path: Path):
    """With the file, the partition, the option and what sbatch says; also while all nodes are drained."""
    head, mpich = HeadNode(tmp_path / "work", cluster=cluster), find_mpi("mpich")
    own = '"--partition=work", "--exclusive"'
    path = write_site(tmp_path / "testcluster.py", cluster, [mpich], nodes=2)
    text = path.read_text().replace(own, '"--partition=cpu", "--exclusive"')
    assert own not in text
    path.write_text(text)
    assert "is refused" not in head.run("site", "check", str(path)).expect(0).said

    more = '"--exclusive", "--foo=bar", "--gres=gpu:1", "--constraint=fast"'
    path.write_text(text.replace('"--exclusive"', more))
    line = next(
        n for n, each in enumerate(text.splitlines(), 1) if "partition(" in each and "import" not in each
    )
    title = f"{path}:{line}: partition 'work': access: "
    unknown = f"{title}'--foo=bar': sbatch: unrecognized option '--foo=bar'; mend it, or take it out"
    told = head.run("site", "check", str(path)).expect(1).said
    assert unknown in told and told.endswith(f" {path}: 3 wrong")
    assert f"{title}'--gres=gpu:1': sbatch: error: Invalid generic resource (gres) specification; " in told
    cluster.run("scontrol", "update", "nodename=n[1-2]", "state=drain", "reason=cables")
    try:
        assert unknown in head.run("site", "check", str(path)).expect(1).said
        path.write_text(text)
        drained = head.run("site", "check", str(path)).expect(0).output
    finally:
        cluster.run("scontrol", "update", "nodename=n[1-2]", "state=resume")
    assert "(--partition=cpu --exclusive) is refused: sbatch: allocation failure: " in " ".join(drained.split())
