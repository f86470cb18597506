"""The summary of a session, built once from its results, shown, and written as ``summary.json``."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.formats import utc_now
from postprocess.base.records import Amount, parse_record
from postprocess.base.strict_json import read_json
from postprocess.base.version import VERSION
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Session
from postprocess.model.verdict import CaseResult, Verdict, count_verdicts
from site_configs.mpi.family import Mpi, identify_library
from site_configs.topology.machine import Machine, read_machine

SCHEMA = 5  #: version of the file


class SummaryError(UsageError):
    """The summary cannot be used. The text is one line: file, key, fix."""


@dataclass(frozen=True)
class SummaryEnvironment:
    """One MPI as it was used. ``library`` is the version string of the running program."""

    name: str
    family: str
    version: str
    library: str
    origin: str
    mpicc: str
    mpiexec: str


@dataclass(frozen=True)
class BuiltProgram:
    """A benchmark program as built for one MPI; unknown facts are ``unknown``."""

    environment: str
    program: str
    version: str
    compiler: str
    flags: str  #: including the optimisation level
    spec: str  #: Spack's spec with its hash, or another origin


@dataclass(frozen=True)
class SummaryLaunch:
    """One start of a parallel program. ``outcome`` is ``ok``, ``skipped`` or what went wrong."""

    program: str
    start: str  #: name of the start, if its job has several
    cases: int  #: number of planned cases
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
    #: More than one on hardware threads; the records of a launch that is ``ok`` prove it
    ranks_per_core: int = 1

    @property
    def name(self) -> str:
        """The program, and the name of its start if its job has several."""
        return f"{self.program} {self.start}".strip()

    @property
    def failed(self) -> bool:
        """Whether it was to run but did not end well."""
        return self.outcome not in ("ok", "skipped")


@dataclass(frozen=True)
class SessionSummary:
    """The summary of a session and its cases. Durations are in seconds."""

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
    causes: tuple[str, ...]  #: confirmed causes that slow many cases together, one line each
    phases: dict[str, Amount]
    machine: Machine
    environments: tuple[SummaryEnvironment, ...]
    programs: tuple[BuiltProgram, ...]
    launches: tuple[SummaryLaunch, ...]
    results: tuple[CaseResult, ...]

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """Cases that prevent exit status 0."""
        return tuple(r for r in self.results if not r.counts_as_healthy(self.strict))

    @property
    def outliers(self) -> tuple[CaseResult, ...]:
        """Cases that do not fail the session but are outside their band or failed as expected."""
        healthy = (r for r in self.results if r.counts_as_healthy(self.strict))
        return tuple(r for r in healthy if r.beyond or r.by_headline or r.expected)

    @property
    def good(self) -> bool:
        """Whether the session ended well: status 0, at least one case, and none failed."""
        return self.exit_status == 0 and bool(self.results) and not self.failed

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data for the file; :func:`load_summary` reads it back."""
        of_session = [field.name for field in fields(self) if field.name not in ("launches", "results")]
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in of_session},
            "command": list(self.command),
            "notes": list(self.notes),
            "causes": list(self.causes),
            "machine": self.machine.as_dict(),
            "environments": [asdict(environment) for environment in self.environments],
            "programs": [asdict(program) for program in self.programs],
            "counts": count_verdicts(self.results),
            "launches": [asdict(launch) for launch in self.launches],
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
    return SessionSummary(
        plumbline=VERSION,
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
        launches=tuple(_launch(run) for run in finished),
        results=tuple(results),
    )


def environments(mpis: Sequence[Mpi], finished: Sequence[FinishedLaunch]) -> list[SummaryEnvironment]:
    """Return the environments of the session, with the version strings that running programs reported."""
    libraries: dict[str, str] = {}
    for launched in finished:
        libraries.setdefault(launched.launch.environment, launched.launch.library)
        if launched.run:
            libraries[launched.launch.environment] = launched.run["mpi_library"]
    by_name = {mpi.name: mpi for mpi in mpis}
    used = []
    for name in sorted(libraries):
        if mpi := by_name.get(name):
            build = (mpi.family, mpi.version, libraries[name], mpi.origin, mpi.mpicc, mpi.mpiexec)
        else:
            identity = identify_library(libraries[name])
            family, version = identity if identity[0] != "unknown" else ("", "")
            build = (family, version, libraries[name], "site", "", "")
        used.append(SummaryEnvironment(name, *build))
    return used


