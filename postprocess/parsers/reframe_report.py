"""Read what became of each test from ReFrame's report of a session."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from postprocess.base import files, strict_json
from postprocess.base.formats import SHOWN
from postprocess.base.records import parse_record
from postprocess.base.sanitize import sanitize_line
from postprocess.parsers.last_words import find_build_error, find_last_words, find_memory_words
from site_configs.schedulers.base import Ended, Ending, read_ended
from site_configs.schedulers.registry import list_limit_words
from spack_envs.installation import read_failure

INVISIBLE = " \t\r\v\f\0"  #: a line of these alone is empty
JOB = ("run", "run_wait")  #: phases in which the job itself fails, not what it left behind
#: ReFrame's reason for a launch that its own backend ended at the time limit; it reports no code. Our backends
#: write it to a file (``job_end.ENDED``).
LIMIT_WORDS = "job timed out"


@dataclass(frozen=True)
class ReportedTest:
    """One test case: a check on a partition in an environment."""

    test: str  #: unique name
    partition: str  #: ``system:partition``
    environment: str
    result: str  #: ``pass``, ``fail``, ``skip``, ``abort``, ...
    phase: str  #: the phase that failed; empty if none did
    reason: str
    directory: str  #: stage directory
    errors: str  #: file below it with the job's standard error
    seconds: float  #: duration of the run, or of the build for a fixture
    #: ``pass``, ``fail``, ... by performance variable
    results: dict[str, str] = field(default_factory=dict)
    #: Value and unit by performance variable
    values: dict[str, tuple[Any, str]] = field(default_factory=dict)
    fixture: bool = False
    #: test, partition, environment of each test that it builds on
    needs: tuple[tuple[str, str, str], ...] = ()
    tags: tuple[str, ...] = ()
    output: str = ""  #: file below the stage directory with the job's standard output

    @property
    def timed_out(self) -> bool:
        """Whether ReFrame or the scheduler ended it at its limit."""
        return self.result == "fail" and (
            self.gave_up(Ending.TIMED_OUT) is not None
            or LIMIT_WORDS in self.reason
            or any(words in line for words in list_limit_words() for line in self.error_lines)
        )

    @property
    def never_started(self) -> str:
        """Why its job never started, in the words of the scheduler's backend; empty if it did."""
        if self.result != "fail" or self.phase not in JOB:
            return ""
        ended = self.gave_up(Ending.NEVER_STARTED)
        return sanitize_line(ended.reason) if ended else ""

    @property
    def taken_away(self) -> bool:
        """Whether its nodes were taken away while it ran."""
        return self.result == "fail" and self.gave_up(Ending.TAKEN_AWAY) is not None

    def gave_up(self, how: Ending) -> Ended | None:
        """Return the scheduler backend's record if it ended the job in this way."""
        ended = read_ended(Path(self.directory))
        return ended if ended and ended.how is how else None

    @property
    def error_lines(self) -> list[str]:
        """The lines of the job's standard error that are not empty."""
        return read_lines(Path(self.directory, self.errors))

    @property
    def build_error(self) -> str:
        """Why a build failed and the file with the rest, as an appendix to a reason; empty without output.

        The messages of CMake, make and a compiler may be on standard output alone.
        """
        written = [Path(self.directory, name) for name in (self.errors, self.output) if name]
        for find in (find_build_error, find_last_words):
            for file in written:
                if words := find(read_lines(file)):
                    return f": {words} (all of it: {file})"
        return ""

    @property
    def last_words(self) -> str:
        """The line of standard error that says why the job ended, as an appendix to a reason."""
        words = find_last_words(self.error_lines)
        return f": {words}" if words else ""

    @property
    def lack_of_memory(self) -> str:
        """The line of standard error on a lack of memory, as an appendix; empty without one."""
        words = find_memory_words(self.error_lines)
        return f": {words}{self.where_the_rest_is}" if words else ""

    @property
    def where_the_rest_is(self) -> str:
        """The file with all of the job's standard error, as an appendix; empty if there is none."""
        return f" (all of it: {Path(self.directory, self.errors)})" if self.error_lines else ""

    @property
    def cause(self) -> str:
        """Why the job ended, as an appendix: ReFrame's reason or the job's last words, and the file."""
        reason = f": {self.reason}" if self.phase in JOB and self.reason else self.last_words
        return reason + self.where_the_rest_is

    @property
    def ran(self) -> bool:
        """Whether the program was started and ReFrame went on to its end."""
        after = (*JOB, "sanity", "performance", "cleanup")
        return self.result == "pass" or (self.result == "fail" and self.phase in after)

    @property
    def sane(self) -> bool:
        """Whether ReFrame accepts the launch apart from its speed."""
        return self.result == "pass" or self.phase == "performance"


