"""Turns a calibration into reference files. Rows that were not measured now stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from postprocess import references
from postprocess.calibration import calibrate, calibrate_exactly
from postprocess.cases import Case
from postprocess.errors import UsageError
from postprocess.judgement import Finished
from postprocess.reference_book import method_of, read_origin
from postprocess.summary_file import Session, utc_now
from site_configs.machine import read_machine


def samples(finished: Sequence[Finished]) -> dict[Case, list[float]]:
    """Headlines by case, one per launch. A case of which a launch failed, or shows nothing, has none at all."""
    spoilt = {
        case
        for each in finished
        for case in each.launch.cases
        if not each.run or each.measurements[case.variable].unseen
    }
    found: dict[Case, list[float]] = {}
    for each in finished:
        for case in each.launch.cases:
            if case not in spoilt:
                found.setdefault(case, []).append(each.measurements[case.variable].value)
    return found


def units(finished: Sequence[Finished]) -> dict[Case, str]:
    """The unit of each case that was measured."""
    return {
        case: each.measurements[case.variable].unit
        for each in finished
        if each.run
        for case in each.launch.cases
    }


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
    for place in sorted({place_of(case) for case in chosen}):
        here = {case: values for case, values in chosen.items() if place_of(case) == place}
        launches = [
            each for each in finished if each.run and place_of(each.launch.cases[0]) == place
        ]
        written.append(write_place(root, place, here, launches, session, only is not None))
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
    only_new: bool,
) -> Path:
    """Write one reference file: new rows in the place of old ones, or beside them."""
    path = references.location(root, *place)
    rows = references.load(path, *place) if path.exists() else {}
    if only_new:
        measured = {case: values for case, values in measured.items() if case not in rows}
    if not measured:
        return path
    origin = provenance_of(launches, session, measured)
    if rows:
        origin = joined(path, read_origin(path), origin)
    to_references = calibrate_exactly if launches[0].launch.exact else calibrate
    unit = units(launches)
    try:
        new = (replace(each, unit=unit[each.case]) for each in to_references(measured))
        rows |= {reference.case: reference for reference in new}
    except ValueError as error:
        raise UsageError(f"{path}: {error}; nothing is written") from None
    references.write(path, rows.values(), origin)
    return path


def provenance_of(
    launches: Sequence[Finished], session: Session, measured: dict[Case, list[float]]
) -> dict[str, Any]:
    """Where new references come from: what ran, on what, when, and every value behind them, by program.

    :raises UsageError: if launches of a program differ in what makes their values comparable.
    """
    run, exact = launches[0].run, launches[0].launch.exact
    programs = sorted({case.program for case in measured})
    return {
        "machine": {"simulated": run["mpi_library"]} if exact else read_machine().as_dict(),
        "programs": {
            program: program_of(
                [each for each in launches if each.launch.program == program],
                session,
                {case: values for case, values in measured.items() if case.program == program},
            )
            for program in programs
        },
    }


def program_of(
    launches: Sequence[Finished], session: Session, measured: dict[Case, list[float]]
) -> dict[str, Any]:
    """The provenance of the values of one program.

    :raises UsageError: if its launches differ in what makes values comparable.
    """
    run, exact = launches[0].run, launches[0].launch.exact
    method = method_of(run, exact)
    for each in launches:
        if mixed := different(method, method_of(each.run, exact)):
            fix = "calibrate nodes of one kind at a time"
            raise UsageError(f"{each.launch.environment}: launches differ in {mixed}; {fix}")
    return {
        "date_utc": utc_now(),
        "mpi_library": run["mpi_library"],
        "version": run.get("version") or run["suite_version"],
        "source_hash": run.get("source_hash", ""),
        "spec": launches[0].spec,
        "compiler": run.get("compiler") or method.get("compiler", ""),
        "method": method,
        "sessions": [session.name],
        "headlines": {}
        if exact
        else {case.key: values for case, values in sorted(measured.items())},
    }


def joined(path: Path, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The provenance of a file whose rows are of two calibrations.

    :raises UsageError: if they cannot stand in one file.
    """
    programs = dict(old["programs"])
    for name, told in new["programs"].items():
        programs[name] = added(path, programs[name], told) if name in programs else told
    return {**new, "programs": programs}


def added(path: Path, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The provenance of a program whose values are of two calibrations.

    :raises UsageError: if they are of different methods.
    """
    if changed := different(old["method"], new["method"]):
        fix = "move the file away, or choose another place with --output"
        raise UsageError(f"{path}: its references were measured with another {changed}; {fix}")
    return {
        **new,
        "sessions": [*old["sessions"], *new["sessions"]],
        "headlines": old.get("headlines", {}) | new["headlines"],
    }


def different(one: dict[str, Any], other: dict[str, Any]) -> str:
    """The names of the facts in which two methods differ; empty if they do not."""
    return ", ".join(
        sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    )
