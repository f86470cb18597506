"""A night from its plan to what it keeps and logs, with stand-ins for all that is measured."""

import json
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from postprocess.base.formats import duration
from postprocess.base.progress import Progress
from postprocess.base.records import recall, remember
from postprocess.calibration.machine_load import BESIDE_OTHERS
from postprocess.judging.confirmation import Confirmation
from postprocess.model.case import LaunchPlace
from postprocess.model.options import RESTING
from postprocess.model.plan import PlannedLaunch, list_places
from postprocess.model.reference import Reference
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.references import decisions
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.runner.reframe_pass import PassRecord
from postprocess.session.lifecycle import context as desk_module
from postprocess.session.lifecycle.validation import DataVerification
from postprocess.session.nightly import confirm, run, turns
from postprocess.session.nightly import run as module
from postprocess.session.nightly.estimate import LaunchCounts, estimate_night
from postprocess.session.nightly.run import build_part
from tests.support.factories.launch import CASES, PLACE, case, catalog_of, planned, write_references
from tests.support.faults import plants

SLOW = CaseResult(case("scatter"), Verdict.REGRESSED, "slow", value=1.3, reference=1.0)
NOTHING = PassRecord([], 0.0)
PROGRESS = Progress(Console(quiet=True))
SITE = Path("site_configs/local.py")


@dataclass
class Night:
    """A night that measures nothing and finds one slow case, and what it keeps."""

    root: Path
    planned: list[PlannedLaunch] = field(default_factory=lambda: [planned(environment="other")])
    kept: list[tuple[str, list[CaseResult]]] = field(default_factory=list)  #: mode and results
    launches: int | None = None  #: that the user asks for
    by_spack: tuple[str, ...] = ()  #: environments that Spack builds for
    inventory: object = None  #: of this machine, if launches run on it

    @property
    def reviewed(self) -> Path:
        return self.root / "reviewed"

    @property
    def unreviewed(self) -> Path:
        return self.root / "unreviewed"

    @property
    def logged(self) -> list[str]:
        log = self.root / module.alarms.FILE
        return log.read_text().splitlines() if log.exists() else []

    def session(self, mode: str):
        names = {"name": mode, "started_utc": "2026-11-03T01:00:00Z", "site": "local"}
        return SimpleNamespace(mode=mode, **names), SimpleNamespace(session=self.root)

    def keep(self, _, session, __, results, causes=()) -> int:
        self.kept.append((session.mode, list(results)))
        self.causes = causes
        return compute_exit_status(results, strict=False)

    def begin(self, mode: str = "nightly", **choice) -> int:
        work = SimpleNamespace(
            held=nullcontext,
            provisional=self.unreviewed,
            store=self.root,
            root=self.root,
            sessions=self.root / "sessions",
        )
        request = SimpleNamespace(
            mode=mode,
            selection=Selection(SITE, choice=choice),
            families=None,
            strict=False,
            launches=self.launches,
            confirm_after=0,
            site="local",
            rerun_options=[],
        )
        roots = [self.reviewed, self.unreviewed]
        context = SimpleNamespace(
            reference_roots=roots,
            open_session=self.session,
            load_references=lambda planned: load_catalog(roots, list_places(planned)),
            progress=PROGRESS,
            work=work,
            request=request,
            prepared=SimpleNamespace(by_spack=self.by_spack, spack=None, inventory=self.inventory),
            node_facts={},
            nodes={},
        )
        module.open_session_context = lambda *_: context  # restored by the fixture
        return module.run_nightly(work, request, PROGRESS)


def end(*_):
    raise SystemExit(143)


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Night:
    made = Night(tmp_path)

    stand_ins = {
        "open_session_context": end,
        "make_plan": lambda *_: made.planned,
        "report_plan": lambda *_: None,
        "learn_night": lambda *_: "",
        "calibrate_unknown": lambda _, __, catalog: (catalog, []),
        "run_plan": lambda *_: NOTHING,
        "evaluate_launches": lambda *_: [SLOW],
        "confirm_slow_cases": lambda results, *_: Confirmation(results),
        "finish_session": made.keep,
    }
    for name, stand_in in stand_ins.items():
        for where in (module, confirm):
            if hasattr(where, name):
                monkeypatch.setattr(where, name, stand_in)
    return made


