"""Sessions that have ended, with the summaries that they leave."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from postprocess.base.files import write_summary
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Session
from postprocess.model.verdict import CaseResult, compute_exit_status
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.summary import SessionSummary, summarise_session
from site_configs.mpi.family import Mpi
from tests.support.factories.launch import finished

SECONDS = 30.6  #: of a job whose launch was in mpicost for
INSIDE = 12.3  #: seconds, as the sample's end record tells


def summarise(
    folder: Path,
    launches: Sequence[FinishedLaunch] = (),
    results: Sequence[CaseResult] | None = None,
    *,
    mode: str = "nightly",
    command: Sequence[str] = ("./plumbline",),
    mpis: Sequence[Mpi] = (),
    notes: Sequence[str] = (),
    phases: dict[str, float] | None = None,
) -> SessionSummary:
    """The summary of a session in this folder, whose exit status follows from its results.

    :param results: by default those of its launches without references
    """
    if results is None:
        results = evaluate_launches(launches, ReferenceCatalog(), "local")
    session = Session(folder, mode, "local", command, strict=False)
    status = compute_exit_status(results, strict=False)
    told = mpis, launches, results, status, notes, phases or {}
    return summarise_session(session, "CMake (no Spack)", *told)


def leave_summary(
    folder: Path,
    launches: Sequence[FinishedLaunch] = (),
    results: Sequence[CaseResult] | None = None,
    **about: Any,
) -> Path:
    """Write the summary of a session into its folder; the path. ``about`` goes to :func:`summarise`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_summary(folder / "summary.json", summarise(folder, launches, results, **about).to_dict())
    return folder / "summary.json"


def leave_timed_session(folder: Path, seconds: float = SECONDS, **launch: Any) -> Path:
    """Write a session of one launch of all cases whose job took so long; the path of its summary."""
    return leave_summary(folder, [replace(finished(folder, **launch), seconds=seconds)])
