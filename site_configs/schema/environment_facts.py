"""What checks know of an environment: ReFrame's ``extras``, each key optional, or ReFrame's own keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from site_configs.programs.installed import STANDARD_ABI
from site_configs.schema.manual_settings import collect_manual_settings, read_user_shell
from site_configs.schema.reframe_request import current_request
from site_configs.topology.gpus import VENDORS

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