def test_an_interrupted_confirmation_leaves_what_looked_slow_in_doubt_and_teaches_nothing(night, monkeypatch):
    doubted, taught = replace(SLOW, verdict=Verdict.SUSPECT), []
    monkeypatch.setattr(module, "learn_night", lambda *_: taught.append(1) or "")
    night.begin()
    assert taught == [1]
    monkeypatch.setattr(module, "confirm_slow_cases", end)
    monkeypatch.setattr(module, "leave_in_doubt", lambda *_: [doubted])
    with pytest.raises(SystemExit):
        night.begin()
    assert (taught, night.kept) == ([1], [("nightly", [SLOW]), ("nightly", [doubted])])
    assert PROGRESS.notes[-1].startswith("confirmation ended early")
    assert len(night.logged) == 2


def test_what_was_cleared_before_an_interrupt_is_kept_as_cleared(night: Night, monkeypatch):
    cleared = replace(SLOW, verdict=Verdict.CLEARED)
    ended = Confirmation([cleared], ended=KeyboardInterrupt())
    monkeypatch.setattr(module, "confirm_slow_cases", lambda *_: ended)
    with pytest.raises(KeyboardInterrupt):
        night.begin()
    assert night.kept == [("nightly", [cleared])]


def broken(*_, **__):
    raise ZeroDivisionError("a fault of ours")


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("show_first_verdicts", "first verdicts"),
        ("confirm_slow_cases", "confirmation and common causes"),
        ("describe_waivers", "note on waivers"),
        ("describe_fast_cases", "note on fast cases"),
        ("mark_expected_failures", "expected failures"),
        ("log_alarms", "log of alarms"),
    ],
)
def test_a_fault_of_ours_after_launches_loses_nothing_and_fails_the_night(night, monkeypatch, step, told: str):
    """Where some programs are still to be built, too."""
    night.planned, night.by_spack = [planned(), planned(program="osu")], (PLACE.environment,)
    monkeypatch.setattr(run, "find_program", lambda *_: None)
    monkeypatch.setattr(module, "build_part", lambda *_: None)
    monkeypatch.setattr(module, "show_first_verdicts", lambda *_: None)
    monkeypatch.setattr(module, step, broken)
    monkeypatch.setattr(PROGRESS, "faults", [])
    night.begin()
    assert (night.kept, PROGRESS.faults) == ([("nightly", [SLOW])], [told])
    assert f"{told}: ZeroDivisionError: a fault of ours; what was measured is kept" in PROGRESS.notes


def test_a_night_logs_its_alarms_and_no_other_session(night: Night):
    assert night.begin("run") == 1
    assert night.logged == []
    assert night.begin() == 1
    (line,) = night.logged
    assert SLOW.case.key in line
    assert night.kept == [("run", [SLOW]), ("nightly", [SLOW])]


def test_a_launch_that_failed_in_the_nights_own_calibration_fails_its_case(night, monkeypatch):
    failed = replace(SLOW, verdict=Verdict.INCORRECT, reason="wrong data")
    fine = replace(SLOW, verdict=Verdict.PASS, reason="")
    monkeypatch.setattr(module, "evaluate_launches", lambda *_: [fine])
    monkeypatch.setattr(module, "calibrate_unknown", lambda _, __, catalog: (catalog, [failed]))
    night.begin()
    ((_, (kept,)),) = night.kept
    assert kept.verdict is Verdict.INCORRECT
    assert kept.reason == "in the calibration of this night: wrong data"


def test_what_was_measured_is_judged_if_a_signal_ends_the_verification(night: Night, monkeypatch):
    monkeypatch.setattr(module, "verify_data", end)
    with pytest.raises(SystemExit):
        night.begin()
    assert night.kept == [("nightly", [SLOW])]


@pytest.mark.parametrize(
    ("choice", "missed", "ends"),
    [
        ({}, CASES, False),
        ({}, CASES, True),
        ({"routines": ["bcast"]}, CASES[:2], False),
        ({"cache": "warm"}, (), False),
    ],
)
def test_what_has_references_and_is_gone_is_kept_as_incomplete(night, monkeypatch, choice, missed, ends: bool):
    """An MPI was upgraded: the environment of its references is no more. However the night ends."""
    write_references(night.reviewed)
    if ends:
        monkeypatch.setattr(module, "confirm_slow_cases", end)
    with pytest.raises(SystemExit) if ends else nullcontext():
        night.begin(**choice)
    ((_, results),) = night.kept
    gone = [result for result in results if result != SLOW]
    assert {each.case for each in gone} == {*missed}
    assert {each.verdict for each in gone} <= {Verdict.INCOMPLETE}
    assert results == sorted(results, key=module.result_sort_key)


