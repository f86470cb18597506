"""What to do after a comparison, as commands: pairs that decide, and settings that may explain slower cases."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.base.formats import MEGABYTES, SECONDS, duration, first_of, plural, quantity, size
from postprocess.base.sanitize import quote_words
from postprocess.features.compare.cases import APART, BAD, ComparedCase, ComparisonVerdict
from postprocess.features.compare.data import ComparisonHeader, StoredComparison
from postprocess.features.compare.facts import VARIABLE, FactDifference, FingerprintPair, SideFingerprint
from postprocess.model.options import FAMILY, OPTIONS, ROUTINE, TIME_LIMIT
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.model.session import list_site_words
from postprocess.stats.curves import LEAST_STEP, Switch
from postprocess.stats.paired_verdicts import LADDERS

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
        processes, per_node = each.case.place.processes
        inside = processes <= per_node
        return inside == self.inside and self.low <= each.case.bytes <= self.high


def explain_slower(
    cases: Sequence[ComparedCase], pairs: Sequence[FingerprintPair], facts: Sequence[FactDifference] = ()
) -> str:
    """Explain the slower cases in a sentence; empty if none is slower, or there is no fingerprint."""
    slower = [case for case in cases if case.verdict == ComparisonVerdict.SLOWER]
    if not slower or not pairs:
        return ""
    best, sentence = 0, ""
    for cause in (each for pair in pairs for each in list_causes(pair, facts)):
        covered = sum(cause.covers(case) for case in slower)
        others = sum(cause.covers(case) for case in cases if case.ratio is not None) - covered
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
        rates = [quantity(value / 1e6, MEGABYTES) for value in (new.bandwidth, old.bandwidth)]
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


def list_moved_switches(pair: FingerprintPair, facts: Sequence[FactDifference]) -> Iterator[PossibleCause]:
    """List the switches that moved and made messages slower between their old and their new place."""
    gone = [switch for switch in pair.old.switches if not has_match(switch, pair.new.switches)]
    come = [switch for switch in pair.new.switches if not has_match(switch, pair.old.switches)]
    for old in gone:
        alike = [switch for switch in come if (switch.step > 1) == (old.step > 1)]
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
        end = next((switch.below for switch in pair.new.switches if switch.below > new.below), LONGEST)
        if pair.ratio(new.above, end) > 1 + LEAST_STEP / 2:
            words = f"A switch of ping-pong after {size(new.below)} {pair.where}, only on the new side,"
            yield PossibleCause(words, new.below + 1, end, pair.inside)


def has_match(switch: Switch, others: Sequence[Switch]) -> bool:
    """Return whether one of others may be at the same size."""
    return any(o.below < switch.above and switch.below < o.above for o in others)


def find_variables(old: Switch, new: Switch, facts: Sequence[FactDifference]) -> list[str]:
    """Find the control variables whose value was the size of the old switch and is that of the new one."""
    return [
        difference.name
        for difference in facts
        if difference.kind == VARIABLE
        and is_switch_limit(difference.old, old)
        and is_switch_limit(difference.new, new)
    ]


def is_switch_limit(value: str | None, switch: Switch) -> bool:
    """Return whether a value may be the limit that a switch shows."""
    if value is None or not value.isdecimal() or len(value) > MOST_DIGITS:
        return False
    return switch.below <= int(value) and int(value) * HEADERS < switch.above


FINGERPRINT_SHARE = 0.1  #: of the time that there is, unless the pairs need it
RESERVE = 1.15  #: of the time: launches differ in how long they take
MOST_NAMED = 12  #: routines of a command; of more it measures all
USUAL_MARGINS = (0.05, 0.05, 0.05)


@dataclass(frozen=True)
class NextStep:
    """Something to do, and the command that does it; empty if there is none."""

    words: str
    command: str = ""


@dataclass(frozen=True)
class PairCost:
    """What a pair of launches takes, in seconds."""

    all_cases: float  #: as in the trial run
    open_cases: float  #: of what was still undecided, in the last block


def estimate_pair_cost(stored: StoredComparison) -> PairCost:
    """Estimate what a pair takes, from the passes until now."""
    trial = stored.block_seconds(0)
    last = max((each.block for each in stored.passes), default=0)
    own = sum(each.block == last for each in stored.passes)
    return PairCost(trial, 2 * stored.block_seconds(last) / own if last else trial)


def propose_deciding(header: ComparisonHeader, cases: Sequence[ComparedCase], cost: PairCost) -> list[NextStep]:
    """Propose how the undecided cases are decided: pairs, time and command.

    The looks of a comparison are fixed beforehand, so that further pairs are a comparison of their own.
    """
    needs = [
        (count_launched_pairs(each, each.pairs + each.pairs_more), each.case.routine)
        for each in cases
        if each.verdict == ComparisonVerdict.UNDECIDED and each.pairs_more is not None
    ]
    ends = [ladder[-1] for ladder in LADDERS]
    within = [(pairs, routine) for pairs, routine in needs if pairs <= ends[-1]]
    beyond = len(needs) - len(within)
    steps = []
    if within:
        pairs = next(end for end in ends if end >= max(within)[0])
        routines = {routine for _, routine in within}
        own = sum(each.case.routine in routines and each.verdict not in APART for each in cases)
        measured = sum(case.verdict not in APART for case in cases)
        pair = max(cost.open_cases, cost.all_cases * own / max(measured, 1))
        seconds = find_seconds(pair, pairs)
        words = (
            f"{plural(pairs, 'pair')} would decide about {len(within)} of "
            f"{plural(len(needs), 'undecided case')}, in {duration(seconds)} (the looks of this comparison "
            "are taken, so it is one of its own)"
        )
        sides = [header.old.label, header.new.label, *list_side_options(header)]
        steps.append(NextStep(words, build_command(header, sides, routines, seconds)))
    if beyond:
        words = f"{plural(beyond, 'undecided case')} would take more than {ends[-1]} pairs"
        steps.append(NextStep(f"{words}: measure on an idle machine, or choose a wider --margin"))
    return steps


def count_launched_pairs(case: ComparedCase, counting: int) -> int:
    """Count how many pairs must be launched for so many that count, if as many as before do not."""
    return math.ceil(counting * (1 + sum(case.void.values()) / max(case.pairs, 1)))


def propose_again(header: ComparisonHeader, cases: Sequence[ComparedCase], cost: PairCost) -> str:
    """Propose the command that compares again what is slower; empty if nothing is."""
    routines = {case.case.routine for case in cases if case.verdict == ComparisonVerdict.SLOWER}
    if not routines:
        return ""
    sides = [header.old.label, header.new.label, *list_side_options(header)]
    return build_command(header, sides, routines, find_seconds(cost.all_cases, LADDERS[1][-1]))


def propose_settings(
    header: ComparisonHeader,
    cases: Sequence[ComparedCase],
    settings: Mapping[str, FactDifference],
    cost: PairCost,
) -> list[NextStep]:
    """Propose to try the settings of the old side on the new one, on what is slower or undecided.

    There is nothing to try where the user changed a setting, or planted a delay.
    """
    sides = (header.old, header.new)
    if header.control or any(side.set_env or side.plant for side in sides):
        return []
    bad = [case for case in cases if case.verdict in BAD]
    some = bad or [case for case in cases if case.verdict == ComparisonVerdict.UNDECIDED]
    if not some:
        return []
    routines = {each.case.routine for each in some}
    seconds = find_seconds(cost.all_cases, LADDERS[1][-1])
    new = header.new.label
    steps = []
    for variable, setting in settings.items():
        before, now = setting.texts
        command = build_command(header, [new, new, *list_new_env({variable: before})], routines, seconds)
        steps.append(NextStep(f"{setting.name}: {before} before, now {now}", command))
    return steps


def find_seconds(pair: float, pairs: int) -> int:
    """Find the ``--seconds`` that suffice for so many pairs, a trial run and the fingerprint; in tens."""
    return 10 * max(1, math.ceil(pair * (pairs + 1) / (1 - FINGERPRINT_SHARE) * RESERVE / 10))


def list_side_options(header: ComparisonHeader) -> list[str]:
    words = list_new_env(header.new.set_env)
    words += ["--control"] if header.control else []
    return words + (["--plant", header.new.plant] if header.new.plant else [])


def list_new_env(variables: Mapping[str, str]) -> list[str]:
    """List the options that set variables for the new side."""
    return [word for name, value in variables.items() for word in ("--new-env", f"{name}={value}")]


def build_command(header: ComparisonHeader, sides: Sequence[str], routines: set[str], seconds: int) -> str:
    """Build the command of a comparison like this one, of some routines only.

    :param sides: both by their names, and options that say in what they differ
    """
    choice: dict[str, Any] = dict(header.choice)
    chosen = [each for each in ROUTINE.wanted(choice) if each not in CONTROLS]
    choice[ROUTINE.variable] = sorted(routines) if len(routines) <= MOST_NAMED else chosen
    words = ["./plumbline", "compare", *sides, *list_site_words(header.site)]
    for option in OPTIONS:
        wanted = option.wanted(choice)
        if option.kind is bool:
            words += [option.flag] if any(wanted) else []
        elif wanted:
            words += [option.flag, ",".join(map(str, wanted))]
    if family := choice.get(FAMILY):
        words += ["--family", str(family)]
    if limit := choice.get(TIME_LIMIT):
        words += ["--time-limit", str(limit).removesuffix("s")]
    if header.margins != USUAL_MARGINS:
        own = [f"{100 * margin:g}" for margin in header.margins]
        words += ["--margin", ",".join(own if len(set(own)) > 1 else own[:1])]
    return quote_words([*words, "--seconds", str(seconds)])
