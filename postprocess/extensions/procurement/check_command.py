"""The commands ``offer check``, ``offer compare`` and ``accept``."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from postprocess.base.archive import is_archive
from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import duration, plural, render_narrow_text
from postprocess.base.progress import Progress
from postprocess.base.sanitize import sanitize_line, show_error
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_count
from postprocess.cli.options import SITE, add_json, add_options
from postprocess.cli.output_files import add_output_directory, check_page
from postprocess.cli.parser import HOW, Command, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.procurement import accept, comparison, protocol, sealed
from postprocess.extensions.procurement.builds import OfficialSource
from postprocess.extensions.procurement.measure import find_unplanned, locate_folder, plan_on_site, select_offer
from postprocess.extensions.procurement.offer import OpenedOffer, open_offer
from postprocess.extensions.procurement.protocol import describe_outcome, find_status
from postprocess.extensions.procurement.rules.layouts import (
    AskedCase,
    MachineFacts,
    OfferPlan,
    count_needed_launches,
)
from postprocess.extensions.procurement.rules.rules import Rules, hash_rules, lint_rules, read_rules
from postprocess.extensions.procurement.run_rules import HandedIn, find_shared_launches
from postprocess.extensions.procurement.sealed import UNKNOWN, check_opened, unpacked
from postprocess.extensions.procurement.violations import (
    Code,
    Violation,
    describe_broken,
    describe_violations,
    format_violations,
    is_rejected,
)
from postprocess.model.plan import PlannedLaunch
from postprocess.results.launch_costs import estimate_job_seconds, list_jobs, read_job_seconds
from postprocess.session.lifecycle.context import SessionContext, open_session_context


def add_compare_arguments(parser: Parser) -> None:
    """Add the offers, the buyer's rules and who may sign."""
    parser.add_argument("offers", nargs="+", type=Path, metavar="FILE", help="sealed offers")
    add_buyer(parser)
    parser.group(HOW).add_argument(
        "--present",
        type=Path,
        metavar="DIR",
        help="the buyer's present system, measured by offer run with the same rules: what ratios are to",
    )
    add_output_directory(
        parser,
        "--output",
        "write the pages to DIR (default: offers/ of the work directory)",
        pages=comparison.COMPARE,
    )


def add_buyer(parser: Parser) -> None:
    """Add the options by which a buyer holds an offer against its own."""
    how = parser.group(HOW)
    how.add_argument("--rules", type=Path, metavar="FILE", help="the buyer's own rules")
    how.add_argument(
        "--signers",
        type=Path,
        metavar="FILE",
        help="who may sign: lines NAME KEY, as ssh-keygen(1) has its allowed signers",
    )


def hash_issued(rules: Path | None) -> str:
    """Return the SHA-256 of the buyer's own rules; empty if they are not named.

    :raises UsageError: if they are no rules, as an offer is none
    """
    if rules is None:
        return ""
    read_rules(rules)
    return hash_rules(rules)