def test_a_case_that_its_environment_does_not_plan_any_more_is_kept_as_incomplete(night: Night):
    write_references(night.reviewed)
    night.planned = [planned(cases=CASES[1:])]
    night.begin()
    ((_, results),) = night.kept
    assert {r.case for r in results if r.verdict == Verdict.INCOMPLETE} == {CASES[0]}


@pytest.mark.parametrize("root", ["reviewed", "unreviewed"])
def test_only_a_reviewed_file_excuses(night: Night, root: str):
    expires = str(decisions.utc_today() + timedelta(days=3))
    row = dict.fromkeys(decisions.KEYS, "*") | {"routine": SLOW.case.routine}
    row |= {"factor": "1.5", "verdicts": "regressed", "expires": expires}
    row |= {"reason": "the switch is old", "ticket": ""}
    path = night.root / root / PLACE.system / decisions.NAME
    path.parent.mkdir(parents=True)
    cells = "\t".join(row[column] for column in decisions.COLUMNS)
    path.write_text("\t".join(decisions.COLUMNS) + f"\n{cells}\n")
    night.begin()
    ((_, (result,)),) = night.kept
    assert bool(result.expected) == (root == "reviewed")


def test_a_second_look_is_no_night(night: Night, monkeypatch):
    """Drift, history and the log of alarms take what is stored as ``nightly`` for a healthy choice of cases."""
    monkeypatch.setattr(desk_module, "run_again", lambda *_: ([], PassRecord([], 0.0)))

    def confirmed(results, _, __, selection, measure, *___):
        assert measure(selection) == []
        return Confirmation(results, ("cpu: everything 7% slower",))

    monkeypatch.setattr(module, "confirm_slow_cases", confirmed)
    night.begin()
    assert [mode for mode, _ in night.kept] == ["nightly-fresh", "nightly"]
    assert (len(night.logged), night.causes) == (1, ("cpu: everything 7% slower",))
    assert json.loads(night.logged[0])["causes"] == [*night.causes]


def test_what_is_slow_in_fresh_launches_is_suspect_there_and_no_failure(night: Night, monkeypatch):
    monkeypatch.setattr(desk_module, "run_again", lambda *_: ([], PassRecord([], 0.0)))
    slow = replace(SLOW, verdict=Verdict.REGRESSED)
    monkeypatch.setattr(confirm, "evaluate_launches", lambda *_: [slow])

    def confirmed(results, _, __, selection, measure, *___):
        measure(selection)
        return Confirmation(results)

    monkeypatch.setattr(module, "confirm_slow_cases", confirmed)
    night.begin()
    (mode, (kept,)), *_ = night.kept
    assert (mode, kept) == ("nightly-fresh", replace(slow, verdict=Verdict.SUSPECT))


def test_a_night_says_that_its_references_are_too_slow(night: Night, monkeypatch):
    told = lambda results, _, site: [f"{len(results)}, {site}"]  # noqa: E731
    monkeypatch.setattr(module, "describe_fast_cases", told)
    night.begin()
    assert PROGRESS.notes[-1] == "1, local"


@pytest.mark.parametrize(
    ("asked", "last", "made"),
    [(None, 1, [1, None, 5]), (None, 5, [5]), (None, 4, [4, None, 5]), (1, 4, [1])],
    ids=["first night", "as last night", "not as last night", "asked for"],
)
def test_a_night_plans_again_if_it_takes_other_launches_than_the_last_one(
    night, monkeypatch, asked, last, made
):
    """A plan that is dropped is None; what was taken is known to the next night."""
    place, plans, ran = LaunchPlace.of(CASES[0]), [], []
    remember(night.root / module.COUNTS, LaunchCounts(counts=[(place, last)]))
    monkeypatch.setattr(module, "tell_estimate", lambda *_: {} if asked else {place: 5})
    monkeypatch.setattr(module, "drop_plan", lambda _: plans.append(None))
    monkeypatch.setattr(module, "make_plan", lambda _, selection: plans.append(selection) or night.planned)
    monkeypatch.setattr(
        module, "run_plan", lambda _, selection, *__: ran.append(selection) or PassRecord([], 0.0)
    )
    night.launches = asked
    night.begin()
    assert [plan and plan.launches for plan in plans] == made
    assert [each.launches for each in ran] == [made[-1]]
    assert recall(night.root / module.COUNTS, LaunchCounts).counts == [(place, last if asked else 5)]


