"""The MPIs of a new site file, and what else its reader should know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from postprocess.site_facts import Facts
from postprocess.site_python import assignments, below, python, registered
from site_configs.identify import telling_text
from site_configs.mpis import Mpi
from site_configs.pairing import CRAY, pairing
from site_configs.scheduler import needed
from spack_envs.machine import PACKAGES


@dataclass(frozen=True)
class EnvironmentView:
    """One call of ``environment``. All but ``name`` and the remarks is Python."""

    name: str
    found: str
    family: str
    library: str
    modules: str
    mpicc: str
    prefix: str
    launcher: str
    why: str
    env_vars: str


def environment_views(facts: Facts, work: Path) -> list[EnvironmentView]:
    """The MPIs that were found."""
    return [environment_view(facts, mpi, work) for mpi in facts.mpis.mpis]


def environment_view(facts: Facts, mpi: Mpi, work: Path) -> EnvironmentView:
    """One MPI as a site file has it."""
    pair = pairing(facts.scheduler, mpi)
    modules = list(facts.cray_modules) if mpi.origin == CRAY else list(filter(None, [mpi.module]))
    words = pair.launcher if isinstance(pair.launcher, tuple) else (pair.launcher,)
    launcher = f"[{', '.join(below(word, work) for word in words)}]"
    # Slurm's srun and Cray's launcher bind by options of their own, and do not look at these.
    started_by_mpi = "mpi" in Path(words[0]).name
    variables = mpi.env if started_by_mpi else {}
    found = {
        "module": f"module {mpi.module}",
        "wheel": "wheel in the work directory",
        CRAY: f"{CRAY} ({mpi.mpicc})",
    }
    return EnvironmentView(
        name=python(mpi.name),
        found=found.get(mpi.origin, f"{mpi.mpicc} on the search path"),
        family=python(mpi.family),
        library=python(telling_text(mpi.library)),
        modules=python(modules) if modules else "",
        mpicc=python("mpicc") if mpi.module else below(mpi.mpicc, work),
        prefix=python(mpi.prefix) if mpi.module and mpi.family in PACKAGES else "",
        launcher=launcher if isinstance(pair.launcher, tuple) else registered(pair.launcher),
        why=pair.why,
        env_vars=assignments(variables, work) if variables else "",
    )


def remarks(facts: Facts) -> list[str]:
    """What else a person should know who reads the file."""
    found = []
    if facts.scheduler:
        found += facts.scheduler.notes
        _, left_out = needed(facts.scheduler.queues)
        found += [f"partition {name} is not in this file: {why}" for name, why in left_out.items()]
    if facts.mpis.other_modules:
        others = ", ".join(facts.mpis.other_modules)
        found.append(f"further modules of MPIs, not looked into: {others}")
    found += [f"{each.mpicc} is not usable: {each.problem}" for each in facts.mpis.unusable]
    return found
