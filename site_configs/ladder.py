"""Process counts worth measuring on a partition, from its topology alone."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Topology:
    """A partition as counts: cores are physical cores; a switch is the group of nodes under one leaf."""

    cores_per_node: int
    sockets_per_node: int = 1
    nodes: int = 1
    nodes_per_switch: int = 0  #: 0 where it is not known

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 0 if field.name == "nodes_per_switch" else 1
            value = getattr(self, field.name)
            if not isinstance(value, int):
                raise ValueError(f"Topology: {field.name}: {value!r}: write a whole number")
            if value < least:
                raise ValueError(f"Topology: {field.name}: write {least} or more")

    @property
    def cores(self) -> int:
        """Cores of the whole partition."""
        return self.cores_per_node * self.nodes

    def boundaries(self) -> set[int]:
        """Processes that fill a socket, a node, a switch and the partition."""
        node = self.cores_per_node
        return {node // self.sockets_per_node, node, node * self.nodes_per_switch, self.cores}


def process_ladder(topology: Topology, most: int | None = None) -> list[int]:
    """Powers of two up to the partition, and k and k+1 at each boundary (Luecke et al. 2003, section 2).

    :param most: largest count; the cores of the partition by default, since more processes than cores
        measure the operating system's scheduler.
    """
    limit = topology.cores if most is None else most
    powers = {2**exponent for exponent in range(1, limit.bit_length() + 1)}
    edges = topology.boundaries()
    counts = powers | edges | {count + 1 for count in edges}
    return sorted(count for count in counts if 2 <= count <= limit)
