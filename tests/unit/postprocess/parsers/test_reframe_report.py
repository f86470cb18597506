"""ReFrame's report, read for what became of each test."""

import json
from pathlib import Path
from typing import Any

import pytest

from postprocess.parsers.reframe_report import find_blocking_test, find_test_entry, read_report
from site_configs.schedulers.base import Ended, Ending, write_ended
from spack_envs.installation import FAILURE, read_failure, write_failure
from spack_envs.layout import SourceError, SpackEnvironmentError
from tests.support.factories.launch import entry

PLACE = {"system": "local", "partition": "cpu", "environ": "mpich-5_0_2"}


def launched(**changes: Any) -> dict[str, Any]:
    """One test case as ReFrame 4.10 writes it, as far as it is read."""
    return {
        **PLACE,
        "unique_name": "luecke_0",
        "result": "pass",
        "fail_phase": None,
        "fail_reason": None,
        "stagedir": "/stage/luecke",
        "job_stderr": "rfm_job.err",
        "build_stderr": None,
        "fixture": False,
        "time_run": 2.5,
        "time_compile": 9.0,
        "perfvalues": {
            "local:cpu:bcast_8": [1e-6, 1e-6, None, 0.5, "s", "pass"],
            "local:cpu:pingpong@1_8": [9.0, 1.0, None, 0.5, "us", "fail"],  # as plain ReFrame shows it
        },
        "dependencies_actual": [["build_mpicost_1", "local:cpu", "mpich-5_0_2"]],
        **changes,
    }


def builder(**changes: Any) -> dict[str, Any]:
    own = {
        "unique_name": "build_mpicost_1",
        "fixture": True,
        "job_stderr": None,
        "build_stderr": "rfm_build.err",
        "perfvalues": {},
        "dependencies_actual": [],
    }
    return launched(**own | changes)


def report(path: Path, *runs: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"session_info": {}, "runs": [{"testcases": run} for run in runs]}))
    return path


def test_a_test_case_is_read_as_reframe_wrote_it(tmp_path: Path):
    entries = read_report(report(tmp_path / "report.json", [builder(), launched()]))
    build, run = entries
    assert (run.test, run.partition, run.environment) == ("luecke_0", "local:cpu", "mpich-5_0_2")
    assert run.results == {"bcast_8": "pass", "pingpong@1_8": "fail"}
    assert run.values == {"bcast_8": (1e-6, "s"), "pingpong@1_8": (9e-6, "s")}
    assert (run.phase, run.reason, run.fixture) == ("", "", False)
    assert (run.seconds, build.seconds) == (2.5, 9.0)
    assert (run.errors, build.errors) == ("rfm_job.err", "rfm_build.err")
    assert build.fixture
    assert run.needs == (("build_mpicost_1", "local:cpu", "mpich-5_0_2"),)


def test_a_reason_of_many_lines_becomes_one(tmp_path: Path):
    case = launched(result="fail", fail_phase="performance", fail_reason="slow:\n  a\n  b")
    assert "\n" not in read_report(report(tmp_path / "report.json", [case]))[0].reason


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "{", "[]", "7", "null", "{}", '{"runs": 7}', '{"runs": [{}]}'),
        *('{"runs": [{"testcases": [{}]}]}', '{"runs": [{"testcases": ["x"]}]}'),
        *(
            json.dumps({"runs": [{"testcases": [launched(**changes)]}]})
            for changes in ({"perfvalues": {"a:b:c": []}}, {"perfvalues": [1]}, {"time_run": "long"})
        ),
    ],
)
def test_a_report_that_cannot_be_read_is_empty(tmp_path: Path, text: str | None):
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    assert read_report(path) == []


def test_of_several_attempts_the_last_counts(tmp_path: Path):
    runs = [[launched(result="fail", fail_phase="sanity")], [launched()]]
    entries = read_report(report(tmp_path / "report.json", *runs))
    assert find_test_entry(entries, "luecke_0", "local:cpu", "mpich-5_0_2").result == "pass"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_launch_that_is_not_in_the_report_is_not_found(place):
    wanted = ["luecke_0", "local:cpu", "mpich-5_0_2"]
    assert find_test_entry([entry()], *wanted)
    wanted[place] += "1"
    assert find_test_entry([entry()], *wanted) is None


def test_a_launch_whose_program_did_not_build_is_blocked_by_the_build(tmp_path: Path):
    (tmp_path / "rfm_build.err").write_text("make: nothing\nbcast.c:1: error: no semicolon\n")
    failed = builder(result="fail", fail_phase="compile", fail_reason="exit code 2", stagedir=str(tmp_path))
    run = launched(result="fail_deps", job_stderr=None, perfvalues=None)
    entries = read_report(report(tmp_path / "report.json", [failed, run]))
    assert find_blocking_test(entries, entries[1]).reason == (
        "the build failed: exit code 2: bcast.c:1: error: no semicolon "
        f"(all of it: {tmp_path / 'rfm_build.err'})"
    )
    assert not entries[1].ran


