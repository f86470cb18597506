"""The plan: what a session is going to measure, written before anything runs.

A planned case without a result is noticed. The checks write the plan, one file per launch; only cases of the
plan get verdicts.
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
    """A case that is deliberately not run, with the reason in one line."""

    case: Case
    reason: str
    #: Whether the program is missing or does not run on this MPI; else the site decided so.
    unavailable: bool = False
    no_program: bool = False  #: if unavailable: whether the program is missing
    #: If unavailable: whether that was known before anything was tried with this MPI, so that it is no failure
    foreseen: bool = False


@dataclass(frozen=True)
class PlannedLaunch:
    """One start of the parallel program, and the cases that it measures."""

    test: str  #: ReFrame's unique name of the check
    partition: str  #: ``system:partition``
    environment: str
    program: str
    library: str  #: text that MPI_Get_library_version of the running program must contain
    number: int  #: 1 for the first launch of these cases in the session
    trials: int
    time_limit: float  #: seconds after which the launch is killed
    exact: bool  #: whether time is simulated and repeats to the last digit
    cases: tuple[Case, ...]
    skips: tuple[SkippedCase, ...] = ()  #: cases that would otherwise be in this launch
    rounds: int = 1  #: rounds of mpicost, which share out the trials of each case
    start: str = ""  #: name of the start, if its job has several
    job_limit: float = 0.0  #: seconds after which the whole job is killed
    benchmarks: tuple[Benchmark, ...] = ()  #: benchmarks of OSU or IMB
    #: words of the command line behind the executable, without the token
    options: tuple[str, ...] = ()
    #: Facts that make values of OSU or IMB comparable, by name; mpicost has them in its records.
    method: dict[str, Any] = field(default_factory=dict)
    #: Transports that the site expects between classes of pairs, as in its site file.
    transports: dict[str, str] = field(default_factory=dict)
    #: Differences from its references that the site accepts, with their reasons.
    accepts: dict[str, str] = field(default_factory=dict)
    #: Settings from options and the shell, which the launches behind its references must have had too.
    by_hand: dict[str, Any] = field(default_factory=dict)
    #: Seconds that a night may take for all launches of these cases; 0 for one launch of any length.
    budget: float = 0.0
    #: Minutes between the ends of launches that separate two sessions, from the site.
    session_gap_minutes: int = SESSION_GAP_MINUTES
    #: New for each launch and required in its records, so that those of another launch are not taken for them.
    token: str = ""
    planted: bool = False  #: whether the self-test delays it
    #: Whether it belongs to a confirmation run that the scheduler cannot keep off the slow nodes.
    anywhere: bool = False
    #: whether ReFrame asserts its values, as it does whenever references are used
    asserted: bool = True
    validation: bool = False  #: whether it verifies data; its times are not used then
    #: More than one if ranks are bound to hardware threads, this many to a core; its records prove it.
    ranks_per_core: int = 1
    #: Kind of GPU of which each rank has its own; its records prove it.
    gpu: str = ""
    threads: int = 0  #: threads per process of IMB-MT, which its output proves; 0 for all other programs
    left_out: str = ""  #: what its check does not measure on this partition, and why, in one line for people
    #: Folder of the library of the standard ABI that its program must run on; empty for other programs.
    standard_abi: str = ""
    in_container: bool = False  #: whether its program runs in a container, which may hide facts of its nodes
    #: This many nodes, in the order of their names, share a switch; 0 if it is not known which nodes they are
    nodes_per_switch: int = 0

    def skip_all(self, reason: str) -> PlannedLaunch:
        skips = tuple(SkippedCase(case, reason) for case in self.cases)
        return replace(self, cases=(), skips=self.skips + skips)

    @property
    def all_cases(self) -> tuple[Case, ...]:
        return self.cases + tuple(skip.case for skip in self.skips)

    @property
    def name(self) -> str:
        """Name that is unique in the session and fits a file name; ReFrame's names have no dots."""
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
        """The executable of a start of OSU or IMB."""
        return self.benchmarks[0].executable or self.benchmarks[0].name

    def records(self, session: Path) -> Path:
        """Return the file that the program writes its trials to."""
        return session / "raw" / f"{self.name}.jsonl"

    def output(self, session: Path) -> Path:
        """Return the file with the output of a reference benchmark."""
        return session / "raw" / f"{self.name}.txt"

    def witness(self, session: Path) -> Path:
        """Return the file in which the witness of a reference benchmark records what it ran on."""
        return session / "raw" / f"{self.name}.witness.jsonl"

    def span(self, session: Path) -> Path:
        """Return the file in which the job script records when the program began and ended."""
        return session / "raw" / f"{self.name}.times"

    def limits(self, session: Path) -> Path:
        """Return the file in which the job script records the limits of the shell that starts the program."""
        return session / "raw" / f"{self.name}.limits"

    def ending(self, session: Path) -> Path:
        """Return the file in which the job script records the program's exit code."""
        return session / "raw" / f"{self.name}.exit"


