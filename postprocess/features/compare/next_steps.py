"""What to do after a comparison, as commands: pairs that decide, and settings that may explain slower cases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.base.formats import duration, plural
from postprocess.base.shell_words import quote_words
from postprocess.features.compare.cases import BAD, ComparedCase, ComparisonVerdict
from postprocess.features.compare.data import ComparisonHeader, ComparisonPass
from postprocess.features.compare.differences.settings import TriedSetting
from postprocess.model.options import FAMILY, OPTIONS, ROUTINE, TIME_LIMIT
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.stats.comparison.paired_verdicts import LADDERS

FINGERPRINT_SHARE = 0.1  #: of the time that there is, unless the pairs need it
RESERVE = 1.15  #: of the time: launches differ in how long they take
MOST_NAMED = 12  #: routines of a command; of more it measures all
USUAL_MARGINS = (0.05, 0.05, 0.05)
LOCAL = "local"  #: the site that no option names


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


def estimate_pair_cost(passes: Sequence[ComparisonPass]) -> PairCost:
    """Estimate what a pair takes, from the passes until now."""
    trial = sum(each.seconds for each in passes if each.block == 0)
    last = max((each.block for each in passes), default=0)
    own = [each.seconds for each in passes if each.block == last]
    return PairCost(trial, 2 * sum(own) / len(own) if last and own else trial)


def propose_deciding(
    header: ComparisonHeader, cases: Sequence[ComparedCase], cost: PairCost
) -> list[NextStep]:
    """Propose how the undecided cases are decided: pairs, time and command.

    The looks of a comparison are fixed beforehand, so that further pairs are a comparison of their own.
    """
    needs = [
        (each.pairs + each.pairs_more, each.case.routine)
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
        own = sum(each.case.routine in routines for each in cases)
        measured = sum(each.verdict != ComparisonVerdict.SKIPPED for each in cases)
        pair = max(cost.open_cases, cost.all_cases * own / max(measured, 1))
        seconds = find_seconds(pair, pairs)
        words = (
            f"{plural(pairs, 'pair')} would decide about {len(within)} of "
            f"{plural(len(needs), 'undecided case')}, in {duration(seconds)} (the looks of this comparison "
            "are taken, so it is one of its own)"
        )
        options = [*list_options(header, routines), "--seconds", str(seconds)]
        sides = [header.old.label, header.new.label, *list_side_options(header)]
        steps.append(NextStep(words, quote_words(["./plumbline", "compare", *sides, *options])))
    if beyond:
        words = f"{plural(beyond, 'undecided case')} would take more than {ends[-1]} pairs"
        steps.append(NextStep(f"{words}: measure on an idle machine, or choose a wider --margin"))
    return steps


def propose_settings(
    header: ComparisonHeader,
    cases: Sequence[ComparedCase],
    settings: Sequence[TriedSetting],
    cost: PairCost,
) -> list[NextStep]:
    """Propose to try the settings of the old side on the new one, on what is slower or undecided.

    There is nothing to try where the user changed a setting, or planted a delay.
    """
    sides = (header.old, header.new)
    if header.control or any(each.set_env or each.plant for each in sides):
        return []
    bad = [each for each in cases if each.verdict in BAD]
    some = bad or [each for each in cases if each.verdict == ComparisonVerdict.UNDECIDED]
    if not some:
        return []
    routines = {each.case.routine for each in some}
    seconds = find_seconds(cost.all_cases, LADDERS[1][-1])
    options = [*list_options(header, routines), "--seconds", str(seconds)]
    new = header.new.label
    return [
        NextStep(
            f"{each.name}: {each.old} before, now {each.new}",
            quote_words(
                [
                    "./plumbline",
                    "compare",
                    new,
                    new,
                    *list_new_env({each.variable: each.old}),
                    *options,
                ]
            ),
        )
        for each in settings
    ]


def find_seconds(pair: float, pairs: int) -> int:
    """Find the ``--seconds`` that suffice for so many pairs, a trial run and the fingerprint; in tens."""
    return 10 * math.ceil(pair * (pairs + 1) / (1 - FINGERPRINT_SHARE) * RESERVE / 10)


def list_side_options(header: ComparisonHeader) -> list[str]:
    """List the options that say in what the sides differ."""
    words = list_new_env(header.new.set_env)
    words += ["--control"] if header.control else []
    return words + (["--plant", header.new.plant] if header.new.plant else [])


def list_new_env(variables: Mapping[str, str]) -> list[str]:
    """List the options that set variables for the new side."""
    return [word for name, value in variables.items() for word in ("--new-env", f"{name}={value}")]


def list_options(header: ComparisonHeader, routines: set[str]) -> list[str]:
    """List the options of a comparison like this one, of some routines only."""
    choice: dict[str, Any] = dict(header.choice)
    chosen = [each for each in ROUTINE.wanted(choice) if each not in CONTROLS]
    choice[ROUTINE.variable] = sorted(routines) if len(routines) <= MOST_NAMED else chosen
    words = [] if header.site == LOCAL else ["--site", header.site]
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
        own = [f"{100 * each:g}" for each in header.margins]
        words += ["--margin", ",".join(own if len(set(own)) > 1 else own[:1])]
    return words
