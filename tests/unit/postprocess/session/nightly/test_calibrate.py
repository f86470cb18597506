"""One pass of a calibration: which launches of the ledger it looks at, and what it says went wrong."""

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger, update
from postprocess.calibration.machine_load import BESIDE_OTHERS
from postprocess.calibration.schedule import LaunchTarget, PassResult
from postprocess.model.case import LaunchPlace
from postprocess.model.plan import list_places
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.transports import TransportPath
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import load_catalog
from postprocess.results.launch_costs import LaunchCost
from postprocess.runner.reframe import RefusedError
from postprocess.session.nightly import calibrate as calibration_pass
from postprocess.session.nightly.calibrate import (
    calibrate_unknown,
    count_fitting_launches,
    estimate_one_pass,
    plan_for_seconds,
    read_known_costs,
)
from postprocess.session.nightly.transports import TransportProof
from tests.support.factories.launch import CASES, PLACE, planned
from tests.support.factories.ledger import launch
from tests.support.factories.summary import INSIDE, SECONDS, leave_timed_session
from tests.support.faults import Declared, plants

# What a night calibrates by itself.

OVERSUBSCRIBED = {"oversubscribe": True}
SHELL = {"UCX_TLS": "tcp"}


class Night:
    """A work directory whose references were made under some options, and the launches of a night."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, old: dict[str, Any]) -> None:
        self.notes: list[str] = []
        self.measured: list[set] = []
        self.launches: list[int] = []  #: of each pass
        self.work = SimpleNamespace(root=root, provisional=root / "references")
        self.roots = [root / "reviewed", self.work.provisional]
        self.path = reference_file.locate_references(self.work.provisional, *PLACE)
        self.made(self.work.provisional, old)
        monkeypatch.setattr(calibration_pass, "run_calibration_pass", self.calibrate)
        monkeypatch.setattr(calibration_pass, "prove_transports", lambda *_, **__: TransportProof({}))

    def made(self, root: Path, by_hand: dict[str, Any]) -> None:
        """References of five launches that took two seconds."""
        update.update_references(root, [launch(2.0, day, by_hand=by_hand) for day in range(1, 6)])

    def calibrate(self, _, root: Path, only: set, selection: Selection) -> PassResult:
        """A calibration whose launches take a second."""
        self.measured.append(only)
        self.launches.append(selection.launches)
        chosen = selection.set_env, selection.oversubscribe
        by_hand = ledger.CalibrationHeader("", *chosen, shell=selection.shell).by_hand(PLACE[2])
        days = range(11, 11 + selection.launches)
        new = [launch(1.0, day, by_hand=by_hand) for day in days]
        update.update_references(root, new, only, True)
        return PassResult(new)

    def begin(self, **options: Any) -> set[float]:
        """Calibrate what is unknown before a night with these options; the references that it has then."""
        progress = SimpleNamespace(note=self.notes.append, keeping=lambda _: nullcontext())
        request = SimpleNamespace(selection=Selection(Path("site.py"), **options))
        context = SimpleNamespace(
            work=self.work,
            reference_roots=self.roots,
            progress=progress,
            request=request,
            prepared=SimpleNamespace(inventory=SimpleNamespace(mpis=())),
            heard={},
            proven={},
        )
        plan = [planned(by_hand=ledger.CalibrationHeader("", **options).by_hand(PLACE[2]))]
        catalog, _ = calibrate_unknown(context, plan, load_catalog(self.roots, list_places(plan)))
        return {catalog.reference(case).center for case in CASES}

    @property
    def options(self) -> list[Any]:
        """What the file of the work directory tells of options, by calibration."""
        told = json.loads(provenance.locate_provenance(self.path).read_text())["programs"]["mpicost"]
        return [calibration.get("options") for calibration in provenance.list_calibrations(told)]


A = {"set_env": {"A": "1"}}
HERE = {"set_env": {PLACE[2]: {"A": "1"}}}  #: the same as an option of a night


@pytest.mark.parametrize(
    ("old", "options", "measured", "then"),
    [
        # else nothing would ever be comparable with them again
        *((old, {}, True, None) for old in (OVERSUBSCRIBED, A, {"shell": SHELL})),
        (OVERSUBSCRIBED, HERE, True, A),
        # an experiment in the shell of the site gives way to a night in it
        (A | {"shell": SHELL}, {"shell": SHELL}, True, {"shell": SHELL}),
        # an experiment measures nothing again that it compares with
        *((old, OVERSUBSCRIBED, False, old or None) for old in ({}, OVERSUBSCRIBED)),
        # variables of another shell may be there by mistake: the night is not comparable, and says so
        *((old, {"shell": SHELL}, False, old or None) for old in ({}, {"shell": {"UCX_TLS": "rc"}})),
    ],
    ids=str,
)
def test_references_made_with_options_are_measured_again_where_they_are_of_no_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old, options, measured, then
):
    night = Night(tmp_path, monkeypatch, old)
    assert night.options == [old or None]
    assert night.begin(**options) == {1.0 if measured else 2.0}
    assert night.options == [then]
    why = "no usable references for mpicost on mpich-5_0_2 (existing ones were measured with"
    assert [why in note for note in night.notes[:1]] == [True] * measured
    assert night.begin(**options) == {1.0 if measured else 2.0}
    assert night.measured == [set(CASES)] * measured


def test_what_a_night_does_not_know_is_not_calibrated_beside_other_work(tmp_path, monkeypatch):
    night = Night(tmp_path, monkeypatch, OVERSUBSCRIBED)
    monkeypatch.setattr(calibration_pass, "wait_for_idle", lambda _: 0.4)
    assert night.begin() == {2.0}
    assert night.measured == []
    (note,) = night.notes
    assert note.startswith("machine is 40% busy with other processes: cases without a reference are not")
    assert note.endswith("measure while nothing else runs, or set PLUMBLINE_BESIDE_OTHERS=1 and see less")
    monkeypatch.setattr(calibration_pass, "wait_for_idle", lambda _: 0.0)
    assert night.begin() == {1.0}


def test_a_night_that_knows_all_does_not_look_for_other_work(tmp_path, monkeypatch):
    night = Night(tmp_path, monkeypatch, {})
    monkeypatch.setattr(calibration_pass, "wait_for_idle", pytest.fail)
    assert night.begin() == {2.0}


@pytest.mark.parametrize(
    ("busy", "exact", "inventory", "refused"),
    [
        (0.4, False, True, True),
        (0.0, False, True, False),
        (0.4, True, True, False),  # simulated time
        (0.4, False, None, False),  # launches run elsewhere
    ],
)
def test_a_calibration_beside_other_work_is_refused(monkeypatch, busy, exact, inventory, refused):
    monkeypatch.setattr(calibration_pass, "wait_for_idle", lambda _: busy)
    context: Any = SimpleNamespace(request=None, prepared=SimpleNamespace(inventory=inventory), progress=None)
    asked = partial(calibration_pass.refuse_busy_machine, context, [planned(exact=exact)])
    if not refused:
        asked()
        return
    with pytest.raises(UsageError, match=r"machine is 40% busy .*; calibrate on .* set PLUMBLINE_BESIDE"):
        asked()


@plants("speed", "another program, as a load of 40 %", "the machine of a calibration", "", 2,
        "machine is 40% busy …; calibrate on … set PLUMBLINE_BESIDE_OTHERS=1")  # fmt: skip
def test_a_calibration_looks_for_other_work_before_it_launches(tmp_path, monkeypatch, declared):
    request: Any = SimpleNamespace(references=tmp_path, selection=Selection(Path("site.py")))
    context = SimpleNamespace(
        request=request,
        prepared=SimpleNamespace(inventory=SimpleNamespace(mpis=())),
        progress=Progress(),
        preview=lambda _: [planned()],
    )
    monkeypatch.setattr(calibration_pass, "open_session_context", lambda *_: context)
    monkeypatch.setattr(calibration_pass, "plan_for_seconds", lambda _, __, demand, ___: demand)
    monkeypatch.setattr(calibration_pass, "wait_for_idle", lambda _: 0.4)
    monkeypatch.setattr(calibration_pass, "calibrate_all", pytest.fail)
    work: Any = SimpleNamespace(held=nullcontext, root=tmp_path)
    with declared.raises(UsageError):
        calibration_pass.run_calibration(work, request, Progress(), LaunchTarget())


def test_reviewed_references_are_never_measured_again(tmp_path, monkeypatch):
    night = Night(tmp_path, monkeypatch, {})
    night.made(night.roots[0], OVERSUBSCRIBED)
    assert night.begin() == {2.0}
    assert night.measured == []


def test_a_first_night_tells_of_cores_that_few_launches_lay_on(tmp_path, monkeypatch):
    night = Night(tmp_path, monkeypatch, OVERSUBSCRIBED)
    monkeypatch.setattr(calibration_pass, "list_short_places", lambda _: {PLACE[2]})
    monkeypatch.setattr(calibration_pass, "PLACES_SECONDS", -1)
    night.begin()
    (told,) = (note for note in night.notes if "--at-most" in note)
    assert told == (
        f"the system starts the ranks of {PLACE[2]} on changing cores; where fewer than 10 launches lay, "
        "only a larger slowdown is called: ./plumbline calibrate --at-most 10 measures more"
    )


def test_only_the_cases_without_a_reference_of_use_are_measured(tmp_path, monkeypatch):
    night = Night(tmp_path, monkeypatch, OVERSUBSCRIBED)
    plain = [launch(2.0, 7, cases=CASES[:1])]
    update.update_references(night.work.provisional, plain)
    assert night.begin() == {1.0, 2.0}
    assert night.measured == [set(CASES[1:])]


@pytest.mark.parametrize(("kept", "cases", "left"), [(12, CASES, 8), (25, CASES, 1), (12, CASES[1:], 20)])
def test_a_night_goes_on_with_what_an_interrupted_calibration_left(tmp_path, monkeypatch, kept, cases, left):
    """Launches with other options by hand do not count; and a case without any needs all of them."""
    night = Night(tmp_path, monkeypatch, OVERSUBSCRIBED)
    ledger.append_launches(tmp_path, "a", [launch(2.0, day, cases=cases) for day in range(1, 1 + kept)])
    ledger.append_launches(tmp_path, "b", [launch(2.0, 1, by_hand=OVERSUBSCRIBED) for _ in range(5)])
    night.begin()
    assert night.launches == [left]
    assert f"calibrating with {left} launch" in night.notes[0]
    assert ("interrupted" in night.notes[0]) == (left < 20)


# What a user asks for.


class Bench:
    """A session context in which launches are as they are told, and all goes well."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.notes, self.new, self.sessions = root, [], [], 0
        self.dry_runs = 0
        self.output = root / "references"
        self.proof = TransportProof({})
        stand_in = SimpleNamespace(finished=[SimpleNamespace(launch=planned(), run={})])
        monkeypatch.setattr(calibration_pass, "measure_in_session", lambda *_: ([planned()], stand_in))
        monkeypatch.setattr(calibration_pass, "make_plan", self.plan)
        monkeypatch.setattr(calibration_pass, "prove_transports", lambda *_, **__: self.proof)
        monkeypatch.setattr(calibration_pass.ledger, "collect_launches", self.taken)
        monkeypatch.setattr(calibration_pass, "evaluate_launches", lambda *_, **__: [])
        monkeypatch.setattr(calibration_pass, "keep_session", lambda *_: None)
        self.context: Any = SimpleNamespace(
            work=SimpleNamespace(root=root),
            heard={},
            progress=SimpleNamespace(
                note=self.notes.append, say=lambda _: None, keeping=lambda _: nullcontext()
            ),
            open_session=self.open_session,
            reference_roots=[],
            request=SimpleNamespace(site="local", rerun_options=(), selection=None),
            prepared=SimpleNamespace(inventory=SimpleNamespace(mpis=())),
        )

    def plan(self, *_: Any) -> None:
        self.dry_runs += 1

    def open_session(self, _) -> tuple[Any, None]:
        self.sessions += 1
        name = f"s{self.sessions:03d}"
        (self.root / name).mkdir()
        return SimpleNamespace(name=name, directory=self.root / name), None

    def calibrate(self, *new: ledger.CalibrationLaunch, set_env: dict | None = None, **more: Any) -> Any:
        self.new = [replace(each, session=f"s{self.sessions + 1:03d}") for each in new]
        selection = Selection(Path("site.py"), set_env=set_env or {})
        return calibration_pass.run_calibration_pass(self.context, self.output, None, selection, **more)

    def taken(self, *given: Any) -> list[ledger.CalibrationLaunch]:
        return [replace(each, others=given[3]) for each in self.new] if given[2] else []

    def center(self) -> float:
        path = reference_file.locate_references(self.output, *PLACE)
        return reference_file.load_references(path, *PLACE)[CASES[0]].center


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_only_a_pass_that_discards_earlier_launches_plans_anew(bench: Bench):
    bench.calibrate(launch(2.0, 7))
    assert bench.dry_runs == 0
    bench.calibrate(launch(2.0, 7), afresh=True)
    assert bench.dry_runs == 1


