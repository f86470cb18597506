"""A site file on its machine: where what it says and what is there differ, it is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from site_configs.schedulers import registry
from site_configs.schedulers.base import Scheduler
from site_configs.schedulers.lsf import LSF
from site_configs.schedulers.module_systems import ModuleSystem
from site_configs.schedulers.pbs import PBS as PBS_SCHEDULER
from site_configs.schedulers.registry import SchedulerError
from site_configs.schedulers.slurm import SLURM
from site_configs.validation import rules
from site_configs.validation.reader import Reader
from site_configs.validation.reading import SiteReading
from site_configs.validation.rules import LocalMachine, find_longest_job, find_machine_faults, is_here
from tests.support.factories.scheduler import CRAY, GROWN, PBS, TORQUE, answering
from tests.support.factories.site import MPICH, OPENMPI, PLAIN, pbs, slurm, text_of
from tests.support.fake_mpis import script

LMOD = ModuleSystem("lmod", "LMOD_CMD is set")
NONE = ModuleSystem("nomod", "neither LMOD_CMD nor MODULES_CMD is set")
CLUSTER = SLURM.read(answering(CRAY))
SITE = text_of(slurm(CRAY, OPENMPI))


@pytest.fixture
def read(tmp_path: Path):
    """What a site file says."""

    def of(text: str) -> SiteReading:
        path = tmp_path / "mine.py"
        path.write_text(text)
        return Reader(path).read()

    return of


@pytest.fixture
def told(read, monkeypatch: pytest.MonkeyPatch):
    """The faults of a site file on a machine, without those of its compiler wrappers."""
    monkeypatch.setattr(rules, "check_wrapper", lambda *_: ())
    monkeypatch.setattr(rules, "check_prefix", lambda *_: ())

    def of(text: str, scheduler: Scheduler | None = CLUSTER, **more) -> list[str]:
        here = LocalMachine(**{"cores": 16, "modules": LMOD, "scheduler": scheduler} | more)
        return [fault.text for fault in find_machine_faults(read(text), here)]

    return of


@pytest.mark.parametrize(
    ("text", "scheduler"),
    [
        (SITE, CLUSTER),
        (text_of(slurm(GROWN, MPICH)), SLURM.read(answering(GROWN))),
        (text_of(pbs(PBS, OPENMPI)).replace("sockets_per_node=0", "sockets_per_node=1"),
         PBS_SCHEDULER.read(answering(PBS))),
        (text_of(pbs(TORQUE, OPENMPI)), PBS_SCHEDULER.read(answering(TORQUE))),
        (text_of(PLAIN), None),
        (text_of(PLAIN), CLUSTER),
    ],
)  # fmt: skip
def test_what_site_new_writes_is_well_on_its_machine(told, text: str, scheduler):
    assert told(text, scheduler) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("=standard", "=standart", "access: Slurm has no partition 'standart'"),
        ("=standard", "=serial", "access: Slurm has no partition 'serial' that is up"),
        ("nodes=4", "nodes=1025", "topology: nodes=1025, and a job in standard gets at most 1024; write 1024"),
        ("cores_per_node=128", "cores_per_node=256", "topology: cores_per_node=256, and the nodes of standard"),
        ("threads_per_core=2", "threads_per_core=4",
         "topology: threads_per_core=4, and the cores of standard have 2; write 2"),
        ("=slurm.SCHEDULER", '="pbs"', "scheduler: 'pbs' is not 'slurm-blocks' or "),
        ('"--partition=standard", ', "\"--partition=short\", ", None),
        ('"--partition=standard", ', "\"-p highmem\", ", None),
        ('"--partition=standard", ', "", None),
    ],
)  # fmt: skip
def test_what_the_scheduler_says_otherwise(told, old: str, new: str, said: str | None):
    assert old in SITE
    lines = told(SITE.replace(old, new))
    assert lines == [] if said is None else lines[0].startswith(f"partition 'standard': {said}")


def test_a_queue_of_several_kinds_has_the_counts_of_the_one_that_is_chosen(told):
    grown = SLURM.read(answering(GROWN))
    text = text_of(slurm(GROWN, OPENMPI)).replace("cores_per_node=48", "cores_per_node=96")
    (line,) = told(text, grown)
    assert "cores_per_node=96, and the nodes of all have 48" in line


def test_reframes_own_backend_needs_accounting(told):
    text = SITE.replace("=slurm.SCHEDULER", '="slurm"')
    assert told(text) == []
    (line,) = told(text, replace(CLUSTER, accounting=False))
    assert "'slurm' asks sacct, and accounting is off on this machine; write 'slurm-blocks'" in line
    assert told(SITE, replace(CLUSTER, accounting=False)) == []


def test_a_scheduler_that_is_not_there_or_silent(told):
    (line,) = told(SITE, None)
    assert "'slurm-blocks': no scheduler is on this machine's search path" in line
    (line,) = told(SITE, None, silent="sinfo failed with exit code 1")
    assert "'slurm-blocks' does not answer: sinfo failed with exit code 1" in line


def test_a_scheduler_of_which_nothing_is_read_is_not_held_against_the_site(told):
    assert told(SITE.replace("=slurm.SCHEDULER", '="lsf"'), LSF) == []


def test_a_module_system_that_is_not_there(told):
    (line,) = told(SITE, modules=NONE)
    assert line.startswith("site 'mine': modules_system: 'lmod': this shell has no modules")
    assert "bash -lc './plumbline ...'" in line
    (line,) = told(SITE, modules=ModuleSystem("envmod", "MODULES_CMD is set"))
    assert "here is 'envmod' (MODULES_CMD is set)" in line
    assert told(SITE.replace('"lmod"', '"nomod"'), modules=NONE) == []


def test_a_machine_of_ones_own_with_fewer_cores(told):
    (line,) = told(text_of(PLAIN), None, cores=8)
    assert "cores_per_node=16, and this machine has 8; write 8, or run with --oversubscribe" in line


def test_a_machine_of_ones_own_without_hardware_threads(told):
    text = text_of(replace(PLAIN, threads_per_core=2))
    assert told(text, None, threads_per_core=2) == []
    (line,) = told(text, None)
    assert "threads_per_core=2, and this machine's cores have 1; write 1" in line


@pytest.mark.parametrize(("host", "here"), [("login7", True), ("login12.example.org", True), ("n1", False)])
def test_whether_this_host_is_one_of_the_site(read, host: str, here: bool):
    assert is_here(read(SITE), host) == here


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        (["--partition=short", "--exclusive"], 1200),
        (["--exclusive", "-p short"], 1200),
        (["--exclusive"], 4 * 86400),
        (["--partition=serial"], 0),
    ],
)
def test_the_longest_job_of_a_partition(options: list[str], seconds: int):
    assert find_longest_job({"access": options}, CLUSTER) == seconds
    assert find_longest_job({"access": options}, None) == 0


# Compiler wrappers and modules, in a login shell.

SHELL = 'module() {{ case "$*" in "load mpich/4.2") PATH="{0}:$PATH";; *) echo no "$2" >&2; return 1;; esac; }}'


@pytest.fixture
def wrappers(read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The faults on a machine where one module brings one wrapper."""
    script(tmp_path / "bin" / "mpicc", "true")
    (tmp_path / ".bash_profile").write_text(SHELL.format(tmp_path / "bin"))
    monkeypatch.setattr(rules, "check_prefix", lambda *_: ())
    monkeypatch.setenv("HOME", str(tmp_path))

    def of(modules: str, mpicc: str = "mpicc", system: str = "lmod") -> list[str]:
        text = SITE.replace('["openmpi/5.0.3"]', modules).replace('"mpicc"', f'"{mpicc}"')
        text = text.replace('"lmod"', f'"{system}"')
        found = find_machine_faults(read(text), LocalMachine(16, LMOD, CLUSTER))
        return [fault.text for fault in found]

    return of


