"""The command ``references propose``: write new reference files, and show what they change."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger
from postprocess.calibration import proposal as proposal_text
from postprocess.calibration.ledger import CalibrationLaunch, recover_interrupted
from postprocess.calibration.proposal import Proposal, propose_references
from postprocess.calibration.samples import CaseSample, collect_samples, list_excluded
from postprocess.calibration.update import select_place
from postprocess.cli.options import add_json
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import READ, Parser
from postprocess.model.case import Case, ReferencePlace
from postprocess.references import reference_file
from postprocess.references.decisions import require_not_rejected

MOST_ROWS = 40  #: of a table
MOST_LINES = 60  #: of a difference that is printed whole
SUMMARY = 1  #: version of the summary for programs

HELP = "Write the reference files that follow from the calibrations, and show what they change."
EXAMPLE = "./plumbline references propose --site mycluster"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the options that choose calibrations, and where the files go."""
    parser.group(READ).add_argument(
        "--site", metavar="NAME", help="only the calibrations of this site (default: all)"
    )
    add_output_directory(
        parser, "--output", "write reference files to DIR (default: proposal/ of the work directory)"
    )
    add_json(parser)
    parser.group(READ).add_argument(
        "--compare",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="take the launches of the new side of a comparison too, by its directory; may be repeated",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show what the calibrations would make of the references. Returns 0."""
    more = [launch for folder in arguments.compare for launch in read_compared_launches(folder)]
    return propose_all(work, arguments.site, arguments.output, arguments.json, Progress(), more)


def read_compared_launches(folder: Path) -> list[CalibrationLaunch]:
    """Read the launches of the new side of a comparison, as those of a calibration.

    :raises UsageError: if there are none, or the new side was rejected
    """
    found = ledger.read_ledger(folder)
    if not found:
        raise UsageError(f"--compare {folder}: has no launch of a new side; name a comparison")
    require_not_rejected(folder)
    return found


def propose_all(
    work: WorkDirectory,
    system: str | None,
    output: Path | None,
    report: Path | None,
    progress: Progress,
    more: Sequence[CalibrationLaunch] = (),
) -> int:
    """Write the reference files that follow from the calibrations, beside those that are stored; always 0.

    :param more: launches beside those of the ledger
    :raises UsageError: if there is no calibration, or a stored file is damaged
    """
    with work.held():
        for line in recover_interrupted(work.root):
            progress.say(line)
    told = sorted([*ledger.read_ledger(work.root), *more], key=lambda each: each.ended_utc)
    known = [launch for launch in told if system in (None, launch.place[0])]
    if not known:
        where = f" of site {system}" if system else ""
        raise UsageError(f"{ledger.locate_ledger(work.root)}: no launch{where}; ./plumbline calibrate")
    root = (output or work.root / "proposal").absolute()
    if output is None:
        shutil.rmtree(root, ignore_errors=True)
    reviewed = work.source / "reference_data"
    proposals = build_proposals(collect_samples(known), reviewed)
    for each in proposals:
        show_proposal(each, each.write(root), None if root == reviewed else root, progress)
    for line in proposal_text.describe_excluded(list_excluded(known)):
        progress.say(line)
    if report:
        entries = [
            {"place": list(each.place), "cases": [change.entry() for change in each.changes]}
            for each in proposals
        ]
        write_summary(report, {"schema": SUMMARY, "proposals": entries})
    if root != reviewed:
        folders = sorted({str(root / each.place[0]) for each in proposals})
        progress.say("no reference is changed yet; to change them by a reviewed commit:")
        progress.say(f"  cp -r {shlex.join(folders)} {shlex.quote(str(reviewed))}")
    progress.say("  ./plumbline lint reference_data && git diff reference_data")
    return 0


def build_proposals(measured: Mapping[Case, CaseSample], reviewed: Path) -> list[Proposal]:
    """Build one proposal for each place that was calibrated."""
    places = sorted({ReferencePlace.of(case) for case in measured})
    return [
        propose_references(
            place, select_place(measured, place), reference_file.find_reference_file([reviewed], *place)
        )
        for place in places
    ]


def show_proposal(proposal: Proposal, written: Path, root: Path | None, progress: Progress) -> None:
    """Print what a proposal changes, and keep the difference below ``root``, if there is one."""
    for line in proposal_text.format_proposal(proposal, MOST_ROWS):
        progress.say(line)
    difference = proposal.difference(written)
    if root is None or not difference:
        progress.say(f"  written: {written}")
    else:
        file = root / "differences" / f"{'-'.join(proposal.place)}.diff"
        files.replace_files({file: difference.encode()})
        progress.say(f"  written: {written}; as a difference: {file}")
    lines = difference.splitlines()
    if len(lines) <= MOST_LINES:
        for line in lines:
            progress.say(line.replace("\t", "  "))
