"""The summary of a session: built once from what came of it, shown, and written as ``summary.json``.

Only a later command reads it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from postprocess.base import files, strict_json, units
from postprocess.base.errors import UsageError
from postprocess.base.formats import utc_now
from postprocess.base.strict_json import JsonObject
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.measurement import TrialSummary
from postprocess.model.session import Session
from postprocess.model.verdict import CaseResult, Verdict, count_verdicts
from site_configs.mpi.family import Mpi, identify_library
from site_configs.topology.machine import Cache, Machine, read_machine
from spack_envs.programs import BuiltBinary

PLUMBLINE = "0.1.0"  #: the version in pyproject.toml, which a test compares
SCHEMA = 4
MPICOST_ONLY = 1  #: the schema of before there were other programs, which is still read
WITHOUT_POWER = 2  #: that of before a case knew what it could detect, which is still read
WITHOUT_CAUSES = 3  #: that of before a cause was a finding of the session, which is still read
EARLIER_CAUSE = (
    "common cause: "  #: what a reason with one begins with in a summary without ``cause``
)
FIX = "run the session again, or report with the Plumbline that wrote it"

_Record = TypeVar("_Record")
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
}


class SummaryError(UsageError):
    """The summary cannot be used. The text is one line: file, key, fix."""


@dataclass(frozen=True)
class SummaryEnvironment:
    """One MPI as it was used. ``library`` is what the running program said of itself."""

    name: str
    family: str
    version: str
    library: str
    origin: str
    mpicc: str
    mpiexec: str


@dataclass(frozen=True)
class BuiltProgram:
    """A benchmark program as it was built for one MPI; unknown facts are ``unknown``."""

    environment: str
    program: str
    version: str
    compiler: str
    flags: str  #: the optimisation level among them
    spec: str  #: Spack's spec with its hash, or where else it is from


@dataclass(frozen=True)
class SummaryLaunch:
    """One start of a parallel program. ``outcome`` is ``ok``, ``skipped`` or what went wrong."""

    program: str
    start: str  #: which start of its job, where a job has several
    cases: int  #: planned in it
    environment: str
    partition: str
    processes: int
    per_node: int
    launch: int
    seconds: float
    outcome: str
    reason: str
    directory: str
    spec: str = ""  #: Spack's spec of the program with its hash, or ``cmake``

    @property
    def name(self) -> str:
        """The program, and which of its starts where a job has several."""
        return f"{self.program} {self.start}".strip()

    @property
    def failed(self) -> bool:
        """Whether it was to run and did not come to a good end."""
        return self.outcome not in ("ok", "skipped")


@dataclass(frozen=True)
class SessionSummary:
    """The summary of a session and its cases. Durations in seconds."""

    plumbline: str
    session: str
    mode: str
    site: str
    started_utc: str
    ended_utc: str
    command: tuple[str, ...]
    strict: bool
    exit_status: int
    built_with: str
    notes: tuple[str, ...]
    causes: tuple[str, ...]  #: confirmed causes that slow many cases together, a line each
    phases: dict[str, float]
    machine: Machine
    environments: tuple[SummaryEnvironment, ...]
    programs: tuple[BuiltProgram, ...]
    launches: tuple[SummaryLaunch, ...]
    results: tuple[CaseResult, ...]

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """Cases that stand against exit status 0."""
        return tuple(r for r in self.results if not r.healthy(self.strict))

    @property
    def outliers(self) -> tuple[CaseResult, ...]:
        """Cases that do not fail the session, and lie outside their band or failed as expected."""
        healthy = (r for r in self.results if r.healthy(self.strict))
        return tuple(r for r in healthy if r.beyond or r.expected)

    @property
    def good(self) -> bool:
        """Whether the session ended well: status 0, at least one case, and none failed."""
        return self.exit_status == 0 and bool(self.results) and not self.failed

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data, for the file; :func:`parse_summary` reads it back."""
        of_session = [
            each.name for each in fields(self) if each.name not in ("launches", "results")
        ]
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in of_session},
            "command": list(self.command),
            "notes": list(self.notes),
            "causes": list(self.causes),
            "machine": self.machine.as_dict(),
            "environments": [asdict(each) for each in self.environments],
            "programs": [asdict(each) for each in self.programs],
            "counts": count_verdicts(self.results),
            "launches": [asdict(each) for each in self.launches],
            "cases": [result.entry() for result in self.results],
        }


