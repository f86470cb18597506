"""What looks slow is measured again: what repeats is regressed, what does not is cleared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.errors import UsageError
from postprocess.base.formats import MEGABYTES
from postprocess.base.progress import Progress
from postprocess.judging import confirmation
from postprocess.judging.confirmation import (
    COLUMNS,
    LEAST_CASES_OF_SLOW_NODE,
    RetestCandidate,
    confirm_slow_cases,
    format_slow,
)
from postprocess.judging.evaluate import evaluate_launches, judge_case
from postprocess.judging.retest_targets import RetestTarget
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import FinishedLaunch, LaunchOutcome, select_places
from postprocess.model.measurement import Measurement
from postprocess.model.options import AGAIN, LAUNCHES
from postprocess.model.reference import Reference
from postprocess.model.session import Selection
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.stats.detection import FINE_TO_CLEAR
from tests.support.factories.launch import (
    CASES,
    PLACE,
    book_of,
    case,
    finished,
    finished_with_wrong_data,
    reframe_says,
)
from tests.support.faults import plants

SITE = Path("site_configs/local.py")
SLOW, FINE = 3.0, 1.0

Scale = float | Mapping[str, float]  #: of all cases, or by routine and bytes


class Machine:
    """Fresh launches that are so many times as slow as the references say, one after the other."""

    def __init__(self, directory: Path, catalog: ReferenceCatalog, scales: Iterable[Scale | None]):
        self.directory, self.catalog, self.scales = directory, catalog, iter(scales)
        self.asked: list[Selection] = []

    def __call__(self, selection: Selection) -> list[FinishedLaunch]:
        self.asked.append(selection)
        return [self.launch(number) for number in range(selection.launches)]

    def launch(self, number: int) -> FinishedLaunch:
        scale = next(self.scales)
        session = self.directory / f"again-{len(self.asked)}-{number}"
        if scale is None:
            crashed = LaunchOutcome(None, Verdict.CRASHED, "signal 11")
            return finished(session, outcome=crashed, number=number + 1)
        done = finished(session, scale, number=number + 1)
        return replace(done, asserted=reframe_says(done, self.catalog))


def night_of(tmp_path: Path, scale: float = SLOW) -> tuple[list, list, ReferenceCatalog]:
    """Results and launches of a night that is so many times as slow as its references; and these."""
    catalog = book_of(finished(tmp_path / "healthy"))
    night = finished(tmp_path / "night", scale)
    night = replace(night, asserted=reframe_says(night, catalog))
    return evaluate_launches([night], catalog, "local"), [night], catalog


def looked_at(
    tmp_path: Path,
    progress: Progress,
    scales: Sequence[float | None],
    kind: type[Machine] = Machine,
    **more: Any,
) -> tuple[list[CaseResult], Machine]:
    """A night whose cases all are three times as slow as their references, and what follows."""
    results, nights, catalog = night_of(tmp_path)
    assert {result.verdict for result in results} == {Verdict.REGRESSED}
    machine = kind(tmp_path, catalog, scales)
    selection = Selection(SITE, choice={"trials": 5, "sizes": [8]})
    found = confirm_slow_cases(results, nights, catalog, selection, machine, progress, **more)
    return found.results, machine


@pytest.mark.parametrize(
    ("scales", "verdict", "said"),
    [
        ([FINE] * 2, "cleared", [2]),
        ([SLOW] * 5, "regressed", [2, "wait", 3]),
        ([SLOW, FINE, SLOW, SLOW, SLOW, SLOW], "regressed", [2, "wait", 3, 1]),
        ([SLOW, FINE, SLOW, SLOW, SLOW, FINE], "cleared", [2, "wait", 3, 1]),
        ([SLOW, SLOW, FINE, SLOW, FINE], "cleared", [2, "wait", 3]),
        ([None] * 2, "crashed", [2]),
        ([FINE, None, FINE, FINE, FINE], "crashed", [2]),
    ],
)
def test_five_fresh_launches_of_at_most_six_condemn_and_two_clear(
    tmp_path: Path, progress: Progress, scales, verdict: str, said: list
):
    """What the first two leave open is measured at another moment."""
    found: list = []

    class Watched(Machine):
        def __call__(self, selection: Selection) -> list[FinishedLaunch]:
            found.append(selection.launches)
            return super().__call__(selection)

    results, _ = looked_at(tmp_path, progress, scales, Watched, wait=lambda: found.append("wait"))
    assert {str(result.verdict) for result in results} == {verdict}
    assert found == said
    assert [result.case for result in results] == sorted(CASES)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@plants("lost", "an interrupt before the second fresh launches", "the confirmation of a night",
        "cleared or suspect", 1, "…")  # fmt: skip
def test_an_interrupt_in_the_wait_leaves_cleared_what_was_cleared(tmp_path, progress, declared):
    """And what was still in doubt is suspect, with the end of it returned to whoever asked."""
    results, nights, catalog = night_of(tmp_path)
    *_, doubtful = sorted(CASES)
    lasting = {f"{doubtful.routine}{doubtful.bytes}": SLOW}
    machine = Machine(tmp_path, catalog, [lasting] * 2)
    chosen = (results, nights, catalog, Selection(SITE), machine, progress)
    after = confirm_slow_cases(*chosen, wait=interrupt)
    assert isinstance(after.ended, KeyboardInterrupt)
    found = {result.case: result.verdict for result in after.results}
    assert found == dict.fromkeys(CASES, Verdict.CLEARED) | {doubtful: Verdict.SUSPECT}
    declared.check(found.values(), 1, [result.reason for result in after.results])
    (left,) = [result for result in after.results if result.case == doubtful]
    assert f"; {confirmation.NOT_CONFIRMED}; " in left.reason


@pytest.mark.parametrize(
    ("scales", "end", "verdict"),
    [([SLOW, FINE], interrupt, "suspect"), ([FINE, None], interrupt, "crashed"), ([], None, "suspect")],
)
def test_what_was_not_decided_before_an_interrupt_is_suspect(
    tmp_path: Path, progress: Progress, scales, end, verdict: str
):
    """In the wait, or within the first fresh launches."""

    class Interrupted(Machine):
        def launch(self, number: int) -> FinishedLaunch:
            return super().launch(number) if scales else interrupt()

    results, _ = looked_at(tmp_path, progress, scales, Interrupted, wait=end or (lambda: None))
    assert {str(result.verdict) for result in results} == {verdict}


def test_the_reason_tells_every_value(tmp_path: Path, progress: Progress):
    cleared, _ = looked_at(tmp_path / "a", progress, [FINE, SLOW, FINE, FINE, SLOW])
    assert cleared[0].reason.startswith("3 of 5 fresh launches were not slow: ")
    assert f"; at first: {cleared[0].value * 1e6:.2f} us is 3 times as slow" in cleared[0].reason
    crashed, _ = looked_at(tmp_path / "c", progress, [FINE, None])
    assert crashed[0].reason.endswith("; and of a fresh launch: signal 11")
    slow, _ = looked_at(tmp_path / "b", progress, [SLOW] * 5)
    assert slow[0].reason.count("\n") == 0
    assert "; so were 5 of 5 fresh launches: " in slow[0].reason
    assert f"; {slow[0].value * 1e6:.2f} us is 3 times as slow" in slow[0].reason  # of the night's launch


def test_only_what_was_slow_is_asked_for(tmp_path: Path, progress: Progress):
    _, machine = looked_at(tmp_path, progress, [FINE, FINE])
    (asked,) = machine.asked
    assert asked.environments == [PLACE[2]]
    hosts = tuple(sorted({host["name"] for host in finished(tmp_path / "x").run["hosts"]}))
    wanted = {RetestTarget("mpicost", PLACE[1], PLACE[2], each.layout, each.routine, hosts) for each in CASES}
    launches = [{**LaunchPlace.of(CASES[0])._asdict(), "launches": asked.launches}]
    again = [asdict(target) for target in sorted(wanted)]
    expected = {"trials": 5, "sizes": [8], AGAIN: again, LAUNCHES: launches}
    assert asked.choice == expected


@pytest.mark.parametrize(
    ("scales", "verdict", "launches"),
    [
        ([FINE, SLOW, FINE, FINE, FINE, SLOW], "cleared", [6]),
        ([SLOW, SLOW, FINE] * 5, "regressed", [6, 9]),
        ([FINE, None, *[FINE] * 4], "crashed", [6]),
    ],
)
def test_a_median_is_measured_again_by_medians(tmp_path, progress, scales, verdict, launches):
    """Each of three launches: a slow one among fine ones says nothing; a crash among them says all."""
    _, (one,), catalog = night_of(tmp_path)
    nights = [replace(one, launch=replace(one.launch, number=number)) for number in (1, 2, 3)]
    results = evaluate_launches(nights, catalog, "local")
    machine = Machine(tmp_path, catalog, scales)
    after = confirm_slow_cases(results, nights, catalog, Selection(SITE), machine, progress).results
    assert {str(result.verdict) for result in after} == {verdict}
    assert [selection.launches for selection in machine.asked] == launches
    said = "2 of 2 fresh medians of 3 launches were not slow: "
    assert (said in after[0].reason) == (verdict == "cleared")


def test_places_are_launched_again_as_often_as_their_values_need(tmp_path: Path):
    few, many = case(), case(processes=4, per_node=4)
    counts = {LaunchPlace.of(few): 1, LaunchPlace.of(many): 5}
    asked = confirmation.select_retest(Selection(SITE), {few: (), many: ()}, 2, counts)
    assert asked.launches == 10
    told = asked.choice[LAUNCHES]
    assert select_places(told, 2) == [LaunchPlace.of(few), LaunchPlace.of(many)]
    assert select_places(told, 3) == select_places(told, 10) == [LaunchPlace.of(many)]
    assert select_places(told, 3, processes=2) == []


def test_what_cannot_be_measured_again_stays_regressed(tmp_path: Path, progress: Progress):
    def refuse(_: Selection) -> list[FinishedLaunch]:
        raise UsageError("the site is gone")

    after = confirm_slow_cases(*night_of(tmp_path), Selection(SITE), refuse, progress).results
    assert {result.verdict for result in after} == {Verdict.REGRESSED}
    assert after[0].reason.endswith("; it could not be measured again")
    assert progress.notes == ["could not be measured again: the site is gone"]


def test_a_healthy_night_and_exact_time_need_no_second_look(tmp_path: Path, progress: Progress):
    healthy, _, catalog = night_of(tmp_path, scale=FINE)
    slow = [CaseResult(each, Verdict.REGRESSED, "slow", value=1.0) for each in sorted(CASES)]
    machine = Machine(tmp_path, catalog, [])
    for results in (healthy, slow):
        assert confirm_slow_cases(results, [], catalog, Selection(SITE), machine, progress).results == results
        assert machine.asked == []
        (reference_set,) = catalog.sets.values()
        for each, reference in reference_set.references.items():
            reference_set.references[each] = replace(reference, exact=True, spread=0.0)


def suspected(of: Case | None = None, hosts: tuple[str, ...] = ()) -> RetestCandidate:
    """A case that was slow in a night, on these hosts."""
    return RetestCandidate(CaseResult(of or case(), Verdict.REGRESSED, "slow", value=1.0), hosts)


@given(st.lists(st.sampled_from(["slow", "fine", "lost"]), min_size=FINE_TO_CLEAR, max_size=6))
def test_a_case_is_cleared_by_two_values_inside_and_by_nothing_else(votes: list[str]):
    suspect = RetestCandidate(CaseResult(case(), Verdict.REGRESSED, "slow", value=1.0))
    answers = {
        "slow": CaseResult(case(), Verdict.REGRESSED, value=1.0),
        "fine": CaseResult(case(), Verdict.PASS, value=0.5),
        "lost": None,
    }
    heard = []
    for vote in votes:
        if not suspect.decided:
            heard.append(vote)
            suspect.count_launch(answers[vote])
    cleared = heard.count("fine") >= FINE_TO_CLEAR
    assert (suspect.verdict().verdict == Verdict.CLEARED) == cleared


@pytest.mark.parametrize("verdict", [*FAILED_LAUNCH, Verdict.NOT_COMPARABLE])
def test_what_is_worse_than_slow_in_one_fresh_launch_is_the_verdict(verdict: Verdict):
    suspect = suspected()
    suspect.count_launch(CaseResult(case(), Verdict.PASS, value=0.5))
    suspect.count_launch(CaseResult(case(), verdict, "why", value=0.5))
    assert suspect.verdict().verdict == verdict
    assert suspect.verdict().reason.endswith(": why")


@pytest.mark.parametrize("by_headline", [True, False])
@pytest.mark.parametrize("of_headline", [True, False])
def test_a_fresh_launch_is_slow_by_what_the_first_was_slow_by(by_headline, of_headline):
    """What is told of it is that number too, as it is to the reference of the first."""
    told = {"headline": 3e-6, "headline_reference": 2e-6, "headline_limit": 2.2e-6}
    first = CaseResult(case(), Verdict.REGRESSED, value=1e-6, reference=1e-6, by_headline=by_headline, **told)
    again = replace(first, by_headline=of_headline)
    if not of_headline:
        again = replace(again, headline=2e-6, value=3e-6)
    suspect = RetestCandidate(replace(first, headline_reference=4e-6, reference=2e-6))
    suspect.count_launch(again)
    assert bool(suspect.slow) == (by_headline == of_headline)
    values = {True: {True: 6e-6, False: 4e-6}, False: {True: 2e-6, False: 6e-6}}
    assert suspect.values == [pytest.approx(values[by_headline][of_headline])]


@pytest.mark.parametrize(("value", "times"), [(100.0, 0.1), (1e4, 10.0)])
def test_what_is_fast_clears_in_the_direction_of_its_unit(value: float, times: float):
    """Of a rate higher is better."""
    reference = Reference(case(program="osu"), 1e3, 0.05, 20, MEGABYTES)
    said = judge_case(reference.case, Measurement(value, MEGABYTES), reference)
    assert said.beyond and said.too_slow == (times < 1)
    suspect = RetestCandidate(CaseResult(reference.case, Verdict.REGRESSED, "slow", value=1.0))
    suspect.count_launch(said)
    assert len(suspect.fine) == (times > 1)


def test_what_cannot_be_compared_counts_neither_way():
    suspect = suspected()
    for _ in range(4):
        suspect.count_launch(CaseResult(case(), Verdict.NOT_COMPARABLE, "another node", value=0.5))
        assert not suspect.decided
    for _ in range(FINE_TO_CLEAR):
        suspect.count_launch(CaseResult(case(), Verdict.PASS, value=0.5))
    assert suspect.verdict().verdict == Verdict.CLEARED


def failed_by(result: CaseResult, fresh: Sequence[FinishedLaunch]) -> CaseResult:
    """The result beside what these fresh launches failed."""
    failed = confirmation.list_failures(fresh)
    (after,) = confirmation.apply_failures([result], failed, "in a confirmation run")
    return after


def test_a_case_beside_the_suspects_that_fails_in_their_fresh_launches_fails(tmp_path: Path):
    fresh = finished(tmp_path, outcome=LaunchOutcome(None, Verdict.INCORRECT, "wrong data"))
    beside = CaseResult(sorted(CASES)[0], Verdict.PASS, value=1.0)
    after = failed_by(beside, [fresh])
    assert (after.verdict, after.reason) == (Verdict.INCORRECT, "in a confirmation run: wrong data")
    worse = replace(beside, verdict=Verdict.CRASHED)
    assert failed_by(worse, [fresh]) == worse
    partly = [finished_with_wrong_data(tmp_path / "partly")]
    damaged = failed_by(replace(beside, case=CASES[0]), partly)
    assert damaged.verdict == Verdict.INCORRECT
    assert damaged.reason.startswith("in a confirmation run: wrong data: bcast with 8 bytes: ")
    whole = replace(beside, case=CASES[1])
    assert failed_by(whole, partly) == whole
    other = replace(beside, case=case(routine="scatter", size=80_000))
    assert failed_by(other, [fresh]) == other


def test_a_second_look_wherever_the_scheduler_put_it_is_told_once(tmp_path, progress):
    """With a scheduler that cannot be asked for other nodes, a sick node may be measured again."""

    class Anywhere(Machine):
        def launch(self, number: int) -> FinishedLaunch:
            done = super().launch(number)
            return replace(done, launch=replace(done.launch, anywhere=True))

    looked_at(tmp_path / "there", progress, [FINE] * 2)
    assert progress.notes == []
    looked_at(tmp_path / "here", progress, [SLOW, FINE, FINE, FINE, FINE], Anywhere)
    (note,) = progress.notes
    assert note.startswith("local:cpu: confirmation runs may have used the same nodes: ")


def heard_on(hosts: Sequence[str], votes: Sequence[tuple[str, Sequence[str]]]) -> RetestCandidate:
    """A case that was slow on some hosts, and fine or slow in fresh launches on others."""
    suspect = suspected(hosts=tuple(hosts))
    for vote, there in votes:
        verdict = Verdict.PASS if vote == "fine" else Verdict.REGRESSED
        suspect.count_launch(CaseResult(case(), verdict, value=0.5), there)
    return suspect


@pytest.mark.parametrize(
    ("votes", "elsewhere"),
    [
        ([("fine", ["n3"])] * 3, True),
        ([("fine", ["n3"]), ("fine", ["n1"]), ("fine", ["n3"])], False),
        ([("fine", ["n1"]), ("fine", ["n3"]), ("fine", ["n3"])], False),
        ([("slow", ["n1"]), *[("fine", ["n4"])] * 3], True),
        ([("fine", [])] * 3, False),
    ],
)
def test_the_reason_says_whether_it_was_fine_on_other_nodes(votes, elsewhere: bool):
    suspect = heard_on(["n1", "n2"], votes)
    assert suspect.verdict().verdict == Verdict.CLEARED
    assert (" on other nodes than n1, n2 were not slow: " in suspect.verdict().reason) == elsewhere
    assert suspect.verdict().slow_on == (("n1", "n2") if elsewhere else ())


def test_hosts_that_several_cases_were_slow_on_alone_are_named(progress: Progress):
    sick = [heard_on(["n1"], [("fine", ["n2"])] * 3) for _ in range(LEAST_CASES_OF_SLOW_NODE)]
    confirmation.report_slow_nodes(sick[1:], progress)
    assert progress.notes == []
    confirmation.report_slow_nodes(sick, progress)
    (note,) = progress.notes
    assert note.startswith("n1: 3 cases were slow there, and not on other nodes: ./plumbline links")


def test_a_night_names_the_host_where_its_cases_were_slow_alone(tmp_path: Path, progress: Progress):
    class Elsewhere(Machine):
        def launch(self, number: int) -> FinishedLaunch:
            there = {"hosts": [{"name": "n2", "ranks": 2}]}
            done = finished(self.directory / f"{len(self.asked)}-{number}", number=number + 1, run=there)
            return replace(done, asserted=reframe_says(done, self.catalog))

    results, _ = looked_at(tmp_path, progress, [], Elsewhere)
    assert {result.verdict for result in results} == {Verdict.CLEARED}
    (note,) = progress.notes
    assert note.startswith("n1: 4 cases were slow there, and not on other nodes")


def test_what_is_slow_is_told_in_one_line_however_many_cases_it_is():
    key = "a-system-of-a-long-name:cpu:mpich:mpicost:pingpong@{}:evict-barrier:8x2:10000"
    cases = [Case.from_key(key.format(peer)) for peer in range(1, 8)]
    assert format_slow(cases[:2]) == "slow: measuring 2 cases again: pingpong@1 10 kB, pingpong@2 10 kB"
    many = format_slow(cases)
    assert many == "slow: measuring 7 cases again: pingpong@1 10 kB, pingpong@2 10 kB and 5 more"
    assert len(many) <= COLUMNS
    barrier = Case.from_key("laptop:cpu:mpich:mpicost:barrier:evict-barrier:8x2:0")
    assert format_slow([barrier]) == "slow: measuring 1 case again: barrier"
