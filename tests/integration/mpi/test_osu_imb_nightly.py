"""OSU and IMB beside mpicost, as a user runs them where there is no Spack: IMB from Intel MPI's wheel."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.model.reference import Reference
from postprocess.references import provenance
from postprocess.references.reference_file import load_references, locate_references
from postprocess.results.store import read_sessions
from tests.support.factories.stated_references import write_stated_references
from tests.support.faults import Declared, plants
from tests.support.mpi import of_family
from tests.support.nights import MEASURED
from tests.support.plumbline_runner import Ended, Workshop
from tests.support.witness import family_here

pytestmark = pytest.mark.long

#: Large enough that no rate is printed as 0.00, however busy the machine is.
SIZES = (1024, 65536)
WINDOWS = {"uniband", "biband"}  #: a fifth of the iterations, of 64 messages each
SHORT = ("--iterations", "20", "--processes", "2", "--bytes", ",".join(map(str, SIZES)))
ROUTINES = ("allreduce_sum", "pingpong", "uniband")
#: And one of each executable of IMB, and one that has no sizes.
MORE = (*ROUTINES, "barrier", "iallreduce_sum", "iallreduce_sum.pure", "unidir_put")
IMB = ("--program", "imb", "--routine", ",".join(ROUTINES), *SHORT)
#: Centers and a spread on the logarithm that no noise of a shared machine contradicts, and centers
#: that no machine reaches: half the time, twice the rate of whatever it is.
WIDE, SPREAD = {SECONDS: 1e-3, MEGABYTES: 10.0}, 4.0
NEVER = {SECONDS: 1e-9, MEGABYTES: 1e9}


@pytest.fixture(scope="module")
def environments() -> list[str]:
    """MPICH, whose IMB is Intel's by its binary interface, and Intel MPI itself."""
    return [of_family(family_here(family)).name for family in ("mpich", "intel-mpi")]


@pytest.fixture(scope="module")
def whole(workshop: Workshop, environments: list[str]) -> Ended:
    """Both programs, strictly: nothing is calibrated."""
    chosen = ("--environment", ",".join(environments), "--program", "imb,osu", "--strict")
    return workshop.measure(*chosen, "--routine", ",".join(MORE), *SHORT)


def of_program(ended: Ended, program: str) -> list[dict]:
    return [case for case in ended.summary["cases"] if case["program"] == program]


def test_imb_of_the_wheel_is_measured_with_every_mpi_that_it_fits(whole, environments):
    """Without references ``no-reference`` is a case that was measured and is right."""
    cases = of_program(whole, "imb")
    assert {case["environment"] for case in cases} == set(environments)
    assert {(case["verdict"], case["unit"] in WIDE) for case in cases} == {("no-reference", True)}
    assert all(case["value"] > 0 and case["figures"] for case in cases)
    units = {case["routine"]: case["unit"] for case in cases}
    assert units.keys() == set(MORE)
    assert (units["uniband"], units["pingpong"]) == (MEGABYTES, SECONDS)
    sizes = {case["bytes"] for case in cases if case["routine"] == "allreduce_sum"}
    assert sizes == set(SIZES)


def test_osu_is_skipped_and_counted_where_there_is_no_spack(whole: Ended) -> None:
    cases = of_program(whole, "osu")
    assert {(case["verdict"], case["reason"]) for case in cases} == {("skipped", "no Spack")}
    assert whole.summary["counts"]["skipped"] == len(cases)
    assert f"{len(cases)} skipped" in whole.said
    assert whole.status == 1


def test_what_the_witness_saw_is_stored_with_every_value(whole, workshop, environments):
    frame = read_sessions(workshop.home / "store", [whole.summary["session"]])
    rows = frame.filter(program="imb").to_dicts()
    assert len(rows) == len(of_program(whole, "imb"))
    for row in rows:
        run = json.loads(row["provenance"])
        says = {"mpich": "MPICH Version:", "intel": "Intel(R) MPI Library"}
        assert says[row["environment"].partition("-")[0]] in row["mpi_library"]
        assert run["processes"] == 2 and run["method"]["iterations"] == 20
        repetitions = 4 if row["routine"] in WINDOWS else 20
        assert row["value"] > 0 and json.loads(row["figures"])["#repetitions"] == repetitions


@pytest.fixture(scope="module")
def calibrated(workshop: Workshop, environments: list[str]) -> Path:
    """References of MPICH's IMB, of two launches."""
    root = workshop.home / "calibrated"
    chosen = ("--environment", environments[0], *IMB, "--launches", "2")
    workshop.run("calibrate", *chosen, "--output", str(root)).expect(0)
    return root


