"""What a night leaves suspect is measured again in a session of its own, and decided by all of them."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.suspicion import JudgedSession, SessionHistory
from postprocess.model.case import LaunchPlace
from postprocess.model.plan import PlannedLaunch
from postprocess.model.reference import Prior, Reference
from postprocess.model.session import Request, Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.transports import TransportPath
from postprocess.session.nightly import confirm as module
from postprocess.session.nightly.estimate import choose_launch_counts, describe_launch_counts, repeat_launches
from postprocess.session.nightly.transports import TransportProof
from postprocess.stats.sessions import SessionValue
from tests.support.factories.launch import CASES, case, planned
from tests.support.factories.summary import leave_timed_session, summarise

CASE = case()
REFERENCE = Reference(CASE, 1e-6, 0.01, 40, prior=Prior(0.01, 100.0), session_prior=Prior(0.01, 100.0))
CATALOG = SimpleNamespace(reference=lambda *_: REFERENCE)
SLOW = CaseResult(
    CASE, Verdict.REGRESSED, "slow", value=1.15e-6, reference=1e-6, band=(9e-7, 1.05e-6), launches=5
)


def history(*logs: float) -> SessionHistory:
    """Sessions of the case a day apart, the newest first."""
    now = datetime.now(timezone.utc)
    return SessionHistory(
        {
            CASE.key: [
                JudgedSession(
                    f"{now - timedelta(days=n):%Y-%m-%dT%H:%M:%SZ}", "suspect", SessionValue(log, 5, n), None
                )
                for n, log in enumerate(logs, 1)
            ]
        }
    )


def test_a_suspect_that_is_slow_in_a_third_session_is_called_and_in_a_second_not():
    two = module.decide_suspect(SLOW, CATALOG, history(0.14))
    three = module.decide_suspect(SLOW, CATALOG, history(0.14, 0.14))
    assert (two.verdict, three.verdict) == (Verdict.SUSPECT, Verdict.REGRESSED)
    assert "1 more session decides" in two.reason
    assert "in the mean of 3 sessions" in three.reason


def test_a_suspect_that_is_inside_its_band_now_is_cleared_unless_its_ranks_lay_elsewhere():
    well = replace(SLOW, verdict=Verdict.PASS, reason="", value=1.01e-6)
    assert module.decide_suspect(well, CATALOG, history()).verdict == Verdict.CLEARED
    moved = replace(well, verdict=Verdict.PROVISIONAL, elsewhere=True)
    assert module.decide_suspect(moved, CATALOG, history()).verdict == Verdict.PROVISIONAL


@pytest.mark.parametrize("decided", [Verdict.CLEARED, Verdict.REGRESSED])
def test_the_last_session_that_judged_counts_and_not_fresh_launches_within_one(tmp_path, decided: Verdict):
    def keep(begin: str, end: str, mode: str, verdict: Verdict) -> None:
        folder = tmp_path / f"20261101T{begin}00Z-1"
        told = summarise(folder, results=[replace(SLOW, verdict=verdict)], mode=mode)
        began, ended = (f"2026-11-01T{each[:2]}:{each[2:]}:00Z" for each in (begin, end))
        folder.mkdir()
        write_summary(folder / "summary.json", replace(told, started_utc=began, ended_utc=ended).to_dict())

    def last(site: str = "local") -> str:
        found = module.list_judged_sessions(tmp_path, site)
        return found[0].session[9:13] if found else ""

    keep("0100", "0130", "nightly", Verdict.SUSPECT)
    keep("0105", "0110", "calibrate", Verdict.PASS)
    keep("0120", "0125", "nightly-fresh", Verdict.REGRESSED)
    assert last() == "0100"
    keep("0300", "0310", "confirm", decided)
    keep("0400", "0430", "run", Verdict.REGRESSED)
    keep("0410", "0420", "run-fresh", Verdict.REGRESSED)
    assert last() == "0300" and last("other") == ""
    keep("0500", "0530", "nightly", Verdict.PASS)
    assert last() == "0500"


def test_a_night_of_other_cases_does_not_hide_what_the_one_before_it_suspects(tmp_path: Path):
    suspect, other = replace(SLOW, verdict=Verdict.SUSPECT), case("gather", 8)
    before, newest = (
        replace(summarise(tmp_path, results=[suspect]), started_utc=f"2026-11-0{n}") for n in (1, 2)
    )
    elsewhere = replace(newest, results=(replace(SLOW, case=other, verdict=Verdict.NO_REFERENCE),))
    assert module.find_undecided([elsewhere, before]) == ([CASE], "2026-11-01")
    assert module.find_undecided([newest, before]) == ([CASE], "2026-11-02")
    for verdict, left in ((Verdict.CLEARED, []), (Verdict.REGRESSED, [])):
        decided = replace(newest, results=(replace(SLOW, verdict=verdict),))
        assert module.find_undecided([decided, before])[0] == left
    skipped = replace(newest, results=(replace(SLOW, verdict=Verdict.SKIPPED, value=None),))
    assert module.find_undecided([skipped, before])[0] == [CASE]


def test_without_a_night_there_is_nothing_to_confirm(tmp_path: Path):
    work = SimpleNamespace(sessions=tmp_path)
    request = Request("confirm", (), "local", Selection(Path("local.py")))
    with pytest.raises(UsageError, match=r"run \./plumbline nightly first"):
        module.run_confirmation(work, request, SimpleNamespace())


def test_a_suspect_on_another_transport_than_before_is_not_called(monkeypatch):
    place = f"{CASE.system}:{CASE.partition}", CASE.environment, "node"
    proof = TransportProof({place: [TransportPath("node", "openmpi", ("tcp",), 1, "its line")]})
    kept: list[CaseResult] = []
    done = SimpleNamespace(finished=[])
    stand_ins = {
        "measure_in_new_session": lambda *_: (SimpleNamespace(name="20261101T030000Z-1"), [], done),
        "write_earlier_pages": lambda *_: None,
        "load_catalog": lambda *_: CATALOG,
        "read_history": lambda *_: history(),
        "select_retest": lambda *_: Selection(Path("local.py")),
        "judge_suspects": lambda *_: [SLOW],
        "prove_measured": lambda *_: proof,
        "finish_session": lambda *given, **_: kept.extend(given[3]) or 1,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(module, name, stand_in)
    request = Request("confirm", (), "local", Selection(Path("local.py")))
    work = SimpleNamespace(store=None)
    context = SimpleNamespace(progress=Progress(), request=request, reference_roots=[], work=work)
    module.confirm_suspects(context, [CASE])
    assert [result.verdict for result in kept] == [Verdict.NOT_COMPARABLE]


PLACE = LaunchPlace.of(CASES[0])


def counts_of(work: WorkDirectory, **changes: object) -> int:
    plan: list[PlannedLaunch] = [planned(**{"budget": 30.0, **changes})]
    return choose_launch_counts(work, plan)[PLACE]


def test_a_night_takes_what_is_paid_and_five_at_most(work: WorkDirectory):
    leave_timed_session(work.sessions / "20261121T090000Z-1", 1.0)
    assert [counts_of(work, budget=value) for value in (600.0, 5.0, 3.5, 0.5)] == [5, 5, 3, 1]
    assert counts_of(work, budget=0.0) == 1  # OSU and IMB have none
    assert counts_of(work, exact=True) == 1


def test_a_launch_that_takes_longer_is_made_less_often(work: WorkDirectory):
    leave_timed_session(work.sessions / "20261121T090000Z-1", 94.0)
    assert counts_of(work) == 1


def test_counts_are_told_and_planned():
    counts = {PLACE: 5, PLACE._replace(program="osu"): 1}
    (line,) = describe_launch_counts(counts)
    assert line == "5 launches, whose median is judged: mpicost 2x2 on mpich-5_0_2"
    (line,) = describe_launch_counts(
        {PLACE._replace(environment=name, processes=p): 5 for name in "ab" for p in (2, 4)}
    )
    assert line.endswith(": mpicost 2x2, 4x2 on a, b")
    repeated = repeat_launches([planned(), planned(program="osu")], {PLACE: 5})
    assert [launch.number for launch in repeated] == [1, 2, 3, 4, 5, 1]
