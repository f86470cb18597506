"""Where the numbers of a reference file come from: the JSON file beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from postprocess import strict_json
from postprocess.strict_json import Entry, shown

SUFFIX = ".provenance.json"
TEXTS = ("mpi_library", "version")  #: that must be told of each program
DATE_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def beside(path: Path) -> Path:
    """The provenance file of a reference file."""
    return path.with_name(path.name.removesuffix(".tsv") + SUFFIX)


def described(path: Path) -> Path:
    """The reference file that a provenance file is about."""
    return path.with_name(path.name.removesuffix(SUFFIX) + ".tsv")


def problems(path: Path, programs: Collection[str] = ()) -> list[str]:
    """What is wrong with the provenance of the reference file ``path``, one line each.

    :param programs: those of its cases, each of which it must tell of.
    """
    sidecar = beside(path)
    try:
        origin = strict_json.loads(sidecar.read_bytes().decode())
    except FileNotFoundError:
        return [f"{sidecar}: is missing; restore it or calibrate again"]
    except OSError as error:
        return [f"{sidecar}: {error.strerror}; restore it or calibrate again"]
    except json.JSONDecodeError as error:
        return [f"{sidecar}: row {error.lineno}: is not JSON: {error.msg}; correct it"]
    except ValueError as error:
        return [f"{sidecar}: {error}; correct it"]
    if not isinstance(origin, dict):
        return [f"{sidecar}: is not a JSON object; write one with date_utc, machine and so on"]
    return [f"{sidecar}: {fault}" for fault in faults(origin, programs)]


def faults(origin: Mapping[str, Any], programs: Collection[str] = ()) -> list[str]:
    """What a provenance object lacks, ``key: what is wrong with it``."""
    entry = Entry(origin)
    found = _complaints(entry, [(_machine, "machine"), (_programs, "programs")])
    if found:
        return found
    for name, told in sorted(entry.get("programs", dict).items()):
        checks = [(_date, "date_utc"), (_method, "method"), (_sessions, "sessions")]
        checks += [(Entry.text, key) for key in TEXTS]
        found += [f"programs: {name}: {fault}" for fault in _complaints(Entry(told), checks)]
    untold = sorted(set(programs) - set(entry.get("programs", dict)))
    return found + [f"programs: says nothing of {name}; calibrate again" for name in untold]


def _complaints(entry: Entry, checks: Sequence[tuple[Callable, str]]) -> list[str]:
    found: list[str] = []
    for check, key in checks:
        try:
            check(entry, key)
        except ValueError as error:
            found.append(f"{error}; correct it")
    return found


def encoded(origin: Mapping[str, Any]) -> bytes:
    """A provenance object as the text of its file. Raises ValueError if JSON cannot hold it."""
    try:
        return (json.dumps(origin, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()
    except TypeError as error:
        raise ValueError(str(error)) from None


def _date(entry: Entry, key: str) -> None:
    text = entry.text(key)
    try:
        datetime.strptime(text, DATE_FORMAT)
    except ValueError:
        raise ValueError(f"{key}: {shown(text)} is not as 2026-11-21T09:00:00Z") from None


def _machine(entry: Entry, key: str) -> None:
    if not entry.get(key, str, dict):
        raise ValueError(f"{key}: is empty")


def _programs(entry: Entry, key: str) -> None:
    if key not in entry.fields:
        raise ValueError(f"{key}: is missing, as before OSU and IMB; move the file away, calibrate")
    programs = entry.get(key, dict)
    if not programs or any(not isinstance(told, dict) for told in programs.values()):
        raise ValueError(f"{key}: does not tell of each program how it was measured")


def _method(entry: Entry, key: str) -> None:
    if not entry.get(key, dict):
        raise ValueError(f"{key}: is empty")


def _sessions(entry: Entry, key: str) -> None:
    sessions = entry.get(key, list)
    if not sessions or any(not isinstance(name, str) or not name for name in sessions):
        raise ValueError(f"{key}: is not a list of session names")
