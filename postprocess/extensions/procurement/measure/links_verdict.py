"""All pairs of nodes at acceptance: no node and no link may be slower than its peers by what rules say.

A node or link that is named is ``missed``; what looks slow, but perhaps by chance, is ``undecided``, and so is
a sweep whose launches differ so much that nothing could have been named. The risk of naming anything on a
healthy machine is that of the analysis of links, 1% a look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from postprocess.base.formats import plural
from postprocess.extensions.procurement.accept import JudgedLinks
from postprocess.extensions.procurement.check.evidence import LaunchEvidence
from postprocess.extensions.procurement.rules.layouts import MachineFacts, count_nodes
from postprocess.extensions.procurement.rules.rules_data import LinksRule, Rules
from postprocess.features.links.check import check_sweep_launch
from postprocess.features.links.data import MEASURES, PairSweep, build_sweeps
from postprocess.features.links.detect import (
    FEWEST_NODES,
    SweepAnalysis,
    analyse_sweep,
    count_launches_needed,
)
from postprocess.features.links.text import (
    describe_coverage,
    describe_detection_limits,
    describe_findings,
    describe_insignificant,
    format_pairs,
)
from postprocess.stats.procurement.acceptance import RowVerdict, choose_acceptance_looks


def list_links_looks(rules: Rules, nodes: int, exact: bool) -> tuple[int, ...]:
    """List after how many launches one looks at all pairs of nodes; empty if there are too few nodes."""
    if nodes < FEWEST_NODES:
        return ()
    if exact:
        return (1,)
    least = count_launches_needed(nodes, MEASURES)
    return choose_acceptance_looks(least, max(least, rules.risk.most_launches))


def judge_links(
    rules: Rules, rule: LinksRule, machine: MachineFacts, evidence: Sequence[LaunchEvidence]
) -> JudgedLinks:
    """Judge all pairs of the nodes of a machine that the rule asks for."""
    nodes = count_nodes(rule.nodes, machine)
    checked = [check_sweep_launch(each.finish()) for each in evidence]
    whole = [each for each in checked if each.outcome.records]
    looks = list_links_looks(rules, nodes, bool(whole) and all(e.launch.exact for e in whole))
    if not looks:
        why = f"{plural(nodes, 'node')}: {FEWEST_NODES} are needed to tell a node from a link"
        return JudgedLinks(rule.demand, RowVerdict.NOT_RUN, 0, remarks=(why,))
    failed = tuple(
        f"{each.launch.name}: {each.outcome.reason}" for each in checked if not each.outcome.records
    )
    sweeps = build_sweeps(whole, rule.nodes_per_switch)
    if len(sweeps) != 1:
        reasons = failed or ("no launch of it",)
        return JudgedLinks(rule.demand, RowVerdict.NOT_RUN, 0, remarks=reasons)
    sweep = sweeps[0]
    if sweep.missing or len(sweep.nodes) != nodes:
        where = f"{len(sweep.nodes)} of {nodes} nodes"
        missing = f"; not in every launch: {format_pairs(sweep.missing)}" if sweep.missing else ""
        reasons = (f"measured on {where}{missing}; take all of them", *failed)
        return JudgedLinks(rule.demand, RowVerdict.NOT_RUN, sweep.launches, remarks=reasons)
    analysis = analyse_sweep(sweep.measures, rule.slower, sweep.exact)
    verdict = find_links_verdict(analysis, sweep, looks)
    later = next((look for look in looks if look > sweep.launches), None)
    more = later - sweep.launches if later and verdict == RowVerdict.UNDECIDED else None
    remarks = [describe_coverage(sweep, analysis), *describe_detection_limits(analysis)]
    remarks += [describe_insignificant(sweep, analysis), *failed]
    return JudgedLinks(
        rule.demand,
        verdict,
        sweep.launches,
        more,
        tuple(each.text for each in describe_findings(sweep, analysis)),
        tuple(each for each in remarks if each),
    )


def find_links_verdict(
    analysis: SweepAnalysis, sweep: PairSweep, looks: Sequence[int]
) -> RowVerdict:
    """Find the verdict of a whole sweep."""
    if analysis.nodes or analysis.pairs:
        return RowVerdict.MISSED
    if analysis.suspects or is_blind(analysis) or sweep.launches < looks[0]:
        return RowVerdict.UNDECIDED
    return RowVerdict.MET


def is_blind(analysis: SweepAnalysis) -> bool:
    """Return whether at some size no node, or no link, could have been named however slow it is."""
    sizes = {each.measure.bytes for each in analysis.limits}
    return any(
        all(
            math.isinf(getattr(limit, what))
            for limit in analysis.limits
            if limit.measure.bytes == size
        )
        for size in sizes
        for what in ("node", "pair")
    )
