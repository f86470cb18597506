"""Turns a calibration into reference files. Rows that were not measured now stay as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postprocess import provenance, references
from postprocess.calibration import calibrate
from postprocess.cases import Case
from postprocess.errors import UsageError
from postprocess.judgement import Finished
from postprocess.reference_book import method_of
from postprocess.summary_file import Session, utc_now
from site_configs.machine import read_machine


def samples(finished: Sequence[Finished]) -> dict[Case, list[float]]:
    """Headlines in seconds by case, one per launch. A case of which a launch failed has none at all."""
    spoilt = {case for each in finished if not each.run for case in each.launch.cases}
    found: dict[Case, list[float]] = {}
    for each in finished:
        for case in each.launch.cases:
            if case not in spoilt:
                found.setdefault(case, []).append(each.records[case.variable].summary.headline)
    return found


def update(
    root: Path, session: Session, finished: Sequence[Finished], only: set[Case] | None
) -> list[Path]:
    """Write the references that follow from these launches below ``root``; return the files.

    :param only: cases that may be written; None for all. An automatic calibration never moves a
        reference that exists: it names the cases that have none.
    :raises UsageError: if an existing file was measured by another method, is damaged or cannot be written.
    """
    measured = samples(finished)
    chosen = {case: values for case, values in measured.items() if only is None or case in only}
    written = []
    for place in sorted({(case.system, case.partition, case.environment) for case in chosen}):
        here = {case: values for case, values in chosen.items() if place_of(case) == place}
        launches = [
            each for each in finished if each.run and place_of(each.launch.cases[0]) == place
        ]
        written.append(write_place(root, place, here, launches, session))
    return written


def place_of(case: Case) -> tuple[str, str, str]:
    """System, partition and environment: what one reference file is about."""
    return case.system, case.partition, case.environment


def write_place(
    root: Path,
    place: tuple[str, str, str],
    measured: dict[Case, list[float]],
    launches: Sequence[Finished],
    session: Session,
) -> Path:
    """Write one reference file, new rows in the place of old ones."""
    path = references.location(root, *place)
    origin = provenance_of(launches[0], session, measured)
    rows = {}
    if path.exists():
        rows = references.load(path, *place)
        origin = joined(path, json.loads(provenance.beside(path).read_text()), origin)
    rows |= {reference.case: reference for reference in calibrate(measured)}
    references.write(path, rows.values(), origin)
    return path


def provenance_of(
    launch: Finished, session: Session, measured: dict[Case, list[float]]
) -> dict[str, Any]:
    """Where new references come from: what ran, on what, when, and every value behind them."""
    run = launch.run
    return {
        "date_utc": utc_now(),
        "mpi_library": run["mpi_library"],
        "suite_version": run["suite_version"],
        "source_hash": run["source_hash"],
        "spec": launch.spec,
        "compiler": run.get("compiler", ""),
        "machine": read_machine().as_dict(),
        "method": method_of(run),
        "sessions": [session.name],
        "headlines": {case.key: values for case, values in sorted(measured.items())},
    }


def joined(path: Path, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The provenance of a file whose rows are of two calibrations.

    :raises UsageError: if they cannot stand in one file.
    """
    if old.get("method") != new["method"]:
        changed = [
            key for key, value in new["method"].items() if old.get("method", {}).get(key) != value
        ]
        fix = "move the file away, or choose another place with --output"
        raise UsageError(
            f"{path}: its references were measured with another {', '.join(changed)}; {fix}"
        )
    return {
        **new,
        "sessions": [*old["sessions"], *new["sessions"]],
        "headlines": old.get("headlines", {}) | new["headlines"],
    }
