"""The functions that a site file calls. This module stays small; ReFrame reads the result.

A check gets facts of a site from ``extras``: the layouts of a partition, and how an environment is built and
launched. It sees nothing else of a machine.
"""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from reframe.core.backends import register_launcher
from reframe.core.exceptions import ConfigError
from reframe.core.launchers import JobLauncher

from postprocess.base.sanitize import quote_word
from site_configs.annotations import find_fault
from site_configs.families import SIMULATED, find_family
from site_configs.mpi.layers import build_launch_variables
from site_configs.mpi.probe import UNSET, is_own_launcher
from site_configs.programs import installed
from site_configs.schedulers.registry import find_scheduler
from site_configs.schema import fields
from site_configs.schema.facts import UNLIMITED
from site_configs.schema.manual_settings import collect_manual_settings, read_user_shell
from site_configs.schema.reframe_request import current_request
from site_configs.schema.variables import SESSION, work_directory
from site_configs.topology.gpus import RESOURCE
from site_configs.topology.layouts import Topology, list_boundary_counts
from site_configs.topology.layouts import layouts as layouts_of


@register_launcher("mpiexec-of-environment")
class EnvironmentLauncher(JobLauncher):
    """The launcher of an environment's MPI, by absolute path."""

    def __init__(self, words: Sequence[str] = ("mpiexec",)) -> None:
        super().__init__()
        self.words = list(words)

    def command(self, job: Any) -> list[str]:
        return [*map(quote_word, self.words), "-n", str(job.num_tasks)]


class SiteError(ConfigError, ValueError):
    """A site file cannot be used. Plain ReFrame prints the text on one line, and ends."""


def refuse(title: str, wrong: Iterable[str]) -> None:
    """Raise a SiteError with the first fault, if there is one."""
    for text in wrong:
        raise SiteError(f"{title}: {text}")


class NotInstalledError(SiteError):
    """The machine lacks what a site file needs. On another machine the file may be right as it is."""


