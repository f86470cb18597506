"""What every check does with the starts that it plans."""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.judging.retest_targets import RetestTarget
from postprocess.model.case import LaunchPlace
from postprocess.model.launch import select_launch_counts
from postprocess.model.options import AGAIN, RESTING, RestingPlace
from postprocess.model.plan import PlannedLaunch, read_plan
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.session import Selection
from site_configs import pbs as pbs_launchers
from site_configs.schedulers.slurm import SCHEDULER as SLURM
from site_configs.schema.facts import EnvironmentFacts, PartitionFacts
from site_configs.topology.layouts import Layout
from tests.support.factories.launch import case, planned
from tests.support.request import ask, made_for_a_site


class Check:
    """What a check asks of itself to plan these starts."""

    time_limit = "600"
    stagedir = "/nowhere"

    def __init__(self, launches: list[PlannedLaunch], dry: bool = True) -> None:
        self.planned, self.dry = launches, dry
        self.skipped: tuple[bool, str] | None = None

    def planned_launches(self) -> list[PlannedLaunch]:
        return self.planned

    def skip_without_nodes(self, launch: PlannedLaunch) -> PlannedLaunch:
        return launch

    skip_resting = skip_without_nodes

    def is_dry_run(self) -> bool:
        return self.dry

    def skip_if(self, condition: bool, reason: str) -> None:
        self.skipped = (condition, reason)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    with made_for_a_site(monkeypatch):
        from reframe_checks.common import base, layouts, osu_imb

        yield SimpleNamespace(
            launch=base.LaunchCheck, layouts=layouts, osu_imb=osu_imb, read_facts_once=base.read_facts_once
        )


@pytest.fixture
def plan(checks: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Callable[[Check, Path], None]:
    def plan(check: Check, session: Path) -> None:
        ask(monkeypatch, session, only_looking=True)
        (session / "plan").mkdir(exist_ok=True)
        checks.launch.plan_launches(check)

    return plan


def test_every_start_is_written_down_with_the_limit_of_its_job(tmp_path: Path, plan):
    check = Check([planned(), planned(start="second")])
    plan(check, tmp_path)
    written = [replace(launch, token="") for launch in read_plan(tmp_path)]
    assert written == [replace(launch, job_limit=600.0) for launch in check.planned]
    assert check.skipped == (False, "")


@pytest.mark.parametrize(("dry", "seen"), [(True, 0), (False, 2)])
def test_a_plan_is_seen_on_the_disk_before_its_launches_run(tmp_path: Path, plan, monkeypatch, dry, seen):
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(Path(os.readlink(f"/proc/self/fd/{number}"))))
    plan(Check([planned(), planned(start="second")], dry), tmp_path)
    assert sum(path.parent.name == "plan" for path in synced) == seen


def test_every_launch_has_a_token_of_its_own_which_its_dry_run_chose(tmp_path: Path, plan):
    sessions = [tmp_path / "one", tmp_path / "other"]
    tokens = []
    for session in (sessions[0], sessions[0], sessions[1]):
        session.mkdir(exist_ok=True)
        plan(Check([planned(), planned(start="second")]), session)
        tokens.append([launch.token for launch in read_plan(session)])
    assert tokens[0] == tokens[1]
    assert len({*tokens[0], *tokens[2]}) == 4 and all(len(token) == 32 for token in tokens[0])


def test_what_a_night_leaves_to_a_later_one_is_skipped(checks, monkeypatch):
    resting = asdict(RestingPlace("local:cpu", "mpich-5_0_2", "imb", "in turn"))
    ask(monkeypatch, choice={RESTING: [resting]})
    imb = planned(program="imb")
    for launch in (planned(), replace(imb, environment="openmpi"), replace(imb, partition="local:other")):
        assert checks.launch.skip_resting(None, launch) is launch
    left = checks.launch.skip_resting(None, imb)
    assert left.cases == () and {skip.reason for skip in left.skips} == {"in turn"}


def test_two_starts_of_one_name_are_refused(tmp_path: Path, plan):
    """The second would overwrite the first, and nobody would miss what the first had measured."""
    check = Check([planned(start="bcast"), planned(start="other"), planned(start="bcast")])
    with pytest.raises(ValueError, match=r"two starts are called .*bcast.*, and one would hide"):
        plan(check, tmp_path)
    assert list((tmp_path / "plan").iterdir()) == []


def looking_again(scheduler: str, nodes: int = 1, **hosts: tuple[str, ...]) -> SimpleNamespace:
    """A check of a launch that is measured again, on a partition of so many nodes."""
    look = RetestTarget("mpicost", "cpu", "mpich", "2x2", "bcast", **hosts)
    registered = SimpleNamespace(registered_name=scheduler)
    return SimpleNamespace(
        **{"processes": 2, "num_tasks_per_node": 2, "facts": SimpleNamespace(nodes=nodes)},
        job=SimpleNamespace(options=[]),
        local_retest_targets=lambda: [look] if hosts else [],
        current_partition=SimpleNamespace(scheduler=registered, name="cpu"),
    )


@pytest.mark.parametrize(("usable", "options"), [(2, ["--exclude=n1"]), (1, [])])
def test_slow_nodes_are_not_avoided_where_too_few_others_can_be_used(checks, monkeypatch, usable, options):
    """A job that can have no node would wait in the queue."""
    ask(monkeypatch, usable_nodes={"cpu": {"count": usable, "away": 4 - usable, "why": "n4 (down)"}})
    check = looking_again(SLURM, 4, avoided=("n1",))
    checks.launch.avoid_nodes(check)
    assert (check.job.options, check.anywhere) == (options, False)


