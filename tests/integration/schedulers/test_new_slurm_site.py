"""A cluster that Plumbline has never seen, from nothing to a first verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mpi import find_mpi
from tests.support.nights import MEASURED
from tests.support.slurm import Cluster, cluster_or_skip
from tests.support.slurm.login import HeadNode

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
    assert "scheduler: Slurm; partitions: cpu, single" in made.output
    text = path.read_text()
    assert text.count("scheduler=slurm.SCHEDULER") == len(PARTITIONS)

    checked = head.run("site", "check", str(path)).expect(0)
    assert "this host is none of" not in checked.output  # so the cluster was asked
    told = re.search(r"a night is 498 cases in (\d+) launches: ", checked.output)
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
    assert advice in tried.output
    assert "3 of 6 work; files of the jobs: " in tried.output

    summary = tmp_path / "summary.json"
    words = ["--environment", openmpi.name, "--partition", "cpu", *ONE_CASE]
    head.run("calibrate", "--site", str(path), *words, "--launches", "2").expect(0)
    head.run("nightly", "--site", str(path), *words, "--json", str(summary)).expect(0)
    (case,) = json.loads(summary.read_text())["cases"]
    assert case["verdict"] in MEASURED - {"regressed"}
    assert cluster.queue() == []
