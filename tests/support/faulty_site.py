"""A site with an environment of one MPI for each fault: one session plays them all."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.mpi import Installation, find_mpi

SITE = """\
from site_configs.common import Topology, environment, partition, site

own = {own!r}
environments = [environment(name, **{arguments!r} | own.get(name, {{}})) for name in {names!r}]
for each in environments:
    if each["name"] not in own:
        each["extras"]["build"] = "of-all"
site_configuration = site(
    "faulty",
    description="the same MPI under many names",
    partitions=[partition("cpu", topology=Topology(2, 1), environments={names!r})],
    environments=environments,
)
"""


def write_faulty_site(
    path: Path,
    mpi: Installation,
    names: Iterable[str],
    own: Mapping[str, Mapping[str, object]] | None = None,
    **instead: object,
) -> Path:
    """Write a site whose environments have these names, and return its path.

    :param own: what one environment has instead of the others, with which it does not share its build
    :param instead: of what is known of the MPI: ``mpicc``, ``launcher``; or ``programs``, the folder of each.
    """
    known = find_mpi(mpi.family)
    arguments = {
        "family": known.family,
        "library": known.library,
        "launcher": list(known.launcher),
        "mpicc": known.mpicc,
        "env_vars": dict(mpi.env),
        **instead,
    }
    path.write_text(SITE.format(arguments=arguments, own=dict(own or {}), names=list(names)))
    return path


def plant(variables: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Build the options that set variables for the launches of each environment."""
    return [
        f"--set-env={environment}:{name}={value}"
        for environment, those in variables.items()
        for name, value in those.items()
    ]