def run_compare(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    official = OfficialSource(work.source)
    issued = hash_issued(arguments.rules)
    ranked: list[comparison.RankedOffer] = []
    handed: list[HandedIn] = []
    rules: dict[str, Rules] = {}
    for path in arguments.offers:
        with unpacked(path) as folder:
            checked = check_opened(folder, official, issued, arguments.signers)
            grave = [violation for violation in checked.violations if violation.code.grave]
            for line in format_violations(grave):
                show_error(f"{path}: {line}")
            rules[checked.offer.stored.header.rules] = checked.offer.rules
            seal = checked.seal
            if seal and not seal.signer:
                show_error(f"{path}: signed by {seal.by}: {UNKNOWN}")
            name = sanitize_line(checked.offer.told.offeror) or path.stem
            names = {other.name for other in ranked}
            unique = name if name not in names else f"{name} ({path.stem})"
            launches = tuple(evidence.marks for evidence in checked.offer.evidence)
            handed.append(HandedIn(unique, seal.key if seal else "", launches))
            if checked.commitments:
                ranked.append(comparison.rank_offer(unique, checked.offer, checked.commitments, len(grave)))
            else:
                ranked.append(comparison.RankedOffer(unique, len(grave), {}))
    if len(rules) > 1:
        codes = ", ".join(code[:16] for code in rules)
        raise UsageError(f"offers are by different rules ({codes}); compare those of one issue")
    present = None
    if arguments.present:
        measured = read_present(arguments.present, next(iter(rules)))
        present = comparison.take_measured(measured)
        launches = tuple(evidence.marks for evidence in measured.evidence)
        handed.append(HandedIn(f"--present {arguments.present}", "", launches))
    shared = find_shared_launches(handed)
    for each in shared:
        show_error(each.format())
    guilty = Counter(name for each in shared if each.grave for name in each.names)
    ranked = [replace(offer, violations=offer.violations + guilty[offer.name]) for offer in ranked]
    told = [each.text for each in shared]
    found = comparison.compare_offers(next(iter(rules.values())), ranked, present, told)
    page = comparison.write_comparison(locate_folder(arguments.output, work, "offers"), found)
    for table in (comparison.tabulate_scores(found), *comparison.tabulate_rows(found)):
        print(render_narrow_text(table))
    Progress().say(f"{comparison.describe_outcome(found)}; {page}")
    return 0 if found.scores[0].is_responsive else 1


COMPARE = Command(
    "./plumbline offer compare A.tar B.tar --rules rules.toml --signers allowed_signers",
    "no offer keeps every must row without a violation",
    add_compare_arguments,
    run_compare,
    help="Show sealed offers side by side: must rows, scores, ratios, means over common rows.",
)


def read_present(folder: Path, code: str) -> OpenedOffer:
    """Read what was measured of the buyer's present system.

    :param code: hash of the rules of the offers
    :raises UsageError: if it was not measured, or by other rules
    """
    measured = open_offer(folder)
    if measured.stored.header.rules != code:
        raise UsageError(f"--present {folder}: was measured by other rules than the offers; measure it again")
    return measured


def preview_offer(context: SessionContext, rules: Rules, plan: OfferPlan) -> list[PlannedLaunch]:
    """Plan a pass, and measure nothing. Raises UsageError if nothing can be measured."""
    if not plan.possible:
        raise UsageError(f"no case of the rules is possible here: {plan.impossible[0].problem}")
    return context.preview(replace(select_offer(context, rules, plan), only_looking=True))


def describe_cost(
    context: SessionContext, rules: Rules, plan: OfferPlan, planned: Sequence[PlannedLaunch]
) -> Iterator[str]:
    """Describe what rules cost here, in lines: each layout, what is impossible, launches and time."""
    machine, possible = plan.machine, sum(len(case.case.bytes) for case in plan.possible)
    unplanned = list(find_unplanned(plan, planned))
    rows = sum(len(case.case.bytes) for case in plan.cases)
    yield (
        f"on {context.request.site}:{machine.partition}: {plural(machine.nodes, 'node')} of "
        f"{plural(machine.cores_per_node, 'core')}; {possible - len(unplanned)} of "
        f"{plural(rows, 'row')} can be measured"
    )
    for case in plan.possible:
        layout = case.layout
        assert layout
        sizes = plural(len(case.case.bytes), "size")
        partner = f", rank 0 with {case.peer}" if case.peer else ""
        yield (
            f"  {case.case.name}: {layout.processes} processes, {layout.per_node} a node{partner}: "
            f"{sizes}, {launches_of(rules, case, machine)}"
        )
    for case in plan.impossible:
        yield f"  {case.case.name}: cannot be measured here: {case.problem}"
    yield from (f"  {line}" for line in unplanned)
    known = read_job_seconds(context.work)
    most = max(count_needed_launches(rules, case.case, machine) for case in plan.possible)
    once = sum(estimate_job_seconds(job, known) for job in list_jobs(planned))
    environments = ", ".join(sorted({launch.environment for launch in planned}))
    yield (
        f"about {duration(once * most)} for {plural(most, 'launch', 'es')} of everything with "
        f"{environments}, builds and queues not included"
    )


def launches_of(rules: Rules, each: AskedCase, machine: MachineFacts) -> str:
    return plural(count_needed_launches(rules, each.case, machine), "launch", "es")


def add_check_arguments(parser: Parser) -> None:
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="rules; an offer or an acceptance, as a folder or sealed"
    )
    add_options(parser, *SITE, "--partition", "--environment")
    add_nics(parser)
    parser.group(HOW).add_argument("--no-cost", action="store_true", help="do not plan the rules on a site")
    add_buyer(parser)
    add_json(parser)
    parser.set_defaults(time_limit=None)


def add_nics(parser: Parser) -> None:
    """Add the option that tells what no site file does."""
    parser.group(HOW).add_argument(
        "--nics-per-node",
        type=parse_count,
        default=1,
        metavar="N",
        help="network interfaces of a node, for layouts of a process for each (default: 1)",
    )


