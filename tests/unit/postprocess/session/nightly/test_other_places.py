"""Nights learn references of places that the first calibration has not met, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from postprocess.session.nightly.other_places import learn_other_places

from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import CalibrationHeader, append_launches, collect_launches
from postprocess.calibration.update import update_references
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.launch import FinishedLaunch
from postprocess.model.reference import Reference
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import Verdict
from postprocess.references.catalog import LEAST_ELSEWHERE, ReferenceCatalog, load_catalog
from tests.support.factories.launch import CASES, PLACE, finished

NEAR, FAR = (5e-8, 5.2e-8), (2.6e-7, 2.5e-7)
CASE = CASES[0]
SELECTION = Selection(Path("site.py"))


class Machine:
    """A work directory with references of twelve launches on near cores, and nights on it."""

    def __init__(self, root: Path) -> None:
        self.work = WorkDirectory(root, root / "source")
        self.said: list[str] = []
        first = root / "20261121T090000Z-1"
        done = [self.launched(first / str(n), NEAR, 1 + n / 100) for n in range(12)]
        new = collect_launches(CalibrationHeader(first.name), first, done)
        append_launches(root, first.name, new)
        update_references(self.work.provisional, new)

    def launched(self, folder: Path, cores: tuple[float, float], scale: float) -> FinishedLaunch:
        """One launch with the time from core to core before and after each case."""
        folder.mkdir(parents=True)
        return finished(folder, scale, core_latency=cores, asserted=False)

    def catalog(self, root: Path) -> ReferenceCatalog:
        """All references below a root."""
        return load_catalog([root], [(":".join(PLACE[:2]), PLACE[2])])

    def reference(self, cores: tuple[float, float]) -> Reference | None:
        """What is known of a case where its ranks lay so."""
        return self.catalog(self.work.provisional).reference(CASE, cores[0])

    def night(
        self, number: int, cores: tuple[float, float], scale: float, root: Path | None = None
    ) -> Verdict:
        """Its verdict of one case."""
        directory = self.work.root / f"20261122T0900{number:02d}Z-1"
        session = Session(directory, "nightly", "local", ["./plumbline"], False)
        done = [self.launched(directory, cores, scale)]
        catalog = self.catalog(root or self.work.provisional)
        results = evaluate_launches(done, catalog, "local")
        told = SELECTION, done, results, catalog, self.said.append
        learn_other_places(self.work, session, *told)
        return next(each.verdict for each in results if each.case == CASE)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_launches_elsewhere_make_a_reference_of_their_place_and_move_no_other(machine: Machine):
    before = machine.reference(NEAR)
    for number in range(LEAST_ELSEWHERE):
        assert machine.reference(FAR) is None
        assert machine.night(number, FAR, 2 + number / 50) == Verdict.PROVISIONAL
    far, after = machine.reference(FAR), machine.reference(NEAR)
    assert far and far.launches == LEAST_ELSEWHERE and machine.said
    assert before and after and (before.center, before.launches) == (after.center, after.launches)
    assert before.center * 1.7 < far.center < before.center * 2.5


def test_a_night_among_known_places_teaches_nothing(machine: Machine):
    before = machine.reference(NEAR)
    assert machine.night(1, NEAR, 1.5) != Verdict.NOT_COMPARABLE
    assert machine.reference(NEAR) == before and not machine.said


def test_a_gross_change_elsewhere_is_not_learned(machine: Machine):
    assert machine.night(1, FAR, 200.0) == Verdict.NOT_COMPARABLE
    assert not machine.said


def test_reviewed_references_learn_nothing(machine: Machine):
    reviewed = machine.work.source / "reference_data"
    reviewed.parent.mkdir()
    machine.work.provisional.rename(reviewed)
    assert machine.night(1, FAR, 2.0, reviewed) == Verdict.PROVISIONAL
    assert not machine.work.provisional.exists() and not machine.said
