"""Set-up: MPIs and a Spack, found or fetched; an environment for each MPI; and its programs built."""

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, plural
from postprocess.base.processes import end_processes, start_module
from postprocess.base.progress import Progress
from postprocess.base.records import read_record
from postprocess.base.workdir import WorkDirectory
from site_configs.families import PACKAGES
from site_configs.mpi.family import Mpi, identify_library, parse_mpi_word
from site_configs.mpi.inventory import Inventory, is_source, take_inventory
from site_configs.mpi.modules import read_module_path
from site_configs.mpi.probe import find_companion_launcher
from site_configs.programs.installed import STANDARD_ABI
from site_configs.programs.program import PRODUCTS
from site_configs.schedulers import module_systems
from site_configs.schedulers.base import UsableNodes
from site_configs.schedulers.registry import SCHEDULERS, find_scheduler
from site_configs.schema.variables import SESSION
from site_configs.validation.rules import list_entries, select_sound
from site_configs.validation.site_files import find_sites_for_host, locate_site_file, read_site
from spack_envs import machine as spack_machine
from spack_envs.installation import Installation, keep_installed, read_failure
from spack_envs.layout import SpackEnvironmentError, SpackLayout
from spack_envs.machine import ExternalPackage, find_toolchain
from spack_envs.mirror.use import Mirror, choose_mirror, report_replaced
from spack_envs.mpi_source import build_mpi
from spack_envs.provide import NoSpack, Spack, provide_spack


@dataclass(frozen=True)
class DeclaredMpi:
    """An MPI as a site file has it, with what Spack must know."""

    name: str
    family: str
    version: str
    prefix: str
    mpicc: str
    mpiexec: str
    modules: tuple[str, ...] = ()

    @property
    def toolchain(self) -> tuple[ExternalPackage, ...] | None:
        """The compiler and tools that there are once the modules are loaded; None where there are none.

        :raises SpackEnvironmentError: if they cannot be loaded on this node, or bring no compiler.
        """
        if not self.modules:
            return None
        path = read_module_path(self.modules)
        if not path:
            raise SpackEnvironmentError(f"modules {' '.join(self.modules)} do not load on this node")
        return find_toolchain([Path(sys.executable).parent, *map(Path, path.split(os.pathsep))])


@dataclass(frozen=True)
class UnusableEnvironment:
    """An environment that Spack cannot be used for, and why."""

    name: str
    problem: str


def parse_declared_mpi(environment: Mapping[str, Any]) -> DeclaredMpi:
    """Parse an environment of a site's configuration as an MPI for Spack.

    :raises SpackEnvironmentError: if it is none, in words that are the same for all of its kind.
    """
    extras = environment["extras"]
    if extras.get(STANDARD_ABI):
        raise SpackEnvironmentError(ONE_BUILD)
    if extras.get("container"):
        raise SpackEnvironmentError("its MPI is in a container")
    family, version = identify_library(extras["library"])
    if extras["family"] not in PACKAGES or family != extras["family"]:
        known = ", ".join(PACKAGES)
        raise SpackEnvironmentError(f"family {extras['family']!r} is none of {known}")
    prefix, mpicc = extras["prefix"], Path(extras["mpicc"])
    if not prefix:
        raise SpackEnvironmentError("its site file does not say where it is: write prefix=")
    wrapper = mpicc if mpicc.is_absolute() else Path(prefix, "bin", mpicc)
    if not wrapper.exists():
        raise SpackEnvironmentError(f"prefix: {wrapper} is not on this machine")
    return DeclaredMpi(
        environment["name"],
        family,
        version,
        prefix,
        str(wrapper),
        str(find_companion_launcher(wrapper)),
        tuple(environment["modules"]),
    )


def read_declared_mpis(work: WorkDirectory, site: str) -> Iterator[DeclaredMpi | UnusableEnvironment]:
    """Read the MPIs that a site file declares, as Spack is told of them.

    What is wrong with the site file itself is not told here: ReFrame refuses it with its fault.

    :raises UsageError: if the file does not end, or leaves processes running.
    """
    reading = read_site(work, locate_site_file(work.source, site))
    if reading.configuration is None:
        return
    for entry in select_sound(reading, list_entries(reading, "environment")):
        try:
            yield parse_declared_mpi(entry.data)
        except SpackEnvironmentError as error:
            yield UnusableEnvironment(entry.name, str(error))


#: Why Spack builds nothing for an environment of the standard ABI.
ONE_BUILD = "one mpicost of the standard ABI is for all MPIs"
#: Beginnings of variables of a shell that steer a scheduler's jobs.
COMMAND = attrgetter("command")
STEERING = ("SBATCH_", "SLURM_CLUSTERS", "PBS_DEFAULT")


