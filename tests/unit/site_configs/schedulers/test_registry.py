"""A scheduler is added in one place: everything else asks it, and decides by no name."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from reframe.core.runtime import temp_runtime

from postprocess.base.progress import Progress
from postprocess.judging.retest import describe_unavoidable_nodes
from postprocess.judging.retest_targets import RetestTarget
from postprocess.parsers.reframe_report import ReportedTest
from postprocess.runner.reframe_pass import cancel_jobs
from site_configs import pbs as pbs_launchers
from site_configs import slurm as slurm_launchers
from site_configs.generate.write import format_registered
from site_configs.mpi.family import Mpi
from site_configs.schedulers import base, registry, slurm
from site_configs.schedulers.pbs import PBS
from site_configs.validation import rules
from site_configs.validation.rules import LocalMachine, check_batch_partition, check_topology
from tests.support.factories.launch import planned
from tests.support.factories.scheduler import CRAY, answering
from tests.support.factories.scheduler import PBS as PBS_ANSWERS
from tests.support.factories.site import MPICH, PLAIN, text_of
from tests.support.fake_mpis import script
from tests.support.paths import ROOT
from tests.support.request import ask

SLURM = replace(slurm.SLURM, mpi_types=("none", "cray_shasta", "pmi2"))
PLAIN_SLURM = replace(slurm.SLURM, mpi_types=("none",))
OWN = "/opt/mpi/bin/mpiexec"


@dataclass(frozen=True)
class MadeUp(base.Scheduler):
    """A scheduler that nobody has."""

    title: str = "Tilly"
    backend: str = "tilly-blocks"
    backends: tuple[str, ...] = ("tilly-blocks", "tilly")
    site_names: tuple[tuple[str, str], ...] = (("tilly-blocks", "tilly.SCHEDULER"), ("trun", "tilly.RUN"))
    command: str = "tnodes"
    query_commands: str = "tnodes"
    switch_command: str = "tnodes --tree"
    exclusive: tuple[str, ...] = ("--queue={}", "--alone")
    queue_option: str = "--queue="
    exclude_option: str = "--not-on={}"
    user_choices: tuple[str, ...] = ("TILLY_SHOWN",)
    limit_words: str = "tilly: it took too long"
    mark: str = "tilly_jobs"
    list_jobs_command: str = "tqueue"
    jobs: tuple[SimpleNamespace, ...] = ()

    def read(self, ask: base.Ask) -> base.Scheduler:
        hosts = tuple(ask(["tnodes", "--all"]).split())
        kind = base.NodeKind(hosts, sockets=2, cores=16, hardware_threads=16)
        queue = base.Queue("big", (kind,), default=True)
        return replace(self, queues=(queue,), switches=(frozenset(hosts),))

    def choose_launcher(self, mpi: Mpi) -> base.Pairing:
        return base.Pairing("trun", "Tilly starts the processes")

    def list_own_jobs(self, marks=()) -> tuple[SimpleNamespace, ...]:
        if not self.jobs:
            raise base.QueueError("tqueue does not answer")
        return self.jobs

    def cancel(self, numbers: Iterable[str]) -> None:
        (Path(self.jobs[0].directory) / "cancelled").write_text(",".join(numbers))


@pytest.fixture
def tilly() -> Iterator[MadeUp]:
    """The scheduler, entered in the registry and nowhere else."""
    made = MadeUp()
    registry.SCHEDULERS.append(made)
    yield made
    registry.SCHEDULERS.remove(made)


@pytest.fixture
def here(tilly: MadeUp) -> base.Scheduler:
    """What it tells of a machine with four nodes."""
    found = registry.detect_scheduler(lambda _: "n1 n2 n3 n4", "tnodes".__eq__)
    assert found and found.queues[0].hosts == {"n1", "n2", "n3", "n4"}
    return found


def test_its_command_shows_everything(tilly: MadeUp, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TILLY_SHOWN_QUEUE", "mine")
    path = script(tmp_path / "tnodes", 'echo "<$TILLY_SHOWN_QUEUE>"')
    assert registry.ask_command([str(path)]).strip() == "<>"


def test_a_new_site_has_its_options_and_its_launcher(here: base.Scheduler):
    text = text_of(replace(PLAIN, scheduler=here))
    ast.parse(text)
    assert "from site_configs import tilly\n" in text
    for words in (
        "scheduler=tilly.SCHEDULER,",
        'access=["--queue=big", "--alone"],',
        "nodes_per_switch=4,  # nodes under one leaf switch (tnodes --tree)",
        "launcher=tilly.RUN,",
    ):
        assert words in text
    assert format_registered(here.choose_launcher(MPICH).launcher) == "tilly.RUN"


@pytest.mark.parametrize(
    ("backend", "queue", "nodes", "said"),
    [
        ("tilly", "big", 4, ""),
        ("tilly-blocks", "big", 5, "topology: nodes=5, and a job in big gets at most 4"),
        ("tilly-blocks", "small", 4, "access: Tilly has no partition 'small' that is up"),
        ("pbs", "big", 4, "scheduler: 'pbs' is not 'tilly-blocks' or 'tilly'; this machine has Tilly"),
    ],
)  # fmt: skip
def test_a_site_is_held_against_it(here, backend, queue, nodes, said):
    partition = rules.DeclaredEntry(
        "partition",
        {
            "name": "cpu",
            "scheduler": backend,
            "access": [f"--queue={queue}"],
            "processor": {"num_cpus": 16, "num_sockets": 2},
            "extras": {
                "nodes": nodes,
                "cores_per_node": 16,
                "exact": False,
                "most_processes": 99,
                "layouts": [],
            },
        },
        0,
    )
    machine = LocalMachine(16, PLAIN.modules, here)
    assert list(check_topology(partition)) == []  # several nodes: it is not one machine alone
    found = [fault.text for fault in check_batch_partition(partition, machine)]
    assert len(found) == bool(said)
    assert said in "".join(found)


@pytest.mark.parametrize(("backend", "able"), [("tilly-blocks", True), ("tilly", False)])
def test_a_second_look_is_taken_on_other_nodes(tilly, backend, able, monkeypatch):
    ask(monkeypatch, only_looking=True)
    look = RetestTarget("mpicost", "cpu", "mpich", "2x2", "bcast", ("n1", "n3"))
    check = SimpleNamespace(
        processes=2, num_tasks_per_node=2, job=SimpleNamespace(options=[]),
        facts=SimpleNamespace(nodes=4), local_retest_targets=lambda: [look],
        current_partition=SimpleNamespace(
            name="cpu", scheduler=SimpleNamespace(registered_name=backend)
        ),
    )  # fmt: skip
    with temp_runtime(str(ROOT / "site_configs" / "slurm_cluster.py"), "slurm_cluster"):
        from reframe_checks.common.base import LaunchCheck

        LaunchCheck.avoid_nodes(check)
    assert (check.job.options, check.anywhere) == (["--not-on=n1,n3"] if able else [], not able)
    (line,) = describe_unavoidable_nodes([planned(anywhere=True)])
    assert line.endswith("excluding nodes is supported on Slurm and Tilly only")


def test_jobs_that_a_session_left_are_cancelled(tilly: MadeUp, tmp_path: Path):
    (tmp_path / "stage").mkdir()
    (tmp_path / tilly.mark).touch()
    progress = Progress()
    cancel_jobs([tmp_path], "this session", progress)
    assert "(tqueue does not answer): tqueue shows them" in progress.notes[0]
    job = SimpleNamespace(number="7", state="waiting", directory=tmp_path / "stage", active=True)
    over = SimpleNamespace(**vars(job) | {"number": "6", "active": False})
    registry.SCHEDULERS[-1] = replace(tilly, jobs=(job, over))
    try:
        cancel_jobs([tmp_path], "this session", progress)
    finally:
        registry.SCHEDULERS[-1] = tilly
    assert (tmp_path / "stage" / "cancelled").read_text() == "7"
    assert progress.notes[1].endswith("left in the queue: stage (7, waiting)")
    assert not (tmp_path / tilly.mark).exists()


def test_how_a_job_ended_is_told_by_its_words_and_by_its_backend(tilly: MadeUp, tmp_path: Path):
    entry = ReportedTest("t", "s:p", "e", "fail", "run", "", str(tmp_path), "err", 1.0)
    (tmp_path / "err").write_text("nothing\n")
    assert not entry.timed_out and not entry.never_started
    (tmp_path / "err").write_text("7: tilly: it took too long\n")
    assert entry.timed_out
    (tmp_path / "err").write_text("nothing\n")
    base.write_ended(tmp_path, base.Ended(base.Ending.NEVER_STARTED, "no such queue"))
    assert entry.never_started == "no such queue" and not entry.timed_out


def test_of_an_unknown_backend_nothing_is_known():
    found = registry.find_scheduler("flux")
    assert (found.backends, found.batch, found.mark) == (("flux",), True, "")
    assert found.exclude_nodes(["n1"], "flux") == []
    assert not registry.find_scheduler("local").batch


def test_a_module_of_the_folder_is_enough():
    found = [each.title for each in registry.find_schedulers()]
    assert found[:3] == ["Slurm", "PBS", "Torque"] and "LSF" in found


def test_backends_and_commands_are_of_one_scheduler_each():
    backends = [name for scheduler in registry.SCHEDULERS for name in scheduler.backends]
    assert len(backends) == len(set(backends))
    commands = [scheduler.command for scheduler in registry.SCHEDULERS if scheduler.command]
    assert len(commands) == len(set(commands))
    for scheduler in registry.SCHEDULERS:
        assert scheduler.title and scheduler.backend in scheduler.backends and scheduler.exclusive


# --- nobody decides by a name

#: What others may import of this package: what is the same of every scheduler.
FOR_ALL = {"base", "module_systems", "registry"}
NAMING = re.compile(r"title|backend|registered_name|scheduler")


def product() -> list[Path]:
    """The modules outside the package of the schedulers."""
    folders = (ROOT / each for each in ("postprocess", "site_configs", "reframe_checks"))
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    own = ROOT / "site_configs" / "schedulers"
    return [file for file in files if own not in file.parents]


def decides_by_name(node: ast.AST) -> bool:
    """Whether something compares what a scheduler is called with a text, or anything with a known backend."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    texts = {s.value for s in sides if isinstance(s, ast.Constant) and isinstance(s.value, str)}
    others = " ".join(ast.unparse(s) for s in sides if not isinstance(s, ast.Constant))
    known = {name for scheduler in registry.SCHEDULERS for name in (scheduler.title, *scheduler.backends)}
    searches = any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
    return bool(texts & known) or bool(texts and not searches and NAMING.search(others))