@pytest.mark.parametrize("unbuilt", [True, False])
def test_verdicts_of_mpicost_do_not_wait_until_others_are_compiled(night, monkeypatch, unbuilt):
    """One plan is run in two parts, and judged as a whole; a slow case is confirmed once, at the end."""
    osu = replace(SLOW, case=case("latency", program="osu"))
    plan = [planned(), planned(program="osu", cases=(osu.case,))]
    night.planned, night.by_spack, steps = plan, (PLACE.environment,), []
    programs = lambda launches: [each.program for each in launches]  # noqa: E731

    def launch(_, selection, part, *__):
        steps.append(("run", programs(part), selection.choice.get("programs")))
        return PassRecord(list(part), 0.0)

    def calibrate(_, part, catalog):
        steps.append(("calibrate", programs(part)))
        return catalog, []

    def evaluate(finished, *_):
        known = {"mpicost": SLOW, "osu": osu}
        return [known[each.program] for each in finished]

    monkeypatch.setattr(run, "find_program", lambda *_: None if unbuilt else "built")
    monkeypatch.setattr(module, "build_part", lambda *given: steps.append(("build", given[-1])))
    monkeypatch.setattr(module, "run_plan", launch)
    monkeypatch.setattr(module, "calibrate_unknown", calibrate)
    monkeypatch.setattr(module, "evaluate_launches", evaluate)
    monkeypatch.setattr(module, "verify_data", lambda *_: DataVerification({}))
    monkeypatch.setattr(module, "describe_waivers", lambda *_: [])
    monkeypatch.setattr(module, "describe_interposed_libraries", lambda *_: [])
    monkeypatch.setattr(module, "describe_foreign_lines", lambda *_: [])
    monkeypatch.setattr(module, "show_first_verdicts", lambda *given: steps.append(("show", given[-1])))
    monkeypatch.setattr(
        module, "confirm_slow_cases", lambda results, *_: steps.append(("confirm",)) or Confirmation(results)
    )
    assert night.begin() == 1
    both = ["mpicost", "osu"]
    parts = [
        ("build", ["mpicost"]),
        ("calibrate", ["mpicost"]),
        ("run", ["mpicost"], ["mpicost"]),
        ("show", [SLOW]),
        ("build", ["osu"]),
        ("calibrate", ["osu"]),
        ("run", ["osu"], ["osu"]),
    ]
    whole = [("build", both), ("calibrate", both), ("run", both, None)]
    assert steps == [*(parts if unbuilt else whole), ("confirm",)]
    assert {each.case for each in night.kept[0][1]} == {SLOW.case, osu.case}


@plants("lost", "launches that verify data and cannot be started, as on a full disk", "a night",
        "regressed", 1, "data not verified: ")  # fmt: skip
def test_a_night_whose_data_cannot_be_verified_is_judged_even_so(night, monkeypatch, declared):
    def fail(*_):
        raise OSError(28, "No space left on device")

    told: list[str] = []
    monkeypatch.setattr(module, "verify_data", fail)
    monkeypatch.setattr(PROGRESS, "note", told.append)
    status = night.begin()
    ((_, results),) = night.kept
    lines = [each for each in told if each.startswith("data not")]
    declared.check({result.verdict for result in results}, status, lines)


@pytest.mark.parametrize(("minutes", "seconds"), [(0, 0), (2, 120), (None, 30)])
def test_a_night_waits_for_another_moment_as_long_as_it_is_told(monkeypatch, minutes, seconds):
    """An interrupt meanwhile ends the wait, and :func:`run_nightly` keeps what was measured."""
    clock = [400.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    stand_in = SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep)
    monkeypatch.setattr(confirm, "time", stand_in)
    confirm.wait_for_another_moment(minutes, 100.0, PROGRESS)
    assert clock[0] == pytest.approx(400 + seconds)


