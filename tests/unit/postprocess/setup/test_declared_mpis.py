"""The MPIs of a site file get Spack environments too; what Spack cannot use is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from postprocess.setup import prepare as preparation
from postprocess.setup.prepare import (
    DeclaredMpi,
    UnusableEnvironment,
    parse_declared_mpi,
    prepare_machine,
    read_declared_mpis,
)
from site_configs.common import environment
from spack_envs.errors import SpackEnvironmentError
from spack_envs.layout import SpackLayout
from spack_envs.machine import build_external_entry
from spack_envs.toolchain import ExternalPackage
from tests.support.factories.scheduler import CRAY
from tests.support.factories.setup import SPACK
from tests.support.factories.site import CRAY_MPICH, OPENMPI, PLAIN, slurm, text_of
from tests.support.fake_mpis import install, script
from tests.support.faults import Declared, plants


@pytest.fixture
def sw(tmp_path: Path) -> Path:
    """Where a site has an MPI."""
    install(tmp_path / "sw")
    return tmp_path / "sw"


def an_environment(**changes) -> dict:
    values = {"family": "openmpi", "library": "Open MPI v4.1.6", "launcher": "srun"}
    return environment("openmpi-4", **values | changes)


def problem(**changes) -> str:
    with pytest.raises(SpackEnvironmentError) as refused:
        parse_declared_mpi(an_environment(**changes))
    return str(refused.value)


def test_an_mpi_of_modules_is_known_by_its_prefix(sw: Path):
    assert parse_declared_mpi(an_environment(prefix=str(sw), modules=["openmpi/4.1.6"])) == DeclaredMpi(
        name="openmpi-4",
        family="openmpi",
        version="4.1.6",
        prefix=str(sw),
        mpicc=f"{sw}/bin/mpicc",
        mpiexec=f"{sw}/bin/mpiexec",
        modules=("openmpi/4.1.6",),
    )


def test_the_prefix_follows_from_a_wrapper_with_its_path(sw: Path):
    found = parse_declared_mpi(an_environment(mpicc=f"{sw}/bin/mpicc"))
    assert (found.prefix, found.mpicc) == (str(sw), f"{sw}/bin/mpicc")
    given = parse_declared_mpi(an_environment(mpicc=f"{sw}/bin/mpicc", prefix="/opt/other"))
    assert given.prefix == "/opt/other"


def test_what_spack_cannot_use_is_told(sw: Path):
    assert problem() == "its site file does not say where it is: write prefix="
    assert problem(prefix="/none") == "prefix: /none/bin/mpicc is not on this machine"
    cray = {"family": "cray-mpich", "library": "CRAY MPICH version 8.1", "mpicc": "cc"}
    known = "is none of mpich, openmpi, intel-mpi"
    assert problem(**cray, prefix=str(sw)) == f"family 'cray-mpich' {known}"
    other = {"family": "mpich", "library": "MVAPICH Version: 4.0"}
    assert problem(**other, prefix=str(sw)) == f"family 'mpich' {known}"


@pytest.mark.parametrize("value", ["sw", 3, None, ["/sw"]])
def test_a_prefix_that_is_no_path_is_refused(value):
    with pytest.raises(ValueError, match=r"^environment 'openmpi-4': prefix: .*: write an absolute"):
        an_environment(prefix=value)


# Modules.


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A login shell in which one module brings a compiler; the folder of it."""
    for name in ("gcc", "cmake", "ninja"):
        script(tmp_path / "gcc" / "bin" / name, "echo 99.1.0")
    script(tmp_path / "gcc" / "bin" / "make", "echo GNU Make 99.1")
    shell = 'module() { case "$*" in "load a b") PATH="%s:$PATH";; *) return 1;; esac; }'
    (tmp_path / ".bash_profile").write_text(shell % (tmp_path / "gcc" / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "gcc"


def of_modules(*names: str) -> DeclaredMpi:
    return DeclaredMpi("x", "mpich", "5", "/sw", "/sw/bin/mpicc", "/sw/bin/mpiexec", names)


def test_the_compiler_is_that_of_the_modules(modules: Path):
    gcc = next(each for each in of_modules("a", "b").toolchain if each.package == "gcc")
    assert gcc.prefix == str(modules)
    assert gcc.spec.startswith("gcc@99.1.0")
    assert of_modules().toolchain is None


@plants("schedulers", "modules that do not load", "a site file", "incomplete", 1,
        "modules a c do not load on this node")  # fmt: skip
def test_modules_that_do_not_load_are_named(modules: Path, declared: Declared):
    with declared.raises(SpackEnvironmentError, match=r"^modules a c do not load on this node$"):
        _ = of_modules("a", "c").toolchain


def test_spack_loads_the_modules_of_an_mpi():
    entry = build_external_entry(ExternalPackage("mpich", "mpich@=5", "/sw", modules=("a", "b")))
    assert entry["externals"] == [{"spec": "mpich@=5", "prefix": "/sw", "modules": ["a", "b"]}]
    assert "modules" not in build_external_entry(ExternalPackage("mpich", "mpich@=5", "/sw"))["externals"][0]


# Whole sites.


def site_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return str(path)


def test_a_site_file_that_was_made_by_site_new_tells_where_its_mpis_are(tmp_path, work, sw):
    text = text_of(slurm(CRAY, OPENMPI, CRAY_MPICH))
    assert 'prefix="/sw/openmpi/5.0.3",  # Spack builds on it' in text
    site = site_of(tmp_path, text.replace("/sw/openmpi/5.0.3", str(sw)))
    openmpi, cray = read_declared_mpis(work, site)
    assert (openmpi.prefix, openmpi.modules) == (str(sw), ("openmpi/5.0.3",))
    assert cray == UnusableEnvironment(
        CRAY_MPICH.name, "family 'cray-mpich' is none of mpich, openmpi, intel-mpi"
    )


def test_a_site_file_with_a_fault_is_left_to_reframe(tmp_path, work):
    text = text_of(PLAIN).replace('family="mpich"', "family=None")
    found = [each.name for each in read_declared_mpis(work, site_of(tmp_path, text))]
    assert found == ["openmpi-5_0_3"]
    assert list(read_declared_mpis(work, site_of(tmp_path, "site_configuration = 1 / 0"))) == []


def test_each_mpi_of_a_site_gets_an_environment_or_a_line(tmp_path, work, progress, sw, monkeypatch):
    written = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(preparation, "provide_spack", lambda *_: SPACK)
    monkeypatch.setattr(
        preparation.spack_machine, "write_environment", lambda *words: written.append(words[3].name)
    )
    pieces = [
        f"environment('one', family='openmpi', library='Open MPI v4.1.6', launcher='srun', prefix='{sw}')",
        "environment('two', family='mvapich', library='MVAPICH Version: 3.0', launcher='srun')",
        "environment('three', family='mvapich', library='MVAPICH Version: 4.0', launcher='srun')",
    ]
    names = "['one', 'two', 'three']"
    text = (
        "from site_configs.common import environment, partition, site\n"
        "from site_configs.topology.layouts import Topology\n"
        f"site_configuration = site('mine', description='x', environments=[{', '.join(pieces)}],\n"
        f"    partitions=[partition('cpu', topology=Topology(4), environments={names})])\n"
    )
    stale = SpackLayout(work.root).environment("two") / "spack.yaml"
    stale.parent.mkdir(parents=True)
    stale.touch()
    found = prepare_machine(work, site_of(tmp_path, text), None, progress)
    assert written == ["one"]
    assert found.built_with == "Spack 1.1.0, CMake for two, three"
    assert progress.notes == [
        "Spack cannot be used for two, three (family 'mvapich' is none of mpich, openmpi, intel-mpi): "
        "they are built with CMake"
    ]
    assert not stale.exists()
