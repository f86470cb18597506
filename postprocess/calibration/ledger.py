"""Ledger of all calibration launches in the work directory: the data behind references.

One JSON file a session, ``<work>/calibrations/<session>.json``, holds every launch that ended well: its values,
when and where it ran, and what it ran. A session that was interrupted wrote none; what its launches left is
entered when the next session begins, so that nothing that was measured is lost.
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
#: Facts that are told and not compared. What they stand for is, without its paths, among the circumstances.
ONCE = ("mpi_library", "spec")
OPENED = "calibration.json"  #: in the directory of a session that calibrates, from its beginning


@dataclass(frozen=True)
class _Facts:
    """Facts that each launch must tell."""

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
    afresh: bool = False  #: earlier launches of the cases that it measures count no more
    #: Of its variables those that steer an MPI
    shell: Mapping[str, str] = field(default_factory=dict)
    #: By what pairs of ranks talk, by the words of partition, environment and class of pairs
    transports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def by_hand(self, environment: str, exact: bool = False) -> dict[str, Any]:
        """Return what was set by hand for launches of an environment, ``exact`` if they are simulated."""
        return collect_manual_settings(
            self.set_env, self.oversubscribe, environment, {} if exact else self.shell
        )

    def find_transports(self, launch: PlannedLaunch) -> dict[str, tuple[str, ...]]:
        """Find by what the pairs of a launch's place talk, by class of pairs, as far as that is known."""
        places = {pairs: f"{launch.partition} {launch.environment} {pairs}" for pairs in PAIRS}
        return {pairs: self.transports[place] for pairs, place in places.items() if place in self.transports}


@dataclass(frozen=True)
class CalibrationLaunch:
    """One launch of a calibration that ended well."""

    session: Text
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
    values: Mapping[str, Measured]  #: that are judged, by key of the case
    units: Mapping[str, Unit]
    #: Share of the machine, from 0 to 1, that others used during its pass; None where it is not known.
    others: Amount | None = None
    session_gap_minutes: Count = SESSION_GAP_MINUTES  #: of its partition
    #: Time from core to core by key of the case, in seconds; nothing where it is not known
    core_latencies: Mapping[str, Measured] = field(default_factory=dict)
    #: The papers' headline by key of the case, where it is not what is judged
    headlines: Mapping[str, Measured] = field(default_factory=dict)
    learned: bool = False  #: whether a night has taught it, not a calibration
    #: By what its pairs of ranks talk, by class of pairs, where its library told it
    transports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def shared(self) -> dict[str, Any]:
        """What launches must share to stand behind one reference, by name; and the binding of their layout."""
        told = {name: value for name, value in self.facts.items() if name not in ("method", *ONCE)}
        circumstances = {name: each for name, each in self.circumstances.items() if name != "binding"}
        told |= {**self.facts["method"], **circumstances, "exact": self.exact}
        return {**told, "options": dict(self.by_hand)} if self.by_hand else told

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
    """Mark a session as a calibration, before its first launch, so that an interrupted one is known as one."""
    opened = CalibrationHeader(directory.name, set_env, oversubscribe, afresh, shell, transports or {})
    files.replace_files({directory / OPENED: json.dumps(asdict(opened), indent=1).encode()})
    return opened


def collect_launches(
    opened: CalibrationHeader, directory: Path, finished: Iterable[FinishedLaunch], others: float | None = None
) -> list[CalibrationLaunch]:
    """Collect what the ledger keeps of launches: nothing of a failed one, and no case without a value.

    What does not count, :func:`postprocess.calibration.losses.find_loss` tells.

    :param others: share of this machine, from 0 to 1, that others used meanwhile; None where that is not known
    """
    machine = read_machine().as_dict()
    right = (launched for launched in finished if launched.run and not launched.wrong)
    new = [build_launch(opened, directory, run, machine) for run in right]
    return [each if each.exact else replace(each, others=others) for each in new]


def build_launch(
    opened: CalibrationHeader, directory: Path, finished: FinishedLaunch, machine: Mapping[str, Any]
) -> CalibrationLaunch:
    """Build the ledger's entry of a launch that ended well."""
    launch, run = finished.launch, finished.run
    counted = [case for case in launch.cases if find_loss(finished, case) is None]
    seen = {case.key: finished.measurements[case.variable] for case in counted}
    places = {key: locate_case(each.core_latency) for key, each in seen.items()}
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
        session_gap_minutes=launch.session_gap_minutes,
        core_latencies={key: each for key in seen if (each := places[key]) is not None},
        headlines={key: each.headline for key, each in seen.items() if each.headline is not None},
        transports=opened.find_transports(launch),
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
        "launches": [asdict(launch) for launch in launches],
    }
    with explaining(f"{path}: cannot be written", "make room"):
        files.replace_files({path: (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()})
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


def drop_forgotten(launches: Iterable[CalibrationLaunch], begun: Mapping[str, str]) -> list[CalibrationLaunch]:
    """Drop the values of cases from before they were begun afresh.

    :param begun: the last session that began a case afresh, by key
    """
    cut = [
        restrict_launch(launch, [key for key in launch.values if launch.session >= begun.get(key, "")])
        for launch in launches
    ]
    return [each for each in cut if each.values]


def restrict_launch(launch: CalibrationLaunch, keys: Iterable[str]) -> CalibrationLaunch:
    kept = set(keys) & launch.values.keys()
    return replace(
        launch,
        values={key: each for key, each in launch.values.items() if key in kept},
        units={key: each for key, each in launch.units.items() if key in kept},
        core_latencies={key: each for key, each in launch.core_latencies.items() if key in kept},
        headlines={key: each for key, each in launch.headlines.items() if key in kept},
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
        told = read_record(path, _LedgerFile, exact=False)
        if told.schema != SCHEMA:
            raise ValueError(f"schema: is not {SCHEMA}")
        for launch in told.launches:
            check_launch(launch)
        return told.launches, [Case.from_key(key).key for key in told.afresh]
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}: is damaged; {fix}") from None


def check_launch(launch: CalibrationLaunch) -> None:
    """Check that a launch has the form in which it is compared. Raises ValueError for anything else."""
    if launch.units.keys() != launch.values.keys():
        raise ValueError("units: are not of the same cases as values")
    for name, told in (("core_latencies", launch.core_latencies), ("headlines", launch.headlines)):
        if told.keys() - launch.values.keys():
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
            said.append(f"calibration {directory.name} was interrupted: its {count} that ended count")
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
    """Read the header of an interrupted calibration. Raises UsageError if its file is damaged."""
    try:
        told = read_record(marker, dict[str, Any]) | {"session": marker.parent.name}
        require_fields(told, CalibrationHeader)
        return parse_record(told, CalibrationHeader)
    except (OSError, ValueError) as error:
        fix = "remove it, and its launches are not used"
        raise UsageError(f"{marker}: {error}: is damaged; {fix}") from None
