"""The doctor on the cluster of the tests: real jobs, real MPI, and one node that is slow to send."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.faults import Declared, plants
from tests.support.mpi import fault_library, find_mpi, of_family
from tests.support.plumbline_runner import Ended
from tests.support.slurm import cluster_or_skip
from tests.support.slurm.login import HeadNode
from tests.support.slurm.site import write_site

pytestmark = pytest.mark.alone

SICK, SECONDS = "n3", "0.02"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ended, dict[str, Any]]]:
    """A sweep with a sick node, and its JSON page. Open MPI: its processes let each other run."""
    directory: Path = tmp_path_factory.mktemp("sick")
    with cluster_or_skip(directory / "cluster", nodes=4, cores=2) as cluster:
        mpi = find_mpi("openmpi")
        site = write_site(directory / "testcluster.py", cluster, [mpi])
        head = HeadNode(directory / "home", cluster=cluster)
        library = fault_library(of_family("openmpi"), directory, "sick_host")
        planted = {"LD_PRELOAD": library, "SICK_HOST": SICK, "SICK_SECONDS": SECONDS}
        words = [f"--set-env={mpi.name}:{name}={value}" for name, value in planted.items()]
        ended = head.run("links", "--site", str(site), "--trials", "8", *words)
        pages = list((head.home / "sessions").glob("*/links.json"))
        assert len(pages) == 1, ended.output + ended.errors
        yield ended, json.loads(pages[0].read_text())


@plants("speed", "a node that is slow to send", "a sweep of links over 4 nodes", "", 1, "node n3: ")
def test_the_sick_node_is_named_and_nothing_else(sweep, declared: Declared):
    ended, page = sweep
    assert page["failures"] == []
    (found,) = page["sweeps"]
    assert found["nodes"] == ["n1", "n2", "n3", "n4"]
    assert [(each["kind"], each["who"]) for each in found["findings"]] == [("node", [[SICK]])]
    assert "p = " in ended.said
    declared.check((), ended.status, [ended.output])
