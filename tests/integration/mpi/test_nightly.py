"""A first night and a second one, as a user has them, without Spack and with it."""

import os
from pathlib import Path

import pytest

from postprocess.references import provenance
from postprocess.references.catalog import read_provenance
from postprocess.references.reference_file import load_references, locate_references
from tests.support.interactive_job import IN_A_JOB
from tests.support.mpi import mpi_installations, of_family
from tests.support.nights import FEW, night, programs, written_to_sources
from tests.support.plumbline_runner import ROOT, Ended, Workshop

CASES = 4  #: ping-pong at three sizes, and the barrier


@pytest.fixture(scope="module")
def name() -> str:
    """One MPI: that a night has all of the machine is seen in its plan, without 20 launches of each."""
    return of_family("mpich").name


@pytest.fixture(scope="module")
def first(workshop: Workshop, name: str) -> Ended:
    return night(workshop, name)


def test_first_night_calibrates_and_says_so(workshop: Workshop, first: Ended, name: str) -> None:
    assert [case["environment"] for case in first.summary["cases"]] == [name] * CASES
    assert "calibrating with 20 launches. All of them are of one hour" in first.said
    path = locate_references(workshop.home / "references", "local", "cpu", name)
    known = load_references(path, "local", "cpu", name)
    assert [reference.launches for reference in known.values()] == [20] * CASES


def test_no_launch_begins_on_processors_that_were_idle(workshop: Workshop, first: Ended, name: str) -> None:
    """And the references tell so: launches that do not settle compare with nothing of these."""
    path = locate_references(workshop.home / "references", "local", "cpu", name)
    told = provenance.list_calibrations(read_provenance(path)["programs"]["mpicost"])
    assert {each["method"]["settle"] for each in told} == {0.5}


def test_second_night_finds_everything_done(workshop: Workshop, first: Ended, name: str) -> None:
    """And runs well in an interactive job of a batch system, to whose nodes no launch shall go."""
    built = programs(workshop, name)
    again = night(workshop, name, **IN_A_JOB)
    assert programs(workshop, name) == built
    assert "calibrating" not in again.said and "installing" not in again.said
    assert again.verdicts().keys() == first.verdicts().keys()
    assert {case["launches"] for case in again.summary["cases"]} == {len(again.summary["launches"])}
    assert not written_to_sources()


@pytest.fixture(scope="module")
def others(workshop: Workshop, name: str) -> Ended:
    """A night of all other MPIs in such a job. Strict: nothing is calibrated before."""
    chosen = [mpi.name for mpi in mpi_installations() if mpi.name != name]
    return workshop.measure(*FEW, "--environment", ",".join(chosen), "--strict", **IN_A_JOB)


def test_no_launch_of_another_mpi_goes_to_the_nodes_of_a_job(others: Ended, name: str) -> None:
    expected = {mpi.name for mpi in mpi_installations()} - {name}
    assert {case["environment"] for case in others.summary["cases"]} == expected
    assert set(others.verdicts().values()) == {"no-reference"}, others.reasons()


@pytest.mark.long
def test_commands_that_look_at_what_there_is(workshop: Workshop, others: Ended) -> None:
    mpi = of_family("openmpi")
    found = workshop.run("where", "mpicc", "--environment", mpi.name).output.strip()
    assert found == str(workshop.home / "mpi" / Path(mpi.mpicc).relative_to(mpi.prefix.parent))
    assert os.access(workshop.run("where", "mpicost", "--environment", mpi.name).output.strip(), os.X_OK)
    listed = workshop.run("list", "--environment", mpi.name, *FEW)
    assert listed.status == 0 and f"{CASES} cases in " in listed.said
    assert workshop.run("report").status == others.status == 1
    # All sites are a step of .ci/run; launches of a busy machine may differ by more than lint allows.
    assert workshop.run("lint", str(ROOT / "site_configs" / "local.py")).status == 0
    assert mpi.name in workshop.run("doctor").output
