"""An MPI that only a container has: a mount namespace with a folder of its own stands for an image."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.faults import Declared, plants
from tests.support.faulty_site import write_faulty_site
from tests.support.mpi import Installation
from tests.support.plumbline_runner import Workshop

pytestmark = pytest.mark.long

INSIDE = Path("/mnt")  #: a folder that every machine has; outside nothing of an MPI is in it
OPEN = 'mount --bind "$0" /mnt && exec "$@"'
BARRIER = ("--program", "mpicost", "--routine", "barrier", "--processes", "2", "--trials", "5", "--strict")


def enter(prefix: Path) -> list[str]:
    """The words that start a program where an MPI is in its folder."""
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *own, "sh", "-c", OPEN, str(prefix)]


@pytest.fixture
def container(mpich: Installation) -> list[str]:
    """The words of a container with MPICH."""
    words = enter(Path(mpich.mpicc).parent.parent)
    tried = subprocess.run([*words, "true"], check=False, capture_output=True, text=True)
    if not shutil.which("unshare") or tried.returncode != 0:
        pytest.skip(f"no mount namespaces here: {tried.stderr.strip()}")
    return words


def test_an_mpi_in_a_container_is_built_and_launched_in_it(
    workshop: Workshop, mpich: Installation, container: list[str], tmp_path: Path
) -> None:
    """By its own launcher, and by one outside that starts each process in a container of its own."""
    mpicc = str(INSIDE / "bin" / "mpicc")
    assert not Path(mpicc).exists()
    shared = {"container": container, "mpicc": mpicc, "env_vars": {}}
    own = {"inside": {**shared, "launcher": [*container, str(INSIDE / "bin" / "mpiexec")]}, "outside": shared}
    site = write_faulty_site(tmp_path / "boxes.py", mpich, ["inside", "outside"], own)
    assert workshop.run("site", "check", str(site)).status == 0
    ended = workshop.measure("--site", str(site), *BARRIER)
    found = {case["environment"]: case["verdict"] for case in ended.summary["cases"]}
    assert found == dict.fromkeys(own, "no-reference"), ended.output
    program = workshop.home / "build" / "inside" / "installed" / "bin" / "mpicost"
    alone = subprocess.run([program, "--list"], check=False, capture_output=True, text=True)
    assert "cannot open shared object file" in alone.stderr


@plants("environment", "a container without the MPI that it should hold", "a site file", "", 1,
        "container: '/mnt/bin/mpicc' does not run in it")  # fmt: skip
def test_a_container_without_its_mpi_is_told(
    workshop: Workshop, mpich: Installation, container: list[str], tmp_path: Path, declared: Declared
) -> None:
    (empty := tmp_path / "empty").mkdir()
    own = {"inside": {"container": enter(empty), "mpicc": str(INSIDE / "bin" / "mpicc"), "env_vars": {}}}
    site = write_faulty_site(tmp_path / "boxes.py", mpich, ["inside"], own)
    ended = workshop.run("site", "check", str(site))
    declared.check((), ended.status, [ended.output + ended.errors])
