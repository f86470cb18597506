"""The sides of a comparison: what a site declares of them, how they differ, and what their launches say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.near_words import propose_word
from postprocess.calibration import ledger
from postprocess.features.compare import data
from postprocess.features.compare.data import CaseValue, ComparedSide, LaunchValues, SharedCase
from postprocess.model.case import Case
from postprocess.model.conditions import binding_of, caches_of
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import PARTITION, PLANTED
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import WITHOUT_VALUE, CaseResult, Verdict
from postprocess.references.catalog import load_catalog
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.injections import Injection
from site_configs.mpi.family import environment_name, is_prefix, split_release
from site_configs.mpi.inventory import find_release
from site_configs.validation.reader import SiteReading
from site_configs.validation.rules import DeclaredEntry, list_entries, select_sound
from spack_envs.programs import find_mpicost_prefix


def find_own_case(shared: SharedCase, environment: str) -> Case:
    """Find the case of one side."""
    cache, _, sync = shared.variant.partition("-")
    routine, _, peer = shared.label.partition("@")
    processes, per_node = shared.place.processes
    return Case(
        system="either",
        partition=shared.partition,
        environment=environment,
        program=shared.program,
        routine=routine,
        peer=int(peer or 0),
        cache=cache,
        sync=sync,
        processes=processes,
        per_node=per_node,
        bytes=shared.bytes,
    )


def collect_values(finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]) -> list[LaunchValues]:
    """Collect what the launches of a pass say of each case."""
    by_case = {result.case: result for result in results}
    return [
        LaunchValues(
            launched.launch.name,
            describe_run_place(launched.run, launched.hosts),
            {
                SharedCase.of(case).key: read_value(by_case[case], launched)
                for case in launched.launch.all_cases
                if case in by_case
            },
        )
        for launched in finished
    ]


def read_value(result: CaseResult, launch: FinishedLaunch) -> CaseValue:
    """Read what a result says of the launch: its value, or why there is none. Its speed is not judged here."""
    if result.verdict in WITHOUT_VALUE or not result.value:
        verdict = result.verdict if result.value is None else Verdict.INCOMPLETE
        lost = launch.outcome.job_end is not None
        return CaseValue(None, result.unit, str(verdict), result.reason, result.rerun, lost=lost)
    measured = launch.measurements.get(result.case.variable)
    cores = measured.core_latency if measured else None
    return CaseValue(
        result.value,
        result.unit,
        rerun=result.rerun,
        exact=launch.launch.exact,
        core_latency=(cores.before, cores.after) if cores else None,
    )


def describe_run_place(run: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, str]:
    """Describe where and how a launch ran, by its run record and its nodes."""
    return {
        "nodes": ",".join(hosts),
        "binding": binding_of(run) or "",
        "processor": run.get("cpu_model") or "",
        "caches": caches_of(run.get("caches")) or "",
        "trials": str(run.get("trials", "")),
    }


def note_effects(
    context: SessionContext, path: Path, old: ComparedSide, finished: Sequence[FinishedLaunch]
) -> data.ReferenceEffects:
    """Write down which references of the old side's environment hold for these launches of the new side.

    :param path: of the comparison's records
    :raises postprocess.base.errors.UsageError: if a reference file is damaged, or nothing can be written
    """
    places = {
        (run.launch.partition, environment)
        for run in finished
        for environment in (run.launch.environment, old.environment)
    }
    catalog = load_catalog(context.reference_roots, places)
    outdated: dict[str, str] = {}
    holding = without = 0
    for launched in finished:
        told = launched.launch.accepts, launched.launch.by_hand
        for case in launched.launch.cases if launched.run else ():
            own = catalog.find_set(case)
            held = own and case in own.references and not own.difference(launched.conditions, case, *told)
            without += not held
            before = replace(case, environment=old.environment)
            references = catalog.find_set(before)
            if references is None or before not in references.references:
                continue
            if why := references.difference(launched.conditions, before, *told):
                outdated[before.key] = why
            else:
                holding += 1
    effects = data.ReferenceEffects(old.environment, outdated, holding, without)
    data.append_record(path, effects)
    return effects


def keep_for_references(
    folder: Path, selection: Selection, session: Session, side: ComparedSide, finished: Sequence[FinishedLaunch]
) -> None:
    """Keep launches of the new side in the dossier as a calibration's; those with a planted delay never.

    Nothing becomes a reference by that: ``references propose --compare`` reads them.

    :param selection: of the comparison, without the settings of the side
    :raises postprocess.base.errors.UsageError: if they cannot be written
    """
    if side.plant:
        return
    own = dict(selection.set_env.get(side.environment, {})) | dict(side.set_env)
    opened = ledger.CalibrationHeader(
        session.name, {side.environment: own} if own else {}, selection.oversubscribe, shell=selection.shell
    )
    launches = ledger.collect_launches(opened, session.directory, finished)
    if launches:
        ledger.append_launches(folder, session.name, launches)


#: What is told of an environment, in the order of telling: words for people, and keys of its declaration.
FACTS = (
    ("MPI library", ("extras", "library")),
    ("compiler wrapper", ("extras", "mpicc")),
    ("prefix", ("extras", "prefix")),
    ("modules", ("modules",)),
    ("launcher", ("extras", "launcher")),
    ("launcher", ("extras", "launch_words")),
)


def has_controls(reading: SiteReading, choice: Mapping[str, Any]) -> bool:
    """Return whether a chosen partition times what no MPI has a part in, as simulated ones do not."""
    chosen = PARTITION.wanted(choice)
    partitions = select_entries(reading, "partition")
    return any(not entry.extras["exact"] for entry in partitions if not chosen or entry.name in chosen)


def index_environments(reading: SiteReading) -> dict[str, Mapping[str, Any]]:
    """Index the sound environments of a site by name."""
    return {entry.name: entry.data for entry in select_entries(reading, "environment")}


def select_entries(reading: SiteReading, kind: str) -> list[DeclaredEntry]:
    """Select the sound environments, or partitions, of a site."""
    return select_sound(reading, list_entries(reading, kind))


def find_environment(context: SessionContext, declared: Mapping[str, Mapping[str, Any]], label: str) -> str:
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
    set_old, set_new = {**tell_variables(one), **old.set_env}, {**tell_variables(two), **new.set_env}
    names = sorted(set_old.keys() | set_new.keys())
    facts += [(f"variable {name}", set_old.get(name, ""), set_new.get(name, "")) for name in names]
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