def is_backend(path: Path) -> bool:
    """Whether a module has the backend of a scheduler: it is in ``site_configs``, under the same name."""
    return path.parent == ROOT / "site_configs" and (path.parent / "schedulers" / path.name).exists()


def imports_one(node: ast.AST) -> bool:
    """Whether something imports what is of one scheduler."""
    if not isinstance(node, ast.ImportFrom) or not node.module:
        return False
    package = "site_configs.schedulers"
    if node.module == package:
        return not {name.name for name in node.names} <= FOR_ALL
    return node.module.startswith(f"{package}.") and node.module.rpartition(".")[2] not in FOR_ALL


def test_nothing_else_decides_by_the_name_of_a_scheduler():
    assert decides_by_name(ast.parse("scheduler.title == 'x'", mode="eval").body)
    assert decides_by_name(ast.parse("part['scheduler'] != 'slurm'", mode="eval").body)
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in product()
        for node in ast.walk(ast.parse(path.read_text()))
        if decides_by_name(node) or (imports_one(node) and not is_backend(path))
    ]
    assert found == []


# --- which scheduler a machine has


def machine(*commands: str):
    """Whether a command is installed on a machine that has these."""
    return set(commands).__contains__


def test_a_machine_without_a_scheduler():
    assert registry.detect_scheduler(answering({}), machine()) is None


