"""One sentence on what of a comparison the fingerprint covers, and nothing beyond what was measured.

A part of the fingerprint covers a case if it changes at the size of its messages, at the place where they go.
It is told only if it covers two slower cases at least, half of all that are slower, and if half of the cases
that it covers are slower, too. Which protocol it is, is told only where a control variable says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from postprocess.base.formats import first_of, quantity, size
from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.features.compare.cases import ComparedCase, ComparisonVerdict
from postprocess.features.compare.differences.facts import VARIABLE, FactDifference
from postprocess.features.compare.differences.fingerprint import FingerprintPair, SideFingerprint
from postprocess.stats.curves.switches import LEAST_STEP, Switch

LEAST_COVERED = 2
HEADERS = 0.85  #: of a limit: messages have headers, which count in it for some libraries
LONGEST = 2**62
MOST_DIGITS = 19  #: of a control variable that may be a number of bytes


@dataclass(frozen=True)
class PossibleCause:
    """A part of the fingerprint that differs, and the sizes that it concerns."""

    words: str
    low: int  #: bytes
    high: int
    inside: bool  #: whether it is of messages inside a node

    def covers(self, each: ComparedCase) -> bool:
        """Return whether it changes messages as a case sends them."""
        processes, _, per_node = each.case.layout.partition("x")
        inside = int(processes) <= int(per_node)
        return inside == self.inside and self.low <= each.case.bytes <= self.high


def explain_slower(
    cases: Sequence[ComparedCase],
    pairs: Sequence[FingerprintPair],
    facts: Sequence[FactDifference] = (),
) -> str:
    """Explain the slower cases in a sentence; empty if none is slower, or there is no fingerprint."""
    slower = [each for each in cases if each.verdict == ComparisonVerdict.SLOWER]
    if not slower or not pairs:
        return ""
    best, sentence = 0, ""
    for cause in (each for pair in pairs for each in list_causes(pair, facts)):
        covered = sum(cause.covers(each) for each in slower)
        others = sum(cause.covers(each) for each in cases if each.ratio is not None) - covered
        enough = covered >= max(LEAST_COVERED, len(slower) / 2) and covered >= others
        if enough and covered - others > best:
            best = covered - others
            also = f", and {others} that {'is' if others == 1 else 'are'} not" if others else ""
            sentence = f"{cause.words} covers {covered} of {len(slower)} slower cases{also}"
    if len(slower) < LEAST_COVERED:
        return "One slower case alone is not explained by the fingerprint"
    return sentence or f"Nothing in the fingerprint covers half of the {len(slower)} slower cases"


def list_causes(pair: FingerprintPair, facts: Sequence[FactDifference]) -> Iterator[PossibleCause]:
    """List what of a fingerprint became slower."""
    yield from list_moved_switches(pair, facts)
    old, new = pair.old, pair.new
    if old.empty and new.empty and new.empty > old.empty * (1 + LEAST_STEP):
        times = f"{quantity(new.empty, SECONDS)} in place of {quantity(old.empty, SECONDS)}"
        high = find_latency_end(old)
        words = f"An empty message that takes {times} {pair.where}"
        yield PossibleCause(f"{words} (sizes to {size(high)})", 0, high, pair.inside)
    if old.bandwidth and new.bandwidth and new.bandwidth < old.bandwidth / (1 + LEAST_STEP):
        rates = [quantity(each / 1e6, MEGABYTES) for each in (new.bandwidth, old.bandwidth)]
        low = find_bandwidth_begin(old)
        words = f"A bandwidth of {rates[0]} in place of {rates[1]} {pair.where}"
        yield PossibleCause(f"{words} (sizes from {size(low)})", low, LONGEST, pair.inside)


def find_latency_end(side: SideFingerprint) -> int:
    """Find the last size of the first segment whose start-up is half of its time or more."""
    first = side.segments[0]
    startup = [n for n in side.sizes if n <= first.last and first.start * 2 >= first.time(n)]
    return max(startup, default=0)


def find_bandwidth_begin(side: SideFingerprint) -> int:
    """Find the first size of the last segment whose start-up is less than half of its time."""
    last = side.segments[-1]
    moving = [n for n in side.sizes if n >= last.first and last.start * 2 < last.time(n)]
    return min(moving, default=int(last.first))


def list_moved_switches(
    pair: FingerprintPair, facts: Sequence[FactDifference]
) -> Iterator[PossibleCause]:
    """List the switches that moved and made messages slower between their old and their new place."""
    gone = [each for each in pair.old.switches if not has_match(each, pair.new.switches)]
    come = [each for each in pair.new.switches if not has_match(each, pair.old.switches)]
    for old in gone:
        alike = [each for each in come if (each.step > 1) == (old.step > 1)]
        if not alike:
            continue
        new = min(alike, key=lambda each: abs(each.below.bit_length() - old.below.bit_length()))
        low, high = sorted((old, new), key=lambda each: each.below)
        if pair.ratio(low.above, high.below) > 1 + LEAST_STEP / 2:
            names = find_variables(old, new, facts)
            what = first_of(names, 2) if names else f"A switch of ping-pong {pair.where}"
            words = f"{what} that went from {size(old.below)} to {size(new.below)}"
            yield PossibleCause(words, low.below + 1, high.below, pair.inside)
    for new in come if not gone else ():
        end = next((each.below for each in pair.new.switches if each.below > new.below), LONGEST)
        if pair.ratio(new.above, end) > 1 + LEAST_STEP / 2:
            words = (
                f"A switch of ping-pong after {size(new.below)} {pair.where}, only on the new side,"
            )
            yield PossibleCause(words, new.below + 1, end, pair.inside)


def has_match(switch: Switch, others: Sequence[Switch]) -> bool:
    """Return whether one of others may be at the same size."""
    return any(o.below < switch.above and switch.below < o.above for o in others)


def find_variables(old: Switch, new: Switch, facts: Sequence[FactDifference]) -> list[str]:
    """Find the control variables whose value was the size of the old switch and is that of the new one."""
    return [
        each.name
        for each in facts
        if each.kind == VARIABLE
        and is_switch_limit(each.old, old)
        and is_switch_limit(each.new, new)
    ]


def is_switch_limit(value: str | None, switch: Switch) -> bool:
    """Return whether a value may be the limit that a switch shows."""
    if value is None or not value.isdecimal() or len(value) > MOST_DIGITS:
        return False
    return switch.below <= int(value) and int(value) * HEADERS < switch.above
