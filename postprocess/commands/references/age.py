"""The command ``references age``: find stale references by their files, this machine and its nights."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import polars as pl

from postprocess.base.files import write_summary
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import staleness
from postprocess.calibration.staleness import CaseNights, StaleFinding
from postprocess.cli.options import add_json
from postprocess.cli.parser import WHERE, Parser
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.verdict import JUDGED
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import read_provenance
from postprocess.results import query
from postprocess.results.store import SUFFIX, parse_run_json, read_session
from site_configs.schema.fields import REFERENCE_DAYS
from site_configs.topology.machine import read_machine
from site_configs.validation.site_files import locate_site_file, read_usable_site

SUMMARY = 1  #: version of the findings for programs
COLUMNS = ("key", "session", "started_utc", "value", "unit", "verdict", "mpi_library", "source_hash")

HELP = "List the references that are stale, and why."
EXAMPLE = "./plumbline references age --site mycluster"
FAILS = "a reference is stale"


@dataclass(frozen=True)
class Partition:
    """What a site file tells of a partition."""

    days: int = REFERENCE_DAYS  #: after which a reference is old
    nodes: int = 0  #: 0 if that is not known


def add_arguments(parser: Parser) -> None:
    """Add the site."""
    parser.group(WHERE).add_argument(
        "--site",
        default="local",
        metavar="NAME",
        help="site file, by name or path (default: local, this machine)",
    )
    add_json(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """List what is stale. Returns 1 if something is."""
    return report_age(work, arguments.site, arguments.json, Progress())


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
        data = {"schema": SUMMARY, "stale": len(stale), "findings": [finding.entry() for finding in found]}
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
