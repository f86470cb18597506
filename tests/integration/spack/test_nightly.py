"""A first night with Spack."""

from pathlib import Path

import pytest

from spack_envs.provide import NoSpack, provide_spack
from tests.support.mpi import of_family
from tests.support.nights import FEW, night, programs, written_to_sources
from tests.support.plumbline_runner import Workshop


def test_night_with_spack(tmp_path: Path) -> None:
    """With one MPI: that each gets its own program is for the tests of builds."""
    answer = provide_spack(tmp_path / "probe", print)
    if isinstance(answer, NoSpack):
        pytest.skip(f"no Spack: {answer.reason}")
    workshop, name = Workshop(tmp_path / "home", spack=True), of_family("mpich").name
    assert workshop.run("calibrate", *FEW, "--environment", name, "--launches", "1").status == 0
    ended = night(workshop, name)
    assert ended.summary["built_with"] == f"Spack {answer.version}"
    built = programs(workshop, name)
    assert all("/spack/installed/" in path for path, _ in built.values())
    assert all(launch["spec"].startswith("mpicost/") for launch in ended.summary["launches"])
    session = workshop.home / "sessions" / ended.summary["session"]
    assert {lock.stem for lock in (session / "spack").glob("*.lock")} == set(built)
    night(workshop, name)
    assert programs(workshop, name) == built
    assert not written_to_sources()
