"""Spack environments for the MPIs that a site file declares. What Spack cannot use is built by CMake."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base.workdir import WorkDirectory
from site_configs.mpi.discover import find_companion_launcher
from site_configs.mpi.family import PACKAGES, identify_library
from site_configs.mpi.modules import read_module_path
from site_configs.validation.catalog import locate_site_file
from site_configs.validation.isolated_reader import read_site
from site_configs.validation.rules import list_entries, select_sound
from spack_envs.errors import SpackEnvironmentError
from spack_envs.toolchain import ExternalPackage, find_toolchain


@dataclass(frozen=True)
class DeclaredMpi:
    """An MPI as a site file has it, with what Spack must know."""

    name: str
    family: str
    version: str
    prefix: str
    mpicc: str
    mpiexec: str
    modules: tuple[str, ...] = ()

    @property
    def toolchain(self) -> tuple[ExternalPackage, ...] | None:
        """The compiler and tools that there are once the modules are loaded; None where there are none.

        :raises SpackEnvironmentError: if they cannot be loaded on this node, or bring no compiler.
        """
        if not self.modules:
            return None
        path = read_module_path(self.modules)
        if not path:
            raise SpackEnvironmentError(
                f"modules {' '.join(self.modules)} do not load on this node"
            )
        return find_toolchain([Path(sys.executable).parent, *map(Path, path.split(os.pathsep))])


@dataclass(frozen=True)
class UnusableEnvironment:
    """An environment that Spack cannot be used for, and why."""

    name: str
    problem: str


def parse_declared_mpi(environment: Mapping[str, Any]) -> DeclaredMpi:
    """Parse an environment of a site's configuration as an MPI for Spack.

    :raises SpackEnvironmentError: if it is none, in words that are the same for all of its kind.
    """
    extras = environment["extras"]
    family, version = identify_library(extras["library"])
    if extras["family"] not in PACKAGES or family != extras["family"]:
        known = ", ".join(PACKAGES)
        raise SpackEnvironmentError(f"family {extras['family']!r} is none of {known}")
    prefix, mpicc = extras["prefix"], Path(extras["mpicc"])
    if not prefix:
        raise SpackEnvironmentError("its site file does not say where it is: write prefix=")
    wrapper = mpicc if mpicc.is_absolute() else Path(prefix, "bin", mpicc)
    if not wrapper.exists():
        raise SpackEnvironmentError(f"prefix: {wrapper} is not on this machine")
    return DeclaredMpi(
        environment["name"],
        family,
        version,
        prefix,
        str(wrapper),
        str(find_companion_launcher(wrapper)),
        tuple(environment["modules"]),
    )


def read_declared_mpis(
    work: WorkDirectory, site: str
) -> Iterator[DeclaredMpi | UnusableEnvironment]:
    """Read the MPIs that a site file declares, as Spack is told of them.

    What is wrong with the site file itself is not told here: ReFrame refuses it with its fault.

    :raises UsageError: if the file does not end, or leaves processes running.
    """
    reading = read_site(work, locate_site_file(work.source, site))
    if reading.configuration is None:
        return
    for entry in select_sound(reading, list_entries(reading, "environment")):
        try:
            yield parse_declared_mpi(entry.data)
        except SpackEnvironmentError as error:
            yield UnusableEnvironment(entry.name, str(error))
