"""Planned launches and what became of them, for the tests of all that lies between plan and summary."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from postprocess.judging.outcome import assess_launch
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.conditions import circumstances_of, method_of
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.measurement import CaseRecord
from postprocess.model.plan import PlannedLaunch, write_launch
from postprocess.model.reference import Reference
from postprocess.parsers.reframe_report import ReportedTest
from postprocess.references import reference_file
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from postprocess.stats.band import compute_band
from tests.support.factories import record as record_samples
from tests.support.factories.stated_references import headlines

LIBRARY = "MPICH Version: 5.0.2"
PLACE = ReferencePlace("local", "cpu", "mpich-5_0_2")
SIZES = (("bcast", 8, 0), ("bcast", 1_000_000, 0), ("pingpong", 8, 1), ("barrier", 0, 0))


def case(routine: str = "bcast", size: int = 8, peer: int = 0, **changes: Any) -> Case:
    """One case of ``record_samples.launch()``, or nearly so."""
    system, partition, environment = PLACE
    values: dict[str, Any] = {"system": system, "partition": partition, "environment": environment}
    values |= {"program": "mpicost", "routine": routine, "peer": peer, "cache": "evict"}
    values |= {"sync": "dissemination", "processes": 2, "per_node": 2, "bytes": size}
    return Case(**values | changes)


CASES = tuple(case(*each) for each in SIZES)


#: Value and unit of each case of ``record_samples.launch()``.
VALUES = {
    variable: (steady, "s")
    for variable, steady in zip(
        (each.variable for each in CASES),
        (each["steady"] for each in record_samples.launch()[1:-1]),
        strict=True,
    )
}


def planned(**changes: Any) -> PlannedLaunch:
    """The launch whose records ``record_samples.launch()`` makes."""
    values: dict[str, Any] = {"test": "luecke_0", "partition": ":".join(PLACE[:2])}
    values |= {"environment": PLACE[2], "program": "mpicost", "library": LIBRARY, "number": 1}
    values |= {"trials": record_samples.TRIALS, "time_limit": 60.0, "exact": False, "cases": CASES}
    return PlannedLaunch(**values | changes)


def leave(
    session: Path,
    launch: PlannedLaunch,
    records: Sequence[dict[str, Any]] | None = None,
    code: str | None = "0\n",
) -> None:
    """Write what a launch leaves: its records and its exit code, None for no such file."""
    write_launch(session, launch)
    if records is not None:
        record_samples.write(launch.records(session), list(records))
    if code is not None:
        launch.ending(session).write_text(code)


def entry(**changes: Any) -> ReportedTest:
    """ReFrame's word on a launch that went well."""
    values: dict[str, Any] = {"test": "luecke_0", "partition": ":".join(PLACE[:2])}
    values |= {"environment": PLACE[2], "result": "pass", "phase": "", "reason": ""}
    values |= {"directory": "", "errors": "", "seconds": 1.5}
    values |= {"results": {each.variable: "pass" for each in CASES}, "values": VALUES}
    return ReportedTest(**values | changes)


def finished(
    session: Path,
    scale: float | Mapping[str, float] = 1.0,
    outcome: LaunchOutcome | None = None,
    said: dict[str, Any] | None = None,
    run: dict[str, Any] | None = None,
    core_latency: tuple[float | None, float | None] | None = None,
    **changes: Any,
) -> FinishedLaunch:
    """A launch that ended well, ``scale`` times as slow as the sample; or one with this outcome.

    :param scale: of all cases, or by routine and bytes in one word; of others 1
    :param core_latency: from core to core, in seconds, before and after each case
    """
    launch = planned(**changes)
    if outcome is None:
        records = record_samples.launch(**run or {})
        words = [record["routine"] + str(record["bytes"]) for record in records[1:-1]]
        times = dict(scale) if isinstance(scale, Mapping) else dict.fromkeys(words, scale)
        records[1:-1] = [slowed(record, times) for record in records[1:-1]]
        for each in records[1:-1] if core_latency else ():
            each["core_latency"] = list(core_latency)
        leave(session, launch, records)
        outcome = assess_launch(launch, session)
        assert outcome.records, outcome.reason
    asserted = entry().results if said is None else said
    return FinishedLaunch(launch, outcome, 1.5, "stage", asserted, "mpicost@0.1.0/abcdef")


