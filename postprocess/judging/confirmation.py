"""Confirmation runs: measure what looks slow again in fresh launches, before it is reported.

On a healthy machine, three launches in a hundred leave their band: up to thirty in a night of a thousand cases.
Five of at most six fresh launches must agree, and two that disagree clear the case
(:mod:`postprocess.stats.detection`): a value that leaves its band by chance does not do so again and again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from postprocess.base.errors import UsageError
from postprocess.base.formats import first_of, format_comparison, plural, quantity, size
from postprocess.base.progress import Progress
from postprocess.judging.common_cause import CommonCause, find_common_causes
from postprocess.judging.evaluate import evaluate_case
from postprocess.judging.retest import (
    CommonCauseRetest,
    describe_cause,
    describe_unavoidable_nodes,
    name_confirmed_causes,
    select_launches_of_value,
)
from postprocess.judging.retest_targets import build_retest_choice
from postprocess.judging.suspicion import NO_HISTORY, SessionHistory, call_slow_sums, decide_suspicion
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import FinishedLaunch, select_launch_counts
from postprocess.model.options import AGAIN
from postprocess.model.session import Selection
from postprocess.model.verdict import FAILED_LAUNCH, HEALTHY, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.stats import detection

NOT_RUN = "no value (it did not run)"
NOT_CONFIRMED = "confirmation ended before fresh launches decided on it"
#: cases that must be slow on the same hosts and fine on others before the hosts are named
LEAST_CASES_OF_SLOW_NODE = 3
COLUMNS = 80  #: width of a line that lists what is slow

Measure = Callable[[Selection], Sequence[FinishedLaunch]]
Since = Callable[[CommonCause], str]
Wait = Callable[[], None]


@dataclass(frozen=True)
class Confirmation:
    """What a session reports after its confirmation runs."""

    results: list[CaseResult]
    #: confirmed common causes, one line each; any of them fails the session
    causes: tuple[str, ...] = ()
    #: The exception or signal that ended it before all was decided: what is undecided then is suspect
    ended: BaseException | None = None


@dataclass
class RetestCandidate:
    """A case whose value was called regressed, and what fresh values say about it.

    A fresh value is like the first one: from one launch, or the median of as many.
    """

    result: CaseResult
    hosts: tuple[str, ...] = ()  #: those on which it was slow
    #: Values beyond the same limit, or why there is no value
    slow: list[str] = field(default_factory=list)
    values: list[float] = field(default_factory=list)  #: fresh values of all launches that have one
    fine: list[str] = field(default_factory=list)  #: values within the limit
    #: Why a value cannot be compared with the reference
    not_comparable: list[str] = field(default_factory=list)
    #: Why a value says nothing: its ranks lay where no reference, or a poor one, judges them
    displaced: list[str] = field(default_factory=list)
    #: A fresh launch that crashed or received wrong data, which is worse than slow
    failed: CaseResult | None = None
    elsewhere: bool = False  #: whether all fine values were measured on other hosts

    @property
    def cleared(self) -> bool:
        """Whether enough fresh launches show that it is not slow."""
        return bool(detection.is_cleared(len(self.fine)))

    @property
    def decided(self) -> bool:
        """Whether another launch could change nothing."""
        return self.failed is not None or bool(detection.is_decided(len(self.slow), len(self.fine)))

    def count_launch(self, outcome: CaseResult | None, hosts: Sequence[str] = ()) -> None:
        """Count a fresh launch on these hosts. A missing value counts as slow."""
        if outcome is not None and outcome.verdict in FAILED_LAUNCH:
            self.failed = self.failed or outcome
        elif outcome is not None and (outcome.elsewhere or self.is_of_unsure_place(outcome)):
            self.displaced.append(outcome.reason)
        elif outcome is not None and outcome.verdict == Verdict.NOT_COMPARABLE:
            self.not_comparable.append(outcome.reason)
        elif outcome is None or outcome.value is None:
            self.slow.append(f"no value ({outcome.reason})" if outcome else NOT_RUN)
        else:
            side = self.slow if self.is_slow(outcome) else self.fine
            shown, scaled = tell_value(outcome, self.result)
            side.append(shown)
            self.values.append(scaled)
            if side is self.fine:
                other = bool(hosts) and not {*hosts} & {*self.hosts}
                self.elsewhere = other and (self.elsewhere or len(self.fine) == 1)

    def is_of_unsure_place(self, outcome: CaseResult) -> bool:
        """Return whether a fresh value was judged at another place, by a reference with few data."""
        other = outcome.core_latency != self.result.core_latency
        return other and outcome.verdict == Verdict.PROVISIONAL

    def is_slow(self, outcome: CaseResult) -> bool:
        """Return whether a fresh value is slow in the same way as the first one."""
        if self.result.by_headline:
            return outcome.slow_headline
        return outcome.verdict not in HEALTHY and not outcome.by_headline

    @property
    def known(self) -> Sequence[float]:
        """Every fresh value; none if one is missing, which counts as slow."""
        return self.values if len(self.values) == len(self.slow) + len(self.fine) else ()

    def decide(self, catalog: ReferenceCatalog, history: SessionHistory, interrupted: bool) -> CaseResult:
        """Return the result of the case.

        If an interrupt left a case in doubt, or its fresh launches lay elsewhere, it was slow once, and no
        more.
        """
        reference = catalog.reference(self.result.case, self.result.core_latency)
        doubt = NOT_CONFIRMED if interrupted else self._describe_displaced()
        if self.decided or self.not_comparable or not doubt:
            return decide_suspicion(self.verdict(), self.known, reference, history)
        value = self.result.headline if self.result.by_headline else self.result.value
        doubted = replace(self.result, reason=f"{self.result.reason}; {doubt}")
        return decide_suspicion(doubted, [value] if value else [], reference, history, confirmed=False)

    def _describe_displaced(self) -> str:
        """Describe the fresh launches that say nothing because they lay elsewhere; empty if there are none."""
        if not self.displaced:
            return ""
        judging = [
            f"{len(values)} {word}" for values, word in ((self.slow, "slow"), (self.fine, "fine")) if values
        ]
        others = f" ({' and '.join(judging)} of the others)" if judging else ""
        return f"{plural(len(self.displaced), 'fresh launch', 'es')} could not say{others}: {self.displaced[0]}"

    def verdict(self) -> CaseResult:
        if self.failed:
            reason = f"{self.result.reason}; and of a fresh launch: {self.failed.reason}"
            return replace(self.result, verdict=self.failed.verdict, reason=reason)
        if self.not_comparable and not detection.is_decided(len(self.slow), len(self.fine)):
            reason = f"{self.result.reason}; but fresh launches cannot be compared: {self.not_comparable[0]}"
            return replace(self.result, verdict=Verdict.NOT_COMPARABLE, reason=reason)
        number, median_of = len(self.slow) + len(self.fine), self.result.launches
        counted = plural(number, "fresh launch", "es")
        if median_of > 1:
            counted = f"{plural(number, 'fresh median')} of {median_of} launches"
        if self.cleared:
            where = f" on other nodes than {', '.join(self.hosts)}" if self.elsewhere else ""
            finding = f"{len(self.fine)} of {counted}{where} were not slow: {', '.join(self.fine)}"
            reason = f"{finding}; at first: {self.result.reason}"
            slow_on = self.hosts if self.elsewhere else ()
            return replace(self.result, verdict=Verdict.CLEARED, reason=reason, slow_on=slow_on)
        if not self.fine and set(self.slow) == {NOT_RUN}:
            reason = f"{self.result.reason}; it could not be measured again"
            return replace(self.result, reason=reason)
        reason = f"{self.result.reason}; so were {len(self.slow)} of {counted}: {', '.join(self.slow)}"
        return replace(self.result, reason=reason)


def tell_value(outcome: CaseResult, result: CaseResult) -> tuple[str, float]:
    """Return a fresh value, or headline, as text, and scaled to the reference of the first one.

    The ranks of the fresh launches may have lain elsewhere, where another reference applies: then the text
    compares the value with that one.
    """
    value, home, there = outcome.value, outcome.reference, result.reference
    if result.by_headline:
        value, home = outcome.headline, outcome.headline_reference
        there = result.headline_reference
    shown = quantity(value or 0.0, outcome.unit)
    if not (value and home and there):
        return shown, value or 0.0
    if home != there:
        shown = f"{shown} ({format_comparison(value, home, outcome.unit)} the reference there)"
    return shown, value * there / home


def confirm_slow_cases(
    results: Sequence[CaseResult],
    finished: Sequence[FinishedLaunch],
    catalog: ReferenceCatalog,
    selection: Selection,
    measure: Measure,
    progress: Progress,
    since: Since = lambda _: "",
    history: SessionHistory = NO_HISTORY,
    wait: Wait = lambda: None,
) -> Confirmation:
    """Measure what looked slow, and common causes, again: ``regressed``, ``suspect`` or ``cleared``.

    :param measure: runs a selection in fresh launches and returns the finished ones
    :param since: says when a common cause began; empty if unknown
    :param wait: returns when more may be measured of what the first fresh launches left open

    What ends a confirmation run or the wait, a signal included, is returned with what was decided until then;
    the rest is ``suspect``, unless earlier sessions decide it.
    """
    hosts = map_hosts(finished)
    second = ConfirmationRun(hosts, count_launches(results), catalog, selection, measure, progress, wait)
    retests = [CommonCauseRetest(cause) for cause in find_common_causes(results, catalog, hosts)]
    slow = [
        RetestCandidate(result, hosts.get(result.case, ())) for result in select_candidates(results, catalog)
    ]
    ended = second.look(slow, retests)
    causes = report_causes(retests, since, progress)
    report_slow_nodes(slow, progress)
    for line in describe_unavoidable_nodes(run.launch for run in second.made):
        progress.note(line)
    verdicts = {
        candidate.result.case: candidate.decide(catalog, history, interrupted=ended is not None)
        for candidate in slow
    }
    results = call_slow_sums(results, catalog, history)
    after = [verdicts.get(result.case, result) for result in results]
    after = apply_failures(after, list_failures(second.made), "in a confirmation run")
    cause_lines = tuple(map(describe_cause, causes))
    return Confirmation(name_confirmed_causes(after, causes), cause_lines, ended)


def leave_in_doubt(
    results: Sequence[CaseResult], catalog: ReferenceCatalog, history: SessionHistory
) -> list[CaseResult]:
    """Return the results if nothing slow was measured again: suspect, unless earlier sessions decide."""
    doubted = {
        result.case: RetestCandidate(result).decide(catalog, history, interrupted=True)
        for result in select_candidates(results, catalog)
    }
    summed = call_slow_sums(results, catalog, history)
    return [doubted.get(result.case, result) for result in summed]


@dataclass(frozen=True)
class ConfirmationRun:
    """Fresh launches of the cases and common causes that a session must confirm."""

    hosts: Mapping[Case, tuple[str, ...]]  #: those on which each case ran
    counts: Mapping[LaunchPlace, int]  #: launches behind one value
    catalog: ReferenceCatalog
    selection: Selection  #: what the session ran
    measure: Measure
    progress: Progress
    wait: Wait = lambda: None
    made: list[FinishedLaunch] = field(default_factory=list)  #: all fresh launches

    def look(
        self, suspects: Sequence[RetestCandidate], retests: Sequence[CommonCauseRetest] = ()
    ) -> BaseException | None:
        """Launch again until all suspects and all doubtful causes are decided.

        Return what ended it early: a signal, or an error. What was decided until then stays decided.
        """
        try:
            self.decide(suspects, retests)
        except BaseException as error:
            return error
        return None

    def decide(self, suspects: Sequence[RetestCandidate], retests: Sequence[CommonCauseRetest]) -> None:
        """Launch again, in turns, what is undecided."""
        for turn, launches in enumerate(detection.PASSES):
            undecided = [suspect for suspect in suspects if not suspect.decided]
            unclear = [retest for retest in retests if not retest.decided]
            cases = {suspect.result.case for suspect in undecided}
            cases |= {case for retest in unclear for case in retest.cause.probe_cases}
            if not cases:
                break
            if turn == 1:  # the rest sees another moment than the first
                self.wait()
            fresh = self.launched(cases, launches)
            self.made.extend(fresh or [])
            for suspect in undecided:
                record_retest(suspect, launches, fresh or [], self.catalog)
            for retest in unclear:
                retest.record_values(launches, fresh or [], self.catalog, self.counts)
            if fresh is None:
                break

    def launched(self, cases: Iterable[Case], values: int) -> Sequence[FinishedLaunch] | None:
        """Launch these cases again for a number of values, if possible off the hosts on which they were slow.

        Return None if nothing was launched.
        """
        places = {case: self.hosts.get(case, ()) for case in sorted(cases)}
        self.progress.say(format_slow(list(places)))
        try:
            return self.measure(select_retest(self.selection, places, values, self.counts))
        except UsageError as error:
            self.progress.note(f"could not be measured again: {error}")
            return None


def format_slow(cases: Sequence[Case]) -> str:
    """Format which cases are measured again, as many as fit a line: the verdicts will have all keys."""
    names = [f"{case.label} {size(case.bytes)}" if case.bytes else case.label for case in cases]
    begin = f"slow: measuring {plural(len(cases), 'case')} again"
    lines = (f"{begin}: {first_of(names, most)}" for most in range(len(names), 0, -1))
    return next((line for line in lines if len(line) <= COLUMNS), begin)


def count_launches(results: Iterable[CaseResult]) -> dict[LaunchPlace, int]:
    counts: dict[LaunchPlace, int] = {}
    for result in results:
        place = LaunchPlace.of(result.case)
        counts[place] = max(counts.get(place, 1), result.launches)
    return counts


def list_failures(fresh: Iterable[FinishedLaunch]) -> list[CaseResult]:
    """List the cases that a launch failed, some of them or all."""
    return [
        CaseResult(case, failure.verdict, failure.reason)
        for run in fresh
        for case in run.launch.cases
        if (failure := run.failure(case)) and failure.verdict
    ]


def apply_failures(results: Sequence[CaseResult], failed: Iterable[CaseResult], where: str) -> list[CaseResult]:
    """Return the results, those not failed with the first failure of their case in further launches.

    Other launches may have gone well, but nothing that went wrong may end in ``pass``.

    :param where: those launches took place, as words of a message
    """
    first = {result.case: result for result in reversed(list(failed))}
    return [
        replace(result, verdict=first[result.case].verdict, reason=f"{where}: {first[result.case].reason}")
        if result.case in first and result.verdict not in FAILED_LAUNCH
        else result
        for result in results
    ]


def report_causes(retests: Sequence[CommonCauseRetest], since: Since, progress: Progress) -> list[CommonCause]:
    """Report every common cause once; return those that fresh launches do not refute."""
    confirmed = []
    for retest in retests:
        end = "; fresh launches do not show it, and each case stands by itself" if retest.refuted else ""
        cause = replace(retest.cause, since="" if retest.refuted else since(retest.cause))
        progress.note(f"{describe_cause(cause)}{end}")
        if not retest.refuted:
            confirmed.append(cause)
    return confirmed


def map_hosts(finished: Iterable[FinishedLaunch]) -> dict[Case, tuple[str, ...]]:
    hosts: dict[Case, set[str]] = {}
    for run in finished:
        for case in run.launch.cases:
            hosts.setdefault(case, set()).update(run.hosts)
    return {case: tuple(sorted(names)) for case, names in hosts.items()}


def select_candidates(results: Sequence[CaseResult], catalog: ReferenceCatalog) -> list[CaseResult]:
    """Select the cases that are slow, except those of exact time, which repeats."""
    slow = [result for result in results if result.verdict == Verdict.REGRESSED]
    references = {result.case: catalog.reference(result.case, result.core_latency) for result in slow}
    return [result for result in slow if (reference := references[result.case]) and not reference.exact]


def record_retest(
    suspect: RetestCandidate, values: int, fresh: Sequence[FinishedLaunch], catalog: ReferenceCatalog
) -> None:
    """Count each fresh value for or against a suspect; a missing one counts too."""
    case, median_of = suspect.result.case, max(suspect.result.launches, 1)
    for value in range(values):
        if launches := select_launches_of_value(case, fresh, value, median_of):
            suspect.count_launch(evaluate_case(case, launches, catalog), map_hosts(launches)[case])
        else:
            suspect.count_launch(None)


def select_retest(
    selection: Selection, places: Mapping[Case, tuple[str, ...]], values: int, counts: Mapping[LaunchPlace, int]
) -> Selection:
    """Restrict a selection to the routines of some cases, each where it was slow.

    :param counts: launches behind one value at each place
    """
    choice = selection.choice | {AGAIN: build_retest_choice(places, places)}
    environments = sorted({case.environment for case in places})
    needed = {place: values * counts[place] for place in map(LaunchPlace.of, places)}
    chosen = replace(selection, environments=environments, choice=choice)
    return select_launch_counts(chosen, needed)


def report_slow_nodes(suspects: Sequence[RetestCandidate], progress: Progress) -> None:
    """Name the hosts on which several cases were slow that were fine elsewhere: they may be sick."""
    cleared = [suspect for suspect in suspects if suspect.cleared and suspect.elsewhere]
    together = Counter(suspect.hosts for suspect in cleared)
    for hosts, number in sorted(together.items()):
        if number >= LEAST_CASES_OF_SLOW_NODE:
            progress.note(
                f"{', '.join(hosts)}: {number} cases were slow there, and not on other nodes: "
                "./plumbline links finds sick nodes"
            )
