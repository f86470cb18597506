"""What checks know of an environment of a plain ReFrame configuration."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from site_configs.schema.environment_facts import EnvironmentFacts
from tests.support.fake_mpis import install


@pytest.mark.parametrize("suffix", ["", ".openmpi"])
def test_the_launcher_beside_a_wrapper_is_taken(tmp_path: Path, suffix: str):
    """Else ``mpiexec`` is sought on a search path that may not have it, or has another MPI's."""
    mpicc = install(tmp_path, suffix=suffix)
    facts = EnvironmentFacts.of(SimpleNamespace(name="gnu", cc=str(mpicc), extras={}))
    assert facts.usual_launcher == f"{tmp_path}/bin/mpiexec{suffix}"
    mpicc.with_name(f"mpiexec{suffix}").unlink()
    assert facts.usual_launcher == "mpiexec"
    assert EnvironmentFacts.of(SimpleNamespace(name="gnu", cc="mpicc", extras={})).usual_launcher == "mpiexec"
