"""A first night with Spack."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_envs.provide import NoSpack, provide_spack
from tests.support.nights import FEW, night, programs
from tests.support.plumbline_runner import ROOT, Workshop

pytestmark = pytest.mark.alone


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
    assert workshop.run("calibrate", *FEW, "--launches", "1").status == 0
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
