"""Real MPIs on a UCX or libfabric in another place than their own, and all their messages through it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from site_configs.common import work_directory
from site_configs.mpi.family import Mpi, Unusable
from site_configs.mpi.inventory import load_inventory
from site_configs.mpi.layers import KNOWN, adopt_layer, read_loaded_layer
from tests.support.mpicost import TINY, program

FILES = {"ucx": "libuc*", "libfabric": "libfabric.so.1"}
#: With these no library carries a message.
NO_TRANSPORT = {"ucx": ("UCX_TLS", "none-such"), "libfabric": ("FI_PROVIDER", "none-such")}
PAIRS = [(name, family) for name, known in KNOWN.items() for family in known.env]


def list_own_mpis() -> list[Mpi]:
    return [mpi for mpi in load_inventory(work_directory()).mpis if not mpi.layer and not mpi.standard_abi]


def find_library(name: str, prefix: str) -> Path | None:
    return next(Path(prefix).rglob(KNOWN[name].library), None)


@pytest.mark.parametrize(("name", "family"), PAIRS)
def test_an_mpi_runs_on_a_library_in_another_place(name: str, family: str, tmp_path: Path):
    mpi = next((mpi for mpi in list_own_mpis() if mpi.family == family), None)
    if mpi is None:
        pytest.skip(f"no {family} is here")
    brought = find_library(name, mpi.prefix)
    # Intel MPI runs on any libfabric, and its newer wheels have none
    others = [mpi.prefix for mpi in list_own_mpis()] if family == "intel-mpi" else []
    own = brought or next(filter(None, (find_library(name, prefix) for prefix in others)), None)
    if own is None:
        pytest.skip(f"no {KNOWN[name].library} that {mpi.name} runs on is here")
    for path in own.parent.glob(FILES[name]):
        if path.is_file():
            shutil.copy(path, tmp_path)
    library = KNOWN[name].library
    there = adopt_layer(mpi, f"{name}@{tmp_path}", str(tmp_path), "word")
    assert isinstance(there, Mpi), there
    loaded = read_loaded_layer(there, name)
    assert loaded.paths == (f"{tmp_path}/{library}",) and loaded.version[0].isdigit()
    assert f"{tmp_path}/{library}" not in read_loaded_layer(mpi, name).paths
    other = adopt_layer(mpi, f"{name}@0.0.1", str(tmp_path), "word")
    assert isinstance(other, Unusable) and f"says that it is {loaded.version}" in other.problem
    variable, value = NO_TRANSPORT[name]
    silent = replace(mpi, env=mpi.env | {variable: value})
    assert isinstance(adopt_layer(silent, f"{name}@{tmp_path}", str(tmp_path), "word"), Unusable)
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / library).touch()
    assert isinstance(adopt_layer(mpi, f"{name}@{fake}", str(fake), "word"), Unusable)


@pytest.mark.skipif(not any(mpi.family == "mpich" for mpi in list_own_mpis()), reason="no MPICH is here")
def test_ranks_that_share_no_memory_are_on_one_host(tmp_path: Path):
    """MPICH says of each that it is alone: the record had two hosts of one name, and was incorrect."""
    file = tmp_path / "records"
    words = ("--output", str(file), "--routine", "pingpong:8", "--trials", "3", *TINY)
    ended = program("mpich").run(2, *words, variables={"MPIR_CVAR_NOLOCAL": "1"})
    assert ended.status == 0, ended.complaints
    assert '"per_node":2,' in file.read_text() and '"ranks":2}]' in file.read_text()
