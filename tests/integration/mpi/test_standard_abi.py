"""One mpicost of the standard ABI on two real MPIs: MPICH 5 and Intel MPI, both from wheels."""

import json
import shutil
from pathlib import Path

import pytest

from site_configs.mpi.layers import LIBRARY, find_abi_folder
from tests.support.faults import Declared, plants
from tests.support.mpi import Installation, of_family
from tests.support.plumbline_runner import Ended, Workshop

FEW = ("--program", "mpicost", "--routine", "bcast", "--bytes", "8", "--processes", "2")
BOTH = ("mpich+abi", "intel-mpi+abi")


@pytest.fixture(scope="module")
def intel() -> Installation:
    return of_family("intel-mpi")


@pytest.fixture(scope="module", autouse=True)
def both_have_it(mpich: Installation, intel: Installation) -> None:
    if not all(find_abi_folder(installation.prefix) for installation in (mpich, intel)):
        pytest.skip("not two MPIs with the standard ABI: MPICH 5 and Intel MPI 2021.19 from wheels")


def read_runs(workshop: Workshop) -> dict[str, dict]:
    """The run record of each MPI's launch in the last session, by the MPI's text."""
    session = max((workshop.home / "sessions").iterdir())
    files = sorted((session / "raw").glob("*.jsonl"))
    runs = [json.loads(path.read_text().splitlines()[0]) for path in files]
    return {run["mpi_library"].split()[0]: run for run in runs}


@pytest.fixture(scope="module")
def night(workshop: Workshop) -> Ended:
    """A night with both. Strict: nothing is calibrated before."""
    return workshop.measure("--mpis", ",".join(BOTH), *FEW, "--strict")


def test_both_ran_the_same_file_each_on_its_own_library(workshop: Workshop, night: Ended, mpich, intel):
    names = {f"{each.name}-abi" for each in (mpich, intel)}
    assert {case["environment"] for case in night.summary["cases"]} == names, night.errors
    verdicts = night.verdicts()
    assert verdicts and set(verdicts.values()) == {"no-reference"}, verdicts
    told = {name: run["standard_abi"] for name, run in read_runs(workshop).items()}
    assert set(told) == {"MPICH", "Intel(R)"}
    assert len({each["program"] for each in told.values()}) == 1
    assert {each["version"] for each in told.values()} == {"1.0"}
    for name, each in (("MPICH", mpich), ("Intel(R)", intel)):
        assert told[name]["library"].startswith(f"{each.prefix.resolve()}/")
    assert len(list((workshop.home / "build").glob("*/CMakeCache.txt"))) == 1


@pytest.mark.long
def test_each_side_of_a_comparison_says_that_it_ran_the_same_file(workshop: Workshop, night: Ended, tmp_path):
    folder = tmp_path / "dossier"
    plant = ("--plant", "slower-100:bcast")  # the witness and the delay library are of the same build
    brief = ("--trials", "5", "--seconds", "120")
    ended = workshop.run("compare", *BOTH, *FEW, *plant, *brief, "--output", str(folder))
    assert (folder / "comparison.json").exists(), ended.output + ended.errors
    found = json.loads((folder / "comparison.json").read_text())
    assert found["shared_program"].startswith("Both sides ran the same file ("), ended.errors
    assert found["shared_program"] in ended.said
    assert found["counts"] and not {"broken", "failed", "only old", "only new"} & {*found["counts"]}, (
        ended.output
    )


@plants("builds", "an MPI that has no standard ABI", "--mpis", "", 2,
        "openmpi+abi: cannot be had on this machine: it has no standard ABI of MPI: no libmpi_abi")  # fmt: skip
def test_an_mpi_without_it_is_refused(workshop: Workshop, declared: Declared):
    ended = workshop.run("run", "--mpis", "openmpi+abi", *FEW)
    *_, last = ended.errors.splitlines(keepends=True)
    declared.check_refusal(Ended(ended.status, ended.output, last))


@plants("builds", "the library of another MPI in the place of the one named", "LD_LIBRARY_PATH of a launch",
        "incorrect", 1, "ran on …, not on … | started 2 singleton processes")  # fmt: skip
def test_a_library_that_is_not_the_one_named_is_seen(workshop, night, mpich, intel, declared: Declared):
    other = f"--set-env={mpich.name}-abi:LD_LIBRARY_PATH={find_abi_folder(intel.prefix)}"
    declared.check_session(workshop.measure("--mpis", "mpich+abi", *FEW, other, "--strict"))


@plants("builds", "a library of the standard ABI that is another MPI's", "a prefix", "", 2,
        "cannot be had on this machine: …libmpi_abi.so.1 is of another MPI: Intel(R) MPI Library | "
        "cannot be had on this machine: no program of the standard ABI runs on it")  # fmt: skip
def test_a_prefix_with_the_library_of_another_mpi_is_refused(
    workshop, mpich, intel, tmp_path, declared: Declared
):
    prefix = tmp_path / "mpich"
    shutil.copytree(mpich.prefix, prefix, symlinks=True)
    (prefix / "lib" / LIBRARY).unlink()
    (prefix / "lib" / LIBRARY).symlink_to(Path(find_abi_folder(intel.prefix) or "", LIBRARY))
    ended = workshop.run("run", "--mpis", f"{prefix}+abi", *FEW)
    *_, last = ended.errors.splitlines(keepends=True)
    declared.check_refusal(Ended(ended.status, ended.output, last))
