"""What an MPI can run of OSU and IMB: declared, and held against the tables of benchmarks."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from reframe.core.environments import ProgEnvironment

from postprocess.model.routines.requested import NEIGHBORHOOD, NON_BLOCKING, NON_BLOCKING_NEIGHBORHOOD
from reframe_checks.common import mpi_support
from reframe_checks.common.mpi_support import NO_FILE_ACCESS, explain_no_file_access, explain_unsupported
from tests.support.factories.benchmark_table import checks
from tests.support.fake_mpis import script

TABLES = {program: check.table for program, check in checks().items()}
LINES = {line.name: line for table in TABLES.values() for line in table}


@pytest.mark.parametrize(
    ("family", "version"), [("mpich", "5.0.2"), ("openmpi", "5.0.11"), ("intel-mpi", "2021.19.0")]
)
def test_what_was_tried_is_supported(family: str, version: str):
    assert [name for name in LINES if explain_unsupported(family, version, LINES[name])] == []


def test_every_line_that_is_non_blocking_or_one_sided_needs_mpi_3():
    lacking = {name for name, line in LINES.items() if "MPI 3.0" in explain_unsupported("mpich", "1.5", line)}
    of_imb = {line.name for line in TABLES["imb"] if line.executable in ("IMB-NBC", "IMB-RMA")}
    of_osu = {"iallreduce", "ialltoall", "ibcast", "put_latency", "get_latency", "put_bw", "get_bw"}
    of_osu |= {"ibarrier", "get_acc_latency"}
    of_osu |= {"put_bibw", "acc_latency", "fop_latency", "cas_latency"}
    of_osu |= {
        routine.removesuffix("_sum") for routine in (*NON_BLOCKING, *NEIGHBORHOOD, *NON_BLOCKING_NEIGHBORHOOD)
    }
    assert of_imb and lacking == of_imb | {f"osu_{name}" for name in of_osu}


@pytest.mark.parametrize(
    ("family", "version", "benchmark", "reason"),
    [
        ("openmpi", "1.6.5", "Iallreduce", "needs MPI 3.0, which openmpi has since 1.8"),
        ("openmpi", "1.6.5", "Allreduce", ""),
        ("openmpi", "1.10", "Iallreduce", ""),
        ("mpich", "3.4a2", "Unidir_put", ""),
        ("mpich", "1.5", "osu_put_latency", "needs MPI 3.0, which mpich has since 3.0"),
        ("mpich", "1.5", "osu_init", ""),
        ("openmpi", "4.1.6", "osu_bcast_persistent", "needs MPI 4.0, which openmpi has since 5.0"),
        ("openmpi", "4.1.6", "osu_bw_persistent", ""),
        ("intel-mpi", "2017.1", "osu_ibcast", ""),
        ("unheard-of", "1.0", "osu_ibcast", ""),
    ],
)
def test_an_mpi_that_is_too_old_is_told_with_the_standard(family, version, benchmark, reason):
    assert explain_unsupported(family, version, LINES[benchmark]) == reason


@pytest.mark.parametrize(
    ("compiles", "reason"),
    [("true", ""), ('! grep -q MPI_File_open "$1"', NO_FILE_ACCESS), ("false", "")],
    ids=["all", "no MPI-IO", "nothing"],
)
@pytest.mark.parametrize(("name", "container"), [("mpicc", []), ("another", []), ("mpicc", ["apptainer"])])
def test_an_mpi_lacks_mpi_io_if_its_wrapper_compiles_all_but_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiles: str, reason: str, name: str, container: list[str]
):
    monkeypatch.setattr(mpi_support, "temp_environment", lambda *_: nullcontext())
    wrapper = script(tmp_path / "mpicc", compiles)
    extras = {"mpicc": str(wrapper.with_name(name)), "container": container}
    known = name == "mpicc" and not container
    assert explain_no_file_access(ProgEnvironment("mpich", extras=extras)) == (reason if known else "")
