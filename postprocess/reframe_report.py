"""ReFrame's report of a session, read for what became of each test."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postprocess.harmless import one_line


@dataclass(frozen=True)
class Entry:
    """One test case: a check on a partition in an environment."""

    test: str  #: unique name
    partition: str  #: ``system:partition``
    environment: str
    result: str  #: ``pass``, ``fail``, ``skip``, ``abort``, ...
    phase: str  #: phase that failed; empty if none did
    reason: str
    directory: str  #: stage directory
    errors: str  #: file below it with what the job wrote to standard error
    seconds: float  #: of the run, or of the build for a test that others build on
    results: dict[str, str] = field(
        default_factory=dict
    )  #: ``pass``, ``fail``, ... per performance variable
    fixture: bool = False
    needs: tuple[
        tuple[str, str, str], ...
    ] = ()  #: test, partition, environment of each test it builds on

    @property
    def timed_out(self) -> bool:
        """Whether ReFrame or the scheduler ended the job at its time limit."""
        return self.result == "fail" and "timed out" in self.reason

    @property
    def last_words(self) -> str:
        """The last line that the job wrote to standard error, as an appendix to a reason."""
        try:
            written = Path(self.directory, self.errors).read_text(errors="replace").split("\n")
        except OSError:
            return ""
        words = [line for line in written if line.strip()]
        return f": {one_line(words[-1].strip())[:200]}" if words else ""

    @property
    def ran(self) -> bool:
        """Whether the program was started at all."""
        return self.result == "pass" or self.phase in (
            "sanity",
            "performance",
            "run",
            "run_wait",
            "cleanup",
        )

    @property
    def sane(self) -> bool:
        """Whether ReFrame accepts the launch, whatever it says of its speed."""
        return self.result == "pass" or self.phase == "performance"


def read_report(path: Path) -> list[Entry]:
    """Every test case of the report; empty if ReFrame wrote none, or none that can be read.

    An empty report fails the session: nothing that was planned is found in it.
    """
    try:
        document = json.loads(path.read_text())
        return [entry(case) for run in document["runs"] for case in run["testcases"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def entry(case: dict[str, Any]) -> Entry:
    """One test case from its place in the report."""
    values = case.get("perfvalues") or {}
    return Entry(
        test=case["unique_name"],
        partition=f"{case['system']}:{case['partition']}",
        environment=case["environ"],
        result=case["result"],
        phase=case.get("fail_phase") or "",
        reason=one_line(case.get("fail_reason") or ""),
        directory=case.get("stagedir") or "",
        errors=(case.get("build_stderr") if case.get("fixture") else case.get("job_stderr")) or "",
        seconds=float(case.get("time_compile" if case.get("fixture") else "time_run") or 0.0),
        results={name.rpartition(":")[2]: result[-1] for name, result in values.items()},
        fixture=bool(case.get("fixture")),
        needs=tuple(tuple(needed) for needed in case.get("dependencies_actual") or ()),
    )


def blocked_by(entries: list[Entry], blocked: Entry) -> str:
    """Why a test was not run because of another that it builds on; empty if that is not so."""
    for needed in blocked.needs:
        builder = find(entries, *needed)
        if builder and builder.result == "fail":
            return f"{builder.test} failed: {builder.reason}{builder.last_words}"
    return ""


def find(entries: list[Entry], test: str, partition: str, environment: str) -> Entry | None:
    """What became of one launch."""
    wanted = (test, partition, environment)
    found = [each for each in entries if (each.test, each.partition, each.environment) == wanted]
    return found[-1] if found else None