@dataclass(frozen=True)
class PreparedMachine:
    """What a session builds on."""

    inventory: Inventory | None  #: None on a site that declares its MPIs itself
    spack: Spack | None
    by_spack: tuple[str, ...] = ()  #: environments that Spack builds for
    by_cmake: tuple[str, ...] = ()  #: and those for which it cannot, though it is there
    #: nodes that can be used, by partition, where the scheduler tells it
    usable_nodes: Mapping[str, UsableNodes] = field(default_factory=dict)

    def list_environments(self, work: WorkDirectory, site: str) -> list[str]:
        """List the environments that a site has: those of this machine's MPIs, or as its file declares them."""
        if self.inventory:
            return [mpi.name for mpi in self.inventory.mpis]
        configuration = read_site(work, locate_site_file(work.source, site)).configuration
        return [each["name"] for each in (configuration or {}).get("environments", ())]

    @property
    def built_with(self) -> str:
        """How the programs of this session are built, in words."""
        if not self.spack:
            return "CMake (no Spack)"
        if not self.by_spack:
            return "CMake (Spack cannot be used for any environment)"
        others = f", CMake for {', '.join(self.by_cmake)}" if self.by_cmake else ""
        return f"Spack {self.spack.version}{others}"


def prepare_machine(
    work: WorkDirectory,
    site: str,
    families: Sequence[str] | None,
    progress: Progress,
    fresh: bool = False,
    mirror: str | None = None,
    with_spack: bool = True,
) -> PreparedMachine:
    """Make ready what every session needs. A second time finds everything there.

    :param families: MPI families asked for by name, or None for the default ones, of which a
        missing one is only noted.
    :param mirror: asked for in this call; see :func:`spack_envs.mirror.use.choose_mirror`
    :param with_spack: whether a Spack is looked for, and fetched if there is none
    :raises UsageError: if a family that was asked for by name, or any MPI at all, cannot be had, or if
        families are asked for on a site that declares its MPIs itself.
    """
    found = None
    if families and site != "local":
        raise UsageError(f"--mpis: site {site} declares its MPIs itself; choose with --environment")
    if site == "local":
        report_own_sites(work.source / "site_configs", progress)
    else:
        check_shell(work, site)
        provide_modules(work, site, progress)
    usable = find_unusable_nodes(work, site, progress)
    chosen = choose_mirror(work.root, mirror, progress)
    if site == "local":
        found = take_inventory(work, families, progress, fresh, chosen.wheels if chosen else None)
    spack = find_spack(work, progress, chosen, fresh) if with_spack else None
    if spack is None:
        report_missing_programs(found, progress, work.told)
        return PreparedMachine(found, None, usable_nodes=usable)
    problems = {
        mpi.name: write_spack_environment(work, spack, mpi, chosen)
        for mpi in (found.mpis if found else read_declared_mpis(work, site))
    }
    by_spack = tuple(name for name, problem in problems.items() if not problem)
    by_cmake = tuple(report_unusable(work, problems, progress))
    if chosen and by_spack:
        report_replaced(chosen, progress)
    return PreparedMachine(found, spack, by_spack, by_cmake, usable)


def check_shell(work: WorkDirectory, site: str) -> None:
    """Refuse a shell whose variables would send the jobs of a site elsewhere than its file says.

    :raises UsageError: naming the variable
    """
    if not any(name.startswith(STEERING) for name in os.environ):
        return
    path = locate_site_file(work.source, site)
    for partition in read_system(work, path)["partitions"]:
        scheduler = find_scheduler(partition["scheduler"])
        for fault in scheduler.find_shell_faults(os.environ, partition.get("access", [])):
            raise UsageError(f"{path}: partition {partition['name']!r}: {fault}")


def read_system(work: WorkDirectory, path: Path) -> dict[str, Any]:
    """Read the system of a site; nothing of a configuration that ``site`` has not made."""
    configuration = read_site(work, path).configuration
    return configuration["systems"][0] if configuration else {"partitions": []}


def find_unusable_nodes(work: WorkDirectory, site: str, progress: Progress) -> dict[str, UsableNodes]:
    """Find how many nodes of each partition of a site can be used; say where some are down or taken out."""
    if site == "local" or not any(map(shutil.which, filter(None, map(COMMAND, SCHEDULERS)))):
        return {}
    found = {}
    for partition in read_system(work, locate_site_file(work.source, site))["partitions"]:
        scheduler = find_scheduler(partition["scheduler"])
        usable = scheduler.count_usable_nodes(partition.get("access", [])) if scheduler.batch else None
        if usable:
            found[partition["name"]] = usable
        if usable and usable.why:
            there = f"partition {partition['name']}: {plural(usable.count, 'node')} can be used"
            progress.note(f"{there}; what needs more is skipped: {usable.why}")
    return found


