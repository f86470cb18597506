"""The witness, preloaded into programs that are not ours: what it proves, and what it leaves alone."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from postprocess.features.compare.facts import compare_facts, read_facts
from postprocess.judging.outcome import ALONE
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.osu_imb_launch import read_witness
from tests.support.faults import Declared, plants
from tests.support.mpi import environment_with, of_family
from tests.support.mpicost import build
from tests.support.mpicost import library as fault
from tests.support.paths import DATA
from tests.support.witness import FAMILIES, OTHER, SAYS, executable, family_here, library, watch

COUNTS = re.compile(r"rank \d: (\d+) calls in MPI_Finalize, (\d+) communicators made, (\d+) freed")
ENTRIES = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize"}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return family_here(request.param)


def refusal(file: Path) -> RecordError:
    """The error with which the reader refuses a file."""
    with pytest.raises(RecordError) as caught:
        read_witness(file)
    return caught.value


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_what_ran_and_where_is_proven(family: str, processes: int, tmp_path: Path) -> None:
    """The CPU that every rank is bound to is the last that this test may use."""
    file, cpu = tmp_path / "w.jsonl", max(os.sched_getaffinity(0))
    words = [str(executable(family)), "0", "a b"]
    bound = ("taskset", "-c", str(cpu))
    ended = watch(family, processes, words, file, wrapper=bound)
    assert (ended.status, ended.complaints) == (0, [])
    witness = read_witness(file)
    assert SAYS[family] in witness.mpi_library
    assert (witness.processes, witness.per_node) == (processes, processes)
    assert witness.run["ranks"] == [
        {"rank": rank, "host": witness.run["hosts"][0]["name"], "cpus": str(cpu)} for rank in range(processes)
    ]
    assert witness.run["program"] == f"witnessed-{family}"
    assert witness.run["command"] == words
    assert str(library(family)) == witness.run["environment"]["LD_PRELOAD"]
    assert witness.end["arrived"] == processes
    assert 0 < witness.end["elapsed"] < 240


@pytest.mark.alone
def test_it_tells_the_time_from_core_to_core(family: str, tmp_path, monkeypatch):
    """When the benchmark is over; a burst counts only if both ranks ran at the same time."""
    monkeypatch.delenv("MPICOST_CORE_LATENCY")
    for number in range(20):
        file = tmp_path / f"{number}.jsonl"
        assert watch(family, 2, [str(executable(family)), "0"], file).status == 0
        if time := read_witness(file).run.get("core_latency"):
            break
    assert time is not None
    assert 5e-9 < time < 2e-5


@pytest.mark.parametrize("mode", ["", "plain"])
def test_the_program_notices_nothing(family: str, mode: str, tmp_path: Path) -> None:
    """Output, thread level and exit code stay what they are without the witness."""
    words = [str(executable(family)), "7", mode]
    alone = watch(family, 2, words, None, loaded=())
    silent = watch(family, 2, words, None)
    watched = watch(family, 2, words, tmp_path / "w.jsonl")
    assert alone.status != 0
    assert alone == silent == watched
    assert list(tmp_path.iterdir()) == [tmp_path / "w.jsonl"]
    # Open MPI ends the other process as soon as one has failed, perhaps before its end record is written.
    assert json.loads((tmp_path / "w.jsonl").read_text().splitlines()[0])["processes"] == 2


def test_no_work_is_done_in_mpi_init_and_nothing_is_left_behind(family: str, tmp_path: Path):
    """So osu_init times MPI_Init alone; and all communicators are freed."""
    words = [str(executable(family)), "0"]
    counter = fault(family, "count_calls")
    alone = watch(family, 2, words, None, loaded=[counter])
    watched = watch(family, 2, words, tmp_path / "w.jsonl", loaded=[library(family), counter])
    in_init = [line for line in watched.output if "calls in MPI_Init" in line]
    assert in_init == [line for line in alone.output if "calls in MPI_Init" in line]
    assert len(in_init) == 2
    own, ours = (
        [COUNTS.fullmatch(line) for line in ended.output if COUNTS.fullmatch(line)]
        for ended in (alone, watched)
    )
    assert len(own) == len(ours) == 2
    for without, with_it in zip(own, ours, strict=True):
        assert int(with_it[1]) > int(without[1])
        assert int(with_it[2]) - int(without[2]) == int(with_it[3]) - int(without[3]) > 0


def test_nothing_stands_between_the_program_and_its_calls(family: str) -> None:
    """The library defines three names, and calls the MPI by its PMPI names only."""
    listed = subprocess.check_output(["nm", "-D", library(family)], text=True)
    symbols = [line.split()[-2:] for line in listed.splitlines()]
    assert {name for kind, name in symbols if kind not in "Uwv"} == ENTRIES
    assert not [name for kind, name in symbols if kind in "Uwv" and name.startswith("MPI_")]


def test_the_library_brings_no_mpi_of_its_own(family: str) -> None:
    """It would decide what the benchmark runs on."""
    listed = subprocess.check_output(["readelf", "-d", library(family)], text=True)
    assert "NEEDED" in listed
    assert "libmpi" not in listed
    assert "PATH" not in listed


def test_programs_without_mpi_can_be_started_with_it(family: str, tmp_path: Path) -> None:
    """As a script that starts the benchmark is. There is nothing to prove then."""
    file = tmp_path / "w.jsonl"
    ended = watch(family, 1, ["sh", "-c", "echo well"], file)
    assert (ended.status, ended.output, ended.complaints) == (0, ["well"], [])
    assert refusal(file).verdict == Verdict.INCOMPLETE


@plants("programs", "a rank that crashes, or leaves with exit code 0", "a program under the witness",
        "incomplete", 1,
        "no MPI_Finalize of the MPI of this environment was reached | no end record")  # fmt: skip
@pytest.mark.parametrize("mode", ["crash", "leave"])
def test_a_rank_that_never_came_to_the_end_leaves_no_proof(family, mode, tmp_path, declared):
    """A rank that leaves without MPI_Finalize, its exit code 0, leaves MPICH's launcher content."""
    file = tmp_path / "w.jsonl"
    limit = ("timeout", "-k", "1", "30")  # in case that the others wait for it
    ended = watch(family, 2, [*limit, str(executable(family)), "0", mode], file)
    assert ended.output
    assert ended.status != 0 or mode == "leave"
    declared.check_error(refusal(file))


