"""Who has the last word on a variable of a check, as ReFrame itself plans it: dry runs, without an MPI."""

import subprocess
from pathlib import Path

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


def planned(
    folder: Path,
    *words: str,
    choice: dict | None = None,
    defaults: dict | None = None,
    references: int | None = None,
    tag: str = "nightly",
) -> PlannedLaunch:
    """The launch of mpicost that ReFrame plans.

    :param words: further ones of ReFrame's command line
    :param references: trials that the references tell
    """
    site = folder / "site.py"
    site.write_text(SITE.replace("{defaults}", repr(defaults or {})))
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
    (launch,) = read_plan(reframe.session)
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


def test_caches_of_a_loop_are_warm_whatever_the_site_says(tmp_path: Path):
    launch = planned(tmp_path, choice={"sync": "loop"}, defaults={"cache": "flush"})
    assert {case.variant for case in launch.cases} == {"warm-loop"}
