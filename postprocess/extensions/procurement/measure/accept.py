"""Acceptance of a delivered machine: the offer opened, its rows measured, the protocol written and sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.signature import ACCEPTANCE, OFFER, compute_root, find_fingerprint, read_signing_key
from postprocess.base.text_table import render_text
from postprocess.base.workdir import WorkDirectory
from postprocess.extensions.procurement.accept import (
    Acceptance,
    find_next_look,
    judge_delivery,
    list_undecided,
    looks_of,
    open_categories,
)
from postprocess.extensions.procurement.check.data import PASSES, RULES, copy_told
from postprocess.extensions.procurement.check.evidence import MeasuredRow
from postprocess.extensions.procurement.check.offer import open_offer
from postprocess.extensions.procurement.check.official import OfficialSource
from postprocess.extensions.procurement.check.violations import Code, Violation, format_violations
from postprocess.extensions.procurement.measure.acceptance_check import (
    LINKS,
    MEASURED,
    OFFERED,
    judge_measured,
    refuse_foreign_launches,
)
from postprocess.extensions.procurement.measure.links import measure_links
from postprocess.extensions.procurement.measure.plan import plan_on_site
from postprocess.extensions.procurement.measure.run import OfferBench, OfferDemand, begin_folder
from postprocess.extensions.procurement.protocol import (
    ACCEPT,
    Parties,
    describe_outcome,
    find_status,
    render_protocol,
    tabulate_acceptance,
    tabulate_links,
)
from postprocess.extensions.procurement.rules.rules_data import Rules
from postprocess.extensions.procurement.sealed import (
    UNKNOWN,
    CheckedOffer,
    archive_named,
    check_folder,
    open_archive,
    seal_archive,
    verify_seal,
)
from postprocess.model.session import Request
from postprocess.report import templating
from postprocess.session.lifecycle.context import SessionContext, open_session_context

MODE = "accept"


@dataclass(frozen=True)
class AcceptanceDemand:
    """What the user asked for beyond a session's request."""

    archive: Path
    folder: Path
    signers: Path | None = None
    issued: str = ""  #: SHA-256 of the buyer's own rules
    key: Path | None = None  #: to sign the protocol with
    nics: int = 1

    @property
    def sealed(self) -> Path:
        """The protocol with all that it rests on, in one file."""
        return self.folder.with_name(f"{self.folder.name}.tar")


def run_acceptance(work: WorkDirectory, request: Request, demand: AcceptanceDemand, progress: Progress) -> int:
    """Measure what was committed, judge it, write the protocol and seal it. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend
    """
    official = OfficialSource(work.source)
    checked = open_committed(demand, official, progress)
    refuse_foreign_launches(checked, demand.folder)
    with work.held():
        context = open_session_context(work, request, progress)
        wrong = [
            line
            for category in open_categories(checked.offer, kept_of(checked))
            for line in measure_category(context, checked, demand, category)
        ]
        measure_all_pairs(context, checked, demand)
    found, violations = judge_measured(checked, demand.folder, official)
    status = conclude(checked, demand, found, violations, progress)
    if demand.key:
        root = seal_archive(demand.folder, demand.key, ACCEPTANCE, demand.sealed)
        progress.say(f"{demand.sealed}: sealed; root {root}")
    return 1 if wrong else status


def open_committed(demand: AcceptanceDemand, official: OfficialSource, progress: Progress) -> CheckedOffer:
    """Open the offer below the folder of the acceptance, or find there the one of an earlier call.

    :raises UsageError: if its seal is broken, it is by other rules than the buyer's, or another offer is there
    """
    folder = demand.folder / OFFERED
    with TemporaryDirectory(prefix="plumbline-offer-") as scratch:
        open_archive(demand.archive, Path(scratch))
        sealed = verify_seal(Path(scratch), demand.signers, OFFER)
        if sealed.violations:
            raise UsageError(f"{demand.archive}: {sealed.violations[0].format()}")
        there = (folder / PASSES).exists()
        if there and compute_root(folder) != sealed.root:
            raise UsageError(f"{demand.folder}: is the acceptance of another offer; choose another")
        if not there:  # what is refused leaves nothing behind
            with archive_named(demand.archive, Path(scratch)):
                opened = check_folder(Path(scratch), official, demand.issued, final=True)
            refuse_other_rules(demand, opened)
            if opened.commitments is None:
                raise UsageError(f"{demand.archive}: commits to nothing; ask for the whole offer")
            open_archive(demand.archive, folder)
    found = check_folder(folder, official, demand.issued, final=True)
    refuse_other_rules(demand, found)
    for line in format_violations(found.violations):
        progress.note(f"the offer: {line}")
    progress.say(f"offer of {found.offer.told.offeror}, signed by {sealed.by}, root {sealed.root[:16]}")
    if not demand.signers:
        progress.note(f"{demand.archive}: {UNKNOWN}")
    return found


