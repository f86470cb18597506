"""The checks under a site's own ReFrame, with configurations that know nothing of Plumbline."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postprocess.calibration.ledger import CalibrationHeader, collect_launches
from postprocess.calibration.update import update_references
from postprocess.main import main
from postprocess.model.session import Session
from postprocess.references.reference_file import load_references
from postprocess.runner.reframe import ReframeDriver
from postprocess.session.nightly.imported import import_launch, number_launches, read_imported_tests
from tests.support.factories.stated_references import restate_references
from tests.support.faults import Declared, plants
from tests.support.mpi import fault_library, mpi_installations, of_family
from tests.support.paths import DATA, ROOT
from tests.support.plumbline_runner import Ended, Workshop

FEATURES, CENTRE = (DATA / "sites" / f"{name}.py" for name in ("features", "programming_environments"))
PREFIXES = {f"TEST_{mpi.family.upper().replace('-', '_')}": str(mpi.prefix) for mpi in mpi_installations()}
#: The environments of ``CENTRE``: Open MPI, MPICH and Intel MPI.
ENVIRONMENTS = {"PrgEnv-gnu", "PrgEnv-cray", "PrgEnv-intel"}
CHOICE = ("-p", "PrgEnv-.*", "--mode=production", "-S", "mpicost.routines=barrier,bcast")
UNKNOWN = "unknown.json"  #: ReFrame's report of a run without references
BARRIER = ("-S", "mpicost.routines=barrier")
#: Seconds; of references that say what no noise of a shared machine contradicts, and of the planted case,
CENTER, PLANTED = 10.0, 4e-2
SPREAD = 0.5  #: with this spread on the logarithm: the band of that ends at about 0.11 s
SLOW = {"PLANTED_FAULT": "delay", "PLANTED_BYTES": "1000000", "PLANTED_SECONDS": "0.3"}


def reframe(workshop: Workshop, site: Path, *words: str, **more: str) -> Ended:
    """Run a plain ReFrame, outside of the source and without PYTHONPATH."""
    report = workshop.home / "reframe.json"
    report.unlink(missing_ok=True)
    variables = workshop.environment({**PREFIXES, **more})
    variables.pop("PYTHONPATH", None)
    command = [str(Path(sys.executable).parent / "reframe"), "--nocolor", "-C", str(site)]
    command += ["-c", str(ROOT / "reframe_checks"), "--prefix", str(workshop.home / "reframe")]
    command += ["--report-file", str(report), "--performance-report", *words]
    command += [] if "-n" in words else ["-n", "mpicost"]
    ended = subprocess.run(
        [*command, "-S", "mpicost.cache=warm", "-S", "mpicost.trials=3"],
        check=False,
        cwd=workshop.home,
        env=variables,
        text=True,
        capture_output=True,
        timeout=300,
    )
    told = json.loads(report.read_text()) if report.exists() else {}
    return Ended(ended.returncode, ended.stdout, ended.stderr, told)


def launches(ended: Ended) -> list[dict[str, Any]]:
    """What became of the checks, without builds."""
    cases = [case for run in ended.summary["runs"] for case in run["testcases"]]
    return [case for case in cases if not case["fixture"]]


def test_a_routine_is_found_by_name_by_tag_and_by_expression(workshop: Workshop) -> None:
    """And only there: a run of everything has all of them in one launch."""
    for words in (("-n", "bcast"), ("-n", ".", "-E", "routine=='bcast'")):
        (found,) = list_checks(reframe(workshop, FEATURES, *words, "-l"))
        assert found.split()[0] == "routine" and "%routine=bcast" in found
    for words in (("-n", "mpicost"), ("-n", ".", "-t", "mpicost")):
        (found,) = list_checks(reframe(workshop, FEATURES, *words, "-l"))
        assert found.split()[0] == "mpicost" and "routine" not in found
    found = list_checks(reframe(workshop, FEATURES, "-n", ".", "-t", "allreduce", "-l"))
    assert len(found) == 3 and all("%routine=allreduce_" in each for each in found)
    night = list_checks(reframe(workshop, FEATURES, "-n", ".", "-t", "nightly", "-l"))
    assert {each.split()[0] for each in night} == {"mpicost", "osu", "imb"}


def test_the_caches_of_osu_and_imb_can_be_chosen(workshop: Workshop) -> None:
    chosen = ("-S", "osu.cache=warm", "-S", "imb.cache=rotate")
    found = list_checks(reframe(workshop, FEATURES, "-n", "osu|imb", *chosen, "-l"))
    assert {each.split()[0] for each in found} == {"osu", "imb"}


def list_checks(ended: Ended) -> list[str]:
    """The checks that ReFrame lists, without what they build on."""
    assert ended.status == 0, ended.output
    return [line[2:] for line in ended.output.splitlines() if line.startswith("- ")]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A library in front of Open MPI, which plants nothing unless it is told to."""
    library = fault_library(of_family("openmpi"), tmp_path_factory.mktemp("library"))
    return {"TEST_LOADED": str(library)}


