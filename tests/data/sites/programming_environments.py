"""A configuration of the kind that computing centres have: environments of compiler and MPI, and modes."""

import os

MPICH, OPENMPI, INTEL = (os.environ[f"TEST_{name}"] for name in ("MPICH", "OPENMPI", "INTEL_MPI"))
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
LOADED = [["LD_PRELOAD", path] for path in filter(None, [os.environ.get("TEST_LOADED")])]
#: Words that start every launch, in place of the environment's own mpiexec.
STARTED = {"launcher": os.environ["TEST_LAUNCHER"].split()} if "TEST_LAUNCHER" in os.environ else {}

site_configuration = {
    "systems": [
        {
            "name": "centre",
            "descr": "login node of a centre",
            "hostnames": [".*"],
            "modules_system": "nomod",
            "partitions": [
                {
                    "name": "login",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["PrgEnv-cray", "PrgEnv-intel", "PrgEnv-gnu", "builtin"],
                    "features": ["remote"],
                    "max_jobs": 1,
                    "time_limit": "10m",
                }
            ],
        }
    ],
    "environments": [
        {"name": "builtin", "cc": "cc", "cxx": "", "ftn": ""},
        {
            "name": "PrgEnv-gnu",
            "cc": "mpicc",
            "features": ["serial", "openmp", "mpi"],
            "extras": STARTED,
            "env_vars": [["PATH", f"{OPENMPI}/bin:$PATH"], *([name, "1"] for name in AS_ROOT), *LOADED],
            "target_systems": ["centre"],
        },
        {
            "name": "PrgEnv-cray",
            "cc": "mpicc",
            "features": ["mpi"],
            "extras": STARTED,
            "env_vars": [["PATH", f"{MPICH}/bin:$PATH"]],
            "target_systems": ["centre"],
        },
        {
            "name": "PrgEnv-intel",
            "cc": "mpicc",
            "features": ["mpi"],
            "extras": {**STARTED, "program_origin": {"imb": "site"}, "programs": {"imb": f"{INTEL}/bin"}},
            "env_vars": [
                ["PATH", f"{INTEL}/bin:$PATH"],
                ["LD_LIBRARY_PATH", f"{INTEL}/lib"],
                ["I_MPI_ROOT", INTEL],
            ],
            "target_systems": ["centre"],
        },
    ],
    "modes": [{"name": "production", "options": ["--tag=nightly"]}],
}
