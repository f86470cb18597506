"""The command ``offer seal``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.sanitize import show_line
from postprocess.base.signature import OFFER
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.output_files import add_output_file, check_output_file
from postprocess.cli.parser import HOW, Parser
from postprocess.extensions.procurement.check.builds import OfficialSource
from postprocess.extensions.procurement.check.offer import SEALED, write_sealed
from postprocess.extensions.procurement.check.violations import (
    describe_violations,
    format_violations,
    is_rejected,
)
from postprocess.extensions.procurement.sealed import check_folder, seal_archive

HELP = "Sign an offer and pack it into one file."
EXAMPLE = "./plumbline offer seal offer --key ~/.ssh/id_ed25519 --output A.tar"
FAILS = "the offer has a violation"


def add_arguments(parser: Parser) -> None:
    """Add folder, key and file."""
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


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Check, sign and pack an offer. Returns the exit status."""
    folder = arguments.folder
    path = arguments.output or folder.with_name(f"{folder.name}.tar")
    if path.absolute().is_relative_to(folder.absolute()):
        raise UsageError(f"--output {path}: is in the folder that is sealed; choose another place")
    check_output_file(work, "--output", path, arguments.force)
    (folder / SEALED).unlink(missing_ok=True)
    found = list(check_folder(folder, OfficialSource(work.source), final=True).violations)
    for line in format_violations(found):
        show_line(f"plumbline: {line}", error=True)
    if is_rejected(found) and not arguments.incomplete:
        print(f"{folder}: {describe_violations(found)}: not sealed (--incomplete seals it)")
        return 1
    write_sealed(folder)
    root = seal_archive(folder, arguments.key, OFFER, path)
    print(f"{path}: sealed, {describe_violations(found)}; root {root}")
    return 0
