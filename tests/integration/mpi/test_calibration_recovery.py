"""A calibration that was killed in the middle, with a real MPI: nothing that ended is lost, nor taken twice."""

import json
from pathlib import Path

import pytest

from postprocess.calibration import ledger
from postprocess.references import provenance, reference_file
from tests.support.factories.ledger import launches_behind
from tests.support.faults import Declared, plants
from tests.support.mpi import of_family
from tests.support.plumbline_runner import Workshop

pytestmark = pytest.mark.long

LAUNCHES = 12  #: more than can end between the first and the news of it


@plants("lost", "SIGKILL of the driver after a launch", "a calibration", "", 0, "that ended count")
def test_a_killed_calibration_is_completed_by_the_same_command(tmp_path: Path, declared: Declared):
    mpich, workshop = of_family("mpich"), Workshop(tmp_path / "home")
    words = ["calibrate", "--environment", mpich.name, "--mpis", "mpich", "--program", "mpicost"]
    words += ["--routine", "barrier", "--trials", "5", "--launches", str(LAUNCHES)]
    killed = workshop.start(*words)
    workshop.wait_for_first_launch()
    killed.kill()
    said = killed.communicate()
    assert not list(ledger.locate_ledger(workshop.home).glob("*.json")), said

    proposed = workshop.run("references", "propose", "--site", "local").expect(0)
    there = len(ledger.read_ledger(workshop.home))
    assert 1 <= there < LAUNCHES
    assert f"its {there} launch" in proposed.said
    declared.check((), proposed.status, [proposed.output])

    again = workshop.run(*words).expect(0)
    assert f"{there} of {LAUNCHES} launches are there; taking {LAUNCHES - there}" in again.said
    path = reference_file.locate_references(workshop.home / "references", "local", "cpu", mpich.name)
    known = reference_file.load_references(path, "local", "cpu", mpich.name)
    assert {reference.launches for reference in known.values()} == {LAUNCHES}
    entry = json.loads(provenance.locate_provenance(path).read_text())["programs"]["mpicost"]
    for case in known:
        sessions = [each["session"] for each in launches_behind(entry, case.key)]
        assert len(sessions) == LAUNCHES and len(set(sessions)) == 2

    aged = workshop.run("references", "age").expect(0)
    assert "differences between days are not in them" in aged.said and "0 stale" in aged.said
