"""What a reader wants to know first: the verdict on the whole, what failed and where, what could be detected.

A reason that many cases share stands once.
"""

import math
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from postprocess.base import formats
from postprocess.base.formats import format_slowdown, format_whole, plural
from postprocess.base.grouping import group_pairs
from postprocess.base.sanitize import sanitize_line
from postprocess.model.groups import CaseGroup, describe_reason, group_cases
from postprocess.model.reference import ENOUGH_LAUNCHES, MOST_SESSIONS
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import (
    INSIDE,
    JUDGED,
    LOOKED_SLOW,
    STRICT_HEALTHY,
    CaseResult,
    Verdict,
    count_verdicts,
    is_healthy,
)
from postprocess.results.summary import SessionSummary
from postprocess.stats.detection import BLIND, LONGEST_RUN
from postprocess.stats.priors import SIZES, group_of

BOUNDS = (0.05, 0.10, 0.20, 0.50, 1.00)  #: of detectable slowdowns, beyond which is the next class
CLASSES = (*(f"{bound:.0%}" for bound in BOUNDS), "more", "nothing")
MOST_WORST = 15
TARGET = 0.10  #: slowdown that every case ought to see
STEPS = (1.0, 0.5, 0.2, 0.1)  #: slowdowns whose detection is told


@dataclass(frozen=True)
class SensitivityRow:
    """Cases of one kind with their detection limits: slowdowns as fractions, None if none is detected."""

    name: tuple[str, ...]  #: program, environment, and class of sizes
    cases: int
    shares: tuple[int, ...]  #: cases by the classes of :data:`CLASSES`
    seen: int  #: cases that see :data:`TARGET`
    median: float | None
    most: float | None  #: that nine cases in ten see


@dataclass(frozen=True)
class Sensitivity:
    """The section on detection limits."""

    line: str  #: the whole in one line
    programs: tuple[SensitivityRow, ...]  #: by program and environment
    rows: tuple[SensitivityRow, ...]  #: and by class of sizes
    worst: tuple[CaseResult, ...]


def assess_sensitivity(summary: SessionSummary) -> Sensitivity | None:
    """Assess which slowdowns this session would miss; None if no case was judged with known scatter."""
    known = select_with_power(summary.results)
    if not known:
        return None
    return Sensitivity(
        summarise_sensitivity(summary.results),
        tuple(build_sensitivity_rows(known, lambda each: (each.case.program, each.case.environment))),
        tuple(build_sensitivity_rows(known, _kind)),
        tuple(list_least_sensitive(known)),
    )


def summarise_sensitivity(results: Sequence[CaseResult]) -> str:
    """Summarise, in one line, in how many cases a slowdown from now on would be called; empty if unknown."""
    known = select_with_power(results)
    if not known:
        return ""
    tonight = describe_tonight(known)
    soon = describe_steps(STEPS[1:], [result.detectable_soon for result in known])
    learned = describe_steps(STEPS[1:], [result.detectable_learned for result in known])
    line = (
        f"called from tonight on, of {count_known(known, results)}: {tonight}; if it lasts three nights: {soon}"
    )
    if learned == soon:
        return line
    return f"{line}; within {LONGEST_RUN} nights, by references of {MOST_SESSIONS}: {learned}"


def count_known(known: Sequence[CaseResult], results: Sequence[CaseResult]) -> str:
    """Count the cases that were judged by a reference of known scatter, and say if those are not all."""
    cases = plural(len(known), "case")
    ran = sum(result.verdict is not Verdict.SKIPPED for result in results)
    return cases if ran == len(known) else f"{cases} that a reference judged ({format_whole(ran)} were to run)"


def describe_tonight(known: Sequence[CaseResult]) -> str:
    """Describe what would be called tonight; if not even twice the time, what is called at best."""
    limits = [result.detectable for result in known]
    told = describe_steps(STEPS, limits)
    seen = sorted(limit for limit in limits if limit is not None)
    if not seen or seen[0] <= STEPS[0]:
        return told
    return f"{told}, {format_slowdown(1 + seen[0])} at best"


def describe_steps(steps: Sequence[float], limits: Sequence[float | None]) -> str:
    """Describe in how many cases slowdowns of these sizes, the largest first, would be called."""
    told: list[str] = []
    for step in steps:
        name = f"{1 + step:.0f} times slower" if step >= 1 else f"{step:.0%}"
        if not (seen := sum(limit is not None and limit <= step for limit in limits)):
            return ", ".join([*told, f"{name} in none"])
        told.append(f"{name} in {'all' if seen == len(limits) else format_whole(seen)}")
    return ", ".join(told)


