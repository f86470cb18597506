"""References after an upgrade: which no longer hold, and the launches from which new ones are proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from postprocess.calibration import ledger
from postprocess.features.compare import data
from postprocess.features.compare.afterwards import ReferenceEffects
from postprocess.features.compare.data import ComparedSide
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Selection, Session
from postprocess.references.catalog import load_catalog
from postprocess.session.lifecycle.context import SessionContext


def note_effects(
    context: SessionContext,
    path: Path,
    old: ComparedSide,
    finished: Sequence[FinishedLaunch],
) -> ReferenceEffects:
    """Write down which references of the old side's environment hold for these launches of the new side.

    :param path: of the comparison's records
    :raises postprocess.base.errors.UsageError: if a reference file is damaged, or nothing can be written
    """
    places = {
        (each.launch.partition, environment)
        for each in finished
        for environment in (each.launch.environment, old.environment)
    }
    catalog = load_catalog(context.reference_roots, places)
    outdated: dict[str, str] = {}
    holding = without = 0
    for each in finished:
        told = each.launch.accepts, each.launch.by_hand
        for case in each.launch.cases if each.run else ():
            own = catalog.find_set(case)
            held = (
                own and case in own.references and not own.difference(each.conditions, case, *told)
            )
            without += not held
            before = replace(case, environment=old.environment)
            references = catalog.find_set(before)
            if references is None or before not in references.references:
                continue
            if why := references.difference(each.conditions, before, *told):
                outdated[before.key] = why
            else:
                holding += 1
    effects = ReferenceEffects(old.environment, outdated, holding, without)
    data.append_record(path, effects)
    return effects


def keep_for_references(
    folder: Path,
    selection: Selection,
    session: Session,
    side: ComparedSide,
    finished: Sequence[FinishedLaunch],
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
        session.name,
        {side.environment: own} if own else {},
        selection.oversubscribe,
        shell=selection.shell,
    )
    launches = ledger.collect_launches(opened, session.directory, finished)
    if launches:
        ledger.append_launches(folder, session.name, launches)
