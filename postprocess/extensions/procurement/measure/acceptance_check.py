"""An acceptance held against its own files: the protocol says what the launches in it say, and nothing else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base import files
from postprocess.base.documents.strict_json import parse_json
from postprocess.base.errors import UsageError
from postprocess.base.same_values import is_same, is_same_page
from postprocess.base.signature import ACCEPTANCE, MANIFEST, OFFER, SIGNATURE, digest
from postprocess.extensions.procurement.accept import Acceptance, judge_delivery
from postprocess.extensions.procurement.check.data import PASSES, PATCHES, RULES, SESSIONS, TELL
from postprocess.extensions.procurement.check.delivery import check_delivery
from postprocess.extensions.procurement.check.offer import OpenedOffer, check_offer, open_offer
from postprocess.extensions.procurement.check.official import OfficialSource
from postprocess.extensions.procurement.check.violations import Code, Violation, format_violations
from postprocess.extensions.procurement.measure.links import judge_links
from postprocess.extensions.procurement.protocol import ACCEPT, Parties, render_protocol
from postprocess.extensions.procurement.sealed import CheckedOffer, SealedFolder, check_folder, verify_seal

OFFERED, MEASURED, LINKS = "offer", "measured", "links"  #: folders of an acceptance
#: What rows say themselves.
TOLD_BY_ROWS = (Code.FEW_LAUNCHES, Code.ROW_MISSING, Code.FAMILY_MISSING)
OF_ROWS = (Code.LAYOUT_NOT_ASKED, Code.CACHE_OTHER)  #: of which a sweep of links has none
#: Of the folder of an acceptance, what is computed or checked; and of a folder of launches.
OWN_FILES = (OFFERED, MEASURED, LINKS, *ACCEPT, MANIFEST, SIGNATURE)
OF_LAUNCHES = (RULES, TELL, PASSES, SESSIONS, PATCHES)


@dataclass(frozen=True)
class CheckedAcceptance:
    """An acceptance, computed anew from its files, and what is wrong with them."""

    offered: CheckedOffer
    found: Acceptance
    broken: tuple[Violation, ...]  #: run rules that the measurement broke: a part of the protocol
    seal: SealedFolder | None
    violations: tuple[Violation, ...]  #: of the archive


def is_acceptance(folder: Path) -> bool:
    """Return whether a folder is that of an acceptance."""
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
    violations = list_offer_violations(offered)
    violations += check_measured(delivered, official)
    violations += check_delivery(offered.offer, [delivered, *([swept] if swept else [])])
    links = None
    if rules.links and delivered.stored.passes:
        violations += check_measured(swept, official) if swept else []
        evidence = swept.evidence if swept else ()
        machine = delivered.stored.passes[-1].machine
        links = judge_links(rules, rules.links, machine, evidence)
    return judge_delivery(rules, offered.offer.rows, offered.commitments, delivered.rows, links), violations


def list_offer_violations(offered: CheckedOffer) -> list[Violation]:
    """List what is wrong with the offer of an acceptance, which is not accepted with it."""
    own = [violation for violation in offered.violations if violation.code is not Code.RULES_OLDER]
    return [replace(violation, place=f"{OFFERED}/{violation.place}") for violation in own]


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


def check_measured(measured: OpenedOffer, official: OfficialSource) -> list[Violation]:
    """Check measurements of an acceptance by the run rules of offers, but for what rows say themselves."""
    besides = (*TOLD_BY_ROWS, *(OF_ROWS if is_sweep(measured) else ()))
    own = [violation for violation in check_offer(measured, official) if violation.code not in besides]
    name = measured.stored.folder.name
    return [replace(violation, place=f"{name}/{violation.place}") for violation in own]


def is_sweep(measured: OpenedOffer) -> bool:
    """Return whether measurements are of all pairs of nodes, whose layout no case asks for."""
    return measured.stored.folder.name == LINKS


def check_acceptance(
    folder: Path, official: OfficialSource, issued: str = "", signers: Path | None = None, sealed: bool = True
) -> CheckedAcceptance:
    """Check an acceptance: both seals, the offer, the measurement, and the protocol against them.

    :param issued: SHA-256 of the buyer's own rules; empty if they are not at hand
    :param signers: file of allowed signers; None leaves out who signed
    :param sealed: whether the acceptance itself must have a seal: the offer in it must in any case
    :raises UsageError: if there is none, or nothing was measured
    """
    seal = verify_seal(folder, signers, ACCEPTANCE) if sealed else None
    violations = list(seal.violations) if seal else []
    within = verify_seal(folder / OFFERED, signers, OFFER)
    offered = check_folder(folder / OFFERED, official, issued, final=True)
    older = [violation for violation in offered.violations if violation.code is Code.RULES_OLDER]
    for violation in (*within.violations, *older):
        violations.append(replace(violation, place=f"{OFFERED}/{violation.place}"))
    if offered.commitments is None:
        raise UsageError(f"{folder / OFFERED}: commits to nothing: there is nothing to accept")
    violations += check_copies(folder)
    if seal and seal.key and (seal.key == within.key or seal.signer == within.signer != ""):
        what = f"{seal.by} has offered and accepted"
        violations.append(Violation(Code.SIGNER_SAME, SIGNATURE, what))
    found, broken = judge_measured(offered, folder, official)
    told = offered.offer.told.offeror, within.root, within.key, seal.key if seal else ""
    violations += compare_protocol(folder, offered, Parties(*told), found, broken)
    return CheckedAcceptance(offered, found, tuple(broken), seal, tuple(violations))


def check_copies(folder: Path) -> Iterator[Violation]:
    """Check that what was copied from the offer is that of the offer, and name files that nothing checks."""
    for name, copied in ((part, file) for part in (MEASURED, LINKS) for file in (RULES, TELL)):
        path, own = folder / name / copied, folder / OFFERED / copied
        if path.exists() and own.exists() and digest(path) != digest(own):
            code = Code.RULES_OTHER if copied == RULES else Code.TOLD_DAMAGED
            yield Violation(code, f"{name}/{copied}", "is not that of the offer")
    for part, known in (("", OWN_FILES), (MEASURED, OF_LAUNCHES), (LINKS, OF_LAUNCHES)):
        there = (folder / part).iterdir() if (folder / part).is_dir() else ()
        for path in sorted(each for each in there if each.name not in known):
            place = path.relative_to(folder).as_posix()
            yield Violation(Code.FILE_UNCHECKED, place, "is no file of an acceptance")


def compare_protocol(
    folder: Path, offered: CheckedOffer, parties: Parties, found: Acceptance, broken: list[Violation]
) -> Iterator[Violation]:
    """Compare every file of the protocol with what the files of the acceptance say."""
    html, table, data, markdown = ACCEPT
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
    pages = render_protocol(offered.offer, delivered, parties, found, broken)
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
