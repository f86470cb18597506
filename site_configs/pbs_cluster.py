"""A cluster with PBS and environment modules. Copy this file, rename it, and change what is marked.

``./plumbline site new`` writes such a file from what it finds. Then

    ./plumbline site check NAME      # says what is wrong, and what a night costs
    ./plumbline site try NAME        # a small launch on every partition with every MPI
    ./plumbline nightly --site NAME
"""

from site_configs import pbs
from site_configs.common import Topology, environment, partition, site

# CHANGE: one entry per MPI. ``library`` is what the running program must say of itself
# (MPI_Get_library_version), so a wrong module or library path can never pass as this MPI.
environments = [
    environment(
        "openmpi-4_1_6",
        family="openmpi",
        library="Open MPI v4.1.6",
        modules=["openmpi/4.1.6"],
        # CHANGE: where it is, so that Spack builds on it; without, mpicost alone is built, with CMake.
        prefix="/opt/openmpi/4.1.6",
        # Open MPI that was built with PBS support takes the nodes from the job. If yours was not, add
        # "--hostfile", "$PBS_NODEFILE".
        launcher=["mpirun"],
    ),
    environment(
        "intel-mpi-2021_11",
        family="intel-mpi",
        library="Intel(R) MPI Library 2021.11",
        modules=["intel-mpi/2021.11"],
        prefix="/opt/intel-mpi/2021.11",
        # Intel MPI's mpirun reads $PBS_NODEFILE, in which each node stands once per process.
        launcher=["mpirun"],
    ),
]

site_configuration = site(
    # CHANGE: the system's name; it is part of every reference's path.
    "pbs_cluster",
    description="A cluster with PBS",
    # CHANGE: patterns of the hosts on which this file applies.
    hostnames=[r"login\d+\.mycluster"],
    # CHANGE: "lmod", "envmod" (Environment Modules 4 and later), "spack" or "nomod".
    modules_system="envmod",
    environments=environments,
    partitions=[
        partition(
            "standard",
            # ReFrame's "pbs", but it asks for the node that a layout does not fill too. pbs.TORQUE for Torque.
            scheduler=pbs.SCHEDULER,
            # CHANGE: what qsub needs to reach these nodes ("-q QUEUE", "-A PROJECT"). Nodes of one's own
            # make quiet measurements; scatter gives one chunk to a node.
            access=["-q standard", "-l place=scatter:excl"],
            # CHANGE: physical cores (PBS may count hardware threads).
            topology=Topology(cores_per_node=48, sockets_per_node=2, nodes=4),
            environments=[entry["name"] for entry in environments],
            # One job at a time: jobs of one night share the network and would disturb each other.
            max_jobs=1,
        )
    ],
)