@pytest.mark.parametrize(
    ("by_spack", "built", "expected"),
    [
        (("a", "b", "c"), (), ["a", "b", "c"]),
        (("a", "b", "c"), ("b",), ["a", "c"]),
        (("a", "c"), ("c",), None),  # one MPI is built by its check
        (("a",), (), None),
    ],
)
def test_what_several_mpis_lack_is_built_for_them_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress, by_spack, built, expected
) -> None:
    called = []
    monkeypatch.setattr(run, "build_at_once", lambda *given: called.append(given[2:]))
    monkeypatch.setattr(run, "find_program", lambda _, launch: launch.environment in built or None)
    prepared = SimpleNamespace(by_spack=by_spack, spack="spack")
    context = SimpleNamespace(prepared=prepared, progress=progress, work=SimpleNamespace(root=tmp_path))
    plan = [planned(environment=name) for name in "abc"]
    build_part(context, SimpleNamespace(directory=tmp_path), plan, ["mpicost"])
    folder = tmp_path / run.FOLDER
    assert called == ([(expected, "mpicost", folder)] if expected else [])


ONCE = [case(program="imb", routine=name, cache="warm") for name in ("bcast", "barrier")]
OWN, IMB = planned(), planned(test="imb", program="imb", cases=tuple(ONCE))
ELSEWHERE = replace(IMB, environment="other", cases=tuple(replace(each, environment="other") for each in ONCE))


def references_of(cases, launches: int) -> ReferenceCatalog:
    return catalog_of([Reference(each, 1e-6, 0.1, launches) for each in cases])


def test_a_first_night_does_not_launch_again_what_it_calibrated_in_one_launch(night: Night, monkeypatch):
    """ReFrame runs the other programs only, and the plan still has each skipped case."""
    ran = []
    night.planned = [OWN, IMB]
    calibrated = references_of(ONCE, 1)
    monkeypatch.setattr(module, "calibrate_part", lambda *_: (calibrated, []))
    monkeypatch.setattr(module, "run_plan", lambda _, chosen, part, __: ran.append((chosen, part)) or NOTHING)
    monkeypatch.setattr(module, "choose_launch_counts", lambda *_: {})
    monkeypatch.setattr(module, "tell_estimate", lambda *_: {})
    night.begin()
    ((chosen, part),) = ran
    assert chosen.choice[module.PROGRAM.variable] == ["mpicost"]
    assert [launch.cases for launch in part] == [OWN.cases, ()]
    night.launches = 2  # which the user asks for
    night.begin()
    assert [launch.cases for launch in ran[1][1]] == [OWN.cases, tuple(ONCE)]


@pytest.mark.parametrize(
    ("planned", "launches", "left"), [([OWN, IMB], None, True), ([OWN, IMB], 1, False), ([IMB], None, False)]
)
def test_the_estimate_of_a_first_night_leaves_out_what_it_leaves_to_later_ones(work, planned, launches, left):
    found = estimate_night(work, planned, ReferenceCatalog({}), launches)
    later = duration(found.night)
    told = dict(line.split(": ", 1) for line in found.describe())
    assert (told["every later night"], found.tonight < found.night) == (f"about {later}", left)
    total = duration(found.calibration + found.tonight)
    assert told["tonight"].startswith(f"about {total}, of it {duration(found.calibration)} for ")


def test_a_night_skips_what_rests_and_remembers_what_it_measured(night: Night, monkeypatch):
    ran = []
    night.planned = [OWN, IMB, replace(ELSEWHERE, program="imb")]
    resting = {(IMB.partition, IMB.environment, "imb"): "in turn"}
    monkeypatch.setattr(module, "choose_resting", lambda *_: resting)
    monkeypatch.setattr(module, "run_plan", lambda _, chosen, part, __: ran.append((chosen, part)) or NOTHING)
    night.begin()
    ((chosen, part),) = ran
    assert [launch.environment for launch in part if launch.program == "imb" and launch.cases] == ["other"]
    (place,) = chosen.choice[RESTING]
    assert place["environment"] == IMB.environment
    assert [turn.environment for turn in recall(night.root / turns.FILE, turns.Turns).turns] == ["other"]


@pytest.mark.parametrize(("share", "verdict"), [(0.65, Verdict.SUSPECT), (0.05, Verdict.REGRESSED)])
def test_a_night_calls_nothing_that_other_processes_may_have_slowed(night: Night, monkeypatch, share, verdict):
    monkeypatch.delenv(BESIDE_OTHERS)
    monkeypatch.setattr(module, "start_load_monitor", lambda: SimpleNamespace(share=lambda: share))
    monkeypatch.setattr(module, "evaluate_launches", lambda *_: [replace(SLOW, spread=0.1, headline=1.3)])
    night.inventory = object()
    night.begin()
    ((_, (result,)),) = night.kept
    assert result.verdict == verdict
