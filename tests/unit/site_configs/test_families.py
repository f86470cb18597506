"""A family of MPIs is one record: an MPI under another name works as the one that it is built from."""

import ast
import runpy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.features.guidelines.command import list_overrides
from postprocess.model.routines.benchmark import Benchmark
from reframe_checks.common.mpi_support import explain_unsupported
from site_configs import families
from site_configs.mpi import layers, modules
from site_configs.mpi.family import build_family_environment, identify_library
from site_configs.mpi.modules import MPI_NAME
from site_configs.schedulers import slurm
from site_configs.schedulers.base import find_thread_binding
from site_configs.slurm import SRUN_PMI2
from spack_envs.machine import prefix_for_spack
from tests.support.factories.site import MPICH
from tests.support.paths import ROOT

OTHER = "tillympi"  #: of an MPI that nobody has
LIBRARY = "Tilly MPI 4.3.2 (of MPICH)"


@pytest.fixture
def tilly(monkeypatch: pytest.MonkeyPatch) -> families.Family:
    """MPICH under another name, with one record and nothing else."""
    made = replace(families.MPICH, name=OTHER, library=r"Tilly MPI (\d[\w.]*)", modules="tilly-?mpi")
    monkeypatch.setitem(families.FAMILIES, OTHER, made)
    return made


def test_an_alias_of_an_mpi_is_one_record(tilly: families.Family, tmp_path: Path):
    assert identify_library(LIBRARY) == (OTHER, "4.3.2")
    assert build_family_environment(OTHER, tmp_path, True) == build_family_environment("mpich", tmp_path, True)
    assert find_thread_binding(OTHER, ["mpiexec"]) == find_thread_binding("mpich", ["mpiexec"])
    mpi = replace(MPICH, family=OTHER)
    assert replace(slurm.SLURM, mpi_types=("pmi2",)).choose_launcher(mpi).launcher == SRUN_PMI2
    assert OTHER in layers.KNOWN["ucx"].env
    assert list_overrides(LIBRARY, "bcast")[0].name == "bcast binomial"
    assert (
        explain_unsupported(OTHER, "2.1", Benchmark("osu_iallreduce", "iallreduce", "", ""))
        == f"needs MPI 3.0, which {OTHER} has since 3.0"
    )
    assert prefix_for_spack(mpi, tmp_path) == prefix_for_spack(MPICH, tmp_path)


def test_names_of_modules_are_in_the_records():
    for name in ("mpich", "openmpi", "intel-mpi", "mvapich", "cray-mpich"):
        assert MPI_NAME.search(f"{name}/1.0"), name


def test_a_family_whose_modules_are_unknown_makes_no_other_module_an_mpi(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(families.FAMILIES, OTHER, families.Family(OTHER))
    names = runpy.run_path(modules.__file__)["MPI_NAME"]
    assert names.search("mpich/4.3") and not names.search("gcc//13")


#: Files in which the name of a family means something else.
OTHERWISE = {
    "site_configs/families.py",  # the records
    "site_configs/mpi/wheels.py",  # whose wheel contains a library
    "site_configs/schema/transports.py", "postprocess/parsers/transports.py",  # who prints a line on transports
    "site_configs/simgrid.py",  # SimGrid's words for its own sets of algorithms
}  # fmt: skip


def list_product() -> Iterator[Path]:
    for folder in ("postprocess", "site_configs", "reframe_checks", "spack_envs"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_no_other_code_knows_a_family_by_name():
    names = {*families.FAMILIES}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in list_product()
        if str(path.relative_to(ROOT)) not in OTHERWISE and not path.name.endswith("_cluster.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in names
    ]
    assert found == []
