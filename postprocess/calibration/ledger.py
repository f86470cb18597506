"""Ledger of all calibration launches in the work directory: the data behind references.

One JSON file a session, ``<work>/calibrations/<session>.json``, holds every launch that ended well: its values,
when and where it ran, and what it ran. A session that was interrupted wrote none; what its launches left is
entered when the next session begins, so that nothing that was measured is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from postprocess.base import files, strict_json
from postprocess.base.errors import UsageError
from postprocess.base.formats import DATE_FORMAT
from postprocess.base.strict_json import JsonObject, format_external
from postprocess.base.units import UNITS
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch
from postprocess.references.provenance import TEXTS
from site_configs.schema.manual_settings import collect_manual_settings
from site_configs.topology.machine import read_machine

SCHEMA = 1
#: Facts that are told and not compared. What they stand for is, without its paths, among the circumstances.
ONCE = ("mpi_library", "spec")
OPENED = "calibration.json"  #: in the directory of a session that calibrates, from its beginning


@dataclass(frozen=True)
class CalibrationHeader:
    """The header of a calibration, written before its first launch."""

    session: str
    set_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  #: by environment
    oversubscribe: bool = False
    afresh: bool = False  #: earlier launches of the cases that it measures count no more
    #: Of its variables those that steer an MPI
    shell: Mapping[str, str] = field(default_factory=dict)

    def by_hand(self, environment: str, exact: bool = False) -> dict[str, Any]:
        """Return what was set by hand for launches of an environment, ``exact`` if they are simulated."""
        return collect_manual_settings(
            self.set_env, self.oversubscribe, environment, {} if exact else self.shell
        )


@dataclass(frozen=True)
class CalibrationLaunch:
    """One launch of a calibration that ended well."""

    session: str
    ended_utc: str
    hosts: tuple[str, ...]
    machine: Mapping[str, Any]  #: from which it was started
    place: ReferencePlace
    program: str
    exact: bool
    facts: Mapping[str, Any]  #: what it ran: library, version, spec, method and so on
    circumstances: Mapping[str, Any]  #: that a value is compared under; {} if exact
    by_hand: Mapping[str, Any]  #: what options and the shell set for it; nothing, as a rule
    kernel: str
    values: Mapping[str, float]  #: headline by key of the case
    units: Mapping[str, str]
    #: Share of the machine, from 0 to 1, that others used during its pass; None where it is not known.
    others: float | None = None

    @property
    def shared(self) -> dict[str, Any]:
        """What launches must share to stand behind one reference, by name; and the binding of their layout."""
        told = {name: value for name, value in self.facts.items() if name not in ("method", *ONCE)}
        circumstances = {
            name: each for name, each in self.circumstances.items() if name != "binding"
        }
        told |= {**self.facts["method"], **circumstances, "exact": self.exact}
        return {**told, "options": dict(self.by_hand)} if self.by_hand else told

    @property
    def binding(self) -> Mapping[str, Any]:
        """The shape of its ranks' CPU sets, by layout."""
        return self.circumstances.get("binding", {})


def locate_ledger(work: Path) -> Path:
    """Locate the ledger of a work directory."""
    return work / "calibrations"


def open_calibration(
    directory: Path,
    set_env: Mapping[str, Mapping[str, str]],
    oversubscribe: bool,
    afresh: bool,
    shell: Mapping[str, str],
) -> CalibrationHeader:
    """Mark a session as a calibration, before its first launch, so that an interrupted one is known as one."""
    opened = CalibrationHeader(directory.name, set_env, oversubscribe, afresh, shell)
    files.replace_files({directory / OPENED: json.dumps(asdict(opened), indent=1).encode()})
    return opened


def collect_launches(
    opened: CalibrationHeader,
    directory: Path,
    finished: Iterable[FinishedLaunch],
    others: float | None = None,
) -> list[CalibrationLaunch]:
    """Collect what the ledger keeps of launches: nothing of a failed one, and no case without a value.

    Of one that received wrong data nothing becomes a reference: that MPI does not work.

    :param others: share of this machine, from 0 to 1, that others used meanwhile; None where that is not known
    """
    machine = read_machine().as_dict()
    right = (each for each in finished if each.run and not each.wrong)
    new = [build_launch(opened, directory, each, machine) for each in right]
    return [each if each.exact else replace(each, others=others) for each in new]


def build_launch(
    opened: CalibrationHeader, directory: Path, finished: FinishedLaunch, machine: Mapping[str, Any]
) -> CalibrationLaunch:
    """Build the ledger's entry of a launch that ended well."""
    launch, run = finished.launch, finished.run
    found = {case: finished.measurements.get(case.variable) for case in launch.cases}
    seen = {case.key: each for case, each in found.items() if each and not each.unseen}
    method = dict(finished.conditions.method)
    return CalibrationLaunch(
        session=opened.session,
        ended_utc=read_end_time(launch, directory),
        hosts=finished.hosts,
        machine={"simulated": run["mpi_library"]} if launch.exact else machine,
        place=ReferencePlace.of(launch.cases[0]),
        program=launch.program,
        exact=launch.exact,
        facts={
            "mpi_library": run["mpi_library"],
            "version": run.get("version") or run["suite_version"],
            "source_hash": run.get("source_hash", ""),
            "spec": finished.spec,
            "compiler": run.get("compiler") or method.get("compiler", ""),
            "method": method,
        },
        circumstances=dict(finished.conditions.circumstances),
        by_hand=opened.by_hand(launch.environment, launch.exact),
        kernel=run.get("kernel", ""),
        values={key: each.value for key, each in seen.items()},
        units={key: each.unit for key, each in seen.items()},
    )


