"""Manual settings of launches, from options or from MPI variables of the shell."""

from collections.abc import Mapping
from typing import Any

from site_configs.families import FAMILIES
from site_configs.schema.reframe_request import current_request

#: Prefixes of variables that influence an MPI: its own, and those of what it runs on.
STEERING = (
    *(prefix for family in FAMILIES.values() for prefix in family.variables),
    *("PRTE_MCA_", "PMIX_MCA_", "UCX_", "FI_", "PSM2_", "PSM3_", "UCC_", "HCOLL_", "SHARP_"),
)
#: Prefixes of those among them that a batch system or an outer mpiexec sets, or that name a place.
NOT_BY_HAND = (
    *("I_MPI_ROOT", "I_MPI_HYDRA_", "I_MPI_INFO_", "FI_PROVIDER_PATH", "OMPI_MCA_orte_"),
    *("OMPI_MCA_ess", "PRTE_MCA_ess", "OMPI_MCA_plm_slurm_", "PRTE_MCA_plm_slurm_"),
    "PMIX_MCA_mca_base_",
)
PATHS = ("/", "~", "./", "../")  #: beginnings of a path


def select_shell_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the variables of a shell that influence an MPI and are not paths, by name."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(STEERING)
        and not name.startswith(NOT_BY_HAND)
        and not any(part.startswith(PATHS) for part in value.split(":"))
    }


def read_user_shell(environ: Mapping[str, str]) -> dict[str, str]:
    """Return these variables of the user's shell from the request, or from this process without one."""
    requested = current_request().shell
    return select_shell_settings(environ) if requested is None else requested


def collect_manual_settings(
    set_env: Mapping[str, Mapping[str, str]], oversubscribe: bool, environment: str, shell: Mapping[str, str]
) -> dict[str, Any]:
    """Collect the manual settings for the launches of an environment.

    :param set_env: variables set by an option, by environment
    :param shell: variables of the shell that influence an MPI; empty for simulated time, which they do not
    change
    """
    settings: dict[str, Any] = {"oversubscribe": True} if oversubscribe else {}
    variables = set_env.get(environment)
    settings |= {"set_env": dict(variables)} if variables else {}
    return settings | ({"shell": dict(shell)} if shell else {})


def has_all_settings(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Return whether all manual settings of one launch, ``theirs``, hold for another too, with equal values.

    An option is given to see its effect. A variable of the shell is easily forgotten, so it must be the same.
    """
    our_env, other = ours.get("set_env", {}), theirs.get("set_env", {})
    flags = {name: value for name, value in theirs.items() if name not in ("set_env", "shell")}
    return (
        flags.items() <= ours.items()
        and other.items() <= our_env.items()
        and not list_shell_differences(ours, theirs)
    )


def is_replaced_by(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Return whether a launch with ``ours`` replaces an automatic reference made with ``theirs``.

    A launch with other variables of the shell never does: they may be set by mistake.
    """
    forgotten = ours.get("shell") and list_shell_differences(ours, theirs)
    return not has_all_settings(ours, theirs) and not forgotten


def list_shell_differences(
    ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> dict[str, tuple[str | None, str | None]]:
    """List the variables that differ between two shells, with both values; None if unset."""
    our_shell, other = ours.get("shell", {}), theirs.get("shell", {})
    names = sorted(our_shell.keys() | other.keys())
    pairs = {name: (our_shell.get(name), other.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
