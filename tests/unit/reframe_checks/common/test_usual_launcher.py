"""The launcher of an environment of a plain ReFrame configuration that names none."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from reframe_checks.common import mpi_support
from reframe_checks.common.mpi_support import find_chosen_launcher, find_usual_launcher
from site_configs.schema.facts import EnvironmentFacts
from tests.support.fake_mpis import install, script


@pytest.mark.parametrize("suffix", ["", ".openmpi"])
def test_the_launcher_beside_a_wrapper_is_taken(tmp_path: Path, suffix: str):
    """Else ``mpiexec`` is sought on a search path that may not have it, or has another MPI's."""
    mpicc = install(tmp_path, suffix=suffix)
    facts = EnvironmentFacts.of(SimpleNamespace(name="gnu", cc=str(mpicc), extras={}, features=[]))
    assert find_usual_launcher(facts) == f"{tmp_path}/bin/mpiexec{suffix}"
    mpicc.with_name(f"mpiexec{suffix}").unlink()
    assert find_usual_launcher(facts) == "mpiexec"
    plain = EnvironmentFacts.of(SimpleNamespace(name="gnu", cc="mpicc", extras={}, features=[]))
    assert find_usual_launcher(plain) == "mpiexec"


def test_a_wrapper_of_another_name_is_no_launcher(tmp_path: Path):
    """As Intel MPI's: a program that is started by a compiler does not run."""
    install(tmp_path)
    wrapper = script(tmp_path / "bin" / "mpiicx", "exit 0")
    facts = EnvironmentFacts.of(SimpleNamespace(name="intel", cc=str(wrapper), extras={}, features=[]))
    assert find_usual_launcher(facts) == f"{tmp_path}/bin/mpiexec"


def test_the_mpirun_of_a_partition_is_found_beside_the_wrapper_if_it_is_not_on_the_path(tmp_path, monkeypatch):
    mpicc = install(tmp_path / "mpi")
    mpirun = script(mpicc.with_name("mpirun"), "exit 0")
    gnu = SimpleNamespace(name="gnu", cc=str(mpicc), extras={}, features=[], modules=[], env_vars={})
    monkeypatch.setattr(mpi_support, "temp_environment", lambda *_: nullcontext())
    monkeypatch.setenv("PATH", str(tmp_path))
    for launcher in ("mpirun", "mpirun-openmpi", "mpirun-intelmpi"):
        assert find_chosen_launcher(gnu, launcher) == str(mpirun)
    assert not find_chosen_launcher(gnu, "srun")
    script(tmp_path / "mpirun", "exit 0")
    assert not find_chosen_launcher(gnu, "mpirun")
    assert find_chosen_launcher(gnu, "mpiexec") == f"{tmp_path}/mpi/bin/mpiexec"
