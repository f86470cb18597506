"""The whole way with a real Spack: solve, build, run on the right MPI, and build only what changed.

The MPIs are those of the work directory, which ``./plumbline test`` has set up.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from postprocess.base.progress import Progress
from postprocess.model.routines.benchmark import CHECKED
from site_configs.common import work_directory
from site_configs.mpi import inventory
from site_configs.mpi.family import Mpi
from site_configs.programs.program import PRODUCTS
from spack_envs import layout
from spack_envs.install import Builder
from spack_envs.installation import Installation
from spack_envs.machine import SpackEnvironment, write_environment
from spack_envs.mirror.use import find_default_mirror as default_mirror
from spack_envs.provide import MirroredSources, NoSpack, Spack, provide_spack
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT as SOURCE

#: OSU and IMB for every MPI take minutes, and longer where other work keeps the machine busy.
pytestmark = pytest.mark.timeout(7200)

HOME = os.environ["HOME"]
RUN_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

#: Family, and what MPI_Get_library_version begins with.
LIBRARIES = {"mpich": "MPICH Version:", "openmpi": "Open MPI v", "intel-mpi": "Intel(R) MPI Library"}


#: What two processes are asked, and a part of what they answer.
RUN = {"osu": ["-m", "8:8"], "imb": ["-npmin", "2", "-iter", "10", "PingPong"]}
VERSIONS = {"osu": "7.4", "imb": "2021.11"}
STARTED = {"osu": "pt2pt/osu_latency", "imb": "IMB-MPI1"}
SAYS = {"osu": "# OSU MPI Latency Test v7.4", "imb": "Intel(R) MPI Benchmarks 2021.11"}


@dataclass(frozen=True)
class DebianMpi:
    """One of Debian's MPIs, all of which have the prefix /usr."""

    family: str
    version: str
    prefix: str = "/usr"
    modules: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.family}-{self.version}"

    @property
    def mpicc(self) -> str:
        return f"/usr/bin/mpicc.{self.family}"

    @property
    def mpiexec(self) -> str:
        return f"/usr/bin/mpiexec.{self.family}"


@pytest.fixture(scope="module")
def mpis() -> list[Mpi]:
    """The MPIs of this machine that have a Spack environment."""
    return [mpi for mpi in inventory.load_inventory(work_directory()).mpis if mpi.family in LIBRARIES]


@pytest.fixture(scope="module")
def spack(tmp_path_factory) -> Spack:
    """The Spack that Plumbline would take here."""
    answer = provide_spack(tmp_path_factory.mktemp("spack"), print)
    if isinstance(answer, NoSpack):
        pytest.skip(f"no Spack: {answer.reason}")
    return answer


@dataclass(frozen=True)
class Site:
    """Sources and a work directory of their own, and a Spack."""

    source: Path
    work: Path
    home: Path
    spack: Spack
    sources: MirroredSources | None

    def environment(self, mpi: Mpi | DebianMpi) -> SpackEnvironment:
        return write_environment(self.work, self.source, self.spack, mpi, sources=self.sources)

    def call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a Spack command."""
        variables = layout.spack_environment_variables(self.work, self.spack.executable)
        env = {**os.environ, **variables, "HOME": str(self.home)}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def run(self, command: list[str]) -> str:
        """Standard output of a Spack command that must end well."""
        done = self.call(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def build(self, mpi: Mpi | DebianMpi, name: str) -> Installation:
        """A program of one MPI, built if need be."""
        directory = self.environment(mpi).directory
        return Builder(self.work, self.spack.executable, directory, print).install(name)

    def install(self, mpi: Mpi | DebianMpi) -> Path:
        """The executable mpicost of one MPI, built if need be."""
        return self.build(mpi, "mpicost").folder / "mpicost"


@pytest.fixture(scope="module")
def site(tmp_path_factory, spack) -> Iterator[Site]:
    """A copy of the sources under git, as a user's clone is."""
    root = tmp_path_factory.mktemp("site")
    source = root / "source"
    hidden = shutil.ignore_patterns("__pycache__", ".*")
    for folder in ("suite", "spack_envs"):
        shutil.copytree(SOURCE / folder, source / folder, ignore=hidden)
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "sources"]):
        subprocess.run(["git", *identity, *arguments], cwd=source, check=True)
    (root / "home").mkdir()
    mirror = default_mirror(Progress())
    site = Site(source, root / "work", root / "home", spack, mirror.sources if mirror else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root / "home"))
        yield site


