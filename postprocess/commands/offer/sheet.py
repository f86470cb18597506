"""The command ``offer sheet``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from postprocess.analyses.offer.check.data import COMMITMENTS, RULES
from postprocess.analyses.offer.check.offer import OpenedOffer, open_offer
from postprocess.analyses.offer.check.violations import (
    describe_violations,
    format_violations,
    is_rejected,
)
from postprocess.analyses.offer.form.commitments import (
    check_commitments,
    read_commitments,
    take_form,
    write_commitments,
)
from postprocess.analyses.offer.form.page import FORM_HTML, write_form_page
from postprocess.analyses.offer.form.rows import Cell, FormRow, build_form, show
from postprocess.analyses.offer.form.spreadsheet import CSV, XLSX, format_csv, read_form, write_xlsx
from postprocess.analyses.offer.rules.rules_data import hash_rules
from postprocess.base.files import write_output
from postprocess.base.formats import plural
from postprocess.base.sanitize import show_line
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import READ, Parser

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
    names = ", ".join((XLSX, CSV, FORM_HTML))
    print(f"{folder}: {names}: {plural(len(rows), 'row')}; type what you commit to, then:")
    print(f"  ./plumbline offer sheet {folder} --read {folder / XLSX}")
    return 0


def take(folder: Path, offer: OpenedOffer, rows: list[FormRow], path: Path) -> int:
    """Take what was typed, and keep it if nothing was altered. Returns the exit status."""
    found, wrong = take_form(rows, read_form(path), path.name)
    if not wrong:
        write_commitments(folder, hash_rules(folder / RULES), found)
        kept = read_commitments(folder)
        wrong = list(check_commitments(offer.rules, offer.told, offer.rows, offer.evidence, kept))
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
    typed = list_typed(folder, rows)
    code = hash_rules(folder / RULES)
    title = f"{offer.rules.title}: offer of {offer.told.offeror or 'somebody'}"
    write_output(folder / CSV, format_csv(rows, typed))
    write_xlsx(folder / XLSX, title, code, rows, typed)
    facts = [f"rules {code}", f"{offer.told.system}, {offer.told.interconnect}".strip(", ")]
    write_form_page(folder / FORM_HTML, title, [each for each in facts if each], rows, typed)


def list_typed(folder: Path, rows: list[FormRow]) -> Mapping[str, Mapping[str, Cell]]:
    """List what was typed before, in the unit that people read."""
    if not (folder / COMMITMENTS).exists():
        return {}
    units = {row.key.key: row.unit for row in rows}
    return {
        each.key: {
            "committed": show(each.committed, units[each.key]),
            "projected": show(each.projected, units[each.key]),
            "model": each.model or None,
        }
        for each in read_commitments(folder).rows
        if each.key in units
    }
