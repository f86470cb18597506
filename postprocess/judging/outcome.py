"""Determine the outcome of a launch: from its exit code, its records, its MPI and ReFrame's report.

Every way in which a launch can go wrong ends here in one verdict for all of its cases. The checks call
:func:`assess_launch` while ReFrame runs; the session calls :func:`determine_outcome` afterwards, with ReFrame's
report. Both read the raw file, each once: ReFrame needs the numbers that it asserts, and the session needs
every trial for the store. The session relies on what it read itself, and compares ReFrame's numbers with its
own.
"""

import math
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.formats import DATE_FORMAT, parse_utc, plural
from postprocess.model.case import format_case_names
from postprocess.model.conditions import ROUNDS, STANDARD_ABI, explain_other_cores
from postprocess.model.gpu import explain_wrong_gpu
from postprocess.model.interposed import describe_differing_ranks, describe_unplanned_injection
from postprocess.model.launch import FinishedLaunch, LaunchOutcome, Records, fail_launch
from postprocess.model.plan import PlannedLaunch
from postprocess.model.verdict import RecordError, Verdict
from postprocess.parsers.mpicost import LaunchRecords, read_launch
from postprocess.parsers.osu_imb_launch import FIRST_FOREIGN, FOREIGN, BenchmarkRecords, read_benchmarks
from postprocess.parsers.reframe_report import BlockedTest, ReportedTest
from site_configs.mpi.family import is_library
from site_configs.mpi.layers import LIBRARY
from site_configs.schedulers.base import Ending
from site_configs.schema.facts import ANY_LIBRARY
from site_configs.topology.layouts import Layout
from site_configs.topology.machine import read_limits


def describe_foreign_lines(finished: Iterable[FinishedLaunch]) -> Iterator[str]:
    """Describe how many foreign lines each environment and program had, and the first of them."""
    counts: dict[str, int] = {}
    launches: dict[str, int] = {}
    first: dict[str, str] = {}
    for launched in finished:
        if count := launched.run.get(FOREIGN, 0):
            place = f"{launched.launch.partition}, {launched.launch.environment}, {launched.launch.program}"
            counts[place] = counts.get(place, 0) + count
            launches[place] = launches.get(place, 0) + 1
            first.setdefault(place, launched.run[FIRST_FOREIGN])
    for place, count in sorted(counts.items()):
        yield (
            f"{place}: {plural(count, 'line')} in the output of {plural(launches[place], 'launch', 'es')} "
            f"that the program did not write, taken out; the first: {first[place]}"
        )


CLOCKS_DIFFER = 60  #: seconds by which the clocks of two nodes of a job may differ


def describe_foreign_records(
    launch: PlannedLaunch, session: Path, run: Mapping[str, Any], end: Mapping[str, Any]
) -> str:
    """Describe why records are not of this launch, in one line; empty if they are, or if the plan has no token.

    :param run: the first record of mpicost or of a witness, ``end`` the last one
    """
    if not launch.token:
        return ""
    fix = "look at what its launcher starts"
    if {run.get("token"), end.get("token")} != {launch.token}:
        return f"the records are not of this launch: they have not its token; {fix}"
    if not launch.benchmarks and run["command"][1:] != [*launch.options, f"--token={launch.token}"]:
        return f"the records are not of this launch: their command is another one; {fix}"
    moments = [read_moment(run["date_utc"]), read_moment(end["ended_utc"])]
    span = read_span(launch, session)
    if span is None:
        return f"{launch.span(session)}: does not record when the launch began and ended; {fix}"
    began, ended = span
    if not began - CLOCKS_DIFFER <= moments[0] <= moments[1] <= ended + CLOCKS_DIFFER:
        lasted = " to ".join(time.strftime(DATE_FORMAT, time.gmtime(moment)) for moment in (began, ended))
        recorded = f"{run['date_utc']} to {end['ended_utc']}"
        return f"the records are from {recorded}, but the launch ran from {lasted}; set the clocks of the nodes"
    return ""


def read_moment(text: str) -> int:
    """Read a date of a record, in seconds since 1970.

    :raises ValueError: if it is not a date
    """
    return int(parse_utc(text).timestamp())


def read_span(launch: PlannedLaunch, session: Path) -> tuple[int, int] | None:
    """Read when a launch began and ended, in seconds since 1970; None if its job script did not record it."""
    try:
        began, ended = map(int, files.read_text(launch.span(session)).split())
    except (OSError, ValueError):
        return None
    return began, ended


