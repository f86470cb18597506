"""A cluster with Slurm and environment modules. Copy this file, rename it, and change what is marked.

cp site_configs/slurm_cluster.py site_configs/mycluster.py
./plumbline site check mycluster
./plumbline site try mycluster
./plumbline nightly --site mycluster
"""

from site_configs import slurm
from site_configs.common import Topology, environment, partition, site

# CHANGE: one entry per MPI. ``library`` is text that MPI_Get_library_version of the running program must
# contain, so that a wrong module or library path can never pass as this MPI.
environments = [
    environment(
        "openmpi-5_0",
        family="openmpi",
        library="Open MPI v5.0",
        modules=["openmpi/5.0"],
        # CHANGE: the prefix on which Spack builds; without it only mpicost is built, with CMake.
        prefix="/opt/openmpi/5.0",
        # Open MPI: its own mpirun inside the job. srun --mpi=pmix (slurm.SRUN_PMIX) is known to crash at some
        # process counts.
        launcher=["mpirun"],
    ),
    environment(
        "mpich-4_3",
        family="mpich",
        library="MPICH Version: 4.3",
        modules=["mpich/4.3"],
        prefix="/opt/mpich/4.3",
        # MPICH: srun with Slurm's PMI-2. Without it srun starts many worlds of one process. Use slurm.SRUN_CRAY
        # for Cray MPICH, and slurm.SRUN for an MPI that is the site's MpiDefault.
        launcher=slurm.SRUN_PMI2,
    ),
]

site_configuration = site(
    # CHANGE: the system's name; it is part of every reference's path.
    "slurm_cluster",
    description="A cluster with Slurm",
    # CHANGE: patterns of the hosts on which this file applies.
    hostnames=[r"login\d+\.mycluster"],
    # CHANGE: "lmod", "envmod" (Environment Modules 4 and later), "spack" or "nomod".
    modules_system="lmod",
    environments=environments,
    partitions=[
        partition(
            "cpu",
            # Slurm, with or without accounting; it tolerates a controller that is away for ten minutes.
            scheduler=slurm.SCHEDULER,
            # CHANGE: what sbatch needs to reach these nodes. Exclusive nodes make quiet measurements.
            access=["--partition=cpu", "--exclusive"],
            # CHANGE: physical cores; these counts decide which process counts are measured.
            topology=Topology(cores_per_node=64, sockets_per_node=2, nodes=4, nodes_per_switch=2),
            environments=[entry["name"] for entry in environments],
            # One job at a time: jobs of one night share the network and would disturb each other.
            max_jobs=1,
            # CHANGE: how long a job may wait in the queue; after one that did not start, the others wait 1 min.
            defaults={"max_pending_time": "12h"},
        )
    ],
)