@dataclass(frozen=True)
class BlockedTest:
    """Why a test was not run: a test that it builds on failed."""

    reason: str
    without_source: bool = False  #: whether the source of its program is missing


def read_lines(file: Path) -> list[str]:
    """Read the lines of a job's output that are not empty; none if it cannot be read."""
    try:
        written = files.read_text(file, "replace").split("\n")
    except OSError:
        return []
    return [line for line in written if line.strip(INVISIBLE)]


def read_report(path: Path) -> list[ReportedTest]:
    """Read every test case of the report; empty if the report is missing or damaged.

    An empty list fails the session, because no planned case is in it.
    """
    try:
        document = strict_json.read_json(path)
        return [parse_test_entry(case) for run in document["runs"] for case in run["testcases"]]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []


def parse_test_entry(case: dict[str, Any]) -> ReportedTest:
    """Parse one test case of the report.

    :raises ValueError, LookupError, TypeError or AttributeError: if it is not one
    """
    asserted = {name.rpartition(":")[2]: result for name, result in (case.get("perfvalues") or {}).items()}
    entry = ReportedTest(
        test=case["unique_name"],
        partition=f"{case['system']}:{case['partition']}",
        environment=case["environ"],
        result=case["result"],
        phase=case.get("fail_phase") or "",
        reason=sanitize_line(case.get("fail_reason") or ""),
        directory=case.get("stagedir") or "",
        errors=(case.get("build_stderr") if case.get("fixture") else case.get("job_stderr")) or "",
        output=(case.get("build_stdout") if case.get("fixture") else case.get("job_stdout")) or "",
        seconds=case.get("time_compile" if case.get("fixture") else "time_run") or 0.0,
        results={name: result[-1] for name, result in asserted.items()},
        values={name: read_value(result[0], result[-2]) for name, result in asserted.items()},
        fixture=bool(case.get("fixture")),
        needs=tuple(tuple(needed) for needed in case.get("dependencies_actual") or ()),
        tags=tuple(case.get("tags") or ()),
    )
    return parse_record(asdict(entry), ReportedTest)


def read_value(value: Any, unit: str) -> tuple[Any, str]:
    """Read a value in the unit of records. Plain ReFrame shows it in the unit that people read."""
    for stored, (factor, shown) in SHOWN.items():
        if unit == shown and type(value) in (int, float):
            return value / factor, stored
    return value, unit


def find_blocking_test(entries: Sequence[ReportedTest], blocked: ReportedTest) -> BlockedTest | None:
    """Find the failed test that a test depends on, with the reason; None if there is none."""
    for needed in blocked.needs:
        builder = find_test_entry(entries, *needed)
        if builder and builder.result == "fail":
            failure = read_failure(Path(builder.directory))
            if failure:
                reason = f"the build failed: {sanitize_line(failure.reason)}"
                return BlockedTest(reason, failure.without_source)
            return BlockedTest(f"the build failed: {builder.reason}{builder.build_error}")
    return None


def find_test_entry(
    entries: Sequence[ReportedTest], test: str, partition: str, environment: str
) -> ReportedTest | None:
    wanted = (test, partition, environment)
    matching = [entry for entry in entries if (entry.test, entry.partition, entry.environment) == wanted]
    return matching[-1] if matching else None
