"""A configuration of the kind that suites of scientific software have: partitions tell sizes by features."""

import os

MPICH = os.environ["TEST_MPICH"]

site_configuration = {
    "systems": [
        {
            "name": "features",
            "descr": "a cluster of which one node can be had",
            "hostnames": [".*"],
            "modules_system": "nomod",
            "partitions": [
                {
                    "name": "x86_64",
                    "scheduler": "local",
                    "launcher": "mpirun",
                    "environs": ["default"],
                    "features": ["cpu", "_1_node", "_1_2_node", "_1_core", "_2_cores"],
                    "processor": {"num_cpus": 2, "num_cpus_per_core": 1, "num_sockets": 1},
                    "extras": {"mem_per_node": 4000},
                }
            ],
        }
    ],
    # Nothing says that it has an MPI: mpicc is on its path.
    "environments": [{"name": "default", "cc": "cc", "env_vars": [["PATH", f"{MPICH}/bin:$PATH"]]}],
}
