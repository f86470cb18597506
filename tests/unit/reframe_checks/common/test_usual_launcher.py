"""The launcher of an environment of a plain ReFrame configuration that names none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from reframe_checks.common.mpi_support import find_usual_launcher
from site_configs.schema.environment_facts import EnvironmentFacts
from tests.support.fake_mpis import install


@pytest.mark.parametrize("suffix", ["", ".openmpi"])
def test_the_launcher_beside_a_wrapper_is_taken(tmp_path: Path, suffix: str):
    """Else ``mpiexec`` is sought on a search path that may not have it, or has another MPI's."""
    mpicc = install(tmp_path, suffix=suffix)
    facts = EnvironmentFacts.of(SimpleNamespace(name="gnu", cc=str(mpicc), extras={}))
    assert find_usual_launcher(facts) == f"{tmp_path}/bin/mpiexec{suffix}"
    mpicc.with_name(f"mpiexec{suffix}").unlink()
    assert find_usual_launcher(facts) == "mpiexec"
    plain = EnvironmentFacts.of(SimpleNamespace(name="gnu", cc="mpicc", extras={}))
    assert find_usual_launcher(plain) == "mpiexec"
