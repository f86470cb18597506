"""The local machine: one node, no scheduler, and the MPIs that ``./plumbline setup`` found or those on PATH."""

import os

import msgspec

from postprocess.base.sanitize import quote_word
from site_configs.common import NotInstalledError, Topology, environment, partition, site, work_directory
from site_configs.mpi.family import spare_network
from site_configs.mpi.inventory import find_inventory
from site_configs.schema.manual_settings import read_user_shell
from site_configs.topology.gpus import find_gpus_here
from site_configs.topology.machine import read_usable_threads

try:
    inventory = find_inventory(work_directory())
except LookupError as error:
    raise NotInstalledError(str(error)) from None
shell = read_user_shell(os.environ)
gpus = find_gpus_here()
imb = {mpi.name: inventory.imb_of(mpi) for mpi in inventory.mpis}

site_configuration = site(
    "local",
    description=inventory.machine.cpu_model,
    partitions=[
        partition(
            "cpu",
            topology=Topology(
                inventory.machine.cores, inventory.machine.sockets, threads_per_core=read_usable_threads()
            ),
            environments=[mpi.name for mpi in inventory.mpis],
            gpus=gpus and msgspec.to_builtins(gpus),
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
            env_vars={
                key: quote_word(value) for key, value in (mpi.env | spare_network(mpi.family, shell)).items()
            },
            programs={"imb": imb[mpi.name].installed} if imb[mpi.name].folder else {},
            lacking={"imb": imb[mpi.name].problem} if imb[mpi.name].problem else {},
            unfit=["imb"] if imb[mpi.name].problem and not imb[mpi.name].foreseen else [],
            standard_abi=mpi.standard_abi,
        )
        for mpi in inventory.mpis
    ],
)
