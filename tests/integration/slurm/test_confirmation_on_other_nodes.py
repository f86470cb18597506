"""A case that is slow on some nodes is measured again on others: real jobs, one sick node."""

from postprocess.references.reference_file import locate_references
from tests.support.factories.stated_references import restate_references
from tests.support.faults import plants
from tests.support.mpi import fault_library, find_mpi, of_family
from tests.support.slurm import cluster_or_skip
from tests.support.slurm.login import HeadNode
from tests.support.slurm.site import write_site

#: Of a reference that no shared machine contradicts, and a sick node does
CENTER, SPREAD = (1e-3, 1.5)
SICK_SECONDS = "0.5"
WORDS = ("--program", "mpicost", "--routine", "pingpong", "--bytes", "8", "--trials", "5")
APART = ("--processes", "2", "--per-node", "1")


@plants("speed", "a node that is slow to send", "one of 4 nodes", "cleared", 0,
        " on other nodes than n1, n2 were not slow: ")  # fmt: skip
def test_what_is_slow_on_a_sick_node_is_cleared_on_others_and_the_node_is_named(tmp_path, declared):
    with cluster_or_skip(tmp_path / "cluster", nodes=4, cores=2) as cluster:
        mpi, head = find_mpi("openmpi"), HeadNode(tmp_path / "home", cluster=cluster)
        site = ("--site", str(write_site(tmp_path / "testcluster.py", cluster, [mpi])))
        root = tmp_path / "reviewed"
        library = fault_library(of_family("openmpi"), tmp_path, "sick_host")
        planted = {"LD_PRELOAD": library, "SICK_HOST": "n1", "SICK_SECONDS": SICK_SECONDS}
        sick = [f"--set-env={mpi.name}:{name}={value}" for name, value in planted.items()]
        calibrating = ("--launches", "1", "--output", str(root), sick[0])  # and no host is sick
        ended = head.run("calibrate", *site, *WORDS, *APART, *calibrating).expect(0)
        restate_references(locate_references(root, "testcluster", "work", mpi.name), CENTER, SPREAD)
        ended = head.measure(*site, *WORDS, *APART, "--references", str(root), *sick, command="nightly")
    declared.check_session(ended)
