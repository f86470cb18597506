"""A first night with Spack."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spack_envs.programs import read_program
from spack_envs.provide import NoSpack, provide_spack
from tests.support.mpi import mpi_installations
from tests.support.plumbline_runner import ROOT, Ended, Workshop

FEW = ("--program", "mpicost", "--routine", "pingpong,barrier", "--trials", "5")


def night(workshop: Workshop) -> Ended:
    """One short night over all MPIs."""
    file = workshop.home / "summary.json"
    ended = workshop.run("nightly", *FEW, "--json", str(file))
    assert ended.status == 0, ended.output + ended.errors
    return Ended(ended.status, ended.output, ended.errors, json.loads(file.read_text()))


def programs(workshop: Workshop) -> dict[str, tuple[str, int]]:
    """Path and time of the program of each environment."""
    paths = {
        mpi.name: read_program(workshop.home, mpi.name, "mpicost").path
        for mpi in mpi_installations()
    }
    return {name: (path, os.stat(path).st_mtime_ns) for name, path in paths.items()}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("nights") / "home")


def written_to_sources() -> list[Path]:
    """What builds would leave in the source tree if they were let."""
    traces = ("build-*", "spack-build*", "spack.lock", ".spack-env", "CMakeCache.txt")
    folders = (ROOT / "suite", ROOT / "spack_envs")
    return [path for folder in folders for trace in traces for path in folder.rglob(trace)]


def test_night_with_spack(tmp_path: Path) -> None:
    answer = provide_spack(tmp_path / "probe", print)
    if isinstance(answer, NoSpack):
        pytest.skip(f"no Spack: {answer.reason}")
    workshop = Workshop(tmp_path / "home", spack=True)
    ended = night(workshop)
    assert ended.summary["built_with"] == f"Spack {answer.version}"
    built = programs(workshop)
    assert all("/spack/installed/" in path for path, _ in built.values())
    assert all(launch["spec"].startswith("mpicost/") for launch in ended.summary["launches"])
    session = workshop.home / "sessions" / ended.summary["session"]
    assert {lock.stem for lock in (session / "spack").glob("*.lock")} == set(built)
    night(workshop)
    assert programs(workshop) == built
    assert not written_to_sources()
