"""Format sweep findings: one line for each node, link or path, and the detection limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from postprocess.base.formats import first_of, plural, size
from postprocess.base.grouping import group_pairs
from postprocess.features.links import detect
from postprocess.features.links.data import PairSweep, find_unplayed_pairs, list_rank_hosts
from postprocess.model.launch import FinishedLaunch, fail_launch
from postprocess.model.verdict import Verdict


def check_sweep_launch(finished: FinishedLaunch) -> FinishedLaunch:
    """Return the launch; failed if data was wrong, a rank's node is unknown, or cases were skipped."""
    if not finished.outcome.records:
        return finished
    if finished.wrong:
        reason = next(iter(finished.wrong.values()))
        return replace(finished, outcome=fail_launch(Verdict.INCORRECT, reason))
    if problem := describe_misplaced_ranks(finished.run):
        return replace(finished, outcome=fail_launch(Verdict.INCORRECT, problem))
    if skips := finished.launch.skips:
        reason = f"{skips[0].reason}; choose fewer --nodes"
        return replace(finished, outcome=fail_launch(Verdict.INCOMPLETE, reason))
    if missing := find_unplayed_pairs(finished):
        reason = f"pairs missing in launch {finished.launch.number}: {format_pairs(missing)}"
        return replace(finished, outcome=fail_launch(Verdict.INCOMPLETE, reason))
    return finished


def describe_misplaced_ranks(run: Mapping[str, Any]) -> str:
    """Describe what is wrong with the ranks of a run record; empty if each has a node of its own."""
    try:
        names = list_rank_hosts(dict(run))
    except (KeyError, TypeError) as error:
        return f"the run record does not say where each rank ran: ranks: {error}"
    if len(set(names)) < len(names) or len(names) != run["processes"]:
        return f"{len(names)} ranks on {plural(len(set(names)), 'node')}: one on each is needed"
    return ""


SHOWN = 5  #: nodes, partners or suspects that a line names before it only counts them
LEAST_P = 1e-9  #: that is told


@dataclass(frozen=True)
class LinkFinding:
    """A finding: a slow ``node``, a ``link``, or a ``path`` that several slow pairs share."""

    kind: str
    who: tuple[tuple[int, ...], ...]  #: the node, or every slow pair
    text: str


def describe_findings(sweep: PairSweep, analysis: detect.SweepAnalysis) -> list[LinkFinding]:
    found = [
        LinkFinding("node", (who,), describe_node(sweep, analysis, same))
        for who, same in group_by_subject(analysis.nodes).items()
    ]
    pairs = group_by_subject(analysis.pairs)
    for group in group_connected_pairs(list(pairs)):
        if len(group) == 1:
            text = describe_link(sweep, analysis, pairs[group[0]])
            found.append(LinkFinding("link", tuple(group), text))
        else:
            text = describe_path(sweep, analysis, [pairs[pair] for pair in group])
            found.append(LinkFinding("path", tuple(group), text))
    return found


def group_by_subject(slow: Sequence[detect.SlowItem]) -> dict[tuple[int, ...], list[detect.SlowItem]]:
    """Group the findings by node or pair, the slowest subject and measure first."""
    return group_pairs((each.who, each) for each in sorted(slow, key=lambda each: -each.factor))