def refuse_other_rules(demand: AcceptanceDemand, checked: CheckedOffer) -> None:
    """Refuse an offer by other rules than the buyer's: what they ask for would not be measured.

    :raises UsageError: if it is one
    """
    for violation in checked.violations:
        if violation.code is Code.RULES_OLDER:
            raise UsageError(f"{demand.archive}: {violation.format()}")


def kept_of(checked: CheckedOffer):
    """Return the commitments of an offer that has some."""
    assert checked.commitments
    return checked.commitments


def measure_category(
    context: SessionContext, checked: CheckedOffer, demand: AcceptanceDemand, category: str
) -> list[str]:
    """Measure the committed rows of a category, look by look, until all are decided or looks end.

    Returns what data of OSU and IMB is wrong, in lines.
    """
    offer, rules = checked.offer, checked.offer.rules
    measured = demand.folder / MEASURED
    set_env = find_variables(checked, category)
    selection = replace(context.request.selection, set_env=set_env)
    own = replace(context, request=replace(context.request, selection=selection))
    plan = plan_on_site(own, rules, demand.nics)
    told = offer.stored.folder / RULES, measured, category, demand.nics, MODE
    asked = OfferDemand(*told, verifies=True)
    begin_folder(own, asked, plan)
    copy_told(offer.stored.folder, measured)
    bench = OfferBench(own, rules, plan, asked, targets=first_looks(rules, checked, category))
    while bench.targets:
        bench.run()
        bench.targets = next_looks(rules, checked, bench.open_measured().rows, category, bench.targets)
    return bench.wrong


def measure_all_pairs(context: SessionContext, checked: CheckedOffer, demand: AcceptanceDemand) -> None:
    """Measure all pairs of nodes where rules ask for them, with the MPI of the first row that was measured."""
    rules = checked.offer.rules
    known = [row.key.environment for row in open_offer(demand.folder / MEASURED).rows]
    if rules.links is None or not known:
        return
    plan = plan_on_site(context, rules, demand.nics)
    path = checked.offer.stored.folder / RULES
    asked = OfferDemand(path, demand.folder / LINKS, "baseline", demand.nics, MODE)
    begin_folder(context, asked, plan)
    measure_links(OfferBench(context, rules, plan, asked), rules.links, known[0])


def find_variables(checked: CheckedOffer, category: str) -> dict[str, dict[str, str]]:
    """Find the variables with which a category was measured."""
    own = [each for each in checked.offer.stored.passes if each.category == category]
    return {name: dict(some) for each in own for name, some in each.set_env.items()}


def first_looks(rules: Rules, checked: CheckedOffer, category: str) -> dict[str, int]:
    """Return the launches of each committed case of a category at its first look."""
    known = kept_of(checked).by_key()
    names = {
        row.key.case
        for row in checked.offer.rows
        if row.key.category == category and row.key.key in known and known[row.key.key].committed is not None
    }
    return {name: looks_of(rules, name)[0] for name in sorted(names)}


def next_looks(
    rules: Rules,
    checked: CheckedOffer,
    delivered: Sequence[MeasuredRow],
    category: str,
    before: Mapping[str, int],
) -> dict[str, int]:
    """Return the launches at the next look of each case that is undecided; nothing where there is none."""
    judged = judge_delivery(rules, checked.offer.rows, kept_of(checked), delivered)
    found: dict[str, int] = {}
    for row in list_undecided(judged):
        case, look = row.key.case, find_next_look(rules, row)
        if look and row.made >= before.get(case, 0) and row.key.category == category:
            found[case] = max(found.get(case, 0), look)
    return found


def conclude(
    checked: CheckedOffer,
    demand: AcceptanceDemand,
    found: Acceptance,
    violations: Sequence[Violation],
    progress: Progress,
) -> int:
    """Write the protocol and show it. Returns the exit status: that of ``offer check`` of the acceptance."""
    offered = demand.folder / OFFERED
    key = find_fingerprint(demand.key) if demand.key else ""
    told = checked.offer.told.offeror, compute_root(offered), read_signing_key(offered), key
    parties = Parties(*told)
    measured = open_offer(demand.folder / MEASURED)
    pages = render_protocol(checked.offer, measured, parties, found, violations)
    templating.write_pages({demand.folder / name: text for name, text in pages.items()})
    page = demand.folder / ACCEPT[0]
    for table in (tabulate_acceptance(found), *tabulate_links(found)):
        print(render_text(table), end="", flush=True)
    for line in format_violations(violations):
        progress.note(line)
    if parties.are_same:
        progress.note(parties.lines[-1])
    progress.say(f"{describe_outcome(found, violations)}; {page}")
    return find_status(found, violations)
