"""What stands in front of an MPI is in the run record: of mpicost, and of programs that are not ours."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from postprocess.parsers.osu_imb_launch import read_witness
from postprocess.parsers.transports import LEAST_PACKETS
from tests.support.mpi import FAULTS, environment_with, of_family
from tests.support.mpicost import TINY, Record, preload, program, read
from tests.support.mpicost import library as fault_library
from tests.support.witness import FAMILIES, executable, family_here, library, watch

#: Preloads a library into rank 2 alone, whichever launcher tells the rank.
ONE_RANK = 'if [ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" = 2 ]; then export LD_PRELOAD="$1"; fi; shift; exec "$@"'


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return family_here(request.param)


def run_record(family: str, file: Path, *wrapper: str, **variables: str) -> Record:
    """The run record of mpicost on three ranks, behind the words of a wrapper."""
    words = (*TINY, "--routine", "barrier", "--trials", "2", "--output", str(file))
    ended = program(family).run(3, *words, wrapper=wrapper, variables=variables)
    assert ended.status == 0, ended.complaints
    return read(file).run


def paths(run: Record) -> list[str]:
    return [each["path"] for each in run["interposed"]]


def watched(family: str, file: Path, words: Sequence[str], *loaded: Path) -> Record:
    """What the witness tells of a program that ran with further libraries behind it."""
    ended = watch(family, 2, words, file, loaded=[library(family), *loaded])
    assert (ended.status, ended.complaints) == (0, [])
    return read_witness(file).run


def test_nothing_is_in_front_of_an_mpi_as_it_is_installed(family: str, tmp_path: Path) -> None:
    """What the MPI opens itself, and the witness, are no strangers."""
    assert run_record(family, tmp_path / "own.jsonl")["interposed"] == []
    words = [str(executable(family)), "0"]
    assert watched(family, tmp_path / "w.jsonl", words)["interposed"] == []


def test_what_is_below_an_mpi_is_told(tmp_path: Path) -> None:
    """The record has what the MPI is linked to, and what it opens later."""
    library = Path(program("mpich").mpi.prefix, "lib", "libmpi.so.12").resolve()
    linked = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
    needed = {name for name, file in (("libfabric", "libfabric.so"), ("ucx", "libucp.so")) if file in linked}
    told = {each["name"]: each for each in run_record("mpich", tmp_path / "out.jsonl")["below"]}
    assert needed <= told.keys() <= {"libfabric", "ucx"}
    for each in told.values():
        assert Path(each["path"]).is_file() and each["version"][:1].isdigit()
        assert int(each["text"], 16) != 0


def test_packets_over_tcp_are_counted(tmp_path: Path) -> None:
    """MPICH does not tell that it leaves its own memory out: the kernel counts what its connections carry."""
    counts = []
    by_tcp = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"}
    for number, variables in enumerate(({}, by_tcp)):
        file = tmp_path / f"{number}.jsonl"
        words = (*TINY, "--routine", "pingpong", "--trials", "2", "--output", str(file))
        ended = program("mpich").run(2, *words, variables=variables)
        assert ended.status == 0, ended.complaints
        told = read(file)
        counts.append(told.end["tcp_packets"] - told.run["tcp_packets"])
    assert 0 <= counts[0] < LEAST_PACKETS <= counts[1], counts


def test_a_preloaded_library_is_named(family: str, tmp_path: Path) -> None:
    """Whatever it is called, behind a library that the program needs anyway, and behind the witness."""
    other = tmp_path / "libm.so.7"
    shutil.copy(fault_library(family, "wrong_data"), other)
    run = run_record(family, tmp_path / "own.jsonl", "env", f"LD_PRELOAD=libm.so.6:{other}")
    assert paths(run) == [str(other)]
    assert "interposed_elsewhere" not in run
    needed = f"{program(family).mpi.prefix}/lib/libmpi.so libm.so.6 libc.so.6"  # by the program
    loaded = f"LD_PRELOAD={needed} {other}"
    assert paths(run_record(family, tmp_path / "behind.jsonl", "env", loaded)) == [str(other)]
    words = [str(executable(family)), "0"]
    assert paths(watched(family, tmp_path / "w.jsonl", words, other)) == [str(other)]


def test_a_library_under_the_name_of_the_mpi_is_named(tmp_path: Path) -> None:
    """It is loaded in the place of the MPI, has functions of its own, and opens the MPI behind itself."""
    mpi = of_family("mpich")
    real = (Path(mpi.prefix) / "lib" / "libmpi.so.12").resolve()
    stranger = tmp_path / "libmpi.so.12"
    words = ["cc", "-shared", "-fPIC", f'-DREAL="{real}"', str(FAULTS / "same_name.c")]
    words += ["-Wl,-soname,libmpi.so.12", "-o", str(stranger), "-ldl"]
    subprocess.run(words, check=True, env=environment_with(mpi))
    run = run_record("mpich", tmp_path / "out.jsonl", *preload(stranger))
    assert paths(run) == [str(stranger)]


def test_a_library_that_changes_under_its_name_is_another_one(tmp_path: Path) -> None:
    told = []
    for name in ("wrong_data", "faulty_mpi", "wrong_data"):
        folder = tmp_path / f"{len(told)}"
        folder.mkdir()
        shutil.copy(fault_library("mpich", name), folder / "lib.so")
        wrapper = preload(folder / "lib.so")
        told += run_record("mpich", folder / "out.jsonl", *wrapper)["interposed"]
    texts = [each["text"] for each in told]
    assert texts[0] == texts[2] != texts[1]


def test_a_rank_with_another_library_is_named(family: str, tmp_path: Path) -> None:
    stranger = fault_library(family, "wrong_data")
    run = run_record(family, tmp_path / "out.jsonl", "sh", "-c", ONE_RANK, "sh", str(stranger))
    assert run["interposed"] == []
    elsewhere = run["interposed_elsewhere"]
    assert (elsewhere["rank"], paths(elsewhere)) == (2, [str(stranger)])


def test_a_library_that_answers_calls_is_named_though_the_program_is_linked_to_it(family, tmp_path):
    """As profilers are that a site's compiler wrapper links in front of the MPI."""
    mpi, linked = of_family(family), tmp_path / "linked"
    stranger = fault_library(family, "wrong_data")
    words = [mpi.mpicc, "-std=c11", str(FAULTS / "witnessed.c"), "-Wl,--no-as-needed", str(stranger)]
    words += ["-Wl,--as-needed", "-o", str(linked), "-ldl"]
    subprocess.run(words, check=True, env=environment_with(mpi))
    assert paths(watched(family, tmp_path / "w.jsonl", [str(linked), "0"])) == [str(stranger)]


def test_an_auditing_library_is_named(tmp_path: Path) -> None:
    """It sees every call, from a name space of its own; one that cannot be loaded is named as well."""
    named = ["/no/audit.so", "/no/other.so"]
    assert paths(run_record("mpich", tmp_path / "a", LD_AUDIT=":".join(named))) == named
