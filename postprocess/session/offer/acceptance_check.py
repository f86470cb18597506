"""An acceptance held against its own files: the protocol says what the launches in it say, and nothing else."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.analyses.offer.accept import Acceptance, judge_delivery
from postprocess.analyses.offer.check.data import PASSES, RULES
from postprocess.analyses.offer.check.offer import OpenedOffer, check_offer, open_offer
from postprocess.analyses.offer.check.official import OfficialSource
from postprocess.analyses.offer.check.violations import Code, Violation
from postprocess.analyses.offer.form.commitments import parse_number
from postprocess.analyses.offer.protocol import (
    ACCEPT,
    build_acceptance_json,
    format_acceptance_csv,
)
from postprocess.analyses.offer.rules.rules_data import hash_rules
from postprocess.analyses.offer.sealed import SealedFolder, verify_seal
from postprocess.analyses.offer.whole_check import CheckedOffer, check_folder
from postprocess.base import files
from postprocess.base.documents.strict_json import parse_json
from postprocess.base.errors import UsageError
from postprocess.base.signature import ACCEPTANCE, OFFER
from postprocess.session.offer.links_verdict import judge_links

OFFERED, MEASURED, LINKS = "offer", "measured", "links"  #: folders of an acceptance
#: What rows say themselves.
TOLD_BY_ROWS = (Code.FEW_LAUNCHES, Code.ROW_MISSING, Code.FAMILY_MISSING)
OF_ROWS = (Code.LAYOUT_NOT_ASKED, Code.CACHE_OTHER)  #: of which a sweep of links has none
ROUNDING = 1e-9  #: relative, between processors
#: Of the protocol, what is compared with what its files say; the operating characteristic is simulated.
COMPARED = (
    *("title", "status", "counts", "broken", "risk", "looks", "spread", "rows", "links"),
    "violations",
)


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
    delivered = open_offer(folder / MEASURED)
    violations = check_measured(delivered, official)
    links = None
    if rules.links and delivered.stored.passes:
        swept = open_links(folder)
        violations += check_measured(swept, official) if swept else []
        evidence = swept.evidence if swept else ()
        machine = delivered.stored.passes[-1].machine
        links = judge_links(rules, rules.links, machine, evidence)
    return judge_delivery(
        rules, offered.offer.rows, offered.commitments, delivered.rows, links
    ), violations


def open_links(folder: Path) -> OpenedOffer | None:
    """Open what was measured of all pairs of nodes; None if nothing was."""
    return open_offer(folder / LINKS) if (folder / LINKS / PASSES).exists() else None


def check_measured(measured: OpenedOffer, official: OfficialSource) -> list[Violation]:
    """Check measurements of an acceptance by the run rules of offers, but for what rows say themselves."""
    besides = (*TOLD_BY_ROWS, *(OF_ROWS if is_sweep(measured) else ()))
    own = [each for each in check_offer(measured, official) if each.code not in besides]
    name = measured.stored.folder.name
    return [replace(each, place=f"{name}/{each.place}") for each in own]


def is_sweep(measured: OpenedOffer) -> bool:
    """Return whether measurements are of all pairs of nodes, whose layout no case asks for."""
    return measured.stored.folder.name == LINKS


def check_acceptance(
    folder: Path,
    official: OfficialSource,
    issued: str = "",
    signers: Path | None = None,
    sealed: bool = True,
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
    for each in (*within.violations, *offered.violations):
        violations.append(replace(each, place=f"{OFFERED}/{each.place}"))
    if offered.commitments is None:
        raise UsageError(f"{folder / OFFERED}: commits to nothing: there is nothing to accept")
    for name in (MEASURED, LINKS):
        path = folder / name / RULES
        if path.exists() and hash_rules(path) != hash_rules(folder / OFFERED / RULES):
            what = "are not those of the offer"
            violations.append(Violation(Code.RULES_OTHER, f"{name}/{RULES}", what))
    found, broken = judge_measured(offered, folder, official)
    violations += compare_protocol(folder, offered, found, broken)
    return CheckedAcceptance(offered, found, tuple(broken), seal, tuple(violations))


def compare_protocol(
    folder: Path, offered: CheckedOffer, found: Acceptance, broken: list[Violation]
) -> Iterator[Violation]:
    """Compare the protocol with what its files say."""
    _, table, data, _ = ACCEPT
    rules = offered.offer.rules
    ours = json.loads(json.dumps(build_acceptance_json(rules, found, broken)))
    try:
        theirs = parse_json(files.read_text(folder / data))
        lines = list(csv.reader(io.StringIO(files.read_text(folder / table))))
    except (OSError, ValueError, csv.Error) as error:
        yield Violation(Code.PROTOCOL_OTHER, data, f"cannot be read: {error}")
        return
    known = theirs if isinstance(theirs, Mapping) else {}
    for key in COMPARED:
        if not is_same(ours[key], known.get(key)):
            yield Violation(Code.PROTOCOL_OTHER, data, f"{key}: is not what the launches say")
    own = list(csv.reader(io.StringIO(format_acceptance_csv(found, broken))))
    if not is_same(own, lines):
        yield Violation(Code.PROTOCOL_OTHER, table, "is not what the launches say")


def is_same(ours: Any, theirs: Any) -> bool:
    """Return whether two values are the same but for the rounding of numbers."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return ours.keys() == theirs.keys() and all(is_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float | int):
        return math.isclose(ours, theirs, rel_tol=ROUNDING)
    if isinstance(ours, str) and isinstance(theirs, str) and ours != theirs:
        numbers = [parse_number(each) for each in (ours, theirs)]  # of a table in texts
        return None not in numbers and is_same(*numbers)
    return type(ours) is type(theirs) and ours == theirs