@pytest.fixture(scope="module")
def unknown(workshop: Workshop, loaded: dict[str, str]) -> Ended:
    """A run of three MPIs without references."""
    ended = reframe(workshop, CENTRE, *CHOICE, "-r", **loaded)
    shutil.copy(workshop.home / "reframe.json", workshop.home / UNKNOWN)
    return ended


@plants("references", "no reference", "a site's own ReFrame", "no-reference", 1,
        "no-reference: barrier_0, bcast_10000, bcast_1000000 and 1 more; set strict=False, or ")  # fmt: skip
def test_without_a_reference_no_case_passes(unknown: Ended, declared: Declared) -> None:
    """MPIs are found by feature, and started where no launcher is told. A compiler alone measures nothing."""
    assert {case["environ"] for case in launches(unknown)} == ENVIRONMENTS
    for case in launches(unknown):
        assert case["result"] == "fail"
        told = {result for *_, result in case["perfvalues"].values()}
        declared.check(told, unknown.status, [case["fail_reason"]])


@pytest.fixture(scope="module")
def reviewed(workshop: Workshop, unknown: Ended) -> Path:
    """References of what ran, with a stated center and spread."""
    session = Session(workshop.home / "calibrated", "calibrate", str(CENTRE), [], False)
    driver = ReframeDriver(ROOT, workshop.home, session.directory, [], None)
    tests = read_imported_tests(workshop.home / UNKNOWN)
    finished = [import_launch(session, driver, launch) for launch in number_launches(tests, {})]
    header = CalibrationHeader(session.name)
    root = workshop.home / "reviewed"
    for path in update_references(root, collect_launches(header, session.directory, finished)):
        measured = load_references(path, "centre", "login", path.stem)
        planted = [case for case in measured if (path.stem, case.bytes) == ("PrgEnv-gnu", 1_000_000)]
        restate_references(path, CENTER, SPREAD, dict.fromkeys(planted, PLANTED))
    assert {path.stem for path in root.rglob("*.tsv")} == ENVIRONMENTS
    return root


@plants("speed", "a delay of one MPI of three", "a site's own ReFrame", "regressed", 1,
        " times as slow as its reference ")  # fmt: skip
