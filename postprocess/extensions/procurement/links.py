"""All pairs of nodes of a delivered machine, measured look by look into the folder of its acceptance."""

import math
from collections.abc import Sequence
from dataclasses import replace

from postprocess.base.formats import plural, utc_now
from postprocess.calibration.machine_load import start_load_monitor
from postprocess.extensions.procurement.judge import JudgedLinks
from postprocess.extensions.procurement.measure import OfferBench
from postprocess.extensions.procurement.offer import LaunchEvidence
from postprocess.extensions.procurement.rules.layouts import MachineFacts, count_nodes
from postprocess.extensions.procurement.rules.rules import LinksRule, Rules
from postprocess.features.links import text
from postprocess.features.links.data import MEASURES, PairSweep, build_sweeps
from postprocess.features.links.detect import FEWEST_NODES, SweepAnalysis, analyse_sweep, count_launches_needed
from postprocess.model.options import PARTITION, PER_NODE, PROCESSES, PROGRAM, TRIAL_COUNT
from postprocess.model.routines.mpicost import OWN_PROGRAM
from postprocess.model.session import Selection
from postprocess.runner.reframe_pass import make_plan
from postprocess.session.lifecycle.context import measure_in_session
from postprocess.stats.acceptance import RowVerdict, choose_acceptance_looks


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
    nodes = count_nodes(rule.nodes, machine)
    checked = [text.check_sweep_launch(each.finish()) for each in evidence]
    whole = [run for run in checked if run.outcome.records]
    looks = list_links_looks(rules, nodes, bool(whole) and all(e.launch.exact for e in whole))
    if not looks:
        why = f"{plural(nodes, 'node')}: {FEWEST_NODES} are needed to distinguish a node from a link"
        return JudgedLinks(rule.demand, RowVerdict.NOT_RUN, 0, remarks=(why,))
    failed = tuple(f"{run.launch.name}: {run.outcome.reason}" for run in checked if not run.outcome.records)
    sweeps = build_sweeps(whole, rule.nodes_per_switch)
    if len(sweeps) != 1:
        reasons = failed or ("no launch of it",)
        return JudgedLinks(rule.demand, RowVerdict.NOT_RUN, 0, remarks=reasons)
    sweep = sweeps[0]
    if sweep.missing or len(sweep.nodes) != nodes:
        where = f"{len(sweep.nodes)} of {nodes} nodes"
        missing = f"; not in every launch: {text.format_pairs(sweep.missing)}" if sweep.missing else ""
        reasons = (f"measured on {where}{missing}; take all of them", *failed)
        return JudgedLinks(rule.demand, RowVerdict.NOT_RUN, sweep.launches, remarks=reasons)
    analysis = analyse_sweep(sweep.measures, rule.slower, sweep.exact)
    verdict = find_links_verdict(analysis, sweep, looks)
    later = next((look for look in looks if look > sweep.launches), None)
    more = later - sweep.launches if later and verdict == RowVerdict.UNDECIDED else None
    remarks = [text.describe_coverage(sweep, analysis), *text.describe_detection_limits(analysis)]
    remarks += [text.describe_insignificant(sweep, analysis), *failed]
    return JudgedLinks(
        rule.demand,
        verdict,
        sweep.launches,
        more,
        tuple(finding.text for finding in text.describe_findings(sweep, analysis)),
        tuple(remark for remark in remarks if remark),
    )


def find_links_verdict(analysis: SweepAnalysis, sweep: PairSweep, looks: Sequence[int]) -> RowVerdict:
    if analysis.nodes or analysis.pairs:
        return RowVerdict.MISSED
    if analysis.suspects or is_blind(analysis) or sweep.launches < looks[0]:
        return RowVerdict.UNDECIDED
    return RowVerdict.MET


def is_blind(analysis: SweepAnalysis) -> bool:
    """Return whether at some size no node, or no link, could have been named however slow it is."""
    sizes = {each.measure.bytes for each in analysis.limits}
    return any(
        all(math.isinf(getattr(limit, what)) for limit in analysis.limits if limit.measure.bytes == size)
        for size in sizes
        for what in ("node", "pair")
    )


TAG = "links"  #: of the check


def measure_links(bench: OfferBench, rule: LinksRule, environment: str) -> None:
    """Measure all pairs of nodes until they are decided, or looks end; nothing where there are too few nodes.

    :param bench: whose folder is that of the sweep
    """
    bench.remove_unlisted()
    machine = bench.plan.machine
    nodes = count_nodes(rule.nodes, machine)
    looks = list_links_looks(bench.rules, nodes, machine.exact) if nodes <= machine.nodes else ()
    for look in looks:
        judged, made = judge_bench(bench, rule)
        if look <= made:
            continue
        if made and judged.launches_more is None:
            return
        run_sweep(bench, nodes, select_sweep(bench, environment, nodes, look - made))
    judged, _ = judge_bench(bench, rule)
    bench.context.progress.say(f"all pairs of nodes: {judged.verdict}")


def judge_bench(bench: OfferBench, rule: LinksRule) -> tuple[JudgedLinks, int]:
    """Judge what is measured until now; with the number of its launches, also of those that failed."""
    evidence = bench.open_measured().evidence
    return judge_links(bench.rules, rule, bench.plan.machine, evidence), len(evidence)


def select_sweep(bench: OfferBench, environment: str, nodes: int, launches: int) -> Selection:
    machine, asked = bench.plan.machine, bench.context.request.selection
    choice = {
        PARTITION.variable: [machine.partition],
        PROCESSES.variable: [nodes],
        PER_NODE.variable: [1],
        PROGRAM.variable: [OWN_PROGRAM],
    }
    if OWN_PROGRAM in bench.rules.iterations and not machine.exact:
        choice[TRIAL_COUNT.variable] = bench.rules.iterations["mpicost"]
    return replace(asked, choice=choice, environments=[environment], launches=launches, tag=TAG, set_env={})


def run_sweep(bench: OfferBench, nodes: int, selection: Selection) -> None:
    """Measure launches of all pairs of nodes as one pass, and keep all that it leaves."""
    context, progress = bench.context, bench.context.progress
    session, reframe = context.open_session(bench.demand.mode)
    with progress.phase("set-up"):
        planned = make_plan(reframe, selection)
    launches = plural(len(planned), "launch", "es")
    progress.say(f"all pairs of {nodes} nodes: {launches}")
    since, began = start_load_monitor(), utc_now()
    _, record = measure_in_session(context, reframe, "running", selection, planned)
    others = since.share() if context.prepared.inventory else None
    bench.keep(session, record, began, others)
