"""The application kernels find the known results at any number of processes, and tell wrong ones."""

import json
import shutil
from pathlib import Path

import pytest

from postprocess.extensions.procurement.builds import hash_source
from postprocess.model.routines.kernels import BYTES, FAMILY
from postprocess.parsers.mpicost import read_launch
from tests.support.faults import plants
from tests.support.mpi import environment_with, of_family
from tests.support.mpicost import FAMILIES, Program, cmake, library, preload, program
from tests.support.paths import SUITE

ONCE = ("--cache", "warm", "--rounds", "1", "--trials", "2")
#: MPICH's processes that wait for each other by turns take minutes where they share a core
FEW_MESSAGES = ("series_A", "crypt_A", "sor_A_compute")
COUNTS = [
    *((family, count, FAMILY) for family in FAMILIES for count in (1, 2)),
    ("openmpi", 3, FAMILY),
    ("openmpi", 4, FEW_MESSAGES),
    ("mpich", 3, FEW_MESSAGES),
]
ODDLY = {"OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


@pytest.mark.parametrize(("family", "processes", "names"), COUNTS)
def test_each_kernel_finds_the_known_result(family, processes, names, tmp_path: Path):
    file = tmp_path / "out.jsonl"
    words = (*ONCE, "--output", str(file), "--routine", ",".join(names))
    ended = program(family).run(processes, *words, variables=ODDLY)
    assert (ended.status, ended.complaints) == (0, []), ended.output
    found = read_launch(file)
    assert found.run["program"] == "kernels"
    assert {case.routine: case.bytes for case in found.cases} == {n: BYTES[n] for n in names}


def test_the_program_has_the_kernels_of_the_table():
    told = program("mpich").run(1, *ONCE, "--list", "--routine", ",".join(BYTES)).output
    listed = {line.split()[0]: int(line.split()[2]) for line in told.splitlines()}
    assert list(listed.items()) == list(BYTES.items())
    told = program("mpich").run(1, *ONCE, "--list", "--family", "kernels").output
    assert [line.split()[0] for line in told.splitlines()] == [*FAMILY]


def test_the_kernels_are_a_part_of_the_official_source():
    """Offers are held against it by the hash that the program tells."""
    assert f"source hash {hash_source(SUITE)}\n" in program("mpich").run(1, *ONCE, "--version").output


@plants("data", "a wrong element, byte or NaN in what a kernel sends",
        "MPI under an application kernel", "", 1, "wrong data: … instead of …")  # fmt: skip
@pytest.mark.parametrize(
    ("kernel", "fault", "call", "rank"),
    [
        ("series_A", "recv", "0", 0),
        ("series_A", "middle", "1", 0),  # a sine that nobody computes again
        ("lufact_A", "nan", "3", 0),
        ("sor_A", "halo", "7", 0),
        ("sparse_A", "sum", None, 1),
        ("crypt_A", "recv", "0", 0),
        ("crypt_A", "recv", "1", 0),  # the cipher text; the deciphered one is right
    ],
)
def test_a_wrong_result_is_noticed(kernel, fault, call, rank, tmp_path: Path, declared):
    variables = {"PLUMBLINE_FAULT": fault, **({"PLUMBLINE_FAULT_CALL": call} if call else {})}
    file = tmp_path / "out.jsonl"
    ended = program("mpich").run(
        2,
        *(*ONCE, "--output", str(file), "--routine", kernel),
        wrapper=preload(library("mpich", "wrong_kernels")),
        variables=variables,
    )
    declared.check((), ended.status, ended.complaints)
    case = json.loads(file.read_text().splitlines()[1])
    assert (case["verified"], case["wrong"]["rank"]) == (False, rank)
    if fault == "nan":  # which no comparison with a limit lets pass
        assert case["wrong"]["received"] is None


@plants("data", "the result of a kernel with two of its numbers exchanged, or all in reverse order",
        "MPI under an application kernel", "", 1, "wrong data: … instead of …")  # fmt: skip
@pytest.mark.parametrize(
    ("kernel", "fault", "call", "processes", "rank"),
    [
        ("series_A", "turned", {"PLUMBLINE_FAULT_CALL": "0"}, 2, 0),
        ("sor_A", "turned", {"PLUMBLINE_FAULT_CALL": "0"}, 3, 0),  # of rank 1, which has no rows of the border
        ("sparse_A", "swapped", {}, 2, 1),  # of all sums, as the last one is verified
    ],
)
def test_a_result_in_another_order_is_noticed(kernel, fault, call, processes, rank, tmp_path: Path, declared):
    """The published sums of SOR and Sparse are the same."""
    file = tmp_path / "out.jsonl"
    ended = program("mpich").run(
        processes,
        *(*ONCE, "--output", str(file), "--routine", kernel),
        wrapper=preload(library("mpich", "wrong_kernels")),
        variables={"PLUMBLINE_FAULT": fault, **call},
    )
    declared.check((), ended.status, ended.complaints)
    case = json.loads(file.read_text().splitlines()[1])
    assert (case["verified"], case["wrong"]["rank"]) == (False, rank)


def test_another_matrix_is_noticed_though_it_is_solved_well(tmp_path: Path):
    source, mpi = tmp_path / "suite", of_family("mpich")
    shutil.copytree(SUITE, source)
    kernel = source / "kernels" / "lufact.c"
    right = kernel.read_text()
    kernel.write_text(right.replace("FIRST = 1325", "FIRST = 1327"))
    assert kernel.read_text() != right
    env = environment_with(mpi)
    cmake(tmp_path / "build", [f"-DMPI_C_COMPILER={mpi.mpicc}"], env, env, source)
    ended = Program(mpi, tmp_path / "build").run(1, *ONCE, "--routine", "lufact_A")
    assert ended.status == 1 and "-88.92" in "".join(ended.complaints), ended.output


@plants("use", "a kernel with a routine, in rounds, or of another size",
        "options of `mpicost`", "", 2,
        "… kernels are measured … | … has the … bytes of its definition, not …")  # fmt: skip
@pytest.mark.parametrize(
    "words",
    [
        (*ONCE, "--routine", "sor_A,bcast"),
        ("--cache", "warm", "--routine", "sor_A"),
        (*ONCE, "--routine", "sor_A:800"),
    ],
)
def test_a_kernel_is_refused_where_it_is_none(words, declared):
    ended = program("mpich").run(1, *words)
    declared.check((), ended.status, ended.complaints)
