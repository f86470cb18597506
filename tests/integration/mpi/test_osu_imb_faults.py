"""Reference benchmarks that misbehave, end to end: each fault has its verdict and hurts only its cases.

OSU is played by ``tests/faults/standin_osu.c``, a program for each benchmark, all in one job. IMB is the
real one, with a script in front of it that spoils its output.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.faults import Declared, each_of, plants
from tests.support.faulty_site import plant, write_faulty_site
from tests.support.mpi import FAULTS, Installation, environment_with, of_family
from tests.support.plumbline_runner import Ended, Workshop
from tests.support.witness import family_here

pytestmark = pytest.mark.long

ROUTINES = {
    **{name: name for name in ("bcast", "scatter", "gather", "allgather", "alltoall")},
    **{name: f"{name}_sum" for name in ("reduce", "allreduce", "reduce_scatter")},
    "latency": "pingpong",
}
CANNED = "canned"
# fmt: off
#: Of the benchmark: its fault in the first job, and what must come.
FIRST = {
    "scatter": ("truncated", plants(
        "output", "the last line is cut off", "output of OSU", "incomplete", 1,
        "the output is cut off in a line")),
    "gather": ("short", plants(
        "output", "the last size is missing", "output of OSU", "incomplete", 1,
        "missing from the output: faulty:cpu:mpich:osu:gather:warm-barrier:2x2:16")),
    "allgather": ("wrong_data", plants(
        "data", "a validation that fails, with exit code 1", "OSU", "incorrect", 1,
        "line 6: wrong data was received")),
    "alltoall": ("crash", plants(
        "programs", "SIGSEGV after the whole table", "OSU", "crashed", 1,
        "the program ended with exit code")),
    "reduce": ("lost_rank", plants(
        "programs", "one rank leaves before MPI_Finalize with exit code 0", "OSU",
        "incomplete or crashed or timeout", 1,
        "no MPI_Finalize of the MPI of this environment was reached | the program ended with exit code | "
        "no end within 10 s")),
    "allreduce": ("foreign", plants(
        "output", "the table of another benchmark", "output of OSU", "incorrect", 1,
        "'OSU MPI Latency Test' was not planned")),
    "reduce_scatter": (CANNED, plants(
        "stale", "a script that prints a table and starts no MPI", "OSU", "incomplete", 1,
        "no MPI_Finalize of the MPI of this environment was reached")),
    "latency": ("hang", plants(
        "programs", "a program without end, among others of its job", "OSU", "timeout", 1,
        "no end within 10 s")),
}
#: The same of the second.
SECOND = {
    "scatter": ("silent_data", plants(
        "data", "a validation that fails, with exit code 0", "OSU", "incorrect", 1,
        "line 6: wrong data was received")),
    "allgather": ("iterations", plants(
        "output", "half of the repetitions", "OSU", "incorrect", 1,
        "at 8 bytes ran 50 repetitions, not 100")),
    "alltoall": ("noise", plants(
        "output", "an error of a library between two rows", "output of OSU", "incomplete", 1,
        "line 6: 10 columns where the header has 6")),
    "reduce": ("no_finalize", plants(
        "programs", "all ranks leave before MPI_Finalize with exit code 0", "OSU",
        "incomplete or crashed", 1,
        "no MPI_Finalize of the MPI of this environment was reached | the program ended with exit code")),
    "allreduce": ("twice", plants(
        "output", "the table comes twice", "output of OSU", "incomplete", 1,
        "line 8: a second program's output")),
    "reduce_scatter": ("exit", plants(
        "programs", "exit code 9 after all went well", "OSU", "crashed", 1,
        "the program ended with exit code 9")),
}
#: Of IMB: an environment for each fault, which has its name.
SPOILED = {
    "truncated": plants(
        "output", "the last 200 bytes are lost, with exit code 0", "output of IMB", "incomplete", 1,
        "the output is cut off in a line"),
    "no_end": plants(
        "output", "its last line is lost, with exit code 0", "output of IMB", "incomplete", 1,
        "after this line is no 'All processes entering MPI_Finalize'"),
    "out_of_mem": plants(
        "output", "a row that says `out-of-mem.` instead of times", "output of IMB", "incomplete", 1,
        "missing from the output: faulty:cpu:out_of_mem:imb:bcast:warm-barrier:2x2:8 (line 34: "
        "Bcast, 8 bytes: out-of-mem."),
    "slow_units": plants(
        "output", "milliseconds instead of microseconds", "output of IMB", "incomplete", 1,
        "'Bcast' has no column 't_max[usec]'"),
    "swallowed": plants(
        "programs", "killed before it has begun, with exit code 0", "IMB", "incomplete", 1,
        "line 1: the output is empty"),
}
WRONG_CHECK, HEALTHY = "wrong_check", "healthy"  #: further environments: data is wrong, and nothing is
#: Built with the MPI of another family.
OTHERS = {
    "openmpi": plants(
        "stale", "built with Open MPI, started by MPICH's launcher", "OSU", "incomplete", 1,
        "a second program's output"),
    "intel-mpi": plants(
        "stale", "built with Intel MPI, started by MPICH's launcher", "OSU", "incorrect", 1,
        "ran on 'Intel(R) MPI Library … not on 'MPICH Version: …'; ./plumbline setup looks at the MPIs again"),
}
# fmt: on


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
    for name in ("IMB-MPI1", "IMB-MPI1-check"):
        shutil.copy(FAULTS / "wrapped_imb.sh", folder / name)
        (folder / name).chmod(0o755)
    return folder


def osu_site(workshop: Workshop, folder: Path) -> Path:
    """A site with MPICH, where this is the folder of OSU."""
    path = workshop.home / f"{folder.name}.py"
    return write_faulty_site(path, of_family("mpich"), ["mpich"], programs={"osu": str(folder)})


def measure(workshop: Workshop, site: Path, program: str, *words: str) -> Ended:
    """Two sizes of the routines named, at two processes. Strict: nothing is calibrated before."""
    options = ("--program", program, "--processes", "2", "--bytes", "8,16", "--strict", *words)
    return workshop.measure("--site", str(site), *options)


def of_routine(ended: Ended, routine: str) -> tuple[set[str], set[str]]:
    """Verdicts and reasons of its cases."""
    cases = [case for case in ended.summary["cases"] if case["routine"] == routine]
    assert len(cases) == 2
    return {case["verdict"] for case in cases}, {case["reason"] for case in cases}


def play(workshop: Workshop, folder: Path, faults: dict[str, tuple[str, pytest.MarkDecorator]]) -> Ended:
    """One job in which every benchmark has its fault, but for the broadcast."""
    played = {name: fault for name, (fault, _) in faults.items() if fault != CANNED}
    played |= {"gather": "unvalidated"} if "gather" not in played else {}
    options = [f"--set-env=mpich:STANDIN_osu_{name}={fault}" for name, fault in played.items()]
    routines = ",".join(ROUTINES[name] for name in dict.fromkeys(("bcast", *faults, "gather")))
    site = osu_site(workshop, folder)
    limit = ("--time-limit", "10") if "hang" in played.values() else ()
    return measure(workshop, site, "osu", "--routine", routines, *limit, *options)


@pytest.fixture(scope="module")
def first(workshop: Workshop) -> Ended:
    folder = with_canned(osu_folder(of_family("mpich"), workshop.home / "first"))
    return play(workshop, folder, FIRST)


@pytest.fixture(scope="module")
def second(workshop: Workshop) -> Ended:
    folder = osu_folder(of_family("mpich"), workshop.home / "second")
    return play(workshop, folder, SECOND)


@pytest.mark.parametrize("name", each_of({name: mark for name, (_, mark) in FIRST.items()}))
def test_each_fault_has_its_verdict(first: Ended, name: str, declared: Declared) -> None:
    declared.check_session(first, routine=ROUTINES[name])


@pytest.mark.parametrize("name", each_of({name: mark for name, (_, mark) in SECOND.items()}))
def test_each_of_the_other_faults_has_its_verdict(second: Ended, name: str, declared: Declared):
    declared.check_session(second, routine=ROUTINES[name])


@plants("data", "a program that does not verify what it receives, when it is to", "OSU", "", 1,
        "data not verified: faulty:cpu:mpich:osu:gather:warm-barrier:2x2: incomplete: … at 8 bytes "
        "does not say that its data was verified")  # fmt: skip
def test_what_does_not_say_that_it_verified_its_data_is_not_called_verified(
    second: Ended, declared: Declared
) -> None:
    assert of_routine(second, "gather")[0] == {"no-reference"}
    told = [note for note in second.summary["notes"] if "osu:gather" in note]
    declared.check((), second.status, told)


def test_a_healthy_benchmark_beside_them_is_measured(first: Ended, second: Ended) -> None:
    for ended in (first, second):
        assert of_routine(ended, "bcast")[0] == {"no-reference"}


@pytest.mark.parametrize("family", each_of(OTHERS))
def test_benchmark_of_another_mpi_has_no_value(family: str, workshop: Workshop, declared: Declared):
    """Open MPI's comes as two worlds, which its witness may not touch; Intel's runs, and is named."""
    folder = osu_folder(of_family(family_here(family)), workshop.home / family)
    site = osu_site(workshop, folder)
    declared.check_session(measure(workshop, site, "osu", "--routine", "bcast"))


@pytest.fixture(scope="module")
def imb(workshop: Workshop) -> Path:
    """A site whose IMB spoils its output by the name of the environment."""
    folders = {"imb": str(imb_folder(workshop.home / "imb"))}
    names = [*SPOILED, WRONG_CHECK, HEALTHY]
    return write_faulty_site(workshop.home / "imb.py", of_family("mpich"), names, programs=folders)


def broadcast(workshop: Workshop, site: Path, *environments: str) -> Ended:
    """A broadcast of the real IMB in each of these environments, with the fault in what it says."""
    real = workshop.home / "real_imb"
    real.mkdir(exist_ok=True)
    for name in ("IMB-MPI1", "IMB-MPI1-check"):
        if not (real / name).exists():
            (real / name).symlink_to(of_family(family_here("intel-mpi")).prefix / "bin/IMB-MPI1")
    libraries = of_family("mpich").prefix / "lib"
    same = {"REAL_IMB": real, "LD_LIBRARY_PATH": libraries}
    options = plant({name: {"PLANTED_FAULT": name, **same} for name in environments})
    chosen = ("--environment", ",".join(environments), "--routine", "bcast")
    return measure(workshop, site, "imb", *chosen, *options)


@pytest.fixture(scope="module")
def spoiled(workshop: Workshop, imb: Path) -> Ended:
    return broadcast(workshop, imb, *SPOILED, WRONG_CHECK)


@pytest.mark.parametrize("fault", each_of(SPOILED))
def test_spoiled_output_of_imb_yields_no_value(spoiled: Ended, fault: str, declared: Declared) -> None:
    """Not even for the sizes that look whole."""
    declared.check_session(spoiled, environment=fault)


def test_imb_that_is_left_alone_is_measured_and_verified_once(workshop: Workshop, imb: Path) -> None:
    """The second time nothing has changed."""
    for verifies in (True, False):
        ended = broadcast(workshop, imb, HEALTHY)
        assert of_routine(ended, "bcast")[0] == {"no-reference"}
        assert ("data of imb: 1 of 1 start verified it" in ended.said) is verifies
        assert "data not verified" not in ended.said


@plants("data", "wrong data that only a binary with CHECK sees", "IMB", "incorrect", 1,
        "verification of its data: Bcast at 2 processes: …wrong data was received: "
        "1: Error Bcast,size = 16,sample #0")  # fmt: skip
def test_wrong_data_that_imb_finds_when_it_checks_is_incorrect(spoiled: Ended, declared: Declared) -> None:
    declared.check_session(spoiled, environment=WRONG_CHECK)