def select_sensitive(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Select the results that call a slowdown of ``TARGET`` within three nights."""
    return [result for result in results if (result.detectable_soon or np.inf) <= TARGET]


def select_with_power(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Select the results that were judged by a reference of known scatter."""
    return [result for result in results if result.reference and _is_known(result)]


def _is_known(result: CaseResult) -> bool:
    return result.detectable is not None or result.spread is not None or result.reference_launches == 1


def _kind(result: CaseResult) -> tuple[str, ...]:
    return result.case.program, result.case.environment, SIZES[group_of(result.case)[1]]


def build_sensitivity_rows(
    results: Sequence[CaseResult], name: Callable[[CaseResult], tuple[str, ...]]
) -> list[SensitivityRow]:
    """Build a row for each name, in their order."""
    found = group_pairs((name(result), result) for result in results)

    def order(key: tuple[str, ...]) -> tuple[object, ...]:
        return program_sort_key(key[0]), key[1], SIZES.index(key[2]) if key[2:] else 0

    return [build_sensitivity_row(key, found[key]) for key in sorted(found, key=order)]


def build_sensitivity_row(name: tuple[str, ...], results: Sequence[CaseResult]) -> SensitivityRow:
    values = [np.inf if result.detectable is None else result.detectable for result in results]
    counts = Counter(classify_detectable(result.detectable) for result in results)
    median, most = np.quantile(values, (0.5, 0.9), method="inverted_cdf")
    return SensitivityRow(
        name,
        len(results),
        tuple(counts[n] for n in range(len(CLASSES))),
        len(select_sensitive(results)),
        *(float(value) if np.isfinite(value) else None for value in (median, most)),
    )


def classify_detectable(detectable: float | None) -> int:
    """Classify a detectable slowdown, a fraction of the time, into :data:`CLASSES`; a bound is inside."""
    if detectable is None:
        return len(CLASSES) - 1
    return int(np.searchsorted(BOUNDS, detectable))


def list_least_sensitive(results: Sequence[CaseResult]) -> list[CaseResult]:
    """List the least sensitive cases, those that detect nothing first."""

    def sight(result: CaseResult) -> tuple[float, object]:
        return -np.inf if result.detectable is None else -result.detectable, result.case

    short = [each for each in results if classify_detectable(each.detectable) > BOUNDS.index(TARGET)]
    return sorted(short, key=sight)[:MOST_WORST]


MOST_REASONS = 3  #: for skipping, in one line
LONGEST_REASON = 60


def sort_by_severity(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Sort cases in the order of gravity; among equals the greatest slowdown first."""
    return sorted(results, key=lambda r: (-r.verdict.gravity, -(r.slowdown or 0.0), r.case))


def sample_each_verdict(results: Iterable[CaseResult], most: int) -> list[CaseResult]:
    """Select at most so many cases, the worst first, with a fair share of each verdict and program.

    A thousand crashes must not hide the one case that regressed.
    """
    turns: Counter[tuple[Verdict, str]] = Counter()
    ordered = []
    for place, result in enumerate(sort_by_severity(results)):
        kind = (result.verdict, result.case.program)
        turns[kind] += 1
        ordered.append((turns[kind], place, result))
    chosen = sorted(ordered, key=lambda each: each[:2])[:most]
    return [result for _, _, result in sorted(chosen, key=lambda each: each[1])]


def find_tone(summary: SessionSummary) -> str:
    """Find the tone of a session: ``bad``, ``good``, or ``fair`` where nothing failed and people should look.

    That is a suspect case, a session in which nothing was asserted, and one whose median case would not see a
    slowdown of twice.
    """
    if not summary.good:
        return "bad"
    found = {result.verdict for result in summary.results}
    limits = [
        math.inf if result.detectable is None else result.detectable
        for result in select_with_power(summary.results)
    ]
    blind = bool(limits) and statistics.median(limits) > BLIND
    return "fair" if blind or Verdict.SUSPECT in found or not found & STRICT_HEALTHY else "good"


def format_headline(summary: SessionSummary, found: str = "") -> str:
    """Format the verdict on the session in one sentence that promises no more than was asserted.

    :param found: what its suspects turned out to be; empty if that is not known
    """
    counts = count_verdicts(summary.results)
    skipped, provisional = counts.get("skipped", 0), counts.get("provisional", 0)
    total = len(summary.results)
    judged = plural(total - skipped, "case")
    if total == skipped:
        return "Nothing was measured" + (f": {format_whole(skipped)} skipped" if skipped else "")
    if summary.failed:
        return f"{format_whole(len(summary.failed))} of {plural(total, 'case')} failed"
    if summary.causes:
        return "No case failed by itself, but many are slower together"
    if summary.exit_status:
        return "No case failed, but the session did"
    rest = f", {format_whole(skipped)} skipped" if skipped else ""
    if told := format_expected_failures(summary.results):
        return f"No other failure in {judged}, {told}{rest}"
    if suspect := counts.get("suspect", 0):
        if found:
            return f"{format_whole(suspect)} of {judged} suspect: {found}{rest}"
        return f"No failure in {judged}, {format_whole(suspect)} of them suspect: the next night decides{rest}"
    if provisional == total - skipped:
        what = "gross change" if all(map(_few_launches, summary.results)) else "failure"
        return f"No {what} in {judged}, all provisional{rest}"
    if provisional:
        return f"No failure in {judged}, {format_whole(provisional)} of them provisional{rest}"
    return f"No failure in {judged}{rest}"


def format_last_line(summary: SessionSummary) -> str:
    """Format the last line: ``1,339 cases: 133 pass, 2 regressed, 1,204 skipped: no Spack (exit status 1)``."""
    strict = "strict, " if summary.strict else ""
    return f"{format_totals(summary.results)} ({strict}exit status {summary.exit_status})"


def format_totals(results: Sequence[CaseResult]) -> str:
    """Format how many cases there are, by verdict; those that are skipped with their reasons."""
    counts = {word: format_whole(number) for word, number in count_verdicts(results).items()}
    if str(Verdict.SKIPPED) in counts:
        counts[f"skipped: {describe_skips(results)}"] = counts.pop(str(Verdict.SKIPPED))
    text = ", ".join(f"{number} {word}" for word, number in counts.items())
    text += f"; {told}" if (told := format_expected_failures(results)) else ""
    return f"{plural(len(results), 'case')}: {text or 'nothing was measured'}"


def format_expected_failures(results: Iterable[CaseResult]) -> str:
    """Format the number of expected failures: ``2 failed as expected``; empty if none did."""
    number = sum(bool(result.expected) for result in results)
    return f"{format_whole(number)} failed as expected" if number else ""


def describe_skips(results: Iterable[CaseResult]) -> str:
    """Describe the reasons for skipping, as short as they can be; each with its number if there are several."""
    found: Counter[str] = Counter()
    for reason, number in count_reasons(results, Verdict.SKIPPED):
        found[_shortened(reason) or "no reason given"] += number
    words = found.most_common()
    if len(words) == 1:
        return words[0][0]
    told = [f"{format_whole(number)} {word}" for word, number in words[:MOST_REASONS]]
    rest = [number for _, number in words[MOST_REASONS:]]
    if rest:
        told.append(f"{format_whole(sum(rest))} for {plural(len(rest), 'other reason')}")
    return "; ".join(told)


def describe_contradiction(summary: SessionSummary) -> str:
    """Describe, in one line, an exit status of 0 in spite of failed cases; empty if there is none."""
    if summary.exit_status == 0 and not summary.good:
        return "the session ended with exit status 0 although its cases do not allow that"
    return ""


def count_reasons(results: Iterable[CaseResult], verdict: Verdict) -> list[tuple[str, int]]:
    """Count the cases of each reason for a verdict, the most frequent first."""
    return Counter(r.reason for r in results if r.verdict is verdict).most_common()


def select_unjudged(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Select the provisional cases that no reference judged: their ranks lay where those of none did."""
    return [result for result in results if result.verdict is Verdict.PROVISIONAL and result.reference is None]


def count_not_judged(results: Sequence[CaseResult]) -> list[tuple[str, str, int]]:
    """Count the cases that were not run, and those that were not judged, by reason."""
    skipped = [result for result in results if result.verdict is Verdict.SKIPPED]
    found = []
    for what, some in ("not run", skipped), ("not judged", select_unjudged(results)):
        groups = sorted(group_cases(some), key=lambda group: -len(group.results))
        found += [(what, group.reason or "no reason given", len(group.results)) for group in groups]
    return found


def format_counts(counts: dict[str, int]) -> str:
    """Format counts of verdicts: ``133 pass, 2 regressed``."""
    return ", ".join(f"{format_whole(number)} {word}" for word, number in counts.items())


def _few_launches(result: CaseResult) -> bool:
    return result.reference_launches < ENOUGH_LAUNCHES


def _shortened(reason: str) -> str:
    """Return a reason up to what explains it further, and no longer than a line can bear."""
    first = reason.partition(";")[0].strip()
    return first if len(first) <= LONGEST_REASON else f"{first[: LONGEST_REASON - 3]}..."


MOST_IN_GROUP = 5  #: cases that are listed of one group, unless they failed
TOLD = JUDGED - INSIDE  #: whose reasons begin with value and reference
RUN = ["./plumbline", "run"]  #: how commands begin that ``run --failed`` can take together


def list_groups(summary: SessionSummary) -> list[CaseGroup]:
    """List the groups of cases that are not healthy, the worst first: ``run --failed`` counts them from 1."""
    failed = [_explain_strict_failure(result) for result in summary.failed]
    return fold_groups(group_cases(sort_by_severity([*failed, *summary.outliers])), summary.strict)


KNOWN_TOO_LITTLE = (
    "--strict does not accept it: its reference has fewer than three sessions, or one night could not detect "
    "twice the time"
)


def _explain_strict_failure(result: CaseResult) -> CaseResult:
    """Say why a case fails whose verdict alone does not."""
    if not is_healthy(result.verdict, strict=True):
        return result
    return replace(result, reason="; ".join(filter(None, (result.reason, KNOWN_TOO_LITTLE))))


#: What is said of many groups of cases with one verdict that did not fail
FOLDED = {
    Verdict.SUSPECT: "slow in this session; further ones decide: ./plumbline confirm, or the next nights",
    Verdict.FAST: "faster than their bands",
    Verdict.CLEARED: "slow at first, and not in fresh launches",
}


def fold_groups(groups: Iterable[CaseGroup], strict: bool) -> list[CaseGroup]:
    """Put groups that did not fail and have no common cause together by verdict, where they are many."""
    found: dict[object, list[CaseGroup]] = {}
    for number, group in enumerate(groups):
        first = group.results[0]
        folds = group.verdict in FOLDED and not first.cause and first.counts_as_healthy(strict)
        found.setdefault(group.verdict if folds else number, []).append(group)
    folded = []
    for verdict, same in found.items():
        if isinstance(verdict, Verdict) and len(same) > MOST_IN_GROUP:
            results = tuple(result for group in same for result in group.results)
            folded.append(CaseGroup(verdict, FOLDED[verdict], results))
        else:
            folded += same
    return folded


def format_numbers(result: CaseResult) -> str:
    """Format what was measured, and what it is held against; empty if nothing was measured."""
    if result.value is None:
        return ""
    told = formats.quantity(result.value, result.unit)
    if result.reference is None:
        return told
    compared = formats.format_comparison(result.value, result.reference, result.unit)
    return f"{told}, {compared} its reference {formats.quantity(result.reference, result.unit)}"


def explain(result: CaseResult) -> str:
    """Explain a verdict: the numbers unless the reason has them, the reason, and q where it counts.

    q is of the value, so it does not stand beside a case that its mean alone calls slow.
    """
    numbers = "" if result.verdict in TOLD and result.reason else format_numbers(result)
    doubted = result.verdict in LOOKED_SLOW and result.q is not None and not result.by_headline
    q = f"q = {formats.factor(result.q)}" if doubted else ""
    return "; ".join(filter(None, (numbers, describe_reason([result]), q)))


def format_again(group: CaseGroup, number: int, summary: SessionSummary) -> str:
    """Format the command that measures a group again; empty if there is none."""
    commands = {result.rerun for result in group.results if result.rerun}
    if not commands:
        return ""
    if all(split_command(command)[:2] == RUN for command in commands):
        return f"./plumbline run --failed {summary.session}:{number}"
    return sanitize_line(min(commands))


def split_command(command: str) -> list[str]:
    """Split a command into its words; into none if it is not a command."""
    try:
        return shlex.split(command)
    except ValueError:
        return []