@pytest.mark.parametrize(
    ("commands", "outputs", "title"),
    [
        (("sinfo",), CRAY, "Slurm"),
        (("sinfo", "pbsnodes", "qstat"), CRAY, "Slurm"),  # Slurm's stand-ins for PBS
        (("pbsnodes",), PBS_ANSWERS, "PBS"),
        (("bqueues",), {}, "LSF"),
    ],
)
def test_each_scheduler_is_known_by_its_command(commands, outputs, title):
    assert registry.detect_scheduler(answering(outputs), machine(*commands)).title == title


@pytest.mark.parametrize("command", ["sinfo", "pbsnodes"])
def test_a_scheduler_that_does_not_answer_is_not_taken_for_none(command: str):
    with pytest.raises(registry.SchedulerError, match="failed with exit code 1"):
        registry.detect_scheduler(answering({}), machine(command))


def test_a_scheduler_that_answers_nonsense_is_not_taken_for_none():
    with pytest.raises(registry.SchedulerError, match="sinfo lists no partition"):
        registry.detect_scheduler(answering(CRAY | {"sinfo": "what?"}), machine("sinfo"))


def test_a_command_that_hangs_is_ended(tmp_path, monkeypatch):
    path = script(tmp_path / "sinfo", "sleep 600")
    monkeypatch.setattr(registry, "ASK_SECONDS", 0.3)
    with pytest.raises(registry.ProbeError, match="sinfo did not end within"):
        registry.ask_command([str(path), "--noheader"])


