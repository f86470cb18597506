"""Another binding than that of the references, on a real MPI: not comparable, unless the site accepts it."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from postprocess.references import decisions, provenance
from postprocess.references.reference_file import locate_references
from tests.support.faults import Declared, plants
from tests.support.mpi import of_family
from tests.support.nights import MEASURED
from tests.support.plumbline_runner import ROOT, Ended, Workshop

pytestmark = pytest.mark.long

QUICK = ("--program", "mpicost", "--routine", "barrier,bcast", "--processes", "2", "--trials", "31")
REASON = "the nodes were rewired in May"


@pytest.fixture(scope="module")
def rewired(workshop: Workshop) -> Path:
    """References of this machine and a moment ago, but for the binding that they tell."""
    name, root = of_family("mpich").name, workshop.home / "calibrated"
    chosen = ("--environment", name, *QUICK, "--launches", "2", "--output", str(root))
    workshop.run("calibrate", *chosen).expect(0)
    path = provenance.locate_provenance(locate_references(root, "local", "cpu", name))
    origin = json.loads(path.read_text())
    for calibration in provenance.list_calibrations(origin["programs"]["mpicost"]):
        calibration["circumstances"]["binding"] = {"2x2": "2 ranks of 64 CPUs shared by 2"}
    path.write_text(json.dumps(origin))
    return root


def measured(workshop: Workshop, root: Path, *more: str) -> Ended:
    name = of_family("mpich").name
    return workshop.measure("--environment", name, *QUICK, "--references", str(root), *more)


@plants("references", "measured with another binding", "references of a session", "not-comparable", 1,
        "binding is '2 ranks of …, and '2 ranks of 64 CPUs shared by 2'")  # fmt: skip
def test_another_binding_is_not_comparable(workshop: Workshop, rewired: Path, declared: Declared):
    declared.check_session(measured(workshop, rewired))


def test_the_site_may_accept_it_and_it_is_told(workshop: Workshop, rewired: Path) -> None:
    site = workshop.home / "accepting.py"
    text = (ROOT / "site_configs" / "local.py").read_text()
    accept = f'    accept={{"binding": "{REASON}"}},\n    partitions=['
    site.write_text(text.replace("    partitions=[", accept, 1))
    ended = measured(workshop, rewired, "--site", str(site))
    assert set(ended.verdicts().values()) <= MEASURED, ended.reasons()
    (note,) = (note for note in ended.summary["notes"] if REASON in note)
    assert "compared although binding is" in note
    assert REASON in ended.said


def row(**changes: str) -> str:
    """A row that expects what is measured here not to be comparable."""
    cells = dict.fromkeys(decisions.COLUMNS, "*") | {
        "environment": "mpich*",
        "verdicts": "not-comparable",
        "factor": "-",
        "reason": "calibrated again next week",
        "ticket": "",
        "expires": str(date.today() + timedelta(days=7)),
    }
    return "\t".join((cells | changes)[column] for column in decisions.COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({}, 0, marks=plants(
            "references", "measured with another binding, which the site expects",
            "references of a session", "not-comparable", 0, "binding is '2 ranks of ")),
        pytest.param({"expires": "2026-01-31"}, 1, marks=plants(
            "references", "measured with another binding, which the site expected until yesterday",
            "references of a session", "not-comparable", 1, "binding is '2 ranks of ")),
    ],
)  # fmt: skip
def test_just_what_is_expected_does_not_fail(workshop, rewired, changes, status, declared):
    path = rewired / "local" / decisions.NAME
    path.write_text("\t".join(decisions.COLUMNS) + f"\n{row(**changes)}")
    try:
        ended = measured(workshop, rewired)
    finally:
        path.unlink()
    declared.check_session(ended)
    assert ended.summary["exit_status"] == status
    excused = [case["routine"] for case in ended.summary["cases"] if case["expected"]]
    assert bool(excused) == (status == 0)
    assert ("failed as expected" in ended.said) == bool(excused)
    notes = " ".join(ended.summary["notes"])
    assert ("row 2: expired on 2026-01-31; remove or renew it" in notes) == ("expires" in changes)


@plants("environment", "a variable of the MPI that the references were measured with", "the shell",
        "not-comparable", 1,
        "shell variable MPIR_CVAR_BCAST_MIN_PROCS is unset, and '8' in ")  # fmt: skip
def test_what_the_shell_sets_for_an_mpi_must_be_the_same(workshop: Workshop, declared: Declared):
    name, root = of_family("mpich").name, workshop.home / "in-another-shell"
    chosen = ("--environment", name, *QUICK, "--launches", "1", "--output", str(root))
    ended = workshop.run("calibrate", *chosen, MPIR_CVAR_BCAST_MIN_PROCS="8").expect(0)
    declared.check_session(measured(workshop, root))
    words = ("--environment", name, *QUICK, "--references", str(root))
    ended = workshop.measure(*words, MPIR_CVAR_BCAST_MIN_PROCS="8")
    assert "not-comparable" not in ended.verdicts().values(), ended.reasons()
    assert "incorrect" not in ended.verdicts().values(), ended.reasons()