def programs(finished: Sequence[FinishedLaunch]) -> list[BuiltProgram]:
    """Return the programs of each environment as built; unknown facts are ``unknown``.

    Launches that ended well come first, because a running program may report more than its build.
    """
    built_programs: dict[tuple[str, str], BuiltProgram] = {}
    for run in sorted(finished, key=lambda launched: not launched.run):
        place = (run.launch.environment, run.launch.program)
        if run.launch.cases and place not in built_programs:
            built = run.binary
            sources = "" if built.source == "official" else f", sources: {built.source}"
            spec = built.spec + sources
            built_programs[place] = BuiltProgram(*place, built.version, built.compiler, built.flags, spec)
    return [built_programs[place] for place in sorted(built_programs)]


def _launch(finished: FinishedLaunch) -> SummaryLaunch:
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
        ranks_per_core=launch.ranks_per_core,
    )


FIX = "run the session again, or report with the Plumbline that wrote it"
#: Fields of a result that only the session itself has, with their values elsewhere
OWN: dict[str, Any] = {"slow_on": (), "elsewhere": False, "core_latency": None}
WANTED = {field.name for field in fields(CaseResult)} - {"case", "summary", *OWN}


@dataclass(frozen=True)
class _Document:
    """The part of the document that is checked first."""

    schema: int
    counts: dict[str, int]
    cases: list[dict[str, Any]]


@dataclass(frozen=True)
class _Judged:
    cases: tuple[CaseResult, ...]


def load_summary(path: Path) -> SessionSummary:
    """Read a summary file.

    :raises SummaryError: if the file cannot be read, is not JSON, or does not follow the schema.
    """
    try:
        document = read_json(path)
    except OSError as error:
        raise SummaryError(f"{path}: {error.strerror}; {FIX}") from None
    except ValueError as error:
        what = "is not JSON: " if isinstance(error, json.JSONDecodeError) else ""
        raise SummaryError(f"{path}: {what}{error}; {FIX}") from None
    return parse_summary(document, str(path))


def parse_summary(document: Any, source: str = "summary.json") -> SessionSummary:
    """Convert the JSON object of a summary to a ``SessionSummary``.

    :raises SummaryError: if a key is missing or of the wrong type, a verdict or unit is not in the closed list,
    a case is there twice, or ``counts`` disagrees with the cases. The text begins with ``source``.
    """
    try:
        return _parse(document)
    except ValueError as error:
        raise SummaryError(f"{source}: {error}; {FIX}") from None


def _parse(document: Any) -> SessionSummary:
    head = parse_record(document, _Document)
    if head.schema != SCHEMA:
        raise ValueError(f"schema: is {head.schema}, and this Plumbline reads {SCHEMA}")
    cases = [_nest(entry, number) for number, entry in enumerate(head.cases)]
    results = parse_record({"cases": cases}, _Judged).cases
    if len({result.case for result in results}) < len(results):
        raise ValueError("cases: a case is there twice")
    counts = count_verdicts(results)
    if {word: number for word, number in head.counts.items() if number} != counts:
        raise ValueError(f"counts: disagrees with the cases, of which there are {counts}")
    return replace(parse_record(document | {"results": []}, SessionSummary), results=results)


def _nest(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the object of a case in the form of its classes. Raises ValueError if a key is missing."""
    if missing := sorted({*WANTED, "statistics"} - entry.keys()):
        raise ValueError(f"cases[{number}].{missing[0]}: is missing")
    return entry | {"case": entry, "summary": entry["statistics"], **OWN}
