"""How jobs are asked for and launched: whole nodes, blocks of ranks, and reasons that mean for ever."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from reframe.core.backends import getlauncher

from postprocess import reframe_report
from site_configs import slurm, slurm_backend
from site_configs.slurm_backend import Outage, can_never_run, whole_nodes

HEAD = ['#SBATCH --job-name="rfm"', "#SBATCH --ntasks=9", "#SBATCH --ntasks-per-node=4"]


def test_a_node_that_is_not_filled_is_asked_for_like_the_others():
    lines = whole_nodes(HEAD, "#SBATCH", processes=9, per_node=4)
    assert "#SBATCH --nodes=3" in lines and "#SBATCH --ntasks=12" in lines
    assert "#SBATCH --no-requeue" in lines
    assert not any("--ntasks=9" in line for line in lines)
    assert HEAD[0] in lines and HEAD[2] in lines


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (slurm.SRUN, ["srun"]),
        (slurm.SRUN_PMI2, ["srun", "--mpi=pmi2"]),
        (slurm.SRUN_PMIX, ["srun", "--mpi=pmix"]),
        (slurm.SRUN_CRAY, ["srun", "--mpi=cray_shasta"]),
    ],
)
def test_srun_is_told_the_kind_of_mpi_and_the_layout(name: str, words: list[str]):
    job = SimpleNamespace(num_tasks=9, num_tasks_per_node=4)
    line = getlauncher(name)().command(job)
    assert line[: len(words)] == words
    assert {"--nodes=3", "--ntasks=9", "--distribution=plane=4"} <= set(line)


@pytest.mark.parametrize(
    ("reason", "never"),
    [
        ("PartitionConfig", True),
        ("PartitionNodeLimit", True),
        ("BadConstraints", True),
        ("JobHeldUser, more", True),
        ("QOSMaxNodePerJobLimit", True),
        ("AssocMaxCpuPerJobLimit", True),
        ("QOSMaxJobsPerUserLimit", False),
        ("Resources", False),
        ("Priority", False),
        ("PartitionDown", False),
        ("ReqNodeNotAvail, UnavailableNodes:n2", False),
        ("", False),
    ],
)
def test_reasons_that_do_not_pass_by_themselves(reason: str, never: bool):
    assert can_never_run(reason) is never


def test_an_outage_lasts_from_the_first_question_to_the_next_answer():
    outage = Outage()
    assert [outage.seconds(now) for now in (100.0, 101.0, 130.0)] == [0.0, 1.0, 30.0]
    outage.end()
    assert outage.seconds(200.0) == 0.0


def test_the_report_knows_the_word_of_the_backend():
    assert reframe_report.NEVER_STARTED.startswith(slurm_backend.NEVER_STARTED)
