"""Settings that the old side has otherwise, as variables that give them to launches of the new side."""

from __future__ import annotations

from dataclasses import dataclass

from postprocess.features.compare.differences.facts import (
    PLACE,
    SETTING,
    SETTINGS,
    UNREAD,
    VARIABLE,
    FactDifference,
    SideFacts,
    compare_facts,
    rank_verbosity,
)
from site_configs.mpi.family import identify_library

#: How an MPI is told the value of a control variable, where its name is not that of a variable itself
OF_FAMILY = {"openmpi": "OMPI_MCA_"}
MOST_LETTERS = 60  #: of a value: longer ones say how something was built
TELLS = "_version"  #: how the name of a variable ends that tells something and sets nothing


@dataclass(frozen=True)
class TriedSetting:
    """A setting of the old side that may be tried on the new one."""

    name: str  #: as the MPI, or the environment, has it
    variable: str  #: of the environment that sets it
    old: str
    new: str


def list_settings_to_try(old: SideFacts, new: SideFacts) -> list[TriedSetting]:
    """List what both sides have with another value, and a variable can set; those for users first.

    A value that names a place, or cannot be read, is left out.
    """
    found = [
        TriedSetting(each.name, variable, *each.texts)
        for each in sorted(
            compare_facts(old, new), key=lambda e: (rank_verbosity(e.verbosity), e.name)
        )
        if (variable := find_variable(each, new))
    ]
    return list({each.variable: each for each in found}.values())


def find_variable(each: FactDifference, new: SideFacts) -> str:
    """Find the variable that gives the new side the old value; empty if nothing can."""
    if not each.old or each.old == UNREAD or each.name.endswith(TELLS):
        return ""
    if PLACE in each.old or "/" in each.old or len(each.old) > MOST_LETTERS:
        return ""
    if each.kind == VARIABLE and each.new is not None:
        return name_variable(each.name, new)
    return each.name if each.kind == SETTING else ""


def name_variable(control: str, side: SideFacts) -> str:
    """Name the variable of the environment that sets a control variable; empty if none is known."""
    if control.startswith(SETTINGS):
        return control
    prefix = OF_FAMILY.get(identify_library(side.mpi_library)[0])
    return f"{prefix}{control}" if prefix else ""
