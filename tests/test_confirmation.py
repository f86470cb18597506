"""What looks slow is measured again: what repeats is regressed, what does not is cleared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_samples import CASES, PLACE, book_of, case, finished, reframe_says
from rich.console import Console

from postprocess import confirmation
from postprocess.confirmation import COMMON_CASES, NEEDED, Suspect, confirmed
from postprocess.errors import UsageError
from postprocess.judgement import Finished, verdicts
from postprocess.launches import Outcome
from postprocess.progress import Progress
from postprocess.reference_book import ReferenceBook
from postprocess.reframe_driver import Selection
from postprocess.verdicts import CaseResult, Verdict

SITE = Path("site_configs/local.py")
SLOW, FINE = 3.0, 1.0


class Machine:
    """Fresh launches that are so many times as slow as the references say, one after the other."""

    def __init__(self, directory: Path, book: ReferenceBook, scales: Iterable[float | None]):
        self.directory, self.book, self.scales = directory, book, iter(scales)
        self.asked: list[Selection] = []

    def __call__(self, selection: Selection) -> list[Finished]:
        self.asked.append(selection)
        return [self.launch(number) for number in range(selection.launches)]

    def launch(self, number: int) -> Finished:
        scale = next(self.scales)
        session = self.directory / f"again-{len(self.asked)}-{number}"
        if scale is None:
            return finished(
                session,
                outcome=Outcome(None, Verdict.CRASHED, "signal 11"),
                number=number + 1,
            )
        done = finished(session, scale, number=number + 1)
        return replace(done, asserted=reframe_says(done, self.book))


@pytest.fixture
def progress() -> Progress:
    return Progress(Console(quiet=True))


def looked_at(
    tmp_path: Path, progress: Progress, scales: Sequence[float | None]
) -> tuple[list[CaseResult], Machine]:
    """A night whose cases all are three times as slow as their references, and what follows."""
    book = book_of(finished(tmp_path / "healthy"))
    night = finished(tmp_path / "night", SLOW)
    night = replace(night, asserted=reframe_says(night, book))
    results = verdicts([night], book, "local")
    assert {each.verdict for each in results} == {Verdict.REGRESSED}
    machine = Machine(tmp_path, book, scales)
    selection = Selection(SITE, choice={"trials": 5, "sizes": [8]})
    return confirmed(results, book, selection, machine, progress), machine


@pytest.mark.parametrize(
    ("scales", "verdict", "launches"),
    [
        ([SLOW, SLOW, SLOW], "regressed", [3]),
        ([FINE, FINE, FINE], "cleared", [3]),
        ([SLOW, FINE, SLOW, SLOW], "regressed", [3, 1]),
        ([FINE, SLOW, FINE, SLOW, FINE], "cleared", [3, 1, 1]),
        ([FINE, SLOW, FINE, SLOW, SLOW], "regressed", [3, 1, 1]),
        ([None, None, None], "regressed", [3]),
        ([None, FINE, None, FINE, None], "regressed", [3, 1, 1]),
        ([FINE, None, FINE, FINE], "cleared", [3, 1]),
    ],
)
def test_three_fresh_launches_of_at_most_five_decide(
    tmp_path: Path, progress: Progress, scales, verdict: str, launches: list[int]
):
    results, machine = looked_at(tmp_path, progress, scales)
    assert {str(each.verdict) for each in results} == {verdict}
    assert [each.launches for each in machine.asked] == launches
    assert [each.case for each in results] == sorted(CASES)


def test_the_reason_tells_every_value(tmp_path: Path, progress: Progress):
    cleared, _ = looked_at(tmp_path / "a", progress, [FINE, SLOW, FINE, FINE])
    assert "; 3 of 4 fresh launches were not: " in cleared[0].reason
    slow, _ = looked_at(tmp_path / "b", progress, [None, SLOW, SLOW])
    assert slow[0].reason.count("\n") == 0
    assert "; so were 3 of 3 fresh launches: no value (signal 11), " in slow[0].reason
    assert slow[0].reason.startswith(f"{slow[0].value * 1e6:.2f} us is ")  # of the night's launch


def test_only_what_was_slow_is_asked_for(tmp_path: Path, progress: Progress):
    _, machine = looked_at(tmp_path, progress, [FINE, FINE, FINE])
    (asked,) = machine.asked
    assert asked.environments == [PLACE[2]]
    assert asked.choice == {
        "trials": 5,
        "sizes": [8],
        "programs": ["mpicost"],
        "partitions": [PLACE[1]],
        "routines": sorted({each.routine for each in CASES}),
        "processes": sorted({each.processes for each in CASES}),
    }


def test_what_cannot_be_measured_again_stays_regressed(tmp_path: Path, progress: Progress):
    def refuse(_: Selection) -> list[Finished]:
        raise UsageError("the site is gone")

    book = book_of(finished(tmp_path / "healthy"))
    night = finished(tmp_path / "night", SLOW)
    results = verdicts([replace(night, asserted=reframe_says(night, book))], book, "local")
    after = confirmed(results, book, Selection(SITE), refuse, progress)
    assert {each.verdict for each in after} == {Verdict.REGRESSED}
    assert "no value (it did not run)" in after[0].reason
    assert progress.notes == ["could not be measured again: the site is gone"]


def test_a_healthy_night_is_left_alone(tmp_path: Path, progress: Progress):
    book = book_of(finished(tmp_path / "healthy"))
    night = finished(tmp_path / "night")
    results = verdicts([replace(night, asserted=reframe_says(night, book))], book, "local")
    machine = Machine(tmp_path, book, [])
    assert confirmed(results, book, Selection(SITE), machine, progress) == results
    assert machine.asked == []


def test_exact_time_needs_no_second_look(tmp_path: Path, progress: Progress):
    book = book_of(finished(tmp_path / "healthy"))
    (shelf,) = book.shelves.values()
    for each, reference in shelf.references.items():
        shelf.references[each] = replace(reference, exact=True, spread=0.0)
    results = [CaseResult(each, Verdict.REGRESSED, "slow", value=1.0) for each in sorted(CASES)]
    machine = Machine(tmp_path, book, [])
    assert confirmed(results, book, Selection(SITE), machine, progress) == results


def test_a_cause_common_to_many_is_told_once_and_clears_nothing(progress: Progress, monkeypatch):
    """Else every case of a night would be measured three times more, one by one."""
    monkeypatch.setattr(confirmation, "listen", lambda *_: pytest.fail("measured again"))
    slow = [
        CaseResult(case(size=8 * n), Verdict.REGRESSED, "slow", value=1.0)
        for n in range(1, COMMON_CASES + 1)
    ]
    fine = [
        CaseResult(case(size=8 * n), Verdict.PASS, value=1.0)
        for n in range(COMMON_CASES + 1, 4 * COMMON_CASES)
    ]
    after = confirmed([*slow, *fine], ReferenceBook(), Selection(SITE), lambda _: [], progress)
    assert after == [*slow, *fine]
    (note,) = progress.notes
    assert note.startswith(f"{PLACE[1]}: 10 of 39 cases are slower than their bands allow")


@given(st.lists(st.sampled_from(["slow", "fine", "lost"]), min_size=NEEDED, max_size=5))
def test_a_case_is_cleared_by_three_values_inside_and_by_nothing_else(votes: list[str]):
    suspect = Suspect(CaseResult(case(), Verdict.REGRESSED, "slow", value=1.0))
    answers = {
        "slow": CaseResult(case(), Verdict.REGRESSED, value=1.0),
        "fine": CaseResult(case(), Verdict.PASS, value=0.5),
        "lost": None,
    }
    heard = []
    for vote in votes:
        if not suspect.decided:
            heard.append(vote)
            suspect.hear(answers[vote])
    cleared = heard.count("fine") >= NEEDED
    assert (suspect.verdict().verdict == Verdict.CLEARED) == cleared


@pytest.mark.parametrize("verdict", [Verdict.INCORRECT, Verdict.NOT_COMPARABLE])
def test_a_value_that_may_not_be_judged_clears_nobody(verdict: Verdict):
    suspect = Suspect(CaseResult(case(), Verdict.REGRESSED, "slow", value=1.0))
    for _ in range(NEEDED):
        suspect.hear(CaseResult(case(), verdict, "why", value=0.5))
    assert suspect.verdict().verdict == Verdict.REGRESSED
