"""The functions that a site file calls. It stays small; ReFrame reads the result.

What a check may ask of a site, it asks through ``extras``: the layouts of a partition, and how an
environment is built and launched. Nothing else of a machine is visible to a check.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reframe.core.backends import register_launcher
from reframe.core.exceptions import ConfigError
from reframe.core.launchers import JobLauncher

from postprocess.base.sanitize import quote_word
from site_configs.mpi.allocation import UNSET, is_own_launcher
from site_configs.mpi.family import OVERSUBSCRIBED
from site_configs.programs import installed
from site_configs.programs.installed import Installed
from site_configs.schedulers.registry import find_scheduler
from site_configs.schema import fields, waivers
from site_configs.schema.fields import REFERENCE_DAYS
from site_configs.schema.manual_settings import collect_manual_settings, read_user_shell
from site_configs.schema.partition_facts import UNLIMITED
from site_configs.schema.reframe_request import current_request
from site_configs.schema.transports import find_transport_faults
from site_configs.schema.variables import SESSION, work_directory
from site_configs.topology.layouts import Layout, Topology, list_boundary_counts
from site_configs.topology.layouts import layouts as layouts_of

SIMULATED = "simgrid"  #: family of what passes for an MPI in simulated time


@register_launcher("mpiexec-of-environment")
class EnvironmentLauncher(JobLauncher):
    """The launcher that belongs to an environment's MPI, by absolute path."""

    def __init__(self, words: Sequence[str] = ("mpiexec",)) -> None:
        super().__init__()
        self.words = list(words)

    def command(self, job: Any) -> list[str]:
        """Return the launch line up to the program."""
        return [*map(quote_word, self.words), "-n", str(job.num_tasks)]


