"""One pass of ReFrame, played by a program that does what a test wants: nothing planned gets lost."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.processes import find_processes
from postprocess.model.plan import locate_plan_file, read_plan, write_launch
from postprocess.model.session import Selection
from postprocess.runner import reframe as reframe_driver
from postprocess.runner import reframe_pass
from postprocess.runner.reframe import ReframeDriver
from site_configs.schema.variables import SESSION
from spack_envs.installation import BuiltBinary, write_program
from tests.support.factories import record
from tests.support.factories.launch import CASES, VALUES, case, leave, planned
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

SITE = Selection(Path("site.py"))
RUN = {
    "system": "local",
    "partition": "cpu",
    "environ": "mpich-5_0_2",
    "unique_name": "luecke_0",
    "result": "pass",
    "stagedir": "/stage",
    "time_run": 2.5,
    "perfvalues": {f"local:cpu:{name}": [*said[:1], 0, None, 1, "s", "pass"] for name, said in VALUES.items()},
    "dependencies_actual": [["build", "local:cpu", "mpich-5_0_2"]],
}
BUILD = RUN | {"unique_name": "build", "fixture": True, "time_compile": 4.0, "perfvalues": {}}
#: What becomes of both where the program does not build.
UNBUILT = [
    BUILD | {"result": "fail", "fail_phase": "compile", "fail_reason": "no compiler"},
    RUN | {"result": "fail_deps", "perfvalues": None},
]


@pytest.fixture
def reframe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReframeDriver:
    """A session whose ReFrame is the program that :func:`play` writes."""
    monkeypatch.setattr(reframe_driver, "START", "played")
    (tmp_path / "source").mkdir()
    return ReframeDriver(tmp_path / "source", tmp_path / "work", tmp_path / "session", [], None)


def play(reframe: ReframeDriver, script: str = "", report: object = None) -> None:
    """Let this script stand for ReFrame; the report is written before it begins."""
    lines = ["import os, subprocess, sys", "from pathlib import Path"]
    if report is not None:
        text = json.dumps({"runs": [{"testcases": report}]})
        lines += [f"Path({str(reframe.report)!r}).write_text({text!r})"]
    (reframe.source / "played.py").write_text("\n".join([*lines, script]))


# The plan.


def test_what_the_checks_planned_is_the_plan(reframe: ReframeDriver):
    write_launch(reframe.session, planned())
    play(reframe, "sys.exit(0 if sys.argv[-1] == '--dry-run' else 1)")
    assert reframe_pass.make_plan(reframe, SITE) == [planned()]


@plants("use", "`--cache evict`", "a simulated machine", "", 2,
        "is simulated… --cache warm")  # fmt: skip
def test_caches_of_a_simulated_machine_are_not_cooled(reframe: ReframeDriver, declared: Declared):
    """It has none: every launch would fail the proof that they got cold."""
    play(reframe)
    write_launch(reframe.session, planned(exact=True, cases=(case(cache="evict"),)))
    with declared.raises(UsageError, match=r"^--cache evict: .*local:cpu is simulated"):
        reframe_pass.make_plan(reframe, SITE)
    write_launch(reframe.session, planned(exact=True, cases=(case(cache="warm"),)))
    assert len(reframe_pass.make_plan(reframe, SITE)) == 1


@plants("use", "a selection that fits no test", "options of a session", "", 2, "matches no case")
@pytest.mark.parametrize("launches", [[], [planned(cases=())]])
def test_a_selection_that_matches_nothing_is_refused(reframe: ReframeDriver, launches, declared):
    for launch in launches:
        write_launch(reframe.session, launch)
    play(reframe)
    with declared.raises(UsageError):
        reframe_pass.make_plan(reframe, SITE)


def test_a_selection_that_matches_nothing_is_named():
    selection = Selection(Path(), environments=["typo"], choice={"processes": [2, 3]})
    found = next(reframe_pass.find_unmatched_parts(selection, []))
    assert found == "the selection (--environment typo --processes 2,3)"


@plants("builds", "a check that does not load, among others", "reframe_checks", "", 2,
        "ReFrame refuses: skipping check_y.py: no module z (all of it: ")  # fmt: skip
def test_a_check_that_does_not_load_is_refused_although_others_planned(reframe, declared):
    write_launch(reframe.session, planned())
    play(reframe, "print('x: WARNING: skipping check_y.py: no module z'); sys.exit(1)")
    with declared.raises(UsageError, match=re.escape(f"(all of it: {reframe.log})")):
        reframe_pass.make_plan(reframe, SITE)
    assert "skipping check_y.py" in reframe.log.read_text()


@plants("builds", "a check that would run and plans nothing", "reframe_checks", "", 2,
        ": plans no case, so its failure would go unseen; ")  # fmt: skip
def test_a_test_that_plans_no_case_is_refused(reframe: ReframeDriver, declared: Declared):
    """It could fail, and no verdict would tell."""
    write_launch(reframe.session, planned())
    write_launch(reframe.session, planned(test="empty", cases=()))
    play(reframe, report=[BUILD, RUN])
    assert planned() in reframe_pass.make_plan(reframe, SITE)
    for name in ("empty", "stranger"):
        play(reframe, report=[BUILD, RUN, RUN | {"unique_name": name}])
        with declared.raises(UsageError, match=f"^{name}: plans no case, so its failure "):
            reframe_pass.make_plan(reframe, SITE)


@pytest.mark.parametrize(
    ("selection", "lost"),
    [
        (Selection(Path(), environments=["mpich-5_0_2"]), []),
        (Selection(Path(), environments=["mpich-5_0_2", "typo"]), ["--environment typo"]),
        (Selection(Path(), choice={"routines": ["bcast", "barrier"]}), []),
        (Selection(Path(), choice={"routines": ["bcast", "typo"]}), ["--routine typo"]),
        (Selection(Path(), choice={"processes": [2, 3]}), ["--processes 3"]),
        (Selection(Path(), choice={"trials": 5, "sizes": [8]}), []),
        (Selection(Path(), choice={"sizes": [8, 24]}), ["--bytes 24"]),
        (Selection(Path(), choice={"sizes": [0]}), []),
        (Selection(Path(), choice={"sizes": [12]}), ["--bytes 12"]),
        (Selection(Path(), choice={"programs": ["mpicost"]}), []),
        (Selection(Path(), choice={"programs": ["mpicost", "imb"]}), ["--program imb"]),
        (Selection(Path(), set_env={"mpich-5_0_2": {"A": "b"}}), []),
        (Selection(Path(), set_env={"typo": {"A": "b"}}), ["--set-env typo"]),
    ],
)
def test_no_word_of_a_selection_is_lost(selection: Selection, lost: list[str]):
    assert list(reframe_pass.find_unmatched_parts(selection, [planned()])) == lost


def test_looking_at_a_plan_leaves_no_session_unless_it_fails(reframe: ReframeDriver):
    write_launch(reframe.session, planned())
    play(reframe)
    assert reframe_pass.preview_plan(reframe, SITE) == [planned()]
    assert not reframe.session.exists()
    play(reframe, "sys.exit(1)")
    with pytest.raises(UsageError):
        reframe_pass.preview_plan(reframe, SITE)
    assert reframe.log.exists()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([], "no output"),
        (["", " "], "no output"),
        (["one", "two", ""], "two"),
        (["x", "ERROR: first", "ERROR: second", "y"], "first"),
        (["site.py: WARNING: odd"], "odd"),
        (["  * Reason: no launcher", "the end"], "no launcher"),
    ],
)
def test_what_reframe_complains_of(output: list[str], expected: str):
    assert reframe_pass.explain_end(output, 1) == f"ReFrame refuses: {expected}"


def test_a_reframe_that_was_killed_is_not_said_to_refuse():
    said = reframe_pass.explain_end(["the last line before"], -signal.SIGKILL)
    assert said == "ReFrame was ended by signal 9 (Killed)"


@plants("environment", "one core, by `taskset -c 0`", "a session", "", 2,
        "one core is too few for any process count of the ladder: choose --processes")  # fmt: skip
def test_what_a_check_of_ours_says_stands_alone(declared: Declared):
    """``taskset -c 0``: the sentence tells what to do, and what ReFrame puts in front of it does not."""
    own = "one core is too few for any process count of the ladder: choose --processes"
    head = "ERROR: run session stopped: warning as error: skipping test file 'imb.py'"
    said = reframe_pass.extract_complaint([f"{head}: value error: {own}: "])
    assert said == own
    declared.check_error(UsageError(said))


# The run.


def test_a_launch_that_went_well_is_finished_with_all_there_is(reframe: ReframeDriver, progress):
    leave(reframe.session, planned(), record.launch())
    write_program(reframe.work, BuiltBinary("mpich-5_0_2", "mpicost", "/x", "mpicost@0.1.0/abc"))
    play(reframe, report=[BUILD, RUN])
    done = reframe_pass.run_plan(reframe, SITE, [planned()], progress)
    (each,) = done.finished
    assert each.outcome.verdict is None
    assert (each.seconds, each.directory, each.spec) == (2.5, "/stage", "mpicost@0.1.0/abc")
    assert each.asserted == {case.variable: "pass" for case in CASES}
    assert done.build_seconds == 0.0  # ReFrame printed no line of it
    assert progress.notes == []


def test_the_plan_of_a_dry_run_is_seen_on_the_disk_before_anything_runs(reframe, progress, monkeypatch):
    write_launch(reframe.session, planned(), durable=False)
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    play(reframe, report=[RUN])
    reframe_pass.run_plan(reframe, SITE, [planned()], progress)
    assert synced[0] == str(locate_plan_file(reframe.session, planned()).resolve())


def test_what_reframe_does_not_report_is_incomplete(reframe: ReframeDriver, progress):
    launches = [planned(), planned(test="luecke_1"), planned(environment="openmpi-5_0_11")]
    for launch in launches:
        leave(reframe.session, launch, record.launch())
    play(reframe, report=[RUN])
    outcomes = [each.outcome for each in reframe_pass.run_plan(reframe, SITE, launches, progress).finished]
    assert [str(outcome.verdict or "") for outcome in outcomes] == ["", "incomplete", "incomplete"]
    assert outcomes[1].reason == "planned, but ReFrame did not run it"


@pytest.mark.parametrize(
    "script", ["print('ERROR: out of memory'); sys.exit(1)", "os.kill(os.getpid(), 9)", ""]
)
def test_a_reframe_that_leaves_no_report_fails_every_launch(reframe, progress, script):
    leave(reframe.session, planned(), record.launch())
    reframe.report.parent.mkdir(parents=True)
    reframe.report.write_text(json.dumps({"runs": [{"testcases": [RUN]}]}))  # of the dry run
    play(reframe, script)
    (each,) = reframe_pass.run_plan(reframe, SITE, [planned()], progress).finished
    assert str(each.outcome.verdict) == "incomplete"
    assert [note for note in progress.notes if note.startswith("ReFrame left no report: ")]


def test_a_launch_whose_program_did_not_build_says_so_and_others_run(reframe, progress):
    name = "openmpi-5_0_11"
    cases = tuple(case(each.routine, each.bytes, each.peer, environment=name) for each in CASES)
    other = planned(environment=name, cases=cases, library="Open MPI v5.0.11")
    leave(reframe.session, planned(), None, None)
    leave(reframe.session, other, record.launch(mpi_library="Open MPI v5.0.11"))
    there = {"environ": name, "dependencies_actual": [["build", "local:cpu", name]]}
    play(reframe, report=[*UNBUILT, BUILD | there, RUN | there])
    outcomes = [
        launch.outcome for launch in reframe_pass.run_plan(reframe, SITE, [planned(), other], progress).finished
    ]
    assert str(outcomes[0].verdict) == "incomplete"
    assert outcomes[0].reason.startswith("the build failed: no compiler")
    assert outcomes[1].verdict is None


def checks_plan(reframe: ReframeDriver, *actions: str) -> str:
    """A script for ReFrame whose checks plan a launch in the session they are told, by these actions alone."""
    text = locate_plan_file(reframe.session, planned()).read_text()
    return f"""