#: Exit codes of a program that ran to its end without a complete result.
NO_RESULT = {3: "the program could not write its results", 4: "every trial of a case missed its start window"}
WRONG_DATA = 1  #: exit code of a program that ran to its end and received wrong data
ALONE = re.compile(rb'"processes":\s*1,')  #: matches the run record of a world of one
SAME = 1e-9  #: relative difference of one number in two processes
KILLED = 137
NOT_FOUND = 127  #: exit code of a shell that does not find a command, and of a loader without a library
TIMED_OUT = (124, KILLED)  #: exit codes of ``timeout``, which ends one of several starts of a job


def assess_launch(launch: PlannedLaunch, session: Path) -> LaunchOutcome:
    """Judge everything about a launch but its speed, from the files that it left.

    Correctness comes first: wrong data is reported even if the program also failed.
    """
    code = read_exit_code(launch.ending(session))
    path = launch.witness(session) if launch.benchmarks else launch.records(session)
    data = read_contents(path)
    if alone := check_singleton_worlds(launch, data):
        return alone
    try:
        records = read_benchmarks(launch, session, data) if launch.benchmarks else read_launch(path, data)
    except RecordError as error:
        if error.verdict == Verdict.INCORRECT or code == 0:
            return fail_launch(error.verdict, str(error))
        return classify_exit_code(code, launch)
    if records.wrong and code != WRONG_DATA:
        ended = classify_exit_code(code, launch).reason if code != 0 else "the program returned 0"
        return fail_launch(Verdict.INCORRECT, f"{next(iter(records.wrong.values()))}; and {ended}")
    if code != 0 and not records.wrong:
        return classify_exit_code(code, launch)
    if planted := describe_unplanned_injection(records.run, launch.planted):
        return fail_launch(Verdict.INCORRECT, planted)
    if differing := describe_differing_ranks(records.run):
        return fail_launch(Verdict.INCORRECT, differing)
    if foreign := describe_foreign_records(launch, session, records.run, records.end):
        return fail_launch(Verdict.INCORRECT, foreign)
    records.run.update(read_limits(launch.limits(session)))
    problem = check_mpi_world(launch, records)
    if isinstance(records, LaunchRecords):
        problem = problem or check_recorded_cases(launch, records)
    return problem or LaunchOutcome(records)


def read_exit_code(path: Path) -> int | None:
    """Read the program's exit code as the job script wrote it; None if the script did not get that far."""
    try:
        return int(files.read_regular(path))
    except (OSError, ValueError):
        return None


def classify_exit_code(code: int | None, launch: PlannedLaunch) -> LaunchOutcome:
    """Classify the outcome of a program that did not return 0."""
    if code is None:
        return fail_launch(Verdict.CRASHED, "the job ended before the program did")
    if launch.start and code in TIMED_OUT:
        killed = " (or killed for lack of memory)" if code == KILLED else ""
        return fail_launch(Verdict.TIMEOUT, f"no end within {launch.time_limit:.0f} s{killed}")
    if code in NO_RESULT:
        return fail_launch(Verdict.INCOMPLETE, f"{NO_RESULT[code]} (exit code {code})")
    if code == NOT_FOUND:
        cause = "its launcher, the program or a library of it was not found"
        fix = "where it is the launcher, name it by launcher in the environment"
        return fail_launch(Verdict.CRASHED, f"the program ended with exit code {code}: {cause}; {fix}")
    names = {number.value: number.name for number in signal.Signals}
    name = f", {names[code - 128]}" if code - 128 in names else ""
    return fail_launch(Verdict.CRASHED, f"the program ended with exit code {code}{name}")


def read_contents(path: Path) -> bytes | None:
    """Read the file that a program wrote, once; None if it cannot be read."""
    try:
        return files.read_regular(path)
    except OSError:
        return None


def check_singleton_worlds(launch: PlannedLaunch, data: bytes | None) -> LaunchOutcome | None:
    """Return the failure of a launch whose processes each ran in a world of one; None if they did not.

    This happens with a launcher of another MPI. All processes write to one file, which may be damaged then: a
    single run record in it is enough.
    """
    if launch.processes == 1 or not ALONE.search(data or b""):
        return None
    number = launch.processes
    what = f"started {number} singleton processes instead of one MPI_COMM_WORLD of {number}"
    cause = f"the launcher does not match the MPI of {launch.environment}"
    return fail_launch(Verdict.INCORRECT, f"{what}: {cause}; see its launcher in the site file")