def provide_modules(work: WorkDirectory, site: str, progress: Progress) -> None:
    """Provide the module system that a site names, from a login shell if this shell has none.

    :raises UsageError: if neither has one.
    """
    if module_systems.module_system(os.environ).name != "nomod":
        return
    path = locate_site_file(work.source, site)
    wanted = read_system(work, path).get("modules_system", "nomod")
    if module_systems.adopt_login_modules(wanted):
        progress.note(
            f"this shell has no modules, and those of a login shell are used, none of them loaded; "
            f"{module_systems.FIX}"
        )
    elif module_systems.is_lacking(wanted, os.environ):
        raise UsageError(f"{path}: modules_system: {module_systems.describe_lacking(wanted)}")


def report_missing_programs(found: Inventory | None, progress: Progress, told: Path) -> None:
    """Say which MPIs of this machine are left without IMB where no Spack can be had."""
    if found is None:
        return
    for mpi in found.mpis:
        if problem := found.imb_of(mpi).problem:
            progress.note_once(f"no IMB for {mpi.name}: {problem}", told)


def report_own_sites(directory: Path, progress: Progress) -> None:
    """Say so if there is a site file for this host: on a login node ``local`` is seldom what is meant."""
    for name in find_sites_for_host(directory, platform.node()):
        progress.note(f"site_configs/{name}.py is for this host and not used: --site {name} uses it")


def write_spack_environment(
    work: WorkDirectory, spack: Spack, mpi: Mpi | DeclaredMpi | UnusableEnvironment, mirror: Mirror | None
) -> str:
    """Write a Spack environment for one MPI; or return why there can be none, and CMake builds the suite."""
    if isinstance(mpi, UnusableEnvironment):
        return mpi.problem
    if isinstance(mpi, Mpi) and mpi.standard_abi:
        return ONE_BUILD
    sources = mirror.sources if mirror else None
    try:
        tools = mpi.toolchain if isinstance(mpi, DeclaredMpi) else None
        spack_machine.write_environment(work.root, work.source, spack, mpi, tools, sources)
    except SpackEnvironmentError as error:
        return str(error)
    return ""


def report_unusable(work: WorkDirectory, problems: Mapping[str, str], progress: Progress) -> Iterator[str]:
    """Report the environments that Spack cannot be used for. One line is said for each reason.

    What an earlier session left for them is taken away: it must not be built from.
    """
    names: dict[str, list[str]] = {}
    for name, problem in problems.items():
        if problem:
            (SpackLayout(work.root).environment(name) / "spack.yaml").unlink(missing_ok=True)
            names.setdefault(problem, []).append(name)
    for problem, those in names.items():
        built = "it is built" if len(those) == 1 else "they are built"
        progress.note(f"Spack cannot be used for {', '.join(those)} ({problem}): {built} with CMake")
        yield from those


def find_spack(
    work: WorkDirectory, progress: Progress, mirror: Mirror | None, again: bool = False
) -> Spack | None:
    """Find a Spack; None, after a line with the reason, if there is none.

    :param again: whether what could not be fetched within a day is tried again, and a reason said again
    """
    answer = ask_for_spack(work, progress, mirror, again)
    if isinstance(answer, NoSpack):
        said = f"no Spack ({answer.reason}): the suite is built with CMake against each mpicc"
        if again:
            progress.note(said)
        else:
            progress.note_once(said, work.told)
        return None
    for line in answer.passed_over:
        progress.note(f"passed over: {line}")
    return answer


def ask_for_spack(
    work: WorkDirectory, progress: Progress, mirror: Mirror | None, again: bool = False
) -> Spack | NoSpack:
    """Provide the mirror's Spack if all must come from a mirror, else that of this machine."""
    try:
        unpacked = mirror.unpacked(work.root) if mirror else None
    except SpackEnvironmentError as error:
        return NoSpack(str(error))
    return provide_spack(work.root, progress.say, None, unpacked, again)


