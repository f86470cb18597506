"""Which files the options of a command may write: none that would destroy what somebody else needs."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.files import open_regular, read_regular
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import OUTPUT, Parser

#: One of these keys is in every summary that ``--json`` writes,
SIGNS = ("schema", "session", "looked_at", "plants")
#: and one of these, which no inventory, manifest of a mirror or other file with a schema has.
FINDINGS = (
    *("cases", "counts", "failures", "findings", "good", "looked_at", "months"),
    *("plants", "proposals", "rows", "scores"),
)
LARGEST = 64_000_000  #: bytes of a summary that is read to recognise it
#: Folders of the work directory: no result is written to the first ones, and no single file to the others.
DATA = ("sessions", "store", "calibrations", "spack", "build", "programs", "venv", "mpi")
RESULTS = (
    *("references", "proposal", "drift", "selftest", "bindings"),
    *("compare", "offer", "offers", "accept"),
)
FIX = "choose another file, or pass --force"

#: Of an export, offers and acceptances as CSV, pages in Markdown, a sealed folder, pages, JUnit's XML and
#: OpenMetrics of ours.
BEGINNINGS = (
    b"session,",
    b"offer,case,demand,",
    b"row,demand,verdict,",
    b"# Plumbline acceptance: ",
    b"# Plumbline drift: ",
    b"# Plumbline offers: ",
    b"manifest.txt\0",
    b"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
""",
    b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="plumbline"',
    b"# HELP plumbline_",
)


def add_output_file(parser: Parser, option: str, text: str) -> None:
    """Add an option that names a file to write, and once per command ``--force``."""
    group = parser.group(OUTPUT)
    made = group.add_argument(option, type=Path, metavar="FILE", help=text)
    files = parser.get_default("output_files") or {}
    parser.set_defaults(output_files={**files, made.dest: option})
    if not files:
        group.add_argument(
            "--force",
            action="store_true",
            help="write over a file that Plumbline did not write, or one of its own data",
        )


def add_output_directory(parser: Parser, option: str, text: str, pages: Sequence[str] = (), **how: Any) -> None:
    """Add an option that names a directory to write to.

    :param pages: names of files that are written there anew
    """
    made = parser.group(OUTPUT).add_argument(option, type=Path, metavar="DIR", help=text, **how)
    parser.set_defaults(output_directory=(made.dest, option, pages))


def check_outputs(work: WorkDirectory, arguments: argparse.Namespace) -> None:
    """Check all that a command line asks to be written, before anything is done.

    :raises UsageError: naming option, path and fix.
    """
    given: Mapping[str, Any] = vars(arguments)
    for dest, option in given.get("output_files", {}).items():
        if (path := given[dest]) is not None:
            check_output_file(work, option, path, given["force"])
    dest, option, pages = given.get("output_directory", ("", "", ()))
    if (path := given.get(dest)) is None:
        return
    if is_in(work, DATA, path):
        raise UsageError(f"{option} {path}: holds Plumbline's own data; choose another directory")
    check_output_directory(option, path)
    for page in pages:
        check_page(option, path / page)


def check_output_directory(option: str, path: Path) -> None:
    """Refuse a directory that cannot be made or written, before anything is measured for it.

    :raises UsageError: naming option, path and fix.
    """
    whole = path.absolute()
    there = next(each for each in (whole, *whole.parents) if os.path.lexists(each))
    if not there.is_dir():
        raise UsageError(f"{option} {path}: {there} is not a directory; choose another directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: {there} may not be written; choose another directory")


def check_page(option: str, path: Path) -> None:
    """Refuse to write anew, below a directory that a user chose, what Plumbline did not write.

    :raises UsageError: naming option, path and fix.
    """
    if os.path.lexists(path) and not is_own_output(path):
        what = "is there, and no output of Plumbline"
        raise UsageError(f"{option} {path}: {what}; choose another directory")


def check_output_file(work: WorkDirectory, option: str, path: Path, force: bool) -> None:
    """Refuse a file that cannot be written, and one that must not be.

    A pipe or a device is written to as it is. Nothing is changed.

    :raises UsageError: naming option, path and fix.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise UsageError(f"{option} {path}: is a folder; name a file")
    if target.exists() and not target.is_file():
        return
    if not target.parent.is_dir():
        problem = "is not a directory" if target.parent.exists() else "is not there"
        raise UsageError(f"{option} {path}: {target.parent} {problem}; choose another file")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise UsageError(f"{option} {path}: may not be written; choose another file")
    if force:
        return
    if is_in(work, (*DATA, *RESULTS), target) or is_within(target, work.source / "reference_data"):
        raise UsageError(f"{option} {path}: is a place of Plumbline's own data; {FIX}")
    if target.exists() and not is_own_output(target):
        raise UsageError(f"{option} {path}: is there, and no output of Plumbline; {FIX}")


def is_in(work: WorkDirectory, folders: Sequence[str], path: Path) -> bool:
    """Return whether a path is in one of these folders of the work directory."""
    return any(is_within(path, work.root / name) for name in folders)


def is_within(path: Path, folder: Path) -> bool:
    """Return whether a path is a folder or below it, links followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def is_own_output(path: Path) -> bool:
    """Return whether a file is empty, a summary in any form, or an export: what an option may have written."""
    try:
        if path.stat().st_size > LARGEST:
            with open_regular(path) as stream:
                return stream.read(1000).startswith(BEGINNINGS)
        data = read_regular(path)
    except OSError:
        return False
    if not data or data.startswith(BEGINNINGS):
        return True
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and all(told.keys() & set(keys) for keys in (SIGNS, FINDINGS))
