"""Reference benchmarks that misbehave, end to end: each fault has its verdict and hurts only its cases.

OSU is played by ``tests/faults/standin_osu.c``, a program for each benchmark, all in one job. IMB is the
real one, with a script in front of it that spoils its output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from site_configs.common import work_directory
from site_configs.mpi import inventory
from tests.support.mpi import FAULTS, Installation, environment_with, of_family
from tests.support.plumbline_runner import Ended, Workshop
from tests.support.witness import family_here

pytestmark = pytest.mark.long

ROUTINES = {
    **{name: name for name in ("bcast", "scatter", "gather", "allgather", "alltoall")},
    **{name: f"{name}_sum" for name in ("reduce", "allreduce", "reduce_scatter")},
    "latency": "pingpong",
}
HEALTHY, CANNED = "", "canned"
#: A process leaves before MPI_Finalize. MPICH's launcher may be in time to see it, and ends the others.
LEFT_EARLY = {"lost_rank", "no_finalize"}
SITE = """\
from site_configs.common import environment, partition, site
from site_configs.ladder import Topology

site_configuration = site(
    "standins",
    description="benchmarks that misbehave",
    partitions=[partition("cpu", topology=Topology(2, 1), environments=["mpich"])],
    environments=[environment("mpich", {arguments})],
)
"""
#: Of the benchmark: its fault, the verdict of all its cases, and what their reason says.
FIRST = {
    "bcast": (HEALTHY, "no-reference", ""),
    "scatter": ("truncated", "incomplete", "cut off in a line"),
    "gather": ("short", "incomplete", "missing from the output"),
    "allgather": ("wrong_data", "incorrect", "wrong data was received"),
    "alltoall": ("crash", "crashed", "exit code"),
    "reduce": ("lost_rank", "incomplete", "MPI_Finalize"),
    "allreduce": ("foreign", "incorrect", "not planned"),
    "reduce_scatter": (CANNED, "incomplete", "MPI_Finalize"),
    "latency": ("hang", "timeout", "no end within"),
}
SECOND = {
    "bcast": (HEALTHY, "no-reference", ""),
    "scatter": ("silent_data", "incorrect", "wrong data was received"),
    "gather": ("unvalidated", "incomplete", "validated"),
    "allgather": ("iterations", "incorrect", "repetitions"),
    "alltoall": ("noise", "incomplete", "[vm:4711]"),
    "reduce": ("no_finalize", "incomplete", "MPI_Finalize"),
    "allreduce": ("twice", "incomplete", "second"),
    "reduce_scatter": ("exit", "crashed", "exit code 9"),
}


def osu_folder(mpi: Installation, folder: Path) -> Path:
    """A folder with a stand-in for each benchmark, built for an MPI."""
    folder.mkdir()
    program = folder / "osu_bcast"
    words = [mpi.mpicc, "-O1", str(FAULTS / "standin_osu.c"), "-o", str(program)]
    subprocess.run(words, check=True, env=environment_with(mpi))
    for name in ROUTINES.keys() - {"bcast"}:
        os.link(program, folder / f"osu_{name}")
    return folder


def with_canned(folder: Path) -> Path:
    """The same with one program that knows no MPI."""
    path = folder / "osu_reduce_scatter"
    path.unlink()
    shutil.copy(FAULTS / "canned_osu.sh", path)
    path.chmod(0o755)
    return folder


def imb_folder(folder: Path) -> Path:
    """A folder with the script that stands in front of the real IMB."""
    folder.mkdir()
    path = folder / "IMB-MPI1"
    shutil.copy(FAULTS / "wrapped_imb.sh", path)
    path.chmod(0o755)
    return folder


def site_file(workshop: Workshop, name: str, programs: dict[str, Path]) -> str:
    """A site with one environment, MPICH's, that declares these folders."""
    path = workshop.home / f"{name}.py"
    mpi = next(
        each for each in inventory.load_inventory(work_directory()).mpis if each.family == "mpich"
    )
    arguments = {
        "family": mpi.family,
        "library": mpi.library,
        "launcher": list(mpi.launcher),
        "mpicc": mpi.mpicc,
        "programs": {program: str(folder) for program, folder in programs.items()},
    }
    path.write_text(SITE.format(arguments=f"**{arguments!r}"))
    return str(path)


def measure(workshop: Workshop, site: str, program: str, *words: str) -> Ended:
    """Two sizes of the routines named, at two processes. Strict: nothing is calibrated before."""
    options = ("--program", program, "--processes", "2", "--bytes", "8,16", "--strict", *words)
    return workshop.measure("--site", site, *options)


