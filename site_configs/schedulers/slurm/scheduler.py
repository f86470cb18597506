"""Slurm: what the rest of Plumbline asks of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from site_configs.mpi.family import Mpi
from site_configs.schedulers.base import Ask, OwnJob, Pairing, Scheduler, UsableNodes, describe_nodes, program
from site_configs.schedulers.slurm import jobs as slurm_jobs
from site_configs.schedulers.slurm import query as slurm_query

SCHEDULER = "slurm-blocks"
SRUN = "srun-blocks"  #: with the kind of MPI that the site has chosen for all (MpiDefault)
#: MPICH and what comes of it; Intel MPI where I_MPI_PMI_LIBRARY names libpmi2.so
SRUN_PMI2 = "srun-pmi2"
SRUN_PMIX = "srun-pmix"  #: Open MPI; its own mpirun was found to be safer
SRUN_CRAY = "srun-cray_shasta"  #: Cray MPICH
WITH_ACCOUNTING = "slurm"  #: ReFrame's own backend, which asks sacct
PMI2_FAMILIES = ("mpich", "mvapich")


CLUSTER_CHOICES = ("SBATCH_CLUSTERS", slurm_jobs.CLUSTERS)  #: the one that sbatch prefers first
#: Variables of sbatch that say who pays and how it speaks, and not on what a job runs.
HONOURED = ("SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_WCKEY", "SBATCH_DEBUG", "SBATCH_IGNORE_PBS")


def find_chosen_cluster(environment: Mapping[str, str]) -> tuple[str, str]:
    """Find the cluster that a shell chooses: the variable and its value; empty texts if it chooses none."""
    found = ((name, environment[name]) for name in CLUSTER_CHOICES if environment.get(name))
    return next(found, ("", ""))


def find_named_cluster(options: Iterable[str]) -> str:
    """Find the cluster that options of a job name, the last one first; empty if they name none."""
    found = [re.match(r"(?:--clusters(?:=|\s+)|-M\s*)(\S+)", option) for option in options]
    return ([""] + [match[1] for match in found if match])[-1]


@dataclass(frozen=True)
class Slurm(Scheduler):
    """Slurm, with or without accounting."""

    title: str = "Slurm"
    backend: str = SCHEDULER
    backends: tuple[str, ...] = (SCHEDULER, WITH_ACCOUNTING, "squeue")
    site_names: tuple[tuple[str, str], ...] = (
        (SCHEDULER, "slurm.SCHEDULER"),
        (SRUN, "slurm.SRUN"),
        (SRUN_CRAY, "slurm.SRUN_CRAY"),
        (SRUN_PMI2, "slurm.SRUN_PMI2"),
    )
    command: str = "sinfo"
    query_commands: str = "sinfo, scontrol"
    switch_command: str = "scontrol show topology"
    exclusive: tuple[str, ...] = ("--partition={}", "--exclusive")
    queue_option: str = r"--partition(?:=|\s+)|-p\s*"
    exclude_option: str = "--exclude={}"
    include_option: str = "--nodelist={}"
    reports_physical_cores: bool = True
    user_choices: tuple[str, ...] = slurm_jobs.CHOICES
    limits_of_jobs: str = (
        "jobs have the limits (ulimit) of Slurm on the nodes, not those of the shell that submits them "
        "(--propagate=NONE; write another --propagate in access to change that)"
    )
    #: of slurmstepd: ``*** JOB 7 ON n1 CANCELLED AT ... DUE TO TIME LIMIT ***``
    limit_words: str = "DUE TO TIME LIMIT"
    mark: str = slurm_jobs.MARK
    list_jobs_command: str = "squeue --me"

    def read(self, ask: Ask) -> Slurm:
        """Return this scheduler with the facts that this machine's commands tell."""
        told = slurm_query.ask_slurm(ask)
        return replace(self, **told | {"notes": (*self.notes, *told["notes"])})

    def choose_machine(self, environment: Mapping[str, str]) -> Slurm:
        """Return this scheduler with the cluster that the user's shell chooses.

        :raises ValueError: if it chooses several.
        """
        name, cluster = find_chosen_cluster(environment)
        if not cluster:
            return self
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", cluster) or cluster == "all":
            raise ValueError(f"{name}={cluster}: a site file is of one cluster; set one")
        chosen = f"{name}={cluster} of the shell: this file is of that cluster, by --clusters in access"
        return replace(
            self,
            exclusive=(f"--clusters={cluster}", *self.exclusive),
            asking=((slurm_jobs.CLUSTERS, cluster),),
            notes=(chosen,),
        )

    def find_choice(self, access: Sequence[str]) -> dict[str, str]:
        """Find the machine that options of a job name, as the variables with which a shell would choose it."""
        cluster = find_named_cluster(access)
        return {slurm_jobs.CLUSTERS: cluster} if cluster else {}

    def find_shell_faults(self, environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
        """Find the variables of a shell that would send jobs elsewhere than the options of a site file say."""
        name, cluster = find_chosen_cluster(environment)
        if cluster and cluster != find_named_cluster(access):
            fix = f"write --clusters={cluster} in access if it is meant, or unset {name}"
            yield f"{name}={cluster} chooses another cluster than the site file; {fix}"
        for name, value in environment.items():
            if name.startswith("SBATCH_") and name not in (*HONOURED, *CLUSTER_CHOICES):
                fix = f"unset {name}, and write its option in access if it is meant"
                yield f"{name}={value} would override what the site file asks sbatch for; {fix}"

    def choose_launcher(self, mpi: Mpi) -> Pairing:
        """Choose the launcher with which an MPI's processes find each other inside a job."""
        if mpi.family == "openmpi":
            why = "its own mpirun inside the job; srun --mpi=pmix is known to crash at some process counts"
            return Pairing((program(mpi, "mpirun"),), why)
        if mpi.family == "cray-mpich":
            why = "Slurm is what starts processes on a Cray with Slurm"
            return Pairing(SRUN_CRAY if "cray_shasta" in self.mpi_types else SRUN, why)
        if mpi.family in PMI2_FAMILIES and "pmi2" in self.mpi_types:
            why = "srun with Slurm's PMI-2; without it srun starts many worlds of one process"
            return Pairing(SRUN_PMI2, why)
        why = "its own Hydra, which asks Slurm for the job's nodes"
        return Pairing((program(mpi, "mpiexec"),), why)

    def find_backend_fault(self, backend: str) -> str:
        """Find what is wrong with a backend for this scheduler, and what to write; empty if it will do."""
        if backend == WITH_ACCOUNTING and not self.accounting:
            fix = f"write {SCHEDULER!r} (slurm.SCHEDULER of site_configs), which does without"
            return f"{backend!r} asks sacct, and accounting is off on this machine; {fix}"
        return super().find_backend_fault(backend)

    def count_usable_nodes(self, access: Sequence[str]) -> UsableNodes | None:
        """Count the nodes that jobs with these options can use today or soon; None if that is not known."""
        name = self.find_queue_name(access)
        try:
            nodes = slurm_jobs.list_nodes(("--partition", name) if name else (), find_named_cluster(access))
        except slurm_jobs.SlurmError:
            return None
        sick = {state.name: state.shown for state in nodes if state.unhealthy}
        count = len({state.name for state in nodes}) - len(sick)
        told = describe_nodes(sorted(sick.values()))
        return UsableNodes(count, told, len(sick)) if nodes else None

    def list_own_jobs(self, marks: Iterable[str] = ()) -> Sequence[OwnJob]:
        """Return every job of this user in the queue, and those that left it a short while ago.

        :param marks: what sessions wrote down of the clusters that they sent jobs to
        """
        clusters = dict.fromkeys(name for mark in marks for name in mark.split())
        return slurm_jobs.list_own_jobs(["", *clusters])

    def cancel(self, numbers: Iterable[str]) -> None:
        """Cancel jobs. One that is over already is no error."""
        slurm_jobs.cancel(numbers)


SLURM = Slurm()
