"""Which module system a machine has, from the traces that it leaves in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleSystem:
    """ReFrame's name of a machine's module system, and what tells."""

    name: str
    evidence: str
    known: bool = True


def module_system(environment: Mapping[str, str]) -> ModuleSystem:
    """Find the module system by the variables of an environment."""
    if "LMOD_CMD" in environment:
        return ModuleSystem("lmod", "LMOD_CMD is set")
    if "MODULES_CMD" in environment:
        return ModuleSystem("envmod", "MODULES_CMD is set")
    if "MODULESHOME" in environment:
        told = 'Environment Modules before version 4, which ReFrame does not know; "nomod" and no modules='
        return ModuleSystem("nomod", told, known=False)
    return ModuleSystem("nomod", "no module system here: neither LMOD_CMD nor MODULES_CMD is set")
