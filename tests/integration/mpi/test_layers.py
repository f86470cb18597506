"""A real MPICH on a UCX in another place than its own, and all its messages through UCX."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from site_configs.common import work_directory
from site_configs.mpi.family import Mpi, Unusable
from site_configs.mpi.inventory import load_inventory
from site_configs.mpi.layers import KNOWN, adopt_layer, list_loaded
from tests.support.mpicost import TINY, program

LIBRARY = KNOWN["ucx"].library


@pytest.fixture(scope="module")
def mpich() -> Mpi:
    found = [mpi for mpi in load_inventory(work_directory()).mpis if mpi.family == "mpich" and not mpi.layer]
    with_ucx = [mpi for mpi in found if list(Path(mpi.prefix).rglob(LIBRARY))]
    if not with_ucx:
        pytest.skip("no MPICH with a UCX of its own is here")
    return with_ucx[0]


def test_mpich_runs_on_a_ucx_in_another_place(mpich: Mpi, tmp_path: Path):
    (own, *_) = Path(mpich.prefix).rglob(LIBRARY)
    for path in own.parent.glob("libuc*"):
        shutil.copy(path, tmp_path)
    there = adopt_layer(mpich, f"ucx@{tmp_path}", str(tmp_path), "word")
    assert isinstance(there, Mpi), there
    assert f"{tmp_path}/{LIBRARY}" in list_loaded(there)
    assert f"{tmp_path}/{LIBRARY}" not in list_loaded(mpich)
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / LIBRARY).touch()
    assert isinstance(adopt_layer(mpich, f"ucx@{fake}", str(fake), "word"), Unusable)


def test_ranks_that_share_no_memory_are_on_one_host(mpich: Mpi, tmp_path: Path):
    """MPICH says of each that it is alone: the record had two hosts of one name, and was incorrect."""
    file = tmp_path / "records"
    words = ("--output", str(file), "--routine", "pingpong:8", "--trials", "3", *TINY)
    ended = program("mpich").run(2, *words, variables={"MPIR_CVAR_NOLOCAL": "1"})
    assert ended.status == 0, ended.complaints
    assert '"per_node":2,' in file.read_text() and '"ranks":2}]' in file.read_text()
