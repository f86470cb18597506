"""Two stored sessions, or nights, held against each other: nothing is measured, and nothing proven safe."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from postprocess.base.errors import UsageError
from postprocess.base.formats import first_of, utc_now
from postprocess.base.progress import Progress
from postprocess.base.records import is_measurable, parse_record
from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, OLD, CaseValue, ComparisonPass, LaunchValues, SharedCase
from postprocess.features.compare.judge import TABLE
from postprocess.features.compare.measure.passes import describe_run_place
from postprocess.features.compare.measure.run import conclude, is_finished, name_new_folder, report_differences
from postprocess.model.case import Case
from postprocess.model.conditions import library_identity
from postprocess.model.options import OPTIONS
from postprocess.model.reference import Reference
from postprocess.model.verdict import WITHOUT_VALUE, CaseResult, Verdict
from postprocess.references.catalog import load_catalog
from postprocess.references.reference_file import load_session_priors
from postprocess.results.query import read_headlines
from postprocess.results.store import SUFFIX, list_sessions, parse_run_json, read_session
from postprocess.results.summary import load_summary
from postprocess.stats.priors import add_priors, add_session_priors
from postprocess.stats.sessions import predict_sessions, summarize_sessions
from site_configs.schema.fields import PLATFORM_HASH

NAMED = 3  #: things that a line names
NO_PAIR = 1  #: block of all passes: none is a trial run
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
COLUMNS = ("key", "launch", "verdict", "reason", "value", "unit", "hosts", "provenance")
REFERENCE = "reference"  #: source of what is known of a case; the other is :data:`TABLE`


@dataclass(frozen=True)
class StoredDemand:
    old: str  #: a session or a day, with ``:ENVIRONMENT`` to choose one
    new: str
    margins: tuple[float, float, float]  #: as fractions, by class of sizes
    choice: Mapping[str, Any]  #: of cases, by variables of the checks
    command: Sequence[str]
    directory: Path | None = None
    json_file: Path | None = None


def compare_stored(work: WorkDirectory, demand: StoredDemand, progress: Progress) -> int:
    """Compare stored sessions. Returns the exit status."""
    old, new = (read_side(work, word, demand.choice) for word in (demand.old, demand.new))
    require_comparable(old, new)
    if len(old.environments) > 1 or len(new.environments) > 1:
        old, new = replace(old, mixed=True), replace(new, mixed=True)
    header = describe_stored(demand, old, new)
    report_differences(header, progress)
    folder = demand.directory or name_new_folder(work, header)
    path = folder / data.FILE
    if path.exists() or is_finished(folder):
        raise UsageError(f"{folder}: holds a comparison; choose another --output")
    data.append_record(path, header)
    sides: dict[data.Side, StoredSide] = {OLD: old, NEW: new}
    keys = {side.key(row.case) for side in sides.values() for row in side.rows}
    for name, side in sides.items():
        for number, session in enumerate(side.sessions):
            launches = (*side.collect_launches(session), *side.collect_absent(session, keys))
            data.append_record(path, ComparisonPass(NO_PAIR, number, name, session, 0.0, launches))
    data.append_record(path, data.KnownNoise(find_case_noise(work, sides)))
    return conclude(folder, progress, demand.json_file)


def require_comparable(old: StoredSide, new: StoredSide) -> None:
    """Require that both sides are of one machine, and that it is known which MPI to hold against which.

    :raises UsageError: if they are not, or it is not
    """
    if len(old.systems | new.systems) > 1:
        both = first_of(sorted(old.systems | new.systems), NAMED)
        raise UsageError(f"{old.label} and {new.label}: are of {both}; ./plumbline papers compares machines")
    several = len(old.environments) > 1 or len(new.environments) > 1
    if several and not old.environments & new.environments:
        raise UsageError(
            f"{old.label} and {new.label}: have no environment in common; choose one of each side, as "
            f"{old.label.partition(':')[0]}:{min(old.environments)}"
        )
    if (old.sessions, old.environments) == (new.sessions, new.environments):
        raise UsageError(f"{old.label} and {new.label} are the same launches; name another session")


def describe_stored(demand: StoredDemand, old: StoredSide, new: StoredSide) -> data.ComparisonHeader:
    """Describe an unpaired comparison, and in what its launches differ by their records."""
    one, two = (
        {what: first_of(sorted(said), NAMED) for what, said in side.told.items()} for side in (old, new)
    )
    return data.ComparisonHeader(
        site=next(iter(old.systems)),
        old=old.described,
        new=new.described,
        choice=demand.choice,
        margins=demand.margins,
        seconds=None,
        control=False,
        seed=0,
        differences=tuple((what, one[what], two[what]) for what in one if one[what] != two[what]),
        started_utc=utc_now(),
        command=tuple(demand.command),
        unpaired=True,
    )


#: CPUs as Linux writes them: with longer numbers a range of them would fill the memory.
CpuList = Annotated[str, msgspec.Meta(pattern=r"\A(?!.*[0-9]{7})", max_length=10_000)]


@dataclass(frozen=True)
class ToldHost:
    """A node of a run record, as far as a comparison reads it."""

    name: str


@dataclass(frozen=True)
class ToldRank:
    """A process of a run record."""

    host: str
    cpus: CpuList = ""


@dataclass(frozen=True)
class ToldCache:
    """A cache of a run record, of any words."""

    level: Any
    type: Any
    bytes: Any
    shared_by: Any


@dataclass(frozen=True)
class ToldRun:
    """What a comparison reads of a run record, and of what type it must be."""

    mpi_library: str | None = None
    cpu_model: str | None = None
    environment: dict[str, Any] | None = None
    hosts: tuple[ToldHost, ...] | None = None
    ranks: tuple[ToldRank, ...] = ()
    caches: tuple[ToldCache, ...] | None = None


@cache  # the cases of a launch share it
def read_run(text: str) -> Mapping[str, Any]:
    """Read a run record; an empty one for what is none. Raises ValueError if its inside is another's."""
    run = parse_run_json(text)
    parse_record(run, ToldRun)
    return run


