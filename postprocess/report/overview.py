"""What a reader wants to know first: the verdict on the whole, what failed, and where."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from postprocess.base.formats import format_whole, plural
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.model.verdict import STRICT_HEALTHY, CaseResult, Verdict, count_verdicts
from postprocess.report.sensitivity import select_with_power
from postprocess.results.summary import SessionSummary
from postprocess.stats.power import BLIND

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


def format_headline(summary: SessionSummary) -> str:
    """Format the verdict on the session in one sentence that promises no more than was asserted."""
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


def format_counts(counts: dict[str, int]) -> str:
    """Format counts of verdicts: ``133 pass, 2 regressed``."""
    return ", ".join(f"{format_whole(number)} {word}" for word, number in counts.items())


def _few_launches(result: CaseResult) -> bool:
    return result.reference_launches < ENOUGH_LAUNCHES


def _shortened(reason: str) -> str:
    """Return a reason up to what explains it further, and no longer than a line can bear."""
    first = reason.partition(";")[0].strip()
    return first if len(first) <= LONGEST_REASON else f"{first[: LONGEST_REASON - 3]}..."
