"""A Cray EX with PBS and Cray's own launcher, PALS. Copy this file, rename it, and change what is marked.

On a Cray with Slurm use ``slurm_cluster.py``, with ``launcher=["srun", "--mpi=cray_shasta"]``. On a Cray XC the
launcher is ``"alps"`` (aprun).

  ./plumbline site check NAME      # says what is wrong, and what a night costs
  ./plumbline site try NAME        # a small launch on every partition with every MPI
  ./plumbline nightly --site NAME
"""

from site_configs import pbs
from site_configs.common import Topology, environment, partition, site

# CHANGE: one entry per programming environment. ``library`` is text that MPI_Get_library_version of the running
# program must contain. Cray's compiler wrapper ``cc`` is an MPI wrapper once cray-mpich is loaded.
environments = [
    environment(
        "cray-mpich-8_1_28",
        family="cray-mpich",
        library="CRAY MPICH version 8.1.28",
        modules=["PrgEnv-gnu/8.5.0", "cray-mpich/8.1.28"],
        mpicc="cc",
        launcher=pbs.PALS,
    )
]

site_configuration = site(
    # CHANGE: the system's name; it is part of every reference's path.
    "cray_cluster",
    description="A Cray EX with PBS",
    # CHANGE: patterns of the hosts on which this file applies.
    hostnames=[r"uan\d+"],
    modules_system="lmod",
    environments=environments,
    partitions=[
        partition(
            "compute",
            scheduler=pbs.SCHEDULER,
            # CHANGE: what qsub needs to reach these nodes ("-q QUEUE", "-A PROJECT").
            access=["-q workq", "-l place=scatter:excl"],
            # CHANGE: physical cores, and the nodes under one switch (of a Dragonfly group's 16 blades or so).
            topology=Topology(cores_per_node=128, sockets_per_node=2, nodes=4, nodes_per_switch=2),
            environments=[entry["name"] for entry in environments],
            max_jobs=1,
            # Crays are large: fewer trials than the papers' 51 keep a night short.
            defaults={"trials": 21},
        )
    ],
)
