"""Process counts and layouts worth measuring on a partition, from its topology alone."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from site_configs.annotations import check_fields, from_least


class Layout(NamedTuple):
    """Processes and processes per node: node after node is filled, and the last one gets the rest."""

    processes: int
    per_node: int

    def __str__(self) -> str:
        return f"{self.processes}x{self.per_node}"

    @property
    def ranks_per_host(self) -> list[int]:
        """Ranks on each host, the fullest first."""
        full, rest = divmod(self.processes, self.per_node)
        return [self.per_node] * full + [rest] * bool(rest)


@dataclass(frozen=True)
class Topology:
    """The counts of a partition: cores are physical cores; a switch is the group of nodes under one leaf."""

    cores_per_node: Annotated[int, from_least(1)]
    sockets_per_node: Annotated[int, from_least(1)] = 1
    nodes: Annotated[int, from_least(1)] = 1
    nodes_per_switch: Annotated[int, from_least(0)] = 0  #: 0 if unknown
    #: Hardware threads of a core that a job may use. With two, kernels also run two ranks per core.
    threads_per_core: Annotated[int, from_least(1)] = 1

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def cores(self) -> int:
        return self.cores_per_node * self.nodes

    def boundaries(self) -> set[int]:
        """Return the process counts that fill a socket, a node, a switch and the partition."""
        node = self.cores_per_node
        return {node // self.sockets_per_node, node, node * self.nodes_per_switch, self.cores}


def list_process_counts(topology: Topology) -> list[int]:
    """List powers of two up to the partition, and k and k+1 at each boundary (Luecke et al. 2003, section 1).

    The cores of the partition are the limit: more processes measure the operating system's scheduler.
    """
    edges = topology.boundaries()
    counts = list_powers_of_two(topology.cores) | edges | {count + 1 for count in edges}
    return sorted(count for count in counts if 2 <= count <= topology.cores)


def list_boundary_counts(topology: Topology) -> list[int]:
    """List the counts at which Luecke et al. look for a step (2003, section 1), more than a night measures.

    These are powers of two and, from 48 on, the numbers halfway between them. In addition k and k+1 at the
    first two sockets and nodes, at the first eight switches, at each doubling of them from there on, and before
    the last switch.
    """
    node, cores = topology.cores_per_node, topology.cores
    switch = node * topology.nodes_per_switch
    edges = {unit * n for unit in (node // topology.sockets_per_node, node) for n in (1, 2)}
    edges |= {cores}
    if switch:
        edges |= {switch * n for n in (*range(1, 9), *list_powers_of_two(cores // switch))}
        edges.add((cores - 1) // switch * switch)
    powers = list_powers_of_two(cores)
    halfway = {3 * power // 2 for power in powers if power >= 32}
    counts = powers | halfway | edges | {count + 1 for count in edges}
    return sorted(count for count in counts if 2 <= count <= cores)


def list_powers_of_two(limit: int) -> set[int]:
    """List 2, 4, 8, ... up to the limit."""
    return {2**exponent for exponent in range(1, limit.bit_length())}


def layouts(topology: Topology) -> list[Layout]:
    """List the layouts: full nodes at every count of the ladder, half-full and single-process ones at fewer.

    Two processes on one node and on two are the pairs inside a node and between nodes; every layout of more
    than one node and more than one process per node mixes both.
    """
    cores = topology.cores_per_node
    full = {Layout(count, min(count, cores)) for count in list_process_counts(topology)}
    return sorted(full | list_sparse_layouts(topology, 1) | list_sparse_layouts(topology, cores // 2))


RANKS_PER_CORE = 2  #: ranks per core of a layout that uses hardware threads, as in Taboada et al.


def list_kernel_layouts(cores_per_node: int, nodes: int, threads_per_core: int = 1) -> list[Layout]:
    """List the layouts of application kernels on 1, 2, 4, ... and all nodes, with increasing density.

    There is one process, the basis of speed-ups; then 1 and 2 processes per node as in Taboada et al., half of
    the cores, and all; with hardware threads also two processes per core.
    """
    counts = {1, nodes} | list_powers_of_two(nodes)
    densities = {1, min(2, cores_per_node), max(1, cores_per_node // 2), cores_per_node}
    if threads_per_core >= RANKS_PER_CORE:
        densities.add(RANKS_PER_CORE * cores_per_node)
    return sorted(Layout(count * number, number) for count in counts for number in densities)


def list_sparse_layouts(topology: Topology, per_node: int) -> set[Layout]:
    """List layouts on several partly filled nodes: powers of two, all nodes, both sides of a switch."""
    switch = topology.nodes_per_switch
    nodes = list_powers_of_two(topology.nodes) | {topology.nodes, switch, switch + 1}
    counts = [count for count in nodes if 2 <= count <= topology.nodes]
    return {Layout(count * per_node, per_node) for count in counts} if per_node else set()
