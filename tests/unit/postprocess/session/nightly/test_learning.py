"""Provisional references learn from nights that are well, and from nothing else."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from postprocess.base.formats import DATE_FORMAT
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger
from postprocess.calibration.ledger import CalibrationHeader, append_launches, collect_launches, read_ledger
from postprocess.calibration.schedule import CalibrationProgress, plan_part_of
from postprocess.calibration.update import update_references
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.notes import LEAST_CASES
from postprocess.judging.suspicion import NO_HISTORY, JudgedSession, SessionHistory
from postprocess.model.reference import MOST_SESSIONS, Reference
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.session.nightly import learning
from postprocess.session.nightly.learning import Lesson, learn_night, read_comparable_launches, refuse_useless
from postprocess.stats.sessions import SessionValue
from tests.support.factories.launch import CASES, PLACE, case, catalog_of, finished
from tests.support.factories.ledger import launch
from tests.support.paths import ROOT

FIRST = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)
LAUNCHES = 10  #: of a session of the calibration
ONE = CASES[0]


def load(root: Path) -> ReferenceCatalog:
    return load_catalog([root], [(":".join(PLACE[:2]), PLACE[2])])


@dataclass(frozen=True)
class Learner:
    """A work directory with references, and a night that lies 1% beside them."""

    work: WorkDirectory
    lesson: Lesson

    def learn(self, causes: Sequence[str] = (), others: float | None = None, **changes: Any) -> tuple[int, str]:
        """Return how many cases have learned, and the note."""
        note = learn_night(self.work, replace(self.lesson, **changes), causes, others)
        after, before = load(self.work.provisional), self.lesson.catalog
        learned = [
            each
            for each in CASES
            if (known := after.reference(each)) and known.sessions > before.reference(each).sessions
        ]
        return len(learned), note

    def results(self, change: Callable[[CaseResult], CaseResult]) -> list[CaseResult]:
        """Return the results, of which one is changed."""
        return [change(result) if result.case == ONE else result for result in self.lesson.results]


def make(root: Path, sessions: int = 1, first: datetime = FIRST, reviewed: bool = False) -> Learner:
    """Make references of so many sessions, a day apart, and a night."""
    work = WorkDirectory(root, ROOT)
    session = Session(root / "20261120T010000Z-1", "nightly", "local", (), False)
    done = finished(session.directory, 1.01)
    (told,) = collect_launches(CalibrationHeader("20260101T000000Z-1", {}, False), session.directory, [done])
    launches = [
        replace(
            told,
            ended_utc=(first + timedelta(days=day, minutes=number)).strftime(DATE_FORMAT),
            values={key: each * factor for key, each in told.values.items()},
            headlines={key: each * factor for key, each in told.headlines.items()},
        )
        for day in range(sessions)
        for number in range(LAUNCHES)
        for factor in [math.exp(0.01 * (-1) ** number) / 1.01]
    ]
    append_launches(root, told.session, launches)
    place = root / "reviewed" if reviewed else work.provisional
    update_references(place, launches)
    if reviewed:
        update_references(work.provisional, launches)
    catalog = load(place)
    results = evaluate_launches([done], catalog, "local")
    assert {result.verdict for result in results} <= {Verdict.PASS, Verdict.PROVISIONAL}
    lesson = Lesson(session, Selection(Path("x.py")), [done], results, catalog, NO_HISTORY)
    return Learner(work, lesson)


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    return make(tmp_path)


def test_a_night_is_one_more_session_and_the_calibration_stays_what_it_was(learner: Learner):
    before = learner.lesson.catalog.reference(ONE)
    count, note = learner.learn()
    assert count == len(CASES)
    assert note.startswith(f"references of 4 cases learn from this night as one of {MOST_SESSIONS}")
    assert note.endswith(f"forget {learner.lesson.session.name} takes it back")
    after = load(learner.work.provisional).reference(ONE)
    assert (after.launches, after.sessions, after.since) == (LAUNCHES + 1, 2, before.since)
    assert after.headline.sessions == 2 and len(set(after.days)) == 2
    assert after.center == pytest.approx(before.center * math.sqrt(1.01), rel=1e-6)
    told = read_ledger(learner.work.root)
    assert [launch.learned for launch in told] == [False] * LAUNCHES + [True]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"causes": ("everything 7% slower",)}, "many cases are slow together"),
        ({"others": 0.5}, "other processes used 50% of the machine"),
    ],
)
def test_a_night_with_a_cause_or_other_work_teaches_nothing(learner: Learner, change, why: str):
    assert learner.learn(**change) == (0, f"references learn nothing from this night: {why}")


def test_a_night_with_a_finding_teaches_nothing(learner: Learner):
    results = learner.results(lambda each: replace(each, verdict=Verdict.REGRESSED))
    count, note = learner.learn(results=results)
    assert (count, note.endswith(": 1 case failed")) == (0, True)


@pytest.mark.parametrize(
    ("slow", "learned"), [(LEAST_CASES - 1, len(CASES)), (LEAST_CASES, 0)], ids=["some", "many"]
)
def test_a_night_in_which_many_cases_have_slow_trials_teaches_nothing(
    learner: Learner, slow: int, learned: int
):
    """Among them a control, without MPI."""
    disturbed = [
        CaseResult(case(next(iter(CONTROLS)), number), Verdict.PASS, headline=2.0, headline_limit=1.0)
        for number in range(slow)
    ]
    count, note = learner.learn(results=[*learner.lesson.results, *disturbed])
    assert (count, note.endswith(": other work disturbed the machine")) == (learned, not learned)


@pytest.mark.parametrize(
    "change",
    [
        lambda each: replace(each, value=2 * each.band[1]),
        lambda each: replace(each, headline=2 * each.headline_limit),
        lambda each: replace(each, verdict=Verdict.SUSPECT),
        lambda each: replace(each, verdict=Verdict.CLEARED),
        lambda each: replace(each, band=None),
        lambda each: replace(each, elsewhere=True),
    ],
    ids=["value", "headline", "suspect", "cleared", "unjudged", "elsewhere"],
)
def test_a_case_that_is_not_well_inside_its_limits_teaches_nothing(learner: Learner, change):
    assert learner.learn(results=learner.results(change))[0] == len(CASES) - 1


@pytest.mark.parametrize(("there", "count"), [(5e-8, len(CASES)), (2.6e-7, 0)])
def test_a_launch_whose_ranks_lay_elsewhere_teaches_nothing(learner: Learner, there, count: int):
    """The reference that judged the cases is of launches 50 ns from core to core."""
    results = [replace(result, core_latency=5e-8) for result in learner.lesson.results]
    other = finished(learner.work.root / "other", core_latency=(there, there))
    lesson = replace(learner.lesson, results=results, finished=[other])
    assert bool(replace(learner, lesson=lesson).learn()[1]) is (count > 0)


@pytest.mark.parametrize(("log", "leans"), [(0.5, True), (-0.01, False)])
def test_a_case_whose_sessions_lie_to_one_side_teaches_nothing(learner: Learner, log, leans: bool):
    moment = (datetime.now(timezone.utc) - timedelta(days=1)).strftime(DATE_FORMAT)
    told = {ONE.key: [JudgedSession(moment, "pass", SessionValue(log, 1), None)]}
    count, note = learner.learn(history=SessionHistory(told))
    assert count == len(CASES) - leans
    assert ("1 case lean to one side and teach nothing" in note) is leans


@pytest.mark.parametrize(("minutes", "learns"), [(18 + LAUNCHES, False), (22 + LAUNCHES, True)])
def test_a_night_within_twenty_minutes_of_the_last_launch_is_no_session(tmp_path, minutes, learns):
    now = datetime.now(timezone.utc)  # the last launch is LAUNCHES - 1 minutes after the first
    count, note = make(tmp_path, first=now - timedelta(minutes=minutes)).learn()
    assert (count, bool(note)) == (len(CASES) if learns else 0, learns)


@pytest.mark.parametrize(("sessions", "learns"), [(MOST_SESSIONS - 1, True), (MOST_SESSIONS, False)])
def test_a_reference_of_ten_sessions_stands_still(tmp_path: Path, sessions: int, learns: bool):
    count, note = make(tmp_path, sessions).learn()
    assert (count, bool(note)) == (len(CASES) if learns else 0, learns)


def test_a_reviewed_reference_never_learns(tmp_path: Path):
    assert make(tmp_path, reviewed=True).learn() == (0, "")


@pytest.mark.parametrize(
    ("options", "sessions"),
    [
        ({}, ["a"]),
        ({"oversubscribe": True}, ["b"]),
        ({"set_env": {"mpich-5_0_2": {"A": "1"}}}, ["c"]),
        ({"set_env": {"another": {"A": "1"}}}, ["a"]),
        ({"oversubscribe": True, "set_env": {"mpich-5_0_2": {"A": "1"}}}, []),
        ({"shell": {"UCX_TLS": "tcp"}}, ["d", "e"]),
        ({"shell": {"UCX_TLS": "rc"}}, ["e"]),
    ],
    ids=str,
)
def test_launches_with_other_options_are_of_no_account(tmp_path: Path, options, sessions):
    told = {"a": {}, "b": {"oversubscribe": True}, "c": {"set_env": {"A": "1"}}}
    told["d"] = {"shell": {"UCX_TLS": "tcp"}}
    for name, by_hand in told.items():
        ledger.append_launches(tmp_path, name, [launch(session=name, by_hand=by_hand)])
    if "shell" in options:  # which simulated time does not know
        ledger.append_launches(tmp_path, "e", [launch(session="e", exact=True)])
    found = read_comparable_launches(tmp_path, Selection(Path("site.py"), **options))
    assert [each.session for each in found] == sessions


RESULT = CaseResult(CASES[0], Verdict.PROVISIONAL, "measured for its reference")


def test_a_case_of_which_no_launch_counts_is_incomplete() -> None:
    found = refuse_useless(RESULT, CalibrationProgress(uncounted={CASES[0]}), catalog_of([]))
    assert (found.verdict, found.reason) == (Verdict.INCOMPLETE, "none of its launches counts")
    crashed = replace(RESULT, verdict=Verdict.CRASHED)
    assert refuse_useless(crashed, CalibrationProgress(uncounted={CASES[0]}), catalog_of([])) == crashed


@pytest.mark.parametrize(("blind", "verdict"), [(True, Verdict.INCOMPLETE), (False, Verdict.PROVISIONAL)])
def test_fewer_launches_than_were_wanted_suffice_if_they_judge(monkeypatch, blind, verdict: Verdict) -> None:
    monkeypatch.setattr(learning, "is_blind", lambda _: blind)
    catalog = catalog_of([Reference(CASES[0], 1e-6, 0.02, 17)])
    short = CalibrationProgress(lacking={plan_part_of(CASES[0])})
    assert refuse_useless(RESULT, short, catalog).verdict is verdict
    assert refuse_useless(RESULT, CalibrationProgress(), catalog) == RESULT