def summarise_session(
    session: Session,
    built_with: str,
    mpis: Sequence[Mpi],
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    exit_status: int,
    notes: Sequence[str],
    phases: dict[str, float],
    causes: Sequence[str] = (),
) -> SessionSummary:
    """Summarise a session that ends now, on this machine."""
    return SessionSummary(
        plumbline=PLUMBLINE,
        session=session.name,
        mode=session.mode,
        site=session.site,
        started_utc=session.started_utc,
        ended_utc=utc_now(),
        command=tuple(session.command),
        strict=session.strict,
        exit_status=exit_status,
        built_with=built_with,
        notes=tuple(notes),
        causes=tuple(causes),
        phases={name: round(seconds, 3) for name, seconds in phases.items()},
        machine=read_machine(),
        environments=tuple(environments(mpis, finished)),
        programs=tuple(programs(finished)),
        launches=tuple(_launch(each) for each in finished),
        results=tuple(results),
    )


def environments(
    mpis: Sequence[Mpi], finished: Sequence[FinishedLaunch]
) -> list[SummaryEnvironment]:
    """Return each environment of the session, with what its running program said of its MPI."""
    said: dict[str, str] = {}
    for each in finished:
        said.setdefault(each.launch.environment, each.launch.library)
        if each.run:
            said[each.launch.environment] = each.run["mpi_library"]
    known = {mpi.name: mpi for mpi in mpis}
    found = []
    for name in sorted(said):
        if mpi := known.get(name):
            build = (mpi.family, mpi.version, said[name], mpi.origin, mpi.mpicc, mpi.mpiexec)
        else:
            told = identify_library(said[name])
            family, version = told if told[0] != "unknown" else ("", "")
            build = (family, version, said[name], "site", "", "")
        found.append(SummaryEnvironment(name, *build))
    return found


def programs(finished: Sequence[FinishedLaunch]) -> list[BuiltProgram]:
    """Return each program of each environment as it was built; what nobody knows of it is ``unknown``."""
    found: dict[tuple[str, str], BuiltProgram] = {}
    for each in finished:
        place = (each.launch.environment, each.launch.program)
        if each.launch.cases and place not in found:
            built = each.built or BuiltBinary(*place, path="", spec=each.spec)
            sources = "" if built.source == "official" else f", sources: {built.source}"
            spec = built.spec + sources
            found[place] = BuiltProgram(*place, built.version, built.compiler, built.flags, spec)
    return [found[place] for place in sorted(found)]


def _launch(finished: FinishedLaunch) -> SummaryLaunch:
    """Return one launch and how it ended."""
    launch = finished.launch
    return SummaryLaunch(
        program=launch.program,
        start=launch.start,
        cases=len(launch.cases),
        environment=launch.environment,
        partition=launch.partition,
        processes=launch.processes,
        per_node=launch.per_node,
        launch=launch.number,
        seconds=round(finished.seconds, 3),
        outcome=str(finished.outcome.verdict or (Verdict.INCORRECT if finished.wrong else "ok")),
        reason=finished.outcome.reason or next(iter(finished.wrong.values()), ""),
        directory=finished.directory,
        spec=finished.spec,
    )


def load_summary(path: Path) -> SessionSummary:
    """Read a summary file.

    :raises SummaryError: if the file cannot be read, is not JSON, or does not follow the schema.
    """
    try:
        document = strict_json.parse_json(files.read_regular(path).decode())
    except OSError as error:
        raise SummaryError(f"{path}: {error.strerror}; {FIX}") from None
    except ValueError as error:
        raise SummaryError(f"{path}: {error}; {FIX}") from None
    return parse_summary(document, str(path))


def parse_summary(document: Any, source: str = "summary.json") -> SessionSummary:
    """Turn the JSON object of a summary into a ``SessionSummary``.

    :raises SummaryError: if a key is missing or of the wrong type, a verdict or unit is not of the closed
        list, a case is there twice, or ``counts`` disagrees with the cases. The text begins with ``source``.
    """
    try:
        return _session(_object(document))
    except ValueError as error:
        raise SummaryError(f"{source}: {error}; {FIX}") from None


def _session(entry: JsonObject) -> SessionSummary:
    schema = entry.integer("schema")
    if not MPICOST_ONLY <= schema <= SCHEMA:
        raise ValueError(f"schema: {schema} is none of 1 to {SCHEMA}, which are read here")
    if schema == MPICOST_ONLY:
        entry = JsonObject(_with_one_program(entry))
    if schema <= WITHOUT_POWER:
        unknown = dict.fromkeys(("q", "detectable", "spread", "degrees"))
        entry = JsonObject(
            _with(entry, {"cases": unknown | {"expected": "", "provisional": False}})
        )
    if schema <= WITHOUT_CAUSES:
        entry = JsonObject({"causes": [], **entry.fields})
    results = _objects(entry, "cases", _result)
    if len({result.case for result in results}) < len(results):
        raise ValueError("cases: a case is there twice")
    counts = {word: number for word, number in entry.get("counts", dict).items() if number}
    if counts != count_verdicts(results):
        raise ValueError(
            f"counts: disagrees with the cases, of which there are {count_verdicts(results)}"
        )
    phases = JsonObject(entry.get("phases", dict))
    return _record(
        SessionSummary,
        entry,
        command=tuple(map(str, entry.get("command", list))),
        notes=tuple(map(str, entry.get("notes", list))),
        causes=tuple(map(str, entry.get("causes", list))),
        phases={str(name): phases.number(name) for name in phases.fields},
        machine=_machine(JsonObject(entry.get("machine", dict))),
        environments=_objects(entry, "environments", lambda e: _record(SummaryEnvironment, e)),
        programs=_objects(entry, "programs", lambda e: _record(BuiltProgram, e)),
        launches=_objects(entry, "launches", _read_launch),
        results=results,
    )


