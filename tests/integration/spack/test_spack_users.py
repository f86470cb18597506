"""Our repository of recipes in a user's own Spack: added, installed from, tested, and built by ReFrame."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from site_configs.common import work_directory
from site_configs.mpi import inventory
from site_configs.mpi.family import Mpi
from spack_envs.installation import read_program
from spack_envs.machine import write_environment
from spack_envs.provide import NoSpack, provide_spack
from tests.support.paths import ROOT

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def write_configuration(folder: Path, machine: Path) -> None:
    """A user's configuration: the MPI, the compiler and the recipes of Spack; nothing of ours."""
    settings = yaml.safe_load(machine.read_text())
    del settings["develop"]
    settings["repos:"] = {"builtin": settings["repos:"]["builtin"]}
    settings["config"] |= {"develop_stage_link": "build-{arch}-{hash:7}"}
    for section, content in settings.items():
        name = section.rstrip(":")
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({section: content}))


@dataclass(frozen=True)
class User:
    """Who has a Spack of their own, and an MPI."""

    folder: Path
    executable: Path
    mpi: Mpi

    @property
    def variables(self) -> dict[str, str]:
        """The environment of their shell."""
        own = {
            "PYTHONDONTWRITEBYTECODE": "1",  # in the sources
            "SPACK_PYTHON": sys.executable,
            "SPACK_USER_CONFIG_PATH": str(self.folder / "config"),
            "SPACK_SYSTEM_CONFIG_PATH": str(self.folder / "none"),
            "SPACK_USER_CACHE_PATH": str(self.folder / "cache"),
            "PLUMBLINE_HOME": str(self.folder / "home"),
            "PATH": f"{self.executable.parent}:{os.environ['PATH']}",
        }
        return {**os.environ, **AS_ROOT, **own}

    def run(self, *words: str) -> str:
        """Run a command that must end well; its output."""
        done = subprocess.run(
            words, env=self.variables, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    folder = tmp_path_factory.mktemp("user")
    answer = provide_spack(folder / "probe", print)
    if isinstance(answer, NoSpack):
        pytest.skip(f"no Spack: {answer.reason}")
    mpis = inventory.load_inventory(work_directory()).mpis
    mpi = next(each for each in mpis if each.family == "openmpi")
    machine = write_environment(folder / "work", ROOT, answer, mpi).directory / "machine.yaml"
    (folder / "config").mkdir()
    write_configuration(folder / "config", machine)
    return User(folder, answer.executable, mpi)


@pytest.mark.timeout(1800)
def test_plain_reframe_builds_with_the_spack_of_the_site(user: User) -> None:
    """By ReFrame's own support of Spack, and the program tells so."""
    site = {
        "systems": [
            {
                "name": "home",
                "hostnames": [".*"],
                "partitions": [
                    {
                        "name": "cpu",
                        "scheduler": "local",
                        "launcher": "mpirun",
                        "environs": ["gnu"],
                        "processor": {"num_cpus": 2, "num_cpus_per_core": 1},
                    }
                ],
            }
        ],
        "environments": [
            {
                "name": "gnu",
                "features": ["mpi"],
                "env_vars": [["PATH", f"{user.mpi.prefix}/bin:$PATH"]],
                "extras": {"spack_spec": f"mpicost@main ^openmpi@{user.mpi.version}"},
            }
        ],
    }
    (user.folder / "site.py").write_text(f"site_configuration = {site!r}\n")
    reframe = [str(Path(sys.executable).parent / "reframe"), "-C", str(user.folder / "site.py")]
    few = [f"mpicost.{each}" for each in ("routines=barrier", "cache=warm", "strict=False")]
    words = ["-c", str(ROOT / "reframe_checks"), "-n", "mpicost", "-r"]
    said = user.run(*reframe, *words, *(word for each in few for word in ("-S", each)))
    built = read_program(user.folder / "home", "gnu", "mpicost")
    assert built.spec.startswith("mpicost@main") and "/spack/installed/" in built.path, said


@pytest.mark.timeout(1800)
def test_a_user_of_spack_installs_and_tests_mpicost(user: User) -> None:
    user.run("spack", "repo", "add", str(ROOT / "spack_envs" / "spack_repo" / "plumbline"))
    user.run("spack", "install", "mpicost", f"^openmpi@{user.mpi.version}")
    said = user.run("spack", "test", "run", "--dirty", "mpicost")  # root's variables
    assert "1 passed of 1 spec" in said or "2 passed of 2 specs" in said