def of_routine(ended: Ended, routine: str) -> tuple[set[str], set[str]]:
    """Verdicts and reasons of its cases."""
    cases = [case for case in ended.summary["cases"] if case["routine"] == routine]
    assert len(cases) == 2
    return {case["verdict"] for case in cases}, {case["reason"] for case in cases}


def play(workshop: Workshop, folder: Path, faults: dict[str, tuple[str, str, str]]) -> Ended:
    """One job in which every benchmark has its fault."""
    played = {name: fault for name, (fault, _, _) in faults.items() if fault not in ("", CANNED)}
    options = [f"--set-env=mpich:STANDIN_osu_{name}={fault}" for name, fault in played.items()]
    routines = ",".join(ROUTINES[name] for name in faults)
    site = site_file(workshop, folder.name, {"osu": folder})
    limit = ("--time-limit", "30") if "hang" in played.values() else ()
    return measure(workshop, site, "osu", "--routine", routines, *limit, *options)


@pytest.fixture(scope="module")
def first(workshop: Workshop) -> Ended:
    folder = with_canned(osu_folder(of_family("mpich"), workshop.home / "first"))
    return play(workshop, folder, FIRST)


@pytest.fixture(scope="module")
def second(workshop: Workshop) -> Ended:
    folder = osu_folder(of_family("mpich"), workshop.home / "second")
    return play(workshop, folder, SECOND)


@pytest.mark.parametrize("name", FIRST)
def test_each_fault_has_its_verdict(first: Ended, name: str) -> None:
    check(first, name, *FIRST[name])


@pytest.mark.parametrize("name", SECOND)
def test_each_of_the_other_faults_has_its_verdict(second: Ended, name: str) -> None:
    check(second, name, *SECOND[name])


def check(ended: Ended, name: str, fault: str, verdict: str, said: str) -> None:
    """What was said of a benchmark's cases."""
    verdicts, reasons = of_routine(ended, ROUTINES[name])
    if fault in LEFT_EARLY and verdicts == {"crashed"}:
        verdict, said = "crashed", "exit code"
    assert verdicts == {verdict}, reasons
    assert all(said in reason for reason in reasons)


def test_faults_are_failures_of_the_session(first: Ended, second: Ended) -> None:
    assert first.status == second.status == 1


@pytest.mark.parametrize(
    ("family", "verdict", "said"),
    [("openmpi", "incomplete", ""), ("intel-mpi", "incorrect", "ran on 'Intel(R) MPI")],
)
def test_benchmark_of_another_mpi_has_no_value(
    family: str, verdict: str, said: str, workshop: Workshop
) -> None:
    """Open MPI's comes as two worlds, which its witness may not touch; Intel's runs, and is named."""
    folder = osu_folder(of_family(family_here(family)), workshop.home / family)
    site = site_file(workshop, f"on_{family}", {"osu": folder})
    ended = measure(workshop, site, "osu", "--routine", "bcast")
    verdicts, reasons = of_routine(ended, "bcast")
    assert verdicts == {verdict}, reasons
    assert all(said in reason for reason in reasons)


@pytest.mark.parametrize(
    ("fault", "verdict", "said"),
    [
        ("", "no-reference", ""),
        ("truncated", "incomplete", "IMB"),
        ("no_end", "incomplete", ""),
        ("out_of_mem", "incomplete", "out-of-mem"),
        ("slow_units", "incomplete", ""),
        ("swallowed", "incomplete", ""),
    ],
)
def test_spoiled_output_of_imb_yields_no_value(
    fault: str, verdict: str, said: str, workshop: Workshop
) -> None:
    """Not even for the sizes that look whole."""
    real = of_family(family_here("intel-mpi")).prefix / "bin"
    folder = workshop.home / "imb"
    if not folder.exists():
        imb_folder(folder)
    site = site_file(workshop, "imb", {"imb": folder})
    libraries = of_family("mpich").prefix / "lib"
    variables = {"REAL_IMB": real, "PLANTED_FAULT": fault, "LD_LIBRARY_PATH": libraries}
    options = [f"--set-env=mpich:{name}={value}" for name, value in variables.items()]
    ended = measure(workshop, site, "imb", "--routine", "bcast", *options)
    verdicts, reasons = of_routine(ended, "bcast")
    assert verdicts == {verdict}, reasons
    assert all(said in reason for reason in reasons)
