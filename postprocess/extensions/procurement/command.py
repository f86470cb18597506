"""The command ``offer``: rules of a procurement, and offers that check themselves."""

import argparse
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.sanitize import show_error
from postprocess.base.signature import OFFER
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import CalibrationHeader, append_launches, collect_launches, locate_ledger
from postprocess.cli.option_types import parse_assignment
from postprocess.cli.options import SITE, add_options
from postprocess.cli.output_files import add_output_directory, add_output_file, check_output_file
from postprocess.cli.parser import HOW, READ, WHAT, Command, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.procurement import commitments, violations
from postprocess.extensions.procurement.accept import MEASURED, check_acceptance, is_acceptance
from postprocess.extensions.procurement.builds import OfficialSource
from postprocess.extensions.procurement.check_command import CHECK, COMPARE, add_nics, print_offer
from postprocess.extensions.procurement.form_rows import FormRow, build_form
from postprocess.extensions.procurement.measure import MENDED_BY_PASSES, OfferDemand, locate_folder, run_offer
from postprocess.extensions.procurement.offer import (
    COMMITMENTS,
    RULES,
    SEALED,
    TELL,
    OpenedOffer,
    locate_session,
    open_offer,
    write_sealed,
)
from postprocess.extensions.procurement.rules.rules import hash_rules, list_rule_sets, read_rule_set
from postprocess.extensions.procurement.run_rules import check_offer
from postprocess.extensions.procurement.sealed import check_folder, seal_archive
from postprocess.extensions.procurement.spreadsheet import CSV, XLSX, read_form
from spack_envs.installation import read_program


def add_new_arguments(parser: Parser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="rules to write")
    parser.group(WHAT).add_argument(
        "--set", choices=list_rule_sets(), default="quick", help="what to start from (default: %(default)s)"
    )