def choose_token(session: Path, launch: PlannedLaunch) -> str:
    """Choose the token of a launch: that of the session's dry run if it planned the launch, else a new one.

    :raises UsageError: if its plan file is damaged.
    """
    path = locate_plan_file(session, launch)
    return read_launch_file(path).token if path.exists() else secrets.token_hex(16)


def locate_plan_file(session: Path, launch: PlannedLaunch) -> Path:
    return session / "plan" / f"{launch.name}.json"


def write_launch(session: Path, launch: PlannedLaunch, durable: bool = True) -> None:
    """Add one launch to the session's plan, and make the folder for its results.

    :param durable: whether to flush it to disk; if not, call :func:`sync_plan` afterwards
    """
    (session / "raw").mkdir(parents=True, exist_ok=True)
    data = json.dumps(launch, default=vars).encode()  # all in C, because a large cluster has 100,000 cases
    files.replace_files({locate_plan_file(session, launch): data}, durable)


def sync_plan(session: Path) -> None:
    """Flush the whole plan to disk. Raises OSError."""
    files.sync_files((session / "plan").glob("*.json"))


def drop_plan(session: Path) -> None:
    """Delete a session's plan, before another one is made in its place."""
    shutil.rmtree(session / "plan")


def read_plan(session: Path) -> list[PlannedLaunch]:
    """Read all launches of a session's plan, sorted by name.

    :raises UsageError: if a file of the plan is damaged.
    """
    return [read_launch_file(path) for path in sorted((session / "plan").glob("*.json"))]


def read_launch_file(path: Path) -> PlannedLaunch:
    """Read one launch from its plan file. Raises UsageError if the file is damaged."""
    try:
        value = read_json(path)
        launch = parse_record(value, PlannedLaunch, exact=True)
        _check_lists(value)
        if len(set(launch.cases)) < len(launch.cases):  # else one launch would count as two
            raise ValueError("cases: one is there twice")
        return launch
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}: the plan is damaged; run the session again") from None


def _check_lists(told: dict[str, Any]) -> None:
    """Check that lists which are always written are present. Raises ValueError."""
    needed = [(benchmark, ("sizes", "options")) for benchmark in told.get("benchmarks", ())]
    for entry, names in [(told, ("skips", "benchmarks", "options")), *needed]:
        if lacking := [name for name in names if name not in entry]:
            raise ValueError(f"{lacking[0]}: is missing")


def list_planned_cases(launches: Sequence[PlannedLaunch]) -> list[Case]:
    """List the distinct cases of the plan, sorted."""
    return sort_cases({case for launch in launches for case in launch.all_cases})


def list_places(launches: Iterable[PlannedLaunch]) -> set[tuple[str, str]]:
    """List the (``system:partition``, environment) pairs of a plan."""
    return {(launch.partition, launch.environment) for launch in launches}
