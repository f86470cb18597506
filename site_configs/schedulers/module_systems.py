"""Detect the module system of a machine from its traces in the environment.

A login shell may have one that this shell lacks: cron, systemd and CI start no login shell.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from site_configs.mpi.probe import ProbeError, run_step

LOGIN_SECONDS = 60
#: Beginnings of variables and exported functions of a module system.
OWN = ("LMOD_", "MODULE", "__MODULES_", "BASH_ENV", "BASH_FUNC_module", "BASH_FUNC_ml", "BASH_FUNC__module")
#: Those among them that list loaded modules: none are loaded here, because their settings are missing, too.
LOADED = ("MODULES_RUN", "LMOD_FAMILY_", "LMOD_SYSTEM_DEFAULT", "__MODULES_LM")
NEEDED = ("lmod", "envmod")  #: ReFrame's module systems that need an environment
FIX = "cron, systemd and CI start no login shell: there, write bash -lc './plumbline ...'"


@dataclass(frozen=True)
class ModuleSystem:
    """ReFrame's name of a machine's module system, and the evidence for it."""

    name: str
    evidence: str
    known: bool = True


def module_system(environment: Mapping[str, str]) -> ModuleSystem:
    """Find the module system from the variables of an environment."""
    if "LMOD_CMD" in environment:
        return ModuleSystem("lmod", "LMOD_CMD is set")
    if "MODULES_CMD" in environment:
        return ModuleSystem("envmod", "MODULES_CMD is set")
    if "MODULESHOME" in environment:
        evidence = 'Environment Modules before version 4, which ReFrame does not know; "nomod" and no modules='
        return ModuleSystem("nomod", evidence, known=False)
    return ModuleSystem("nomod", "no module system here: neither LMOD_CMD nor MODULES_CMD is set")


def is_lacking(wanted: str, environment: Mapping[str, str]) -> bool:
    """Return whether an environment lacks the module system that a site names."""
    return wanted in NEEDED and module_system(environment).name == "nomod"


def describe_lacking(wanted: str) -> str:
    """Describe a module system that neither this shell nor a login shell has, with the fix."""
    return (
        f"{wanted!r}: this shell has no modules, and a login shell of this user has none either "
        f"({module_system(os.environ).evidence}); {FIX}; or set them up in ~/.bash_profile"
    )


def adopt_login_modules(wanted: str) -> bool:
    """Adopt a module system from a login shell into this process if needed; return whether it was.

    Nothing changes if the login shell has none either.
    """
    if not is_lacking(wanted, os.environ):
        return False
    login = read_login_environment()
    if is_lacking(wanted, login):
        return False
    for name, value in login.items():
        if name.startswith(OWN) and not name.startswith(LOADED):
            os.environ.setdefault(name, value)
    here = os.environ.get("PATH", os.defpath).split(os.pathsep)
    there = [word for word in login.get("PATH", "").split(os.pathsep) if word and word not in here]
    os.environ["PATH"] = os.pathsep.join([*here, *there])
    return True


def read_login_environment() -> dict[str, str]:
    """Read the variables of a login shell; empty if that fails."""
    try:
        output = run_step(["bash", "-lc", "echo; env -0"], os.environ, "login shell", LOGIN_SECONDS)
    except ProbeError:
        return {}
    # output of the shell's own files precedes the first variable, on separate lines
    entries = output.split("\0")
    entries[0] = entries[0].rpartition("\n")[2]
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)
