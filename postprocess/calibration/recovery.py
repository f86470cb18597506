"""Recover interrupted calibrations: enter their finished launches into the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from postprocess.base import strict_json
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.strict_json import Entry
from postprocess.calibration.ledger import OPENED, Opened, Taken, folder, keep, taken
from postprocess.judging.outcome import assess
from postprocess.model.case import Case
from postprocess.model.launch import Finished
from postprocess.model.plan import planned_cases, read_plan
from postprocess.runner.reframe_pass import program_of


def gather(work: Path) -> list[str]:
    """Enter what interrupted calibrations have left; a line for each that left something, or is damaged.

    To be called while no session runs, and before anything is built anew.
    """
    said = []
    for marker in sorted((work / "sessions").glob(f"*/{OPENED}")):
        directory = marker.parent
        if (folder(work) / f"{directory.name}.json").exists():
            continue
        launches: list[Taken] = []
        afresh: list[Case] = []
        try:
            opened = read_opened(marker)
            afresh = planned_cases(read_plan(directory)) if opened.afresh else []
            launches = taken(opened, directory, judged_alone(work, directory))
        except UsageError as error:  # one session of before must not stop all to come
            said.append(f"launches of an interrupted calibration are lost: {error}")
        keep(work, directory.name, launches, afresh)
        if launches:
            count = plural(len(launches), "launch", "es")
            said.append(
                f"calibration {directory.name} was interrupted: its {count} that ended count"
            )
    return said


def judged_alone(work: Path, directory: Path) -> Iterable[Finished]:
    """What became of the launches of a session that ReFrame did not report of, as their own files tell.

    Not in simulated time: whether it was simulated as asked, ReFrame alone looks at, and it costs no machine.
    """
    for launch in read_plan(directory):
        if not launch.cases or launch.exact:
            continue
        built = program_of(work, launch)
        spec = built.spec if built else ""
        yield Finished(launch, assess(launch, directory), 0.0, "", {}, spec, built)


def read_opened(marker: Path) -> Opened:
    """What an interrupted calibration knew.

    :raises UsageError: if its file is damaged.
    """
    try:
        told = Entry(strict_json.loads(marker.read_text()))
        set_env = told.get("set_env", dict)
        for environment in set_env:
            own = told.object("set_env").object(environment)
            for name in own.fields:
                own.get(name, str)
        shell = told.object("shell") if "shell" in told.fields else Entry({})  # none, before
        for name in shell.fields:
            shell.get(name, str)
        flags = told.flag("oversubscribe"), told.flag("afresh")
        return Opened(marker.parent.name, set_env, *flags, shell.fields)
    except (OSError, ValueError, TypeError) as error:
        fix = "remove it, and its launches are not used"
        raise UsageError(f"{marker}: {error}: is damaged; {fix}") from None
