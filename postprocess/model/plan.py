"""The plan: what a session is going to measure, written down before anything runs.

Whatever is on the plan and has no result is seen. The checks write the plan, one file per launch;
verdicts are given to the plan's cases and to no others.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.records import parse_record
from postprocess.base.strict_json import read_json
from postprocess.model.case import Case, sort_cases
from postprocess.model.routines.benchmark import Benchmark
from site_configs.schema.fields import SESSION_GAP_MINUTES


@dataclass(frozen=True)
class SkippedCase:
    """A case that is deliberately not run, and why, in one line."""

    case: Case
    reason: str
    #: Because its program cannot be had, or not run on this MPI; else by the site's decision.
    unavailable: bool = False
    no_program: bool = False  #: of these: whether its program cannot be had
    #: Of these: whether that was known before anything was tried with this MPI, and is no failure of it
    foreseen: bool = False


@dataclass(frozen=True)
class PlannedLaunch:
    """One start of the parallel program, and the cases it has to measure."""

    test: str  #: ReFrame's unique name of the check
    partition: str  #: ``system:partition``
    environment: str
    program: str
    library: str  #: text that the running program's MPI_Get_library_version must contain
    number: int  #: 1 for the first launch of these cases in the session
    trials: int
    time_limit: float  #: seconds after which the launch is ended
    exact: bool  #: whether time is simulated and repeats to the last digit
    cases: tuple[Case, ...]
    skips: tuple[SkippedCase, ...] = ()  #: cases that would be in this launch
    rounds: int = 1  #: of mpicost, in which each case has its share of the trials
    start: str = ""  #: which start of its job it is, where a job has several
    job_limit: float = 0.0  #: seconds after which the whole job is ended
    benchmarks: tuple[Benchmark, ...] = ()  #: of OSU or IMB, that it runs
    #: of its command line; all words behind the executable but the token
    options: tuple[str, ...] = ()
    #: What makes values of OSU or IMB comparable, by name; mpicost tells it in its records.
    method: dict[str, Any] = field(default_factory=dict)
    #: By which the site expects classes of pairs to talk, as its site file has it.
    transports: dict[str, str] = field(default_factory=dict)
    #: Differences from its references that the site accepts, each with the reason.
    accepts: dict[str, str] = field(default_factory=dict)
    #: What options and the shell set for it, which a launch behind its references must have had too.
    by_hand: dict[str, Any] = field(default_factory=dict)
    #: Seconds that a night may take for all launches of these cases; 0 for one launch, whatever it takes.
    budget: float = 0.0
    #: Between the ends of launches of two sessions, as the site has it.
    session_gap_minutes: int = SESSION_GAP_MINUTES
    #: New for each launch, and wanted in its records: those of another launch say nothing of it.
    token: str = ""
    planted: bool = False  #: whether the self-test delays it
    #: Whether it is of a confirmation run that the scheduler cannot keep off the slow nodes.
    anywhere: bool = False
    #: whether ReFrame is to assert its values, as it does wherever references are asked
    asserted: bool = True
    validation: bool = False  #: whether it verifies data: its times are of no use
    #: More than one where ranks are to be bound to hardware threads, so many to a core; its records prove it.
    ranks_per_core: int = 1
    #: Kind of the GPUs of which each rank is to have its own; its records prove it.
    gpu: str = ""
    threads: int = 0  #: of each process of IMB-MT; its output proves it. 0 for every other program
    left_out: str = ""  #: what its check does not measure on this partition, and why, in one line for people
    #: Folder of the library of the standard ABI that its program must run on; empty for another program.
    standard_abi: str = ""
    in_container: bool = False  #: whether its program runs in one, which may hide facts of its nodes
    #: So many nodes in the order of their names share a switch; 0 where it is not known which nodes these are
    nodes_per_switch: int = 0

    def skip_all(self, reason: str) -> PlannedLaunch:
        skips = tuple(SkippedCase(case, reason) for case in self.cases)
        return replace(self, cases=(), skips=self.skips + skips)

    @property
    def all_cases(self) -> tuple[Case, ...]:
        return self.cases + tuple(skip.case for skip in self.skips)

    @property
    def name(self) -> str:
        """Unique within the session and fit for a file name; no name of ReFrame's has a dot."""
        layout = self.all_cases[0].layout if self.all_cases else "none"
        where = self.partition.replace(":", "-")
        words = [self.test, where, self.environment, self.program, layout]
        words += [self.start] if self.start else []
        return ".".join([*words, f"launch{self.number}"])

    @property
    def processes(self) -> int:
        return self.all_cases[0].processes if self.all_cases else 0

    @property
    def per_node(self) -> int:
        return self.all_cases[0].per_node if self.all_cases else 0

    @property
    def executable(self) -> str:
        """The executable of a start of OSU or IMB, which has it by its name."""
        return self.benchmarks[0].executable or self.benchmarks[0].name

    def records(self, session: Path) -> Path:
        """Return the file into which the program writes its trials."""
        return session / "raw" / f"{self.name}.jsonl"

    def output(self, session: Path) -> Path:
        """Return the file with what a reference benchmark printed."""
        return session / "raw" / f"{self.name}.txt"

    def witness(self, session: Path) -> Path:
        """Return the file into which the witness of a reference benchmark writes what it ran on."""
        return session / "raw" / f"{self.name}.witness.jsonl"

    def span(self, session: Path) -> Path:
        """Return the file into which the job script writes when the program began and ended."""
        return session / "raw" / f"{self.name}.times"

    def limits(self, session: Path) -> Path:
        """Return the file into which the job script writes the limits of the shell that starts the program."""
        return session / "raw" / f"{self.name}.limits"

    def ending(self, session: Path) -> Path:
        """Return the file into which the job script writes the program's exit code."""
        return session / "raw" / f"{self.name}.exit"


