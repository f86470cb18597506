"""The ledger of all calibration launches in the work directory: the data behind references.

One JSON file per session, ``<work>/calibrations/<session>.json``, has every launch that ended well: its values,
when and where it ran, and what it ran. An interrupted session wrote none; its launches are entered when the
next session begins, so that no measurement is lost.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.formats import DATE_FORMAT, Unit, parse_utc, plural
from postprocess.base.records import Amount, Count, Measured, Text, parse_record, read_record, require_fields
from postprocess.calibration.losses import find_loss
from postprocess.judging.outcome import assess_launch
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch, list_planned_cases, read_plan
from postprocess.runner.reframe_pass import find_program
from postprocess.stats.launches import locate_case
from site_configs.schema.fields import SESSION_GAP_MINUTES
from site_configs.schema.manual_settings import collect_manual_settings
from site_configs.schema.transports import PAIRS
from site_configs.topology.machine import read_machine

SCHEMA = 1
#: Facts that are recorded but not compared. Their counterparts without paths are among the circumstances.
ONCE = ("mpi_library", "spec")
OPENED = "calibration.json"  #: a session that calibrates has this file from its beginning


@dataclass(frozen=True)
class _Facts:
    """Facts that each launch must record."""

    mpi_library: Text
    version: Text
    method: dict[str, Any]


@dataclass(frozen=True)
class _Circumstances:
    """Circumstances whose form is known."""

    binding: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CalibrationHeader:
    """The header of a calibration, written before its first launch."""

    session: str
    set_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  #: by environment
    oversubscribe: bool = False
    afresh: bool = False  #: whether earlier launches of the measured cases are dropped
    #: Shell variables that influence an MPI
    shell: Mapping[str, str] = field(default_factory=dict)
    #: Transports of pairs of ranks, by partition, environment and class of pairs
    transports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def by_hand(self, environment: str, exact: bool = False) -> dict[str, Any]:
        """Return what was set by hand for launches of an environment; ``exact`` if they are simulated."""
        return collect_manual_settings(
            self.set_env, self.oversubscribe, environment, {} if exact else self.shell
        )

    def find_transports(self, launch: PlannedLaunch) -> dict[str, tuple[str, ...]]:
        """Return the known transports at a launch's place, by class of pairs."""
        places = {pairs: f"{launch.partition} {launch.environment} {pairs}" for pairs in PAIRS}
        return {pairs: self.transports[place] for pairs, place in places.items() if place in self.transports}


@dataclass(frozen=True)
class CalibrationLaunch:
    """One launch of a calibration that ended well."""

    session: Text
    ended_utc: str
    hosts: tuple[str, ...]
    machine: Mapping[str, Any]  #: the machine that started it
    place: ReferencePlace
    program: str
    exact: bool
    facts: Mapping[str, Any]  #: what it ran: library, version, spec, method and so on
    circumstances: Mapping[str, Any]  #: conditions under which values are comparable; {} if exact
    by_hand: Mapping[str, Any]  #: what options and the shell set for it; usually empty
    kernel: str
    values: Mapping[str, Measured]  #: judged values, by key of the case
    units: Mapping[str, Unit]
    #: Share of the machine, from 0 to 1, that others used during its pass; None if unknown.
    others: Amount | None = None
    session_gap_minutes: Count = SESSION_GAP_MINUTES  #: that of its partition
    #: Core-to-core time by key of the case, in seconds; without cases for which it is unknown
    core_latencies: Mapping[str, Measured] = field(default_factory=dict)
    #: The papers' headline by key of the case, if it is not the judged value
    headlines: Mapping[str, Measured] = field(default_factory=dict)
    learned: bool = False  #: whether a night added it, not a calibration
    #: Transports of its pairs of ranks, by class of pairs, if its library reports them
    transports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def shared(self) -> dict[str, Any]:
        """Facts that launches behind one reference must share, by name; bindings are compared by layout."""
        facts = {name: value for name, value in self.facts.items() if name not in ("method", *ONCE)}
        circumstances = {
            name: circumstance for name, circumstance in self.circumstances.items() if name != "binding"
        }
        facts |= {**self.facts["method"], **circumstances, "exact": self.exact}
        return {**facts, "options": dict(self.by_hand)} if self.by_hand else facts

    @property
    def binding(self) -> Mapping[str, Any]:
        """The shape of its ranks' CPU sets, by layout."""
        return self.circumstances.get("binding", {})


