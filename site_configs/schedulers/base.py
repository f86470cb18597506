"""What a batch scheduler tells of its machine: queues, nodes, limits. It is asked; nothing is submitted.

What it does not tell is zero or empty, so that a person is asked for it; nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Standard output of a command. :raises ProbeError: if it fails.
Ask = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class NodeKind:
    """Nodes of one queue that are alike. Numbers are those of one node; 0 is not told."""

    hosts: tuple[str, ...]
    sockets: int = 0
    cores: int = 0  #: physical ones that a job may use, or as many as the scheduler counts
    hardware_threads: int = 0
    memory_bytes: int = 0
    reserved_cores: int = 0  #: kept for the operating system, not among ``cores``
    unusable: int = 0  #: of the hosts: down, drained or not answering
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
        """All of its nodes."""
        return frozenset(host for kind in self.kinds for host in kind.hosts)


@dataclass(frozen=True)
class Scheduler:
    """A batch scheduler as it answered."""

    title: str  #: what people call it
    backend: str  #: the name under which ReFrame knows how to talk to it
    told_by: str  #: the commands that were asked
    backends: tuple[str, ...] = ()  #: all names under which ReFrame knows how
    exclusive: tuple[
        str, ...
    ] = ()  #: options of a job alone on nodes of a queue, whose name replaces {}
    starts_processes: bool = False  #: whether it has a launcher of its own, which an MPI may need
    tells_cores: bool = (
        False  #: whether it tells physical cores, and not just how many CPUs it counts
    )
    cluster: str = ""
    queues: tuple[Queue, ...] = ()  #: all that take jobs
    switches: tuple[frozenset[str], ...] = ()  #: nodes under each leaf switch
    accounting: bool = True  #: whether it keeps account of jobs that are over
    mpi_types: tuple[str, ...] = ()  #: that the launcher of the scheduler can start
    notes: tuple[str, ...] = ()  #: what was not told or not understood, for people

    def nodes_per_switch(self, hosts: Sequence[str]) -> int:
        """Nodes that most leaf switches have of these; 0 where switches are not told."""
        chosen = frozenset(hosts)
        sizes = Counter(len(leaf & chosen) for leaf in self.switches if leaf & chosen)
        return max(sizes, key=lambda size: (sizes[size], size)) if sizes else 0

    def queue(self, name: str) -> Queue | None:
        """The queue of this name, if it is one of those that are kept."""
        return next((queue for queue in self.queues if queue.name == name), None)


def needed(queues: Sequence[Queue]) -> tuple[list[tuple[Queue, NodeKind]], dict[str, str]]:
    """Kinds of nodes that reach every node once, each in one queue; why other queues are not needed.

    The largest kinds come first; of several queues with the same nodes one of equal nodes, then the default
    one, then the one of the longest jobs.
    """
    order = sorted(
        ((queue, kind) for queue in queues for kind in queue.kinds),
        key=lambda each: (
            -len(each[1].hosts),
            len(each[0].kinds),
            not each[0].default,
            -limit(each[0]),
        ),
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
            left_out[queue.name] = (
                f"its nodes are also in {', '.join(there)}" if there else "has no nodes"
            )
    return sorted(kept, key=lambda each: queues.index(each[0])), left_out


def limit(queue: Queue) -> float:
    """The longest job of a queue in seconds; infinite for none."""
    return queue.seconds or float("inf")
