"""The checks under a site's own ReFrame, with configurations that know nothing of Plumbline."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mpi import mpi_installations
from tests.support.paths import DATA, ROOT
from tests.support.plumbline_runner import Ended, Workshop

FEW = ("-n", "luecke", "-S", "luecke.routines=barrier")
SITES = DATA / "sites"
PREFIXES = {
    f"TEST_{mpi.family.upper().replace('-', '_')}": str(mpi.prefix) for mpi in mpi_installations()
}
ENVIRONMENTS = {
    "features.py": {"default"},
    "programming_environments.py": {"PrgEnv-gnu", "PrgEnv-intel"},
}


def reframe(workshop: Workshop, site: Path, *words: str, **more: str) -> Ended:
    """Run a plain ReFrame, outside of the source and without PYTHONPATH."""
    report = workshop.home / "reframe.json"
    report.unlink(missing_ok=True)
    variables = workshop.environment({**PREFIXES, **more})
    variables.pop("PYTHONPATH", None)
    command = [str(Path(sys.executable).parent / "reframe"), "--nocolor", "-C", str(site)]
    command += ["-c", str(ROOT / "reframe_checks"), "--prefix", str(workshop.home / "reframe")]
    command += ["--report-file", str(report), "--performance-report", *words]
    ended = subprocess.run(
        [*command, "-S", "luecke.cache=warm"],
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


@pytest.fixture(scope="module")
def first(workshop: Workshop) -> Ended:
    return reframe(workshop, SITES / "features.py", *FEW, "-r")


def assert_no_case_passed(ended: Ended, site: str) -> None:
    assert ended.status == 1, ended.output
    assert {case["environ"] for case in launches(ended)} == ENVIRONMENTS[site]
    for case in launches(ended):
        assert case["result"] == "fail"
        assert "no-reference: barrier_0; calibrate it:" in case["fail_reason"], ended.output


def test_without_a_reference_no_case_passes(workshop: Workshop, first: Ended) -> None:
    assert_no_case_passed(first, "features.py")
    strict = "luecke.strict=False"
    ended = reframe(workshop, SITES / "features.py", *FEW, "-S", strict, "--repeat=2", "-r")
    assert ended.status == 0 and len(launches(ended)) == 2, ended.output


def test_environments_with_an_mpi_are_found_by_feature_and_started_without_a_launcher(
    workshop: Workshop,
) -> None:
    """The environment of a compiler alone, beside them, measures nothing unless its path has an ``mpicc``."""
    name = "programming_environments.py"
    choice = ("-p", "PrgEnv-.*", "--mode=production")
    assert_no_case_passed(reframe(workshop, SITES / name, *FEW, *choice, "-r"), name)


def test_a_partition_of_unknown_cores_fails(workshop: Workshop, tmp_path: Path) -> None:
    """ReFrame passes a run of no test."""
    site = tmp_path / "site.py"
    text = (SITES / "features.py").read_text()
    site.write_text(
        "".join(line for line in text.splitlines(True) if '"processor"' not in line).replace(
            '"local"', '"slurm"'
        )
    )
    ended = reframe(workshop, site, *FEW, "--dry-run")
    assert ended.status == 1 and "cores: unknown; write num_cpus" in ended.output, ended.output


@pytest.mark.long
def test_the_command_of_the_failure_calibrates(workshop: Workshop, first: Ended) -> None:
    """Then the case is asserted against its reference."""
    (case,) = launches(first)
    _, _, told = case["fail_reason"].partition("calibrate it: ")
    words = shlex.split(told.partition(";")[0])
    few = ("--routine", "barrier", "--launches", "2")
    done = workshop.run(*words[1:], *few, **PREFIXES)
    assert done.status == 0, done.output + done.errors
    again = reframe(workshop, SITES / "features.py", *FEW, "-r")
    (held,) = launches(again)
    value, reference, *_ = next(iter(held["perfvalues"].values()))
    assert reference and value, again.output
    assert "no-reference" not in (held["fail_reason"] or "")
    assert "not-comparable" not in (held["fail_reason"] or "")


def test_what_plain_reframe_ran_is_judged_and_stored(workshop: Workshop) -> None:
    """Two launches, each with a number of its own; a report that is named twice counts nothing twice."""
    site, report = str(SITES / "features.py"), str(workshop.home / "reframe.json")
    words = ("-S", "luecke.strict=False", "--repeat=2", "-r")
    assert reframe(workshop, Path(site), *FEW, *words).status == 0
    done = workshop.measure("--site", site, report, command="import", **PREFIXES)
    (case,) = done.summary["cases"]
    assert case["value"] and case["launches"] == 2, done.output
    assert case["verdict"] in ("no-reference", "pass", "provisional", "regressed", "fast")
    assert any("nothing was measured again" in note for note in done.summary["notes"])
    stored = list((workshop.home / "store").glob(f"{done.summary['session']}.*"))
    assert len(stored) == 1
    twice = workshop.run("import", "--site", site, report, report, **PREFIXES)
    assert twice.status == 2 and "is of two runs, or was named twice" in twice.errors


def test_a_report_whose_files_are_gone_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    """Nothing would tell of what the test was to measure."""
    case = {"unique_name": "luecke_0", "system": "s", "partition": "p", "environ": "e"}
    case |= {"maintainers": ["plumbline"], "result": "pass", "stagedir": "", "outputdir": ""}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"runs": [{"testcases": [case]}]}))
    ended = workshop.run("import", "--site", str(SITES / "features.py"), str(report))
    assert ended.status == 2 and "luecke_0: its files are gone" in ended.errors
