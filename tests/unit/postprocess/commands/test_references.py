"""References of launches in the ledger: proposed, computed anew of stored trials, and taken back by session."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.calibration import ledger
from postprocess.calibration.ledger import CalibrationHeader, collect_launches
from postprocess.calibration.update import update_references
from postprocess.commands.references import MOST_LINES, MOST_ROWS
from postprocess.judging.evaluate import evaluate_launches
from postprocess.main import main
from postprocess.references.catalog import ReferenceCatalog
from postprocess.references.reference_file import load_references, locate_references
from postprocess.results.store import build_rows, write_session
from tests.support.factories.launch import CASES, PLACE, case, finished
from tests.support.factories.ledger import launch

FIRST, SECOND = "20261121T090000Z-1", "20261122T090000Z-1"


class Machine:
    """A work directory with a calibration of four launches, stored with their trials."""

    def __init__(self, work) -> None:
        self.work = work
        self.folder = work.sessions / FIRST
        self.folder.mkdir(parents=True)
        done = [finished(self.folder, 1 + n / 100, number=n) for n in range(1, 5)]
        self.launches = collect_launches(CalibrationHeader(FIRST), self.folder, done)
        results = evaluate_launches(done, ReferenceCatalog(), "local")
        work.store.mkdir(parents=True, exist_ok=True)
        rows = build_rows(FIRST, "2026-11-21T09:00:00Z", done, results, "calibrate")
        write_session(work.store / f"{FIRST}.parquet", rows)

    def run(self, *words: str) -> int:
        return main(str(self.work.source), str(self.work.root), ["references", *words])

    def center(self) -> float:
        path = locate_references(self.work.provisional, *PLACE)
        return load_references(path, *PLACE)[CASES[0]].center


@pytest.fixture
def machine(work) -> Machine:
    return Machine(work)


def test_a_proposal_of_many_cases_is_summarised_and_listed_in_a_file(work, capfd, tmp_path):
    """The difference of so many lines is in a file only."""
    report = tmp_path / "proposal.json"
    many = sorted(case("bcast", 8 * size) for size in range(1, 2 * MOST_ROWS))
    launches = [launch(1.0, day, cases=many) for day in (1, 2, 3)]
    ledger.append_launches(work.root, SECOND, launches)
    assert main(str(work.source), str(work.root), ["references", "propose", "--json", str(report)]) == 0
    told = capfd.readouterr().out.splitlines()
    assert sum(many[0].key.split(":bcast:")[0] in line for line in told) == 1
    assert len(told) < MOST_LINES
    (proposal,) = json.loads(report.read_text())["proposals"]
    assert len(proposal["cases"]) == len(many)


def test_values_follow_from_stored_trials_whatever_the_ledger_judged_by(machine: Machine, capfd):
    headlines = [replace(each, values=each.headlines, headlines={}) for each in machine.launches]
    ledger.append_launches(machine.work.root, FIRST, headlines)
    update_references(machine.work.provisional, headlines)
    before = machine.center()
    assert machine.run("recompute") == 0
    assert ledger.read_ledger(machine.work.root) == machine.launches
    assert machine.center() < before  # the fastest quarter is faster than the mean
    assert "4 cases moved" in " ".join(capfd.readouterr().out.split())
    assert machine.run("recompute") == 0
    assert "nothing moved" in " ".join(capfd.readouterr().out.split())


def test_launches_without_stored_trials_stay_and_are_counted(machine: Machine, capfd):
    ledger.append_launches(machine.work.root, SECOND, machine.launches)
    assert machine.run("recompute") == 0
    assert "4 launches of 4 have no trials in the store" in " ".join(capfd.readouterr().out.split())


def test_a_session_is_forgotten_and_its_file_kept(machine: Machine, capfd):
    later = [
        replace(each, session=SECOND, values={key: 2 * v for key, v in each.values.items()})
        for each in machine.launches
    ]
    for session, some in ((FIRST, machine.launches), (SECOND, later)):
        ledger.append_launches(machine.work.root, session, some)
    update_references(machine.work.provisional, machine.launches)
    before = machine.center()
    update_references(machine.work.provisional, [*machine.launches, *later])
    assert machine.center() > before
    assert machine.run("forget", SECOND) == 0
    assert machine.center() == pytest.approx(before)
    folder = ledger.locate_ledger(Path(machine.work.root))
    assert (folder / f"{SECOND}.forgotten").exists()
    capfd.readouterr()
    assert machine.run("forget", SECOND) == 2
    assert f"{SECOND}: has taught no reference" in capfd.readouterr().err