def check_mpi_world(launch: PlannedLaunch, records: LaunchRecords | BenchmarkRecords) -> LaunchOutcome | None:
    """Fail a launch whose MPI or processes are not those requested."""
    if not is_asked_library(records.mpi_library, launch.library):
        library, wanted = (" ".join(text.split()) for text in (records.mpi_library, launch.library))
        fix = "./plumbline setup looks at the MPIs again"
        if launch.in_container:
            fix = "the site file must name the MPI that is in the container: mend its container or library"
        return fail_launch(Verdict.INCORRECT, f"ran on {library[:80]!r}, not on {wanted[:80]!r}; {fix}")
    if problem := explain_other_interface(launch, records.run):
        return fail_launch(Verdict.INCORRECT, problem)
    ran = (records.processes, records.per_node)
    if ran != (launch.processes, launch.per_node):
        asked = f"{launch.processes} processes, {launch.per_node} per node"
        return fail_launch(Verdict.INCORRECT, f"ran {ran[0]} processes, {ran[1]} per node, not {asked}")
    on_hosts = sorted((host["ranks"] for host in records.run["hosts"]), reverse=True)
    layout = Layout(launch.processes, launch.per_node)
    if on_hosts != layout.ranks_per_host:
        there, asked = (format_process_counts(numbers) for numbers in (on_hosts, layout.ranks_per_host))
        return fail_launch(Verdict.INCORRECT, f"ran {there} processes on its hosts, not {asked}")
    blocks = [host for host, _ in groupby(rank["host"] for rank in records.run["ranks"])]
    if len(blocks) != len(on_hosts):
        what = "ranks are distributed cyclically over nodes; block distribution is required"
        return fail_launch(Verdict.INCORRECT, f"{what}; see the launcher in the site file")
    if launch.ranks_per_core > 1 and (unbound := explain_other_cores(records.run, launch.ranks_per_core)):
        return fail_launch(Verdict.INCORRECT, unbound)
    if launch.gpu and (wrong := explain_wrong_gpu(records.run, launch.gpu)):
        return fail_launch(Verdict.INCORRECT, wrong)
    return None


def explain_other_interface(launch: PlannedLaunch, run: Mapping[str, Any]) -> str:
    """Explain why a program does not use the requested binary interface; empty if it does.

    A library of the same version elsewhere may be another build. Folders of a compute node that this node does
    not see are not checked.
    """
    abi = run.get(STANDARD_ABI)
    if bool(abi) != bool(launch.standard_abi):
        names = {True: "the standard ABI", False: "the MPI's own"}
        ran, wanted = names[bool(abi)], names[bool(launch.standard_abi)]
        return f"the program's binary interface is {ran}, not {wanted}"
    if not abi or not os.path.isdir(launch.standard_abi):
        return ""
    if os.path.realpath(os.path.join(launch.standard_abi, LIBRARY)) == os.path.realpath(abi["library"]):
        return ""
    return f"ran on {abi['library']}, not on the library of {launch.standard_abi}; see LD_LIBRARY_PATH"


def is_asked_library(said: str, wanted: str) -> bool:
    """Return whether the text of an MPI library is that of the requested one."""
    return wanted == ANY_LIBRARY or is_library(said, wanted)


def format_process_counts(numbers: Sequence[int]) -> str:
    """Format the processes of each host, runs of equal numbers as one term: ``3 x 64 + 1``."""
    runs = ((number, len(list(same))) for number, same in groupby(numbers))
    return " + ".join(str(number) if count == 1 else f"{count} x {number}" for number, count in runs)


def check_recorded_cases(launch: PlannedLaunch, records: LaunchRecords) -> LaunchOutcome | None:
    """Fail a launch whose cases are not exactly those planned, with as many trials."""
    system, partition = launch.partition.split(":")
    came = {records.case(case, system, partition, launch.environment) for case in records.cases}
    planned = set(launch.cases)
    if missing := sorted(planned - came):
        return fail_launch(Verdict.INCOMPLETE, f"missing from the output: {format_case_names(missing)}")
    if extra := sorted(came - planned):
        return fail_launch(Verdict.INCORRECT, f"in the output but not planned: {format_case_names(extra)}")
    if records.run["trials"] != launch.trials:
        return fail_launch(Verdict.INCORRECT, f"ran {records.run['trials']} trials, not {launch.trials}")
    if (rounds := records.run.get(ROUNDS, 1)) != launch.rounds:
        return fail_launch(Verdict.INCORRECT, f"visited its cases in {rounds} rounds, not {launch.rounds}")
    return None


