"""Find contradictions within a site file, and between it and its machine."""

import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from postprocess.base.errors import propose_or_list
from postprocess.base.sanitize import quote_word
from site_configs.families import FAMILIES, SIMULATED, find_family
from site_configs.mpi.family import identify_library
from site_configs.mpi.probe import ProbeError, run_step
from site_configs.programs.installed import SITE, describe_missing_executables
from site_configs.schedulers import module_systems, registry
from site_configs.schedulers.base import Queue, RefusedOption, Scheduler
from site_configs.topology.machine import read_machine, read_usable_threads
from site_configs.validation.reading import SiteFault, SiteReading


@dataclass(frozen=True)
class DeclaredEntry:
    """A partition or an environment as the file declares it."""

    kind: str
    data: Mapping[str, Any]
    line: int

    @property
    def name(self) -> str:
        return self.data["name"]

    @property
    def extras(self) -> Mapping[str, Any]:
        return self.data["extras"]

    def fault(self, key: str, text: str) -> SiteFault:
        return SiteFault(self.line, f"{self.kind} {self.name!r}: {key}: {text}")


def list_entries(reading: SiteReading, kind: str) -> list[DeclaredEntry]:
    configuration = reading.configuration or {}
    if kind == "partition":
        entries = [entry for system in configuration["systems"] for entry in system["partitions"]]
    else:
        entries = configuration["environments"]
    return [DeclaredEntry(kind, entry, reading.lines.get(f"{kind} {entry['name']}", 0)) for entry in entries]


def select_sound(reading: SiteReading, found: Sequence[DeclaredEntry]) -> list[DeclaredEntry]:
    """Select the entries that were made without a fault."""
    return [entry for entry in found if f"{entry.kind} {entry.name}" not in reading.broken]


def find_site_faults(reading: SiteReading) -> list[SiteFault]:
    """Find everything that is wrong with a site file, as far as the file itself shows."""
    if reading.configuration is None:
        return sorted(reading.faults)
    partitions, environments = (list_entries(reading, kind) for kind in ("partition", "environment"))
    faults = [*reading.faults, *check_unique_names(partitions), *check_unique_names(environments)]
    faults += check_declared(partitions, environments)
    sound, mpis = select_sound(reading, partitions), select_sound(reading, environments)
    for partition in sound:
        faults += check_registered(partition, "scheduler", partition.data["scheduler"], reading)
        faults += check_topology(partition)
    for environment in mpis:
        launcher = environment.extras["launcher"]
        faults += (
            check_registered(environment, "launcher", launcher, reading) if isinstance(launcher, str) else []
        )
        faults += check_family(environment)
    for partition in sound:
        faults += check_simulated(partition, mpis)
    for one, two in combinations(mpis, 2):
        faults += is_ambiguous(one, two)
    return sorted(set(faults))


def check_unique_names(found: Sequence[DeclaredEntry]) -> Iterator[SiteFault]:
    """Check that names are unique: ReFrame would silently use one of two equal ones."""
    for number, entry in enumerate(found):
        if entry.name in {earlier.name for earlier in found[:number]}:
            yield entry.fault("name", "is there twice; give each its own")


def check_declared(
    partitions: Sequence[DeclaredEntry], environments: Sequence[DeclaredEntry]
) -> Iterator[SiteFault]:
    """Find environments that a partition names without a declaration, and unused declarations."""
    known_names = {entry.name for entry in environments}
    used = {name for entry in partitions for name in entry.data["environs"]}
    if not partitions:
        yield SiteFault(0, "site: partitions: there is none; nothing could run")
    for partition in partitions:
        if not partition.data["environs"]:
            yield partition.fault("environments", "names none; nothing would run there")
        for name in partition.data["environs"]:
            if name not in known_names:
                fix = propose_or_list(name, known_names)
                yield partition.fault("environments", f"{name!r} is not declared; {fix}")
    for environment in environments:
        if environment.name not in used:
            yield environment.fault("name", "no partition names it in environments=, so it never runs")


def check_registered(entry: DeclaredEntry, key: str, name: str, reading: SiteReading) -> Iterator[SiteFault]:
    """Find a scheduler or launcher that is not registered with ReFrame, or not usable here."""
    choice = getattr(reading, f"{key}s")
    if name not in choice:
        words = "" if key == "scheduler" else ", or write the words that start a launch line as a list"
        yield entry.fault(key, f"ReFrame knows no {name!r}; {propose_or_list(name, choice)}{words}")
    elif problem := reading.unusable.get(f"{key} {name}"):
        yield entry.fault(key, f"{name!r} cannot be used here: {problem}")


