"""Tell what rules would launch on a site, and about how long that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, plural
from postprocess.extensions.procurement.measure.run import find_unplanned, select_offer
from postprocess.extensions.procurement.rules.layouts import (
    AskedCase,
    MachineFacts,
    OfferPlan,
    count_needed_launches,
)
from postprocess.extensions.procurement.rules.rules import Rules
from postprocess.model.plan import PlannedLaunch
from postprocess.results.launch_costs import estimate_job_seconds, list_jobs, read_job_seconds
from postprocess.session.lifecycle.context import SessionContext


def preview_offer(context: SessionContext, rules: Rules, plan: OfferPlan) -> list[PlannedLaunch]:
    """Plan a pass, and measure nothing.

    :raises UsageError: if nothing can be measured
    """
    if not plan.possible:
        raise UsageError(f"no case of the rules is possible here: {plan.impossible[0].problem}")
    return context.preview(replace(select_offer(context, rules, plan), only_looking=True))


def describe_cost(
    context: SessionContext, rules: Rules, plan: OfferPlan, planned: Sequence[PlannedLaunch]
) -> Iterator[str]:
    """Describe what rules cost here, in lines: each layout, what is impossible, launches and time."""
    machine, possible = plan.machine, sum(len(each.case.bytes) for each in plan.possible)
    unplanned = list(find_unplanned(plan, planned))
    rows = sum(len(each.case.bytes) for each in plan.cases)
    yield (
        f"on {context.request.site}:{machine.partition}: {plural(machine.nodes, 'node')} of "
        f"{plural(machine.cores_per_node, 'core')}; {possible - len(unplanned)} of "
        f"{plural(rows, 'row')} can be measured"
    )
    for each in plan.possible:
        layout = each.layout
        assert layout
        sizes = plural(len(each.case.bytes), "size")
        partner = f", rank 0 with {each.peer}" if each.peer else ""
        yield (
            f"  {each.case.name}: {layout.processes} processes, {layout.per_node} a node{partner}: "
            f"{sizes}, {launches_of(rules, each, machine)}"
        )
    for each in plan.impossible:
        yield f"  {each.case.name}: cannot be measured here: {each.problem}"
    yield from (f"  {line}" for line in unplanned)
    known = read_job_seconds(context.work)
    most = max(count_needed_launches(rules, each.case, machine) for each in plan.possible)
    once = sum(estimate_job_seconds(job, known) for job in list_jobs(planned))
    environments = ", ".join(sorted({launch.environment for launch in planned}))
    yield (
        f"about {duration(once * most)} for {plural(most, 'launch', 'es')} of everything with "
        f"{environments}, builds and queues not included"
    )


def launches_of(rules: Rules, each: AskedCase, machine: MachineFacts) -> str:
    """Write how many launches a row needs."""
    return plural(count_needed_launches(rules, each.case, machine), "launch", "es")
