"""Launches of calibrations as the ledger has them, for tests to vary."""

from collections.abc import Mapping, Sequence
from typing import Any

from postprocess.calibration.ledger import CalibrationLaunch
from postprocess.model.case import Case
from postprocess.references import provenance
from tests.support.factories.launch import CASES, PLACE

METHOD = {"suite_version": "0.1.0", "trials": 51, "cpu_model": "a processor"}


def launch(
    value: float | Mapping[Case, float] = 1e-6,
    day: int = 1,
    session: str = "",
    cases: Sequence[Case] = CASES,
    facts: Mapping[str, Any] | None = None,
    **changes: Any,
) -> CalibrationLaunch:
    """A launch of some cases on a day of November, each with this value."""
    values = value if isinstance(value, Mapping) else dict.fromkeys(cases, value)
    known: dict[str, Any] = {
        "session": session or f"202611{day:02d}T010000Z-1",
        "ended_utc": f"2026-11-{day:02d}T01:00:00Z",
        "hosts": ("n1",),
        "machine": {"host": "login", "kernel": "6.1"},
        "place": PLACE,
        "program": "mpicost",
        "exact": False,
        "facts": {
            "mpi_library": "MPICH Version: 5.0.2",
            "version": "0.1.0",
            "source_hash": "0123",
            "spec": "cmake",
            "compiler": "gcc 12.2.0",
            "method": METHOD,
            **(facts or {}),
        },
        "circumstances": {"binding": {"2x2": "2 ranks of 1 CPU"}, "caches": "L1"},
        "by_hand": {},
        "kernel": "6.1",
        "values": {case.key: number for case, number in values.items()},
        "units": {case.key: "s" for case in values},
    }
    return CalibrationLaunch(**known | changes)


def launches_behind(told: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Session, end and hosts of each launch behind a case, from what a provenance tells of its program."""
    calibration = provenance.find_case_calibration(told, key) or {}
    return next(some["launches"] for some in calibration["series"] if key in some["headlines"])