Path({str(reframe.work)!r}).mkdir(exist_ok=True)
with Path({str(reframe.work)!r}, "actions").open("a") as log:
    print(sys.argv[-1], file=log)
path = Path(os.environ["{SESSION}"], "plan", "{planned().name}.json")
path.unlink(missing_ok=True)
if sys.argv[-1] in {actions!r}:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text({text!r})
"""


def actions(reframe: ReframeDriver) -> list[str]:
    return (reframe.work / "actions").read_text().split()


def test_what_runs_again_is_planned_by_the_run_itself(reframe: ReframeDriver, progress):
    leave(reframe.session, planned(), record.launch())
    play(reframe, checks_plan(reframe, "--run"), report=[BUILD, RUN])
    launches, done = reframe_pass.run_again(reframe, SITE, progress)
    assert launches == [planned()]
    assert [launch.outcome.verdict for launch in done.finished] == [None]
    assert actions(reframe) == ["--run"]


def test_what_came_to_no_plan_when_it_ran_again_is_planned_by_a_dry_run(reframe, progress):
    """As where its program was not built; of that, the run's own stage directory tells."""
    leave(reframe.session, planned(), None, None)
    there = str(reframe.session / "reframe" / "report.json")
    dry = json.dumps({"runs": [{"testcases": [RUN]}]})
    script = (
        checks_plan(reframe, "--dry-run")
        + f"""
report = Path(sys.argv[sys.argv.index("--report-file") + 1])
if sys.argv[-1] == "--dry-run":
    assert str(report) != {there!r}
    report.write_text({dry!r})
"""
    )
    play(reframe, script, report=UNBUILT)
    launches, done = reframe_pass.run_again(reframe, SITE, progress)
    assert launches == read_plan(reframe.session) == [planned()]
    (each,) = done.finished
    assert str(each.outcome.verdict) == "incomplete"
    assert each.outcome.reason.startswith("the build failed: no compiler")
    assert actions(reframe) == ["--run", "--dry-run"]


