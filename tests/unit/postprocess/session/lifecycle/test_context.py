"""What a session looks at before it begins: its plan, its environments and the clock."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from postprocess.base.errors import UsageError, choose_environment
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.model.interposed import TOLD
from postprocess.model.session import Request, Selection, Session
from postprocess.results import store
from postprocess.results.query import read_headlines
from postprocess.runner.reframe import RefusedError
from postprocess.session.lifecycle.context import (
    IMPORTED,
    LOOKED_AT,
    MODE,
    SessionContext,
    describe_clock,
    describe_left_out_sizes,
    refused_session,
    report_plan,
    resolve_environments,
    store_interrupted,
)
from site_configs.mpi.family import Mpi
from tests.support.factories import record
from tests.support.factories.launch import leave, planned
from tests.support.faults import Declared, plants


def test_sizes_that_mpicost_leaves_out_are_named_and_no_others():
    mpicost = planned()
    assert mpicost.program == "mpicost" and mpicost.cases
    said = "--bytes 1,4: not measured of reduce_sum, which compute with 8-byte numbers"
    chosen = {"sizes": [0, 1, 4, 8], "routines": ["bcast", "reduce_sum"]}
    assert describe_left_out_sizes([mpicost], chosen) == [said]
    assert describe_left_out_sizes([mpicost], {**chosen, "routines": ["bcast"]}) == []
    (line,) = describe_left_out_sizes([mpicost], {"sizes": [4]})
    assert "scan_max" in line and "gather" not in line and "compositions" not in line
    assert describe_left_out_sizes([mpicost], {"sizes": [0, 8]}) == []
    assert describe_left_out_sizes([replace(mpicost, program="osu")], chosen) == []


def test_a_session_says_what_it_leaves_out_before_it_runs(capsys):
    report_plan([planned()], Progress(), {"sizes": [4], "routines": ["reduce_sum"]})
    assert "--bytes 4: not measured of reduce_sum" in " ".join(capsys.readouterr().out.split())


@plants("environment", "`LD_LIBRARY_PATH` with another UCX", "`--set-env` of `mpich+ucx@1.19.0`", "", 2,
        "--set-env mpich-on-ucx: LD_LIBRARY_PATH decides whether it runs on ucx@1.19.0")  # fmt: skip
def test_no_option_takes_another_library_below_an_mpi_than_its_name_says(tmp_path, declared: Declared):
    below = Mpi(
        "mpich-on-ucx", "mpich", "5.0.2", "MPICH", "path", "/m", "/m/mpicc", "/m/mpiexec", layer="ucx@1.19.0"
    )
    inventory = MagicMock(mpis=(below,))
    machine = MagicMock(inventory=inventory, list_environments=lambda *_: [below.name])

    def ask(variable: str) -> Request:
        chosen = Selection(tmp_path, set_env={below.name: {variable: "/other"}})
        request = Request("run", [], "local", chosen)
        return resolve_environments(WorkDirectory(tmp_path, tmp_path), request, machine)

    assert ask("UCX_TLS").selection.set_env
    with declared.raises(UsageError):
        ask("LD_LIBRARY_PATH")


NAMES = ["mpich-5_0_2", "openmpi-5_0_8", "openmpi-5_0_11"]


def test_the_command_that_runs_a_case_again_names_the_environment_in_full(tmp_path: Path):
    """Else the variables of an environment that was named by its family would be lost."""
    selection = Selection(Path("site.py"), ["mpich"], set_env={"mpich": {"A": "b=c:d"}})
    options = ["--mpis", "mpich", "--set-env=mpich:A=b=c:d"]
    request = Request("run", [], "local", selection, rerun_options=options)
    machine = MagicMock(list_environments=lambda *_: NAMES)
    found = resolve_environments(WorkDirectory(tmp_path, tmp_path), request, machine)
    assert found.selection.environments == ["mpich-5_0_2"]
    assert found.selection.set_env == {"mpich-5_0_2": {"A": "b=c:d"}}
    assert found.rerun_options == ["--mpis", "mpich", "--set-env=mpich-5_0_2:A=b=c:d"]


def resolve(work: WorkDirectory, environments: list[str], set_env: dict[str, dict[str, str]]) -> Request:
    request = Request("run", [], "local", Selection(Path("site.py"), environments, set_env=set_env))
    return resolve_environments(work, request, MagicMock(list_environments=lambda *_: NAMES))


@pytest.mark.parametrize("chosen", ["mpich", "mpich-5_0_2"])
@pytest.mark.parametrize("named", ["mpich", "mpich-5_0_2"])
def test_variables_are_set_by_any_name_that_chooses_their_environment(work, chosen: str, named: str):
    assert resolve(work, [chosen], {named: {"A": "1"}}).selection.set_env == {"mpich-5_0_2": {"A": "1"}}


def test_variables_by_several_names_of_an_environment_all_count(work):
    given = {"mpich": {"A": "1"}, "mpich-5_0_2": {"B": "2"}}
    assert resolve(work, [], given).selection.set_env == {"mpich-5_0_2": {"A": "1", "B": "2"}}


@plants("use", "variables of an environment that is not among the chosen ones", "`--set-env`", "", 2,
        "--set-env mpich: is not among those of --environment")  # fmt: skip
def test_variables_of_another_environment_are_refused(work, declared: Declared):
    with declared.raises(UsageError):
        resolve(work, ["openmpi-5_0_8"], {"mpich": {"A": "1"}})


@plants("use", "an environment that is none, or one of several", "`--environment`", "", 2,
        "did you mean mpich-5_0_2? | may be each of openmpi-5_0_8, openmpi-5_0_11; name one")  # fmt: skip
@pytest.mark.parametrize("word", ["mpich-5_0_1", "openmpi"])
def test_an_environment_that_is_not_meant_clearly_is_refused(word: str, declared: Declared):
    with pytest.raises(UsageError) as error:
        choose_environment("--environment", word, NAMES)
    declared.check_error(error.value)


def test_a_refused_command_leaves_no_session_unless_the_error_names_its_log(tmp_path: Path):
    session = Session(tmp_path / "session", "run", "local", [], False)
    session.directory.mkdir()
    with pytest.raises(RefusedError), refused_session(session):
        raise RefusedError("no", session.directory / "log")
    assert session.directory.exists()
    with pytest.raises(UsageError), refused_session(session):
        raise UsageError("no such routine")
    assert not session.directory.exists()


@pytest.mark.parametrize(
    ("mode", "strict"), [("nightly", True), ("nightly-fresh", False), ("run-fresh", False)]
)
def test_fresh_launches_are_never_strict(work: WorkDirectory, mode: str, strict: bool):
    """Else their page calls cases failed that the session may clear by further launches."""
    request = Request("nightly", [], "local", Selection(Path("site.py")), strict=True)
    context = SessionContext(work, request, MagicMock(), Progress())
    session, _ = context.open_session(mode)
    assert session.strict is strict


# A clock that contradicts the sessions before.

THEN = datetime(2026, 11, 21, 2, 15, tzinfo=timezone.utc)


@pytest.fixture
def lived_in(work: WorkDirectory) -> WorkDirectory:
    """A work directory with sessions of two days."""
    work.store.mkdir(parents=True)
    for name in ("20261120T021500Z-9", "20261121T021500Z-7", "by-hand"):
        (work.store / f"{name}.parquet").touch()
    return work


@pytest.mark.parametrize("later", [-timedelta(minutes=1), timedelta(0), timedelta(days=300)])
def test_nothing_is_said_of_a_clock_that_goes_on(lived_in: WorkDirectory, later: timedelta):
    assert list(describe_clock(lived_in, THEN + later)) == []


def test_time_that_went_backwards_is_told_with_the_session(lived_in: WorkDirectory):
    (line,) = describe_clock(lived_in, THEN - timedelta(days=900))
    assert line.startswith("time went backwards: it is 2024-06-04 02:15 UTC, and a stored session")
    assert line.endswith(f"remove {lived_in.store}/20261121T021500Z-7.parquet")


def test_a_clock_years_ahead_of_the_last_session_is_told(lived_in: WorkDirectory):
    (line,) = describe_clock(lived_in, THEN + timedelta(days=3000))
    assert line.startswith("it is 2035-02-07 02:15 UTC, and the last stored session began on 2026-")


def test_a_new_machine_has_nothing_to_be_held_against(work: WorkDirectory):
    assert list(describe_clock(work, THEN)) == []


def test_what_nobody_has_stored_is_stored_once_and_is_no_night(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path, tmp_path / "home")
    names = [f"20261124T09000{number}Z-1" for number in range(6)]
    damaged, killed, stored, imported, delayed, summarised = (work.sessions / x for x in names)
    for session in (damaged, killed, stored, imported, delayed, summarised):
        test = IMPORTED if session is imported else "luecke_0"
        told = {"environment": {TOLD: "1"}} if session is delayed else {}
        leave(session, planned(test=test, planted=session is delayed), record.launch(**told))
    leave(killed, planned(number=2), record.launch()[:-1], None)  # it was running
    next(damaged.glob("plan/*")).write_text("[]")
    (summarised / "summary.json").touch()
    store.write_session(work.store / f"{stored.name}{store.SUFFIX}", [])

    said = list(store_interrupted(work))
    assert [names[0] in said[0], said[1:]] == [
        True,
        [f"session {killed.name} was interrupted: its launches that ended are stored: 1"],
    ]
    kept = store.list_sessions(work.store)
    assert [path.stem for path in kept] == [killed.name, stored.name]
    assert set(store.read_session(kept[0])["mode"]) == {MODE}
    assert read_headlines(work.store).is_empty()
    assert (killed / LOOKED_AT).exists()  # each later command would read its files again
    assert list(store_interrupted(work)) == said[:1]  # until somebody mends it