def read_end_time(launch: PlannedLaunch, directory: Path) -> str:
    """Read when a launch ended: then its job script wrote the exit code."""
    try:
        moment = launch.ending(directory).stat().st_mtime
    except OSError:
        moment = datetime.now(timezone.utc).timestamp()
    return datetime.fromtimestamp(moment, timezone.utc).strftime(DATE_FORMAT)


def append_launches(
    work: Path, session: str, launches: Sequence[CalibrationLaunch], afresh: Iterable[Case] = ()
) -> Path:
    """Enter the launches of a session into the ledger.

    :param afresh: cases of which earlier sessions count no more, whether or not this one has measured them
    :raises UsageError: if they cannot be written.
    """
    path = locate_ledger(work) / f"{session}.json"
    data = {
        "schema": SCHEMA,
        "afresh": sorted(case.key for case in afresh),
        "launches": [asdict(each) for each in launches],
    }
    try:
        files.replace_files({path: (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()})
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; make room") from None
    return path


def read_ledger(work: Path) -> list[CalibrationLaunch]:
    """Read every launch of the ledger that was not forgotten since, the earliest first.

    :raises UsageError: naming the first file that is damaged.
    """
    found: list[CalibrationLaunch] = []
    begun: dict[str, str] = {}
    for path in sorted(locate_ledger(work).glob("*.json")):
        launches, afresh = read_ledger_file(path)
        found += launches
        begun |= dict.fromkeys(afresh, path.stem)
    return sorted(drop_forgotten(found, begun), key=lambda each: (each.ended_utc, each.session))


def drop_forgotten(
    launches: Iterable[CalibrationLaunch], begun: Mapping[str, str]
) -> list[CalibrationLaunch]:
    """Drop the values of cases from before they were begun afresh.

    :param begun: the last session that began a case afresh, by key
    """
    cut = [
        restrict_launch(each, [key for key in each.values if each.session >= begun.get(key, "")])
        for each in launches
    ]
    return [each for each in cut if each.values]


def restrict_launch(launch: CalibrationLaunch, keys: Iterable[str]) -> CalibrationLaunch:
    """Restrict a launch to some cases."""
    kept = set(keys) & launch.values.keys()
    values, units = (
        {key: each for key, each in some.items() if key in kept}
        for some in (launch.values, launch.units)
    )
    return replace(launch, values=values, units=units)


def read_ledger_file(path: Path) -> tuple[list[CalibrationLaunch], list[str]]:
    """Read the launches of one session, and the keys of the cases that it began afresh.

    :raises UsageError: if the file is damaged or of another version.
    """
    fix = "move it away, and calibrate again"
    try:
        data = JsonObject(strict_json.parse_json(files.read_regular(path).decode()))
        if data.integer("schema") != SCHEMA:
            raise ValueError(f"schema: is not {SCHEMA}")
        afresh = data.get("afresh", list) if "afresh" in data.fields else []
        launches = data.get("launches", list)
        if any(type(each) is not dict for each in launches):
            raise ValueError("launches: is not a list of objects")
        keys = [Case.from_key(key).key for key in afresh]
        return [parse_launch(JsonObject(each)) for each in launches], keys
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path}: {error}: is damaged; {fix}") from None


def parse_launch(told: JsonObject) -> CalibrationLaunch:
    """Parse a launch as :func:`append_launches` wrote it. Raises ValueError for anything else."""
    values = told.get("values", dict)
    units = told.get("units", dict)
    if units.keys() != values.keys():
        raise ValueError("units: are not of the same cases as values")
    cases = [Case.from_key(key) for key in values]
    place = tuple(told.get("place", list))
    if any(
        ReferencePlace.of(case) != place or case.program != told.text("program") for case in cases
    ):
        raise ValueError("values: are of cases of another place or program")
    told.moment("ended_utc")
    check_stored_facts(told)
    numbers = JsonObject(values, "values.")
    return CalibrationLaunch(
        session=told.text("session"),
        ended_utc=told.text("ended_utc"),
        hosts=tuple(told.get("hosts", list)),
        machine=told.get("machine", dict),
        place=ReferencePlace(*place),
        program=told.text("program"),
        exact=told.flag("exact"),
        facts=told.get("facts", dict),
        circumstances=told.get("circumstances", dict),
        by_hand=told.get("by_hand", dict),
        kernel=told.get("kernel", str),
        values={key: numbers.number(key) for key in values},
        units={key: JsonObject(units, "units.").text(key) for key in units},
        others=None if told.fields.get("others") is None else told.number("others"),
    )


def check_stored_facts(told: JsonObject) -> None:
    """Check that the facts of a launch have the form in which they are compared. Raises ValueError."""
    facts = told.object("facts")
    facts.get("method", dict)
    for name in TEXTS:
        facts.text(name)
    if not told.get("machine", dict):
        raise ValueError("machine: is empty")
    circumstances = told.object("circumstances")
    if "binding" in circumstances.fields:
        circumstances.get("binding", dict)
    for unit in told.get("units", dict).values():
        if unit not in UNITS:
            raise ValueError(f"units: {format_external(unit)} is not one of {', '.join(UNITS)}")