def run_new(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    path = arguments.file
    try:
        files.create_file(path, read_rule_set(arguments.set).encode())
    except FileExistsError:
        raise UsageError(f"{path}: is there already; choose another name") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; choose another place") from None
    Progress().say(f"{path}: change it into your own rules, then", command=f"./plumbline offer check {path}")
    return 0


NEW = Command(
    "./plumbline offer new rules.toml --set osu",
    "",
    add_new_arguments,
    run_new,
    help="Write a commented set of rules to start from.",
)


def add_run_arguments(parser: Parser) -> None:
    parser.add_argument("rules", type=Path, metavar="FILE", help="rules")
    add_output_directory(
        parser, "--output", "measure into DIR, or go on with it (default: offer/ of the work directory)"
    )
    add_options(parser, *SITE, "--partition", "--environment")
    add_nics(parser)
    how = parser.group(HOW)
    how.add_argument(
        "--category",
        default="baseline",
        metavar="NAME",
        help="category of the rules that this is measured in (default: baseline)",
    )
    add_options(parser, "--launches", launches="launches of each row, if more than the rules ask for")
    how.add_argument(
        "--set-env",
        type=parse_assignment,
        action="append",
        default=[],
        metavar="ENVIRONMENT:NAME=VALUE",
        help="set a variable for the launches of one environment, where the category allows it",
    )
    parser.set_defaults(time_limit=None)


def run_measure(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure an offer, then check it. Returns the exit status."""
    folder = locate_folder(arguments.output, work, "offer")
    demand = OfferDemand(
        arguments.rules.absolute(),
        folder,
        arguments.category,
        arguments.nics_per_node,
        least=arguments.launches,
    )
    arguments.launches = arguments.output = None
    request = build_request(work, arguments)
    progress = Progress()
    run_offer(work, request, demand, progress)
    found = check_folder(folder, OfficialSource(work.source))
    status = print_offer(folder, found)
    for step, words in list_next_steps(folder, found.violations, request.command):
        progress.say(f"next: {step}", command=shlex.join(words))
    return status


TOLD_BADLY = (violations.Code.TOLD_MISSING, violations.Code.TOLD_DAMAGED)


def list_next_steps(
    folder: Path, found: Iterable[violations.Violation], run: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """List what to do next with an offer that was measured, each with its command."""
    grave = {violation.code for violation in found if violation.code.grave}
    mine = grave - {*MENDED_BY_PASSES, *TOLD_BADLY}
    check = ["./plumbline", "offer", "check", str(folder)]
    if grave & {*MENDED_BY_PASSES}:
        yield "Measure the launches that are missing; the command continues where it stopped", list(run)
    if grave & {*TOLD_BADLY}:
        yield f"Write the missing facts into {folder / TELL}, then check again", check
    if mine:
        yield "Mend what each violation says at its end, then check again", check
    if not grave:
        yield "Write the form, and type what you commit to", ["./plumbline", "offer", "sheet", str(folder)]


RUN = Command(
    "./plumbline offer run rules.toml --site bidder --output offer",
    "the offer has a violation",
    add_run_arguments,
    run_measure,
    help="Measure what rules ask for, into one folder; the same command goes on where it stopped.",
)


def add_sheet_arguments(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the offer")
    parser.group(READ).add_argument(
        "--read", type=Path, metavar="FILE", help="take what was typed into this form, CSV or XLSX"
    )


def run_sheet(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the form, or read it. Returns the exit status."""
    folder = arguments.folder
    offer = open_offer(folder)
    rows = build_form(offer)
    if arguments.read:
        return take(folder, offer, rows, arguments.read)
    write(folder, offer, rows)
    progress = Progress()
    for mpi in offer.unmeasured:
        progress.say(mpi.words)
    names = ", ".join((XLSX, CSV, commitments.FORM_HTML))
    read = f"./plumbline offer sheet {folder} --read {folder / XLSX}"
    progress.say(f"{folder}: {names}: {plural(len(rows), 'row')}; type what you commit to, then", command=read)
    return 0


SHEET = Command(
    "./plumbline offer sheet offer --read offer/offer.xlsx",
    "a cell was altered, is impossible, or nothing was typed where something must be",
    add_sheet_arguments,
    run_sheet,
    help="Write the form of an offer as CSV, spreadsheet and page; or read back what was typed.",
)


def take(folder: Path, offer: OpenedOffer, rows: list[FormRow], path: Path) -> int:
    """Take what was typed, and keep it if nothing was altered. Returns the exit status."""
    found, wrong = commitments.take_form(rows, read_form(path), path.name)
    if not wrong:
        commitments.write_commitments(folder, hash_rules(folder / RULES), found)
        kept = commitments.read_commitments(folder)
        wrong = list(commitments.check_commitments(offer, kept))
        write(folder, offer, rows)
    for line in violations.format_violations(wrong):
        show_error(line)
    typed = sum(commitment.committed is not None for commitment in found)
    seal = "" if violations.is_rejected(wrong) else f"./plumbline offer seal {folder} --key ~/.ssh/id_ed25519"
    told = f"{path}: {plural(typed, 'commitment')}: {violations.describe_violations(wrong)}"
    Progress().say(told, command=seal)
    return int(violations.is_rejected(wrong))


def write(folder: Path, offer: OpenedOffer, rows: list[FormRow]) -> None:
    """Write the form in all three forms, with what was typed before."""
    kept = commitments.read_commitments(folder) if (folder / COMMITMENTS).exists() else None
    with explaining(folder, "choose another folder"):
        pages = commitments.render_form(offer, rows, kept)
        files.replace_files({folder / name: data for name, data in pages.items()})


def add_seal_arguments(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the offer")
    how = parser.group(HOW)
    how.add_argument(
        "--key",
        type=Path,
        required=True,
        metavar="FILE",
        help="private key of SSH to sign with, or the public one of a key of the agent",
    )
    how.add_argument(
        "--incomplete",
        action="store_true",
        help="seal it in spite of violations, which every check names again",
    )
    add_output_file(parser, "--output", "write the archive to FILE (default: DIR.tar)")


def run_seal(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Check, sign and pack an offer. Returns the exit status."""
    folder = arguments.folder
    path = arguments.output or folder.with_name(f"{folder.name}.tar")
    if path.absolute().is_relative_to(folder.absolute()):
        raise UsageError(f"--output {path}: is in the folder that is sealed; choose another place")
    check_output_file(work, "--output", path, arguments.force)
    (folder / SEALED).unlink(missing_ok=True)
    found = list(check_folder(folder, OfficialSource(work.source), final=True).violations)
    for line in violations.format_violations(found):
        show_error(line)
    if violations.is_rejected(found) and not arguments.incomplete:
        told = violations.describe_violations(found)
        Progress().say(f"{folder}: {told}: not sealed (--incomplete seals it)")
        return 1
    write_sealed(folder)
    root = seal_archive(folder, arguments.key, OFFER, path)
    Progress().say(f"{path}: sealed, {violations.describe_violations(found)}; root {root}")
    return 0


SEAL = Command(
    "./plumbline offer seal offer --key ~/.ssh/id_ed25519 --output A.tar",
    "the offer has a violation",
    add_seal_arguments,
    run_seal,
    help="Sign an offer and pack it into one file.",
)


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
            own = [evidence for evidence in offer.evidence if evidence.done.number == done.number]
            finished = [
                evidence.finish(
                    read_program(evidence.session, evidence.launch.environment, evidence.launch.program)
                )
                for evidence in own
            ]
            session = locate_session(offer.stored.folder, done.session)
            found = collect_launches(header, session, finished, done.others)
            append_launches(work.root, done.session, found)
            entered += len(found)
    if not entered:
        raise UsageError(f"{offer.stored.folder}: nothing new to enter; all of it is in the ledger")
    return entered


def add_references_arguments(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the acceptance, or of an offer")


def run_references(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Enter launches in the ledger. Returns the exit status."""
    folder, official = arguments.folder, OfficialSource(work.source)
    if is_acceptance(folder):
        accepted = check_acceptance(folder, official, sealed=False)
        found = [*accepted.violations, *accepted.broken]
        offer = open_offer(folder / MEASURED)
    else:
        offer = open_offer(folder)
        every = check_offer(offer, official)
        found = [violation for violation in every if violation.code not in MENDED_BY_PASSES]
    if violations.is_rejected(found):
        for line in violations.format_violations(violation for violation in found if violation.code.grave):
            show_error(f"{folder}: {line}")
        return 1
    entered = enter_launches(work, offer)
    Progress().say(f"{plural(entered, 'launch', 'es')} entered; ./plumbline references propose")
    return 0


REFERENCES = Command(
    "./plumbline offer references accept",
    "the launches broke a run rule, or are none of the delivered machine",
    add_references_arguments,
    run_references,
    help="Enter the launches of an accepted machine in the ledger, for ./plumbline references propose.",
)


EXAMPLE = "./plumbline offer new rules.toml"
FAILS = "see the commands below"

COMMANDS = {
    "new": NEW,
    "check": CHECK,
    "run": RUN,
    "sheet": SHEET,
    "seal": SEAL,
    "compare": COMPARE,
    "references": REFERENCES,
}