def takes(
    kind: type[msgspec.Struct],
) -> Callable[[Callable[[Any], dict[str, Any]]], Callable[..., dict[str, Any]]]:
    """Make a function of one piece of a site file accept the piece's fields as arguments.

    Field ``more`` holds all other arguments. A call raises SiteError if a value is wrong.
    """
    parameters = [
        parameter.replace(kind=parameter.VAR_KEYWORD, default=parameter.empty, annotation=Any)
        if parameter.name == "more"
        else parameter
        for parameter in inspect.signature(kind).parameters.values()
    ]
    signature = inspect.Signature(
        [parameters[0].replace(kind=parameters[0].POSITIONAL_OR_KEYWORD), *parameters[1:]]
    )

    def decorate(function: Callable[[Any], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        @functools.wraps(function)
        def declare(*args: Any, **values: Any) -> dict[str, Any]:
            try:
                given = signature.bind(*args, **values).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
            fault = find_fault(given, kind)
            refuse(f"{function.__name__} {given['name']!r}", [fault] if fault else [])
            return function(msgspec.convert(given, kind))

        declare.__signature__ = signature  # type: ignore[attr-defined]  # for people and ``site check``
        return declare

    return decorate


@takes(fields.Environment)
def environment(declared: fields.Environment) -> dict[str, Any]:
    """Declare one MPI implementation; the arguments are the fields of :class:`Environment`."""
    name, family, mpicc, launcher = declared.name, declared.family, declared.mpicc, declared.launcher
    request = current_request()
    set_env = request.set_env
    refuse(f"environment {name!r}", fields.find_environment_faults(declared, request.only_looking))
    variables = dict(declared.env_vars or {})
    if request.oversubscribe:
        variables |= find_family(family).oversubscribed
    shell = {} if family == SIMULATED else read_user_shell(os.environ)
    extras = {
        "library": declared.library,
        "family": family,
        "mpicc": mpicc,
        "prefix": "" if declared.container else declared.prefix or prefix_of(mpicc),
        "launcher": launcher if isinstance(launcher, str) else list(launcher),
        "spack_environment": str(work_directory() / "spack" / "environments" / name),
        "accept": dict(declared.accept or {}),
        "transports": dict(declared.transports or {}),
        "gpu": declared.gpu,
        # For launches only: a PATH for programs must not be used for the build.
        "launch_variables": build_launch_variables(declared.standard_abi)
        | {key: quote_word(value) for key, value in set_env.get(name, {}).items()},
        "by_hand": collect_manual_settings(set_env, request.oversubscribe, name, shell),
    } | installed.build_extras(declared.programs or {}, declared.lacking or {}, declared.unfit)
    if declared.container:
        extras["container"] = list(declared.container)
    if declared.standard_abi:
        extras[installed.STANDARD_ABI] = declared.standard_abi
    return {
        "name": name,
        "features": ["mpi", family],
        "modules": [] if request.only_looking else list(declared.modules),
        "env_vars": [[key, value] for key, value in variables.items()],
        "extras": extras,
        "target_systems": ["*"],
    }


def prefix_of(mpicc: str) -> str:
    """Return the prefix of an MPI if its compiler wrapper is given by absolute path; else empty."""
    path = Path(mpicc)
    return str(path.parent.parent) if path.is_absolute() and path.parent.name == "bin" else ""


UNTIMED_JOBS = 4  #: beside each other at most, of starts that are listened to


@takes(fields.Partition)
def partition(declared: fields.Partition) -> dict[str, Any]:
    """Declare one kind of nodes; the arguments are the fields of :class:`Partition`."""
    topology = declared.topology
    layouts = layouts_of(topology) if declared.layouts is None else declared.layouts
    refuse(f"partition {declared.name!r}", fields.find_partition_faults(declared, layouts))
    extras = {
        "layouts": [list(layout) for layout in layouts],
        "boundaries": list_boundary_counts(topology),
        "most_processes": UNLIMITED if current_request().oversubscribe else topology.cores,
        "cores_per_node": topology.cores_per_node,
        "nodes": topology.nodes,
        "nodes_per_switch": topology.nodes_per_switch,
        "threads_per_core": topology.threads_per_core,
        "defaults": msgspec.to_builtins(declared.defaults or {}),
        "exact": declared.exact,
        "shared_memory_bytes": declared.shared_memory_bytes,
        "gpus": msgspec.to_builtins(declared.gpus) if declared.gpus else {},
        "accept": dict(declared.accept or {}),
        "reference_days": declared.reference_days,
        "session_gap_minutes": declared.session_gap_minutes,
    }
    return {
        "name": declared.name,
        "scheduler": declared.scheduler,
        "launcher": "srun" if find_scheduler(declared.scheduler).batch else "local",
        "environs": list(declared.environments),
        "access": list(declared.access),
        "max_jobs": max(declared.max_jobs, UNTIMED_JOBS if current_request().verbose else 1),
        "processor": processor(topology),
        "extras": extras | dict(declared.extras or {}),
        **declared.more,
        "resources": list_resources(declared),
    }


def list_resources(declared: fields.Partition) -> list[dict[str, Any]]:
    """List what jobs can request: the resources of the site, and GPUs."""
    declared_resources = list(declared.more.get("resources", ()))
    if not declared.gpus or RESOURCE in {resource["name"] for resource in declared_resources}:
        return declared_resources
    return [*declared_resources, {"name": RESOURCE, "options": list(declared.gpus.request)}]


def processor(topology: Topology) -> dict[str, int]:
    """Return the node in ReFrame's terms, so that ReFrame does not probe the node itself."""
    threads = topology.threads_per_core
    return {
        "num_cpus": topology.cores_per_node * threads,
        "num_cpus_per_core": threads,
        "num_cpus_per_socket": topology.cores_per_node // topology.sockets_per_node * threads,
        "num_sockets": topology.sockets_per_node,
    }


@takes(fields.Site)
def site(declared: fields.Site) -> dict[str, Any]:
    """Build the whole ReFrame configuration of one system; the arguments are the fields of :class:`Site`."""
    refuse(f"site {declared.name!r}", fields.find_pattern_faults(declared.hostnames))
    accept = declared.accept or {}
    extras_of = {entry["name"]: entry.get("extras", {}) for entry in declared.environments}
    launchers = {name: extras.get("launcher", "") for name, extras in extras_of.items()}
    partitions = [_add_launchers(_add_accepted(entry, accept), launchers) for entry in declared.partitions]
    system = {
        "name": declared.name,
        "descr": declared.description,
        "hostnames": [".*"] if SESSION in os.environ else list(declared.hostnames),
        "modules_system": "nomod" if current_request().only_looking else declared.modules_system,
        "partitions": partitions,
    }
    general = {"target_systems": ["*"], "unload_modules": []}
    return {
        "systems": [system],
        "environments": [dict(entry) for entry in declared.environments],
        "general": [general],
        "logging": [_configure_logging()],
    }


def _add_accepted(partition: Mapping[str, Any], accept: Mapping[str, str]) -> dict[str, Any]:
    """Return a partition that accepts what its site accepts, besides its own exceptions."""
    extras = partition["extras"]
    accepted = {"accept": dict(accept) | extras["accept"]}
    return {**partition, "extras": extras | accepted}


def _add_launchers(
    partition: Mapping[str, Any], launchers: Mapping[str, str | Sequence[str]]
) -> dict[str, Any]:
    """Return a partition whose launches on this node see no variables of a job that Plumbline runs in.

    A batch system's launcher needs the job, and so do several nodes.

    :param launchers: launchers by environment of the site
    """
    from_mpi = [is_own_launcher(launchers[name]) for name in partition["environs"] if name in launchers]
    several = partition["extras"]["nodes"] > 1
    if several or find_scheduler(partition["scheduler"]).batch or not all(from_mpi):
        return dict(partition)
    return {**partition, "prepare_cmds": [UNSET, *partition.get("prepare_cmds", ())]}


def _configure_logging() -> dict[str, Any]:
    """Configure ReFrame's log, which goes to the session.

    Performance logs have one row per variable: with one row per test, columns would differ between tests. A
    session has none, because its records hold more and ReFrame takes 15 seconds to write a thousand rows.
    """
    session = os.environ.get(SESSION)
    directory = Path(session or work_directory())
    performance: dict[str, Any] = {"handlers_perflog": []} if session else {"perflog_multiline": True}
    return {
        **performance,
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