def locate_ledger(work: Path) -> Path:
    return work / "calibrations"


def open_calibration(
    directory: Path,
    set_env: Mapping[str, Mapping[str, str]],
    oversubscribe: bool,
    afresh: bool,
    shell: Mapping[str, str],
    transports: Mapping[str, tuple[str, ...]] | None = None,
) -> CalibrationHeader:
    """Mark a session as a calibration before its first launch, so that it can be recovered if interrupted."""
    opened = CalibrationHeader(directory.name, set_env, oversubscribe, afresh, shell, transports or {})
    files.replace_files({directory / OPENED: json.dumps(asdict(opened), indent=1).encode()})
    return opened


def collect_launches(
    opened: CalibrationHeader, directory: Path, finished: Iterable[FinishedLaunch], others: float | None = None
) -> list[CalibrationLaunch]:
    """Build the ledger entries of launches, without failed ones and without cases that have no value.

    :func:`postprocess.calibration.losses.find_loss` says why a case does not count.

    :param others: share of this machine, from 0 to 1, that others used meanwhile; None if unknown
    """
    machine = read_machine().as_dict()
    right = (launched for launched in finished if launched.run and not launched.wrong)
    new = [build_launch(opened, directory, run, machine) for run in right]
    return [entry if entry.exact else replace(entry, others=others) for entry in new]


def build_launch(
    opened: CalibrationHeader, directory: Path, finished: FinishedLaunch, machine: Mapping[str, Any]
) -> CalibrationLaunch:
    """Build the ledger entry of a launch that ended well."""
    launch, run = finished.launch, finished.run
    counted = [case for case in launch.cases if find_loss(finished, case) is None]
    seen = {case.key: finished.measurements[case.variable] for case in counted}
    places = {key: locate_case(measurement.core_latency) for key, measurement in seen.items()}
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
        values={key: measurement.value for key, measurement in seen.items()},
        units={key: measurement.unit for key, measurement in seen.items()},
        session_gap_minutes=launch.session_gap_minutes,
        core_latencies={key: latency for key in seen if (latency := places[key]) is not None},
        headlines={
            key: measurement.headline for key, measurement in seen.items() if measurement.headline is not None
        },
        transports=opened.find_transports(launch),
    )


def read_end_time(launch: PlannedLaunch, directory: Path) -> str:
    """Read when a launch ended: when its job script wrote the exit code."""
    try:
        moment = launch.ending(directory).stat().st_mtime
    except OSError:
        moment = datetime.now(timezone.utc).timestamp()
    return datetime.fromtimestamp(moment, timezone.utc).strftime(DATE_FORMAT)