def build_named_source(work: WorkDirectory, word: str, progress: Progress) -> str:
    """Build the MPI whose source a word names, and return the word for where it is installed.

    Other words stay as they are.

    :raises UsageError: if it is the source of no MPI that is known, or cannot be built, as without a Spack.
    """
    path = parse_mpi_word(word).plain
    if "/" not in path or not is_source(Path(path)):
        return word
    spack = find_spack(work, progress, choose_mirror(work.root, None, progress))
    if spack is None:
        fix = "install the MPI, and name its prefix (docs/mpi_source.md)"
        raise UsageError(f"{path}: is the source of an MPI, and there is no Spack to build it; {fix}")
    begun = time.monotonic()
    try:
        with progress.phase(f"building the MPI of {path}"):
            prefix, built = build_mpi(work.root, spack, Path(path), progress.now)
    except SpackEnvironmentError as error:
        raise UsageError(f"{path}: Spack cannot build this MPI: {error}") from None
    if built:
        progress.say(f"{path} is built ({duration(time.monotonic() - begun)})")
    return f"{prefix}{word[len(path) :]}"


MOST = 4  #: builds beside each other: each of them compiles with all cores
LOG = "spack.log"  #: of a build: what Spack said


@dataclass(frozen=True)
class BuildOutcome:
    """What became of the build of a program for one MPI."""

    environment: str
    seconds: float
    done: Installation | None
    problem: str = ""  #: in one line, if it failed
    without_source: bool = False  #: whether it failed because its source cannot be fetched


def build_at_once(
    work: WorkDirectory,
    spack: Spack,
    environments: Sequence[str],
    program: str,
    folder: Path,
    say: Callable[[str], None] = lambda _: None,
) -> list[BuildOutcome]:
    """Build a program for several MPIs beside each other: while Spack solves and configures, cores idle.

    :param folder: gets what Spack says, and what was built; processes that build carry its name
    :param say: is told each line that Spack says
    """

    def build(environment: str) -> BuildOutcome:
        result = folder / f"{environment}.{program}" / "built.json"
        result.parent.mkdir(parents=True, exist_ok=True)
        command = start_module(work.source, "spack_envs.install")
        directory = SpackLayout(work.root).environment(environment)
        command += map(str, (work.root, spack.executable, directory, program, result))
        begin, line = time.monotonic(), ""
        with (
            (result.parent / LOG).open("w", encoding="utf-8") as log,
            subprocess.Popen(
                command,
                env={**os.environ, SESSION: str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            for line in process.stdout or ():
                log.write(line)
                say(f"{environment}: {program}: {line.rstrip()}")
        spent = time.monotonic() - begin
        if process.returncode == 0:
            return BuildOutcome(environment, spent, read_record(result, Installation))
        problem = line.strip() or f"{program}: exit code {process.returncode}"
        failure = read_failure(result.parent)
        return BuildOutcome(environment, spent, None, problem, failure is not None and failure.without_source)

    pool = ThreadPoolExecutor(max_workers=min(MOST, os.cpu_count() or 1))
    try:
        return list(pool.map(build, environments))
    finally:  # an interrupt leaves nothing behind that compiles
        pool.shutdown(wait=False, cancel_futures=True)
        end_processes(SESSION, str(folder))


def build_programs(work: WorkDirectory, prepared: PreparedMachine, progress: Progress) -> int:
    """Build every program for every MPI that has a Spack environment, a program for all MPIs at once.

    One that cannot be built is noted and does not keep the others from it.

    :returns: how many could not be built although their source is there. Without a source, a program's cases
        are skipped and counted in every session.
    """
    if prepared.spack is None or not prepared.by_spack:
        progress.say(f"programs: built by the first session, with {prepared.built_with}")
        return 0
    failures = 0
    with TemporaryDirectory(prefix="plumbline-builds-") as scratch:
        for name in PRODUCTS:
            outcomes = build_at_once(work, prepared.spack, prepared.by_spack, name, Path(scratch), progress.now)
            failures += sum(not keep_built(work, outcome, progress) for outcome in outcomes)
    return failures


def keep_built(work: WorkDirectory, outcome: BuildOutcome, progress: Progress) -> bool:
    """Keep what was built, and say so; whether it was built, or has no source to build from."""
    name = outcome.environment
    if outcome.done is None:
        progress.note(f"{name}: {outcome.problem}")
        return outcome.without_source
    try:
        program = keep_installed(work.root, name, outcome.done)
    except SpackEnvironmentError as error:
        progress.note(f"{name}: {outcome.done.program}: {error}")
        return False
    source = "" if program.source == "official" else f" from {program.source}"
    facts = f"{duration(outcome.seconds)}; {program.compiler} {program.flags}"
    progress.say(f"{name}: {program.name} {program.version}{source} is built ({facts})")
    return True