@pytest.mark.parametrize(
    ("scheduler", "nodes", "slow_on", "options", "anywhere"),
    [
        (SLURM, 4, ("n1",), ["--exclude=n1"], False),
        (pbs_launchers.SCHEDULER, 4, ("n1",), [], True),
        (pbs_launchers.TORQUE, 4, ("n1",), [], True),
        (pbs_launchers.SCHEDULER, 1, ("n1",), [], False),  # there is no other node to be had
        (pbs_launchers.SCHEDULER, 4, (), [], False),  # the night has only begun
        ("local", 1, ("n1",), [], False),
    ],
)
def test_where_no_other_nodes_can_be_asked_for_the_plan_says_so(
    checks, scheduler, nodes, slow_on, options, anywhere
):
    check = looking_again(scheduler, nodes, **({"avoided": slow_on} if slow_on else {}))
    checks.launch.avoid_nodes(check)
    assert (check.job.options, check.anywhere) == (options, anywhere)


@pytest.mark.parametrize(
    ("scheduler", "wanted", "options"),
    [
        (SLURM, ("n2.cluster", "n1"), ["--nodelist=n1,n2"]),
        (SLURM, (), []),
        (pbs_launchers.SCHEDULER, ("n1",), []),
        ("local", ("n1",), []),
    ],
)
def test_a_launch_that_is_held_against_another_asks_for_its_nodes_where_it_can(
    checks, scheduler, wanted, options
):
    check = looking_again(scheduler, wanted=wanted)
    checks.launch.keep_nodes(check)
    assert check.job.options == options


def test_places_whose_words_run_together_keep_their_own_names():
    one = planned(partition="s:cpu", environment="large-mpich")
    other = planned(partition="s:cpu-large", environment="mpich")
    assert one.name != other.name


@pytest.mark.parametrize("foreseen", [True, False])
@pytest.mark.parametrize("no_program", ["another sentence", ""])
def test_a_case_tells_whether_its_program_or_its_mpi_is_lacking(checks, no_program: str, foreseen: bool):
    """``list`` says of the first alone where to see what is lacking."""
    line = Benchmark("osu_ibcast", "ibcast", "title", "Overall(us)")
    check = SimpleNamespace(
        **{"count_calls": lambda _: 100, "method": dict, "limit_of_start": lambda _: 60.0},
        explain_unmeasured=lambda _: "needs MPI 3.0",
        validates=False,
        cases_of=lambda *_: [case()],
        planned_launch=lambda **told: planned(program="osu", **told),
    )
    start = checks.osu_imb.Start("ibcast", [line], [8])
    (skip,) = checks.osu_imb.OsuImbCheck.planned_start(check, start, no_program, foreseen).skips
    assert (skip.unavailable, skip.no_program) == (True, bool(no_program))
    assert skip.foreseen == (bool(no_program) and foreseen)


@pytest.mark.parametrize(("number", "there"), [(1, True), (5, True), (6, False)])
@pytest.mark.parametrize("again", [False, True])
def test_a_check_is_launched_where_it_is_as_often_as_the_place_asks_for(
    tmp_path, monkeypatch, checks, number, there, again
):
    """Five times with MPICH, and once with Open MPI; of a retest too."""
    names = ("mpich", "ompi")
    places = [LaunchPlace("slurm_cluster:cpu", name, "mpicost", 2, 2) for name in names]
    counts = dict(zip(places, (5, 1), strict=True))
    choice = dict(select_launch_counts(Selection(tmp_path), counts).choice)
    if again:
        targets = [RetestTarget("mpicost", "cpu", name, "2x2", "bcast") for name in names]
        choice[AGAIN] = [asdict(target) for target in targets]
    ask(monkeypatch, tmp_path, choice=choice)
    monkeypatch.setattr(checks.layouts, "select_layouts", lambda *_: [Layout(2, 2)])
    about = {"program": "mpicost", "layout": "2x2"}
    check = SimpleNamespace(
        **about | {"family": "", "number": number, "valid_prog_environs": ["+mpi"]},
        measures_on=lambda _: True,
        layouts_on=checks.layouts.list_layouts_on,
        retest_targets=partial(checks.launch.retest_targets, SimpleNamespace(**about)),
    )
    check.places_of_number = lambda: checks.launch.places_of_number(check)
    checks.launch.choose_partitions(check)
    assert ("slurm_cluster:cpu" in check.valid_systems) is there
    if number > 1:
        assert check.valid_prog_environs == (["mpich"] if there else [])


@pytest.mark.parametrize(("exact", "nodes", "known"), [(True, 2, 16), (False, 17, 16), (False, 2, 0)])
def test_a_plan_tells_containers_and_switches(monkeypatch, checks, exact: bool, nodes: int, known: int):
    """Which nodes share a switch is known on all nodes, and on the first ones of a simulated machine."""
    ask(monkeypatch)
    facts = PartitionFacts((), (), 0, 1, 17, nodes_per_switch=16, exact=exact)
    check = SimpleNamespace(
        **{"unique_name": "a", "program": "mpicost", "number": 1, "anywhere": False, "facts": facts},
        environment_facts=EnvironmentFacts(container=("box",)),
        current_partition=SimpleNamespace(fullname="s:p"),
        current_environ=SimpleNamespace(name="mpi"),
        **{"processes": nodes, "num_tasks_per_node": 1},
    )
    own = checks.launch
    check.knows_nodes = partial(own.knows_nodes, check)
    launch = own.planned_launch(check, trials=1, time_limit=1.0, cases=())
    assert (launch.in_container, launch.nodes_per_switch) == (True, known)


def test_facts_are_read_once_of_each_partition(checks) -> None:
    read: list[object] = []
    some, others = [1], [1]
    once = checks.read_facts_once
    told = [once(lambda of: read.append(of) or len(read), of) for of in (some, others, some)]
    assert told == [1, 2, 1]
    assert read[0] is some and read[1] is others
