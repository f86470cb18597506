"""What a pass of a comparison is made of: what is selected for a side, and what its launches say.

They say it of each case, and of the references that there are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from postprocess.base.formats import plural
from postprocess.calibration import ledger
from postprocess.features.compare import data
from postprocess.features.compare.data import ComparedSide, SharedCase
from postprocess.model.case import Case
from postprocess.model.conditions import binding_of, caches_of
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import PLANTED
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import WITHOUT_VALUE, CaseResult, Verdict
from postprocess.references.catalog import load_catalog
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.injections import Injection
from spack_envs.installation import find_mpicost_prefix


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


def collect_values(
    finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]
) -> list[data.LaunchValues]:
    by_case = {result.case: result for result in results}
    of_job = Counter[str]()
    for launched in finished:
        of_job[launched.directory] += len(launched.launch.cases)
    return [
        data.LaunchValues(
            launched.launch.name,
            describe_run_place(launched.run, launched.hosts),
            {
                SharedCase.of(case).key: read_value(by_case[case], launched)
                for case in launched.launch.all_cases
                if case in by_case
            },
            launched.seconds * len(launched.launch.cases) / max(of_job[launched.directory], 1),
        )
        for launched in finished
    ]


def describe_failures(values: Sequence[data.LaunchValues]) -> Iterator[str]:
    """Describe what failed in launches, each reason once, with the command that measures it again."""
    found: dict[tuple[str, str], list[tuple[str, data.CaseValue]]] = {}
    for key, said in (item for launch in values for item in launch.cases.items()):
        if said.verdict and said.verdict != Verdict.SKIPPED:
            found.setdefault((said.verdict, said.reason), []).append((key, said))
    for (verdict, reason), cases in found.items():
        key, said = cases[0]
        more = f" and {plural(len(cases) - 1, 'more case')}" if len(cases) > 1 else ""
        case = SharedCase.from_key(key)
        again = f"; again: {said.rerun}" if said.rerun else ""
        yield f"{case.words} ({case.where}){more}: {verdict}: {reason}{again}"


def read_value(result: CaseResult, launch: FinishedLaunch) -> data.CaseValue:
    """Read what a result says of the launch: its value, or why there is none. Its speed is not judged here."""
    if result.verdict in WITHOUT_VALUE or not result.value:
        verdict = result.verdict if result.value is None else Verdict.INCOMPLETE
        lost = launch.outcome.job_end is not None
        foreseen = any(skip.foreseen and skip.case == result.case for skip in launch.launch.skips)
        told = str(verdict), result.reason, result.rerun
        return data.CaseValue(
            *(None, result.unit, *told), lost=lost, foreseen=foreseen and verdict == Verdict.SKIPPED
        )
    measured = launch.measurements.get(result.case.variable)
    cores = measured.core_latency if measured else None
    return data.CaseValue(
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