@plants("environment", "`--mca btl self,tcp` in a node, before anything is known", "a calibration",
        "not-comparable", 1, "is not calibrated: on local:cpu in a node its MPI uses …")  # fmt: skip
def test_no_reference_rests_on_tcp_in_a_node(bench: Bench, declared: Declared):
    path = TransportPath("node", "openmpi", ("tcp",), 1, "Using tcp btl")
    bench.proof = TransportProof({(f"{PLACE[0]}:{PLACE[1]}", PLACE[2], "node"): [path]})
    simulated = planned(environment="simgrid", exact=True)
    plan = [planned(), simulated]
    proof = calibration_pass.prove_before(bench.context, plan)
    assert calibration_pass.select_proven(plan, proof) == [simulated]
    result = CaseResult(CASES[0], Verdict.PASS)
    (judged,) = bench.proof.apply([result])
    declared.check({judged.verdict}, 1, bench.notes)


def test_what_cannot_be_proven_is_not_calibrated(bench: Bench, monkeypatch):
    def refuse(*_: Any, **__: Any) -> TransportProof:
        raise RefusedError("its site file is wrong", Path("log"))

    monkeypatch.setattr(calibration_pass, "prove_transports", refuse)
    with pytest.raises(RefusedError):  # the stand-in for progress keeps nothing
        calibration_pass.prove_before(bench.context, [planned()])
    simulated = planned(environment="simgrid", exact=True)
    assert calibration_pass.select_proven([planned(), simulated], None) == [simulated]


