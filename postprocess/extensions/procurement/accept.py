"""Acceptance of a delivered machine: the offer opened, its rows measured, the protocol written and sealed.

And an acceptance held against its own files: the protocol says what the launches in it say, and nothing else.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base import files, signature
from postprocess.base.errors import UsageError
from postprocess.base.formats import render_narrow_text
from postprocess.base.progress import Progress
from postprocess.base.records import is_same, is_same_page
from postprocess.base.strict_json import parse_json
from postprocess.base.workdir import WorkDirectory
from postprocess.extensions.procurement import judge, protocol
from postprocess.extensions.procurement.builds import OfficialSource
from postprocess.extensions.procurement.judge import Acceptance
from postprocess.extensions.procurement.links import judge_links, measure_links
from postprocess.extensions.procurement.measure import (
    MENDED_BY_PASSES,
    OfferBench,
    OfferDemand,
    begin_folder,
    plan_on_site,
)
from postprocess.extensions.procurement.offer import (
    PASSES,
    PATCHES,
    RULES,
    SESSIONS,
    TELL,
    MeasuredRow,
    OpenedOffer,
    copy_told,
    open_offer,
)
from postprocess.extensions.procurement.rules.rules import BASELINE, Rules
from postprocess.extensions.procurement.run_rules import check_delivery, check_offer
from postprocess.extensions.procurement.sealed import (
    UNKNOWN,
    CheckedOffer,
    SealedFolder,
    check_folder,
    open_archive,
    seal_archive,
    unpacked,
    verify_seal,
)
from postprocess.extensions.procurement.violations import Code, Violation, format_violations
from postprocess.model.session import Request
from postprocess.report import rendering
from postprocess.session.lifecycle.context import SessionContext, open_session_context

MODE = "accept"
OFFERED, MEASURED, LINKS = "offer", "measured", "links"  #: folders of an acceptance
#: What is about rows alone, of which a sweep of links has none.
OF_ROWS = (*MENDED_BY_PASSES, Code.LAYOUT_NOT_ASKED, Code.CACHE_OTHER)
#: Of the folder of an acceptance, what is computed or checked; and of a folder of launches.
OWN_FILES = (OFFERED, MEASURED, LINKS, *protocol.ACCEPT, signature.MANIFEST, signature.SIGNATURE)
OF_LAUNCHES = (RULES, TELL, PASSES, SESSIONS, PATCHES)


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
    """Measure what was committed, judge it, write the protocol and seal it. Returns the exit status."""
    official = OfficialSource(work.source)
    checked = open_committed(demand, official, progress)
    refuse_foreign_launches(checked, demand.folder)
    with work.held():
        context = open_session_context(work, request, progress)
        wrong = [
            line
            for category in dict.fromkeys(row.key.category for row, _ in checked.committed)
            for line in measure_category(context, checked, demand, category)
        ]
        measure_all_pairs(context, checked, demand)
    found, violations = judge_measured(checked, demand.folder, official)
    status = conclude(checked, demand, found, violations, progress)
    if demand.key:
        root = seal_archive(demand.folder, demand.key, signature.ACCEPTANCE, demand.sealed)
        progress.say(f"{demand.sealed}: sealed; root {root}")
    return 1 if wrong else status


def open_committed(demand: AcceptanceDemand, official: OfficialSource, progress: Progress) -> CheckedOffer:
    """Open the offer below the folder of the acceptance, or find there the one of an earlier call.

    :raises UsageError: if its seal is broken, it is by other rules than the buyer's, or another offer is there
    """
    folder = demand.folder / OFFERED
    with unpacked(demand.archive) as scratch:
        sealed = verify_seal(scratch, demand.signers, signature.OFFER)
        if sealed.violations:
            raise UsageError(f"{demand.archive}: {sealed.violations[0].format()}")
        there = (folder / PASSES).exists()
        if there and signature.compute_root(folder) != sealed.root:
            raise UsageError(f"{demand.folder}: is the acceptance of another offer; choose another")
        if not there:  # what is refused leaves nothing behind
            opened = check_folder(scratch, official, demand.issued, final=True)
            refuse_other_rules(demand, opened)
            if not opened.committed:
                fix = "ask for the whole offer"
                raise UsageError(f"{demand.archive}: commits to no row that was measured; {fix}")
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


def measure_category(
    context: SessionContext, checked: CheckedOffer, demand: AcceptanceDemand, category: str
) -> list[str]:
    """Measure the committed rows of a category, look by look, until all are decided or looks end.

    Returns what data of OSU and IMB is wrong, in lines.
    """
    rules = checked.offer.rules
    selection = replace(context.request.selection, set_env=find_variables(checked, category))
    own = replace(context, request=replace(context.request, selection=selection))
    bench = begin_bench(own, checked, demand, MEASURED, category)
    names = sorted({row.key.case for row, _ in checked.committed if row.key.category == category})
    bench.targets = {name: judge.looks_of(rules, name)[0] for name in names}
    while bench.targets:
        bench.run()
        bench.targets = next_looks(rules, checked, bench.open_measured().rows, category, bench.targets)
    return bench.wrong


def measure_all_pairs(context: SessionContext, checked: CheckedOffer, demand: AcceptanceDemand) -> None:
    """Measure all pairs of nodes where rules ask for them, with the MPI of the first row that was measured."""
    rule = checked.offer.rules.links
    known = [row.key.environment for row in open_offer(demand.folder / MEASURED).rows]
    if rule and known:
        measure_links(begin_bench(context, checked, demand, LINKS, BASELINE), rule, known[0])


def begin_bench(
    context: SessionContext, checked: CheckedOffer, demand: AcceptanceDemand, part: str, category: str
) -> OfferBench:
    """Begin a folder of an acceptance, or find it, with what the bidder told of the same machine."""
    offer, folder = checked.offer, demand.folder / part
    plan = plan_on_site(context, offer.rules, demand.nics)
    told = offer.stored.folder / RULES, folder, category, demand.nics, MODE
    asked = OfferDemand(*told, verifies=part == MEASURED)
    begin_folder(context, asked, plan)
    copy_told(offer.stored.folder, folder)
    return OfferBench(context, offer.rules, plan, asked)


def find_variables(checked: CheckedOffer, category: str) -> dict[str, dict[str, str]]:
    own = [each for each in checked.offer.stored.passes if each.category == category]
    return {name: dict(some) for each in own for name, some in each.set_env.items()}


def next_looks(
    rules: Rules,
    checked: CheckedOffer,
    delivered: Sequence[MeasuredRow],
    category: str,
    before: Mapping[str, int],
) -> dict[str, int]:
    """Return the launches at the next look of each case that is undecided; nothing where there is none."""
    assert checked.commitments
    judged = judge.judge_delivery(rules, checked.offer.rows, checked.commitments, delivered)
    found: dict[str, int] = {}
    for row in judge.list_undecided(judged):
        case, look = row.key.case, judge.find_next_look(rules, row)
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
    key = signature.find_fingerprint(demand.key) if demand.key else ""
    told = checked.offer.told.offeror, signature.compute_root(offered), signature.read_signing_key(offered), key
    parties = protocol.Parties(*told)
    measured = open_offer(demand.folder / MEASURED)
    pages = protocol.render_protocol(checked.offer, measured, parties, found, violations)
    rendering.write_pages({demand.folder / name: text for name, text in pages.items()})
    page = demand.folder / protocol.ACCEPT[0]
    for table in (protocol.tabulate_acceptance(found), *protocol.tabulate_links(found)):
        print(render_narrow_text(table), end="", flush=True)
    for line in format_violations(violations):
        progress.note(line)
    if parties.are_same:
        progress.note(parties.lines[-1])
    progress.say(f"{protocol.describe_outcome(found, violations)}; {page}")
    return protocol.find_status(found, violations)


@dataclass(frozen=True)
class CheckedAcceptance:
    """An acceptance, computed anew from its files, and what is wrong with them."""

    found: Acceptance
    broken: tuple[Violation, ...]  #: run rules that the measurement broke: a part of the protocol
    seal: SealedFolder | None
    violations: tuple[Violation, ...]  #: of the archive


def is_acceptance(folder: Path) -> bool:
    return (folder / OFFERED).is_dir() and (folder / MEASURED).is_dir()


def judge_measured(
    offered: CheckedOffer, folder: Path, official: OfficialSource
) -> tuple[Acceptance, list[Violation]]:
    """Judge what the folder of an acceptance holds, and check it by the run rules of offers.

    :raises UsageError: if nothing was measured
    """
    assert offered.commitments
    rules = offered.offer.rules
    delivered, swept = open_offer(folder / MEASURED), open_links(folder)
    # What is wrong with the offer is not accepted with it.
    own = [violation for violation in offered.violations if violation.code is not Code.RULES_OLDER]
    violations = [violation.below(OFFERED) for violation in own]
    violations += check_measured(delivered, official, MENDED_BY_PASSES)
    violations += check_delivery(offered.offer, [delivered, *([swept] if swept else [])])
    links = None
    if rules.links and delivered.stored.passes:
        violations += check_measured(swept, official, OF_ROWS) if swept else []
        evidence = swept.evidence if swept else ()
        links = judge_links(rules, rules.links, delivered.stored.passes[-1].machine, evidence)
    rows = offered.offer.rows, offered.commitments, delivered.rows
    return judge.judge_delivery(rules, *rows, links), violations


def refuse_foreign_launches(offered: CheckedOffer, folder: Path) -> None:
    """Refuse to go on with launches that are no delivery: those of the offer, or from before its seal.

    :raises UsageError: if there are some in the folder of the acceptance
    """
    there = [name for name in (MEASURED, LINKS) if (folder / name / PASSES).exists()]
    found = check_delivery(offered.offer, [open_offer(folder / name) for name in there])
    for line in format_violations(found):
        raise UsageError(f"{folder}: {line}: choose another --output")


def open_links(folder: Path) -> OpenedOffer | None:
    """Open what was measured of all pairs of nodes; None if nothing was."""
    return open_offer(folder / LINKS) if (folder / LINKS / PASSES).exists() else None


def check_measured(measured: OpenedOffer, official: OfficialSource, but: Sequence[Code]) -> list[Violation]:
    """Check measurements of an acceptance by the run rules of offers, but for some."""
    found = check_offer(measured, official)
    return [violation.below(measured.stored.folder.name) for violation in found if violation.code not in but]


def check_acceptance(
    folder: Path, official: OfficialSource, issued: str = "", signers: Path | None = None, sealed: bool = True
) -> CheckedAcceptance:
    """Check an acceptance: both seals, the offer, the measurement, and the protocol against them.

    :param issued: SHA-256 of the buyer's own rules; empty if they are not at hand
    :param signers: file of allowed signers; None leaves out who signed
    :param sealed: whether the acceptance itself must have a seal: the offer in it must in any case
    :raises UsageError: if there is none, or nothing was measured
    """
    seal = verify_seal(folder, signers, signature.ACCEPTANCE) if sealed else None
    violations = list(seal.violations) if seal else []
    within = verify_seal(folder / OFFERED, signers, signature.OFFER)
    offered = check_folder(folder / OFFERED, official, issued, final=True)
    older = [violation for violation in offered.violations if violation.code is Code.RULES_OLDER]
    violations += [violation.below(OFFERED) for violation in (*within.violations, *older)]
    if offered.commitments is None:
        raise UsageError(f"{folder / OFFERED}: commits to nothing: there is nothing to accept")
    violations += check_copies(folder)
    if seal and seal.key and (seal.key == within.key or seal.signer == within.signer != ""):
        what = f"{seal.by} has offered and accepted"
        violations.append(Violation(Code.SIGNER_SAME, signature.SIGNATURE, what))
    found, broken = judge_measured(offered, folder, official)
    told = offered.offer.told.offeror, within.root, within.key, seal.key if seal else ""
    violations += compare_protocol(folder, offered, protocol.Parties(*told), found, broken)
    return CheckedAcceptance(found, tuple(broken), seal, tuple(violations))


def check_copies(folder: Path) -> Iterator[Violation]:
    """Check that what was copied from the offer is that of the offer, and name files that nothing checks."""
    for name, copied in ((part, file) for part in (MEASURED, LINKS) for file in (RULES, TELL)):
        path, own = folder / name / copied, folder / OFFERED / copied
        if path.exists() and own.exists() and signature.digest(path) != signature.digest(own):
            code = Code.RULES_OTHER if copied == RULES else Code.TOLD_DAMAGED
            yield Violation(code, f"{name}/{copied}", "is not that of the offer")
    for part, known in (("", OWN_FILES), (MEASURED, OF_LAUNCHES), (LINKS, OF_LAUNCHES)):
        there = (folder / part).iterdir() if (folder / part).is_dir() else ()
        for path in sorted(each for each in there if each.name not in known):
            place = path.relative_to(folder).as_posix()
            yield Violation(Code.FILE_UNCHECKED, place, "is not a file of an acceptance")


def compare_protocol(
    folder: Path, offered: CheckedOffer, parties: protocol.Parties, found: Acceptance, broken: list[Violation]
) -> Iterator[Violation]:
    """Compare every file of the protocol with what the files of the acceptance say."""
    html, table, data, markdown = protocol.ACCEPT
    try:
        theirs = parse_json(files.read_text(folder / data))
    except (OSError, ValueError) as error:
        yield Violation(Code.PROTOCOL_OTHER, data, describe_unread(error)).inside(folder)
        return
    known = theirs if isinstance(theirs, Mapping) else {}
    if not parties.accepted_by:  # not signed until now: it may say by whom it will be
        said = known.get("parties")
        by = said.get("accepted_by") if isinstance(said, Mapping) else ""
        parties = replace(parties, accepted_by=by if isinstance(by, str) else "")
    delivered = open_offer(folder / MEASURED)
    pages = protocol.render_protocol(offered.offer, delivered, parties, found, broken)
    ours = json.loads(pages[data])
    for key in sorted({*ours, *known}):
        if key not in known or key not in ours or not is_same(ours[key], known[key]):
            yield Violation(Code.PROTOCOL_OTHER, data, f"{key}: is not what the launches say")
    for name in (html, table, markdown):
        try:
            text = files.read_text(folder / name)
        except (OSError, ValueError) as error:
            yield Violation(Code.PROTOCOL_OTHER, name, describe_unread(error)).inside(folder)
            continue
        same = is_same_table if name == table else is_same_page
        if not same(pages[name], text):
            yield Violation(Code.PROTOCOL_OTHER, name, "is not what the launches say")


def describe_unread(error: OSError | ValueError) -> str:
    """Describe why a file cannot be read, without its path."""
    return f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"


def is_same_table(ours: str, theirs: str) -> bool:
    """Return whether two tables are the same but for the rounding of numbers."""
    try:
        one, two = (list(csv.reader(io.StringIO(each))) for each in (ours, theirs))
    except csv.Error:
        return False
    return is_same(one, two)