@dataclass(frozen=True)
class StoredCase:
    session: str
    case: Case
    launch: int
    value: CaseValue
    hosts: tuple[str, ...]
    provenance: str  #: the run record as JSON; empty if the launch left none

    @property
    def run(self) -> Mapping[str, Any]:
        return read_run(self.provenance)


@dataclass(frozen=True)
class StoredSide:
    label: str  #: as the user named it
    rows: tuple[StoredCase, ...]
    #: By session what its record says of each case that was chosen; None where the record is gone.
    recorded: Mapping[str, Sequence[CaseResult] | None] = field(default_factory=dict)
    mixed: bool = False  #: whether a case is named with its environment, as a side has several

    @property
    def sessions(self) -> tuple[str, ...]:
        """Its sessions, the earliest first."""
        return tuple(sorted({row.session for row in self.rows}))

    @property
    def environments(self) -> set[str]:
        return {row.case.environment for row in self.rows}

    @property
    def systems(self) -> set[str]:
        """The machines that it was measured on."""
        return {row.case.system for row in self.rows}

    @property
    def described(self) -> data.ComparedSide:
        """The side as the pages show it."""
        return data.ComparedSide(self.label, first_of(sorted(self.environments), None))

    @property
    def told(self) -> dict[str, set[str]]:
        """What its launches ran on, and with what."""
        runs = {
            (row.case.environment, row.session, row.provenance): row.run for row in self.rows if row.provenance
        }
        hosts = [host for run in runs.values() for host in run.get("hosts") or ()]
        return {
            "sessions": set(self.sessions),
            "environment": self.environments,
            "MPI library": {
                f"{key[0]}: {said}" if self.mixed else said
                for key, run in runs.items()
                if (said := library_identity(run.get("mpi_library")))
            },
            "processor": {run.get("cpu_model") or "unknown" for run in runs.values()},
            "kernel": {str(host.get("kernel", "unknown")) for host in hosts},
            "nodes": {str(host["name"]) for host in hosts},
            "suite": {str(run.get("suite_version", "unknown")) for run in runs.values()},
        }

    def key(self, case: Case) -> str:
        """Return the key that a case shares with the other side."""
        shared = SharedCase.of(case)
        if self.mixed:
            shared = shared._replace(partition=f"{shared.partition}:{case.environment}")
        return shared.key

    def collect_absent(self, session: str, keys: Collection[str]) -> Iterator[LaunchValues]:
        """Collect why cases are not stored: of those that were skipped only the record of the session tells.

        :param keys: of all cases that a side has stored
        """
        own = {self.key(row.case) for row in self.rows}
        recorded = self.recorded.get(session)
        if recorded is None:
            why = f"not stored, and the record of session {session}, which would say why, is gone"
            found = {key: CaseValue(None, "s", str(Verdict.SKIPPED), why) for key in keys}
        else:
            found = {
                self.key(result.case): CaseValue(None, result.unit, str(result.verdict), result.reason)
                for result in recorded
                if result.verdict == Verdict.SKIPPED
            }
        if absent := {key: said for key, said in found.items() if key not in own}:
            yield LaunchValues("not launched", {}, absent)

    def collect_launches(self, session: str) -> tuple[LaunchValues, ...]:
        """Collect the launches of a session, each with all its cases."""
        seen: Counter[tuple[str, int]] = Counter()
        found: dict[tuple[str, int, int], list[StoredCase]] = defaultdict(list)
        for row in self.rows:
            if row.session == session:
                again = (row.case.key, row.launch)
                found[row.provenance, row.launch, seen[again]].append(row)
                seen[again] += 1
        return tuple(
            LaunchValues(
                f"{some[0].case.program} {some[0].case.layout} {some[0].launch}",
                describe_run_place(some[0].run, some[0].hosts),
                {self.key(case.case): case.value for case in some},
            )
            for some in found.values()
        )

    def group_measured(self) -> dict[str, list[StoredCase]]:
        """Group the launches that have a value by the key of their case."""
        found: dict[str, list[StoredCase]] = defaultdict(list)
        for row in self.rows:
            if row.value.value is not None:
                found[self.key(row.case)].append(row)
        return found


