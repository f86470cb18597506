"""Read the JSON Lines of mpicost whole, check them for consistency, or refuse them.

A launch writes one ``run`` record, one ``case`` record per case and one ``end`` record. A file that is not
whole is ``incomplete``; one that cannot be true is ``incorrect``.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from postprocess.base import files, strict_json
from postprocess.base.formats import SECONDS
from postprocess.base.strict_json import JsonObject
from postprocess.model.case import Case
from postprocess.model.measurement import CaseRecord, Lateness, LaunchProvenance, Measurement, measure_trials
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers import mpicost_schema
from postprocess.parsers.lateness import parse_lateness


def feed_records(path: Path, take: Callable[[JsonObject], None], data: bytes | None = None) -> None:
    """Pass every record to ``take``, and prefix its errors with the file and the line.

    :param data: contents of the file, if it was read before.
    :raises RecordError: incomplete for a file or a line that is not whole; incorrect if ``take`` raised
    ValueError; otherwise as ``take`` raised it.
    """
    for where, line in iter_lines(path, data):
        try:
            take(parse_record(line))
        except RecordError as error:
            raise RecordError(error.verdict, f"{where}: {error}") from None
        except ValueError as error:
            raise RecordError(Verdict.INCORRECT, f"{where}: {error}") from None


def iter_lines(path: Path, data: bytes | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield each line after its place, ``out.jsonl: line 3``. RecordError if the last line is cut off."""
    try:
        *whole, rest = (files.read_regular(path) if data is None else data).split(b"\n")
    except OSError as error:
        message = f"{path}: {error.strerror}; the program wrote no result"
        raise RecordError(Verdict.INCOMPLETE, message) from None
    for number, line in enumerate(whole, 1):
        yield f"{path}: line {number}", line
    if rest:
        message = f"{path}: line {len(whole) + 1}: the line is cut off"
        raise RecordError(Verdict.INCOMPLETE, message)


def parse_record(line: bytes) -> JsonObject:
    """Parse the record of a line. RecordError if it is cut off, ValueError if it is not a record."""
    try:
        value = strict_json.parse_json(line.decode())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RecordError(Verdict.INCOMPLETE, f"not a whole JSON object: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{strict_json.format_external(value)} is not a record")
    return JsonObject(value)


@dataclass(frozen=True, eq=False)
class LaunchRecords(LaunchProvenance):
    """The records of one launch, whole and free of contradiction."""

    cases: list[CaseRecord]  #: in the order of execution
    end: dict[str, Any]

    @cached_property
    def measurements(self) -> dict[str, Measurement]:
        """Measurements of the cases whose data was right, by variable."""
        right = (record for record in self.cases if not record.wrong)
        return {record.variable: measure_trials(record) for record in right}

    @cached_property
    def wrong(self) -> dict[str, str]:
        """Descriptions of damaged data, by variable of the case."""
        return {record.variable: record.wrong for record in self.cases if record.wrong}

    @cached_property
    def lateness(self) -> Lateness | None:
        """Lateness of the ranks; None if it was not recorded."""
        return parse_lateness(JsonObject(self.end), JsonObject(self.run))

    @property
    def cache(self) -> str:
        return self.run["cache"]

    @property
    def sync(self) -> str:
        return self.run["sync"]

    def resolution(self, unit: str) -> float:
        """Return the resolution of the timer in seconds, the only unit here."""
        assert unit == SECONDS
        return float(self.run["timer"]["resolution"])

    def case(self, record: CaseRecord, system: str, partition: str, environment: str) -> Case:
        """Return the case of a record, given where the launch ran."""
        return Case(
            system=system,
            partition=partition,
            environment=environment,
            program=self.run["program"],
            routine=record.routine,
            peer=record.peer,
            cache=self.cache,
            sync=self.sync,
            processes=self.processes,
            per_node=self.per_node,
            bytes=record.bytes,
        )


def read_launch(path: Path, data: bytes | None = None) -> LaunchRecords:
    """Read the records of one launch, complete and consistent. Cases may have received wrong data.

    Correctness comes first: if the file has any other fault, wrong data makes all of it incorrect.

    :param data: contents of the file, if it was read before.
    :raises RecordError: with the verdict on the launch.
    """
    reader = _Reader()
    try:
        feed_records(path, reader.take, data)
        return reader.finish(path)
    except RecordError as error:
        if not reader.wrong:
            raise
        raise RecordError(Verdict.INCORRECT, f"{error}; and {reader.wrong}") from None


@dataclass
class _Reader:
    """The state of reading: the records taken, and which may come next."""

    run: JsonObject | None = None
    cases: dict[str, CaseRecord] = field(default_factory=dict)
    end: JsonObject | None = None
    wrong: str = ""  #: the first wrong data of a case

    def take(self, entry: JsonObject) -> None:
        """Add one record. Raises ValueError or RecordError if it is not allowed there."""
        kind = entry.word("record", ("run", "case", "end"))
        if self.end is not None:
            raise ValueError(f"record: {kind} after the end")
        if kind == "run":
            self._begin(entry)
        elif self.run is None:
            raise RecordError(Verdict.INCOMPLETE, "record: the run record before it is missing")
        elif kind == "case":
            self._add(entry, self.run)
        else:
            self.end = mpicost_schema.parse_end_record(entry, self.run)

    def _begin(self, entry: JsonObject) -> None:
        if self.run is not None:
            raise ValueError("record: a second run in one file")
        self.run = mpicost_schema.parse_run_record(entry)

    def _add(self, entry: JsonObject, run: JsonObject) -> None:
        # first of all, whatever else is wrong with the case
        self.wrong = self.wrong or mpicost_schema.describe_wrong_data(entry, run)
        case = mpicost_schema.parse_case_record(entry, run)
        mpicost_schema.check_statistics(entry, case.summary)
        if case.variable in self.cases:
            raise ValueError(f"record: case {case.variable} is there twice")
        self.cases[case.variable] = case

    def finish(self, path: Path) -> LaunchRecords:
        """Return all records at the end of the file. Raises RecordError if some are missing."""
        if self.run is None:
            raise RecordError(Verdict.INCOMPLETE, f"{path}: is empty; the program wrote nothing")
        planned, arrived = self.run.integer("cases"), len(self.cases)
        if self.end is None or arrived < planned:
            missing = "no end record; " if self.end is None else ""
            message = f"{path}: {missing}{arrived} of {planned} cases are there"
            raise RecordError(Verdict.INCOMPLETE, message)
        ended = self.end.integer("cases")
        if not arrived == planned == ended:
            message = f"{path}: cases: {arrived} found, {planned} planned, {ended} at the end"
            raise RecordError(Verdict.INCORRECT, message)
        try:
            # each later visit of a case has one more trial, whose time is discarded
            untimed = len(self.cases) * (self.run.integer("rounds") - 1)
            trials = sum(case.t_max.size for case in self.cases.values()) + untimed
            mpicost_schema.check_flush_sum(self.run, self.end, trials)
            mpicost_schema.check_evicted_lines(self.run, self.end, trials)
        except ValueError as error:
            raise RecordError(Verdict.INCORRECT, f"{path}: {error}") from None
        if self.end.flag("verified") is bool(self.wrong):
            message = f"{path}: verified: the end record contradicts the cases"
            raise RecordError(Verdict.INCORRECT, message)
        cases = list(self.cases.values())
        return LaunchRecords(dict(self.run.fields), cases, dict(self.end.fields))
