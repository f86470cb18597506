"""The MPIs of a new site file, and what else its reader should know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from postprocess.base import formats
from site_configs.generate.python_source import assignments, below, python, registered
from site_configs.generate.survey import Facts, usable_name
from site_configs.mpi.family import PACKAGES, Mpi
from site_configs.mpi.identify import telling_text
from site_configs.schedulers.base import NodeKind, Queue, Scheduler, needed
from site_configs.schedulers.launcher_choice import CRAY
from site_configs.schedulers.local import LOCAL
from site_configs.topology.machine import Machine


@dataclass(frozen=True)
class EnvironmentView:
    """One call of ``environment``. All but ``name`` and the remarks is Python."""

    name: str
    found: str
    family: str
    library: str
    modules: str
    mpicc: str
    prefix: str
    launcher: str
    why: str
    env_vars: str


def environment_views(facts: Facts, work: Path) -> list[EnvironmentView]:
    """The MPIs that were found."""
    return [environment_view(facts, mpi, work) for mpi in facts.mpis.mpis]


def environment_view(facts: Facts, mpi: Mpi, work: Path) -> EnvironmentView:
    """One MPI as a site file has it."""
    pair = (facts.scheduler or LOCAL).choose_launcher(mpi)
    modules = list(facts.cray_modules) if mpi.origin == CRAY else list(filter(None, [mpi.module]))
    words = pair.launcher if isinstance(pair.launcher, tuple) else (pair.launcher,)
    launcher = f"[{', '.join(below(word, work) for word in words)}]"
    # Slurm's srun and Cray's launcher bind by options of their own, and do not look at these.
    started_by_mpi = "mpi" in Path(words[0]).name
    variables = mpi.env if started_by_mpi else {}
    found = {
        "module": f"module {mpi.module}",
        "wheel": "wheel in the work directory",
        CRAY: f"{CRAY} ({mpi.mpicc})",
    }
    return EnvironmentView(
        name=python(mpi.name),
        found=found.get(mpi.origin, f"{mpi.mpicc} on the search path"),
        family=python(mpi.family),
        library=python(telling_text(mpi.library)),
        modules=python(modules) if modules else "",
        mpicc=python("mpicc") if mpi.module else below(mpi.mpicc, work),
        prefix=python(mpi.prefix) if mpi.module and mpi.family in PACKAGES else "",
        launcher=launcher if isinstance(pair.launcher, tuple) else registered(pair.launcher),
        why=pair.why,
        env_vars=assignments(variables, work) if variables else "",
    )


def remarks(facts: Facts) -> list[str]:
    """What else a person should know who reads the file."""
    found = []
    if facts.scheduler:
        found += facts.scheduler.notes
        _, left_out = needed(facts.scheduler.queues)
        found += [f"partition {name} is not in this file: {why}" for name, why in left_out.items()]
    if facts.mpis.other_modules:
        others = ", ".join(facts.mpis.other_modules)
        found.append(f"further modules of MPIs, not looked into: {others}")
    found += [f"{each.mpicc} is not usable: {each.problem}" for each in facts.mpis.unusable]
    return found


FEW_NODES = 4  #: that a new site measures at most; a night on thousands is for a person to decide
LSCPU = "`lscpu` on a compute node tells it"


@dataclass(frozen=True)
class Told:
    """A value of the site file, and where it is from or what a person must do about it."""

    value: str  #: as Python
    said: str
    change: bool = False

    @property
    def comment(self) -> str:
        """The remark behind the value."""
        return f"CHANGE: {self.said}" if self.change else self.said


@dataclass(frozen=True)
class PartitionView:
    """One call of ``partition``."""

    name: str
    remark: str
    scheduler: Told
    access: Told
    cores: Told
    sockets: Told
    nodes: Told
    switch: Told


def partition_views(facts: Facts) -> list[PartitionView]:
    """The partitions that reach every node once, or this machine where there is no scheduler."""
    scheduler = facts.scheduler
    if scheduler is None:
        return [machine_view(facts.machine)]
    if not scheduler.queues:
        kind = NodeKind(hosts=())
        return [partition_view(scheduler, Queue("", (kind,)), kind)]
    kept, _ = needed(scheduler.queues)
    return [partition_view(scheduler, queue, kind) for queue, kind in kept]


def machine_view(machine: Machine) -> PartitionView:
    """This machine as a partition of one node."""
    where = "of this machine, which this process may use"
    return PartitionView(
        name=python("cpu"),
        remark="this machine itself; nothing stands between a launch and the next one",
        scheduler=Told(python(LOCAL.backend), ""),
        access=Told("[]", ""),
        cores=Told(str(machine.cores), f"physical cores {where}"),
        sockets=Told(str(machine.sockets), "/sys/devices/system/cpu"),
        nodes=Told("1", "without a scheduler there is one node"),
        switch=Told("0", ""),
    )


def partition_view(scheduler: Scheduler, queue: Queue, kind: NodeKind) -> PartitionView:
    """One kind of nodes of a queue."""
    names = [queue.name or "cpu"]
    if len(queue.kinds) > 1:
        names.append(f"{kind.cores}c")
    return PartitionView(
        name=python(usable_name("_".join(names))),
        remark=remark(scheduler, queue, kind),
        scheduler=backend(scheduler),
        access=access(scheduler, queue, kind),
        cores=cores(scheduler, kind),
        sockets=sockets(scheduler, kind),
        nodes=nodes(scheduler, queue, kind),
        switch=switch(scheduler, kind),
    )


def backend(scheduler: Scheduler) -> Told:
    """How ReFrame talks to the scheduler."""
    without = "" if scheduler.accounting else "accounting is off here, and it does without"
    return Told(registered(scheduler.backend), without)


def remark(scheduler: Scheduler, queue: Queue, kind: NodeKind) -> str:
    """A partition in words."""
    if not kind.hosts:
        return f"CHANGE: name it, and give it the options of a queue of {scheduler.title}"
    words = [formats.plural(len(kind.hosts), "node")]
    words += [f"{kind.unusable} of them not usable now"] if kind.unusable else []
    words += [f"{formats.size(kind.memory_bytes // 10**9 * 10**9)} of memory"]
    words += [f"longest job {formats.duration(queue.seconds)}"] if queue.seconds else []
    words += ["default"] if queue.default else []
    return ", ".join(words)


def access(scheduler: Scheduler, queue: Queue, kind: NodeKind) -> Told:
    """The options that reach these nodes and keep others off them."""
    options = [option.format(queue.name) for option in scheduler.exclusive]
    options += [kind.option] if kind.option else []
    if len(queue.kinds) > 1 and not kind.option:
        others = formats.plural(len(queue.kinds) - 1, "other kind")
        said = f"{queue.name} has {others} of nodes too: add what selects these alone"
        return Told(python(options), said, change=True)
    said = "exclusive nodes make quiet measurements; add an account where jobs need one"
    return Told(python(options), said, change=not queue.name)


def cores(scheduler: Scheduler, kind: NodeKind) -> Told:
    """Physical cores of a node."""
    if not kind.cores:
        return Told("0", f"physical cores of a node; {LSCPU}", change=True)
    if not scheduler.tells_cores and not kind.sockets:
        said = f"physical cores of a node; {scheduler.title} counts {kind.cores} CPUs; {LSCPU}"
        return Told(str(kind.cores), said, change=True)
    reserved = f", without {kind.reserved_cores} kept for the system" if kind.reserved_cores else ""
    threads = f"{kind.hardware_threads} hardware threads"
    even = kind.cores - kind.cores % kind.sockets
    return Told(str(even), f"physical cores{reserved}; {threads} ({scheduler.told_by})")


def sockets(scheduler: Scheduler, kind: NodeKind) -> Told:
    """Sockets of a node."""
    if not scheduler.sockets_are_known(kind):
        said = f"{scheduler.title} tells {kind.sockets} sockets of one core, its default; {LSCPU}"
        return Told("1", said, change=True)
    if not kind.sockets:
        return Told("0", f"{scheduler.title} does not tell; {LSCPU}", change=True)
    return Told(str(kind.sockets), scheduler.told_by)


def nodes(scheduler: Scheduler, queue: Queue, kind: NodeKind) -> Told:
    """The nodes that a night measures at most."""
    if not kind.hosts:
        return Told("0", "nodes that a night may use", change=True)
    most = min(kind.usable, queue.most_nodes or kind.usable)
    if not most:
        said = f"nodes that a night may use; none of {len(kind.hosts)} is usable now"
        return Told("0", said, change=True)
    few = min(most, FEW_NODES)
    there = f"of {most} that a job can have ({scheduler.told_by})"
    return Told(str(few), f"{there}; write more to measure more" if few < most else there)


def switch(scheduler: Scheduler, kind: NodeKind) -> Told:
    """Nodes under one leaf switch; nothing for a node alone."""
    if len(kind.hosts) == 1:
        return Told("0", "")
    if count := scheduler.nodes_per_switch(kind.hosts):
        return Told(str(count), f"nodes under one leaf switch ({scheduler.switches_told_by})")
    said = f"nodes under one leaf switch; {scheduler.title} does not tell; 0 for not known"
    return Told("0", said, change=True)
