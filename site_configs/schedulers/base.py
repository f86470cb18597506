"""Batch schedulers: their facts of a machine, the ends of jobs, and the binding of ranks to threads.

Facts that a scheduler does not report are zero or empty, so that a person is asked for them; nothing is
guessed. Each scheduler is a subclass of :class:`Scheduler` in its own module, with its instances in
``SCHEDULERS``. All other code asks these objects, and decides nothing by name.

Slurm's and Cray's own launchers (:mod:`site_configs.slurm`, :mod:`site_configs.pbs`) read the binding from the
job (``num_tasks_per_core``); ``binds_to_threads`` marks them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path, PurePath

from postprocess.base.records import read_record
from site_configs.families import ThreadBinding, find_family
from site_configs.mpi.family import Mpi

#: Returns the standard output of a command. :raises ProbeError: if it fails.
Ask = Callable[[Sequence[str]], str]
CRAY = "Cray's programming environment"  #: the origin of its MPI
PALS = "pals"  #: Cray's launcher


@dataclass(frozen=True)
class Pairing:
    """A launcher as written in a site file, and why."""

    launcher: str | tuple[str, ...]  #: a registered name, or the words that start a launch line
    why: str


def choose_own_launcher(mpi: Mpi) -> Pairing:
    launcher, why = find_family(mpi.family).launcher
    return Pairing(launcher or (program(mpi, "mpiexec"),), why)


def program(mpi: Mpi, name: str) -> str:
    """Return a launcher of an MPI: by name if a module puts it on PATH, else by absolute path.

    It has the suffix that Debian gives to an alternative (``mpirun.openmpi``).
    """
    mpiexec = Path(mpi.mpiexec)
    return name if mpi.module else str(mpiexec.with_name(mpiexec.name.replace("mpiexec", name, 1)))


@dataclass(frozen=True)
class NodeKind:
    """Equal nodes of one queue. Numbers are per node; 0 if unknown."""

    hosts: tuple[str, ...]
    sockets: int = 0
    cores: int = 0  #: physical cores that a job may use, or as many as the scheduler counts
    hardware_threads: int = 0
    threads_per_core: int = 0
    memory_bytes: int = 0
    reserved_cores: int = 0  #: kept for the operating system, not in ``cores``
    unusable: int = 0  #: number of hosts that are down, drained or not answering
    gpus: tuple[str, ...] = ()  #: their names, empty if the scheduler only counts them
    option: str = ""  #: selects this kind among those of its queue; empty if nothing does

    @property
    def usable(self) -> int:
        """Number of nodes on which a job could run today or soon."""
        return len(self.hosts) - self.unusable


@dataclass(frozen=True)
class Queue:
    """A queue, or partition, that accepts jobs."""

    name: str
    kinds: tuple[NodeKind, ...]
    default: bool = False
    seconds: int = 0  #: longest job; 0 if unlimited or unknown
    most_nodes: int = 0  #: most nodes of one job; 0 if unlimited or unknown

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(host for kind in self.kinds for host in kind.hosts)


class QueueError(Exception):
    """A scheduler does not list its jobs, or does not cancel one, in one line."""


@dataclass(frozen=True)
class UsableNodes:
    """The nodes on which a partition's jobs can run today or soon."""

    count: int
    why: str  #: names, states and reasons of the other nodes; empty if there are none
    away: int = 0  #: number of the other nodes


@dataclass(frozen=True)
class RefusedOption:
    option: str  #: option of the site file; empty if the job is refused for no single option
    said: str  #: the scheduler's message, on one line


NAMED = 4  #: nodes that a reason lists before it counts the rest


def describe_nodes(shown: Sequence[str]) -> str:
    """Describe nodes that are not usable: the first few, and the number of the others."""
    return ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if shown[NAMED:] else "")


@dataclass(frozen=True)
class OwnJob:
    number: str  #: number as the scheduler writes it
    state: str  #: state in the scheduler's terms
    directory: Path  #: directory from which it was submitted
    active: bool  #: whether it is neither over nor about to end