def days(value: float, first: int, number: int, **more: Any) -> list[ledger.CalibrationLaunch]:
    return [launch(value, day, **more) for day in range(first, first + number)]


def test_references_that_were_measured_beside_other_work_see_less(monkeypatch):
    monkeypatch.delenv(BESIDE_OTHERS, raising=False)
    quiet, busy = (PassResult(days(1.0, 1, 10, others=share)) for share in (0.05, 0.26))
    assert [*calibration_pass.describe_other_work([quiet])] == []
    short = PassResult(days(1.0, 11, 2, others=0.5))
    assert [*calibration_pass.describe_other_work([quiet, short])] == []
    (note,) = calibration_pass.describe_other_work([busy, short])
    assert note.startswith("other processes used 26% of the machine") and "calibrate --afresh" in note


def test_a_reference_is_not_moved_to_the_slow_side_of_its_band(bench: Bench):
    """Nobody has reviewed it where it is the work directory's, which nights use."""
    assert bench.calibrate(*days(1.0, 1, 10)).held == {}
    done = bench.calibrate(*days(1.3, 11, 10))
    assert bench.center() == 1.0
    assert set(done.held) == set(CASES)
    (note,) = calibration_pass.describe_staying([done])
    assert note.startswith(f"4 cases would absorb a slowdown (largest: {max(CASES).key}, ")
    assert "14.0%)" in note and "the old references stay" in note and "calibrate --afresh" in note
    assert len(ledger.read_ledger(bench.root)) == 20
    assert bench.calibrate(*days(1.3, 21, 1), take=True).held == {}
    assert bench.center() > 1.1


