"""The site file of a cluster of the tests: what ``site_configs/slurm_cluster.py`` is copied for, filled in."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from site_configs.mpi.family import Mpi

from .cluster import Cluster

#: Of several processes on one core: Open MPI's processes let each other run, and none is bound.
SHARED_CORES = {
    "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_hwloc_default_binding_policy": "none"}
}
#: How each family starts: a name in ``site_configs.slurm``, or the program of this name.
LAUNCHERS = {"mpich": "slurm.SRUN_PMI2", "openmpi": "mpirun"}
ENVIRONMENT = """
    environment(
        {name!r},
        family={family!r},
        library={library!r},
        mpicc={mpicc!r},
        launcher={launcher},
        env_vars={variables!r},
    ),"""
SITE = """\
from site_configs import slurm
from site_configs.common import Topology, environment, partition, site

environments = [{environments}
]

site_configuration = site(
    "testcluster",
    description="Slurm on one machine",
    environments=environments,
    partitions=[
        partition(
            "work",
            scheduler=slurm.SCHEDULER,
            access=["--partition=work", "--exclusive"],
            topology=Topology(cores_per_node={cores}, nodes={nodes}),
            environments=[entry["name"] for entry in environments],
            max_jobs=1,
            defaults={defaults!r},
        ),
    ],
)
"""


def write_site(
    path: Path,
    cluster: Cluster,
    mpis: Sequence[Mpi],
    *,
    nodes: int = 0,
    launchers: Mapping[str, str] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> Path:
    """Write the site file of a cluster, and return its path.

    :param nodes: as the site has them; those of the cluster if 0.
    :param launchers: Python text of the launcher of a family, where it is not the right one.
    """
    entries = [
        ENVIRONMENT.format(
            name=mpi.name,
            family=mpi.family,
            library=mpi.library,
            mpicc=mpi.mpicc,
            launcher=(launchers or {}).get(mpi.family) or launcher(mpi),
            variables=mpi.env | SHARED_CORES.get(mpi.family, {}),
        )
        for mpi in mpis
    ]
    text = SITE.format(
        environments="".join(entries),
        cores=cluster.cores,
        nodes=nodes or cluster.nodes,
        defaults=dict(defaults or {}),
    )
    path.write_text(text)
    return path


def launcher(mpi: Mpi) -> str:
    """Python text of the launcher of an MPI."""
    known = LAUNCHERS[mpi.family]
    return known if known.startswith("slurm.") else repr([f"{mpi.prefix}/bin/{known}"])