def test_a_calibration_of_imb_is_one_of_imb(calibrated: Path, environments: list[str]) -> None:
    path = locate_references(calibrated, "local", "cpu", environments[0])
    known = load_references(path, "local", "cpu", environments[0])
    assert {(case.program, case.routine) for case in known} == {("imb", name) for name in ROUTINES}
    units = {case.routine: reference.unit for case, reference in known.items()}
    assert units == {"allreduce_sum": "s", "pingpong": "s", "uniband": "MB/s"}
    assert {reference.launches for reference in known.values()} == {2}
    programs = json.loads(provenance.locate_provenance(path).read_text())["programs"]
    assert list(programs) == ["imb"]
    (told,) = provenance.list_calibrations(programs["imb"])
    assert told["method"]["iterations"] == 20
    assert provenance.list_calibrated_keys(told) == {case.key for case in known}


def test_what_two_launches_calibrated_a_moment_ago_is_not_called(workshop, calibrated, environments):
    """Two launches condemn nothing of which a program tells a mean alone, whatever the machine does."""
    chosen = ("--environment", environments[0], "--references", str(calibrated))
    ended = workshop.measure(*chosen, *IMB)
    assert set(ended.verdicts().values()) <= MEASURED - {"regressed"}, ended.reasons()
    assert len(ended.verdicts()) == len(ROUTINES) * len(SIZES)
    assert ended.status == 0


@pytest.fixture(scope="module")
def doctored(calibrated: Path, environments: list[str]) -> Path:
    """Settled references that every healthy machine meets, but for one time and one rate."""
    root = calibrated.parent / "doctored"
    paths = [locate_references(path, "local", "cpu", environments[0]) for path in (calibrated, root)]
    rows = [
        replace(reference, center=WIDE[reference.unit], spread=SPREAD, launches=20)
        for reference in load_references(paths[0], "local", "cpu", environments[0]).values()
    ]
    write_stated_references(
        paths[1], map(out_of_reach, rows), json.loads(provenance.locate_provenance(paths[0]).read_text())
    )
    return root


def out_of_reach(known: Reference) -> Reference:
    """The reference that no machine meets, of the cases that are to regress."""
    slow = (known.case.routine, known.case.bytes) in {("allreduce_sum", 1024), ("uniband", 65536)}
    return replace(known, center=NEVER[known.unit], spread=0.1) if slow else known


@plants("speed", "one time and one rate that no machine reaches", "references of IMB", "regressed", 1,
        "as slow as its reference …, above the limit | as slow as its reference …, below the limit"
        )  # fmt: skip
def test_exactly_what_is_slower_than_its_reference_is_regressed(
    workshop: Workshop, doctored: Path, environments: list[str], declared: Declared
) -> None:
    """A time and a rate: both judges, Plumbline and ReFrame, must know which way is worse."""
    name = environments[0]
    ended = workshop.measure("--environment", name, "--references", str(doctored), *IMB)
    found = ended.verdicts()
    slow = {f"{name} allreduce_sum 1024", f"{name} uniband 65536"}
    assert {case for case, verdict in found.items() if verdict == "regressed"} == slow
    assert {found[case] for case in found.keys() - slow} <= {"pass", "fast", "provisional"}
    regressed = [case for case in ended.summary["cases"] if case["verdict"] == "regressed"]
    declared.check({"regressed"}, ended.status, [case["reason"] for case in regressed])
    reasons = {case["routine"]: case["reason"] for case in regressed}
    assert "as slow as its reference 0.001 us" in reasons["allreduce_sum"]
    assert "above the limit" in reasons["allreduce_sum"]
    assert "below the limit" in reasons["uniband"]
    again = f"--environment {name} --program imb --routine uniband --processes 2 --bytes 65536"
    assert again in next(case["rerun"] for case in regressed if case["routine"] == "uniband")


@plants("references", "means over another number of calls", "references of IMB", "not-comparable", 1,
        "iterations is 30, and 20 in")  # fmt: skip
def test_a_mean_over_other_calls_is_another_value(workshop, doctored, environments, declared):
    few = ("--program", "imb", "--routine", "pingpong", "--iterations", "30", "--bytes", "1024")
    chosen = ("--environment", environments[0], "--references", str(doctored), "--processes", "2")
    ended = workshop.measure(*chosen, *few)
    declared.check_session(ended)