def choose_token(session: Path, launch: PlannedLaunch) -> str:
    """Choose the token of a launch: a new one, or that of the dry run which has planned it in this session.

    :raises UsageError: if its plan file is damaged.
    """
    path = locate_plan_file(session, launch)
    return read_launch_file(path).token if path.exists() else secrets.token_hex(16)


def locate_plan_file(session: Path, launch: PlannedLaunch) -> Path:
    return session / "plan" / f"{launch.name}.json"


def write_launch(session: Path, launch: PlannedLaunch, durable: bool = True) -> None:
    """Put one launch on the session's plan and make room for its results.

    :param durable: whether it is on disk afterwards; else :func:`sync_plan` is to follow
    """
    (session / "raw").mkdir(parents=True, exist_ok=True)
    data = json.dumps(launch, default=vars).encode()  # all in C: a large cluster has 100,000 cases
    files.replace_files({locate_plan_file(session, launch): data}, durable)


def sync_plan(session: Path) -> None:
    """Flush the whole plan to disk. Raises OSError."""
    files.sync_files((session / "plan").glob("*.json"))


def drop_plan(session: Path) -> None:
    """Forget a session's plan, before another one is made in its place."""
    shutil.rmtree(session / "plan")


def read_plan(session: Path) -> list[PlannedLaunch]:
    """Read every launch of a session's plan, sorted by name.

    :raises UsageError: if a file of the plan is damaged.
    """
    return [read_launch_file(path) for path in sorted((session / "plan").glob("*.json"))]


def read_launch_file(path: Path) -> PlannedLaunch:
    """Read one launch from its plan file. Raises UsageError if the file is damaged."""
    try:
        told = read_json(path)
        launch = parse_record(told, PlannedLaunch, exact=True)
        _check_lists(told)
        if len(set(launch.cases)) < len(launch.cases):  # one launch would count as two
            raise ValueError("cases: one is there twice")
        return launch
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}: the plan is damaged; run the session again") from None


def _check_lists(told: dict[str, Any]) -> None:
    """Check that lists are there which are always written. Raises ValueError."""
    needed = [(each, ("sizes", "options")) for each in told.get("benchmarks", ())]
    for entry, names in [(told, ("skips", "benchmarks", "options")), *needed]:
        if lacking := [name for name in names if name not in entry]:
            raise ValueError(f"{lacking[0]}: is missing")


def list_planned_cases(launches: Sequence[PlannedLaunch]) -> list[Case]:
    """List every case of the plan once, in the order of cases."""
    return sort_cases({case for launch in launches for case in launch.all_cases})


def list_places(launches: Iterable[PlannedLaunch]) -> set[tuple[str, str]]:
    """List the (``system:partition``, environment) pairs of a plan."""
    return {(launch.partition, launch.environment) for launch in launches}
