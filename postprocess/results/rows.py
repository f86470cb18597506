"""Rows of the results store: one for each case of each launch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from postprocess.model.launch import Finished
from postprocess.model.verdict import CaseResult
from postprocess.results.schema import host_names
from postprocess.results.store import Row
from spack_envs.programs import Program


def rows(
    session: str,
    started: str,
    finished: Sequence[Finished],
    results: Sequence[CaseResult],
    mode: str = "",
) -> list[Row]:
    """Every planned case of every launch for the store, with its trials where there are any."""
    by_case = {result.case: result for result in results}
    return [
        replace(row(session, started, each, by_case[case]), mode=mode)
        for each in finished
        for case in each.launch.cases
    ]


def row(session: str, started: str, finished: Finished, result: CaseResult) -> Row:
    """One case in one launch."""
    run = finished.run
    built = finished.built or Program(result.case.environment, result.case.program, "", "")
    measured = finished.measurements.get(result.case.variable)
    lower, upper = result.band or (None, None)
    base = Row(
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
        dropped=run.get("dropped", 1),
        mpi_library=run.get("mpi_library", ""),
        suite_version=run.get("suite_version", ""),
        source_hash=run.get("source_hash", ""),
        spec_hash=finished.spec,
        compiler=built.compiler,
        flags=built.flags,
        hosts=host_names(run),
        provenance=json.dumps(run),
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
