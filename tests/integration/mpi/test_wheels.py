"""Real wheels: what they are, and IMB of Intel MPI's on the MPIs that it fits."""

from dataclasses import replace
from pathlib import Path

import pytest

from site_configs.common import work_directory
from site_configs.mpi.family import Mpi
from site_configs.mpi.inventory import load_inventory
from site_configs.mpi.probe import Candidate, identify_wrapper
from site_configs.mpi.wheels import list_imb_folders, try_imb

MPIS = load_inventory(work_directory()).mpis


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_wheel_tells_what_it_is_without_being_started(mpi: Mpi):
    answer = identify_wrapper(Candidate(Path(mpi.mpicc), Path("/nonexistent"), "wheel"))
    assert isinstance(answer, Mpi) and answer.name == mpi.name


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_imb_fits_just_the_mpis_of_its_binary_interface(mpi: Mpi):
    if not (folders := list_imb_folders(MPIS, work_directory() / "mpi")):
        pytest.skip("no Intel MPI is here to bring IMB")
    found = try_imb(mpi, folders, print)
    assert bool(found.folder) == (mpi.family != "openmpi"), found.problem


def test_a_library_path_of_another_mpi_is_seen(tmp_path: Path):
    """What is found is the MPI that answers, not the one that was meant."""
    folders = list_imb_folders(MPIS, work_directory() / "mpi")
    by_family = {mpi.family: mpi for mpi in MPIS if mpi.origin == "wheel"}
    if not folders or not {"mpich", "intel-mpi"} <= set(by_family):
        pytest.skip("not the two MPIs from wheels that can be taken for each other")
    mpich, intel = by_family["mpich"], by_family["intel-mpi"]
    (tmp_path / "lib").symlink_to(Path(intel.prefix, "lib"))
    (tmp_path / "bin").symlink_to(Path(mpich.prefix, "bin"))
    crossed = replace(mpich, prefix=str(tmp_path))
    assert "another MPI than this: Intel(R)" in try_imb(crossed, folders, print).problem
