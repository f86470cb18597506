"""The commands ``setup`` and ``doctor``: what a session needs, found or built, or only looked for."""

import argparse
from collections.abc import Callable

from postprocess.base.formats import size
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import SITE, add_options
from postprocess.cli.parser import WHERE, Command, Parser
from postprocess.setup import PreparedMachine, build_programs, prepare_machine
from site_configs.mpi.inventory import Inventory
from site_configs.mpi.layers import find_layer_library
from site_configs.topology.layouts import Topology, list_process_counts
from site_configs.topology.machine import Machine, read_machine
from site_configs.validation.site_files import locate_site_file


def add_setup_arguments(parser: Parser) -> None:
    """Add the options that say for which machine, and where everything comes from."""
    add_options(parser, *SITE)
    parser.group(WHERE).add_argument(
        "--mirror",
        metavar="DIR",
        help="take everything from this mirror, now and later; none: from the network again",
    )


def run_setup(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Find or install everything that a session needs, and build the programs. Returns the exit status."""
    return set_up(work, arguments, build_programs)


SETUP = Command(
    "./plumbline setup --mpis mpich,openmpi", "a program could not be built", add_setup_arguments, run_setup
)


def set_up(
    work: WorkDirectory,
    arguments: argparse.Namespace,
    build: Callable[[WorkDirectory, PreparedMachine, Progress], int],
) -> int:
    """Find or install everything that a session needs; then build. Returns 1 if something does not build."""
    locate_site_file(work.source, arguments.site)
    progress = Progress()
    with work.held():
        with progress.phase("set-up"):
            prepared = prepare_machine(work, arguments.site, arguments.mpis, progress, True, arguments.mirror)
        print_doctor_page(work, prepared, progress)
        with progress.phase("build"):
            failures = build(work, prepared, progress)
    if failures:
        progress.say(f"{failures} program(s) could not be built: see the notes above")
    return 1 if failures else 0


def print_doctor_page(work: WorkDirectory, prepared: PreparedMachine, progress: Progress) -> None:
    machine = prepared.inventory.machine if prepared.inventory else read_machine()
    facts = describe_machine(machine)
    if prepared.inventory is None:  # this is a login node: the site file says what its partitions are
        facts[-1] = ("process counts", "the site's own, like its MPIs: ./plumbline list shows them")
    for name, value in facts + describe_tools(work, prepared):
        progress.say(f"{name:<16}{value}")
    for line in describe_mpi(prepared.inventory) if prepared.inventory else ():
        progress.say(line)


def describe_machine(machine: Machine) -> list[tuple[str, str]]:
    caches = ", ".join(
        f"L{cache.level} {cache.bytes // 1024} KiB shared by {cache.shared_by}" for cache in machine.caches
    )
    ladder = list_process_counts(Topology(machine.cores, machine.sockets))
    counts = ", ".join(map(str, ladder)) or "none: one core cannot time messages (--oversubscribe tries)"
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
    spack = prepared.spack
    found = f"{spack.version} ({spack.origin}: {spack.executable})" if spack else "none: see the note above"
    return [("Spack", found), ("work directory", str(work.root))]


def describe_mpi(found: Inventory) -> list[str]:
    """Describe each MPI on three lines, or two if it is not usable."""
    lines = []
    for mpi in found.mpis:
        lines += [f"{mpi.name} ({mpi.origin}) {mpi.mpicc}", f"    says {mpi.library}"]
        if mpi.standard_abi:
            lines.append(f"    by its standard ABI, in {mpi.standard_abi}")
        if mpi.layer:
            lines.append(f"    on {mpi.layer}, {find_layer_library(mpi)}")
        imb = found.imb_of(mpi)
        where = f"{imb.folder} (its binary interface fits)" if imb.folder else f"none: {imb.problem}"
        lines.append(f"    IMB without Spack: {where}")
    for entry in found.unusable:
        lines += [f"not usable ({entry.origin}) {entry.mpicc}", f"    {entry.problem}"]
    return lines


def run_doctor(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show what was found on this machine, and why something is not usable. Returns 0."""
    return set_up(work, arguments, lambda *_: 0)


DOCTOR = Command("./plumbline doctor --mpis mpich,openmpi", "", add_setup_arguments, run_doctor)