def read_side(work: WorkDirectory, word: str, choice: Mapping[str, Any]) -> StoredSide:
    """Read what a word names, as ``20261121T090000Z-1``, ``2026-11-21`` or either with ``:ENVIRONMENT``.

    :param choice: of cases, by variables of the checks
    :raises UsageError: if there is no such session or environment, or none of the chosen cases in it
    """
    named, _, environment = word.partition(":")
    sessions = find_sessions(work, named)
    recorded = {session: read_recorded(work, session) for session in sessions}
    rows = [row for session in sessions for row in read_stored_session(work, session, recorded[session])]
    there = sorted({row.case.environment for row in rows})
    if environment and environment not in there:
        raise UsageError(f"{word}: has no such environment; it has {first_of(there, NAMED) or 'none'}")

    def is_meant(case: Case) -> bool:
        return environment in ("", case.environment) and is_chosen(case, choice)

    chosen = tuple(row for row in rows if is_meant(row.case))
    if not chosen:
        raise UsageError(f"{word}: has no case of those chosen; choose others")
    told = {
        session: results if results is None else [result for result in results if is_meant(result.case)]
        for session, results in recorded.items()
    }
    return StoredSide(word, chosen, told)


def find_sessions(work: WorkDirectory, named: str) -> list[str]:
    """Find the session of a name, or the nights that began on a day (UTC).

    :raises UsageError: if there is none
    """
    if not DAY.fullmatch(named):
        if (work.store / f"{named}{SUFFIX}").exists():
            return [named]
        known = [path.name.removesuffix(SUFFIX) for path in list_sessions(work.store)]
        last = first_of(known[: -NAMED - 1 : -1], None) or "none"
        raise UsageError(f"{named}: no such session in {work.store}; the last ones are {last}")
    nights = read_headlines(work.store, since=named, columns=["session", "started_utc"]).unique()
    found = [name for name, start in nights.rows() if start.startswith(named)]
    if not found:
        raise UsageError(f"{named}: no night of that day in {work.store}; name a session")
    return sorted(found)


