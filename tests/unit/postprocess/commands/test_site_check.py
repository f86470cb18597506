"""``site check``: what is wrong, with file, line, key and fix; where nothing is, what a night costs."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, size
from postprocess.base.progress import Progress
from postprocess.commands import site_check
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import CONTROLS, ROUTINES
from postprocess.runner.reframe_pass import NoCaseSelected
from site_configs.mpi.login_node import LoginMpis
from site_configs.programs.program import PROGRAMS
from site_configs.schedulers.base import RefusedOption, UsableNodes
from site_configs.schedulers.slurm import SLURM
from site_configs.validation import rules
from site_configs.validation.reading import SiteReading
from site_configs.validation.rules import LocalMachine
from site_configs.validation.site_files import read_site
from tests.support.factories.launch import CASES, case, planned, write_references
from tests.support.factories.scheduler import CRAY, answering
from tests.support.factories.site import MPICH, OPENMPI, PLAIN, slurm, text_of
from tests.support.plumbline_runner import unwrap

TEXT = text_of(slurm(CRAY, OPENMPI))
HERE = LocalMachine(16, PLAIN.modules, SLURM.read(answering(CRAY)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound site file of a Cray."""
    path = tmp_path / "mine.py"
    path.write_text(TEXT)
    return path


def said(progress: Progress) -> list[str]:
    return unwrap(progress.console.file.getvalue())


def launch(processes: int, per_node: int, **changes) -> PlannedLaunch:
    """A launch of this layout: two cases of ten trials."""
    layout = {"processes": processes, "per_node": per_node}
    cases = (case(**layout), case(size=80, **layout))
    return planned(trials=10, cases=cases, **changes)


# Costs.


def test_a_part_of_a_node_costs_all_of_it():
    found = site_check.estimate_night_cost([launch(4, 4), launch(5, 4), launch(3, 1)], {})
    each = 1 + 2 * 10 * 0.001  # seconds, by rule of thumb
    assert found == site_check.NightCost(3, 6, 3, pytest.approx(3 * each), pytest.approx(6 * each))
    assert found.words == ("3", "6", "3", "3.1 s", "0.00")


def test_a_simulated_machine_costs_the_node_on_which_it_is_simulated():
    one = site_check.estimate_night_cost([launch(128, 1, exact=True)], {})
    assert (one.nodes, one.node_seconds) == (128, one.seconds)


def test_what_the_first_night_costs_more_is_told(work, progress):
    """Launches of a layout alone, as they stand in the code, tell nobody when the night ends."""
    night = [launch(4, 4, number=number) for number in (1, 2)] + [launch(8, 4)]
    site_check.show_costs(work, night, [], progress)
    each = 1 + 2 * 10 * 0.001  # seconds, by rule of thumb
    number = PROGRAMS["mpicost"].launches
    seconds, hours = duration(2 * number * each), 3 * number * each / 3600
    assert max(map(len, progress.console.file.getvalue().splitlines())) <= 80
    assert said(progress)[-1] == (
        f"a night without references calibrates first, {2 * number} launches more: about {seconds} and "
        f"{hours:.2f} node-hours"
    )


def test_what_was_measured_before_is_better_than_a_rule():
    launches = [launch(4, 4), launch(5, 4)]
    known = {(("local:cpu", "mpich-5_0_2", "mpicost", 4, 4), 2, "evict"): 3600.0}
    assert site_check.estimate_night_cost(launches[:1], known).node_seconds == 3600
    rule = "1 job roughly, 1 s a start, 1 ms a trial, 0.03 s a size, 2 GB/s"
    rest = "whole nodes, no waiting in a queue"
    expected = f"estimated: 1 job as long as the last time; {rule}; {rest}"
    assert site_check.describe_estimate(launches, known) == expected
    assert site_check.describe_estimate(launches[1:], known) == f"estimated: {rule}; {rest}"
    found = site_check.describe_estimate(launches[:1], known)
    assert found == f"estimated: 1 job as long as the last time; {rest}"


@pytest.mark.parametrize("whose", ["time_limit", "job_limit"])
def test_a_launch_that_its_queue_would_end_is_a_fault(work, path, whose):
    """A job of several starts may last longer than each of them."""
    reading = read_site(work, path)
    limit = HERE.scheduler.queue("standard").seconds
    place = {"partition": "mine:standard", whose: limit + 1}
    text = f"partition 'standard': a job of 4 processes, 4 per node asks for {duration(limit)}"
    found = site_check.find_too_long_launches(reading, [launch(2, 2), launch(4, 4, **place)], HERE.scheduler)
    assert [line.partition(", and")[0] for line in found] == [text]
    assert f"its queue ends jobs after {duration(limit)}; name a queue for longer" in found[0]
    place[whose] = limit
    assert site_check.find_too_long_launches(reading, [launch(4, 4, **place)], HERE.scheduler) == []
    assert site_check.find_too_long_launches(reading, [launch(4, 4, **place, test="x")], None) == []


