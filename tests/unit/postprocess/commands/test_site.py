"""``site try``: what works on a machine and, where it does not, why."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.formats import microseconds
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.commands import site
from postprocess.commands.site import TrialRow, build_trial_row, find_untried, select_smallest, suggest_launcher
from postprocess.commands.site_check import LOG
from postprocess.model.launch import fail_launch
from postprocess.model.session import Selection
from postprocess.model.verdict import Verdict
from postprocess.results import store
from postprocess.runner.reframe import ReframeDriver, RefusedError
from postprocess.session.lifecycle.context import store_interrupted
from site_configs.common import work_directory
from site_configs.mpi import inventory
from site_configs.mpi.login_node import LoginMpis
from site_configs.schedulers.slurm import SLURM
from site_configs.validation.reader import Reader
from site_configs.validation.reading import SiteReading
from tests.support.factories import record
from tests.support.factories.launch import CASES, finished, finished_with_wrong_data, headline, leave, planned
from tests.support.factories.scheduler import CRAY, answering
from tests.support.factories.site import MPICH, OPENMPI, PLAIN, slurm, text_of
from tests.support.faults import Declared, plants
from tests.support.plumbline_runner import Workshop, unwrap

SITE = text_of(slurm(CRAY, OPENMPI, MPICH))
CLUSTER = SLURM.read(answering(CRAY))


@pytest.fixture
def read(tmp_path: Path):
    """What a site file says."""

    def of(text: str) -> SiteReading:
        path = tmp_path / "mine.py"
        path.write_text(text)
        reading = Reader(path).read()
        assert reading.faults == []
        return reading

    return of


@pytest.mark.parametrize(("cores", "nodes", "per_node"), [(128, 4, [1, 2]), (128, 1, [2]), (1, 2, [1])])
def test_two_processes_on_one_node_and_on_two(read, cores: int, nodes: int, per_node: list[int]):
    text = SITE.replace("cores_per_node=128", f"cores_per_node={cores}")
    text = text.replace("sockets_per_node=2", "sockets_per_node=1").replace("nodes=4", f"nodes={nodes}")
    found = select_smallest(read(text), Path("mine.py"), ["mpich-5_0_2"])
    assert found.choice["per_node"] == per_node
    assert (found.choice["processes"], found.choice["sizes"]) == ([2], [8])
    assert found.environments == ["mpich-5_0_2"]
    assert found.tag == ""  # whatever a night runs


def test_what_works_has_its_time_and_what_does_not_its_reason(tmp_path: Path):
    place = ("cpu", "mpich-5_0_2", "2")
    done = finished(tmp_path)
    expected = (*place, f"works: {microseconds(headline(done, CASES[0]))} us for 8 B")
    assert build_trial_row(done).cells == expected
    bad = finished(tmp_path, outcome=fail_launch(Verdict.CRASHED, "no such file"))
    assert build_trial_row(bad).cells == (*place, "crashed: no such file")
    assert (build_trial_row(done).works, build_trial_row(bad).works) == (True, False)
    apart = replace(bad.launch.cases[0], per_node=1)
    bad = replace(bad, launch=replace(bad.launch, cases=(apart,)))
    assert build_trial_row(bad).cells[2] == "1 + 1"
    wrong = build_trial_row(finished_with_wrong_data(tmp_path / "wrong"))
    assert not wrong.works
    assert wrong.cells[3].startswith("incorrect: wrong data: bcast with 8 bytes: rank 1")


def test_nothing_of_a_trial_is_stored_as_a_measurement(tmp_path: Path, monkeypatch):
    """Its few trials would be taken for what an interrupted session has left."""
    work = WorkDirectory(tmp_path, tmp_path / "home")
    tried, killed = (work.sessions / f"20261124T09000{number}Z-1" for number in range(2))
    for session in (tried, killed):
        leave(session, planned(), record.launch())
    opened = None, SimpleNamespace(session=tried)
    monkeypatch.setattr(site, "open_session_context", lambda *_: SimpleNamespace(open_session=lambda _: opened))
    monkeypatch.setattr(site, "make_plan", lambda *_: [])
    monkeypatch.setattr(site, "run_plan", lambda *_: SimpleNamespace(finished=[]))
    site.launch_all(work, "mine", Selection(tmp_path), Progress())
    (said,) = store_interrupted(work)
    assert killed.name in said
    assert [path.stem for path in store.list_sessions(work.store)] == [killed.name]


def test_what_was_not_launched_does_not_look_as_if_it_worked(read, tmp_path: Path):
    reading = read(SITE)
    why = "not tried: two processes fit on none of its layouts"
    both = [TrialRow(("standard", name, "", why), works=False) for name in ("openmpi-5_0_3", "mpich-5_0_2")]
    assert find_untried(reading, [], []) == both
    assert find_untried(reading, ["mpich-5_0_2"], []) == both[1:]
    done = finished(tmp_path, outcome=fail_launch(Verdict.CRASHED, ""), partition="mine:standard")
    assert find_untried(reading, [], [done]) == both[:1]


def test_what_failed_is_told_the_launcher_that_is_known_to_work(read):
    wrong = SITE.replace("slurm.SRUN_PMI2", '["srun", "--mpi=pmix"]')
    found = suggest_launcher(read(wrong), {"mpich-5_0_2"}, CLUSTER)
    assert len(found) == 1
    assert found[0].startswith("mpich-5_0_2: known to work with mpich: launcher=slurm.SRUN_PMI2 (srun with")
    assert suggest_launcher(read(wrong), {"openmpi-5_0_3"}, CLUSTER) == []
    assert suggest_launcher(read(SITE), {"mpich-5_0_2", "openmpi-5_0_3"}, CLUSTER) == []


def test_no_advice_where_it_is_not_known_what_starts_processes(read):
    """The scheduler is not asked on another host; a simulator starts processes by itself."""
    wrong = SITE.replace("slurm.SRUN_PMI2", '["srun"]')
    assert suggest_launcher(read(wrong), {"mpich-5_0_2"}, None) == []
    plain = text_of(PLAIN).replace("mpiexec", "prun")
    assert len(suggest_launcher(read(plain), {"mpich-5_0_2"}, None)) == 1
    simulated = plain.replace("max_jobs=1,", "max_jobs=1, exact=True,")
    assert suggest_launcher(read(simulated), {"mpich-5_0_2"}, None) == []


# The command, without launches.


@pytest.fixture
def attempted(tmp_path: Path, work: WorkDirectory, progress: Progress, monkeypatch: pytest.MonkeyPatch):
    """Exit status and last line of an attempt of which only the launches of MPICH came back."""
    done = [finished(tmp_path)]
    monkeypatch.setattr(site, "launch_all", lambda *_: (tmp_path, done))

    def of(text: str) -> tuple[int, str]:
        path = tmp_path / "mine.py"
        path.write_text(text)
        status = site.try_site(work, str(path), [], progress)
        return status, unwrap(progress.console.file.getvalue())[-1]

    return of


def test_an_mpi_that_was_not_launched_is_one_that_does_not_work(attempted):
    local = text_of(replace(PLAIN, mpis=LoginMpis((MPICH,), ())))
    away = 'hostnames=["nowhere"]'
    assert attempted(local.replace('hostnames=["login\\\\d+"]', away)) == (0, "1 of 1 work")
    both = text_of(PLAIN).replace('hostnames=["login\\\\d+"]', away)
    status, last = attempted(both)
    assert (status, last[:11]) == (1, "1 of 2 work")


@plants("schedulers", "an unknown key", "a site file, in `site try`", "", 2, "jobs: is not known; ")
def test_a_wrong_site_is_not_tried(attempted, declared: Declared):
    with declared.raises(UsageError, match=r"jobs: is not known; .*all that is wrong"):
        attempted(text_of(PLAIN).replace("max_jobs=", "jobs="))


def test_a_site_that_reframe_refuses_leaves_no_session(tmp_path: Path, monkeypatch):
    """Nothing was measured in it. Its log is told of, and stays."""
    reframe = ReframeDriver(tmp_path, tmp_path, tmp_path / "sessions" / "1", [], None)
    context = SimpleNamespace(open_session=lambda _: (None, reframe))
    monkeypatch.setattr(site, "open_session_context", lambda *_: context)

    def refuse(*_):
        reframe.log.parent.mkdir(parents=True)
        reframe.log.write_text("what it said")
        raise RefusedError(f"another sentence of {reframe.log}", reframe.log)

    monkeypatch.setattr(site, "make_plan", refuse)
    with pytest.raises(RefusedError) as refused:
        site.launch_all(None, "mine", None, Progress())
    log = tmp_path / LOG
    assert refused.value.log == log
    assert str(refused.value) == f"another sentence of {reframe.log} (all of it: {log})"
    assert log.read_text() == "what it said"
    assert not reframe.session.exists()


# On this machine, from nothing.


@pytest.mark.long
def test_a_plain_machine_from_nothing_to_what_works_and_what_does_not(tmp_path: Path):
    """What ``site new`` writes is well as it is; with the launcher of another MPI, an MPI does not work."""
    shop, path = Workshop(tmp_path / "home"), tmp_path / "plain.py"
    mpis = {mpi.family: mpi for mpi in inventory.load_inventory(work_directory()).mpis}
    good, bad = mpis["mpich"], mpis["openmpi"]
    made = shop.run("site", "new", "plain", "--scheduler", "none", "--output", str(path))
    assert (made.status, made.errors) == (0, "")
    assert made.output.splitlines()[-1].endswith(f"./plumbline site check {path}")
    assert "CHANGE" not in made.said
    checked = shop.run("site", "check", str(path)).expect(0)
    assert checked.output.splitlines()[-1] == f"{path}: ok"

    launchers = [f'"mpi/{Path(mpi.prefix).name}/bin/mpiexec"' for mpi in (bad, good)]
    assert launchers[0] in path.read_text()
    path.write_text(path.read_text().replace(*launchers))
    tried = shop.run("site", "try", str(path), "--environment", f"{good.name},{bad.name}").expect(1)
    rows = {line.split()[1]: line for line in tried.output.splitlines() if line.startswith("cpu ")}
    assert "works: " in rows[good.name]
    assert "incorrect: started 2 singleton processes instead of one" in rows[bad.name]
    assert "1 of 2 work; files of the jobs: " in tried.said
    assert f"{bad.name}: known to work with openmpi: launcher=" in tried.said
    assert not any((tmp_path / "home" / "store").glob("*"))
