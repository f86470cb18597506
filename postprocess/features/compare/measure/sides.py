"""The two sides of a comparison: which environments they are, and exactly what differs between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.near_words import propose_word
from postprocess.features.compare.data import ComparedSide
from postprocess.model.options import PARTITION, PLANTED
from postprocess.model.session import Selection
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.injections import Injection
from site_configs.mpi.family import environment_name, is_prefix, split_release
from site_configs.mpi.inventory import find_release
from site_configs.validation.isolated_reader import read_usable_site
from site_configs.validation.reader import SiteReading
from site_configs.validation.rules import DeclaredEntry, list_entries, select_sound
from spack_envs.programs import find_mpicost_prefix

#: What is told of an environment, in the order of telling: words for people, and keys of its declaration.
FACTS = (
    ("MPI library", ("extras", "library")),
    ("compiler wrapper", ("extras", "mpicc")),
    ("prefix", ("extras", "prefix")),
    ("modules", ("modules",)),
    ("launcher", ("extras", "launcher")),
    ("launcher", ("extras", "launch_words")),
)


@dataclass(frozen=True)
class DeclaredSides:
    """Both sides as the site declares them."""

    old: ComparedSide
    new: ComparedSide
    differences: tuple[tuple[str, str, str], ...]  #: what, on the old side, on the new one
    has_controls: bool = True  #: whether a partition times what no MPI has a part in


def find_sides(context: SessionContext, old: ComparedSide, new: ComparedSide) -> DeclaredSides:
    """Find the environments of both sides, and what differs between them.

    :param old: with the label that the user gave; so ``new``
    :raises UsageError: if an environment is not there
    """
    reading = read_usable_site(context.work, context.request.selection.site)
    declared = index_environments(reading)
    sides = [
        ComparedSide(
            each.label, find_environment(context, declared, each.label), each.set_env, each.plant
        )
        for each in (old, new)
    ]
    differences = tuple(list_side_differences(declared, *sides))
    chosen = PARTITION.wanted(context.request.selection.choice)
    real = [
        each
        for each in select_entries(reading, "partition")
        if (not chosen or each.name in chosen) and not each.extras["exact"]
    ]
    return DeclaredSides(sides[0], sides[1], differences, bool(real))


def index_environments(reading: SiteReading) -> dict[str, Mapping[str, Any]]:
    """Index the sound environments of a site by name."""
    return {each.name: each.data for each in select_entries(reading, "environment")}


def select_entries(reading: SiteReading, kind: str) -> list[DeclaredEntry]:
    """Select the sound environments, or partitions, of a site."""
    return select_sound(reading, list_entries(reading, kind))


def find_environment(
    context: SessionContext, declared: Mapping[str, Mapping[str, Any]], label: str
) -> str:
    """Find the environment that a side names: by name, as a release such as ``mpich@4.3.2``, or by its prefix.

    :raises UsageError: if there is none
    """
    family, version = split_release(label)
    name = label
    if version or is_prefix(label):
        inventory = context.prepared.inventory
        mpi = find_release(inventory, context.work.root, label) if inventory else None
        name = mpi.name if mpi else label if is_prefix(label) else environment_name(family, version)
    if name not in declared:
        meant = [each for each in declared if each.startswith(f"{name}-")]
        if len(meant) == 1:
            return meant[0]
        near = propose_word(name, declared)
        choice = ", ".join(sorted(declared)) or "none"
        fix = f"it has {choice}" + (f"; {near}" if near else "")
        raise UsageError(f"{label}: site {context.request.site} has no such MPI; {fix}")
    return name


def list_side_differences(
    declared: Mapping[str, Mapping[str, Any]], old: ComparedSide, new: ComparedSide
) -> list[tuple[str, str, str]]:
    """List what differs between the sides: each with its words on the old and the new side."""
    one, two = declared[old.environment], declared[new.environment]
    facts = [(words, tell_fact(one, keys), tell_fact(two, keys)) for words, keys in FACTS]
    facts += compare_variables(
        "variable", {**tell_variables(one), **old.set_env}, {**tell_variables(two), **new.set_env}
    )
    facts.append(("planted delay", old.plant, new.plant))
    return [(what, was or "none", now or "none") for what, was, now in facts if was != now]


def tell_fact(environment: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Tell a fact of an environment's declaration as text; empty if it has none."""
    found: Any = environment
    for key in keys:
        found = found.get(key, "") if isinstance(found, Mapping) else ""
    return " ".join(map(str, found)) if isinstance(found, (list, tuple)) else str(found)


def tell_variables(environment: Mapping[str, Any]) -> dict[str, str]:
    """Tell the variables that an environment sets."""
    found = environment.get("env_vars", {})
    return {str(name): str(value) for name, value in dict(found).items()}


def compare_variables(
    what: str, old: Mapping[str, str], new: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Compare variables by name."""
    return [
        (f"{what} {name}", old.get(name, ""), new.get(name, ""))
        for name in sorted(old.keys() | new.keys())
    ]


def select_side(context: SessionContext, selection: Selection, side: ComparedSide) -> Selection:
    """Restrict a selection to one side, with its settings."""
    own = dict(selection.set_env.get(side.environment, {})) | dict(side.set_env)
    choice = dict(selection.choice)
    if side.plant:
        plant, _, routine = side.plant.partition(":")
        injection = Injection(side.environment, plant, routine)
        own |= injection.variables(find_mpicost_prefix(context.work.root, side.environment))
        choice[PLANTED] = [side.environment]
    set_env = {side.environment: own} if own else {}
    return replace(selection, environments=[side.environment], set_env=set_env, choice=choice)
