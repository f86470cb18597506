"""The command ``references``: what calibrations propose, what is stale, and what is taken back."""

import argparse
import math
import shlex
import shutil
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import polars as pl

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger, staleness
from postprocess.calibration import proposal as proposal_text
from postprocess.calibration.ledger import CalibrationLaunch, recover_interrupted
from postprocess.calibration.proposal import Proposal, propose_references
from postprocess.calibration.samples import CaseSample, collect_samples, list_excluded
from postprocess.calibration.staleness import CaseNights, StaleFinding
from postprocess.calibration.update import recompute_ledger, say_line, select_place, update_references
from postprocess.cli.options import add_json, add_options
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import READ, Command, Parser
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.reference import Reference
from postprocess.model.verdict import JUDGED
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import read_provenance
from postprocess.references.decisions import require_not_rejected
from postprocess.results import query
from postprocess.results.store import SUFFIX, parse_run_json, read_session
from site_configs.schema.fields import REFERENCE_DAYS
from site_configs.topology.machine import read_machine
from site_configs.validation.site_files import locate_site_file, read_usable_site

MOST_ROWS = 40  #: of a table
MOST_LINES = 60  #: of a difference that is printed whole
SUMMARY = 1  #: version of the summary for programs


def add_propose_arguments(parser: Parser) -> None:
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


