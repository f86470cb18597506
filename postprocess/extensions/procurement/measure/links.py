"""All pairs of nodes of a delivered machine, measured look by look into the folder of its acceptance."""

from __future__ import annotations

from dataclasses import replace

from postprocess.base.formats import plural, utc_now
from postprocess.calibration.machine_load import start_load_monitor
from postprocess.extensions.procurement.accept import JudgedLinks
from postprocess.extensions.procurement.check.data import copy_told
from postprocess.extensions.procurement.measure.links_verdict import judge_links, list_links_looks
from postprocess.extensions.procurement.measure.run import OfferBench
from postprocess.extensions.procurement.rules.layouts import count_nodes
from postprocess.extensions.procurement.rules.rules_data import LinksRule
from postprocess.model.options import PARTITION, PER_NODE, PROCESSES, PROGRAM, TRIAL_COUNT
from postprocess.model.routines.mpicost import OWN_PROGRAM
from postprocess.model.session import Selection
from postprocess.runner.reframe_pass import make_plan, run_plan

TAG = "links"  #: of the check


def measure_links(bench: OfferBench, rule: LinksRule, environment: str) -> None:
    """Measure all pairs of nodes until they are decided, or looks end; nothing where there are too few nodes.

    :param bench: whose folder is that of the sweep
    :param environment: MPI with which they are measured
    """
    copy_told(bench.demand.rules.parent, bench.demand.folder)
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
    """Select launches of all pairs of nodes."""
    machine, asked = bench.plan.machine, bench.context.request.selection
    choice = {
        PARTITION.variable: [machine.partition],
        PROCESSES.variable: [nodes],
        PER_NODE.variable: [1],
        PROGRAM.variable: [OWN_PROGRAM],
    }
    if OWN_PROGRAM in bench.rules.iterations and not machine.exact:
        choice[TRIAL_COUNT.variable] = bench.rules.iterations["mpicost"]
    return replace(
        asked, choice=choice, environments=[environment], launches=launches, tag=TAG, set_env={}
    )


def run_sweep(bench: OfferBench, nodes: int, selection: Selection) -> None:
    """Measure launches of all pairs of nodes as one pass, and keep all that it leaves."""
    context, progress = bench.context, bench.context.progress
    session, reframe = context.open_session(bench.demand.mode)
    with progress.phase("set-up"):
        planned = make_plan(reframe, selection)
    launches = plural(len(planned), "launch", "es")
    progress.say(f"all pairs of {nodes} nodes: {launches}")
    since, began = start_load_monitor(), utc_now()
    with progress.phase("running"):
        record = run_plan(reframe, selection, planned, progress)
    progress.move("running", "build", record.build_seconds)
    others = since.share() if context.prepared.inventory else None
    bench.keep(session, record, began, others)
