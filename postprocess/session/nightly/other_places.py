"""Learn references of places that a calibration has not met: a hypervisor may move ranks there on any night."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from postprocess.base.formats import plural
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import (
    CalibrationHeader,
    append_launches,
    collect_launches,
    restrict_launch,
)
from postprocess.calibration.update import update_references
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import CaseResult
from postprocess.references.catalog import LEAST_ELSEWHERE, ReferenceCatalog
from postprocess.session.nightly.calibrate import read_comparable_launches


def learn_other_places(
    work: WorkDirectory,
    session: Session,
    selection: Selection,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    catalog: ReferenceCatalog,
    say: Callable[[str], None],
) -> None:
    """Keep what was measured where no reference tells of, in the ledger and in provisional references.

    As in a first night, what is not known yet becomes the reference. The rows stay as they are, and so do
    reviewed references.

    :param session: the night
    :param say: is told in one line of what was kept
    """
    wanted = {
        each.case for each in results if each.elsewhere and is_provisional(each.case, catalog, work)
    }
    if not wanted:
        return
    keys = {case.key for case in wanted}
    opened = CalibrationHeader(
        session.name, selection.set_env, selection.oversubscribe, shell=selection.shell
    )
    launches = (
        restrict_launch(each, keys)
        for each in collect_launches(opened, session.directory, finished)
    )
    kept = [each for each in launches if each.values]
    if not kept:
        return
    append_launches(work.root, session.name, kept)
    told = {Case.from_key(key) for each in kept for key in each.values}
    update_references(work.provisional, read_comparable_launches(work.root, selection), told)
    cases = plural(len(told), "case")
    say(
        f"{cases} measured on other cores than before: kept; {LEAST_ELSEWHERE} launches make a reference"
    )


def is_provisional(case: Case, catalog: ReferenceCatalog, work: WorkDirectory) -> bool:
    """Return whether the references of a case are the work directory's own, which are not reviewed."""
    known = catalog.find_set(case)
    return known is not None and work.provisional in known.path.parents