@pytest.mark.parametrize(("inventory", "share"), [(True, 0.3), (None, None)])
def test_what_others_used_meanwhile_is_kept_with_launches_of_this_machine(bench, monkeypatch, inventory, share):
    monkeypatch.setattr(calibration_pass, "start_load_monitor", lambda: SimpleNamespace(share=lambda: 0.3))
    bench.context.prepared.inventory = inventory
    bench.calibrate(*days(1.0, 1, 2))
    assert [each.others for each in ledger.read_ledger(bench.root)] == [share, share]


def test_only_the_cases_that_got_slower_stay(bench: Bench):
    bench.calibrate(*days(1.0, 1, 10))
    values = dict.fromkeys(CASES, 1.01) | {CASES[2]: 9.0}
    done = bench.calibrate(*[launch(values, day) for day in range(11, 21)])
    assert set(done.held) == {CASES[2]}
    assert bench.center() == pytest.approx(1.005, abs=1e-4)


@pytest.mark.parametrize(("factor", "number"), [(1.02, 10), (0.5, 10), (1.5, 9)])
def test_small_moves_and_gains_and_provisional_references_are_taken(bench: Bench, factor, number):
    bench.calibrate(*days(1.0, 1, number))
    assert bench.calibrate(*days(factor, 11, 10)).held == {}
    assert bench.center() != 1.0 and bench.notes == []