def read_stored_session(
    work: WorkDirectory, session: str, recorded: Sequence[CaseResult] | None
) -> list[StoredCase]:
    """Read all launches of a session. Raises StoreError if its file is damaged."""
    path = work.store / f"{session}{SUFFIX}"
    frame = read_session(path, COLUMNS)
    again = {result.case.key: result.rerun for result in recorded or ()}
    try:
        return [
            StoredCase(
                session,
                Case.from_key(row["key"]),
                row["launch"],
                read_row_value(row, again.get(row["key"], "")),
                tuple(filter(None, row["hosts"].split(","))),
                row["provenance"],
            )
            for row in frame.iter_rows(named=True)
        ]
    except ValueError as error:
        raise UsageError(f"{path}: {error}; move it elsewhere") from None


def read_recorded(work: WorkDirectory, session: str) -> Sequence[CaseResult] | None:
    """Read what the record of a session says of each case; None if the session's folder is gone."""
    path = work.sessions / session / "summary.json"
    return load_summary(path).results if path.exists() else None


def read_row_value(row: Mapping[str, Any], rerun: str) -> CaseValue:
    """Read what a launch says of a case: its value, or why there is none. Its speed is not judged here.

    Raises ValueError if its run record is damaged.
    """
    verdict, value, unit = Verdict(row["verdict"]), row["value"], row["unit"]
    run = read_run(row["provenance"])
    if verdict in WITHOUT_VALUE or not is_measurable(value or 0.0):
        failed = verdict if value is None else Verdict.INCOMPLETE
        return CaseValue(None, unit, str(failed), row["reason"], rerun)
    exact = PLATFORM_HASH in (run.get("environment") or {})
    return CaseValue(value, unit, rerun=rerun, exact=exact)


def is_chosen(case: Case, choice: Mapping[str, Any]) -> bool:
    wanted = [(option, option.wanted(choice)) for option in OPTIONS if option.part]
    return all(not values or each.value_of(case) in values for each, values in wanted)


def find_case_noise(
    work: WorkDirectory, sides: Mapping[data.Side, StoredSide]
) -> dict[str, dict[data.Side, data.SideNoise]]:
    """Find how far each case may lie off, by its key and side; without what nothing is known of.

    :raises postprocess.base.errors.UsageError: if references or the store are damaged
    """
    rows = [row for side in sides.values() for row in side.rows if row.value.value is not None]
    cases = {row.case for row in rows}
    places = {(f"{each.system}:{each.partition}", each.environment) for each in cases}
    catalog = load_catalog(work.reference_roots, places)
    others = assume_references(rows)
    found: dict[str, dict[data.Side, data.SideNoise]] = defaultdict(dict)
    for name, side in sides.items():
        for key, some in side.group_measured().items():
            case = some[0].case
            told = predict_noise(catalog.reference(case), some, REFERENCE)
            if told := told or predict_noise(others.get(case), some, TABLE):
                found[key][name] = told
    return dict(found)


def predict_noise(
    reference: Reference | None, rows: Sequence[StoredCase], source: str
) -> data.SideNoise | None:
    """Predict how far the mean of the sessions of these launches lies off; None if nothing tells."""
    if reference is None or reference.exact or reference.moderated[1] <= 0:
        return None
    found = predict_sessions(reference, list(Counter(row.session for row in rows).values()))
    return data.SideNoise(found.deviation, found.degrees, source) if found.deviation > 0 else None


def assume_references(rows: Sequence[StoredCase]) -> dict[Case, Reference]:
    """Make references of the launches themselves: spread within sessions, and of sessions what others had.

    What lies between the sessions is not used: it is the very difference that is asked for.
    """
    values: dict[Case, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.value.value is not None and not row.value.exact:
            values[row.case][row.session].append(row.value.value)
    found = {}
    for case, sessions in values.items():
        flat = [value for some in sessions.values() for value in some]
        numbers = [n for n, some in enumerate(sessions.values()) for _ in some]
        spread = summarize_sessions(flat, numbers).spread
        worth = len(flat) - len(sessions) + 1  #: launches of one session that tell as much
        found[case] = Reference(case, flat[0], spread, worth)
    return add_session_priors(add_priors(found), load_session_priors())