#: Facts of the machine that summaries of before do not tell.
LATER_FACTS = {"hardware_threads": 0, "memory_bytes": 0, "firmware": ""}


def _machine(entry: JsonObject) -> Machine:
    caches = _objects(entry, "caches", lambda each: _record(Cache, each))
    return _record(Machine, JsonObject({**LATER_FACTS, **entry.fields}), caches=caches)


def _read_launch(entry: JsonObject) -> SummaryLaunch:
    return _record(SummaryLaunch, JsonObject({"spec": "", **entry.fields}))


def _with_one_program(entry: JsonObject) -> dict[str, Any]:
    """Return a summary of the earlier schema in today's form: all of it was mpicost's."""
    added = {"launches": {"program": "mpicost", "start": "", "cases": 0}, "cases": {"figures": {}}}
    return _with(entry, added) | {"programs": []}


def _with(entry: JsonObject, added: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the same summary, the objects of whose lists have these further keys."""
    fields = dict(entry.fields)
    for key, more in added.items():
        fields[key] = [
            {**more, **each} if isinstance(each, dict) else each for each in entry.get(key, list)
        ]
    return fields


def _object(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError(f"{strict_json.format_external(value)} is not an object")
    return JsonObject(value)


def _objects(
    entry: JsonObject, key: str, read: Callable[[JsonObject], _Record]
) -> tuple[_Record, ...]:
    """Return every object of a list, which may be empty, as ``read`` understands it."""
    found = []
    for number, value in enumerate(entry.get(key, list)):
        try:
            found.append(read(_object(value)))
        except ValueError as error:
            raise ValueError(f"{key}[{number}]: {error}") from None
    return tuple(found)


def _record(cls: type[_Record], entry: JsonObject, **known: Any) -> _Record:
    """Fill a dataclass from an object: ``known`` as given, every other field by its scalar type."""
    names = {field.name: str(field.type) for field in fields(cls)}  # type: ignore[arg-type]
    scalars = {n: entry.get(n, *_KINDS[kind]) for n, kind in names.items() if n not in known}
    return cls(**scalars, **known)


def _result(entry: JsonObject) -> CaseResult:
    word = entry.word("verdict", tuple(map(str, Verdict)))
    statistics = entry.get("statistics", dict, type(None))
    return _record(
        CaseResult,
        entry,
        case=_record(Case, entry),
        verdict=Verdict(word),
        unit=entry.word("unit", tuple(units.UNITS)),
        value=entry.optional_number("value"),
        reference=entry.optional_number("reference"),
        band=_band(entry),
        summary=_record(TrialSummary, JsonObject(statistics)) if statistics is not None else None,
        figures=_figures(entry.object("figures")),
        q=entry.optional_number("q"),
        detectable=entry.optional_number("detectable"),
        spread=entry.optional_number("spread"),
        degrees=entry.optional_number("degrees"),
        cause=entry.get("cause", str) if "cause" in entry.fields else _earlier_cause(entry),
        slow_on=(),  # the log of alarms has it
    )


def _earlier_cause(entry: JsonObject) -> str:
    """Return the common cause of a case in an older summary, in which it has no key of its own."""
    reason = entry.get("reason", str)
    return reason.partition(";")[0] if reason.startswith(EARLIER_CAUSE) else ""


def _figures(entry: JsonObject) -> dict[str, float]:
    """Read numbers by name; some may be negative, such as an overlap that could not be hidden."""
    return {str(name): float(entry.get(name, int, float)) for name in entry.fields}


def _band(entry: JsonObject) -> tuple[float, float] | None:
    limits = entry.get("band", list, type(None))
    if limits is None:
        return None
    if len(limits) != 2:
        raise ValueError("band: is not [lower, upper]")
    lower, upper = (JsonObject({"band": limit}).number("band") for limit in limits)
    return lower, upper
