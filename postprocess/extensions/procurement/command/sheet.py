"""The command ``offer sheet``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.sanitize import show_line
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import READ, Parser
from postprocess.extensions.procurement.check.offer import COMMITMENTS, RULES, OpenedOffer, open_offer
from postprocess.extensions.procurement.check.violations import (
    describe_violations,
    format_violations,
    is_rejected,
)
from postprocess.extensions.procurement.form import commitments
from postprocess.extensions.procurement.form.rows import FormRow, build_form
from postprocess.extensions.procurement.form.spreadsheet import CSV, XLSX, read_form
from postprocess.extensions.procurement.rules.rules import hash_rules

HELP = "Write the form of an offer as CSV, spreadsheet and page; or read back what was typed."
EXAMPLE = "./plumbline offer sheet offer --read offer/offer.xlsx"
FAILS = "a cell was altered, is impossible, or nothing was typed where something must be"


def add_arguments(parser: Parser) -> None:
    """Add the folder, and the form that is read back."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the offer")
    parser.group(READ).add_argument(
        "--read", type=Path, metavar="FILE", help="take what was typed into this form, CSV or XLSX"
    )


def run(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the form, or read it. Returns the exit status."""
    folder = arguments.folder
    offer = open_offer(folder)
    rows = build_form(offer)
    if arguments.read:
        return take(folder, offer, rows, arguments.read)
    write(folder, offer, rows)
    for each in offer.unmeasured:
        show_line(each.words)
    names = ", ".join((XLSX, CSV, commitments.FORM_HTML))
    print(f"{folder}: {names}: {plural(len(rows), 'row')}; type what you commit to, then:")
    print(f"  ./plumbline offer sheet {folder} --read {folder / XLSX}")
    return 0


def take(folder: Path, offer: OpenedOffer, rows: list[FormRow], path: Path) -> int:
    """Take what was typed, and keep it if nothing was altered. Returns the exit status."""
    found, wrong = commitments.take_form(rows, read_form(path), path.name)
    if not wrong:
        commitments.write_commitments(folder, hash_rules(folder / RULES), found)
        kept = commitments.read_commitments(folder)
        wrong = list(commitments.check_commitments(offer.rules, offer.told, offer.rows, offer.evidence, kept))
        write(folder, offer, rows)
    for line in format_violations(wrong):
        show_line(f"plumbline: {line}", error=True)
    typed = sum(each.committed is not None for each in found)
    print(f"{path}: {plural(typed, 'commitment')}: {describe_violations(wrong)}")
    if not is_rejected(wrong):
        print(f"  ./plumbline offer seal {folder} --key ~/.ssh/id_ed25519")
    return int(is_rejected(wrong))


def write(folder: Path, offer: OpenedOffer, rows: list[FormRow]) -> None:
    """Write the form in all three forms, with what was typed before."""
    kept = commitments.read_commitments(folder) if (folder / COMMITMENTS).exists() else None
    try:
        pages = commitments.render_form(offer, rows, kept)
        files.replace_files({folder / name: data for name, data in pages.items()})
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; choose another folder") from None
