"""What a session builds for several MPIs at once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.session.nightly import builds
from postprocess.session.nightly.builds import build_part
from tests.support.factories.launch import planned


@pytest.mark.parametrize(
    ("by_spack", "built", "expected"),
    [
        (("a", "b", "c"), (), ["a", "b", "c"]),
        (("a", "b", "c"), ("b",), ["a", "c"]),
        (("a", "c"), ("c",), None),  # one MPI is built by its check
        (("a",), (), None),
    ],
)
def test_what_several_mpis_lack_is_built_for_them_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress, by_spack, built, expected
) -> None:
    called = []
    monkeypatch.setattr(builds, "build_at_once", lambda *given: called.append(given[2:]))
    monkeypatch.setattr(builds, "find_program", lambda _, launch: launch.environment in built or None)
    prepared = SimpleNamespace(by_spack=by_spack, spack="spack")
    context = SimpleNamespace(prepared=prepared, progress=progress, work=SimpleNamespace(root=tmp_path))
    plan = [planned(environment=name) for name in "abc"]
    build_part(context, SimpleNamespace(directory=tmp_path), plan, ["mpicost"])
    folder = tmp_path / builds.FOLDER
    assert called == ([(expected, "mpicost", folder)] if expected else [])
