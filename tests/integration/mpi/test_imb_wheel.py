"""IMB of Intel MPI's wheel on real MPIs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from site_configs.common import work_directory
from site_configs.mpi.family import Mpi
from site_configs.mpi.imb_wheel import list_imb_folders, try_imb
from site_configs.mpi.inventory import load_inventory


@pytest.mark.parametrize("mpi", load_inventory(work_directory()).mpis, ids=lambda mpi: mpi.name)
def test_it_fits_just_the_mpis_of_its_binary_interface(mpi: Mpi):
    found = try_imb(
        mpi, folders := list_imb_folders(load_inventory(work_directory()).mpis, work_directory() / "mpi"), print
    )
    if not folders:
        pytest.skip("no Intel MPI is here to bring IMB")
    assert bool(found.folder) == (mpi.family != "openmpi"), found.problem


def test_a_library_path_of_another_mpi_is_seen(tmp_path: Path):
    """What is found is the MPI that answers, not the one that was meant."""
    mpis = load_inventory(work_directory()).mpis
    folders = list_imb_folders(mpis, work_directory() / "mpi")
    by_family = {mpi.family: mpi for mpi in mpis if mpi.origin == "wheel"}
    if not folders or not {"mpich", "intel-mpi"} <= set(by_family):
        pytest.skip("not the two MPIs from wheels that can be taken for each other")
    mpich, intel = by_family["mpich"], by_family["intel-mpi"]
    (tmp_path / "lib").symlink_to(Path(intel.prefix, "lib"))
    (tmp_path / "bin").symlink_to(Path(mpich.prefix, "bin"))
    crossed = replace(mpich, prefix=str(tmp_path))
    assert "another MPI than this: Intel(R)" in try_imb(crossed, folders, print).problem