def environment(
    name: str,
    *,
    family: str,
    library: str,
    launcher: str | Sequence[str],
    mpicc: str = "mpicc",
    modules: Sequence[str] = (),
    env_vars: Mapping[str, str] | None = None,
    prefix: str = "",
    programs: Mapping[str, str | Installed] | None = None,
    lacking: Mapping[str, str] | None = None,
    accept: Mapping[str, str] | None = None,
    transports: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Declare one MPI implementation.

    :param family: ``mpich``, ``openmpi``, ``intel-mpi``, ...
    :param library: text that MPI_Get_library_version must contain in every program this environment runs.
    :param launcher: name of one of ReFrame's launchers (``srun``), or the words that start a launch line
        (``["/opt/mpich/bin/mpiexec"]``), to which ``-n N`` and the program are added.
    :param mpicc: compiler wrapper, found after the modules are loaded or given by absolute path.
    :param env_vars: needed to compile and to run; the values as a shell reads them.
    :param prefix: where this MPI is installed, so that Spack builds the programs on it; it follows from an
        ``mpicc`` with a path. Without it ``mpicost`` is built by CMake, and OSU and IMB are skipped.
    :param programs: benchmarks that are installed for this MPI: the folder of ``IMB-MPI1`` for ``imb``, and
        for ``osu`` the one that holds ``pt2pt`` and ``collective``. What is not given is built by Spack.
    :param lacking: why a program that is not given cannot be had without Spack.
    :param accept: differences from the references in spite of which values are compared, each with its
        reason (``{"compiler": "gcc 13.1 was measured against 12.2 in May"}``); see ``accepted.py``.
    :param transports: by which pairs of ranks must talk, in a node and between nodes
        (``{"node": "ucx:posix|sysv|cma", "network": "ucx:rc|dc x2"}``, the latter on two rails at least).
    """
    title = f"environment {name!r}"
    accept = {} if accept is None else accept
    transports = {} if transports is None else transports
    variables = {} if env_vars is None else env_vars
    programs = {} if programs is None else programs
    refuse(title, fields.check_name(name))
    refuse(
        title,
        fields.check_environment(
            family=family,
            library=library,
            launcher=launcher,
            mpicc=mpicc,
            modules=modules,
            env_vars=variables,
            prefix=prefix,
            programs=programs,
        ),
    )
    refuse(title, waivers.find_waiver_faults(accept))
    refuse(title, find_transport_faults(transports))
    if not is_only_looking():  # what is not on this machine may not know its version
        refuse(title, fields.check_library_text(library))
    variables = dict(variables)
    if is_oversubscribing():
        variables |= OVERSUBSCRIBED.get(family, {})
    set_env = current_request().set_env
    shell = {} if family == SIMULATED else read_user_shell(os.environ)
    extras = {
        "library": library,
        "family": family,
        "mpicc": mpicc,
        "prefix": prefix or prefix_of(mpicc),
        "launcher": launcher if isinstance(launcher, str) else list(launcher),
        "spack_environment": str(work_directory() / "spack" / "environments" / name),
        "accept": dict(accept),
        "transports": dict(transports),
        # Of launches alone: a PATH for programs is none for the build.
        "launch_variables": {key: quote_word(value) for key, value in set_env.get(name, {}).items()},
        "by_hand": collect_manual_settings(set_env, is_oversubscribing(), name, shell),
    } | installed.build_extras(programs, lacking or {})
    return {
        "name": name,
        "features": ["mpi", family],
        "modules": [] if is_only_looking() else list(modules),
        "env_vars": [[key, value] for key, value in variables.items()],
        "extras": extras,
        "target_systems": ["*"],
    }


def prefix_of(mpicc: str) -> str:
    """Return where the MPI of a compiler wrapper is installed, if the wrapper is named with its path."""
    path = Path(mpicc)
    return str(path.parent.parent) if path.is_absolute() and path.parent.name == "bin" else ""


class SiteError(ConfigError, ValueError):
    """A site file cannot be used. A plain ReFrame prints the text, in one line, and ends."""


def refuse(title: str, wrong: Iterable[str]) -> None:
    """Raise a SiteError of the first thing that is wrong, if something is."""
    for text in wrong:
        raise SiteError(f"{title}: {text}")


class NotInstalledError(SiteError):
    """What a site file needs is not on this machine. On another one, the file may be right as it is."""


def is_only_looking() -> bool:
    """Return whether nothing of the site is going to run."""
    return current_request().only_looking


def is_oversubscribing() -> bool:
    """Return whether more processes than cores were asked for."""
    return current_request().oversubscribe


def partition(
    name: str,
    *,
    topology: Topology,
    environments: Sequence[str],
    scheduler: str = "local",
    access: Sequence[str] = (),
    max_jobs: int = 1,
    layouts: Sequence[Layout] | None = None,
    defaults: Mapping[str, Any] | None = None,
    exact: bool = False,
    shared_memory_bytes: int = 0,
    accept: Mapping[str, str] | None = None,
    reference_days: int = REFERENCE_DAYS,
    session_gap_minutes: int = fields.SESSION_GAP_MINUTES,
    **more: Any,
) -> dict[str, Any]:
    """Declare one kind of nodes.

    :param topology: from which the layouts follow.
    :param access: options that every job needs (``["--partition=cpu", "--exclusive"]``).
    :param max_jobs: jobs at once; more than one only where jobs cannot disturb each other.
    :param layouts: what is measured, where that does not follow from the topology.
    :param defaults: values of variables of the checks on this partition (``{"trials": 21}``).
    :param exact: whether time is simulated and repeats to the last digit.
    :param shared_memory_bytes: memory that all processes of a launch share, where simulated nodes
        have none of their own; cases that need more are skipped. 0: nodes have their own.
    :param accept: differences from the references in spite of which values are compared, as of an environment.
    :param reference_days: after which ``references age`` calls a reference of this partition old.
    :param session_gap_minutes: between the ends of two launches, beyond which they are of two sessions.
    :param more: any further key of a ReFrame partition.
    """
    title, values = f"partition {name!r}", {} if defaults is None else defaults
    accept = {} if accept is None else accept
    refuse(title, fields.check_name(name))
    refuse(
        title,
        fields.check_partition(
            topology=topology,
            environments=environments,
            scheduler=scheduler,
            access=access,
            max_jobs=max_jobs,
            exact=exact,
            shared_memory_bytes=shared_memory_bytes,
            more=more,
        ),
    )
    refuse(title, waivers.find_waiver_faults(accept))
    refuse(title, fields.check_time("reference_days", reference_days, "days"))
    refuse(title, fields.check_time("session_gap_minutes", session_gap_minutes, "minutes"))
    if layouts is None:
        layouts = layouts_of(topology)
    else:
        refuse(title, fields.check_layouts(layouts))
    refuse(title, fields.check_defaults(values, layouts))
    extras = {
        "layouts": [list(layout) for layout in layouts],
        "boundaries": list_boundary_counts(topology),
        "most_processes": UNLIMITED if is_oversubscribing() else topology.cores,
        "cores_per_node": topology.cores_per_node,
        "nodes": topology.nodes,
        "defaults": dict(values),
        "exact": exact,
        "shared_memory_bytes": shared_memory_bytes,
        "accept": dict(accept),
        "reference_days": reference_days,
        "session_gap_minutes": session_gap_minutes,
    }
    return {
        "name": name,
        "scheduler": scheduler,
        "launcher": "srun" if find_scheduler(scheduler).batch else "local",
        "environs": list(environments),
        "access": list(access),
        "max_jobs": max_jobs,
        "processor": processor(topology),
        "extras": extras | more.pop("extras", {}),
        **more,
    }


def processor(topology: Topology) -> dict[str, int]:
    """Return the node in ReFrame's terms; with this given, ReFrame does not probe the node itself."""
    return {
        "num_cpus": topology.cores_per_node,
        "num_cpus_per_core": 1,
        "num_cpus_per_socket": topology.cores_per_node // topology.sockets_per_node,
        "num_sockets": topology.sockets_per_node,
    }


def site(
    name: str,
    *,
    description: str,
    partitions: Sequence[Mapping[str, Any]],
    environments: Sequence[Mapping[str, Any]],
    hostnames: Sequence[str] = (".*",),
    modules_system: str = "nomod",
    accept: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Build the whole ReFrame configuration of one system.

    :param hostnames: patterns of the hosts it is for, where ReFrame is started by hand.
    :param accept: differences from the references in spite of which values are compared, everywhere; what a
        partition or an environment says of the same difference counts before it.
    """
    title = f"site {name!r}"
    refuse(title, fields.check_name(name))
    refuse(
        title, fields.check_site(description=description, hostnames=hostnames, modules_system=modules_system)
    )
    accept = {} if accept is None else accept
    refuse(title, waivers.find_waiver_faults(accept))
    told = {entry["name"]: entry.get("extras", {}) for entry in environments}
    launchers = {name: extras.get("launcher", "") for name, extras in told.items()}
    system = {
        "name": name,
        "descr": description,
        "hostnames": [".*"] if SESSION in os.environ else list(hostnames),
        "modules_system": "nomod" if is_only_looking() else modules_system,
        "partitions": [_add_launchers(_add_accepted(entry, accept), launchers) for entry in partitions],
    }
    general = {"target_systems": ["*"], "unload_modules": []}
    return {
        "systems": [system],
        "environments": [dict(entry) for entry in environments],
        "general": [general],
        "logging": [_configure_logging()],
    }


def _add_accepted(partition: Mapping[str, Any], accept: Mapping[str, str]) -> dict[str, Any]:
    """Return a partition that accepts what its site does, beside what it accepts itself."""
    extras = partition["extras"]
    own = {"accept": dict(accept) | extras["accept"]}
    return {**partition, "extras": extras | own}


def _add_launchers(
    partition: Mapping[str, Any], launchers: Mapping[str, str | Sequence[str]]
) -> dict[str, Any]:
    """Return a partition whose launches on this one node know nothing of a job that Plumbline runs in.

    Where a batch system's launcher starts the processes, or there are several nodes, it needs the job.

    :param launchers: of each environment of the site
    """
    own = [is_own_launcher(launchers[name]) for name in partition["environs"] if name in launchers]
    several = partition["extras"]["nodes"] > 1
    if several or find_scheduler(partition["scheduler"]).batch or not all(own):
        return dict(partition)
    return {**partition, "prepare_cmds": [UNSET, *partition.get("prepare_cmds", ())]}


def _configure_logging() -> dict[str, Any]:
    """Configure ReFrame's log, which goes to the session.

    Performance logs have one row per variable: with one row per test, columns would differ between tests.
    """
    directory = Path(os.environ.get(SESSION) or work_directory())
    return {
        "perflog_multiline": True,
        "handlers": [
            {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
            {
                "type": "file",
                "name": str(directory / "reframe.log"),
                "level": "debug2",
                "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                "append": True,
            },
        ],
        "target_systems": ["*"],
    }
