"""What a batch scheduler is, what it tells of its machine, how a job ended, and how ranks are bound to threads.

What it does not tell is zero or empty, so that a person is asked for it; nothing is guessed. Each scheduler is
a subclass of :class:`Scheduler` in a module of its name, entered in ``registry.SCHEDULERS``. All other code
asks it, and decides nothing by a name.

Slurm's and Cray's own launchers, as :mod:`site_configs.schedulers` registers them, are told by the job itself
(``num_tasks_per_core``), and say so (``binds_to_threads``).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path, PurePath

from postprocess.base.records import read_record
from site_configs.mpi.family import Mpi

#: Standard output of a command. :raises ProbeError: if it fails.
Ask = Callable[[Sequence[str]], str]
CRAY = "Cray's programming environment"  #: the origin of its MPI
PALS = "pals"  #: Cray's launcher


@dataclass(frozen=True)
class Pairing:
    """A launcher as a site file has it, and why."""

    launcher: str | tuple[str, ...]  #: a registered name, or the words that start a launch line
    why: str


def choose_own_launcher(mpi: Mpi) -> Pairing:
    if mpi.family == "cray-mpich":
        return Pairing(PALS, "Cray's PALS, which takes the processes per node by itself")
    return Pairing((program(mpi, "mpiexec"),), "the MPI's own launcher")


def program(mpi: Mpi, name: str) -> str:
    """Return a launcher of an MPI: found once its module is loaded, else by absolute path.

    It has the suffix that Debian gives to an alternative (``mpirun.openmpi``).
    """
    own = Path(mpi.mpiexec)
    return name if mpi.module else str(own.with_name(own.name.replace("mpiexec", name, 1)))


@dataclass(frozen=True)
class NodeKind:
    """Equal nodes of one queue. Numbers are of one node; 0 if unknown."""

    hosts: tuple[str, ...]
    sockets: int = 0
    cores: int = 0  #: physical ones that a job may use, or as many as the scheduler counts
    hardware_threads: int = 0
    threads_per_core: int = 0
    memory_bytes: int = 0
    reserved_cores: int = 0  #: kept for the operating system, not among ``cores``
    unusable: int = 0  #: of the hosts: down, drained or not answering
    gpus: tuple[str, ...] = ()  #: the name of each, empty where the scheduler counts them only
    option: str = ""  #: selects this kind among those of its queue; empty if nothing does

    @property
    def usable(self) -> int:
        """Nodes on which a job could run today or soon."""
        return len(self.hosts) - self.unusable


@dataclass(frozen=True)
class Queue:
    """A queue, or partition, that takes jobs."""

    name: str
    kinds: tuple[NodeKind, ...]
    default: bool = False
    seconds: int = 0  #: longest job; 0 for no limit, or none told
    most_nodes: int = 0  #: of one job; 0 for no limit, or none told

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(host for kind in self.kinds for host in kind.hosts)


class QueueError(Exception):
    """One line: a scheduler does not tell which jobs it has, or does not cancel one."""


@dataclass(frozen=True)
class UsableNodes:
    """The nodes on which a partition's jobs can run today or soon."""

    count: int
    why: str  #: names, states and reasons of the others; empty if there are none
    away: int = 0  #: number of the others


@dataclass(frozen=True)
class RefusedOption:
    option: str  #: as in the site file; empty where the job is refused, and no option of it alone
    said: str  #: what the scheduler says, in one line


NAMED = 4  #: nodes that a reason names before it only counts them


def describe_nodes(shown: Sequence[str]) -> str:
    """Describe nodes that are not usable: the first ones, and how many more there are."""
    return ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if shown[NAMED:] else "")


@dataclass(frozen=True)
class OwnJob:
    number: str  #: as the scheduler writes it
    state: str  #: in the scheduler's word
    directory: Path  #: from which it was submitted
    active: bool  #: whether it is not over and not about to be


