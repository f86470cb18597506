"""Rules on a site: the partition that they are about, what would be launched, and about how long that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, plural, size
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import CalibrationHeader, append_launches, collect_launches, locate_ledger
from postprocess.extensions.procurement.check.data import locate_session
from postprocess.extensions.procurement.check.offer import OpenedOffer
from postprocess.extensions.procurement.rules.lint import (
    AskedCase,
    OfferPlan,
    build_offer_choice,
    count_needed_launches,
    plan_offer,
)
from postprocess.extensions.procurement.rules.rules_data import MachineFacts, Rules
from postprocess.model.options import PARTITION
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Selection
from postprocess.results.launch_costs import estimate_job_seconds, list_jobs, read_job_seconds
from postprocess.session.lifecycle.context import SessionContext
from site_configs.validation.isolated_reader import read_usable_site
from site_configs.validation.rules import DeclaredEntry, list_entries, select_sound
from spack_envs.programs import read_program


def enter_launches(work: WorkDirectory, offer: OpenedOffer) -> int:
    """Enter the launches of an offer in the ledger, each session once. Returns how many.

    :raises UsageError: if all of them are there already
    """
    entered = 0
    with work.held():
        for done in offer.stored.passes:
            if (locate_ledger(work.root) / f"{done.session}.json").exists():
                continue
            header = CalibrationHeader(done.session, done.set_env)
            own = [each for each in offer.evidence if each.done.number == done.number]
            finished = [
                each.finish(read_program(each.session, each.launch.environment, each.launch.program))
                for each in own
            ]
            session = locate_session(offer.stored.folder, done.session)
            found = collect_launches(header, session, finished, done.others)
            append_launches(work.root, done.session, found)
            entered += len(found)
    if not entered:
        raise UsageError(f"{offer.stored.folder}: nothing new to enter; all of it is in the ledger")
    return entered


def read_machine_facts(context: SessionContext, nics: int = 1) -> MachineFacts:
    """Read what layouts rest on, of the one partition that was chosen or that there is.

    :raises UsageError: if there are several, or the one chosen is not there
    """
    selection = context.request.selection
    reading = read_usable_site(context.work, selection.site)
    found = {entry.name: entry for entry in select_sound(reading, list_entries(reading, "partition"))}
    wanted = PARTITION.wanted(selection.choice) or tuple(found)
    if len(wanted) != 1 or wanted[0] not in found:
        choice = ", ".join(sorted(found)) or "none"
        asked = ",".join(PARTITION.wanted(selection.choice))
        raise UsageError(
            f"{PARTITION.flag} {asked}: an offer is about one partition; {context.request.site} has {choice}"
            if asked
            else f"an offer is about one partition; choose one by {PARTITION.flag}: "
            f"{context.request.site} has {choice}"
        )
    return describe_partition(found[wanted[0]], nics)


def describe_partition(entry: DeclaredEntry, nics: int) -> MachineFacts:
    """Return the facts of a partition as its site declares them."""
    extras = entry.extras
    return MachineFacts(
        entry.name,
        int(extras["nodes"]),
        int(extras["cores_per_node"]),
        nics,
        int(extras["most_processes"]),
        bool(extras["exact"]),
    )


def select_offer(
    context: SessionContext, rules: Rules, plan: OfferPlan, names: Sequence[str] | None = None
) -> Selection:
    """Select what a pass of an offer measures: each case once."""
    choice = dict(build_offer_choice(rules, plan, names))
    return replace(context.request.selection, choice=choice, launches=1, tag="nightly")


def preview_offer(context: SessionContext, rules: Rules, plan: OfferPlan) -> list[PlannedLaunch]:
    """Plan a pass, and measure nothing.

    :raises UsageError: if nothing can be measured
    """
    if not plan.possible:
        raise UsageError(f"no case of the rules is possible here: {plan.impossible[0].asked.problem}")
    return context.preview(replace(select_offer(context, rules, plan), only_looking=True))


def find_unplanned(plan: OfferPlan, planned: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Find what the machine could measure by its size, and no launch does, with the reason."""
    cases = [case for launch in planned for case in launch.cases]
    skips = [skip for launch in planned for skip in launch.skips]
    for each in plan.possible:
        for count in each.case.bytes:
            if any(each.matches(case, count) for case in cases):
                continue
            reason = next((s.reason for s in skips if each.matches(s.case, count)), "")
            fix = f"{each.case.program} has no {each.case.routine} of {size(count)} at this layout"
            yield f"{each.case.name} {size(count)}: not measured: {reason or fix}"


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
        layout = each.asked.layout
        assert layout
        sizes = plural(len(each.case.bytes), "size")
        partner = f", rank 0 with {each.asked.peer}" if each.asked.peer else ""
        yield (
            f"  {each.case.name}: {layout.processes} processes, {layout.per_node} a node{partner}: "
            f"{sizes}, {launches_of(rules, each, machine)}"
        )
    for each in plan.impossible:
        yield f"  {each.case.name}: cannot be measured here: {each.asked.problem}"
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


def plan_on_site(context: SessionContext, rules: Rules, nics: int) -> OfferPlan:
    """Plan rules on the site of a context.

    :raises UsageError: as :func:`read_machine_facts` does
    """
    return plan_offer(rules, read_machine_facts(context, nics))