def determine_outcome(
    launch: PlannedLaunch, session: Path, entry: ReportedTest | None, blocked: BlockedTest | None = None
) -> LaunchOutcome:
    """Determine the outcome of a launch, from its files and ReFrame's report.

    :param entry: what ReFrame reports of this launch; None if nothing.
    :param blocked: why it could not run at all, if so (its program was not built).
    """
    if not launch.cases:
        return fail_launch(Verdict.SKIPPED, "all of its cases are skipped")
    if entry is None:
        return fail_launch(Verdict.INCOMPLETE, "planned, but ReFrame did not run it")
    if stopped := classify_not_run(launch, session, entry, blocked):
        return stopped
    assessed = assess_launch(launch, session)
    if assessed.verdict == Verdict.CRASHED:
        job_end = Ending.TAKEN_AWAY if entry.taken_away else None
        return fail_launch(Verdict.CRASHED, assessed.reason + entry.cause, job_end)
    if assessed.verdict == Verdict.TIMEOUT and entry.lack_of_memory:
        return fail_launch(Verdict.TIMEOUT, assessed.reason + entry.lack_of_memory)
    if assessed.records is None:
        return assessed
    if not entry.sane:
        return classify_rejected(launch, entry)
    wrong = compare_transport(assessed.records, entry) if launch.asserted else None
    return wrong or assessed


def compare_transport(records: Records, entry: ReportedTest) -> LaunchOutcome | None:
    """Check that ReFrame asserted exactly the numbers in the records, in their units.

    Both processes compute a number with the same function from the same file. So this proves nothing about the
    function; it proves that ReFrame asserted what this session is about to judge and store.
    """
    for variable, measured in records.measurements.items():
        value, unit = entry.values.get(variable, (None, ""))
        same = type(value) in (int, float) and math.isclose(value, measured.value, rel_tol=SAME)
        if not same or unit != measured.unit:
            asserted = f"{value:.9g} {unit}" if type(value) in (int, float) else "no number"
            what = f"ReFrame asserted {asserted}, the records say {measured.value:.9g} {measured.unit}"
            return fail_launch(Verdict.INCORRECT, f"{variable}: {what}: one of them is wrong")
    return None


def check_timed_out_start(launch: PlannedLaunch, session: Path) -> LaunchOutcome | None:
    """Return the outcome of a start that was still running at the limit of its job; None if it had ended."""
    if not launch.start:
        return fail_launch(Verdict.TIMEOUT, f"no end within {launch.time_limit:.0f} s")
    if read_exit_code(launch.ending(session)) is None:
        return fail_launch(Verdict.TIMEOUT, f"no end within the {launch.job_limit:.0f} s of its job")
    return None


def classify_rejected(launch: PlannedLaunch, entry: ReportedTest) -> LaunchOutcome:
    """Return the outcome of a complete launch that ReFrame rejected: both checks must agree."""
    if not entry.timed_out:
        return fail_launch(Verdict.INCORRECT, f"ReFrame rejects it: {entry.reason}")
    limit = f"its job ran into its limit of {launch.job_limit:.0f} s"
    return fail_launch(Verdict.INCOMPLETE, f"it ended well, but {limit} and ReFrame checked no value")


def classify_not_run(
    launch: PlannedLaunch, session: Path, entry: ReportedTest, blocked: BlockedTest | None
) -> LaunchOutcome | None:
    """Classify a launch that did not run to its end; for parameters see :func:`determine_outcome`.

    A job that ran out of time may have finished some of its starts.
    """
    if entry.timed_out and (unended := check_timed_out_start(launch, session)):
        return unended
    if entry.never_started:
        return fail_launch(Verdict.INCOMPLETE, entry.never_started, Ending.NEVER_STARTED)
    if launch.benchmarks and blocked and blocked.without_source:
        return fail_launch(Verdict.SKIPPED, f"no source of {launch.program}; {blocked.reason}")
    if blocked:
        return fail_launch(Verdict.INCOMPLETE, blocked.reason)
    if not entry.ran:
        return fail_launch(Verdict.INCOMPLETE, entry.reason or f"not run ({entry.result})")
    return None
