"""ReFrame and the scheduler have a say in the verdict of a launch, and never make a bad launch good."""

from pathlib import Path

import pytest

from postprocess.judging import outcome
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.verdict import Verdict
from postprocess.parsers.reframe_report import BlockedTest
from site_configs.schedulers.base import Ended, Ending, write_ended
from tests.support.factories import benchmark, record
from tests.support.factories.launch import CASES, VALUES, entry, leave, planned
from tests.support.faults import Declared, plants


def test_a_whole_launch_with_wrong_data_hands_over_its_records(tmp_path: Path):
    """ReFrame rejects the job, and has asserted the values of the other cases."""
    leave(tmp_path, planned(), record.receive_wrong_data(record.launch(), 2), "1\n")
    values = {name: each for name, each in VALUES.items() if name != CASES[1].variable}
    said = entry(result="fail", phase="performance", values=values)
    found = outcome.determine_outcome(planned(), tmp_path, said)
    assert found.verdict is None
    assert found.records and set(found.records.wrong) == {CASES[1].variable}


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
    leave(tmp_path, planned(), record.launch())
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
    leave(tmp_path, planned(), record.launch())
    others = {name: value for name, value in VALUES.items() if name != VARIABLE}
    values = others if asserted is None else others | {VARIABLE: asserted}
    found = outcome.determine_outcome(planned(), tmp_path, entry(values=values, **changes))
    assert (found.verdict, found.records) == (Verdict.INCORRECT, None)
    what = f"ReFrame asserted {said}, the records say {VALUE:.9g} s: one of them is wrong"
    assert found.reason == f"{VARIABLE}: {what}"
    declared.check_case(found.verdict, found.reason)


def test_the_number_that_reframe_asserted_may_differ_in_its_last_digits(tmp_path: Path):
    leave(tmp_path, planned(), record.launch())
    values = {name: (value * (1 + 1e-12), unit) for name, (value, unit) in VALUES.items()}
    assert outcome.determine_outcome(planned(), tmp_path, entry(values=values)).verdict is None


@plants("stale", "whole records of other times, after ReFrame read them",
        "records of mpicost", "incorrect", 1,
        "ReFrame asserted …, the records say … s: one of them is wrong")  # fmt: skip
def test_records_that_changed_after_reframe_read_them_are_incorrect(tmp_path, declared):
    """Even if they are whole, and agree with themselves."""
    records = record.launch()
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


@pytest.mark.parametrize(
    ("code", "phase", "words"),
    [
        pytest.param("139\n", "sanity", "first\nsegfault at \x1b[31m0\n\n \0", marks=plants(
            "programs", "SIGSEGV, and control characters in the last words", "a job", "crashed", 1,
            "the program ended with exit code 139, SIGSEGV: segfault at \\x1b[31m0")),
        pytest.param(None, "run", "", marks=plants(
            "schedulers", "a job that Slurm does not take", "submission", "crashed", 1,
            "the job ended before the program did: job error: sbatch: invalid partition")),
        pytest.param(None, "sanity",
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T09:00:00 DUE TO TIME LIMIT ***\n"
            "srun: error: n1: task 0: Terminated\n", marks=plants(
            "schedulers", "a job that Slurm ends at its limit", "Slurm", "timeout", 1, "no end within 60 s")),
    ],
)  # fmt: skip
def test_a_launch_without_records_is_named_with_what_its_job_said(tmp_path, code, phase, words, declared):
    leave(tmp_path, planned(), None, code)
    (tmp_path / "err").write_text(words)
    told = {"directory": str(tmp_path), "errors": "err"} if words else {}
    said = entry(result="fail", phase=phase, reason="job error: sbatch: invalid partition", **told)
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


@pytest.mark.parametrize(
    "damage", [lambda records: records.pop(), lambda records: records[0].update(mpi_library="other")]
)
@pytest.mark.parametrize("code", ["0\n", "1\n", None])
def test_no_word_of_reframe_makes_a_bad_launch_good(tmp_path: Path, damage, code: str | None):
    records = record.launch()
    damage(records)
    leave(tmp_path, planned(), records, code)
    found = outcome.determine_outcome(planned(), tmp_path, entry())
    assert found.records is None and found.verdict and found.reason
