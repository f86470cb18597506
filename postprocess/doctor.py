"""The doctor's page: what was found on this machine, and why something is not usable."""

from __future__ import annotations

from rich.table import Table

from postprocess.formats import size
from postprocess.harmless import one_line
from postprocess.preparation import Prepared
from postprocess.progress import Progress
from postprocess.workdir import WorkDirectory
from site_configs.ladder import Topology, process_ladder
from site_configs.machine import Machine, read_machine


def show(work: WorkDirectory, prepared: Prepared, progress: Progress) -> None:
    """Print the page."""
    machine = prepared.inventory.machine if prepared.inventory else read_machine()
    facts = Table.grid(padding=(0, 2))
    for name, value in machine_facts(machine) + tool_facts(work, prepared):
        facts.add_row(name, one_line(value))
    progress.console.print(facts, markup=False)
    if prepared.inventory:
        progress.console.print(mpi_table(prepared))


def machine_facts(machine: Machine) -> list[tuple[str, str]]:
    """The machine in words."""
    caches = ", ".join(
        f"L{cache.level} {cache.bytes // 1024} KiB shared by {cache.shared_by}"
        for cache in machine.caches
    )
    ladder = process_ladder(Topology(machine.cores, machine.sockets))
    counts = (
        ", ".join(map(str, ladder)) or "none: one core cannot time messages (--oversubscribe tries)"
    )
    return [
        ("machine", f"{machine.host}: {machine.cpu_model}"),
        (
            "cores",
            f"{machine.cores} on {machine.sockets} socket(s), {machine.hardware_threads} hardware threads",
        ),
        ("caches", caches or "not shown by the kernel"),
        ("memory", size(machine.memory_bytes // 10**9 * 10**9)),
        ("kernel", machine.kernel),
        ("process counts", counts),
    ]


def tool_facts(work: WorkDirectory, prepared: Prepared) -> list[tuple[str, str]]:
    """What Plumbline works with."""
    spack = prepared.spack
    found = (
        f"{spack.version} ({spack.origin}: {spack.executable})"
        if spack
        else "none: see the note above"
    )
    return [("Spack", found), ("work directory", str(work.root))]


def mpi_table(prepared: Prepared) -> Table:
    """Each MPI, usable or not."""
    table = Table(
        "environment", "origin", "says of itself", "mpicc", box=None, padding=(0, 2, 0, 0)
    )
    assert prepared.inventory is not None
    for mpi in prepared.inventory.mpis:
        said = one_line(mpi.library)
        table.add_row(
            mpi.name, mpi.origin, said if len(said) < 60 else said[:57] + "...", mpi.mpicc
        )
    for entry in prepared.inventory.unusable:
        table.add_row("(not usable)", entry.origin, one_line(entry.problem), entry.mpicc)
    return table