def test_what_the_user_chooses_to_be_shown_hides_no_queue(tmp_path, monkeypatch):
    monkeypatch.setenv("SINFO_PARTITION", "mine")
    monkeypatch.setenv("SLURM_CLUSTERS", "another")
    path = script(tmp_path / "sinfo", 'echo "<$SINFO_PARTITION$SLURM_CLUSTERS>"')
    assert registry.ask_command([str(path)]).strip() == "<>"


# --- which launcher goes with which MPI


def mpi(family: str, mpiexec: str = OWN, module: str = "") -> Mpi:
    return Mpi(f"{family}-1", family, "1", "", "path", "/opt/mpi", "/opt/mpi/bin/mpicc", mpiexec, module)


@pytest.mark.parametrize(
    ("scheduler", "family", "launcher"),
    [
        (SLURM, "openmpi", ("/opt/mpi/bin/mpirun",)),
        (SLURM, "mpich", slurm_launchers.SRUN_PMI2),
        (SLURM, "mvapich", slurm_launchers.SRUN_PMI2),
        (SLURM, "intel-mpi", (OWN,)),
        (SLURM, "cray-mpich", slurm_launchers.SRUN_CRAY),
        (PLAIN_SLURM, "mpich", (OWN,)),
        (PLAIN_SLURM, "cray-mpich", slurm_launchers.SRUN),
        (PBS, "openmpi", (OWN,)),
        (PBS, "cray-mpich", pbs_launchers.PALS),
        (registry.LOCAL, "mpich", (OWN,)),
        (replace(SLURM, title="another name"), "mpich", slurm_launchers.SRUN_PMI2),
        (replace(PBS, title="Slurm"), "mpich", (OWN,)),
    ],
)
def test_pairings(scheduler: base.Scheduler, family: str, launcher: str | tuple[str, ...]):
    pair = scheduler.choose_launcher(mpi(family))
    assert pair.launcher == launcher and pair.why


def test_the_launcher_of_a_module_is_found_once_it_is_loaded_and_one_keeps_the_suffix_of_its_mpi():
    assert SLURM.choose_launcher(mpi("openmpi", module="openmpi/5")).launcher == ("mpirun",)
    assert PBS.choose_launcher(mpi("mpich", module="mpich/4")).launcher == ("mpiexec",)
    debian = mpi("openmpi", "/usr/bin/mpiexec.openmpi")
    assert SLURM.choose_launcher(debian).launcher == ("/usr/bin/mpirun.openmpi",)
