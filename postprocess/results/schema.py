"""Columns of the results store, the versions they have had, and how rows of an older one become today's.

A file tells its version in its metadata; the first version told none. Files are never rewritten: what
is old is migrated when it is read. To add columns: write them into :class:`postprocess.results.store.StoreRow`,
name them in ``ADDED`` under the next number with a function that finds out their old value, and raise
``VERSION``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from spack_envs.programs import UNKNOWN

VERSION = 3
METADATA = "schema"  #: the key under which a file tells its version


def read_version(metadata: Mapping[str, str]) -> int:
    """Read the version of a file by its metadata. Raises ValueError if it is not a number from 1 on."""
    version = int(metadata.get(METADATA, "1"))
    if version < 1:
        raise ValueError(f"version {version}")
    return version


def list_columns(schema: pl.Schema, version: int) -> pl.Schema:
    """List the columns of a version: those of today without what came later, in the same order."""
    later = {name for number, added in ADDED.items() if number > version for name in added}
    return pl.Schema({name: kind for name, kind in schema.items() if name not in later})


def migrate_rows(frame: pl.DataFrame, version: int, schema: pl.Schema) -> pl.DataFrame:
    """Return rows of a version with all columns of today's ``schema``."""
    for number in sorted(ADDED):
        if number > version:
            frame = frame.with_columns(
                find(frame).alias(name).cast(schema[name]) for name, find in ADDED[number].items()
            )
    return frame.select(schema.names())


def join_host_names(run: Mapping[str, Any]) -> str:
    """Join the nodes of a launch by its run record, sorted and joined by commas; empty if it tells none."""
    return ",".join(sorted(str(host["name"]) for host in run.get("hosts") or []))


def _find_built(run: Mapping[str, Any], told: str, own: str) -> str:
    """Find how a program was built: the method of OSU and IMB tells it, or a key of mpicost's own."""
    return (run.get("method") or {}).get(told) or run.get(own) or UNKNOWN


def _told(find: Callable[[Mapping[str, Any]], str]) -> Callable[[pl.DataFrame], pl.Series]:
    """Return what the run record of each row tells. A launch's rows share one, so each is parsed once."""

    def values(frame: pl.DataFrame) -> pl.Series:
        found = {text: find(parse_run_json(text)) for text in frame["provenance"].unique()}
        return pl.Series([found[text] for text in frame["provenance"]], dtype=pl.String)

    return values


def parse_run_json(text: str | None) -> Mapping[str, Any]:
    """Parse a run record; an empty one for what is none."""
    try:
        record = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _always(value: Any) -> Callable[[pl.DataFrame], pl.Series]:
    return lambda frame: pl.Series([value] * frame.height)


#: Version -> the columns that came with it -> their values in rows from before, one for each row.
ADDED: Mapping[int, Mapping[str, Callable[[pl.DataFrame], pl.Series]]] = {
    2: {
        "mode": _always(""),  # nothing in the file tells it
        "compiler": _told(lambda run: _find_built(run, "compiler", "compiler")),
        "flags": _told(lambda run: _find_built(run, "flags", "compiler_flags")),
        "hosts": _told(join_host_names),
        "q": _always(None),
        "detectable": _always(None),
        "expected": _always(""),
    },
    3: {
        "steady": _always(None),
        "judged": _always(None),
        "judged_launches": _always(0),
        "headline_judged": _always(None),
        "headline_reference": _always(None),
    },
}
