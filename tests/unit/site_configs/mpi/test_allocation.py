"""A launch on this machine knows nothing of the job of a batch system that Plumbline was started in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from site_configs.common import Topology, environment, partition, site
from site_configs.mpi.allocation import NAMES, PREFIXES, UNSET, strip_allocation
from site_configs.mpi.family import Mpi
from site_configs.mpi.identify import identify_wrapper
from site_configs.mpi.imb_wheel import try_imb
from site_configs.mpi.probe import Candidate, probe_wrapper
from tests.support.fake_mpis import COMPILES, MPICH, install, says, script
from tests.support.interactive_job import IN_A_JOB

REFUSES = "env | grep -E '^(SLURM|PBS|LSB)_|^PE_HOST|BOOTSTRAP' && exit 9"
KEPT = {"PATH": "/usr/bin:/bin", "FI_PROVIDER": "tcp", "OMPI_MCA_btl": "self", "SLURMISH": "1"}


@pytest.fixture(autouse=True)
def in_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IN_A_JOB.items():
        monkeypatch.setenv(name, value)


def test_what_a_batch_system_tells_is_left_out_and_nothing_else():
    assert strip_allocation(KEPT | IN_A_JOB) == KEPT


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(PREFIXES), max_size=5),
    st.lists(st.sampled_from(NAMES)),
    st.from_regex(r"[A-Z_]{1,9}", fullmatch=True),
)
def test_a_script_leaves_out_the_same(prefixes: list[str], names: list[str], end: str):
    told = KEPT | {f"{each}{end}": "x" for each in prefixes} | dict.fromkeys(names, "x")
    done = subprocess.run(
        ["bash", "-c", f"set -e; {UNSET}; env -0"], env=told, capture_output=True, check=True, text=True
    )
    lines = dict(line.partition("=")[::2] for line in done.stdout.split("\0") if line)
    own = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert lines.keys() - own == strip_allocation(told).keys() - own


def test_an_mpi_is_probed_without_it(tmp_path: Path):
    mpicc = install(tmp_path, starts=f"{REFUSES}\n{says(MPICH)}")
    assert isinstance(probe_wrapper(Candidate(mpicc, mpicc.with_name("mpiexec"), "path")), Mpi)


def test_an_mpi_is_identified_without_it(tmp_path: Path):
    program = f"#!/bin/sh\n{REFUSES}\nprintf '{MPICH}'"
    (tmp_path / "program").write_text(program)
    body = f'{COMPILES.rpartition(";")[0]}; cp {tmp_path}/program "$2"; chmod +x "$2"'
    mpicc = script(tmp_path / "bin" / "mpicc", body)
    assert isinstance(identify_wrapper(Candidate(mpicc, mpicc, "path")), Mpi)


def test_imb_is_tried_without_it(tmp_path: Path):
    mpicc = install(tmp_path, starts=REFUSES + " || echo nothing of a job; exit 1")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.12").touch()
    words = (str(tmp_path), str(mpicc), str(mpicc.with_name("mpiexec")))
    mpi = Mpi("m", "mpich", "5.0.2", "MPICH", "path", *words)
    assert "exit code 9" not in try_imb(mpi, [tmp_path], print).problem


@pytest.mark.parametrize(
    ("launcher", "scheduler", "nodes", "told"),
    [
        (["/opt/mpich/bin/mpiexec"], "local", 1, False),
        ("mpirun", "local", 1, False),
        ("srun", "local", 1, True),  # it must find the job
        (["srun", "--mpi=pmi2"], "local", 1, True),
        (["mpiexec"], "local", 2, True),  # so must this, for the other node
        (["mpiexec"], "slurm", 1, True),  # in a job of its own
    ],
)
def test_launches_on_this_node_are_started_without_it(launcher, scheduler, nodes, told):
    place = partition(
        "cpu", topology=Topology(4, nodes=nodes), environments=["m"], scheduler=scheduler, prepare_cmds=["true"]
    )
    mpi = environment("m", family="mpich", library="MPICH 5", launcher=launcher)
    (system,) = site("s", description="", partitions=[place], environments=[mpi])["systems"]
    assert system["partitions"][0]["prepare_cmds"] == [*([] if told else [UNSET]), "true"]