def test_modules_must_load_and_bring_the_wrapper(wrappers):
    assert wrappers('["mpich/4.2"]') == []
    (line,) = wrappers('["mpich/4.3"]')
    assert line.startswith("environment 'openmpi-5_0_3': modules: mpich/4.3: cannot be loaded: ")
    assert "no mpich/4.3" in line
    (line,) = wrappers('["mpich/4.2"]', mpicc="cc-of-mpi")
    assert "mpicc: 'cc-of-mpi' is not there once mpich/4.2 is loaded" in line


@pytest.mark.parametrize(
    ("mpicc", "said"),
    [("/none/mpicc", "'/none/mpicc' is not there"), ("mpicc-none", "'mpicc-none' is not on the search path")],
)
def test_a_wrapper_without_modules(wrappers, mpicc: str, said: str):
    (line,) = wrappers("[]", mpicc=mpicc)
    assert line.startswith(f"environment 'openmpi-5_0_3': mpicc: {said}; give it by absolute path")
    assert said in wrappers('["mpich/4.2"]', mpicc=mpicc, system="nomod")[0]


def test_a_prefix_must_have_the_wrapper_that_spack_builds_with(read, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(rules, "check_wrapper", lambda *_: ())
    text = SITE.replace("/sw/openmpi/5.0.3", str(tmp_path))
    (fault,) = find_machine_faults(read(text), LocalMachine(16, LMOD, CLUSTER))
    assert f"'openmpi-5_0_3': prefix: {tmp_path}/bin/mpicc is not there; " in fault.text
    script(tmp_path / "bin" / "mpicc", "true")
    assert find_machine_faults(read(text), LocalMachine(16, LMOD, CLUSTER)) == []


def test_programs_that_are_said_to_be_installed_must_be_there(told, tmp_path: Path):
    declared = SITE.replace("mpicc=", f'programs={{"imb": "{tmp_path}"}}, mpicc=', 1)
    (line,) = told(declared)
    assert f"'openmpi-5_0_3': programs: imb: {tmp_path}: has no IMB-MPI1; " in line
    (tmp_path / "IMB-MPI1").touch()
    assert told(declared) == []


def test_a_look_at_a_machine_whose_scheduler_is_silent(monkeypatch: pytest.MonkeyPatch):
    def silent(**_):
        raise SchedulerError("no controller")

    monkeypatch.setattr(registry, "detect_scheduler", silent)
    here = rules.inspect_machine()
    assert (here.scheduler, here.silent) == (None, "no controller") and here.cores > 0