@plants("programs", "an `MPI_Finalize` that does not return, with exit code 0",
        "a program under the witness", "incomplete", 1, "no end record")  # fmt: skip
def test_a_finalize_that_does_not_return_leaves_no_end(family: str, tmp_path, declared):
    """Not even with exit code 0."""
    file, words = tmp_path / "w.jsonl", [str(executable(family)), "0"]
    loaded = [library(family), fault(family, "lost_end")]
    watch(family, 1, words, file, loaded=loaded)
    declared.check_error(refusal(file))


@plants("schedulers", "the launcher of another MPI", "a program under the witness", "incorrect", 1,
        "a second run")  # fmt: skip
def test_worlds_of_one_process_are_seen(tmp_path: Path, declared: Declared) -> None:
    """The launcher is not that of the program's MPI: each process is rank 0 of its own world."""
    file, words = tmp_path / "w.jsonl", [str(executable("openmpi")), "0"]
    ended = watch("openmpi", 2, words, file, launcher=of_family("mpich"))
    assert ended.status == 0
    declared.check_error(refusal(file))
    assert ALONE.search(file.read_bytes())


@pytest.mark.parametrize("other", OTHER)
def test_an_mpi_of_another_family_is_not_touched(other: str, tmp_path: Path) -> None:
    file, words = tmp_path / "w.jsonl", [str(executable(other)), "0"]
    ended = watch(other, 2, words, file, loaded=[library(OTHER[other])])
    assert ended.status == 0
    assert len(ended.complaints) == 2
    assert all("another binary interface" in line for line in ended.complaints)
    assert refusal(file).verdict == Verdict.INCOMPLETE


@plants("stale", "the file of an earlier start", "what the witness writes", "incorrect", 1,
        "a second run")  # fmt: skip
def test_a_file_that_was_left_by_another_start_proves_nothing(tmp_path: Path, declared: Declared):
    file, words = tmp_path / "w.jsonl", [str(executable("mpich")), "0"]
    for _ in range(2):
        assert watch("mpich", 1, words, file).status == 0
    declared.check_error(refusal(file))


@pytest.mark.parametrize("path", ["/dev/full", "/no/such/directory/w.jsonl"])
def test_what_cannot_be_written_is_one_line(path: str) -> None:
    ended = watch("mpich", 2, [str(executable("mpich")), "0"], Path(path))
    assert (ended.status, len(ended.complaints)) == (0, 1)
    assert ended.complaints[0].startswith(f"witness: cannot write {path}: ")


@plants("lost", "data that the file system loses in the end", "what the witness writes", "incomplete", 1,
        "no end record | MPI_Finalize was not reached")  # fmt: skip
