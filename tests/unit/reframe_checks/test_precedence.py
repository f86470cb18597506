"""What ReFrame itself plans, in dry runs without an MPI: whose variable holds, and what is skipped."""

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.model.options import AS_REFERENCES
from postprocess.model.plan import PlannedLaunch, read_plan
from postprocess.model.reference import Reference
from postprocess.model.routines.taboada import HELD_OUT, TOTALS
from postprocess.model.session import Selection
from postprocess.references import reference_file
from postprocess.runner.reframe import ReframeDriver
from site_configs.schema.reframe_request import write_request
from tests.support.factories.launch import CASES, PLACE, origin_of
from tests.support.paths import ROOT
from tests.support.request import made_for_a_site

SITE = """
from site_configs.common import environment, partition, site
from site_configs.topology.layouts import Layout, Topology

site_configuration = site(
    "local",
    description="two nodes",
    partitions=[
        partition(
            name,
            topology=Topology(cores_per_node=1, nodes=2),
            layouts=[Layout(2, 1)],
            environments=["mpich-5_0_2"],
            **more,
        )
        for name, more in {partitions}.items()
    ],
    environments=[
        environment("mpich-5_0_2", family="mpich", library="MPICH Version: 5.0.2", launcher="srun")
    ],
)
"""


def plan(
    folder: Path,
    *words: str,
    choice: dict | None = None,
    partitions: dict[str, dict] | None = None,
    references: int | None = None,
    tag: str = "nightly",
    text: str = SITE,
) -> list[PlannedLaunch]:
    """The launches that ReFrame plans, of mpicost unless other programs are chosen.

    :param words: further ones of ReFrame's command line
    :param partitions: what is told of each
    :param references: trials that the references of each tell
    """
    partitions = partitions or {"cpu": {}}
    site = folder / "site.py"
    site.write_text(text.replace("{partitions}", repr(partitions)))
    roots = [folder / "references"]
    for name in partitions if references else ():
        known = [Reference(replace(case, partition=name), 1e-6, 0.02, 20) for case in CASES]
        told = origin_of(method={"suite_version": "0.1.0", "trials": references})
        place = reference_file.locate_references(roots[0], *PLACE._replace(partition=name))
        reference_file.write_references(place, known, told)
    own = {"programs": ["mpicost"], "routines": ["pingpong"], **(choice or {})}
    selection = Selection(site, choice=own, tag=tag, only_looking=True)
    reframe = ReframeDriver(ROOT, folder / "home", folder / "session", roots, None)
    write_request(reframe.session, reframe.request(selection))
    done = subprocess.run(
        [*reframe.command(selection, "--dry-run"), *words],
        cwd=ROOT,
        env=reframe.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return read_plan(reframe.session)


def planned(folder: Path, *words: str, **more: Any) -> PlannedLaunch:
    """The only one."""
    (launch,) = plan(folder, *words, **more)
    return launch


NIGHT = {AS_REFERENCES: True}
BY_SITE = {"trials": 31, "time_limit": "77s", "cache": "warm"}
BY_USER = {"trials": 41, "time_limit": "88s", "cache": "flush"}
SETVAR = [f"--setvar=mpicost.{word}" for word in ("trials=51", "time_limit=99s", "cache=warm")]
SETVAR += ["--setvar=links.trials=51"]


def plan_both(folder: Path, *words: str, **more: Any) -> dict[tuple[str, str], PlannedLaunch]:
    """The launches of a night and of links, by check and partition."""
    launches = plan(folder, *words, tag="nightly|links", references=21, **more)
    found = {(launch.test.split()[0], launch.partition.partition(":")[2]): launch for launch in launches}
    assert len(found) == len(launches)
    return found


def test_the_site_holds_before_references(tmp_path: Path):
    found = plan_both(tmp_path, choice=NIGHT, partitions={"cpu": {}, "own": {"defaults": BY_SITE}})
    assert {key: launch.trials for key, launch in found.items()} == {
        ("mpicost", "cpu"): 21,
        ("mpicost", "own"): 31,
        ("links", "cpu"): 21,
        ("links", "own"): 31,
    }
    launch = found["mpicost", "own"]
    assert (launch.job_limit, {case.cache for case in launch.cases}) == (77.0, {"warm"})


@pytest.mark.parametrize(
    ("words", "defaults", "expected"),
    [
        ((), BY_SITE, (41, 88.0, {"flush"})),
        # the value of the default, which else could not be told from nothing
        (SETVAR, BY_SITE | {"cache": "flush"}, (51, 99.0, {"warm"})),
    ],
    ids=["user", "setvar"],
)
def test_setvar_holds_before_the_user_before_the_site(tmp_path, words, defaults, expected):
    found = plan_both(tmp_path, *words, choice=BY_USER, partitions={"cpu": {"defaults": defaults}})
    launch = found["mpicost", "cpu"]
    assert (launch.trials, launch.job_limit, {case.cache for case in launch.cases}) == expected
    assert found["links", "cpu"].trials == expected[0]


def test_a_family_has_trials_and_sizes_of_its_own_and_no_other_check_runs_then(tmp_path: Path):
    choice = {"family": "taboada", AS_REFERENCES: True}
    launch = planned(tmp_path, choice=choice, references=51)  # trials of nights are not the paper's
    assert (launch.test.split()[0].split("_")[0], launch.trials) == ("taboada", 151)
    assert {case.sync for case in launch.cases} == {"barrier"}
    assert [case.bytes for case in launch.cases] == [*TOTALS, *HELD_OUT]
    assert {case.cache for case in launch.cases} == {"warm"}


def test_a_barrier_of_a_family_keeps_its_one_size_whatever_sizes_are_asked_for(tmp_path: Path):
    """mpicost takes no sizes of a barrier: planned ones would be missing, and with them all others."""
    choice = {"family": "taboada", "routines": ["barrier", "bcast"], "sizes": [8, 1024]}
    cases = planned(tmp_path, choice=choice).cases
    found = [(case.routine, case.bytes) for case in cases]
    assert sorted(found) == [("barrier", 0), ("bcast", 8), ("bcast", 1024)]


def test_a_launch_of_a_kernel_may_take_five_times_what_one_core_takes(tmp_path: Path):
    launches = plan(tmp_path, choice={"programs": ["kernels"], "routines": ["series_C"]})
    assert launches
    for launch in launches:
        assert launch.trials * 93 * 5 < launch.job_limit


@pytest.mark.parametrize(("kernel", "seconds"), [("series_C", 93), ("lufact_C_own", 15), ("series_B", 9.3)])
def test_a_run_of_a_kernel_may_take_five_times_what_one_core_takes(kernel, seconds, monkeypatch):
    with made_for_a_site(monkeypatch):
        from reframe_checks.kernels import kernels
    check = SimpleNamespace(all_cases=lambda: [SimpleNamespace(routine=kernel)])
    assert kernels.allowed_trial_seconds(check) > 5 * seconds


def test_languages_are_skipped_for_one_reason_where_none_can_be_started(tmp_path: Path):
    told = {
        "cluster": "needs --site local in a job of one node; languages are compared where ./plumbline is "
        "called",
        "simulated": "what a language adds takes no simulated time",
    }
    launches = plan(
        tmp_path,
        choice={"programs": ["bindings"], "routines": []},
        partitions={"cluster": {"scheduler": "slurm"}, "simulated": {"exact": True}},
        text=SITE.replace("cores_per_node=1", "cores_per_node=2"),
    )
    for name, reason in told.items():
        found = [launch for launch in launches if launch.partition == f"local:{name}"]
        assert {launch.start for launch in found} >= {"c", "rust", "fortran-mpi_f08"}
        assert [case for launch in found for case in launch.cases] == []
        assert {skip.reason for launch in found for skip in launch.skips} == {reason}


def test_caches_of_a_loop_are_warm_whatever_the_site_says_and_links_have_trials_for_two_nodes(tmp_path: Path):
    site = {"cpu": {"defaults": {"cache": "flush"}}}
    found = plan_both(tmp_path, choice={"sync": "loop"}, partitions=site)
    assert {case.variant for case in found["mpicost", "cpu"].cases} == {"warm-loop"}
    assert found["links", "cpu"].trials == 1000
