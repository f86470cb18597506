"""The variables of an interactive job of a batch system, on nodes that are not this one."""

IN_A_JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOBID": "7",
    "SLURM_NODELIST": "node[1-2]",
    "SLURM_JOB_NODELIST": "node[1-2]",
    "SLURM_NNODES": "2",
    "SLURM_TASKS_PER_NODE": "2(x2)",
    "PBS_JOBID": "7.server",
    "PBS_ENVIRONMENT": "PBS_INTERACTIVE",
    "PBS_NODEFILE": "/nonexistent",
    "LSB_MCPU_HOSTS": "node1 2",
    "PE_HOSTFILE": "/nonexistent",
    "HYDRA_BOOTSTRAP": "slurm",
    "I_MPI_HYDRA_BOOTSTRAP": "slurm",
}