def test_data_lost_by_the_file_system_leaves_no_end(tmp_path: Path, declared: Declared) -> None:
    file, words = tmp_path / "w.jsonl", [str(executable("mpich")), "0"]
    loaded = [library("mpich"), fault("mpich", "lost_data")]
    ended = watch("mpich", 2, words, file, loaded=loaded)
    assert (ended.status, len(ended.complaints)) == (0, 1)
    declared.check_error(refusal(file))


@plants("output", "a file of instructions that is mapped to be read as data, as by a debugger",
        "what the witness looks at", "", 0, "…")  # fmt: skip
def test_a_library_that_is_mapped_as_data_is_no_object(tmp_path: Path, declared: Declared) -> None:
    words = [str(executable("mpich")), "0"]
    told = []
    for name, others in (("plain", []), ("mapped", [fault("mpich", "mapped_elf")])):
        file = tmp_path / name
        ended = watch("mpich", 1, words, file, loaded=[library("mpich"), *others])
        assert ended.complaints == []
        told.append(read_witness(file).run["loaded"]["program"])
    assert told[0] == told[1]
    declared.check((), ended.status, told)


def test_intels_programs_run_on_mpich_by_its_binary_interface(tmp_path: Path) -> None:
    """As IMB of the wheel does, written in C++: the witness says what answered its calls."""
    imb = of_family(family_here("intel-mpi")).prefix / "bin" / "IMB-MPI1"
    if not imb.exists():
        pytest.skip("no IMB-MPI1 in the wheel of Intel MPI")
    file, mpich = tmp_path / "w.jsonl", of_family("mpich")
    options = ("-npmin", "2", "-iter", "2", "-iter_policy", "off", "-msglog", "3:3", "PingPong")
    words = [f"LD_LIBRARY_PATH={mpich.prefix / 'lib'}", str(imb), *options]
    ended = watch("mpich", 2, words, file)
    assert (ended.status, ended.complaints) == (0, [])
    witness = read_witness(file)
    assert "MPICH Version:" in witness.mpi_library
    assert (witness.run["program"], witness.processes) == ("IMB-MPI1", 2)


@pytest.mark.long
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Leaks too: of MPICH only, as the other MPIs have some of their own."""
    mpi, file = of_family("mpich"), tmp_path / "w.jsonl"
    checked = build(mpi, tmp_path / "build", "-DMPICOST_SANITIZE=ON", targets=["witness"]) / "libwitness.so"
    source, target = DATA / "faults" / "witnessed.c", tmp_path / "witnessed"
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    words = [mpi.mpicc, *flags, str(source), "-o", str(target), "-ldl"]
    subprocess.run(words, check=True, env=environment_with(mpi))
    runtime = subprocess.check_output(["cc", "-print-file-name=libasan.so"], text=True).strip()
    loaded = [Path(runtime), checked]  # the runtime insists on being the first
    for processes in (1, 3):
        file.unlink(missing_ok=True)
        leaks = "ASAN_OPTIONS=detect_leaks=1"
        ended = watch("mpich", processes, [leaks, str(target), "0"], file, loaded=loaded)
        assert (ended.status, ended.complaints) == (0, [])
        assert read_witness(file).processes == processes


#: A setting that each MPI has, and the control variable that tells it.
SETTING = {
    "mpich": ("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1", "MPIR_CVAR_ENABLE_HEAVY_YIELD"),
    "openmpi": ("OMPI_MCA_mpi_param_check", "0", "mpi_param_check"),
    "intel-mpi": ("MPIR_CVAR_CH4_COMM_CONNECT_TIMEOUT", "181", "MPIR_CVAR_CH4_COMM_CONNECT_TIMEOUT"),
}


def test_an_mpi_tells_what_it_is_and_how_it_is_set(family: str, tmp_path: Path) -> None:
    """Two launches differ in nothing but the variable that was set for one of them."""
    variable, value, control = SETTING[family]
    told = []
    for name, setting in (("plain", "UNUSED=1"), ("set", f"{variable}={value}")):
        path = tmp_path / name
        words = ["sh", "-c", f"{setting} {executable(family)} 0"]  # the shell has no MPI
        wrapper = ("env", f"PLUMBLINE_FACTS={path}")
        ended = watch(family, 2, words, None, wrapper=wrapper)
        assert (ended.status, ended.complaints) == (0, [])
        told.append(read_facts(path))
    plain, other = told
    assert SAYS[family] in plain.mpi_library
    assert plain.linked_as.rpartition("/")[2] in plain.loaded and all(plain.loaded.values())
    assert len(plain.variables) > 100
    assert {difference.name for difference in compare_facts(plain, other)} <= {variable, control}
    assert other.values[control] == value != plain.values[control]
