"""What the launches of a pass say of each case, for both sides alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postprocess.features.compare.data import CaseValue, LaunchValues, SharedCase
from postprocess.model.case import Case
from postprocess.model.conditions import binding_of, caches_of
from postprocess.model.launch import FinishedLaunch
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict


def find_own_case(shared: SharedCase, environment: str) -> Case:
    """Find the case of one side."""
    cache, _, sync = shared.variant.partition("-")
    routine, _, peer = shared.label.partition("@")
    processes, _, per_node = shared.layout.partition("x")
    return Case(
        "either",
        shared.partition,
        environment,
        shared.program,
        routine,
        int(peer or 0),
        cache,
        sync,
        int(processes),
        int(per_node),
        shared.bytes,
    )


def collect_values(
    finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]
) -> list[LaunchValues]:
    """Collect what the launches of a pass say of each case."""
    by_case = {each.case: each for each in results}
    return [
        LaunchValues(
            each.launch.name,
            describe_run_place(each.run, each.hosts),
            {
                SharedCase.of(case).key: read_value(by_case[case], each)
                for case in each.launch.all_cases
                if case in by_case
            },
        )
        for each in finished
    ]


def read_value(result: CaseResult, launch: FinishedLaunch) -> CaseValue:
    """Read what a result says of the launch: its value, or why there is none. Its speed is not judged here."""
    if result.verdict in (*FAILED_LAUNCH, Verdict.SKIPPED) or not result.value:
        verdict = result.verdict if result.value is None else Verdict.INCOMPLETE
        lost = launch.outcome.job_end is not None
        return CaseValue(None, result.unit, str(verdict), result.reason, result.rerun, lost=lost)
    measured = launch.measurements.get(result.case.variable)
    cores = measured.core_latency if measured else None
    return CaseValue(
        result.value,
        result.unit,
        rerun=result.rerun,
        exact=launch.launch.exact,
        core_latency=(cores.before, cores.after) if cores else None,
    )


def describe_run_place(run: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, str]:
    """Describe where and how a launch ran, by its run record and its nodes."""
    return {
        "nodes": ",".join(hosts),
        "binding": binding_of(run) or "",
        "processor": run.get("cpu_model") or "",
        "caches": caches_of(run.get("caches")) or "",
        "trials": str(run.get("trials", "")),
    }