def check_topology(partition: DeclaredEntry) -> Iterator[SiteFault]:
    """Find counts of a partition that contradict each other."""
    cores, sockets = partition.extras["cores_per_node"], partition.data["processor"]["num_sockets"]
    local = not registry.find_scheduler(partition.data["scheduler"]).batch
    if cores % sockets and not local:  # a container may have only a part of a local machine
        fix = f"write a multiple of {sockets}, such as {cores - cores % sockets}"
        yield partition.fault("topology", f"cores_per_node={cores} is not divisible by sockets; {fix}")
    nodes = partition.extras["nodes"]
    if local and nodes > 1 and not partition.extras["exact"]:
        yield partition.fault("topology", f"nodes={nodes}: scheduler 'local' has one node; write 1")
    most = partition.extras["most_processes"]
    for processes, per_node in partition.extras["layouts"]:
        if processes > most or per_node > cores or -(-processes // per_node) > nodes:
            layout = f"[{processes}, {per_node}]"
            yield partition.fault("layouts", f"{layout} does not fit on {nodes} nodes of {cores} cores")


def check_simulated(partition: DeclaredEntry, environments: Sequence[DeclaredEntry]) -> Iterator[SiteFault]:
    """Find an ``exact`` partition that is not simulated: no other time repeats exactly."""
    if partition.extras["exact"]:
        for entry in environments:
            if entry.name in partition.data["environs"] and entry.extras["family"] != SIMULATED:
                why = f"times of {entry.name!r} ({entry.extras['family']}) do not repeat exactly"
                yield partition.fault("exact", f"{why}; write False")


def check_family(environment: DeclaredEntry) -> Iterator[SiteFault]:
    """Find a library text of another family, or a misspelt family."""
    named, library = environment.extras["family"], environment.extras["library"]
    known_families = [*FAMILIES]
    identified, _ = identify_library(library)
    if identified not in ("unknown", named):
        what = f"{named!r}, but library={library!r} is that of {identified}"
        yield environment.fault("family", f"{what}; write {identified!r}, or what that library says of itself")
    elif named not in known_families and "did you mean" in (fix := propose_or_list(named, known_families)):
        yield environment.fault("family", f"{named!r} is not known; {fix}")


def is_ambiguous(one: DeclaredEntry, two: DeclaredEntry) -> Iterator[SiteFault]:
    """Check whether two MPIs could pass as each other, which would make the library text worthless.

    Two environments of one installation (with other variables) are fine, and two builds of one full version (by
    two compilers) cannot be distinguished by their version strings. An absolute path of a wrapper is proof
    enough.
    """
    places = [(entry.extras["mpicc"], tuple(entry.data["modules"])) for entry in (one, two)]
    absolute = all(Path(mpicc).is_absolute() for mpicc, _ in places)
    first, second = (" ".join(entry.extras["library"].split()) for entry in (one, two))
    same_version = first == second and is_whole_version(first)
    if places[0] == places[1] or absolute or same_version or not (first in second or second in first):
        return
    fix = "write the whole version as in MPI_Get_library_version, or mpicc as an absolute path"
    yield two.fault("library", f"{second!r} does not distinguish it from {one.name!r} ({first!r}); {fix}")


def is_whole_version(library: str) -> bool:
    """Return whether the text names one release: three numbers, or two for a family that counts by years."""
    family, version = identify_library(library)
    return len(version.split(".")) >= find_family(family).version_numbers


LOAD_SECONDS = 60  #: for loading modules and looking for a compiler wrapper


@dataclass(frozen=True)
class LocalMachine:
    """The machine on which a site file is checked."""

    cores: int
    modules: module_systems.ModuleSystem
    scheduler: Scheduler | None = None
    silent: str = ""  #: why the scheduler does not answer, if it does not
    #: variables that choose the cluster or server to ask, from the first partition that names one
    choice: Mapping[str, str] = field(default_factory=dict)
    threads_per_core: int = 1  #: usable by this process
    _refused: dict[tuple[str, ...], list[RefusedOption]] = field(default_factory=dict, compare=False)

    def find_refused_options(self, access: Sequence[str]) -> list[RefusedOption]:
        """Find the options of a job that the scheduler refuses; it is asked once per list."""
        if not self.scheduler or not self.scheduler.batch:
            return []
        asked = tuple(access)
        if asked not in self._refused:
            self._refused[asked] = list(self.scheduler.find_refused_options(access))
        return self._refused[asked]


def inspect_machine(reading: SiteReading | None = None) -> LocalMachine:
    """Inspect this machine; its modules are those of this shell, or else of a login shell."""
    here = module_systems.module_system(os.environ)
    modules = (
        module_systems.module_system(module_systems.read_login_environment()) if here.name == "nomod" else here
    )
    cores, threads = read_machine().cores, read_usable_threads()
    system = ((reading and reading.configuration) or {"systems": [{"partitions": []}]})["systems"][0]
    choices = map(find_partition_choice, system["partitions"])
    choice = next(filter(None, choices), {})
    try:
        scheduler = registry.detect_scheduler(environment=choice)
    except registry.SchedulerError as error:
        return LocalMachine(cores, modules, silent=str(error), choice=choice, threads_per_core=threads)
    return LocalMachine(cores, modules, scheduler, choice=choice, threads_per_core=threads)


def find_partition_choice(partition: Mapping[str, Any]) -> dict[str, str]:
    """Return the cluster or server in a partition's options, as variables; empty for the default one."""
    return registry.find_scheduler(partition["scheduler"]).find_choice(partition.get("access", []))


def is_here(reading: SiteReading, host: str | None = None) -> bool:
    """Return whether this host matches the site's own patterns."""
    system = (reading.configuration or {})["systems"][0]
    return any(re.match(pattern, host or platform.node()) for pattern in system["hostnames"])


def find_machine_faults(reading: SiteReading, here: LocalMachine) -> list[SiteFault]:
    """Find all contradictions between the file and the machine."""
    partitions, environments = (
        select_sound(reading, list_entries(reading, kind)) for kind in ("partition", "environment")
    )
    faults = list(check_modules(reading, here))
    for partition in partitions:
        batch = registry.find_scheduler(partition.data["scheduler"]).batch
        faults += check_batch_partition(partition, here) if batch else check_local_partition(partition, here)
    if not faults:  # otherwise nothing could be loaded
        for environment in environments:
            faults += [*check_wrapper(environment, reading), *check_prefix(environment)]
    for environment in environments:
        faults += check_programs(environment)
    return sorted(set(faults))


def check_modules(reading: SiteReading, here: LocalMachine) -> Iterator[SiteFault]:
    """Check whether the site names another module system than the machine's."""
    system = (reading.configuration or {})["systems"][0]
    named = system.get("modules_system", "nomod")
    if named in ("nomod", "spack", here.modules.name):
        return
    line = reading.lines.get(f"site {system['name']}", 0)
    title = f"site {system['name']!r}: modules_system"
    if here.modules.name == "nomod":
        yield SiteFault(line, f"{title}: {module_systems.describe_lacking(named)}")
        return
    there = f"here is {here.modules.name!r}"
    yield SiteFault(line, f"{title}: {named!r} is not on this machine; {there} ({here.modules.evidence})")


def check_local_partition(partition: DeclaredEntry, here: LocalMachine) -> Iterator[SiteFault]:
    """Find a partition without a scheduler that is larger than this machine, unless it is simulated."""
    cores = partition.extras["cores_per_node"]
    if cores > here.cores and not partition.extras["exact"]:
        fix = f"write {here.cores}, or run with --oversubscribe"
        yield partition.fault("topology", f"cores_per_node={cores}, and this machine has {here.cores}; {fix}")
    yield from check_threads(partition, here.threads_per_core, "this machine's cores have")


def check_threads(partition: DeclaredEntry, there: int, where: str) -> Iterator[SiteFault]:
    """Check that cores have the declared hardware threads; simulated ones may have any number."""
    threads = partition.extras.get("threads_per_core", 1)
    if threads > there and not partition.extras["exact"]:
        yield partition.fault("topology", f"threads_per_core={threads}, and {where} {there}; write {there}")


def check_batch_partition(partition: DeclaredEntry, here: LocalMachine) -> Iterator[SiteFault]:
    """Find contradictions between a partition and the scheduler."""
    backend, scheduler = partition.data["scheduler"], here.scheduler
    if here.silent:
        yield partition.fault("scheduler", f"{backend!r} does not answer: {here.silent}")
    elif scheduler is None:
        yield partition.fault("scheduler", f"{backend!r}: no scheduler is on this machine's search path")
    elif fault := scheduler.find_backend_fault(backend):
        yield partition.fault("scheduler", fault)
    elif scheduler.queues and find_partition_choice(partition.data) == dict(here.choice):
        yield from check_queue(partition, here, scheduler)


def check_queue(partition: DeclaredEntry, here: LocalMachine, scheduler: Scheduler) -> Iterator[SiteFault]:
    """Find what the queue in the partition's options does not have, and options that it refuses."""
    name = scheduler.find_queue_name(partition.data["access"])
    queue = scheduler.queue(name) if name else find_default_queue(scheduler)
    if queue is None:
        if name:
            fix = propose_or_list(name, [known.name for known in scheduler.queues])
            what = f"{scheduler.title} has no partition {name!r} that is up; {fix}"
            yield partition.fault("access", what)
        return
    yield from check_node_counts(partition, queue)
    for refused in here.find_refused_options(partition.data["access"]):
        if refused.option:
            yield partition.fault("access", f"{refused.option!r}: {refused.said}; mend it, or take it out")


def find_default_queue(scheduler: Scheduler) -> Queue | None:
    """Return the queue of jobs that name none."""
    return next((queue for queue in scheduler.queues if queue.default), None)


def check_node_counts(partition: DeclaredEntry, queue: Queue) -> Iterator[SiteFault]:
    """Check that the declared nodes and cores exist: such a job would wait forever, or be refused."""
    nodes, cores = (partition.extras[key] for key in ("nodes", "cores_per_node"))
    kinds = [kind for kind in queue.kinds if not kind.option or kind.option in partition.data["access"]]
    chosen = [kind for kind in kinds if kind.option] or kinds
    there = sum(len(kind.hosts) for kind in chosen)
    most = min(there, queue.most_nodes or there)
    if nodes > most:
        text = f"nodes={nodes}, and a job in {queue.name} gets at most {most}; write {most} or fewer"
        yield partition.fault("topology", text)
    largest = max((kind.cores for kind in chosen), default=0)
    if largest and cores > largest:
        text = f"cores_per_node={cores}, and the nodes of {queue.name} have {largest}; write {largest}"
        yield partition.fault("topology", text)
    if most_threads := max((kind.threads_per_core for kind in chosen), default=0):
        yield from check_threads(partition, most_threads, f"the cores of {queue.name} have")


def find_longest_job(partition: Mapping[str, Any], scheduler: Scheduler | None) -> int:
    """Return the longest job of a partition's queue in seconds; 0 if unlimited or unknown."""
    if scheduler is None:
        return 0
    name = scheduler.find_queue_name(partition["access"])
    queue = scheduler.queue(name) if name else find_default_queue(scheduler)
    return queue.seconds if queue else 0


def check_wrapper(environment: DeclaredEntry, reading: SiteReading) -> Iterator[SiteFault]:
    """Find modules of an environment that do not load, or a compiler wrapper that is missing then."""
    mpicc, names = environment.extras["mpicc"], environment.data["modules"]
    if container := environment.extras.get("container"):
        load = [f"module load {' '.join(map(quote_word, names))} >&2"] if names else []
        inside = " ".join(map(quote_word, [*container, mpicc, "--version"]))
        if problem := explain_failure("container", [*load, inside]):
            yield environment.fault("container", f"{mpicc!r} does not run in it: {problem}")
        return
    if not names or reading.sound_configuration["systems"][0]["modules_system"] in ("nomod", "spack"):
        if not shutil.which(mpicc):
            where = "is not there" if Path(mpicc).is_absolute() else "is not on the search path"
            yield environment.fault("mpicc", f"{mpicc!r} {where}; give it by absolute path")
        return
    if problem := explain_failed_command(names, ":"):
        yield environment.fault("modules", f"{' '.join(names)}: cannot be loaded: {problem}")
    elif explain_failed_command(names, f"command -v {quote_word(mpicc)}"):
        yield environment.fault("mpicc", f"{mpicc!r} is not there once {' '.join(names)} is loaded")


def check_prefix(environment: DeclaredEntry) -> Iterator[SiteFault]:
    """Check that the prefix has the compiler wrapper that Spack builds with."""
    extras = environment.extras
    if Path(extras["mpicc"]).is_absolute() or not extras["prefix"]:
        return
    wrapper = Path(extras["prefix"], "bin", extras["mpicc"])
    if not wrapper.exists():
        yield environment.fault("prefix", f"{wrapper} is not there; write where this MPI is, or leave it out")


def check_programs(environment: DeclaredEntry) -> Iterator[SiteFault]:
    """Find benchmarks that are declared as installed but missing."""
    extras = environment.extras
    for name, folder in extras["programs"].items():
        problem = describe_missing_executables(name, folder) if extras["program_origin"][name] == SITE else ""
        if problem:
            yield environment.fault("programs", f"{name}: {problem}")


def explain_failed_command(names: Sequence[str], then: str) -> str:
    """Explain why a command fails in a login shell with these modules; empty if it succeeds."""
    return explain_failure("module load", [f"module load {' '.join(map(quote_word, names))} >&2", then])


def explain_failure(step: str, commands: Sequence[str]) -> str:
    """Explain why these commands fail, one after the other in a login shell; empty if they succeed."""
    try:
        run_step(["bash", "-lc", " && ".join(commands)], os.environ, step, LOAD_SECONDS)
    except ProbeError as error:
        return str(error)
    return ""