def test_a_reframe_that_leaves_no_report_when_it_runs_again_fails_every_launch(reframe, progress):
    leave(reframe.session, planned(), record.launch())
    play(reframe, checks_plan(reframe, "--run", "--dry-run"))
    launches, done = reframe_pass.run_again(reframe, SITE, progress)
    assert launches == [planned()]
    assert [str(launch.outcome.verdict) for launch in done.finished] == ["incomplete"]
    assert actions(reframe) == ["--run", "--dry-run"]


def test_a_process_that_was_left_behind_is_ended_and_noted(reframe: ReframeDriver, progress):
    quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
    play(reframe, f"subprocess.Popen(['sleep', '60'], start_new_session=True, {quiet})", report=[])
    reframe_pass.run_plan(reframe, SITE, [], progress)
    assert "ended a process that was left behind: sleep" in progress.notes
    assert find_processes(SESSION, str(reframe.session)) == {}


def test_a_pass_that_is_interrupted_has_ended_before_its_jobs_are_cancelled(reframe, progress, monkeypatch):
    """It would send more of them."""
    told: list[str] = []

    def interrupt(line: str, _: object) -> None:
        told.append(line)
        raise KeyboardInterrupt

    def cancel(*_: object) -> None:
        assert not Path("/proc", *told).exists()

    monkeypatch.setattr(reframe_pass, "show_progress_line", interrupt)
    monkeypatch.setattr(reframe_pass, "cancel_jobs", cancel)
    play(reframe, "import time; print(os.getpid(), flush=True); time.sleep(60)")
    with pytest.raises(KeyboardInterrupt):
        reframe_pass.run_plan(reframe, SITE, [], progress)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_the_driver_ends_reframe_and_its_jobs_end_too(reframe, number):
    """The driver is a process of its own here; it gets a signal while a job runs."""
    script = """
import signal
signal.signal(signal.SIGTERM, lambda *_: job.kill() or sys.exit())
job = subprocess.Popen(["sleep", "60"])
print("[ RUN      ]", os.getpid(), job.pid, flush=True)
job.wait()
"""
    play(reframe, script)
    driver = f"""
import signal, sys
from pathlib import Path
from postprocess.runner import reframe as reframe_driver
from postprocess.runner.reframe_pass import run_plan
from postprocess.base.progress import Progress
from postprocess.runner.reframe import ReframeDriver, Selection
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
reframe_driver.START = "played"
class Told(Progress):
    def now(self, text):
        print(text, flush=True)
run_plan(ReframeDriver(*map(Path, {list(map(str, (reframe.source, reframe.work, reframe.session)))}), [], None),
         Selection(Path("site.py")), [], Told())
"""
    process = subprocess.Popen([sys.executable, "-c", driver], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    running = [Path("/proc", word) for word in process.stdout.readline().split()]
    assert [path.exists() for path in running] == [True, True]
    process.send_signal(number)
    process.communicate()
    assert process.returncode in (143, -signal.SIGKILL)
    deadline = time.monotonic() + 30.0
    while any(path.exists() for path in running) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [path.exists() for path in running] == [False, False]


# What is said meanwhile.


def test_the_start_and_the_end_of_a_test_are_passed_on(reframe: ReframeDriver, progress):
    name = "luecke %layout=2x2 %.repeat_no=0 /6238cc7a @local:cpu+mpich-5_0_2"
    lines = [f"[ RUN      ] {name}", f"[     FAIL ] ( 1/24) {name}", "noise", "[ READY    ] x"]
    play(reframe, f"print({chr(10).join(lines)!r})", report=[RUN])
    reframe_pass.run_plan(reframe, SITE, [], progress)
    shown = progress.console.file.getvalue().splitlines()
    assert not any("fail" in line.lower() for line in shown)  # nothing is judged yet
    assert not any("noise" in line or "READY" in line for line in shown)


def test_builds_take_the_time_in_which_nothing_else_runs():
    """However many run beside each other."""
    clock = reframe_pass.BuildClock()
    one, two = ("build_mpicost ~local:cpu+a /1 @local:cpu+a", "build_mpicost ~local:cpu+b /2 @local:cpu+b")
    launch = "luecke %layout=2x2 %.repeat_no=0 /3 @local:cpu+a"
    for now, line in [
        (1.0, f"[ RUN      ] {one}"),
        (2.0, f"[ RUN      ] {two}"),
        (5.0, f"[       OK ] ( 1/ 3) {one}"),
        (6.0, f"[ RUN      ] {launch}"),
        (8.0, f"[       OK ] ( 2/ 3) {two}"),
        (9.0, f"[     FAIL ] ( 3/ 3) {launch}"),
    ]:
        clock.read(line, now)
    assert clock.seconds == 5.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("luecke %layout=16x8 %.repeat_no=4 /62 @s:p+a", "a, mpicost, 16x8 processes, launch 5"),
        ("build_mpicost ~local:cpu+mpich /12345678 @local:cpu+mpich", "mpich, build_mpicost"),
        ("something else", "something else"),
        ("", ""),
    ],
)
def test_the_name_of_a_test_as_people_say_it(name: str, expected: str):
    assert reframe_pass.shorten_test_name(name) == expected
