"""From what came out of the launches to one verdict per planned case, and the rows that are stored."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from postprocess.cases import Case
from postprocess.judge import judge
from postprocess.launches import Outcome
from postprocess.plan import PlannedLaunch
from postprocess.record_schema import CaseRecord
from postprocess.reference_book import ReferenceBook
from postprocess.store import Row
from postprocess.verdicts import CaseResult, Verdict

#: Verdicts by how bad they are: what one launch of several says of a case counts for the case.
WORST_FIRST = (Verdict.INCORRECT, Verdict.CRASHED, Verdict.TIMEOUT, Verdict.INCOMPLETE)


@dataclass(frozen=True)
class Finished:
    """A planned launch and what became of it."""

    launch: PlannedLaunch
    outcome: Outcome
    seconds: float  #: wall time of the launch
    directory: str  #: ReFrame's stage directory
    asserted: Mapping[str, str]  #: what ReFrame says of each performance variable
    spec: str = ""  #: Spack's spec with its hash, or ``cmake``

    @cached_property
    def records(self) -> dict[str, CaseRecord]:
        """What this launch measured, by variable; empty if the launch failed."""
        whole = self.outcome.records
        return {each.variable: each for each in whole.cases} if whole else {}

    @property
    def run(self) -> dict[str, Any]:
        """The run record; empty if the launch failed."""
        return self.outcome.records.run if self.outcome.records else {}


def rerun_command(launch: PlannedLaunch, case: Case, site: str, options: Sequence[str] = ()) -> str:
    """The command that measures just this case again, under the further options it was measured under."""
    words = ["./plumbline", "run"]
    if site != "local":
        words += ["--site", site, "--partition", case.partition]
    words += ["--environment", case.environment, "--routine", case.routine]
    words += ["--processes", str(case.processes)]
    words += ["--per-node", str(case.per_node)] if case.per_node != case.processes else []
    words += ["--peers", str(case.peer)] if case.peer else []
    words += ["--bytes", str(case.bytes)] if case.bytes else []
    usual = {"--cache": "flush", "--sync": "dissemination", "--trials": "51"}
    ran = {"--cache": case.cache, "--sync": case.sync, "--trials": str(launch.trials)}
    for option, value in ran.items():  # a site may have defaults of its own
        words += [option, value] if site != "local" or value != usual[option] else []
    others = [word for word in options if word.startswith("--set-env=")]
    own = [word for word in others if word.startswith(f"--set-env={case.environment}:")]
    return shlex.join([*words, *(word for word in options if word not in others), *own])


def verdicts(
    finished: Sequence[Finished], book: ReferenceBook, site: str, options: Sequence[str] = ()
) -> list[CaseResult]:
    """One result for every planned case, whatever became of its launches."""
    launches: dict[Case, list[Finished]] = {}
    for each in finished:
        for case in each.launch.cases:
            launches.setdefault(case, []).append(each)
    results = [
        replace(
            case_verdict(case, launches[case], book),
            rerun=rerun_command(launches[case][0].launch, case, site, options),
        )
        for case in launches
    ]
    return sorted(results + skipped(finished), key=lambda result: result.case)


def skipped(finished: Sequence[Finished]) -> list[CaseResult]:
    """The cases that were deliberately not run, each once, with the reason."""
    reasons = {skip.case: skip.reason for each in finished for skip in each.launch.skips}
    return [CaseResult(case, Verdict.SKIPPED, reason) for case, reason in reasons.items()]


def case_verdict(case: Case, launches: Sequence[Finished], book: ReferenceBook) -> CaseResult:
    """The verdict on one case. A launch that failed decides; otherwise the median launch is judged."""
    for verdict in WORST_FIRST:
        for each in launches:
            if each.outcome.verdict == verdict:
                return CaseResult(case, verdict, each.outcome.reason)
    measured = [(record, each) for each in launches if (record := each.records.get(case.variable))]
    if len(measured) != len(launches):
        return CaseResult(case, Verdict.INCOMPLETE, "no value in a launch that ended well")
    middle, launch = median_launch(measured)
    value = statistics.median(record.summary.headline for record, _ in measured)
    shelf = book.shelf(case) if book.reference(case) else None
    differences = (
        [shelf.difference(each.run, each.launch.exact) for _, each in measured] if shelf else []
    )
    if difference := next(filter(None, differences), ""):
        return CaseResult(
            case,
            Verdict.NOT_COMPARABLE,
            difference,
            value=value,
            launches=len(measured),
            summary=middle.summary,
        )
    resolution = launch.outcome.records.resolution if launch.outcome.records else 0.0
    result = judge(case, value, middle.summary, book.reference(case), resolution)
    return replace(agreeing(result, measured), launches=len(measured))


def median_launch(measured: Sequence[tuple[CaseRecord, Finished]]) -> tuple[CaseRecord, Finished]:
    """The launch whose headline is the median one (the lower of the middle two)."""
    ordered = sorted(measured, key=lambda pair: pair[0].summary.headline)
    return ordered[(len(ordered) - 1) // 2]


def agreeing(result: CaseResult, measured: Sequence[tuple[CaseRecord, Finished]]) -> CaseResult:
    """The same result if ReFrame's own assertion says the same; two judges who differ are a fault."""
    if len(measured) > 1:
        return result
    said = measured[0][1].asserted.get(result.case.variable)
    if said == ("fail" if result.verdict == Verdict.REGRESSED else "pass"):
        return result
    reason = f"Plumbline says {result.verdict}, ReFrame says {said}: one of them is wrong"
    return replace(result, verdict=Verdict.INCORRECT, reason=reason)


def rows(
    session: str, started: str, finished: Sequence[Finished], results: Sequence[CaseResult]
) -> list[Row]:
    """Every planned case of every launch for the store, with its trials where there are any."""
    by_case = {result.case: result for result in results}
    return [
        row(session, started, each, by_case[case])
        for each in finished
        for case in each.launch.cases
    ]


def row(session: str, started: str, finished: Finished, result: CaseResult) -> Row:
    """One case in one launch."""
    run = finished.run
    record = finished.records.get(result.case.variable)
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
        dropped=run.get("dropped", 1),
        mpi_library=run.get("mpi_library", ""),
        suite_version=run.get("suite_version", ""),
        source_hash=run.get("source_hash", ""),
        spec_hash=finished.spec,
        provenance=json.dumps(run),
    )
    if record is None:
        return base
    return replace(
        base,
        summary=record.summary,
        t_max=record.t_max,
        t_min=record.t_min,
        t_global=record.t_global,
        skew=record.skew,
        late=record.late,
    )