def group_connected_pairs(pairs: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Group pairs that share nodes."""
    groups: list[list[tuple[int, ...]]] = []
    for pair in pairs:
        touched = [group for group in groups if any(set(pair) & set(each) for each in group)]
        groups = [group for group in groups if group not in touched]
        groups.append([pair] + [each for group in touched for each in group])
    return groups


def describe_node(sweep: PairSweep, analysis: detect.SweepAnalysis, same: Sequence[detect.SlowItem]) -> str:
    """Describe a slow node: how slow, with how many partners, and how certain."""
    worst = same[0]
    text = f"node {sweep.nodes[worst.who[0]]}: {format_slowdown_factor(worst.factor)} as slow as its peers"
    text += f" with {worst.slow} of {worst.of} partners at {describe_measure(worst)}"
    return (
        text + describe_certainty(analysis, worst, f"{detect.CONFIDENCE:.0%}: ") + describe_other_measures(same)
    )


def describe_link(sweep: PairSweep, analysis: detect.SweepAnalysis, same: Sequence[detect.SlowItem]) -> str:
    """Describe a slow pair: how slow, and how certain."""
    worst = same[0]
    factor = format_slowdown_factor(worst.factor)
    text = f"link {format_pair(sweep, worst.who)}: {factor} as slow as other pairs"
    text += f" of these nodes at {describe_measure(worst)}"
    return (
        text
        + describe_certainty(analysis, worst, f"{plural(worst.of, 'launch', 'es')}: ")
        + describe_other_measures(same)
    )


def describe_path(
    sweep: PairSweep, analysis: detect.SweepAnalysis, pairs: Sequence[Sequence[detect.SlowItem]]
) -> str:
    """Describe slow pairs that share nodes: the nodes that have most of them, and how slow they are."""
    worst = [same[0] for same in pairs]
    factors = sorted(each.factor for each in worst)
    counts: dict[int, int] = {}
    for each in worst:
        for node in each.who:
            counts[node] = counts.get(node, 0) + 1
    most = sorted(counts, key=lambda node: -counts[node])
    nodes = first_of([f"{sweep.nodes[node]} in {counts[node]}" for node in most], SHOWN)
    largest = format_slowdown_factor(factors[-1])
    text = f"path: {len(pairs)} pairs are {factors[0]:.2g} to {largest} as slow as other pairs"
    text += f" of their nodes at {describe_measure(max(worst, key=lambda each: each.factor))}: {nodes}"
    text += "; look for a cable or a switch that they share"
    return text + ("" if analysis.exact else f", {format_p_value(max(map(analysis.p, worst)))}")


def describe_certainty(analysis: detect.SweepAnalysis, slow: detect.SlowItem, what: str) -> str:
    """Describe the interval and the corrected p-value; simulated time needs neither."""
    if analysis.exact:
        return " (exact)"
    return f" ({what}{slow.low:.3g} to {slow.high:.3g}), {format_p_value(analysis.p(slow))}"


def format_p_value(p: float) -> str:
    """Format a p-value; below what any model of noise can be trusted for, only that."""
    return f"p = {p:.1g}" if p >= LEAST_P else f"p < {LEAST_P:.0e}"


def describe_other_measures(same: Sequence[detect.SlowItem]) -> str:
    """Describe the further measures in which the same node or pair is slow."""
    more = "; ".join(f"{item.factor:.2g} at {describe_measure(item)}" for item in same[1:])
    return f"; also {more}" if more else ""


def format_slowdown_factor(factor: float) -> str:
    return f"{factor:.3g} times" if factor >= 10 else f"{factor:.2g} times"


def describe_measure(slow: detect.SlowItem | detect.DetectionLimits) -> str:
    return f"{size(slow.measure.bytes)}, {slow.measure.statistic} of the trials"


def format_pair(sweep: PairSweep, who: Sequence[int]) -> str:
    return "-".join(sweep.nodes[node] for node in who)


def format_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """Format the first few pairs by the names of their nodes, the rest as a number."""
    return first_of(["-".join(pair) for pair in pairs], SHOWN)


def describe_coverage(sweep: PairSweep, analysis: detect.SweepAnalysis) -> str:
    """Describe how many launches, nodes and pairs were measured."""
    what = "nothing else stands out" if analysis.nodes or analysis.pairs else "nothing stands out"
    launches = plural(sweep.launches, "launch", "es")
    return f"{what} among {len(sweep.nodes)} nodes, {sweep.pairs} pairs, {launches}"


def describe_detection_limits(analysis: detect.SweepAnalysis) -> list[str]:
    """Describe the detection limits by size, with the better statistic for each."""
    lines = []
    further = "further " if analysis.nodes or analysis.pairs else ""
    for count in sorted({limit.measure.bytes for limit in analysis.limits}):
        limits = [limit for limit in analysis.limits if limit.measure.bytes == count]
        node, pair = (min(getattr(limit, what) for limit in limits) for what in ("node", "pair"))
        node_text, link_text = (
            describe_slowdown(f"{further}node", node),
            describe_slowdown(f"{further}link", pair),
        )
        text = f"at {size(count)} {node_text} and {link_text}"
        lines.append(f"{text} would have been detected ({detect.SEEN:.0%})")
    return lines


def describe_slowdown(what: str, share: float) -> str:
    """Format a slowdown, as in ``a node slower by 12%``."""
    if math.isinf(share):
        return f"no {what} however slow"
    return f"a {what} slower by {share:.0%}" if share < 1 else f"a {what} {1 + share:.2g} times as slow"


def describe_insignificant(sweep: PairSweep, analysis: detect.SweepAnalysis) -> str:
    """Describe the insignificant suspects; empty if there is none."""
    found = group_by_subject(analysis.suspects)
    named = {slow.who for slow in (*analysis.nodes, *analysis.pairs)}
    texts = [
        f"{'node' if len(who) == 1 else 'link'} {format_pair(sweep, who)}"
        f" ({format_slowdown_factor(same[0].factor)})"
        for who, same in found.items()
        if who not in named
    ]
    if not texts:
        return ""
    return f"slow, but perhaps by chance: {first_of(texts, SHOWN)}; more --launches would show"


def describe_placement(sweep: PairSweep, analysis: detect.SweepAnalysis) -> str:
    """Describe how a node's place in the network may explain the findings; empty if it cannot."""
    switch = sweep.measures[0].switch
    if switch:
        nodes = [sweep.nodes[node] for node in detect.find_nodes_without_peers(switch)]
        alone = "alone on its switch, and no other node's pairs are like its own"
        return f"no verdict on node {nodes[0]}: it is {alone}" if nodes else ""
    if not analysis.nodes and not analysis.pairs:
        return ""
    return (
        "switches are unknown, so a node alone or with few others on its switch may look slow; "
        "--nodes-per-switch N compares pairs within a switch with each other"
    )


def describe_contention(sweep: PairSweep) -> str:
    """Describe what is left of a pair's bandwidth when all nodes are busy (COMMTEST's contention factor)."""
    count = max(sweep.quiet, default=0)
    busy = [times for times in sweep.measures if times.bytes == count and times.statistic == "median"]
    if not busy:
        return ""
    shares = detect.select_finite(sweep.quiet[count] / busy[0].times)
    share = float(np.median(shares))
    return f"with all nodes busy a pair has {share:.0%} of the bandwidth at {size(count)} that it has alone"