def test_a_planted_slowdown_is_found_and_import_and_nightly_give_the_same_verdicts(
    workshop: Workshop, reviewed: Path, loaded: dict[str, str], tmp_path: Path, declared: Declared
) -> None:
    """Of the same launches, which a launcher repeats for ``nightly``."""
    known = ("-S", f"mpicost.reference_roots={reviewed}")
    replayed = {"TEST_LAUNCHER": f"{sys.executable} {ROOT}/tests/support/replay.py {tmp_path}"}
    ended = reframe(workshop, CENTRE, *CHOICE, *known, "-r", **loaded, **SLOW, **replayed)
    slow = [case for case in launches(ended) if case["result"] == "fail"]
    assert ended.status == 1 and [case["environ"] for case in slow] == ["PrgEnv-gnu"], ended.output
    assert all("failed to meet reference(s): bcast_1000000=" in case["fail_reason"] for case in slow)
    assert len(launches(ended)) == len(ENVIRONMENTS), ended.output
    for case in launches(ended):
        for value, center, lower, upper, unit, _ in case["perfvalues"].values():
            assert unit == "us" and center in (CENTER * 1e6, PLANTED * 1e6) and value < 1e7
            assert -1 < lower < 0 < upper
    summary = tmp_path / "summary.json"
    words = ["--site", str(CENTRE), "--references", str(reviewed), "--json", str(summary)]
    report = str(workshop.home / "reframe.json")
    status = main(str(ROOT), str(workshop.home), ["import", *words, report])
    told = json.loads(summary.read_text())
    regressed = [case for case in told["cases"] if case["verdict"] == "regressed"]
    declared.check({"regressed"}, status, [case["reason"] for case in regressed])
    assert any("no confirmation" in note for note in told["notes"])
    asserted = {
        (case["environ"], name.rpartition(":")[2]): result[-1]
        for case in launches(ended)
        for name, result in case["perfvalues"].items()
    }
    assert len(told["cases"]) == len(asserted) == 4 * len(ENVIRONMENTS)
    for case in told["cases"]:
        said = asserted[case["environment"], f"{case['routine']}_{case['bytes']}"]
        assert case["verdict"] in {"fail": {"regressed"}, "pass": {"pass", "fast"}}[said], case
        assert case["reference"] == pytest.approx(PLANTED if said == "fail" else CENTER)
    assert list(asserted.values()).count("fail") == 1
    words = ["--site", str(CENTRE), "--references", str(reviewed), "--program", "mpicost"]
    words += ["--routine", "barrier,bcast", "--trials", "3", "--launches", "1", "--strict"]
    night = workshop.measure(*words, command="nightly", **PREFIXES, **loaded, **replayed).summary
    # What looks slow is measured again there, and may be left to the next night.
    slow = {"regressed", "suspect"}
    imported, repeated = (
        {(case["key"], case["value"], case["verdict"] in slow) for case in each["cases"]}
        for each in (told, night)
    )
    assert imported == repeated


@plants("schedulers", "a partition of unknown cores", "a site's own configuration of ReFrame", "", 1,
        "cores: unknown; write num_cpus")  # fmt: skip
def test_an_mpi_is_found_by_its_wrapper_and_a_partition_of_unknown_cores_fails(
    workshop: Workshop, tmp_path: Path, declared: Declared
) -> None:
    """ReFrame passes a run of no test."""
    site = tmp_path / "site.py"
    other = '{"name": "other", "scheduler": "slurm", "launcher": "srun", "environs": ["default"]}'
    text = FEATURES.read_text()
    site.write_text(text.replace('"partitions": [', f'"partitions": [{other},'))
    ended = reframe(workshop, site, *BARRIER, "--dry-run")
    declared.check((), ended.status, [ended.output])
    found = {(case["partition"], case["environ"], case["result"]) for case in launches(ended)}
    assert found == {("x86_64", "default", "pass"), ("other", "default", "fail")}


@plants("environment", "no MPI", "a site's own ReFrame with our site file", "", 1,
        "no MPI on PATH or in modules: run ./plumbline setup")  # fmt: skip
