"""A cluster with PBS and environment modules. Copy this file, rename it, and change what is marked.

``./plumbline site new`` writes such a file from the facts of a machine. Then

  ./plumbline site check NAME      # says what is wrong, and what a night costs
  ./plumbline site try NAME        # a small launch on every partition with every MPI
  ./plumbline nightly --site NAME
"""

from site_configs import pbs
from site_configs.common import Topology, environment, partition, site

# CHANGE: one entry per MPI. ``library`` is text that MPI_Get_library_version of the running program must
# contain, so that a wrong module or library path can never pass as this MPI.
environments = [
    environment(
        "openmpi-4_1_6",
        family="openmpi",
        library="Open MPI v4.1.6",
        modules=["openmpi/4.1.6"],
        # CHANGE: the prefix on which Spack builds; without it only mpicost is built, with CMake.
        prefix="/opt/openmpi/4.1.6",
        # An Open MPI with PBS support takes the nodes from the job. Without it, add "--hostfile",
        # "$PBS_NODEFILE".
        launcher=["mpirun"],
    ),
    environment(
        "intel-mpi-2021_11",
        family="intel-mpi",
        library="Intel(R) MPI Library 2021.11",
        modules=["intel-mpi/2021.11"],
        prefix="/opt/intel-mpi/2021.11",
        # Intel MPI's mpirun reads $PBS_NODEFILE, which lists each node once per process.
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
            # ReFrame's "pbs", which also requests the node that a layout does not fill. pbs.TORQUE for Torque.
            scheduler=pbs.SCHEDULER,
            # CHANGE: what qsub needs to reach these nodes ("-q QUEUE", "-A PROJECT"). Exclusive nodes make
            # quiet measurements; scatter puts one chunk on a node.
            access=["-q standard", "-l place=scatter:excl"],
            # CHANGE: physical cores (PBS may count hardware threads).
            topology=Topology(cores_per_node=48, sockets_per_node=2, nodes=4),
            environments=[entry["name"] for entry in environments],
            # One job at a time: jobs of one night share the network and would disturb each other.
            max_jobs=1,
        )
    ],
)
