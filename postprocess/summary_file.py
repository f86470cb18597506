"""The summary of a session as a file: everything that was said of it, for people's tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from postprocess import atomic
from postprocess.errors import UsageError
from postprocess.judgement import Finished
from postprocess.preparation import Prepared
from postprocess.programs import Program
from postprocess.summaries import SCHEMA
from postprocess.verdicts import CaseResult, count
from site_configs.machine import read_machine
from site_configs.mpis import identify

VERSION = "0.1.0"


def utc_now() -> str:
    """The time now, as written everywhere."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Session:
    """What is known of a session from its beginning."""

    directory: Path
    mode: str  #: the command that opened it, as ``nightly``; or its part in one, as ``confirm``
    site: str
    command: Sequence[str]
    strict: bool
    started_utc: str = field(default_factory=utc_now)

    @property
    def name(self) -> str:
        """The session's name, which sorts by time."""
        return self.directory.name


def document(
    session: Session,
    prepared: Prepared,
    finished: Sequence[Finished],
    results: Sequence[CaseResult],
    exit_status: int,
    notes: Sequence[str],
    phases: dict[str, float],
) -> dict[str, Any]:
    """The summary as plain data; ``postprocess.summaries`` reads it back."""
    return {
        "schema": SCHEMA,
        "plumbline": VERSION,
        "session": session.name,
        "mode": session.mode,
        "site": session.site,
        "started_utc": session.started_utc,
        "ended_utc": utc_now(),
        "command": list(session.command),
        "strict": session.strict,
        "exit_status": exit_status,
        "built_with": prepared.built_with,
        "notes": list(notes),
        "phases": {name: round(seconds, 3) for name, seconds in phases.items()},
        "machine": read_machine().as_dict(),
        "environments": environments(prepared, finished),
        "programs": programs(finished),
        "counts": count(results),
        "launches": [launch_entry(each) for each in finished],
        "cases": [result.entry() for result in results],
    }


def environments(prepared: Prepared, finished: Sequence[Finished]) -> list[dict[str, str]]:
    """Each environment of the session, with what its running program said of its MPI."""
    said: dict[str, str] = {}
    for each in finished:
        said.setdefault(each.launch.environment, each.launch.library)
        if each.run:
            said[each.launch.environment] = each.run["mpi_library"]
    known = {mpi.name: mpi for mpi in prepared.inventory.mpis} if prepared.inventory else {}
    entries = []
    for name in sorted(said):
        mpi = known.get(name)
        told = identify(said[name])
        family, version = told if told[0] != "unknown" else ("", "")
        entries.append(
            {
                "name": name,
                "family": mpi.family if mpi else family,
                "version": mpi.version if mpi else version,
                "library": said[name],
                "origin": mpi.origin if mpi else "site",
                "mpicc": mpi.mpicc if mpi else "",
                "mpiexec": mpi.mpiexec if mpi else "",
            }
        )
    return entries


def programs(finished: Sequence[Finished]) -> list[dict[str, str]]:
    """Each program of each environment as it was built; what nobody knows of it is ``unknown``."""
    found = {}
    for each in finished:
        place = (each.launch.environment, each.launch.program)
        if each.launch.cases and place not in found:
            built = each.built or Program(*place, path="", spec=each.spec)
            sources = "" if built.source == "official" else f", sources: {built.source}"
            facts = asdict(built) | {"spec": built.spec + sources}
            found[place] = {key: facts[key] for key in ("version", "compiler", "flags", "spec")}
    return [
        {"environment": environment, "program": program, **found[environment, program]}
        for environment, program in sorted(found)
    ]


def launch_entry(finished: Finished) -> dict[str, Any]:
    """One launch and how it ended."""
    launch = finished.launch
    return {
        "program": launch.program,
        "start": launch.start,
        "cases": len(launch.cases),
        "environment": launch.environment,
        "partition": launch.partition,
        "processes": launch.processes,
        "per_node": launch.per_node,
        "launch": launch.number,
        "seconds": round(finished.seconds, 3),
        "outcome": str(finished.outcome.verdict or "ok"),
        "reason": finished.outcome.reason,
        "directory": finished.directory,
        "spec": finished.spec,
    }


def write_summary(path: Path, data: dict[str, Any]) -> None:
    """Write a summary whole or not at all. A device (``/dev/stdout``) is written to, never replaced.

    :raises UsageError: if the file cannot be written.
    """
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text)
        else:
            atomic.replace({path: text.encode()})
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}; make room or choose another place"
        ) from None