@dataclass(frozen=True)
class Scheduler:
    """A batch scheduler: its properties, and what that of this machine answered.

    A subclass defines at least ``title``, ``backend``, ``backends``, ``command``, ``exclusive`` and ``read``.
    Plumbline does without anything else that is not defined.
    """

    title: str = ""  #: name for people
    backend: str = ""  #: ReFrame's name of its backend
    backends: tuple[str, ...] = ()  #: all of ReFrame's names for its backends
    #: names registered with ReFrame, with their spelling in a site file: ``("pals", "pbs.PALS")``
    site_names: tuple[tuple[str, str], ...] = ()
    command: str = ""  #: the program that reveals it on a machine
    asked: int = 9  #: place in the order of detection: Slurm has substitutes for the commands of PBS
    query_commands: str = ""  #: the commands that are asked
    switch_command: str = ""  #: the command that lists switches
    batch: bool = True  #: whether jobs wait in queues
    #: options of a job with exclusive nodes; a queue's name replaces {}
    exclusive: tuple[str, ...] = ()
    queue_option: str = r"-q\s*"  #: regular expression of the option before a queue's name
    #: option that keeps a job off some nodes, whose names replace {}; empty if it has none
    exclude_option: str = ""
    #: option that sends a job to some nodes, whose names replace {}; empty if it has none
    include_option: str = ""
    #: whether it reports physical cores, not just CPUs
    reports_physical_cores: bool = False
    #: beginnings of variables with which a user chooses what its commands show
    user_choices: tuple[str, ...] = ()
    #: whose limits (ulimit) jobs have, in words; empty if unknown
    limits_of_jobs: str = ""
    #: variables, with values, that its commands need because they choose the machine
    asking: tuple[tuple[str, str], ...] = ()
    limit_words: str = ""  #: words in the standard error of a job that it ended at its time limit
    mark: str = ""  #: file in a session's directory which shows that the session sent jobs to it
    list_jobs_command: str = ""  #: the command with which users see their jobs
    cluster: str = ""
    queues: tuple[Queue, ...] = ()  #: all that accept jobs
    switches: tuple[frozenset[str], ...] = ()  #: nodes under each leaf switch
    accounting: bool = True  #: whether it keeps records of finished jobs
    mpi_types: tuple[str, ...] = ()  #: MPI types that its launcher can start
    notes: tuple[str, ...] = ()  #: what was unknown or not understood, for people

    def read(self, ask: Ask) -> Scheduler:
        """Return this scheduler with the facts from this machine's commands.

        :raises ProbeError: if it does not answer.
        :raises ValueError: if nothing of its answer is understood.
        """
        raise NotImplementedError(f"{self.title}: a scheduler that has a command must be read")

    def choose_launcher(self, mpi: Mpi) -> Pairing:
        """Choose the launcher with which an MPI's processes find each other inside a job."""
        return choose_own_launcher(mpi)

    def find_backend_fault(self, backend: str) -> str:
        """Explain why a backend does not fit this scheduler, with the fix; empty if it fits."""
        if backend in self.backends:
            return ""
        fix = f"this machine has {self.title}: write {self.backend!r}"
        return f"{backend!r} is not {' or '.join(map(repr, self.backends))}; {fix}"

    def sockets_are_known(self, kind: NodeKind) -> bool:
        """Return whether the number of sockets is real; an unconfigured scheduler may count each CPU as one."""
        return not (kind.sockets == kind.hardware_threads and kind.sockets > 1)

    def exclude_nodes(self, hosts: Sequence[str], backend: str) -> list[str]:
        """Return the options that keep a job off these nodes; empty if the backend has no such option."""
        if not self.exclude_option or backend != self.backend:
            return []
        return [self.exclude_option.format(",".join(hosts))]

    def include_nodes(self, hosts: Sequence[str], backend: str) -> list[str]:
        """Return the options that send a job to these nodes; empty if the backend has no such option."""
        if not self.include_option or backend != self.backend:
            return []
        return [self.include_option.format(",".join(hosts))]

    def find_queue_name(self, options: Iterable[str]) -> str:
        """Find the queue in the options of a job, where the last one counts; empty if there is none."""
        matches = (re.match(rf"(?:{self.queue_option})(?P<name>[^\s,@]+)", option) for option in options)
        return ([""] + [match["name"] for match in matches if match])[-1]

    def choose_machine(self, environment: Mapping[str, str]) -> Scheduler:
        """Return this scheduler for the machine that the user's shell chooses, if it can choose one.

        :raises ValueError: if a site file cannot have the choice; one line.
        """
        return self

    def find_choice(self, access: Sequence[str]) -> dict[str, str]:
        """Return the machine in the options of a job, as the variables with which a shell would choose it."""
        return {}

    def find_shell_faults(self, environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
        """Find variables of a shell that would send jobs elsewhere than the options of a site file."""
        yield from ()

    def count_usable_nodes(self, access: Sequence[str]) -> UsableNodes | None:
        """Count the nodes that jobs with these options can use today or soon; None if unknown.

        Nodes that other jobs use now are usable. The count may be too high, but not too low.
        """
        return None

    def find_refused_options(self, access: Sequence[str]) -> Iterator[RefusedOption]:
        """Find the options of a job that the scheduler refuses, by asking it without sending a job."""
        yield from ()

    def list_own_jobs(self, marks: Iterable[str] = ()) -> Sequence[OwnJob]:
        """Return all jobs of this user. Only a scheduler with a ``mark`` is asked.

        :param marks: what the backend wrote into the marks of the sessions
        :raises QueueError: if it does not list them.
        """
        raise NotImplementedError(f"{self.title}: a scheduler that leaves a mark must list jobs")

    def cancel(self, numbers: Iterable[str]) -> None:
        """Cancel jobs. A finished one is no error. Only a scheduler with a ``mark`` is asked.

        :raises QueueError: if it does not cancel them.
        """
        raise NotImplementedError(f"{self.title}: a scheduler that leaves a mark must cancel jobs")

    def nodes_per_switch(self, hosts: Sequence[str]) -> int:
        """Return how many of these nodes most leaf switches have; 0 if switches are unknown."""
        chosen = frozenset(hosts)
        sizes = Counter(len(leaf & chosen) for leaf in self.switches if leaf & chosen)
        return max(sizes, key=lambda size: (sizes[size], size)) if sizes else 0

    def queue(self, name: str) -> Queue | None:
        """Return the queue with this name, if it is among those kept."""
        return next((queue for queue in self.queues if queue.name == name), None)


def select_needed_kinds(queues: Sequence[Queue]) -> tuple[list[tuple[Queue, NodeKind]], dict[str, str]]:
    """Select kinds of nodes, each in one queue, that cover every node; explain the omission of other queues.

    The largest kinds come first. Among queues with the same nodes, one with equal nodes is preferred, then the
    default one, then the one with the longest jobs.
    """
    order = sorted(
        ((queue, kind) for queue in queues for kind in queue.kinds),
        key=lambda pair: (-len(pair[1].hosts), len(pair[0].kinds), not pair[0].default, -limit(pair[0])),
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
            there = {covering.name: None for covering, kind in kept if queue.hosts & set(kind.hosts)}
            left_out[queue.name] = f"its nodes are also in {', '.join(there)}" if there else "has no nodes"
    return sorted(kept, key=lambda pair: queues.index(pair[0])), left_out


def limit(queue: Queue) -> float:
    """Return the longest job of a queue in seconds; infinite if unlimited."""
    return queue.seconds or float("inf")


#: Words of a launch line that already decide where ranks go.
PLACING = ("bind-to", "map-by", "cpu-bind", "rankfile", "cpu-set", "binding", "bind")


def find_thread_binding(family: str, launcher: str | Sequence[str]) -> ThreadBinding:
    """Find the binding of a launch's ranks to hardware threads.

    :param launcher: name of one of ReFrame's launchers, or the words that start a launch line; empty for the
    ``mpiexec`` of the environment
    :raises ValueError: says in one line why no binding is known
    """
    if isinstance(launcher, str) and launcher:
        if is_told_by_job(launcher):
            return ThreadBinding()
        if launcher == "srun":
            return ThreadBinding(("--cpu-bind=threads",))
        raise ValueError(f"it is not known how {launcher} binds ranks to hardware threads")
    words = [PurePath(word).name for word in launcher]
    options = [word for word in words if word.startswith("-")]
    if placing := [word for word in options if word.lstrip("-").partition("=")[0] in PLACING]:
        raise ValueError(f"the launcher of the site file says itself where ranks go: {placing[0]}")
    binding = find_family(family).threads
    if binding is None or "srun" in words:
        raise ValueError(f"it is not known how the launcher of {family} binds ranks to hardware threads")
    return binding


def is_told_by_job(launcher: str) -> bool:
    """Return whether a ReFrame launcher binds to hardware threads if a job has several ranks per core."""
    from reframe.core.backends import getlauncher  # slow to import, and only a site file needs it
    from reframe.core.exceptions import ConfigError

    try:
        return bool(getattr(getlauncher(launcher), "binds_to_threads", False))
    except ConfigError:
        return False


#: In the directory of a job that was given up. The name comes from the first backend that wrote one.
ENDED = "slurm_ended.json"
#: Begins a line of a backend on standard output about a job that waits, for people.
WAITS = "plumbline: waiting: "


class Ending(str, Enum):
    """How a job ended if not by itself, where that decides the verdict."""

    NEVER_STARTED = "never-started"
    TIMED_OUT = "timed-out"
    TAKEN_AWAY = "taken-away"  #: its nodes were taken away while it ran


@dataclass(frozen=True)
class Ended:
    """How a job ended, for programs, and why, for people."""

    how: Ending
    reason: str


def write_ended(directory: Path, ended: Ended) -> None:
    """Record how the job of this directory ended. If that fails, its launch counts as crashed."""
    with suppress(OSError):
        (directory / ENDED).write_text(json.dumps(asdict(ended)))


def read_ended(directory: Path) -> Ended | None:
    """Read how the job of a directory ended; None if not recorded."""
    try:
        return read_record(directory / ENDED, Ended)
    except (OSError, ValueError):
        return None