@pytest.mark.parametrize(
    ("errors", "output", "told"),
    [
        ("", "[1/3] cc a.c\nFAILED: a.o\n{}\nninja: stopped\n", "a.c:1:1: error: no semicolon"),
        ("", "{}\n-- Incomplete\n", "CMake Error at CMakeLists.txt:16 (find_package):\n  Could NOT find MPI"),
        ("cc: warning: odd\n", "{}\n", "x.c:2: fatal error: mpi.h: No such file"),
        ("", "b.o: in f:\n{}\n", "b.c:(.text+0x5): undefined reference to `g'"),
        ("{}\n", "all well\n", "nothing else"),
    ],
)
def test_a_failed_build_quotes_the_first_error_wherever_it_was_written(errors, output, told, tmp_path):
    (tmp_path / "rfm_build.err").write_text(errors.format(told))
    (tmp_path / "rfm_build.out").write_text(output.format(told))
    changes = {"stagedir": str(tmp_path), "build_stdout": "rfm_build.out", "result": "fail"}
    (failed,) = read_report(report(tmp_path / "report.json", [builder(**changes)]))
    quoted = " ".join(told.split())
    assert failed.build_error.startswith(f": {quoted} (all of it: {tmp_path}/rfm_build.")


@pytest.mark.parametrize(
    ("error", "without"),
    [
        (SourceError("another sentence"), True),
        (SpackEnvironmentError(f"cannot be fetched from {'here ' * 60}(all of it: /log)"), False),
        (None, False),
    ],
)
def test_a_build_says_in_a_file_why_it_failed_and_that_is_told_once_and_whole(tmp_path, error, without: bool):
    (tmp_path / "rfm_build.err").write_text(f"osu: {error}\n")
    if error:
        write_failure(tmp_path, error)
    failed = builder(result="fail", fail_phase="compile", stagedir=str(tmp_path))
    entries = read_report(report(tmp_path / "report.json", [failed, launched()]))
    blocked = find_blocking_test(entries, entries[1])
    assert blocked.without_source is without
    assert not error or blocked.reason == f"the build failed: {error}"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "1", '{"without_source": true}', "\xff"])
def test_what_says_nothing_of_a_source_excuses_no_build(tmp_path: Path, text: str):
    (tmp_path / FAILURE).write_bytes(text.encode("latin-1"))
    assert read_failure(tmp_path) is None


def test_a_build_on_another_partition_blocks_nothing(tmp_path: Path):
    failed = builder(result="fail", fail_phase="compile", partition="gpu")
    entries = read_report(report(tmp_path / "report.json", [failed, launched()]))
    assert find_blocking_test(entries, entries[1]) is None


@pytest.mark.parametrize(
    ("result", "phase", "ran", "sane"),
    [
        *(("pass", "", True, True), ("fail", "performance", True, True)),
        *(("fail", phase, True, False) for phase in ("sanity", "run", "cleanup")),
        *(("fail", phase, False, False) for phase in ("setup", "compile")),
        *((result, "setup", False, False) for result in ("fail_deps", "skip", "abort")),
        *((result, "", False, False) for result in ("xfail", "<unknown>")),
    ],
)
def test_which_results_mean_that_the_program_ran(result, phase, ran, sane):
    said = entry(result=result, phase=phase)
    assert (said.ran, said.sane) == (ran, sane)


@pytest.mark.parametrize(
    ("result", "reason", "expected"),
    [
        ("fail", "job error: [jobid=7] job timed out (60.1s > 60.0s)", True),
        ("fail", "sanity error: crashed: connection timed out", False),
        ("pass", "job timed out", False),
    ],
)
def test_what_counts_as_a_timeout(result, reason, expected):
    assert entry(result=result, reason=reason).timed_out == expected


@pytest.mark.parametrize(("result", "how", "taken"), [("fail", Ending.TAKEN_AWAY, True),
    ("pass", Ending.TAKEN_AWAY, False), ("fail", Ending.NEVER_STARTED, False)])  # fmt: skip
def test_nodes_were_taken_from_a_job_that_failed_by_it(tmp_path: Path, result: str, how: Ending, taken: bool):
    write_ended(tmp_path, Ended(how, "words"))
    assert entry(result=result, directory=str(tmp_path)).taken_away is taken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ""),
        (b"", ""),
        (b"\n \n", ""),
        (b"first\nlast\n\n", ": last"),
        (b"a\x00b\n", ": a\\x00b"),
        (b"x" * 1000, ": " + "x" * 200 + " ..."),
        (b"\xff\xfe\n", ": \ufffd\ufffd"),
    ],
)
def test_the_last_words_of_a_job(tmp_path: Path, text: bytes | None, expected: str):
    if text is not None:
        (tmp_path / "err").write_bytes(text)
    assert entry(directory=str(tmp_path), errors="err").last_words == expected
