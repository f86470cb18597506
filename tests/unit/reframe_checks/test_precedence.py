"""What ReFrame itself plans, in dry runs without an MPI: whose variable holds, and what is skipped."""

import subprocess
from pathlib import Path
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

SITE = """
from site_configs.common import environment, partition, site
from site_configs.topology.layouts import Layout, Topology

site_configuration = site(
    "local",
    description="two nodes",
    partitions=[
        partition(
            "cpu",
            topology=Topology(cores_per_node=1, nodes=2),
            layouts=[Layout(2, 1)],
            environments=["mpich-5_0_2"],
            defaults={defaults},
        )
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
    defaults: dict | None = None,
    references: int | None = None,
    tag: str = "nightly",
    text: str = SITE,
) -> list[PlannedLaunch]:
    """The launches that ReFrame plans, of mpicost unless other programs are chosen.

    :param words: further ones of ReFrame's command line
    :param references: trials that the references tell
    """
    site = folder / "site.py"
    site.write_text(text.replace("{defaults}", repr(defaults or {})))
    roots = [folder / "references"]
    if references:
        known = [Reference(each, 1e-6, 0.02, 20) for each in CASES]
        told = origin_of(method={"suite_version": "0.1.0", "trials": references})
        reference_file.write_references(reference_file.locate_references(roots[0], *PLACE), known, told)
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


@pytest.mark.parametrize(
    ("words", "choice", "defaults", "expected"),
    [
        ((), NIGHT, BY_SITE, (31, 77.0, {"warm"})),
        ((), BY_USER, BY_SITE, (41, 88.0, {"flush"})),
        # the value of the default, which else could not be told from nothing
        (SETVAR, BY_USER, BY_SITE | {"cache": "flush"}, (51, 99.0, {"warm"})),
    ],
    ids=["site", "user", "setvar"],
)
def test_setvar_holds_before_the_user_before_the_site_before_references(
    tmp_path, words, choice, defaults, expected
):
    launch = planned(tmp_path, *words, choice=choice, defaults=defaults, references=21)
    assert (launch.trials, launch.job_limit, {each.cache for each in launch.cases}) == expected


def test_a_night_has_the_trials_of_its_references(tmp_path: Path):
    assert planned(tmp_path, choice=NIGHT, references=21).trials == 21


@pytest.mark.parametrize(
    ("words", "choice", "defaults", "trials"),
    [
        ((), {}, {}, 1000),  # as many as two nodes need
        ((), {}, {"trials": 31}, 31),
        ((), {"trials": 41}, {"trials": 31}, 41),
        (("--setvar=links.trials=51",), {"trials": 41}, {"trials": 31}, 51),
    ],
)
def test_the_trials_of_links_follow_the_same_order(tmp_path, words, choice, defaults, trials):
    launch = planned(tmp_path, *words, choice=choice, defaults=defaults, tag="links")
    assert launch.trials == trials


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


@pytest.mark.parametrize(("kernel", "seconds"), [("series_C", 93), ("lufact_C_own", 15), ("series_B", 9.3)])
def test_a_launch_of_a_kernel_may_take_five_times_what_one_core_takes(kernel, seconds, tmp_path: Path):
    launches = plan(tmp_path, choice={"programs": ["kernels"], "routines": [kernel]})
    assert launches
    for launch in launches:
        assert launch.trials * seconds * 5 < launch.job_limit


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            'scheduler="slurm"',
            "needs --site local in a job of one node; languages are compared where ./plumbline is called",
        ),
        ("exact=True", "what a language adds takes no simulated time"),
    ],
    ids=["cluster", "simulated"],
)
def test_all_languages_are_skipped_for_one_reason_where_none_can_be_started(more, reason, tmp_path: Path):
    text = SITE.replace("cores_per_node=1", "cores_per_node=2").replace('"cpu",\n', f'"cpu",\n{more},\n')
    launches = plan(tmp_path, choice={"programs": ["bindings"], "routines": []}, text=text)
    assert {each.start for each in launches} >= {"c", "rust", "fortran-mpi_f08"}
    assert [case for each in launches for case in each.cases] == []
    assert {skip.reason for each in launches for skip in each.skips} == {reason}


def test_caches_of_a_loop_are_warm_whatever_the_site_says(tmp_path: Path):
    launch = planned(tmp_path, choice={"sync": "loop"}, defaults={"cache": "flush"})
    assert {case.variant for case in launch.cases} == {"warm-loop"}
