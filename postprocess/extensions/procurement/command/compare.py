"""The command ``offer compare``."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import render_text
from postprocess.base.sanitize import sanitize_line, show_line
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import HOW, Parser
from postprocess.extensions.procurement import comparison
from postprocess.extensions.procurement.check.builds import OfficialSource
from postprocess.extensions.procurement.check.offer import OpenedOffer, open_offer
from postprocess.extensions.procurement.check.run_rules import HandedIn, find_shared_launches
from postprocess.extensions.procurement.check.violations import format_violations
from postprocess.extensions.procurement.measure.run import locate_folder
from postprocess.extensions.procurement.rules.rules import Rules, hash_rules, read_rules
from postprocess.extensions.procurement.sealed import UNKNOWN, check_opened, unpacked

HELP = "Show sealed offers side by side: must rows, scores, ratios, means over common rows."
EXAMPLE = "./plumbline offer compare A.tar B.tar --rules rules.toml --signers allowed_signers"
FAILS = "no offer keeps every must row without a violation"


def add_arguments(parser: Parser) -> None:
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


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compare offers. Returns the exit status."""
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
                show_line(f"plumbline: {path}: {line}", error=True)
            rules[checked.offer.stored.header.rules] = checked.offer.rules
            seal = checked.seal
            if seal and not seal.signer:
                show_line(f"plumbline: {path}: signed by {seal.by}: {UNKNOWN}", error=True)
            name = sanitize_line(checked.offer.told.offeror) or path.stem
            names = {other.name for other in ranked}
            unique = name if name not in names else f"{name} ({path.stem})"
            launches = tuple(each.marks for each in checked.offer.evidence)
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
        launches = tuple(each.marks for each in measured.evidence)
        handed.append(HandedIn(f"--present {arguments.present}", "", launches))
    shared = find_shared_launches(handed)
    for each in shared:
        show_line(f"plumbline: {each.format()}", error=True)
    guilty = Counter(name for each in shared if each.grave for name in each.names)
    ranked = [replace(offer, violations=offer.violations + guilty[offer.name]) for offer in ranked]
    told = [each.text for each in shared]
    found = comparison.compare_offers(next(iter(rules.values())), ranked, present, told)
    page = comparison.write_comparison(locate_folder(arguments.output, work, "offers"), found)
    for table in (comparison.tabulate_scores(found), *comparison.tabulate_rows(found)):
        print(render_text(table))
    show_line(f"{comparison.describe_outcome(found)}; {page}")
    return 0 if found.scores[0].is_responsive else 1


def read_present(folder: Path, code: str) -> OpenedOffer:
    """Read what was measured of the buyer's present system.

    :param code: hash of the rules of the offers
    :raises UsageError: if it was not measured, or by other rules
    """
    measured = open_offer(folder)
    if measured.stored.header.rules != code:
        raise UsageError(f"--present {folder}: was measured by other rules than the offers; measure it again")
    return measured
