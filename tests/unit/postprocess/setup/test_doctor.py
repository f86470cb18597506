"""The doctor's page says what was found, and why something is not usable."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.commands.setup import describe_machine, describe_mpi, print_doctor_page
from postprocess.setup.prepare import PreparedMachine
from site_configs.mpi.family import Mpi, Unusable
from site_configs.mpi.inventory import Inventory
from site_configs.topology.machine import Cache, Machine
from spack_envs.provide import Spack

CACHES = (Cache(1, "Data", 32768, 2), Cache(3, "Unified", 32 * 2**20, 16))
MACHINE = Machine("n1", "a processor", "6.1", 8, 16, 2, 25_276_502_016, CACHES)
MPICH = Mpi("mpich-5_0_2", "mpich", "5.0.2", "MPICH 5.0.2", "wheel", "/p", "/p/cc", "/p/exec")
FOUND = Inventory(MACHINE, (MPICH,), (Unusable("/usr/bin/mpicc", "path", "compiling failed"),))


def page(prepared: PreparedMachine) -> str:
    progress = Progress(Console(file=io.StringIO(), width=200))
    print_doctor_page(WorkDirectory(Path("/home/me/.plumbline"), Path()), prepared, progress)
    return progress.console.file.getvalue()


def test_the_page_names_the_machine_its_mpis_and_what_is_wrong():
    spack = Spack(Path("/bin/spack"), Path("/packages"), "1.1.0", "PATH")
    lines = page(PreparedMachine(FOUND, spack)).splitlines()
    for line in (
        "machine         n1: a processor",
        "cores           8 on 2 socket(s), 16 hardware threads",
        "memory          25 GB",
        "process counts  2, 4, 5, 8",
        "Spack           1.1.0 (PATH: /bin/spack)",
        "work directory  /home/me/.plumbline",
        "mpich-5_0_2 (wheel) /p/cc",
        "    says MPICH 5.0.2",
        "    IMB without Spack: none: not looked for yet",
        "not usable (path) /usr/bin/mpicc",
        "    compiling failed",
    ):
        assert line in lines
    (caches,) = (line for line in lines if line.startswith("caches"))
    assert "L1 32 KiB" in caches
    assert "L3 32" in caches


def test_without_spack_and_on_a_site_of_its_own_there_is_a_page_all_the_same():
    text = page(PreparedMachine(None, None))
    assert "Spack           none: see the note above" in text
    assert "process counts  the site's own, like its MPIs: ./plumbline list shows them" in text
    assert "says" not in text


def test_a_machine_that_shows_little_is_described_in_words():
    facts = dict(describe_machine(replace(MACHINE, cores=1, sockets=1, caches=())))
    assert facts["caches"] == "not shown by the kernel"
    assert facts["process counts"].startswith("none: one core cannot time messages")


def test_every_mpi_has_its_lines():
    assert len(describe_mpi(FOUND)) == 5
    assert describe_mpi(Inventory(MACHINE, (), ())) == []