def finished_with_wrong_data(session: Path, place: int = 1, **changes: Any) -> FinishedLaunch:
    """A launch that ended well, but for one case that received wrong data."""
    launch = planned(**changes)
    leave(session, launch, record_samples.receive_wrong_data(record_samples.launch(), place), "1\n")
    asserted = entry().results
    del asserted[CASES[place - 1].variable]
    return FinishedLaunch(launch, assess_launch(launch, session), 1.5, "stage", asserted, "cmake")


def slowed(record: dict[str, Any], times: Mapping[str, float]) -> dict[str, Any]:
    """The same case with every time scaled."""
    factor = times.get(record["routine"] + str(record["bytes"]), 1.0)
    base = 1e-4 if record["bytes"] == 1_000_000 else 1e-6
    return record_samples.case_record(
        record["routine"], record["bytes"], peer=record["peer"], scale=base * factor
    )


def origin_of(program: str = "mpicost", **more: Any) -> dict[str, Any]:
    """Sound provenance of a reference file with the cases of a program; ``more`` is told of its calibration."""
    told = {
        "date_utc": "2026-11-21T09:00:00Z",
        "mpi_library": "MPICH Version: 5.0.2",
        "version": "0.1.0",
        "source_hash": "0123456789abcdef",
        "method": {"colour": "green"},
        "sessions": ["20261121T090000Z-1"],
    }
    calibration = {"machine": {"host": "n1"}, **told, **more}
    return {"machine": {"host": "n1"}, "programs": {program: {"calibrations": [calibration]}}}


def write_references(root: Path, center: float = 1e-6) -> Path:
    """A sound reference file of the sample cases."""
    path = reference_file.locate_references(root, *PLACE)
    known = [Reference(each, center, 0.1, 20) for each in CASES]
    told = {
        "headlines": {reference.case.key: headlines(reference) for reference in known},
        "circumstances": {"compiler": "gcc"},
    }
    reference_file.write_references(path, known, origin_of(**told))
    return path


def steady(done: FinishedLaunch, of: Case) -> float:
    """The value of a case that a launch measured, in seconds."""
    record: CaseRecord = done.records[of.variable]
    return record.summary.steady


def headline(done: FinishedLaunch, of: Case) -> float:
    """The headline of a case in a launch, in seconds."""
    record: CaseRecord = done.records[of.variable]
    return record.summary.headline


def catalog_of(known: Iterable[Reference], origin: dict[str, Any] | None = None) -> ReferenceCatalog:
    """A catalog with these references of one place, which lie in a file of this origin."""
    path = Path("reference_data/local/cpu/mpich-5_0_2.tsv")
    reference_set = ReferenceSet(
        path, {reference.case: reference for reference in known}, origin or origin_of()
    )
    return ReferenceCatalog({(":".join(PLACE[:2]), PLACE[2]): reference_set})


def book_of(
    done: FinishedLaunch,
    factor: float = 1.0,
    launches: int = 20,
    cases: Sequence[Case] = CASES,
    spread: float = 0.05,
    **method: Any,
) -> ReferenceCatalog:
    """References that lie ``factor`` above what a launch measured, by the launch's own method."""
    known = [
        Reference(
            each,
            factor * steady(done, each),
            spread,
            launches,
            headline=Reference(each, factor * headline(done, each), spread, launches),
        )
        for each in cases
    ]
    method = method_of(done.run, exact=False) | method
    return catalog_of(known, origin_of(method=method, circumstances=circumstances_of(done.run)))


def reframe_says(done: FinishedLaunch, catalog: ReferenceCatalog) -> dict[str, str]:
    """ReFrame's result of each variable, from the same bands."""
    said = {}
    for each in done.launch.cases:
        reference = catalog.reference(each)
        slow = reference and compute_band(reference).too_slow(steady(done, each))
        said[each.variable] = "fail" if slow else "pass"
    return said