# What a night leaves out.


PARTS = [{"name": "standard", "environs": ["a", "b"], "extras": {"defaults": {}}}]
TABLES = [{"bcast": [8, 80], "barrier": [0]}, {"tournament": [8]}]


def reading_of(**defaults) -> SiteReading:
    """A site of one partition with two environments."""
    parts = [{**PARTS[0], "extras": {"defaults": defaults}}]
    return SiteReading(configuration={"systems": [{"name": "mine", "partitions": parts}]})


def night_with(*environments: str) -> list[PlannedLaunch]:
    return [launch(4, 4, partition="mine:standard", environment=environment) for environment in environments]


def test_a_night_that_measures_nothing_is_wrong():
    nothing = site_check.DryRun([], night_with("a", "b"), TABLES)
    (line,) = site_check.find_unmeasured_routines(reading_of(), nothing)
    assert line.startswith("a night on it measures nothing; ")
    (line,) = site_check.find_unmeasured_routines(reading_of(), site_check.DryRun(night_with("b"), [], TABLES))
    assert line.startswith("partition 'standard': a night measures nothing with a; ")
    assert (
        site_check.find_unmeasured_routines(reading_of(), site_check.DryRun(night_with("a", "b"), [], TABLES))
        == []
    )


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        *(("bcats", "did you mean bcast?"), ("bcast:81", "did you mean bcast:8?")),
        *(("scan", "choose from barrier, bcast, tournament"), ("tournament", ""), ("bcast:80", "")),
        ("barrier", ""),
    ],
)
def test_a_limit_of_what_no_check_measures_is_wrong(key: str, fix: str):
    reading, whole = reading_of(left_out_above={key: 2}), site_check.DryRun(night_with("a", "b"), [], TABLES)
    found = site_check.find_unmeasured_routines(reading, whole)
    what = f"partition 'standard': defaults: left_out_above: {key!r}: no check measures it; {fix}"
    assert found == ([what] if fix else [])


def test_what_a_night_leaves_out_is_said():
    limits = {"scan_sum": 64, "alltoall:100000": 4, "scan_min": 16, "scan_max": 16, "barrier": 1}
    part = {"name": "torus", "extras": {"defaults": {"left_out_above": limits}}}
    assert site_check.describe_limits(part) == (
        "torus: a night leaves out above 1 process barrier; above 4 processes alltoall of "
        f"{size(100_000)}; above 16 processes scan_max, scan_min; above 64 processes scan_sum"
    )
    assert site_check.describe_limits(PARTS[0]) == ""


# The command.


def test_every_fault_is_told_with_file_and_line(work, path, progress):
    text = TEXT.replace("max_jobs=", "jobs=").replace("cores_per_node=128", "cores_per_node=0")
    path.write_text(text)
    assert site_check.check_site(work, str(path), progress) == 1
    *faults, last = said(progress)
    numbers = [1 + TEXT[: TEXT.index(word)].count("\n") for word in ("partition(\n", "Topology(\n")]
    assert faults[0].startswith(f"{path}:{numbers[0]}: partition 'standard': jobs: is not known; ")
    assert faults[1].startswith(f"{path}:{numbers[1]}: Topology: cores_per_node: 0: write a whole number")
    assert last == f"{path}: 2 wrong"


def test_on_another_host_it_is_said_what_is_not_looked_at(work, path, progress):
    reading = read_site(work, path)
    assert site_check.find_file_problems(reading, path, progress) == ([], None)
    assert said(progress)[0].startswith("note: this host is none of login\\d+ (hostnames), so modules")
    assert len(said(progress)) == 1


def test_on_its_host_the_machine_is_asked(work, path, progress, monkeypatch):
    here = replace(HERE, scheduler=None)
    monkeypatch.setattr(rules, "inspect_machine", lambda _: here)
    path.write_text(TEXT.replace("login\\\\d+", ".*"))
    found, here = site_check.find_file_problems(read_site(work, path), path, progress)
    assert here and here.scheduler is None and said(progress) == []
    assert len(found) == 1 and "no scheduler is on this machine's search path" in found[0]


def test_what_reframe_refuses_is_a_fault(work, path, progress, monkeypatch):
    def refuse(*_):
        raise UsageError("ReFrame refuses: that")

    monkeypatch.setattr(site_check, "make_plan", refuse)
    assert site_check.check_site(work, str(path), progress) == 1
    assert said(progress)[-2:] == [f"{path}: ReFrame refuses: that", f"{path}: 1 wrong"]


