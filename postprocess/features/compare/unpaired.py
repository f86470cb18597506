"""Stored sessions held against each other: a difference counts only beyond what sessions differ by anyway."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from postprocess.base.formats import format_percent
from postprocess.base.units import compute_slowdown
from postprocess.features.compare.cases import (
    ComparedCase,
    ComparisonVerdict,
    describe_case,
    judge_presence,
    margin_of,
)
from postprocess.features.compare.data import (
    NEW,
    OLD,
    SIDES,
    CaseNoise,
    ComparisonHeader,
    ComparisonPass,
    SharedCase,
    StoredComparison,
)
from postprocess.features.compare.pairs import CasePairs, compare_places, note_launch
from postprocess.stats.comparison.paired_verdicts import (
    PairedRatio,
    PairedResult,
    PairedVerdict,
    UnpairedCase,
    UnpairedResult,
    judge_unpaired,
)
from postprocess.stats.sessions import Prediction

ANYWHERE = "nodes"  #: what sessions may differ in: the nights of a machine get other nodes
TABLE = "table"  #: source of what is known of a case without a reference


@dataclass
class StoredValues:
    """All that stored sessions say of a case."""

    pairs: CasePairs  #: without a pair
    #: ln value of each launch, by side and session.
    logs: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: {side: defaultdict(list) for side in SIDES}
    )
    places: dict[str, Mapping[str, str]] = field(default_factory=dict)  #: of the first launch

    def mean(self, side: str) -> float:
        """Return the mean over the sessions of a side of the means of their launches, on the logarithm."""
        return float(np.mean([np.mean(log) for log in self.logs[side].values()]))

    @property
    def difference(self) -> float:
        """Return ln(new / old), above 0 if that is worse."""
        old, new = (math.exp(self.mean(side)) for side in SIDES)
        return math.log(compute_slowdown(new, old, self.pairs.unit))

    @property
    def otherwise(self) -> str:
        """Describe in what the sides were measured otherwise; empty if in nothing that matters."""
        old, new = (
            {name: value for name, value in self.places[side].items() if name != ANYWHERE} for side in SIDES
        )
        return compare_places(old, new)


def collect_sessions(passes: tuple[ComparisonPass, ...]) -> dict[str, StoredValues]:
    """Collect what the launches of stored sessions say of each case, by key, in the order of keys."""
    found: dict[str, StoredValues] = {}
    for each in passes:
        for launch in each.launches:
            for key, said in launch.cases.items():
                known = found.setdefault(key, StoredValues(CasePairs(key)))
                note_launch(known.pairs, each.side, said)
                if said.value is not None and not said.verdict:
                    known.pairs.values[each.side].append(said.value)
                    known.logs[each.side][each.session].append(math.log(said.value))
                    known.places.setdefault(each.side, launch.place)
    return dict(sorted(found.items()))


def judge_sessions(stored: StoredComparison) -> list[ComparedCase]:
    """Judge all cases of stored sessions, the controls among them."""
    header, found = stored.header, collect_sessions(stored.passes)
    apart = {key: said for key, each in found.items() if (said := judge_presence(each.pairs))}
    alike = [each for key, each in found.items() if key not in apart and not each.otherwise]
    cases = [describe_difference(header, each, stored.noise.get(each.pairs.key, {})) for each in alike]
    results = dict(zip((each.pairs.key for each in alike), judge_unpaired(cases), strict=True))
    judged = []
    for key, each in found.items():
        if key in apart:
            judged.append(describe_case(header, each.pairs, *apart[key], None))
        elif key in results:
            noise = stored.noise.get(key, {})
            judged.append(describe_judged(header, each, results[key], noise))
        else:
            judged.append(describe_case(header, each.pairs, ComparisonVerdict.UNDECIDED, each.otherwise, None))
    return [replace(each, pairs=0, unpaired=count_stored_launches(found[each.case.key])) for each in judged]


def count_stored_launches(values: StoredValues) -> tuple[int, int]:
    """Count the launches of both sides that have a value."""
    return len(values.pairs.values[OLD]), len(values.pairs.values[NEW])


def describe_difference(header: ComparisonHeader, values: StoredValues, noise: CaseNoise) -> UnpairedCase:
    """Describe a case for the statistics."""
    old, new = (
        Prediction(noise[side].deviation, noise[side].degrees) if side in noise else None for side in SIDES
    )
    margin = math.log1p(margin_of(SharedCase.from_key(values.pairs.key), header.margins))
    return UnpairedCase(values.difference, old, new, margin, values.pairs.exact)


def describe_judged(
    header: ComparisonHeader, values: StoredValues, result: UnpairedResult, noise: CaseNoise
) -> ComparedCase:
    """Put together what is shown of a case that both sides have."""
    lower, upper = result.limits or (-math.inf, math.inf)
    ratio = PairedRatio(values.difference, lower, upper, max(count_stored_launches(values)))
    paired = PairedResult(result.verdict, ratio, result.q)
    reason = explain_undecided(result, noise, values.pairs.exact)
    return describe_case(header, values.pairs, ComparisonVerdict(result.verdict.value), reason, paired)


def explain_undecided(result: UnpairedResult, noise: CaseNoise, exact: bool) -> str:
    """Explain why a case is undecided; empty if it is not."""
    if result.verdict != PairedVerdict.UNDECIDED or exact:
        return ""
    if result.unseen is None:
        return "nothing is known of how far its launches and sessions differ; calibrate, or measure in turn"
    known = "on other machines" if TABLE in {each.source for each in noise.values()} else "here"
    apart = format_percent(math.expm1(result.unseen))
    return f"two sessions of it differ by up to {apart} without a cause, {known}; measure in turn"