def test_our_own_site_without_an_mpi_ends_a_plain_reframe_in_one_line(tmp_path, declared):
    """Before any ``./plumbline setup``; with an MPI on the path it offers that one."""
    reframe = str(Path(sys.executable).parent / "reframe")
    words = [reframe, "--nocolor", "-C", str(ROOT / "site_configs" / "local.py")]
    own = {"PATH": str(tmp_path), "PLUMBLINE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = [*words, "-c", str(ROOT / "reframe_checks"), "-l"]
    ended = subprocess.run(command, check=False, env=own, text=True, capture_output=True)
    said = (ended.stdout + ended.stderr).splitlines()
    assert len(said) == 2, said  # and where the log is
    declared.check((), ended.returncode, said[:1])


@plants("environment", "a package that is not there, or another one of the name of ours",
        "a site's own ReFrame", "", 1,
        "plumbline: …: not in this ReFrame's Python; | plumbline: … hides ")  # fmt: skip
@pytest.mark.parametrize("what", ["lacks a package", "has another package of a name of ours"])
def test_a_reframe_that_cannot_load_the_checks_fails(workshop, tmp_path, what, declared):
    """ReFrame passes a run whose checks do not load."""
    told = f"scipy: not in this ReFrame's Python; {sys.executable} -m pip install scipy"
    start = "sys.modules['scipy'] = None"
    if what.startswith("has"):
        other = tmp_path / "spack_envs" / "__init__.py"
        other.parent.mkdir()
        other.touch()
        told = f"{other} hides {ROOT / 'spack_envs'}; take {tmp_path} off PYTHONPATH"
        start = f"sys.path.insert(0, {str(tmp_path)!r})"
    checks = str(ROOT / "reframe_checks")
    words = ["reframe", "-C", str(FEATURES), "-c", checks, "--prefix", str(workshop.home), "-l"]
    start = f"import sys; {start}; sys.argv = {words!r}; from reframe.frontend import cli"
    ended = subprocess.run(
        [sys.executable, "-c", f"{start}; cli.main()"],
        check=False,
        cwd=workshop.home,
        env=workshop.environment(PREFIXES),
        text=True,
        capture_output=True,
    )
    declared.check((), ended.returncode, [ended.stderr])
    assert ended.stderr.endswith(f"plumbline: {told}\n"), ended.stdout + ended.stderr


def test_the_command_of_the_failure_calibrates(workshop: Workshop) -> None:
    """Then the case is asserted against its reference. Before, it passes only if nothing is to be asserted."""
    loose = reframe(workshop, FEATURES, *BARRIER, "-S", "mpicost.strict=False", "-r")
    assert loose.status == 0 and len(launches(loose)) == 1, loose.output
    first = reframe(workshop, FEATURES, *BARRIER, "-r")
    (case,) = launches(first)
    _, _, told = case["fail_reason"].partition("calibrate it:")
    words = shlex.split(told.split("\n")[1])
    few = ("--routine", "barrier", "--launches", "2")
    workshop.run(*words[1:], *few, **PREFIXES).expect(0)
    again = reframe(workshop, FEATURES, *BARRIER, "-r")
    (held,) = launches(again)
    value, reference, *_ = next(iter(held["perfvalues"].values()))
    assert reference and value, again.output
    assert "no-reference" not in (held["fail_reason"] or "")
    assert "not-comparable" not in (held["fail_reason"] or "")


def test_a_benchmark_that_the_site_has_is_measured_and_imported(workshop, reviewed, tmp_path):
    """IMB of Intel MPI, of which the references of mpicost know nothing.

    Its launch and how it was built stand in the test's own folder.
    """
    words = ["-n", "imb", "-p", "PrgEnv-intel", "-S", "imb.routines=bcast", "-S", "imb.sizes=8,16"]
    ended = reframe(workshop, CENTRE, *words, "-S", f"imb.reference_roots={reviewed}", "-r")
    (case,) = launches(ended)
    assert "no-reference: bcast_16, bcast_8; set strict=False, or calibrate it:" in case["fail_reason"], (
        ended.output
    )
    summary, report = tmp_path / "summary.json", str(workshop.home / "reframe.json")
    words = ["--site", str(CENTRE), "--references", str(reviewed), "--json", str(summary)]
    assert main(str(ROOT), str(workshop.home), ["import", *words, report]) == 1
    cases = json.loads(summary.read_text())["cases"]
    found = {(case["program"], case["bytes"], case["verdict"]) for case in cases}
    assert found == {("imb", size, "no-reference") for size in (8, 16)}
