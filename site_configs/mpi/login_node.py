"""The MPIs that a login node shows: modules, Cray's compiler wrapper, the search path, and wheels."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from site_configs.families import find_family
from site_configs.mpi import wheels
from site_configs.mpi.family import Mpi, Unusable, name_distinctly
from site_configs.mpi.inventory import Say, merge_mpis
from site_configs.mpi.modules import ModuleListing, find_in_module, group_modules, list_modules
from site_configs.mpi.probe import Candidate, find_on_path, identify_wrapper

MOST_TRIED = 5  #: modules of one MPI, until one of them is usable
MOST_TOLD = 20  #: modules named in a remark on doubtful ones
CRAY_MODULE = "cray-mpich/"


@dataclass(frozen=True)
class LoginMpis:
    """The MPIs of a login node, with remarks on its modules."""

    mpis: tuple[Mpi, ...]
    unusable: tuple[Unusable, ...]
    notes: tuple[str, ...] = ()


def find_login_mpis(
    wheel_root: Path, families: Sequence[str], say: Say, wheel_folder: Path | None = None
) -> LoginMpis:
    """Identify every MPI of this node. No MPI program is started.

    :param wheel_root: where wheels are installed; existing ones are MPIs of this node.
    :param wheel_folder: the only source of wheels; None for the package index
    """
    listing = list_modules()
    answers, tried = ask_modules(listing, os.environ, say)
    for candidate in find_cray_mpi(os.environ) + find_on_path(os.environ.get("PATH", "")):
        say(f"asking {candidate.mpicc}")
        answers.append(identify_wrapper(candidate))
    for family in wheels.FAMILIES:
        present = {answer.family for answer in answers if isinstance(answer, Mpi)}
        wanted = family in families and family not in present
        if wanted or (wheel_root / f"{family}-{wheels.read_locked_version(family)}").exists():
            answers.append(find_login_wheel_mpi(family, wheel_root, say, wheel_folder))
    mpis = name_distinctly(merge_mpis(answer for answer in answers if isinstance(answer, Mpi)))
    unusable = tuple(answer for answer in answers if isinstance(answer, Unusable))
    return LoginMpis(tuple(mpis), unusable, tuple(note_other_modules(listing, tried, answers)))


def ask_modules(
    listing: ModuleListing, environment: Mapping[str, str], say: Say
) -> tuple[list[Mpi | Unusable], list[str]]:
    """Identify the newest module of each MPI, and the next ones if it is not usable.

    Returns the answers, and the modules that were tried.
    """
    answers: list[Mpi | Unusable] = []
    tried: list[str] = []
    for group in group_modules(listing.mpis + listing.hidden):
        for module in group[:MOST_TRIED]:
            if module.startswith(CRAY_MODULE) and "CRAYPE_VERSION" in environment:
                break  # Cray's compiler wrapper is identified instead
            say(f"asking {module}")
            tried.append(module)
            candidate = find_in_module(module)
            answers.append(candidate if isinstance(candidate, Unusable) else identify_wrapper(candidate))
            if isinstance(answers[-1], Mpi):
                break
    return answers, tried


def note_other_modules(
    listing: ModuleListing, tried: Sequence[str], answers: Sequence[Mpi | Unusable]
) -> Iterator[str]:
    """Describe the modules that may be MPIs but have no entry, so that none is silently left out."""
    if listing.problem:
        yield f"the modules of MPIs are not all known: {listing.problem}"
    loaded = {answer.module.split()[-1] for answer in answers if isinstance(answer, Mpi) and answer.module}
    if behind := [name for name in listing.hidden if name in tried and name not in loaded]:
        fix = "load a compiler's module that they need (module spider shows it), and look again"
        yield f"modules of MPIs that need other modules first: {', '.join(behind)}; {fix}"
    if others := [name for name in listing.mpis + listing.hidden if name not in tried]:
        yield f"further modules of MPIs, not looked into: {', '.join(others)}"
    if resembling := sorted(listing.resembling, key=lambda name: "mpi" not in name.partition("/")[0]):
        more = f" and {len(resembling) - MOST_TOLD} more" if len(resembling) > MOST_TOLD else ""
        names = ", ".join(resembling[:MOST_TOLD])
        yield f"modules with MPI in their names, which are not MPIs known here: {names}{more}"


def find_cray_mpi(environment: Mapping[str, str]) -> list[Candidate]:
    """Find Cray's programming environment, whose compiler wrapper is an MPI wrapper if cray-mpich is loaded."""
    wrapper = shutil.which("cc", path=environment.get("PATH"))
    if "CRAYPE_VERSION" not in environment or not wrapper:
        return []
    return [Candidate(Path(wrapper), Path("srun"), "Cray's programming environment")]


def list_cray_modules(environment: Mapping[str, str]) -> list[str]:
    """List the loaded modules that make up an MPI of Cray's programming environment."""
    loaded = environment.get("LOADEDMODULES", "").split(":")
    return [name for name in loaded if name.startswith(("PrgEnv-", CRAY_MODULE))]


def find_login_wheel_mpi(family: str, root: Path, say: Say, folder: Path | None) -> Mpi | Unusable:
    """Find the MPI in a family's wheel, installed if need be; or return why it is not available."""
    if problem := find_family(family).no_cluster_wheel:
        return Unusable(f"{family} (wheel)", "wheel", problem)
    say(f"asking {family} {wheels.read_locked_version(family)} from its wheel")
    try:
        return identify_wrapper(wheels.install_wheels(family, root, folder))
    except wheels.WheelError as error:
        return Unusable(family, "wheel", str(error))
