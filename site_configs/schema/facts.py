"""What checks know of a partition and of an environment: ReFrame's ``extras``, or ReFrame's own keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from site_configs.programs.installed import STANDARD_ABI
from site_configs.schema.fields import REFERENCE_DAYS, SESSION_GAP_MINUTES
from site_configs.schema.manual_settings import collect_manual_settings, read_user_shell
from site_configs.schema.reframe_request import current_request
from site_configs.topology.gpus import VENDORS, Gpus, read_reframe_devices
from site_configs.topology.layouts import Layout, Topology, layouts, list_boundary_counts
from site_configs.topology.machine import read_machine

UNLIMITED = 1_000_000  #: processes of a launch, where more than cores were asked for
#: Facts that follow from ReFrame's own keys where the site does not say them; the others have defaults.
DERIVED = ("layouts", "boundaries", "most_processes", "cores_per_node", "nodes")
#: a feature that says how many nodes a job may have: ``4_nodes``
NODES = re.compile(r"([0-9]+)_nodes?")


@dataclass(frozen=True)
class PartitionFacts:
    """The facts that :func:`site_configs.common.partition` writes into ``extras``, by the same names."""

    layouts: tuple[Layout, ...]  #: that are measured, unless a user chooses others
    boundaries: tuple[int, ...]  #: process counts of ``--boundaries``
    most_processes: int  #: of a launch
    cores_per_node: int
    nodes: int
    nodes_per_switch: int = 0  #: 0 where it is not known
    threads_per_core: int = 1  #: hardware threads
    gpus: Gpus | None = None  #: of each node
    defaults: Mapping[str, Any] = field(default_factory=dict)  #: values of variables of the checks
    exact: bool = False  #: whether time is simulated
    shared_memory_bytes: int = 0  #: of all processes of a simulated launch; 0: each node has its own
    #: differences from the references, each with the reason why it is waived
    accept: Mapping[str, str] = field(default_factory=dict)
    reference_days: int = REFERENCE_DAYS  #: after which a reference is old
    session_gap_minutes: int = SESSION_GAP_MINUTES  #: between the ends of launches of two sessions

    @classmethod
    def of_partition(cls, partition: Any) -> PartitionFacts:
        """Read the facts of ReFrame's partition; what ``extras`` do not say follows from its processor.

        :raises ValueError: if a value in ``extras`` is wrong, naming partition and key.
        """
        extras = partition.extras
        if "gpus" not in extras and (gpus := read_reframe_devices(device.info for device in partition.devices)):
            extras = extras | {"gpus": msgspec.to_builtins(gpus)}
        if any(name not in extras for name in DERIVED):
            try:
                extras = derive_facts(partition) | extras
            except ValueError as error:
                raise ValueError(f"partition {partition.name}: extras: {error}") from None
        return cls.of(extras)

    @classmethod
    def of(cls, extras: Mapping[str, Any]) -> PartitionFacts:
        """Read the facts of a partition; other keys of ``extras`` are the user's own.

        :raises KeyError: if ``extras`` was not written by :func:`site_configs.common.partition`.
        """
        known = {each.name: extras[each.name] for each in fields(cls) if each.name in extras}
        found = tuple(Layout(*extra) for extra in extras["layouts"])
        gpus = msgspec.convert(known["gpus"], Gpus) if known.get("gpus") else None
        return cls(**known | {"layouts": found, "boundaries": tuple(extras["boundaries"]), "gpus": gpus})


def derive_facts(partition: Any) -> dict[str, Any]:
    """Derive the facts of a partition of which the site says less: no layouts where its cores are unknown.

    :raises ValueError: if counts are no counts.
    """
    from reframe.core.backends import getscheduler  # is there: it has made the partition

    told, processor = partition.extras, partition.processor
    cores = told.get("cores_per_node", processor.num_cores or processor.num_cpus)
    if cores is None:  # ReFrame looks for itself only where the launcher is local too
        cores = read_machine().cores if isinstance(partition.scheduler, getscheduler("local")) else 0
    nodes = told.get("nodes", count_nodes(partition.features))
    found: list[Layout] = []
    boundaries: list[int] = []
    if cores:
        sockets = told.get("sockets_per_node", processor.num_sockets or 1)
        topology = Topology(cores, sockets, nodes, told.get("nodes_per_switch", 0))
        found, boundaries = layouts(topology), list_boundary_counts(topology)
    return {
        "layouts": [list(layout) for layout in found],
        "boundaries": boundaries,
        "most_processes": UNLIMITED if current_request().oversubscribe else cores * nodes,
        "cores_per_node": cores,
        "nodes": nodes,
        "threads_per_core": told.get("threads_per_core", processor.num_cpus_per_core or 1),
    }


def count_nodes(features: Iterable[str]) -> int:
    """Return the most nodes that a feature tells of (``4_nodes``); 1 if none does."""
    told = (NODES.fullmatch(feature) for feature in features)
    return max((int(match[1]) for match in told if match), default=1)


#: What stands for the library where the site does not say which is right: any is, until there is a reference.
ANY_LIBRARY = "*"
#: Facts that ``extras`` hold by the same names.
OF_EXTRAS = (*("library", "launcher", "container", "by_hand", "accept", "transports", "gpu"), STANDARD_ABI)


@dataclass(frozen=True)
class EnvironmentFacts:
    """The facts that :func:`site_configs.common.environment` writes into ``extras``, or their defaults."""

    library: str = ANY_LIBRARY  #: in every MPI_Get_library_version
    launcher: str | Sequence[str] = ""  #: empty: that of the partition
    container: Sequence[str] = ()  #: words that start a program in the container of its MPI
    compilers: tuple[str, ...] = ()  #: wrappers, the first one first
    cc: str = ""  #: ReFrame's compiler of the environment, which may be a wrapper
    by_hand: Mapping[str, Any] = field(default_factory=dict)
    accept: Mapping[str, str] = field(default_factory=dict)
    transports: Mapping[str, str] = field(default_factory=dict)  #: that are expected, by class of pairs
    gpu: str = ""  #: kind of the GPUs whose memory its MPI takes
    standard_abi: str = ""  #: folder of the library of the standard ABI, where programs of that run on it

    @classmethod
    def of(cls, environ: Any) -> EnvironmentFacts:
        """Read the facts of ReFrame's environment.

        :raises ValueError: if variables were asked for that this environment cannot be given.
        """
        extras, request = environ.extras, current_request()
        if "by_hand" not in extras and environ.name in request.set_env:
            fix = "set it in the configuration, or use a site file of Plumbline's"
            raise ValueError(f"--set-env {environ.name}: its configuration does not take it; {fix}")
        shell = read_user_shell(os.environ)
        found = {
            "gpu": next((kind for kind in VENDORS if kind in environ.features), ""),
            "by_hand": collect_manual_settings({}, request.oversubscribe, environ.name, shell),
        } | {name: extras[name] for name in OF_EXTRAS if name in extras}
        compilers = (extras["mpicc"],) if "mpicc" in extras else ()
        return cls(compilers=compilers, cc=environ.cc, **found)

    @property
    def words_of_processes(self) -> Sequence[str]:
        """The words that start each process in the container; none where its launcher is in there already."""
        inside = [*self.container] == [*self.launcher][: len(self.container)]
        return () if inside else self.container

    @property
    def mpi_wrappers(self) -> tuple[str, ...]:
        """Compiler wrappers that are an MPI's by their name or by what the site says."""
        own = (self.cc,) if Path(self.cc).name.startswith("mpi") else ()
        return self.compilers or (*own, "mpicc")

    @property
    def wrappers(self) -> tuple[str, ...]:
        """What to compile with, the first that is there; some wrappers are called ``cc``."""
        return self.compilers or (*self.mpi_wrappers, self.cc or "cc")