def test_a_launch_that_never_runs_makes_a_site_wrong(work, path, progress, monkeypatch):
    own = launch(4, 4, partition="mine:standard", environment="openmpi-5_0_3", time_limit=1e9)
    monkeypatch.setattr(rules, "inspect_machine", lambda _: HERE)
    monkeypatch.setattr(rules, "check_wrapper", lambda *_: ())
    monkeypatch.setattr(rules, "check_prefix", lambda *_: ())
    monkeypatch.setattr(site_check, "dry_run_site", lambda *_: site_check.DryRun([own], [], []))
    path.write_text(TEXT.replace("login\\\\d+", ".*"))
    assert site_check.check_site(work, str(path), progress) == 1
    assert "its queue ends jobs after" in said(progress)[-2]
    assert said(progress)[-1] == f"{path}: 1 wrong"


# With ReFrame.


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A sound site file of this machine, with one MPI that nobody starts."""
    path = tmp_path / "own.py"
    local = text_of(replace(PLAIN, mpis=LoginMpis((MPICH,), ())))
    path.write_text(local.replace("cores_per_node=16", "cores_per_node=2"))
    return path


def test_a_dry_run_leaves_no_session(work, own, progress):
    trial = site_check.dry_run_site(work, own)
    assert trial.night and trial.tables[0]["bcast"]
    assert list(work.sessions.iterdir()) == []


def test_a_dry_run_of_no_case_is_wrong(work, own, progress):
    nightly = [routine.name for routine in ROUTINES if not routine.on_request]
    limits = {"left_out_above": dict.fromkeys([*nightly, *CONTROLS], 1)}
    own.write_text(own.read_text().replace("max_jobs=1,", f"max_jobs=1, defaults={limits},"))
    assert site_check.check_site(work, str(own), progress) == 1
    what = "left_out_above: leaves nothing of mpicost"
    assert what in said(progress)[-2] and "with mpich-5_0_2; leave less out" in said(progress)[-2]
    assert list(work.sessions.iterdir()) == []


def test_a_dry_run_that_matches_no_case_is_one_of_nothing(work, own, monkeypatch):
    def nothing(reframe, _):
        reframe.report.parent.mkdir()
        reframe.report.write_text('{"runs": [{"testcases": []}]}')
        raise NoCaseSelected("the selection matches no case")

    monkeypatch.setattr(site_check, "make_plan", nothing)
    monkeypatch.setattr(site_check, "read_report", lambda _: [])
    assert site_check.dry_run_site(work, own) == site_check.DryRun([], [], [])


def test_a_site_that_reframe_refuses_leaves_a_log_and_no_session(work, own, progress):
    refuse = "if 'PLUMBLINE_SESSION' in os.environ: raise ValueError('not tonight')\n"
    own.write_text(f"import os\n{refuse}{own.read_text()}")
    assert site_check.check_site(work, str(own), progress) == 1
    log = work.root / site_check.LOG
    assert said(progress)[-2].endswith(f"(all of it: {log})")
    assert "not tonight" in log.read_text()
    assert list(work.sessions.iterdir()) == []


def test_references_of_what_nothing_measures_are_named(tmp_path: Path):
    path = write_references(tmp_path)
    assert site_check.find_unmeasured_references([tmp_path], [planned()]) == []
    (line,) = site_check.find_unmeasured_references([tmp_path], [planned(cases=CASES[1:])])
    assert line.startswith(f"{path}: 1 case in it that no check") and CASES[0].key in line
    other = planned(environment="openmpi-5_0_11", cases=(case(environment="openmpi-5_0_11"),))
    (line,) = site_check.find_unmeasured_references([tmp_path], [other])
    assert line.startswith(f"{path}: mpich-5_0_2 is not on local:cpu any more")


@pytest.mark.parametrize(
    ("usable", "told"),
    [
        (
            UsableNodes(3, "n3 (drained: bad cables)"),
            "3 nodes can be used; a night skips what needs more: n3 (drain",
        ),
        (UsableNodes(4, ""), ""),
        (None, ""),
    ],
)
def test_nodes_that_are_away_are_told(usable: UsableNodes | None, told: str):
    scheduler = SimpleNamespace(batch=True, count_usable_nodes=lambda access: usable)
    said = site_check.describe_unusable_nodes({"name": "work"}, scheduler)
    assert told in said and bool(said) == bool(told)
    assert site_check.describe_unusable_nodes({"name": "work"}, None) == ""


def test_a_job_that_is_refused_as_a_whole_is_told():
    refused = RefusedOption("", "sbatch: no account")
    asked: list[list[str]] = []
    scheduler = SimpleNamespace(
        batch=True, find_refused_options=lambda access: iter(asked.append(access) or [refused])
    )
    here = LocalMachine(16, PLAIN.modules, scheduler)
    work = {"name": "work", "access": ["--a", "--b"]}
    assert here.find_refused_options(["--a", "--b"]) == [refused]  # as for the faults of the file
    said = site_check.describe_refused_jobs(work, here)
    assert asked == [["--a", "--b"]]  # sbatch may take seconds
    assert said == "partition work: a job with the options in access (--a --b) is refused: sbatch: no account"
    assert site_check.describe_refused_jobs({"name": "work"}, None) == ""
