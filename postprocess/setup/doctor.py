"""Doctor report: what was found on this machine, and why something is not usable."""

from __future__ import annotations

from postprocess.base.formats import size
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.setup.prepare import PreparedMachine
from site_configs.mpi.inventory import Inventory
from site_configs.topology.layouts import Topology, list_process_counts
from site_configs.topology.machine import Machine, read_machine


def print_doctor_page(work: WorkDirectory, prepared: PreparedMachine, progress: Progress) -> None:
    """Print the page."""
    machine = prepared.inventory.machine if prepared.inventory else read_machine()
    facts = describe_machine(machine)
    if (
        prepared.inventory is None
    ):  # this is a login node: the site file says what its partitions are
        facts[-1] = ("process counts", "the site's own, like its MPIs: ./plumbline list shows them")
    for name, value in facts + describe_tools(work, prepared):
        progress.say(f"{name:<16}{value}")
    for line in describe_mpi(prepared.inventory) if prepared.inventory else ():
        progress.say(line)


def describe_machine(machine: Machine) -> list[tuple[str, str]]:
    """Describe the machine in words."""
    caches = ", ".join(
        f"L{cache.level} {cache.bytes // 1024} KiB shared by {cache.shared_by}"
        for cache in machine.caches
    )
    ladder = list_process_counts(Topology(machine.cores, machine.sockets))
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


def describe_tools(work: WorkDirectory, prepared: PreparedMachine) -> list[tuple[str, str]]:
    """Describe the tools that Plumbline works with."""
    spack = prepared.spack
    found = (
        f"{spack.version} ({spack.origin}: {spack.executable})"
        if spack
        else "none: see the note above"
    )
    return [("Spack", found), ("work directory", str(work.root))]


def describe_mpi(found: Inventory) -> list[str]:
    """Describe each MPI on three lines, or two if it is not usable."""
    lines = []
    for mpi in found.mpis:
        lines += [f"{mpi.name} ({mpi.origin}) {mpi.mpicc}", f"    says {mpi.library}"]
        imb = found.imb_of(mpi)
        where = (
            f"{imb.folder} (its binary interface fits)" if imb.folder else f"none: {imb.problem}"
        )
        lines.append(f"    IMB without Spack: {where}")
    for entry in found.unusable:
        lines += [f"not usable ({entry.origin}) {entry.mpicc}", f"    {entry.problem}"]
    return lines
