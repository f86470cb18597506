"""A question to Slurm that fails costs its own fact, with a remark, and not the site file."""

from __future__ import annotations

import pytest

from site_configs.schedulers.slurm import scheduler as slurm
from tests.support.factories.scheduler import CRAY, answering
from tests.support.faults import Declared, each_of, plants

UNTOLD = {
    "config": plants(
        "schedulers",
        "a configuration that Slurm does not show",
        "`site new`",
        "",
        0,
        "the cluster's name, and whether it keeps accounts, are not known: ",
    ),
    "node": plants(
        "schedulers",
        "nodes of a cloud, which Slurm does not know before they run",
        "`site new`",
        "",
        0,
        "cores that nodes such as nid001008 of partition standard keep for the system are not known",
    ),
    "mpi": plants(
        "schedulers",
        "an `srun` that does not tell the kinds of MPI",
        "`site new`",
        "",
        0,
        "the kinds of MPI that srun can start are not known: ",
    ),
}


@pytest.mark.parametrize("untold", each_of(UNTOLD))
def test_a_fact_that_is_not_told_costs_itself_alone(untold: str, declared: Declared):
    found = slurm.SLURM.read(answering({key: text for key, text in CRAY.items() if key != untold}))
    assert found.queue("standard").hosts
    assert found.accounting  # what is not known is not said to be off
    declared.check((), 0, ["; ".join(found.notes)])
