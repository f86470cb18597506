"""The command ``dossier``: people decide on a comparison, sign it, and others verify that."""

import argparse
from pathlib import Path

from postprocess.base.formats import parse_decimal
from postprocess.base.progress import Progress
from postprocess.base.sanitize import show_error
from postprocess.base.signature import DOSSIER, find_changes, find_signer, list_sealed_files, seal
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_comma_list
from postprocess.cli.parser import HOW, Command, Parser
from postprocess.features.compare import data, decision
from postprocess.features.compare.judge import judge_comparison
from postprocess.features.compare.page import HTML, JSON, MARKDOWN, find_changed_pages, write_comparison_page
from postprocess.references.decisions import MOST_DAYS


def add_sign_arguments(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the comparison")
    how = parser.group(HOW)
    kinds = how.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--accept", action="store_true", help="the new side may be used")
    kinds.add_argument("--reject", action="store_true", help="it may not; needs --reason")
    how.add_argument(
        "--waive",
        action="append",
        default=[],
        metavar="PATTERN",
        help="accept cases whose keys match although they are not proven fine, as in "
        "'cpu/mpicost/bcast/*'; needs --reason and --until, and names a routine; may be repeated",
    )
    how.add_argument("--reason", default="", metavar="TEXT", help="why it is so decided")
    how.add_argument(
        "--until",
        default="",
        metavar="DATE",
        help=f"last day of the waivers, as 2027-03-31, at most {MOST_DAYS} days ahead",
    )
    how.add_argument(
        "--verdicts",
        type=parse_comma_list,
        default=list(map(str, decision.USUAL)),
        metavar="LIST",
        help=f"what the waivers cover, of {', '.join(map(str, decision.WAIVABLE))} "
        f"(default: {', '.join(map(str, decision.USUAL))}); wrong data never",
    )
    how.add_argument(
        "--factor",
        type=parse_factor,
        metavar="X",
        help="most slowdown that the waivers cover, as in 1.5; needed where a case is slower",
    )
    how.add_argument("--ticket", default="", metavar="TEXT", help="where the waivers are discussed")
    how.add_argument(
        "--key",
        type=Path,
        required=True,
        metavar="FILE",
        help="private key of SSH to sign with, or the public one of a key of the agent",
    )


def parse_factor(text: str) -> float:
    try:
        return parse_decimal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run_sign(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Judge the raw records again, decide, write all pages anew and sign everything."""
    folder = arguments.folder
    judged = judge_comparison(data.read_comparison(folder / data.FILE))
    told = arguments.until, (), tuple(arguments.verdicts), arguments.factor, arguments.ticket
    asked = [decision.CaseWaiver(pattern, arguments.reason, *told) for pattern in arguments.waive]
    found = decision.decide(judged, arguments.accept, asked, arguments.reason)
    write_comparison_page(folder, judged, found)
    decision.write_decision(folder, found)
    seal(folder, arguments.key, DOSSIER)
    Progress().say(f"{folder}: {found.decision}: {found.sentence}")
    return 0


SIGN = Command(
    "./plumbline dossier sign DIR --accept --key ~/.ssh/id_ed25519",
    "",
    add_sign_arguments,
    run_sign,
    help="Accept or reject what a comparison says, and sign the dossier with all that it rests on.",
)


#: Files of a dossier that are computed anew, or that others are computed from.
COMPUTED = (data.FILE, decision.FILE, HTML, MARKDOWN, JSON)


def add_verify_arguments(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the comparison")
    parser.group(HOW).add_argument(
        "--signers",
        type=Path,
        required=True,
        metavar="FILE",
        help="who may sign: lines NAME KEY, as ssh-keygen(1) has its allowed signers",
    )


def run_verify(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    signer = find_signer(folder, arguments.signers, DOSSIER)
    faults = [*find_changes(folder)]
    if not faults:
        signed = decision.read_decision(folder)
        judged = judge_comparison(data.read_comparison(folder / data.FILE))
        if fault := decision.find_decision_fault(judged, signed):
            faults.append(f"{decision.FILE}: {fault}")
        faults += find_changed_pages(folder, judged, signed)
        faults += [
            f"waiver of {waiver.pattern}: was until {waiver.until}" for waiver in decision.list_expired(signed)
        ]
        Progress().say(f"{folder}: {signed.decision} by {signer} at {signed.decided_utc}: {signed.sentence}")
        for line in [*decision.tell_waivers(signed), *list_unchecked(folder)]:
            Progress().say(f"  {line}")
    for each in faults:
        show_error(each)
    return 1 if faults else 0


VERIFY = Command(
    "./plumbline dossier verify DIR --signers allowed_signers",
    "a file or page was changed, went or came, a decision would not be signed, or a waiver is over",
    add_verify_arguments,
    run_verify,
    help="Verify who signed a dossier, that nothing in it changed, and that its waivers hold.",
)


def list_unchecked(folder: Path) -> list[str]:
    """List the files that nothing computes: they are as they were signed, and that is all."""
    names = [file for file in list_sealed_files(folder) if file not in COMPUTED]
    return [f"{name}: as it was signed; nothing here computes it" for name in names]


EXAMPLE = "./plumbline dossier sign compare/20261123T120000Z --accept --key ~/.ssh/id_ed25519"
FAILS = "see the commands below"

COMMANDS = {"sign": SIGN, "verify": VERIFY}
