"""Whether a case that looks slow is slow: it is measured again in fresh launches before anyone is alarmed.

One launch in a hundred leaves its band on a healthy machine, which in a night of a thousand cases is ten.
Three of at most five fresh launches must say the same: what leaves its band by chance does not do so again.
With three rather than two, simulated nights (``tests/simulated_nights.py``) have a third to a half of the false
alarms and miss no more; a better look at fewer cases is what a launch is best spent on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from postprocess.cases import Case
from postprocess.errors import UsageError
from postprocess.formats import plural, quantity
from postprocess.judgement import Finished, case_verdict
from postprocess.progress import Progress
from postprocess.reference_book import ReferenceBook
from postprocess.reframe_driver import Selection
from postprocess.verdicts import HEALTHY, CaseResult, Verdict

NEEDED = 3  #: fresh launches that must say the same; so five at most decide
COMMON_SHARE = (
    0.2  #: of a partition's judged cases: so many are not slow by chance, nor each by itself
)
COMMON_CASES = 10  #: slow ones at least, before one cause is spoken of
JUDGED = (Verdict.PASS, Verdict.REGRESSED, Verdict.FAST, Verdict.PROVISIONAL)

Measure = Callable[[Selection], Sequence[Finished]]


@dataclass
class Suspect:
    """A case that one launch called regressed, and what fresh launches say of it."""

    result: CaseResult
    slow: list[str] = field(
        default_factory=list
    )  #: values beyond the same limit, or why there is none
    fine: list[str] = field(default_factory=list)  #: values that are not

    @property
    def decided(self) -> bool:
        """Whether another launch could change nothing."""
        return max(len(self.slow), len(self.fine)) >= NEEDED

    def hear(self, said: CaseResult | None) -> None:
        """Count what a fresh launch says. What did not arrive clears nobody."""
        if said is None or said.value is None:
            self.slow.append(f"no value ({said.reason if said else 'it did not run'})")
        else:
            votes = self.fine if said.verdict in HEALTHY else self.slow
            votes.append(quantity(said.value, said.unit))

    def verdict(self) -> CaseResult:
        """The result of all launches together."""
        heard = plural(len(self.slow) + len(self.fine), "fresh launch", "es")
        if len(self.fine) >= NEEDED:
            reason = f"{self.result.reason}; {len(self.fine)} of {heard} were not: {', '.join(self.fine)}"
            return replace(self.result, verdict=Verdict.CLEARED, reason=reason)
        reason = (
            f"{self.result.reason}; so were {len(self.slow)} of {heard}: {', '.join(self.slow)}"
        )
        return replace(self.result, reason=reason)


def confirmed(
    results: Sequence[CaseResult],
    book: ReferenceBook,
    selection: Selection,
    measure: Measure,
    progress: Progress,
) -> list[CaseResult]:
    """The same results, in which what looked slow is ``regressed`` or ``cleared`` after a second look.

    :param selection: what the session ran
    :param measure: runs a selection in fresh launches and returns what became of them
    """
    suspects = {each.case: Suspect(each) for each in suspected(results, book, progress)}
    for launches in (NEEDED, *(NEEDED - 1) * (1,)):
        undecided = [case for case, each in suspects.items() if not each.decided]
        for some in families(undecided):
            listen([suspects[case] for case in some], launches, book, selection, measure, progress)
    return [suspects[r.case].verdict() if r.case in suspects else r for r in results]


def suspected(
    results: Sequence[CaseResult], book: ReferenceBook, progress: Progress
) -> Iterable[CaseResult]:
    """The cases to look at again: none where one cause slows a whole partition, and none of exact time."""
    for partition, some in groupby(results, key=lambda each: each.case.partition):
        judged = [each for each in some if each.verdict in JUDGED]
        slow = [each for each in judged if each.verdict == Verdict.REGRESSED]
        if len(slow) >= COMMON_CASES and len(slow) > COMMON_SHARE * len(judged):
            progress.note(
                f"{partition}: {len(slow)} of {plural(len(judged), 'case')} are slower than their bands allow: "
                "one cause is likelier than so many, and they were not measured again"
            )
            continue
        for each in slow:
            reference = book.reference(each.case)
            if reference and not reference.exact:
                yield each


def families(cases: Sequence[Case]) -> Iterable[list[Case]]:
    """Cases that one selection takes together: of one program, environment and partition."""

    def place(case: Case) -> tuple[str, str, str]:
        return case.partition, case.environment, case.program

    for _, some in groupby(sorted(cases, key=place), key=place):
        yield list(some)


def listen(
    suspects: Sequence[Suspect],
    launches: int,
    book: ReferenceBook,
    selection: Selection,
    measure: Measure,
    progress: Progress,
) -> None:
    """Measure the routines of some suspects again, and let each launch say what it has to say."""
    cases = [each.result.case for each in suspects]
    routines = sorted({case.routine for case in cases})
    progress.say(f"slow: {', '.join(routines)} of {cases[0].program}: is measured again")
    try:
        finished = measure(again(selection, cases, launches))
    except UsageError as error:
        progress.note(f"could not be measured again: {error}")
        finished = []
    for suspect in suspects:
        heard = [each for each in finished if suspect.result.case in each.launch.cases]
        for each in heard[:launches]:
            suspect.hear(case_verdict(suspect.result.case, [each], book))
        for _ in range(launches - len(heard)):
            suspect.hear(None)


def again(selection: Selection, cases: Sequence[Case], launches: int) -> Selection:
    """The selection, cut down to the routines and process counts of some cases of one program and place."""
    first = cases[0]
    choice = selection.choice | {
        "programs": [first.program],
        "partitions": [first.partition],
        "routines": sorted({case.routine for case in cases}),
        "processes": sorted({case.processes for case in cases}),
    }
    environments = [first.environment]
    return replace(selection, environments=environments, choice=choice, launches=launches)