def built(path: Path) -> tuple[int, int]:
    """What changes if a program is built again."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def run_record(program: Path, mpi: Mpi | DebianMpi, folder: Path) -> dict:
    """What the program says of itself when two processes of it run."""
    output = folder / f"{mpi.name}.jsonl"
    few = ("--routine", "barrier", "--trials", "3", "--cache", "warm")
    command = [mpi.mpiexec, "-n", "2", program, *few]
    subprocess.run([*command, "--output", output], env={**os.environ, **RUN_AS_ROOT}, check=True, timeout=120)
    return json.loads(output.read_text().splitlines()[0])


def test_every_mpi_gets_its_own_program(site, mpis, tmp_path):
    """Built in turn: then all run on the MPI asked for, and none was built twice."""
    programs = {mpi: site.install(mpi) for mpi in mpis}
    before = {program: built(program) for program in programs.values()}
    assert len(before) == len(mpis)
    for mpi, program in programs.items():
        record = run_record(program, mpi, tmp_path)
        assert record["mpi_library"].startswith(LIBRARIES[mpi.family])
        assert mpi.version.removesuffix(".0") in record["mpi_library"]
        assert record["processes"] == 2
    for mpi, program in programs.items():
        environment = site.environment(mpi)
        assert not environment.changed
        assert site.install(mpi) == program
        find = ["spack", "-e", str(environment.directory), "find", "--format", "{hash}", "mpicost"]
        assert site.run(find) == layout.read_locked_hash(environment.directory)
    assert {program: built(program) for program in before} == before


def test_sources_and_home_stay_clean(site, mpis):
    for mpi in mpis:
        site.install(mpi)
    status = ["git", "status", "--porcelain", "--ignored"]
    done = subprocess.run(status, cwd=site.source, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert list(site.home.iterdir()) == []


@pytest.fixture
def some_source(site):
    """A source file of the suite, which is put back afterwards."""
    path = site.source / "suite" / "src" / "main.c"
    text, status = path.read_text(), path.stat()
    yield path
    path.write_text(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_touched_source_is_not_built_again(site, mpis, some_source):
    program = site.install(mpis[0])
    before = built(program)
    os.utime(some_source)
    site.install(mpis[0])
    assert built(program) == before


def test_changed_source_is_built_again_even_if_it_is_older(site, mpis, some_source, tmp_path):
    """An older file is put back by rsync, tar and cp -p; neither Spack nor Ninja would see it."""
    program = site.install(mpis[0])
    before, hash_before = built(program), run_record(program, mpis[0], tmp_path)["source_hash"]
    some_source.write_text(some_source.read_text() + "\n/* changed */\n")
    os.utime(some_source, (1e9, 1e9))
    assert site.install(mpis[0]) == program
    assert built(program) != before
    assert run_record(program, mpis[0], tmp_path)["source_hash"] != hash_before


@plants("builds", "a source that does not compile", "mpicost, built by Spack", "incomplete", 1,
        "main.c:1:2: error: …spack-build-out")  # fmt: skip
def test_failed_build_says_so_and_keeps_the_old_program(site, mpis, some_source, declared):
    program = site.install(mpis[0])
    some_source.write_text("#error broken\n")
    environment = site.environment(mpis[0])
    builder = Builder(site.work, site.spack.executable, environment.directory, print)
    with declared.raises(layout.SpackEnvironmentError):
        builder.install("mpicost")
    assert program.exists()


def test_missing_build_tool_is_not_compiled(site, mpis, tmp_path):
    """Without the closed world, Spack would now compile a CMake."""
    environment = site.environment(mpis[0])
    copy = tmp_path / "environments" / environment.directory.name
    shutil.copytree(environment.directory.parent, copy.parent)
    shutil.rmtree(copy / ".spack-env", ignore_errors=True)
    (copy / "spack.lock").unlink(missing_ok=True)
    text = (copy / "machine.yaml").read_text()
    (copy / "machine.yaml").write_text(text.replace("spec: cmake@", "spec: cmake@1.").strip())
    done = site.call(["spack", "-e", str(copy), "concretize"])
    assert done.returncode != 0
    assert "cmake" in done.stdout + done.stderr


def debian_mpis() -> list[DebianMpi]:
    """Debian's MPIs, if both are here; they share /usr."""
    pairs = (("mpich", "4.0.2"), ("openmpi", "4.1.4"))
    return [
        DebianMpi(family, version) for family, version in pairs if Path(f"/usr/bin/mpicc.{family}").exists()
    ]