def append_launches(
    work: Path, session: str, launches: Sequence[CalibrationLaunch], afresh: Iterable[Case] = ()
) -> Path:
    """Enter the launches of a session into the ledger.

    :param afresh: cases whose earlier sessions no longer count, whether or not this session measured them
    :raises UsageError: if they cannot be written.
    """
    path = locate_ledger(work) / f"{session}.json"
    data = {
        "schema": SCHEMA,
        "afresh": sorted(case.key for case in afresh),
        "launches": [asdict(launch) for launch in launches],
    }
    with explaining(f"{path}: cannot be written", "make room"):
        files.replace_files({path: (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()})
    return path


def read_ledger(work: Path) -> list[CalibrationLaunch]:
    """Read all launches of the ledger that were not dropped later, the earliest first.

    :raises UsageError: names the first damaged file.
    """
    entries: list[CalibrationLaunch] = []
    begun: dict[str, str] = {}
    for path in sorted(locate_ledger(work).glob("*.json")):
        launches, afresh = read_ledger_file(path)
        entries += launches
        begun |= dict.fromkeys(afresh, path.stem)
    return sorted(drop_forgotten(entries, begun), key=lambda launch: (launch.ended_utc, launch.session))


def drop_forgotten(launches: Iterable[CalibrationLaunch], begun: Mapping[str, str]) -> list[CalibrationLaunch]:
    """Drop the values of cases from before they were begun afresh.

    :param begun: the last session that began a case afresh, by key
    """
    cut = [
        restrict_launch(launch, [key for key in launch.values if launch.session >= begun.get(key, "")])
        for launch in launches
    ]
    return [restricted for restricted in cut if restricted.values]


def restrict_launch(launch: CalibrationLaunch, keys: Iterable[str]) -> CalibrationLaunch:
    kept = set(keys) & launch.values.keys()
    return replace(
        launch,
        values={key: value for key, value in launch.values.items() if key in kept},
        units={key: unit for key, unit in launch.units.items() if key in kept},
        core_latencies={key: latency for key, latency in launch.core_latencies.items() if key in kept},
        headlines={key: headline for key, headline in launch.headlines.items() if key in kept},
    )


@dataclass(frozen=True)
class _LedgerFile:
    """The launches of one session, and the keys of the cases that it began afresh."""

    schema: int
    launches: list[CalibrationLaunch]
    afresh: list[str] = field(default_factory=list)


def read_ledger_file(path: Path) -> tuple[list[CalibrationLaunch], list[str]]:
    """Read the launches of one session, and the keys of the cases that it began afresh.

    :raises UsageError: if the file is damaged or of another version.
    """
    fix = "move it away, and calibrate again"
    try:
        content = read_record(path, _LedgerFile, exact=False)
        if content.schema != SCHEMA:
            raise ValueError(f"schema: is not {SCHEMA}")
        for launch in content.launches:
            check_launch(launch)
        return content.launches, [Case.from_key(key).key for key in content.afresh]
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}: is damaged; {fix}") from None


def check_launch(launch: CalibrationLaunch) -> None:
    """Check that a launch has the form that comparisons rely on. Raises ValueError if not."""
    if launch.units.keys() != launch.values.keys():
        raise ValueError("units: are not of the same cases as values")
    for name, by_case in (("core_latencies", launch.core_latencies), ("headlines", launch.headlines)):
        if by_case.keys() - launch.values.keys():
            raise ValueError(f"{name}: are not of the same cases as values")
    places = {(ReferencePlace.of(case), case.program) for case in map(Case.from_key, launch.values)}
    if places - {(launch.place, launch.program)}:
        raise ValueError("values: are of cases of another place or program")
    parse_utc(launch.ended_utc)
    parse_record(launch.facts, _Facts)
    parse_record(launch.circumstances, _Circumstances)
    if not launch.machine:
        raise ValueError("machine: is empty")


def recover_interrupted(work: Path) -> list[str]:
    """Enter the launches of interrupted calibrations. Return a line for each that left some, or is damaged.

    Call it while no session runs, and before anything is rebuilt.
    """
    lines = []
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
        except UsageError as error:  # one damaged session must not block all later ones
            lines.append(f"launches of an interrupted calibration are lost: {error}")
        append_launches(work, directory.name, launches, afresh)
        if launches:
            count = plural(len(launches), "launch", "es")
            lines.append(f"calibration {directory.name} was interrupted: its {count} that ended count")
    return lines


def assess_without_report(work: Path, directory: Path) -> Iterable[FinishedLaunch]:
    """Assess the launches of a session from their own files, without ReFrame's report.

    Simulated launches are left out: only ReFrame checks that they were simulated as asked, and repeating them
    costs no machine time.
    """
    for launch in read_plan(directory):
        if not launch.cases or launch.exact:
            continue
        built = find_program(work, launch)
        spec = built.spec if built else ""
        yield FinishedLaunch(launch, assess_launch(launch, directory), 0.0, "", {}, spec, built)


def read_calibration_header(marker: Path) -> CalibrationHeader:
    """Read the header of an interrupted calibration. Raises UsageError if its file is damaged."""
    try:
        header = read_record(marker, dict[str, Any]) | {"session": marker.parent.name}
        require_fields(header, CalibrationHeader)
        return parse_record(header, CalibrationHeader)
    except (OSError, ValueError) as error:
        fix = "remove it, and its launches are not used"
        raise UsageError(f"{marker}: {error}: is damaged; {fix}") from None
