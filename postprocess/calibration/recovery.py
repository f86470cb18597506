"""Recover interrupted calibrations: enter their finished launches into the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from postprocess.base.documents.records import parse_record, read_record, require_fields
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.calibration.ledger import (
    OPENED,
    CalibrationHeader,
    CalibrationLaunch,
    append_launches,
    collect_launches,
    locate_ledger,
)
from postprocess.judging.outcome import assess_launch
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import list_planned_cases, read_plan
from postprocess.runner.reframe_pass import find_program


def recover_interrupted(work: Path) -> list[str]:
    """Enter what interrupted calibrations have left; a line for each that left something, or is damaged.

    To be called while no session runs, and before anything is built anew.
    """
    said = []
    for marker in sorted((work / "sessions").glob(f"*/{OPENED}")):
        directory = marker.parent
        if (locate_ledger(work) / f"{directory.name}.json").exists():
            continue
        launches: list[CalibrationLaunch] = []
        afresh: list[Case] = []
        try:
            opened = read_calibration_header(marker)
            afresh = list_planned_cases(read_plan(directory)) if opened.afresh else []
            launches = collect_launches(opened, directory, assess_without_report(work, directory))
        except UsageError as error:  # one session of before must not stop all to come
            said.append(f"launches of an interrupted calibration are lost: {error}")
        append_launches(work, directory.name, launches, afresh)
        if launches:
            count = plural(len(launches), "launch", "es")
            said.append(
                f"calibration {directory.name} was interrupted: its {count} that ended count"
            )
    return said


def assess_without_report(work: Path, directory: Path) -> Iterable[FinishedLaunch]:
    """Assess the launches of a session without ReFrame's report, by their own files.

    Not in simulated time: whether it was simulated as asked, ReFrame alone looks at, and it costs no machine.
    """
    for launch in read_plan(directory):
        if not launch.cases or launch.exact:
            continue
        built = find_program(work, launch)
        spec = built.spec if built else ""
        yield FinishedLaunch(launch, assess_launch(launch, directory), 0.0, "", {}, spec, built)


def read_calibration_header(marker: Path) -> CalibrationHeader:
    """Read the header of an interrupted calibration.

    :raises UsageError: if its file is damaged.
    """
    try:
        told = read_record(marker, dict[str, Any]) | {"session": marker.parent.name}
        require_fields(told, CalibrationHeader, ("shell",))
        return parse_record(told, CalibrationHeader)
    except (OSError, ValueError) as error:
        fix = "remove it, and its launches are not used"
        raise UsageError(f"{marker}: {error}: is damaged; {fix}") from None