@pytest.mark.skipif(len(debian_mpis()) < 2, reason="Debian's MPICH and Open MPI are not both here")
def test_debian_mpis_are_told_apart(site, tmp_path):
    for mpi in debian_mpis():
        record = run_record(site.install(mpi), mpi, tmp_path)
        assert record["mpi_library"].startswith(LIBRARIES[mpi.family])


@pytest.fixture(scope="module")
def prepared() -> Site:
    """What ``./plumbline setup`` has built, or would build now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", HOME)  # another fixture has its own
        work, mirror = work_directory(), default_mirror(Progress())
        answer = provide_spack(work, print)
    if isinstance(answer, NoSpack):
        pytest.skip(f"no Spack: {answer.reason}")
    sources = mirror.sources if mirror else None
    return Site(SOURCE, work, Path(HOME), answer, sources)


#: Each program on one MPI, since each takes minutes; OSU on MPICH is built from the mirror.
BUILT = {"mpich": ("mpicost",), "openmpi": ("mpicost", "imb"), "intel-mpi": ("mpicost", "osu")}


def all_programs(site: Site, mpi: Mpi) -> dict[str, Installation]:
    """OSU or IMB, or both, and mpicost, for an MPI."""
    try:
        return {name: site.build(mpi, name) for name in BUILT[mpi.family]}
    except layout.SourceError as error:
        pytest.skip(f"OSU and IMB were not built: {error}")


@pytest.fixture(scope="module")
def others(prepared, mpis) -> dict[Mpi, dict[str, Installation]]:
    """Programs for every MPI, as they are measured."""
    return {mpi: all_programs(prepared, mpi) for mpi in mpis}


def test_osu_and_imb_are_built_on_the_mpi_asked_for(prepared, others):
    for mpi, programs in others.items():
        prefix = prepared.environment(mpi).prefix
        for name in RUN.keys() & programs.keys():
            program = programs[name].folder / STARTED[name]
            linked = subprocess.run(
                ["readelf", "-d", program], capture_output=True, text=True, check=True
            ).stdout
            assert str(prefix) in linked
            done = subprocess.run(
                [mpi.mpiexec, "-n", "2", program, *RUN[name]],
                env={**os.environ, **RUN_AS_ROOT},
                capture_output=True,
                text=True,
                timeout=300,
                check=True,
            )
            assert SAYS[name] in done.stdout


def test_flags_stand_beside_the_executables_as_they_were_used(others):
    for programs in others.values():
        for name, program in programs.items():
            record = program.record
            assert ("-O3" if name == "mpicost" else "-O2") in record["flags"].split()
            assert not {"-O0", "-O1"} & set(record["flags"].split())
            assert record["compiler"].startswith("gcc ")
            assert record["program"] == name
            assert record["version"] == VERSIONS.get(name, record["version"])


def test_imb_has_the_executables_that_are_measured_and_no_others(others):
    found = [programs["imb"].folder for programs in others.values() if "imb" in programs]
    assert found
    for folder in found:
        executables = sorted(path.name for path in folder.iterdir())
        timing = ["IMB-MPI1", "IMB-NBC", "IMB-RMA"]
        unverified = ["IMB-IO", "IMB-MT"]
        assert executables == sorted([*timing, *(name + CHECKED for name in timing), *unverified])


def test_solution_is_kept_and_spack_is_not_started_for_what_is_built(prepared, others):
    for mpi, programs in others.items():
        environment = prepared.environment(mpi)
        before = built(environment.lock)
        silent = Builder(prepared.work, Path("/nonexistent/spack"), environment.directory, print)
        for name, done in programs.items():
            assert silent.install(name) == done
        assert built(prepared.environment(mpi).lock) == before


@pytest.fixture
def edited(site):
    """Edit files of the sources; they are put back afterwards."""
    texts: dict[Path, str] = {}

    def edit(name: str, old: str, new: str) -> None:
        path = site.source / "spack_envs" / name
        text = path.read_text()
        texts.setdefault(path, text)
        assert old in text
        path.write_text(text.replace(old, new))

    yield edit
    for path, text in texts.items():
        path.write_text(text)


def recipe(folder: str) -> str:
    """The place of a recipe of ours."""
    return f"spack_repo/plumbline/packages/{folder}/package.py"


@plants("builds", "a recipe that fails", "OSU, built by Spack", "incomplete", 1, "broken")
def test_broken_recipe_hurts_no_other_program(site, mpis, edited, declared: Declared):
    """What is solved and installed alone needs no OSU that was whole before."""
    before = site.build(mpis[0], "mpicost").prefix
    edited(recipe("osu_micro_benchmarks"), "return [*super()", "raise ValueError('broken')  # ")
    with declared.raises(layout.SpackEnvironmentError):
        try:
            site.build(mpis[0], "osu")
        except layout.SourceError as error:
            pytest.skip(f"OSU cannot be built: {error}")
    assert site.build(mpis[0], "mpicost").prefix == before


@plants("builds", "a version that no recipe has", "OSU, built by Spack", "incomplete", 1,
        "cannot be solved: …osu-micro-benchmarks@99")  # fmt: skip
def test_version_that_is_not_known_hurts_no_other_program(site, mpis, edited, declared: Declared):
    before = site.build(mpis[0], "mpicost").prefix
    edited("common/definitions.yaml", "osu-micro-benchmarks@7.4", "osu-micro-benchmarks@99")
    with declared.raises(layout.SpackEnvironmentError):
        site.build(mpis[0], "osu")
    assert site.build(mpis[0], "mpicost").prefix == before


def test_other_flags_are_another_program(site, mpis, edited):
    before = site.build(mpis[0], "mpicost")
    edited(recipe("mpicost"), 'level = "-O3"', 'level = "-O2"')
    edited(recipe("mpicost"), "return [self.define(", "return ['-DCMAKE_C_FLAGS_RELEASE=-O2', self.define(")
    after = site.build(mpis[0], "mpicost")
    assert after.prefix != before.prefix
    assert "-O2" in after.record["flags"].split()


def test_changed_helper_of_the_recipes_builds_again(site, mpis, edited):
    before = site.build(mpis[0], "mpicost")
    edited("spack_repo/plumbline/build_record.py", "def telling", "CHANGED = True\n\n\ndef telling")
    assert site.build(mpis[0], "mpicost").prefix != before.prefix


@plants("builds", "a recipe that compiles with other flags than it tells", "mpicost, built by Spack",
        "incomplete", 1,
        "compiled with … and not with -O2")  # fmt: skip
def test_program_that_was_compiled_otherwise_than_meant_is_not_installed(
    site, mpis, edited, declared: Declared
):
    edited(recipe("mpicost"), 'level = "-O3"', 'level = "-O2"')
    with declared.raises(layout.SpackEnvironmentError):
        site.build(mpis[0], "mpicost")


@plants("builds", "no network and no mirror", "OSU and IMB, built by Spack", "skipped", 0,
        "cannot be fetched from …./plumbline setup --mirror DIR")  # fmt: skip
def test_source_that_cannot_be_had_is_told_in_seconds(site, mpis, tmp_path, monkeypatch, declared):
    """Neither upstream nor a mirror, as on a node without a network; mpicost needs none."""
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("PLUMBLINE_SPACK_MIRROR", raising=False)
    away = replace(site, work=tmp_path / "work", sources=None)
    assert away.install(mpis[0]).exists()
    for name, address in (("osu", "https://mvapich"), ("imb", PRODUCTS["imb"].git)):
        with declared.raises(layout.SourceError) as caught:
            away.build(mpis[0], name)
        assert address in str(caught.value)