@plants("references", "launches with several compilers", "one calibration", "", 2,
        "launches differ in compiler")  # fmt: skip
def test_launches_of_one_session_that_differ_make_no_reference(bench: Bench, declared: Declared):
    some = [launch(1.0, 1), launch(1.0, 2, facts={"compiler": "gcc 13"})]
    with declared.raises(UsageError):
        bench.calibrate(*some)
    assert not bench.output.exists()
    assert len(ledger.read_ledger(bench.root)) == 2


def test_launches_with_other_options_by_hand_do_not_count_beside_these(bench: Bench):
    by_hand = {"set_env": {"A": "1"}}
    bench.calibrate(*days(8.0, 1, 10, by_hand=by_hand), set_env={PLACE[2]: {"A": "1"}})
    assert bench.center() == pytest.approx(8.0)
    bench.output.rename(bench.root / "moved")
    bench.calibrate(*days(1.0, 11, 3))
    bench.output.rename(bench.root / "too")
    bench.calibrate(*days(8.0, 21, 1, by_hand=by_hand), set_env={PLACE[2]: {"A": "1"}})
    assert bench.center() == pytest.approx(8.0)


JOB_PLACE = LaunchPlace.of(CASES[0])


@pytest.fixture
def work(work: WorkDirectory) -> WorkDirectory:
    """Where one launch of everything was measured."""
    leave_timed_session(work.sessions / "20261101T010000Z-1")
    return work


def test_launches_that_fit_with_the_trials_of_the_plan(work, capsys):
    found = plan_for_seconds(work, [planned(trials=51)], LaunchTarget(seconds=300), Progress())
    assert found == LaunchTarget(launches=int(300 // SECONDS))
    assert "takes about 31 s: 9 launches in 5 min 00 s" in " ".join(capsys.readouterr().out.split())
    fewer = SECONDS - INSIDE + 11 * INSIDE / 51
    found = plan_for_seconds(work, [planned(trials=11)], LaunchTarget(seconds=300, at_most=4), Progress())
    assert found == LaunchTarget(launches=int(300 // fewer), at_most=4)


def test_what_was_told_in_launches_stays(work):
    for demand in (LaunchTarget(), LaunchTarget(7), LaunchTarget(None, 3, True)):
        assert plan_for_seconds(work, [planned()], demand, Progress()) is demand


@plants("use", "less time than a launch takes", "`calibrate --seconds`", "", 2,
        "--seconds 20: one launch …; give more")  # fmt: skip
def test_less_than_one_launch_is_refused(work, declared: Declared):
    with declared.raises(UsageError, match=r"--seconds 20: one launch .* about 31 s; give more"):
        plan_for_seconds(work, [planned(trials=51)], LaunchTarget(seconds=20), Progress())


def test_twenty_launches_fit_into_the_time_of_twenty():
    found = [count_fitting_launches(seconds, 3.0) for seconds in (0, 2.9, 3.0, 60.0, 62.9)]
    assert found == [0, 0, 1, 20, 20]
    assert all(count_fitting_launches(20 * once, once) == 20 for once in (0.1, 25.33, 1e-3 / 3))


def test_all_of_a_plan_is_paid(work):
    known = {
        (JOB_PLACE, len(CASES)): LaunchCost(1.0, 0.5),
        ((*JOB_PLACE[:2], "osu", 2, 2), 2): LaunchCost(40.0),
    }
    mpicost = planned(trials=11)
    starts = [planned(program="osu", start=f"s{n}", cases=CASES[n : n + 1]) for n in range(2)]
    assert estimate_one_pass([mpicost], known) == (6.5, True)
    assert estimate_one_pass([mpicost, *starts], known) == (46.5, True)
    assert estimate_one_pass([mpicost, *starts, planned(cases=())], known) == (46.5, True)
    seconds, sure = estimate_one_pass([mpicost, *starts[:1]], known)
    assert seconds > 6.5 and not sure


def test_another_choice_of_cases_is_only_estimated(work, capsys):
    few = planned(trials=51, cases=CASES[:2])
    assert (JOB_PLACE, 4) in read_known_costs(work) and (JOB_PLACE, 2) not in read_known_costs(work)
    plan_for_seconds(work, [few], LaunchTarget(seconds=600), Progress())
    assert "(roughly: not all of it was measured here yet)" in " ".join(capsys.readouterr().out.split())
