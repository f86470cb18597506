"""What the witness wrote: on which MPI, and where, a benchmark ran that is not ours.

The witness is a library of the suite that is preloaded into OSU and IMB. In ``MPI_Finalize`` it adds a ``run``
record to its file, and behind it an ``end`` record, once every rank has come there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base.documents.strict_json import JsonObject
from postprocess.model.measurement import CORE_LATENCIES, LaunchProvenance
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers import json_lines, mpicost_schema
from postprocess.parsers.mpicost_schema import CORES

LOADED = (
    "loaded"  #: in run records: what tells the program and its libraries from other builds of them
)
LOADED_PARTS = ("program", "libraries")


@dataclass(frozen=True, eq=False)
class Witness(LaunchProvenance):
    """What one start of a benchmark ran on, whole and free of contradiction.

    Keys are those of the run record of mpicost, where it has them.
    """

    end: dict[str, Any]  #: ``elapsed``: seconds from MPI_Init to MPI_Finalize, of the slowest rank


def read_witness(path: Path, data: bytes | None = None) -> Witness:
    """Read the records of a witness, complete and consistent.

    :param data: what is in the file, where it was read before.
    :raises RecordError: incomplete if it is missing, empty, cut off or without its end; incorrect if it
        contradicts itself, or if several starts or worlds of processes wrote to the file.
    """
    if data is None and not path.exists():
        message = (
            f"{path}: is not there; no MPI_Finalize of the MPI of this environment was reached"
        )
        raise RecordError(Verdict.INCOMPLETE, message)
    reader = _Reader()
    json_lines.feed_records(path, reader.take, data)
    return reader.finish(path)


@dataclass
class _Reader:
    """The records taken so far, and which may come next."""

    run: JsonObject | None = None
    end: JsonObject | None = None

    def take(self, entry: JsonObject) -> None:
        """Add one record. Raises ValueError or RecordError if it cannot stand where it does."""
        kind = entry.word("record", ("run", "end"))
        if kind == "run":
            if self.run is not None:
                raise ValueError("record: a second run in one file: not one world of processes")
            self.run = _checked_run(entry)
        elif self.run is None:
            raise RecordError(Verdict.INCOMPLETE, "record: the run record before it is missing")
        elif self.end is not None:
            raise ValueError("record: a second end in one file")
        else:
            self.end = _checked_end(entry, self.run)

    def finish(self, path: Path) -> Witness:
        """Return both records, once the file is read. Raises RecordError if one is missing."""
        if self.run is None:
            raise RecordError(Verdict.INCOMPLETE, f"{path}: is empty; MPI_Finalize was not reached")
        if self.end is None:
            message = f"{path}: no end record; MPI_Finalize did not end well"
            raise RecordError(Verdict.INCOMPLETE, message)
        return Witness(dict(self.run.fields), dict(self.end.fields))


def _checked_run(entry: JsonObject) -> JsonObject:
    mpicost_schema.check_schema(entry)
    for key in ("program", "mpi_library", "date_utc"):
        entry.text(key)
    entry.object("witness").text("source_hash")
    mpicost_schema.check_surroundings(entry)
    mpicost_schema.check_places(entry)
    mpicost_schema.check_interposed(entry)
    if LOADED in entry.fields:
        for key in LOADED_PARTS:
            entry.object(LOADED).text(key)
    least, most = CORE_LATENCIES
    if CORES in entry.fields and not least <= entry.number(CORES) <= most:
        raise ValueError(f"{CORES}: {entry.number(CORES)!r} is not {least:g} to {most:g}")
    return entry


def _checked_end(entry: JsonObject, run: JsonObject) -> JsonObject:
    arrived, processes = entry.integer("arrived"), run.integer("processes")
    if arrived != processes:
        raise ValueError(f"arrived: {arrived} of {processes} processes reached MPI_Finalize")
    entry.number("elapsed")
    mpicost_schema.check_end(entry)
    return entry
