"""The summary of a session as a file: everything that was said of it, for people's tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from postprocess.base.formats import utc_now
from postprocess.model.launch import Finished
from postprocess.model.session import Session
from postprocess.model.verdict import CaseResult, count
from postprocess.results.summary import SCHEMA
from site_configs.mpi.family import Mpi, identify
from site_configs.topology.machine import read_machine
from spack_envs.programs import Program

VERSION = "0.1.0"


def document(
    session: Session,
    built_with: str,
    mpis: Sequence[Mpi],
    finished: Sequence[Finished],
    results: Sequence[CaseResult],
    exit_status: int,
    notes: Sequence[str],
    phases: dict[str, float],
) -> dict[str, Any]:
    """The summary as plain data; ``postprocess.results.summary`` reads it back."""
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
        "built_with": built_with,
        "notes": list(notes),
        "phases": {name: round(seconds, 3) for name, seconds in phases.items()},
        "machine": read_machine().as_dict(),
        "environments": environments(mpis, finished),
        "programs": programs(finished),
        "counts": count(results),
        "launches": [launch_entry(each) for each in finished],
        "cases": [result.entry() for result in results],
    }


def environments(mpis: Sequence[Mpi], finished: Sequence[Finished]) -> list[dict[str, str]]:
    """Each environment of the session, with what its running program said of its MPI."""
    said: dict[str, str] = {}
    for each in finished:
        said.setdefault(each.launch.environment, each.launch.library)
        if each.run:
            said[each.launch.environment] = each.run["mpi_library"]
    known = {mpi.name: mpi for mpi in mpis}
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
