"""What becomes of a launch: each way of going wrong has one verdict and a reason of one line."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from postprocess.judging import outcome
from postprocess.model.case import NAMED
from postprocess.model.plan import PlannedLaunch, SkippedCase, read_plan, write_launch
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.verdict import Verdict
from postprocess.parsers.osu_imb_launch import FIRST_FOREIGN, FOREIGN
from postprocess.parsers.reframe_report import BlockedTest
from site_configs.schedulers.base import Ended, Ending, write_ended
from tests.support.factories import benchmark, record
from tests.support.factories.launch import CASES, LIBRARY, VALUES, case, entry, leave, planned
from tests.support.faults import Declared, plants

Records = list[dict[str, Any]]


def assessed(
    session: Path, records: Records | None = None, code: str | None = "0\n", launch: PlannedLaunch | None = None
) -> tuple[str, str]:
    """Verdict and reason of a launch that left this; ``("", "")`` if its values can be judged."""
    launch = launch or planned()
    leave(session, launch, records, code)
    found = outcome.assess_launch(launch, session)
    assert (found.records is None) == (found.verdict is not None)
    assert "\n" not in found.reason
    return str(found.verdict or ""), found.reason


def whole(**changes: Any) -> Records:
    return record.launch(**changes)


def test_a_launch_that_went_well_hands_over_its_records(tmp_path: Path):
    leave(tmp_path, planned(), whole())
    found = outcome.assess_launch(planned(), tmp_path)
    assert (found.verdict, found.reason) == (None, "")
    assert {each.variable for each in found.records.cases} == {each.variable for each in CASES}


@pytest.mark.parametrize(
    ("code", "verdict", "reason"),
    [
        *((f"{code}\n", "crashed", f"the program ended with exit code {code}") for code in (1, 2, 9, 255, -11)),
        (
            "127\n",
            "crashed",
            "the program ended with exit code 127: its launcher, the program or a library of it was not found; "
            "where it is the launcher, name it by launcher in the environment",
        ),
        ("3\n", "incomplete", "the program could not write its results (exit code 3)"),
        ("4\n", "incomplete", "every trial of a case missed its start window (exit code 4)"),
        *(
            (f"{code}\n", "crashed", f"the program ended with exit code {code}, {signal}")
            for code, signal in ((134, "SIGABRT"), (137, "SIGKILL"), (139, "SIGSEGV"))
        ),
        *((nothing, "crashed", "the job ended before the program did") for nothing in (None, "", "zero\n")),
    ],
)
@pytest.mark.parametrize("left", ["everything", "nothing", "half"])
def test_no_exit_code_but_zero_is_well(tmp_path, code, verdict, reason, left):
    records = {"everything": whole(), "nothing": None, "half": whole()[:2]}[left]
    assert assessed(tmp_path, records, code) == (verdict, reason)


def test_the_exit_code_of_a_job_script_is_read_and_nothing_else(tmp_path: Path):
    path = tmp_path / "x.exit"
    assert outcome.read_exit_code(path) is None
    path.write_text("0\n")
    assert outcome.read_exit_code(path) == 0
    path.write_text("0 0\n")
    assert outcome.read_exit_code(path) is None


@plants("data", "a wrong element, with any exit code", "records of mpicost", "incorrect", 1,
        "wrong data: bcast with 1000000 bytes: rank 1 received -1 in element 9")  # fmt: skip
@pytest.mark.parametrize("code", ["0\n", "2\n", "139\n", None])
def test_wrong_data_is_named_whatever_the_exit_code(tmp_path, code: str | None, declared):
    """All of the launch is incorrect then: mpicost returns 1 for wrong data and nothing else."""
    declared.check_case(*assessed(tmp_path, record.receive_wrong_data(whole(), 2), code))


@pytest.mark.parametrize("change", [{"mpi_library": "other"}, {"trials": 52}, {"processes": 3}])
def test_wrong_data_is_no_excuse_for_another_run(tmp_path: Path, change: dict[str, Any]):
    records = record.receive_wrong_data(whole(), 2)
    records[0] |= change
    assert assessed(tmp_path, records, "1\n")[0] == "incorrect"


def test_a_whole_launch_with_wrong_data_hands_over_its_records(tmp_path: Path):
    """ReFrame rejects the job, and has asserted the values of the other cases."""
    leave(tmp_path, planned(), record.receive_wrong_data(whole(), 2), "1\n")
    values = {name: each for name, each in VALUES.items() if name != CASES[1].variable}
    said = entry(result="fail", phase="performance", values=values)
    found = outcome.determine_outcome(planned(), tmp_path, said)
    assert found.verdict is None
    assert found.records and set(found.records.wrong) == {CASES[1].variable}


@plants("output", "nothing, with exit code 0", "records of mpicost", "incomplete", 1,
        "the program wrote no result")  # fmt: skip
def test_no_results_at_all_although_the_program_says_it_went_well(tmp_path, declared):
    declared.check_case(*assessed(tmp_path, None))


@plants("output", "one case less, without contradiction", "records of mpicost", "incomplete", 1,
        "missing from the output: local:cpu:mpich-5_0_2:mpicost:")  # fmt: skip
def test_a_case_that_did_not_come_is_incomplete_and_named(tmp_path: Path, declared: Declared):
    records = whole()
    del records[2]
    records[0]["cases"] = records[-1]["cases"] = 3
    verdict, reason = assessed(tmp_path, records)
    assert (verdict, reason) == ("incomplete", f"missing from the output: {CASES[1].key}")
    declared.check_case(verdict, reason)


def test_many_missing_cases_are_counted(tmp_path: Path):
    more = [case("bcast", 8 * size) for size in range(2, 12)]
    verdict, reason = assessed(tmp_path, whole(), launch=planned(cases=(*CASES, *more)))
    assert verdict == "incomplete"
    assert reason.count("mpich-5_0_2:mpicost") == NAMED
    assert reason.endswith(f" and {10 - NAMED} more")


@plants("output", "a case that was not planned", "records of mpicost", "incorrect", 1,
        "in the output but not planned: ")  # fmt: skip
def test_a_case_that_nobody_asked_for_is_incorrect_and_named(tmp_path: Path, declared: Declared):
    verdict, reason = assessed(tmp_path, whole(), launch=planned(cases=CASES[:-1]))
    assert (verdict, reason) == ("incorrect", f"in the output but not planned: {CASES[-1].key}")
    declared.check_case(verdict, reason)


@plants("stale", "the same routines in another state of the caches or with another start",
        "records of mpicost", "incomplete", 1, "missing from the output: ")  # fmt: skip
@pytest.mark.parametrize("change", [{"cache": "warm"}, {"sync": "barrier"}, {"program": "other"}], ids=str)
def test_the_same_routines_measured_another_way_are_not_what_was_planned(
    tmp_path: Path, change, declared: Declared
):
    declared.check_case(*assessed(tmp_path, whole(**change)))


@plants("stale", "another MPI, or another version of it", "what a launch ran on", "incorrect", 1,
        "ran on …, not on 'MPICH Version: 5.0.2'; ./plumbline setup looks at the MPIs again")  # fmt: skip
@pytest.mark.parametrize(
    "library", ["MPICH Version: 4.3.0", "Open MPI v5.0.11, package: x", "x", "MPICH Version: 5.0.\n2"]
)
def test_another_library_than_asked_for_is_incorrect_and_both_are_named(
    tmp_path: Path, library: str, declared: Declared
):
    verdict, reason = assessed(tmp_path, whole(mpi_library=library))
    assert reason.startswith(f"ran on {' '.join(library.split())!r}, not on 'MPICH Version: 5.0.2'")
    declared.check_case(verdict, reason)


@plants("stale", "another MPI in a container than the site file names, or another version of it",
        "what a launch ran on", "incorrect", 1,
        "ran on …, not on 'MPICH Version: 5.0.2'; the site file must name the MPI that is in ")  # fmt: skip
@pytest.mark.parametrize("library", ["MPICH Version: 4.3.2", "Open MPI v5.0.11, package: x"])
def test_another_mpi_in_a_container_is_incorrect(tmp_path: Path, library: str, declared: Declared):
    found = assessed(tmp_path, whole(mpi_library=library), launch=planned(in_container=True))
    declared.check_case(*found)


@pytest.mark.parametrize(
    ("asked", "ran", "verdict"),
    [
        ("Open MPI v5.0", "Open MPI v5.0.11, package", ""),
        ("Open MPI v5.0.11", "Open MPI v5.0.11, package", ""),
        ("Open MPI v5.0.1", "Open MPI v5.0.11, package", "incorrect"),
        ("MPICH Version: 4.3", "MPICH Version: 4.3.0 MPICH", ""),
        ("MPICH Version: 4.3", "MPICH Version: 4.30", "incorrect"),
        ("MPICH Version: .*", "MPICH Version: 4.3", "incorrect"),
        ("MPICH  Version: 5.0.2\n", "MPICH Version:\t\t5.0.2\nMPICH Release date: today", ""),
        *((nothing, LIBRARY, "incorrect") for nothing in ("", " \n")),
    ],
)
def test_the_beginning_of_a_version_is_enough_but_not_of_a_number(tmp_path, asked, ran, verdict):
    records = whole(mpi_library=ran)
    assert assessed(tmp_path, records, launch=planned(library=asked))[0] == verdict


def standard_abi(library: str = "/else/libmpi_abi.so.1") -> dict[str, Any]:
    """What a program of the standard ABI tells of itself."""
    return {"standard_abi": {"version": "1.0", "program": "0" * 16, "library": library}}


@plants("builds", "a program of another binary interface than asked for", "what a launch ran", "incorrect", 1,
        "the program's binary interface is the MPI's own, not the standard ABI | "
        "the program's binary interface is the standard ABI, not the MPI's own")  # fmt: skip
@pytest.mark.parametrize(("folder", "told"), [("/opt/lib", {}), ("", standard_abi())])
def test_a_program_of_another_binary_interface_is_incorrect(tmp_path: Path, folder, told, declared: Declared):
    declared.check_case(*assessed(tmp_path, whole(**told), launch=planned(standard_abi=folder)))


@plants("builds", "a library of the standard ABI that is not the one named", "a launch", "incorrect", 1,
        "ran on /else/libmpi_abi.so.1, not on the library of …; see LD_LIBRARY_PATH")  # fmt: skip
def test_another_library_of_the_standard_abi_is_incorrect(tmp_path: Path, declared: Declared):
    launch = planned(standard_abi=str(tmp_path))
    declared.check_case(*assessed(tmp_path, whole(**standard_abi()), launch=launch))


def test_the_library_of_the_standard_abi_may_be_reached_through_a_link(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    told = standard_abi(f"{tmp_path.resolve()}/real/libmpi_abi.so.1")
    assert assessed(tmp_path, whole(**told), launch=planned(standard_abi=f"{tmp_path}/link")) == ("", "")
    assert assessed(tmp_path, whole(**told), launch=planned(standard_abi="/of/a/compute/node")) == ("", "")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "libmpi_abi.so.1").symlink_to("../real/libmpi_abi.so.1")
    assert assessed(tmp_path, whole(**told), launch=planned(standard_abi=f"{tmp_path}/files")) == ("", "")


@plants("schedulers", "a world of 4 processes instead of 2", "a launcher", "incorrect", 1,
        "ran 4 processes, 4 per node, not 2 processes, 2 per node")  # fmt: skip
def test_a_world_of_another_size_is_incorrect(tmp_path: Path, declared: Declared):
    declared.check_case(*assessed(tmp_path, whole(processes=4)))


@plants("schedulers", "the right processes on other nodes", "a launcher", "incorrect", 1,
        "ran 2 processes, 1 per node, not 2 processes, 2 per node")  # fmt: skip
def test_the_right_world_on_other_nodes_is_incorrect(tmp_path: Path, declared: Declared):
    hosts = [{"name": "n1", "ranks": 1}, {"name": "n2", "ranks": 1}]
    declared.check_case(*assessed(tmp_path, whole(per_node=1, hosts=hosts)))


@plants("schedulers", "worlds of one process that garble their file",
        "a launcher of another MPI", "incorrect", 1,
        "started 2 singleton processes instead of one MPI_COMM_WORLD of 2: the launcher does "
        "not match the MPI of mpich-5_0_2; see its launcher in the site file")  # fmt: skip
@pytest.mark.parametrize("damage", ["", "{", '"record"'])
def test_many_worlds_of_one_process_are_named_even_if_they_garbled_their_file(
    tmp_path: Path, damage: str, declared: Declared
):
    launch = planned()
    leave(tmp_path, launch, whole(processes=1))
    file = launch.records(tmp_path)
    file.write_text(file.read_text().replace("\n", f"\n{damage}", 1))
    found = outcome.assess_launch(launch, tmp_path)
    assert found.verdict == Verdict.INCORRECT
    declared.check_case(str(found.verdict), found.reason)


opened: list[str] = []
sys.addaudithook(lambda event, words: opened.append(str(words[0])) if event == "open" else None)


@pytest.mark.parametrize("program", ["mpicost", "osu"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_what_a_program_wrote_is_read_once(tmp_path: Path, program: str, is_whole: bool):
    launch = planned() if program == "mpicost" else benchmark.start()
    if program == "mpicost":
        leave(tmp_path, launch, whole() if is_whole else whole()[:2])
        written = launch.records(tmp_path)
    else:
        benchmark.leave(tmp_path, launch, benchmark.osu_text(), witness=None if is_whole else [])
        written = launch.witness(tmp_path)
    opened.clear()
    found = outcome.assess_launch(launch, tmp_path)
    assert (found.verdict is None) == is_whole, found.reason
    assert opened.count(str(written)) == 1


def test_damaged_records_of_a_larger_world_are_not_taken_for_many_worlds(tmp_path: Path):
    launch = planned()
    leave(tmp_path, launch, whole(processes=12, mpi_library='"processes":1,'))
    file = launch.records(tmp_path)
    file.write_text(file.read_text() + "{")
    assert "world" not in outcome.assess_launch(launch, tmp_path).reason


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([2, 2, 1], ""),
        ([1, 2, 2], ""),  # which host has the rest is the launcher's business
        ([2, 1, 1, 1], "ran 2 + 3 x 1 processes on its hosts, not 2 x 2 + 1"),
        ([2, 2], "ran 2 x 2 processes on its hosts, not 2 x 2 + 1"),
    ],
)
def test_every_host_must_have_the_ranks_that_the_layout_gives_it(ranks, said):
    class Records:
        mpi_library = LIBRARY
        processes, per_node = 5, 2
        hosts: ClassVar = [{"name": f"n{i}", "ranks": each} for i, each in enumerate(ranks)]
        run: ClassVar = {"hosts": hosts, "ranks": record.ranks_of(hosts)}

    layout = {"processes": 5, "per_node": 2}
    launch = planned(cases=tuple(replace(each, **layout) for each in CASES))
    problem = outcome.check_mpi_world(launch, Records())
    assert (problem.reason if problem else "") == said
    assert problem is None or problem.verdict == Verdict.INCORRECT


@plants("schedulers", "ranks dealt cyclically over nodes", "a launcher", "incorrect", 1,
        "ranks are distributed cyclically over nodes")  # fmt: skip
def test_ranks_that_are_strewn_over_hosts_are_incorrect(tmp_path: Path, declared: Declared):
    """As with ``srun --distribution=cyclic``: every host has the right number, of the wrong ranks."""
    launch = planned(cases=tuple(replace(each, processes=4, per_node=2) for each in CASES))
    hosts = [{"name": "n1", "ranks": 2}, {"name": "n2", "ranks": 2}]
    ranks = [{"rank": rank, "host": f"n{1 + rank % 2}", "cpus": str(rank // 2)} for rank in range(4)]
    said = whole(processes=4, per_node=2, hosts=hosts)
    assert assessed(tmp_path, said, launch=launch) == ("", "")
    said = whole(processes=4, per_node=2, hosts=hosts, ranks=ranks)
    declared.check_case(*assessed(tmp_path, said, launch=launch))


@plants("schedulers", "two ranks on two cores instead of the hardware threads of one", "a launcher",
        "incorrect", 1, "1 ranks are bound to its core, not 2")  # fmt: skip
def test_ranks_that_are_not_on_the_threads_of_a_core_are_incorrect(tmp_path: Path, declared: Declared):
    launch = planned(ranks_per_core=2)
    host = whole()[0]["hosts"][0]["name"]
    threads = [{"rank": n, "host": host, "cpus": str(8 * n), "core": "0,8"} for n in range(2)]
    assert assessed(tmp_path, whole(ranks=threads), launch=launch) == ("", "")
    cores = [{"rank": n, "host": host, "cpus": str(n), "core": f"{n},{n + 8}"} for n in range(2)]
    declared.check_case(*assessed(tmp_path, whole(ranks=cores), launch=launch))


def test_a_launch_of_which_every_case_is_skipped_did_not_fail(tmp_path: Path):
    launch = planned(cases=(), skips=(SkippedCase(CASES[0], "too large"),))
    assert (launch.processes, launch.per_node) == (2, 2)
    assert outcome.determine_outcome(launch, tmp_path, None).verdict == Verdict.SKIPPED
    write_launch(tmp_path, launch)
    assert read_plan(tmp_path) == [launch]


@plants("output", "51 trials instead of 11", "records of mpicost", "incorrect", 1,
        "ran 51 trials, not 11")  # fmt: skip
def test_another_number_of_trials_is_incorrect(tmp_path: Path, declared: Declared):
    declared.check_case(*assessed(tmp_path, whole(), launch=planned(trials=11)))


FAILED_BUILD = BlockedTest("the build failed: build system error: cc1: error")
REJECTED = "ReFrame rejects it: "


@pytest.mark.parametrize(
    ("result", "phase", "said", "verdict", "reason"),
    [
        ("pass", "", "", "", ""),
        ("fail", "performance", "performance error: too slow", "", ""),
        ("", "", "", "incomplete", "planned, but ReFrame did not run it"),
        ("fail", "run", "job error: job timed out (60.1s > 60s)", "timeout", "no end within 60 s"),
        ("fail_deps", "setup", "", "incomplete", FAILED_BUILD.reason),
        ("skip", "setup", "", "incomplete", "not run (skip)"),
        ("abort", "run", "", "incomplete", "not run (abort)"),
        ("fail", "setup", "no such module", "incomplete", "no such module"),
        ("fail", "sanity", "sanity error: odd", "incorrect", REJECTED + "sanity error: odd"),
        ("fail", "cleanup", "os error: full", "incorrect", REJECTED + "os error: full"),
        ("xpass", "", "", "incomplete", "not run (xpass)"),
    ],
)
def test_reframe_has_a_say_in_a_launch_whose_files_are_well(tmp_path, result, phase, said, verdict, reason):
    leave(tmp_path, planned(), whole())
    told = entry(result=result, phase=phase, reason=said) if result else None
    blocked = FAILED_BUILD if result == "fail_deps" else None
    found = outcome.determine_outcome(planned(), tmp_path, told, blocked)
    assert (str(found.verdict or ""), found.reason) == (verdict, reason)
    assert (found.records is None) == bool(verdict)


VARIABLE = CASES[0].variable
VALUE = VALUES[VARIABLE][0]


@plants("output", "another number than in the records, or none", "what ReFrame asserted", "incorrect", 1,
        "ReFrame asserted …, the records say … s: one of them is wrong")  # fmt: skip
@pytest.mark.parametrize(
    ("asserted", "said"),
    [
        ((1.01 * VALUE, "s"), f"{1.01 * VALUE:.9g} s"),
        ((VALUE * (1 + 1e-8), "s"), f"{VALUE * (1 + 1e-8):.9g} s"),
        ((VALUE, "MB/s"), f"{VALUE:.9g} MB/s"),
        ((0, "s"), "0 s"),
        ((float("nan"), "s"), "nan s"),
        ((None, "s"), "no number"),
        ((str(VALUE), "s"), "no number"),
        ((True, "s"), "no number"),
        (None, "no number"),
    ],
)
@pytest.mark.parametrize("changes", [{}, {"result": "fail", "phase": "performance"}])
def test_another_number_than_reframe_asserted_is_incorrect_and_both_are_named(
    tmp_path: Path, asserted, said: str, changes, declared: Declared
):
    leave(tmp_path, planned(), whole())
    others = {name: value for name, value in VALUES.items() if name != VARIABLE}
    values = others if asserted is None else others | {VARIABLE: asserted}
    found = outcome.determine_outcome(planned(), tmp_path, entry(values=values, **changes))
    assert (found.verdict, found.records) == (Verdict.INCORRECT, None)
    what = f"ReFrame asserted {said}, the records say {VALUE:.9g} s: one of them is wrong"
    assert found.reason == f"{VARIABLE}: {what}"
    declared.check_case(found.verdict, found.reason)


def test_the_number_that_reframe_asserted_may_differ_in_its_last_digits(tmp_path: Path):
    leave(tmp_path, planned(), whole())
    values = {name: (value * (1 + 1e-12), unit) for name, (value, unit) in VALUES.items()}
    assert outcome.determine_outcome(planned(), tmp_path, entry(values=values)).verdict is None


@plants("stale", "whole records of other times, after ReFrame read them",
        "records of mpicost", "incorrect", 1,
        "ReFrame asserted …, the records say … s: one of them is wrong")  # fmt: skip
def test_records_that_changed_after_reframe_read_them_are_incorrect(tmp_path, declared):
    """Even if they are whole, and agree with themselves."""
    records = whole()
    case = records[1]
    records[1] = record.case_record(case["routine"], case["bytes"], peer=case["peer"], scale=2e-6)
    leave(tmp_path, planned(), records)
    assert outcome.assess_launch(planned(), tmp_path).verdict is None
    found = outcome.determine_outcome(planned(), tmp_path, entry())
    declared.check_case(found.verdict, found.reason)


A_BENCHMARK = Benchmark("osu_bcast", "bcast", "title", "Avg Latency(us)")


@pytest.mark.parametrize("reason", ["another sentence", "cannot be fetched from here"])
@pytest.mark.parametrize(
    ("ours", "without_source", "verdict"),
    [(False, True, "skipped"), (False, False, "incomplete"), (True, True, "incomplete")],
)
def test_a_program_without_a_source_is_skipped_whatever_the_reason_says(
    tmp_path: Path, reason, ours, without_source, verdict
):
    launch = planned(benchmarks=() if ours else (A_BENCHMARK,))
    said = entry(result="fail_deps", phase="setup")
    found = outcome.determine_outcome(launch, tmp_path, said, BlockedTest(reason, without_source))
    assert (str(found.verdict), reason in found.reason) == (verdict, True)


@plants("programs", "SIGSEGV, and control characters in the last words", "a job", "crashed", 1,
        "the program ended with exit code 139, SIGSEGV: segfault at \\x1b[31m0")  # fmt: skip
def test_a_crash_is_named_with_the_last_words_of_the_job(tmp_path: Path, declared: Declared):
    leave(tmp_path, planned(), None, "139\n")
    (tmp_path / "rfm_job.err").write_text("first\nsegfault at \x1b[31m0\n\n \0")
    said = entry(result="fail", phase="sanity", directory=str(tmp_path), errors="rfm_job.err")
    found = outcome.determine_outcome(planned(), tmp_path, said)
    declared.check_case(found.verdict, found.reason)


@plants("schedulers", "a job that Slurm does not take", "submission", "crashed", 1,
        "the job ended before the program did: job error: sbatch: invalid partition")  # fmt: skip
def test_a_job_that_was_never_submitted_is_named_with_reframes_reason(tmp_path, declared):
    leave(tmp_path, planned(), None, None)
    said = entry(result="fail", phase="run", reason="job error: sbatch: invalid partition")
    found = outcome.determine_outcome(planned(), tmp_path, said)
    declared.check_case(found.verdict, found.reason)


@plants("schedulers", "a job that Slurm ends at its limit", "Slurm", "timeout", 1,
        "no end within 60 s")  # fmt: skip
def test_a_job_that_slurm_ended_at_its_limit_is_a_timeout(tmp_path: Path, declared: Declared):
    leave(tmp_path, planned(), None, None)
    (tmp_path / "err").write_text(
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T09:00:00 DUE TO TIME LIMIT ***\n"
        "srun: error: n1: task 0: Terminated\n"
    )
    said = entry(result="fail", phase="sanity", directory=str(tmp_path), errors="err")
    found = outcome.determine_outcome(planned(), tmp_path, said)
    declared.check_case(found.verdict, found.reason)


@pytest.mark.parametrize(
    ("how", "verdict"), [(Ending.NEVER_STARTED, "incomplete"), (Ending.TAKEN_AWAY, "crashed")]
)
def test_how_a_scheduler_ended_a_job_is_kept(tmp_path: Path, how: Ending, verdict: str):
    """For whoever measures again, and does not on nodes that were lost."""
    leave(tmp_path, planned(), None, None)
    said = entry(result="fail", phase="run", directory=str(tmp_path), reason="job error: odd")
    assert outcome.determine_outcome(planned(), tmp_path, said).job_end is None
    write_ended(tmp_path, Ended(how, "words of the scheduler"))
    found = outcome.determine_outcome(planned(), tmp_path, said)
    assert (str(found.verdict), found.job_end) == (verdict, how)
    assert how is not Ending.NEVER_STARTED or found.reason == "words of the scheduler"


@pytest.mark.parametrize("code", ["124\n", "137\n"])
def test_a_start_that_ended_at_its_limit_quotes_what_was_written_of_memory(tmp_path: Path, code: str):
    launch = benchmark.start(time_limit=66.0)
    benchmark.leave(tmp_path, launch, None, code=code)
    (tmp_path / "err").write_text(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\nmpicost: later\n"
    )
    said = entry(test=launch.test, result="fail", phase="sanity", directory=str(tmp_path), errors="err")
    found = outcome.determine_outcome(launch, tmp_path, said)
    assert found.verdict == Verdict.TIMEOUT and "Detected 1 oom_kill event" in found.reason


DAMAGE: list[Callable[[Records], object]] = [
    lambda records: records.pop(),
    lambda records: records.insert(1, records[1]),
    lambda records: records[1].update(verified=False),
    lambda records: records[-1].update(verified=False),
    lambda records: records[0].update(mpi_library="other"),
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("code", ["0\n", "1\n", None])
def test_no_word_of_reframe_makes_a_bad_launch_good(tmp_path: Path, damage, code: str | None):
    records = whole()
    damage(records)
    leave(tmp_path, planned(), records, code)
    found = outcome.determine_outcome(planned(), tmp_path, entry())
    assert found.records is None
    assert found.verdict is not None
    assert found.reason


Records = list[dict[str, Any]]
# ---------------------------------------------------------------- records of another launch

LAUNCH = replace(planned(), token="a1", options=("--trials=51",))
BEGAN = 1795251600  #: 2026-11-21T09:00:00Z, when the run record was written
SPAN = f"{BEGAN}\n{BEGAN + 20}\n"


def own() -> Records:
    run, *cases, end = record.launch(token="a1", command=["mpicost", "--trials=51", "--token=a1"])
    return [run, *cases, end | {"token": "a1"}]


def with_run(**changes: Any) -> Callable[[], Records]:
    return lambda: [own()[0] | changes, *own()[1:]]


def with_end(**changes: Any) -> Callable[[], Records]:
    return lambda: [*own()[:-1], own()[-1] | changes]


def left(session: Path, records: Records, span: str | None = SPAN) -> None:
    leave(session, LAUNCH, records)
    if span is not None:
        LAUNCH.span(session).write_text(span)


@pytest.mark.parametrize("span", [SPAN, f"{BEGAN + 50}\n{BEGAN + 60}\n"])
def test_the_records_of_a_launch_are_its_own(tmp_path: Path, span: str) -> None:
    """The clocks of two nodes may differ a little."""
    left(tmp_path, own(), span)
    assert outcome.assess_launch(LAUNCH, tmp_path).reason == ""


@plants("stale", "without its token, of another command, or of another time",
        "records of mpicost", "incorrect", 1,
        "the records are not of this launch | the records are from | does not record when "
        "the launch began and ended")  # fmt: skip
@pytest.mark.parametrize(
    ("records", "span", "said"),
    [
        (record.launch, SPAN, "have not its token"),  # started without one
        (with_run(token="b2"), SPAN, "have not its token"),
        (with_end(token="b2"), SPAN, "have not its token"),
        (with_run(command=["mpicost", "--trials=5", "--token=a1"]), SPAN, "command is another"),
        (own, f"{BEGAN + 90}\n{BEGAN + 120}\n", "but the launch ran from 2026-11-21T09:01:30Z"),
        (own, f"{BEGAN - 200}\n{BEGAN - 100}\n", "set the clocks of the nodes"),
        (with_end(ended_utc="2026-11-21T08:59:59Z"), SPAN, "set the clocks of the nodes"),
        (own, None, "does not record when the launch began and ended"),
        (own, f"{BEGAN}\n", "does not record when the launch began and ended"),
    ],
)
def test_records_of_another_launch_are_incorrect(tmp_path, records, span, said, declared):
    left(tmp_path, records(), span)
    found = outcome.assess_launch(LAUNCH, tmp_path)
    assert said in found.reason
    declared.check_case(found.verdict, found.reason)


def test_lines_of_others_are_counted_and_quoted_once():
    launch = SimpleNamespace(partition="mine:cpu", environment="openmpi", program="osu")
    runs = [{FOREIGN: 2, FIRST_FOREIGN: "UCX  WARN  one"}, {FOREIGN: 1, FIRST_FOREIGN: "two"}, {}]
    found = [SimpleNamespace(launch=launch, run=run) for run in runs]
    (line,) = outcome.describe_foreign_lines(found)
    assert line.startswith("mine:cpu, openmpi, osu: 3 lines in the output of 2 launches that the program")
    assert line.endswith("the first: UCX  WARN  one")