@dataclass(frozen=True)
class Scheduler:
    """A batch scheduler: what is the same of every one, and what that of this machine answered.

    A subclass gives at least ``title``, ``backend``, ``backends``, ``command``, ``exclusive`` and ``read``.
    What it leaves out is not known of it, and the rest of Plumbline does without.
    """

    title: str = ""  #: what people call it
    backend: str = ""  #: the name under which ReFrame knows how to talk to it
    backends: tuple[str, ...] = ()  #: all names under which ReFrame knows how
    #: names that are registered with ReFrame, as a site file writes them: ``("pals", "pbs.PALS")``
    site_names: tuple[tuple[str, str], ...] = ()
    command: str = ""  #: the program that gives it away on a machine
    query_commands: str = ""  #: the commands that are asked
    switch_command: str = ""  #: the command that tells of switches
    batch: bool = True  #: whether jobs wait in queues
    #: options of a job alone on its nodes; a queue's name replaces {}
    exclusive: tuple[str, ...] = ()
    queue_option: str = r"-q\s*"  #: regular expression of what stands before a queue's name
    #: option of a job that must not run on some nodes, whose names replace {}; empty if it has none
    exclude_option: str = ""
    #: option of a job that must run on some nodes, whose names replace {}; empty if it has none
    include_option: str = ""
    #: whether it tells physical cores, and not how many CPUs it counts
    reports_physical_cores: bool = False
    #: beginnings of variables with which a user chooses what its commands show
    user_choices: tuple[str, ...] = ()
    #: whose limits (ulimit) jobs have, in words; empty where that is not known
    limits_of_jobs: str = ""
    #: variables that its commands must have here, with values: they choose the machine
    asking: tuple[tuple[str, str], ...] = ()
    limit_words: str = ""  #: on standard error of a job that it ended at its time limit
    mark: str = ""  #: file in a session's directory that tells that the session sent jobs to it
    list_jobs_command: str = ""  #: the command with which a user sees the own jobs
    cluster: str = ""
    queues: tuple[Queue, ...] = ()  #: all that take jobs
    switches: tuple[frozenset[str], ...] = ()  #: nodes under each leaf switch
    accounting: bool = True  #: whether it keeps account of jobs that are over
    mpi_types: tuple[str, ...] = ()  #: that the launcher of the scheduler can start
    notes: tuple[str, ...] = ()  #: what was not told or not understood, for people

    def read(self, ask: Ask) -> Scheduler:
        """Return this scheduler with the facts that this machine's commands tell.

        :raises ProbeError: if it does not answer.
        :raises ValueError: if nothing of its answer is understood.
        """
        raise NotImplementedError(f"{self.title}: a scheduler that has a command must be read")

    def choose_launcher(self, mpi: Mpi) -> Pairing:
        """Choose the launcher with which an MPI's processes find each other inside a job."""
        return choose_own_launcher(mpi)

    def find_backend_fault(self, backend: str) -> str:
        """Find what is wrong with a backend for this scheduler, and what to write; empty if it will do."""
        if backend in self.backends:
            return ""
        fix = f"this machine has {self.title}: write {self.backend!r}"
        return f"{backend!r} is not {' or '.join(map(repr, self.backends))}; {fix}"

    def sockets_are_known(self, kind: NodeKind) -> bool:
        """Return whether the numbers of sockets are real; an unconfigured scheduler may count a CPU as one."""
        return not (kind.sockets == kind.hardware_threads and kind.sockets > 1)

    def exclude_nodes(self, hosts: Sequence[str], backend: str) -> list[str]:
        """Return the options that keep a job off these nodes; none if the backend has no such option."""
        if not self.exclude_option or backend != self.backend:
            return []
        return [self.exclude_option.format(",".join(hosts))]

    def include_nodes(self, hosts: Sequence[str], backend: str) -> list[str]:
        """Return the options that send a job to these nodes; none if the backend has no such option."""
        if not self.include_option or backend != self.backend:
            return []
        return [self.include_option.format(",".join(hosts))]

    def find_queue_name(self, options: Iterable[str]) -> str:
        """Find the queue that options of a job name, the last one first; empty if none is named."""
        found = (re.match(rf"(?:{self.queue_option})(?P<name>[^\s,@]+)", option) for option in options)
        return ([""] + [match["name"] for match in found if match])[-1]

    def choose_machine(self, environment: Mapping[str, str]) -> Scheduler:
        """Return this scheduler with the machine that the user's shell chooses, if it can choose one.

        :raises ValueError: if the choice is none that a site file can have; one line.
        """
        return self

    def find_choice(self, access: Sequence[str]) -> dict[str, str]:
        """Find the machine that options of a job name, as the variables with which a shell would choose it."""
        return {}

    def find_shell_faults(self, environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
        """Find the variables of a shell that would send jobs elsewhere than the options of a site file say."""
        yield from ()

    def count_usable_nodes(self, access: Sequence[str]) -> UsableNodes | None:
        """Count the nodes that jobs with these options can use today or soon; None if that is not known.

        Nodes that other jobs have now are usable. At least as many are counted as there are.
        """
        return None

    def find_refused_options(self, access: Sequence[str]) -> Iterator[RefusedOption]:
        """Find the options of a job that the scheduler refuses; it is asked, and no job is sent."""
        yield from ()

    def list_own_jobs(self, marks: Iterable[str] = ()) -> Sequence[OwnJob]:
        """Return every job of this user. Only a scheduler with a ``mark`` is asked.

        :param marks: what the backend wrote into the marks of the sessions
        :raises QueueError: if it does not tell.
        """
        raise NotImplementedError(f"{self.title}: a scheduler that leaves a mark must list jobs")

    def cancel(self, numbers: Iterable[str]) -> None:
        """Cancel jobs. One that is over already is no error. Only a scheduler with a ``mark`` is asked.

        :raises QueueError: if it does not do it.
        """
        raise NotImplementedError(f"{self.title}: a scheduler that leaves a mark must cancel jobs")

    def nodes_per_switch(self, hosts: Sequence[str]) -> int:
        """Return how many of these nodes most leaf switches have; 0 where switches are unknown."""
        chosen = frozenset(hosts)
        sizes = Counter(len(leaf & chosen) for leaf in self.switches if leaf & chosen)
        return max(sizes, key=lambda size: (sizes[size], size)) if sizes else 0

    def queue(self, name: str) -> Queue | None:
        """Return the queue of this name, if it is one of those that are kept."""
        return next((queue for queue in self.queues if queue.name == name), None)


def select_needed_kinds(queues: Sequence[Queue]) -> tuple[list[tuple[Queue, NodeKind]], dict[str, str]]:
    """Select kinds of nodes, each in one queue, that cover every node; tell why other queues are not needed.

    The largest kinds come first; of several queues with the same nodes one of equal nodes, then the default
    one, then the one of the longest jobs.
    """
    order = sorted(
        ((queue, kind) for queue in queues for kind in queue.kinds),
        key=lambda each: (-len(each[1].hosts), len(each[0].kinds), not each[0].default, -limit(each[0])),
    )
    kept: list[tuple[Queue, NodeKind]] = []
    reached: frozenset[str] = frozenset()
    for queue, kind in order:
        if not reached.issuperset(kind.hosts):
            kept.append((queue, kind))
            reached |= frozenset(kind.hosts)
    names = {queue.name for queue, _ in kept}
    left_out = {}
    for queue in queues:
        if queue.name not in names:
            there = {each.name: None for each, kind in kept if queue.hosts & set(kind.hosts)}
            left_out[queue.name] = f"its nodes are also in {', '.join(there)}" if there else "has no nodes"
    return sorted(kept, key=lambda each: queues.index(each[0])), left_out


def limit(queue: Queue) -> float:
    """Return the longest job of a queue in seconds; infinite for none."""
    return queue.seconds or float("inf")


#: Words of a launch line that say already where ranks go.
PLACING = ("bind-to", "map-by", "cpu-bind", "rankfile", "cpu-set", "binding", "bind")


@dataclass(frozen=True)
class ThreadBinding:
    """What is added to a launch: options behind the launcher's words, and variables."""

    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


#: By family of an MPI, of its own ``mpiexec``. Open MPI counts hardware threads as slots only if it is told to.
BY_FAMILY = {
    "openmpi": ThreadBinding(("--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread")),
    "mpich": ThreadBinding(("-bind-to", "hwthread")),
    "intel-mpi": ThreadBinding(
        variables={"I_MPI_PIN": "1", "I_MPI_PIN_CELL": "unit", "I_MPI_PIN_DOMAIN": "1:compact"}
    ),
}


def find_thread_binding(family: str, launcher: str | Sequence[str]) -> ThreadBinding:
    """Find what binds the ranks of a launch to hardware threads.

    :param launcher: name of one of ReFrame's launchers, or the words that start a launch line; empty for the
        ``mpiexec`` of the environment
    :raises ValueError: saying in one line why nothing is known that does it
    """
    if isinstance(launcher, str) and launcher:
        if is_told_by_job(launcher):
            return ThreadBinding()
        if launcher == "srun":
            return ThreadBinding(("--cpu-bind=threads",))
        raise ValueError(f"it is not known how {launcher} binds ranks to hardware threads")
    words = [PurePath(word).name for word in launcher]
    options = [word for word in words if word.startswith("-")]
    if own := [word for word in options if word.lstrip("-").partition("=")[0] in PLACING]:
        raise ValueError(f"the launcher of the site file says itself where ranks go: {own[0]}")
    if family not in BY_FAMILY or "srun" in words:
        raise ValueError(f"it is not known how the launcher of {family} binds ranks to hardware threads")
    return BY_FAMILY[family]


def is_told_by_job(launcher: str) -> bool:
    """Return whether a launcher of ReFrame's binds to hardware threads where a job has several ranks a core."""
    from reframe.core.backends import getlauncher  # takes long to import, and only a site file needs it
    from reframe.core.exceptions import ConfigError

    try:
        return bool(getattr(getlauncher(launcher), "binds_to_threads", False))
    except ConfigError:
        return False


#: In the directory of a job that was given up. The name is that of the first backend that wrote one.
ENDED = "slurm_ended.json"
#: Begins a line of a backend on standard output that tells of a job that waits, for people.
WAITS = "plumbline: waiting: "


class Ending(str, Enum):
    """How a job ended that did not end by itself, where that decides the verdict."""

    NEVER_STARTED = "never-started"
    TIMED_OUT = "timed-out"
    TAKEN_AWAY = "taken-away"  #: its nodes were, while it ran


@dataclass(frozen=True)
class Ended:
    """How a job ended, for programs; and why, for people."""

    how: Ending
    reason: str


def write_ended(directory: Path, ended: Ended) -> None:
    """Keep how a job of this directory ended. Where that cannot be written, its launch counts as crashed."""
    with suppress(OSError):
        (directory / ENDED).write_text(json.dumps(asdict(ended)))


def read_ended(directory: Path) -> Ended | None:
    """Read how the job of a directory ended; None if that is not told."""
    try:
        return read_record(directory / ENDED, Ended)
    except (OSError, ValueError):
        return None
