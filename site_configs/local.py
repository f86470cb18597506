"""The machine at hand: one node, no scheduler, the MPIs that ``./plumbline setup`` found or installed."""

from __future__ import annotations

from postprocess.base.shell_words import quote_word
from site_configs.common import Topology, environment, partition, site, work_directory
from site_configs.mpi.inventory import load_inventory

inventory = load_inventory(work_directory())
imb = {mpi.name: inventory.imb_of(mpi) for mpi in inventory.mpis}

site_configuration = site(
    "local",
    description=inventory.machine.cpu_model,
    partitions=[
        partition(
            "cpu",
            topology=Topology(inventory.machine.cores, inventory.machine.sockets),
            environments=[mpi.name for mpi in inventory.mpis],
        )
    ],
    environments=[
        environment(
            mpi.name,
            family=mpi.family,
            library=mpi.library,
            launcher=mpi.launcher,
            mpicc=mpi.mpicc,
            modules=mpi.modules,
            env_vars={key: quote_word(value) for key, value in mpi.env.items()},
            programs={"imb": imb[mpi.name].installed} if imb[mpi.name].folder else {},
            lacking={"imb": imb[mpi.name].problem} if imb[mpi.name].problem else {},
        )
        for mpi in inventory.mpis
    ],
)