def run_propose(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show what the calibrations would make of the references. Returns 0."""
    more = [launch for folder in arguments.compare for launch in read_compared_launches(folder)]
    return propose_all(work, arguments.site, arguments.output, arguments.json, Progress(), more)


PROPOSE = Command(
    "./plumbline references propose --site mycluster",
    "",
    add_propose_arguments,
    run_propose,
    help="Write the reference files that follow from the calibrations, and show what they change.",
)


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
            {"place": list(proposal.place), "cases": [change.entry() for change in proposal.changes]}
            for proposal in proposals
        ]
        write_summary(report, {"schema": SUMMARY, "proposals": entries})
    if root != reviewed:
        folders = sorted({str(root / proposal.place[0]) for proposal in proposals})
        progress.say("no reference is changed yet; to change them by a reviewed commit:")
        progress.say_whole(f"  cp -r {shlex.join(folders)} {shlex.quote(str(reviewed))}")
    progress.say("  ./plumbline lint reference_data && git diff reference_data")
    return 0


def build_proposals(measured: Mapping[Case, CaseSample], reviewed: Path) -> list[Proposal]:
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
        progress.say_whole(line)
    difference = proposal.difference(written)
    if root is None or not difference:
        progress.say_whole(f"  written: {written}")
    else:
        file = root / "differences" / f"{'-'.join(proposal.place)}.diff"
        files.replace_files({file: difference.encode()})
        progress.say_whole(f"  written: {written}")
        progress.say_whole(f"  as a difference: {file}")
    lines = difference.splitlines()
    if len(lines) <= MOST_LINES:
        for line in lines:
            progress.say_whole(line.replace("\t", "  "))


AGE_SUMMARY = 1  #: version of the findings for programs
COLUMNS = ("key", "session", "started_utc", "value", "unit", "verdict", "mpi_library", "source_hash")


@dataclass(frozen=True)
class Partition:
    """What a site file tells of a partition."""

    days: int = REFERENCE_DAYS  #: after which a reference is old
    nodes: int = 0  #: 0 if that is not known


def add_age_arguments(parser: Parser) -> None:
    add_options(parser, "--site")
    add_json(parser)


def run_age(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """List what is stale. Returns 1 if something is."""
    return report_age(work, arguments.site, arguments.json, Progress())


AGE = Command(
    "./plumbline references age --site mycluster",
    "a reference is stale",
    add_age_arguments,
    run_age,
    help="List the references that are stale, and why.",
)


def report_age(work: WorkDirectory, site: str, report: Path | None, progress: Progress) -> int:
    """Say what is stale of a site's references; 1 if something is.

    :raises UsageError: if the site, a reference file or the store cannot be read
    """
    partitions = read_partitions(work, site)
    machine = read_machine().as_dict()
    found: list[StaleFinding] = []
    files = cases = 0
    for system in sorted({system for system, _ in partitions}):
        for path in list_reference_files(work, system):
            place = (system, path.parent.name, path.stem)
            known = reference_file.load_references(path, *place)
            origin = read_provenance(path)
            nights = read_nights_since(work, known, origin, progress)
            here = partitions.get(place[:2], Partition())
            name, now = "/".join(place), datetime.now(timezone.utc)
            found += staleness.find_stale(name, known, origin, nights, machine, here.days, now, here.nodes)
            files, cases = files + 1, cases + len(known)
    for finding in found:
        progress.say(str(finding))
    stale = {key for finding in found if finding.stale for key in finding.cases}
    progress.say(
        f"{plural(cases, 'reference')} in {plural(files, 'file')}: {len(stale)} stale"
        + ("; ./plumbline calibrate measures them again" if stale else "")
    )
    if report:
        data = {"schema": AGE_SUMMARY, "stale": len(stale), "findings": [finding.entry() for finding in found]}
        write_summary(report, data)
    return 1 if stale else 0


def read_partitions(work: WorkDirectory, site: str) -> dict[tuple[str, str], Partition]:
    """Read what a site file tells of its partitions, by system and partition.

    :raises UsageError: if the site file is none that can be used
    """
    path = locate_site_file(work.source, site)
    reading = read_usable_site(work, path, only_looking=True)
    return {
        (system["name"], partition["name"]): Partition(
            partition["extras"].get("reference_days", REFERENCE_DAYS), partition["extras"].get("nodes", 0)
        )
        for system in reading.sound_configuration["systems"]
        for partition in system["partitions"]
    }


def list_reference_files(work: WorkDirectory, system: str) -> list[Path]:
    """List the reference files of a system that a night would use: a reviewed one hides a provisional one."""
    found: dict[tuple[str, str], Path] = {}
    for root in reversed(work.reference_roots):
        for path in sorted((root / system).glob("*/*.tsv")):
            found[path.parent.name, path.stem] = path
    return [found[place] for place in sorted(found)]


def read_nights_since(
    work: WorkDirectory, known: Mapping[Case, Reference], origin: Mapping[str, Any], progress: Progress
) -> dict[str, CaseNights]:
    """Read the values of each case since its calibration."""
    since = {case.key: find_calibration_time(case, origin) for case in known}
    if not work.store.is_dir():
        return {}
    frame = query.read_headlines(
        work.store, keys=sorted(since), since=min(since.values()), columns=COLUMNS, say=progress.say
    )
    later = pl.DataFrame({"key": list(since), "since": list(since.values())})
    units = {case.key: reference.unit for case, reference in known.items()}
    frame = frame.join(later, on="key").filter(pl.col("started_utc") > pl.col("since"), pl.col("value") > 0)
    kernels = last_kernels(work.store, frame)
    return dict(group_by_night(frame.iter_rows(named=True), units, kernels))


def last_kernels(store: Path, rows: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Return the kernel under which the last night ran each case, by key and session, as the run record tells.

    The index over all sessions does not have run records: only the files of these last nights are read.
    """
    last = rows.group_by("key").last().select("key", "session")
    found = {}
    for name in sorted(set(last["session"])):
        told = read_session(store / f"{name}{SUFFIX}", ("key", "session", "provenance"))
        for key, session, record in told.select("key", "session", "provenance").iter_rows():
            found[key, session] = record
    parsed = {text: str(parse_run_json(text).get("kernel", "")) for text in set(found.values())}
    return {place: parsed[text] for place, text in found.items()}


def find_calibration_time(case: Case, origin: Mapping[str, Any]) -> str:
    """Find when the reference of a case was measured: the end of its median launch."""
    told = provenance.find_case_calibration(origin["programs"].get(case.program), case.key)
    return provenance.find_calibration_date(told, case.key) if told else ""


def group_by_night(
    rows: Iterable[Mapping[str, Any]], units: Mapping[str, str], kernels: Mapping[tuple[str, str], str]
) -> Iterable[tuple[str, CaseNights]]:
    """Group rows, sorted by key and time: each key's median of every night, and what the last night ran.

    A night with another MPI or in another unit than the reference is held against nothing; that it ran tells.

    :param units: of the references, by key
    :param kernels: by key and session, of last nights
    """
    values: dict[str, dict[str, list[float]]] = {}
    last: dict[str, Mapping[str, str]] = {}
    for row in rows:
        if row["verdict"] in JUDGED and row["unit"] == units[row["key"]]:
            values.setdefault(row["key"], {}).setdefault(row["session"], []).append(row["value"])
        last[row["key"]] = {
            "mpi_library": row["mpi_library"],
            "source_hash": row["source_hash"],
            "kernel": kernels.get((row["key"], row["session"]), ""),
        }
    for key, facts in last.items():
        nights = values.get(key, {}).values()
        yield key, CaseNights([statistics.median(night) for night in nights], facts)


def add_recompute_arguments(parser: Parser) -> None:
    """Add no option."""


def run_recompute(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compute references anew, and say what moved. Returns 0."""
    del arguments
    progress = Progress()
    with work.held():
        found = recompute_ledger(work.root, work.store)
        launches = ledger.read_ledger(work.root)
        plain = [launch for launch in launches if not launch.by_hand]
        paths = update_references(work.provisional, plain, say=say_line(progress.say))
    for path in paths:
        progress.say_whole(f"references: {path}")
    if found.without_trials:
        lost = plural(found.without_trials, "launch", "es")
        progress.say(f"{lost} of {found.launches} have no trials in the store, and stay as they were")
    if not found.moved:
        progress.say(f"nothing moved: {plural(found.launches, 'launch', 'es')} of mpicost looked at")
        return 0
    shifts = [math.exp(statistics.median(some)) - 1 for some in found.moved.values()]
    middle, least, most = statistics.median(shifts), min(shifts), max(shifts)
    progress.say(
        f"{plural(len(found.moved), 'case')} moved: by {middle:+.1%} in the median, "
        f"{least:+.1%} to {most:+.1%}; "
        "./plumbline references propose shows what reviewed references would become"
    )
    return 0


RECOMPUTE = Command(
    "./plumbline references recompute",
    "",
    add_recompute_arguments,
    run_recompute,
    help="Compute provisional references anew from the trials in the store; launch nothing.",
)


FORGOTTEN = ".forgotten"  #: suffix of a file of the ledger that counts no more


def add_forget_arguments(parser: Parser) -> None:
    parser.add_argument("session", metavar="SESSION", help="as the note of its night names it")


def run_forget(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Take a lesson back. Returns 0. Raises UsageError if the session taught nothing."""
    progress, session = Progress(), arguments.session
    with work.held():
        known = {path.stem: path for path in ledger.locate_ledger(work.root).glob("*.json")}
        if session not in known:
            last = ", ".join(sorted(known)[-3:]) or "none"
            raise UsageError(f"{session}: has taught no reference; the last sessions that did: {last}")
        gone, _ = ledger.read_ledger_file(known[session])
        known[session].rename(known[session].with_suffix(FORGOTTEN))
        cases = {Case.from_key(key) for launch in gone for key in launch.values}
        left = ledger.read_ledger(work.root)
        update_references(work.provisional, left, cases, say=say_line(progress.say))
    count = plural(len(gone), "launch", "es")
    progress.say(f"{count} of {plural(len(cases), 'case')} forgotten; kept as {session}{FORGOTTEN}")
    return 0


FORGET = Command(
    "./plumbline references forget 20261125T020000Z-4711",
    "",
    add_forget_arguments,
    run_forget,
    help="Take back what provisional references have learned from a session.",
)


EXAMPLE = "./plumbline references propose"
FAILS = "see the commands below"

COMMANDS = {"propose": PROPOSE, "age": AGE, "recompute": RECOMPUTE, "forget": FORGET}
