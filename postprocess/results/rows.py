"""Rows of the results store: one for each case of each launch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from postprocess.model.launch import FinishedLaunch
from postprocess.model.verdict import CaseResult
from postprocess.results.store import StoreRow
from spack_envs.programs import BuiltBinary


def build_rows(
    session: str,
    started: str,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    mode: str = "",
) -> list[StoreRow]:
    """Build a row for every planned case of every launch, with its trials where there are any."""
    by_case = {result.case: result for result in results}
    rows = []
    for each in finished:
        provenance = json.dumps(each.run)
        for case in each.launch.cases:
            row = build_row(session, started, each, by_case[case])
            rows.append(replace(row, mode=mode, provenance=provenance))
    return rows


def build_row(session: str, started: str, finished: FinishedLaunch, result: CaseResult) -> StoreRow:
    """Build the row of one case in one launch, without its mode and provenance."""
    run = finished.run
    built = finished.built or BuiltBinary(result.case.environment, result.case.program, "", "")
    measured = finished.measurements.get(result.case.variable)
    lower, upper = result.band or (None, None)
    base = StoreRow(
        session=session,
        started_utc=started,
        launch=finished.launch.number,
        case=result.case,
        verdict=result.verdict,
        reason=result.reason,
        reference=result.reference,
        lower=lower,
        upper=upper,
        q=result.q,
        detectable=result.detectable,
        expected=result.expected,
        judged=result.value,
        judged_launches=result.launches,
        headline_judged=result.headline,
        headline_reference=result.headline_reference,
        dropped=run.get("dropped", 1),
        mpi_library=run.get("mpi_library", ""),
        suite_version=run.get("suite_version", ""),
        source_hash=run.get("source_hash", ""),
        spec_hash=finished.spec,
        compiler=built.compiler,
        flags=built.flags,
        hosts=join_host_names(run),
    )
    if measured is None:
        return base
    base = replace(
        base,
        unit=measured.unit,
        value=measured.value,
        figures=json.dumps(dict(measured.figures)),
        summary=measured.summary,
    )
    record = measured.record
    if record is None:
        return base
    return replace(
        base,
        t_max=record.t_max,
        t_min=record.t_min,
        t_global=record.t_global,
        skew=record.skew,
        late=record.late,
    )


def join_host_names(run: Mapping[str, Any]) -> str:
    """Join the nodes of a launch by its run record, sorted and joined by commas; empty if it tells none."""
    return ",".join(sorted(str(host["name"]) for host in run.get("hosts") or []))


def parse_run_json(text: str) -> Mapping[str, Any]:
    """Parse the run record that a row keeps; an empty one for what is none."""
    try:
        record = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