def run_check(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Check rules or an offer. Returns the exit status."""
    path = arguments.path
    if path.is_dir() or path.suffix == ".tar" or is_archive(path):
        issued = hash_issued(arguments.rules)
        return print_check(work, path, issued, arguments.signers, arguments.json)
    progress = Progress()
    rules, faults = lint_rules(path)
    for fault in faults:
        show_error(fault.format(path))
    if rules is None or faults:
        progress.say(f"{path}: {plural(len(faults), 'fault')}")
        return 1
    progress.say(f"{path}: {describe_rules(rules)}; SHA-256 {hash_rules(path)}")
    if not arguments.no_cost:
        with work.held():
            context = open_session_context(work, build_request(work, arguments), progress)
            plan = plan_on_site(context, rules, arguments.nics_per_node)
            planned = preview_offer(context, rules, plan)
            for line in describe_cost(context, rules, plan, planned):
                progress.say(line)
    return 0


CHECK = Command(
    "./plumbline offer check rules.toml --site mycluster --partition cpu",
    "the rules have a fault, the offer or acceptance a violation, or the machine is not accepted",
    add_check_arguments,
    run_check,
    ((3, "a row of the acceptance is undecided"),),
    help="Check rules and show what they cost on a site, or check an offer or acceptance.",
)


def print_check(
    work: WorkDirectory, path: Path, issued: str = "", signers: Path | None = None, report: Path | None = None
) -> int:
    """Check an offer, and print its violations. Returns the exit status."""
    official = OfficialSource(work.source)
    with nullcontext(path) if path.is_dir() else sealed.unpacked(path) as folder:
        is_sealed = folder is not path or signers is not None
        if accept.is_acceptance(folder):
            accepted = accept.check_acceptance(folder, official, issued, signers, is_sealed)
            return print_acceptance(path, accepted, report)
        if is_sealed:
            found = sealed.check_opened(folder, official, issued, signers)
        else:
            found = sealed.check_folder(folder, official, issued)
    return print_offer(path, found, report)


def print_offer(path: Path, found: sealed.CheckedOffer, report: Path | None = None) -> int:
    """Print the violations of an offer that was checked. Returns the exit status."""
    rows, launches = len(found.offer.rows), len(found.offer.evidence)
    violations = list(found.violations)
    print_violations(path, violations, found.seal, report)
    for mpi in found.offer.unmeasured:
        Progress().say(mpi.words)
    Progress().say(
        f"{path}: {plural(rows, 'row')} of {plural(launches, 'launch', 'es')}: "
        f"{describe_violations(violations)}"
    )
    return int(is_rejected(violations))


def print_acceptance(path: Path, checked: accept.CheckedAcceptance, report: Path | None) -> int:
    """Print what is wrong with an acceptance, and what it comes to. Returns the exit status of that."""
    violations = [*checked.violations, *checked.broken]
    print_violations(path, violations, checked.seal, report)
    outcome = describe_outcome(checked.found, checked.broken)
    if is_rejected(checked.violations):
        outcome += f"; the archive does not hold ({describe_broken(checked.violations)})"
    Progress().say(f"{path}: {outcome}: {describe_violations(violations)}")
    return find_status(checked.found, violations)


def print_violations(
    path: Path, found: list[Violation], seal: sealed.SealedFolder | None, report: Path | None
) -> None:
    """Print violations and who signed, and write them for programs."""
    for line in format_violations(found):
        show_error(line)
    if seal and seal.root:
        Progress().say(f"{path}: {describe_signer(seal)}; root {seal.root}")
    if report:
        entries = [violation.as_entry() for violation in found]
        write_summary(report, {"schema": 1, "kind": "offer check", "violations": entries})


def describe_signer(seal: sealed.SealedFolder) -> str:
    if seal.signer or any(violation.code is Code.SIGNER_UNKNOWN for violation in seal.violations):
        return f"signed by {seal.by}"
    return f"signed by {seal.by}: {sealed.UNKNOWN}"


def describe_rules(rules: Rules) -> str:
    rows = Counter({name: 0 for name in ("must", "should", "information")})
    for case in rules.case:
        rows[case.demand] += len(case.bytes)
    counts = ", ".join(f"{count} {name}" for name, count in rows.items() if count)
    return f"{rules.title}: {plural(len(rules.case), 'case')}, {plural(rows.total(), 'row')} ({counts})"


def add_accept_arguments(parser: Parser) -> None:
    """Add the offer, the site, who may sign, and the key of the protocol."""
    parser.add_argument("offer", type=Path, metavar="FILE", help="sealed offer")
    add_output_directory(
        parser,
        "--output",
        "write the protocol to DIR, or go on there (default: accept/ of the work directory)",
        pages=protocol.ACCEPT,
    )
    add_options(parser, *SITE, "--partition", "--environment")
    add_nics(parser)
    add_buyer(parser)
    parser.group(HOW).add_argument(
        "--key", type=Path, metavar="FILE", help="sign the protocol with this key of SSH"
    )
    parser.set_defaults(time_limit=None)


def run_accept(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Accept a delivered machine, or not. Returns the exit status."""
    demand = accept.AcceptanceDemand(
        arguments.offer.absolute(),
        locate_folder(arguments.output, work, "accept"),
        arguments.signers,
        hash_issued(arguments.rules),
        arguments.key and arguments.key.absolute(),
        arguments.nics_per_node,
    )
    if demand.key:
        check_page("--output", demand.sealed)
    arguments.output = None
    return accept.run_acceptance(work, build_request(work, arguments), demand, Progress())


ACCEPT = Command(
    "./plumbline accept A.tar --site delivered --signers allowed_signers --key ~/.ssh/id_ed25519",
    "a row is missed or was not run, or a run rule was broken",
    add_accept_arguments,
    run_accept,
    ((3, "a row is undecided"),),
)
