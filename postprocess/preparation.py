"""Set-up: the machine's MPIs and a Spack, found or fetched, and a Spack environment for each MPI."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.errors import UsageError
from postprocess.progress import Progress
from postprocess.site_hosts import sites_for
from postprocess.workdir import WorkDirectory
from site_configs import inventory
from site_configs.inventory import Inventory
from site_configs.mpis import FAMILIES, Mpi
from spack_envs import machine as spack_machine
from spack_envs.errors import SpackEnvironmentError
from spack_envs.layout import Layout
from spack_envs.provide import NoSpack, Spack, provide

DEFAULT_FAMILIES = ("mpich", "openmpi", "intel-mpi")


@dataclass(frozen=True)
class Prepared:
    """What a session builds on."""

    inventory: Inventory | None  #: None on a site that declares its MPIs itself
    spack: Spack | None

    @property
    def built_with(self) -> str:
        """How the programs of this session are built, in words."""
        if self.spack and not self.inventory:
            return "CMake (Spack environments are made for the MPIs of this machine only)"
        return f"Spack {self.spack.version}" if self.spack else "CMake (no Spack)"


def prepare(
    work: WorkDirectory,
    site: str,
    families: Sequence[str] | None,
    progress: Progress,
    fresh: bool = False,
) -> Prepared:
    """Make ready what every session needs. A second time finds everything there.

    :param families: MPI families asked for by name, or None for the default ones, of which a
        missing one is only noted.
    :raises UsageError: if a family that was asked for by name, or any MPI at all, cannot be had, or if
        families are asked for on a site that declares its MPIs itself.
    """
    found = None
    if families and site != "local":
        raise UsageError(f"--mpis: site {site} declares its MPIs itself; choose with --environment")
    if site == "local":
        note_own_sites(work.source / "site_configs", progress)
        found = take_inventory(work, families, progress, fresh)
    spack = find_spack(work, progress)
    for mpi in found.mpis if spack and found else ():
        write_environment(work, spack, mpi, progress)
    return Prepared(found, spack)


def note_own_sites(directory: Path, progress: Progress) -> None:
    """Say so if there is a site file for this host: on a login node ``local`` is seldom what is meant."""
    for name in sites_for(directory, platform.node()):
        progress.note(
            f"site_configs/{name}.py is for this host and not used: --site {name} uses it"
        )


def write_environment(work: WorkDirectory, spack: Spack, mpi: Mpi, progress: Progress) -> None:
    """A Spack environment for one MPI, or none: then the suite is built with CMake for it."""
    try:
        spack_machine.write_environment(work.root, work.source, spack, mpi)
    except SpackEnvironmentError as error:
        progress.note(f"Spack cannot be used for {mpi.name} ({error}): it is built with CMake")
        (Layout(work.root).environment(mpi.name) / "spack.yaml").unlink(missing_ok=True)


def take_inventory(
    work: WorkDirectory, families: Sequence[str] | None, progress: Progress, fresh: bool
) -> Inventory:
    """The machine's MPIs, with wheels of the families it lacks."""
    asked = families or DEFAULT_FAMILIES
    known = [family for family, _ in FAMILIES]
    if unknown := sorted(set(asked) - set(known)):
        choice = ", ".join(known)
        raise UsageError(f"--mpis: {unknown[0]!r} is not a family of MPIs: choose from {choice}")
    found = inventory.take(work.root, asked, progress.say, fresh)
    for entry in found.unusable:
        progress.note(f"{entry.mpicc} ({entry.origin}) is not usable: {entry.problem}")
    present = {mpi.family for mpi in found.mpis}
    missing = [family for family in asked if family not in present]
    if families and missing:
        raise UsageError(f"--mpis: {missing[0]} cannot be had on this machine (see the note above)")
    if not found.mpis:
        raise UsageError(
            "no MPI on this machine, and none to be had from wheels (see the notes above)"
        )
    return found


def find_spack(work: WorkDirectory, progress: Progress) -> Spack | None:
    """A Spack, or None with a line that says why there is none."""
    answer = provide(work.root, progress.say)
    if isinstance(answer, NoSpack):
        progress.note(
            f"no Spack ({answer.reason}): the suite is built with CMake against each mpicc"
        )
        return None
    for line in answer.passed_over:
        progress.note(f"passed over: {line}")
    return answer


def site_file(source: Path, site: str) -> Path:
    """The ReFrame configuration of a site given by name or by path.

    :raises UsageError: if there is none.
    """
    path = Path(site) if site.endswith(".py") else source / "site_configs" / f"{site}.py"
    if not path.is_file():
        known = ", ".join(sorted(site_names(source)))
        raise UsageError(f"--site {site}: no file {path}: choose from {known}, or give a path")
    return path.resolve()


def site_names(source: Path) -> list[str]:
    """The sites that have a configuration here."""
    files = (source / "site_configs").glob("*.py")
    return [path.stem for path in files if is_site(path)]


def is_site(path: Path) -> bool:
    """Whether a Python file has a ReFrame configuration in it."""
    return "site_configuration =" in path.read_text(errors="replace")
