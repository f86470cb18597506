"""Simulated machines with every cable drawn by hand, of which some are bad; and a site that has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

#: Of a good cable: bytes per second, and seconds.
BANDWIDTH, LATENCY = 1.25e9, 1e-6
Route = list[str]
SITE = """\
from site_configs.common import Topology, partition, site
from site_configs.simgrid import selector
from site_configs.topology.layouts import Layout

site_configuration = site(
    "drawn",
    description="Machines with bad cables",
    environments=[selector("mpich")],
    partitions=[
        partition(
            name,
            topology=Topology(1, nodes=nodes),
            layouts=[Layout(nodes, 1)],
            environments=["simgrid-mpich"],
            defaults={{"trials": 3, "cache": "warm"}},
            exact=True,
            env_vars=[["SMPI_PLATFORM", file]],
        )
        for name, (nodes, file) in {machines!r}.items()
    ],
)
"""


@dataclass(frozen=True)
class Network:
    """Nodes ``n0``, ``n1``, ..., and the cables between any two of them."""

    nodes: int
    routes: Mapping[tuple[int, int], Route]
    #: Share of the bandwidth that a cable has left, by its name.
    bad: Mapping[str, float] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Write the platform file."""
        cables = sorted({cable for route in self.routes.values() for cable in route})
        unknown = set(self.bad) - set(cables)
        assert not unknown, unknown
        lines = [f'<host id="n{node}" speed="1Gf"/>' for node in range(self.nodes)]
        lines += [
            f'<link id="{cable}" bandwidth="{BANDWIDTH * self.bad.get(cable, 1.0)}Bps" latency="{LATENCY}s"/>'
            for cable in cables
        ]
        for (a, b), route in self.routes.items():
            passed = "".join(f'<link_ctn id="{cable}"/>' for cable in route)
            lines.append(f'<route src="n{a}" dst="n{b}" symmetrical="NO">{passed}</route>')
        head = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        body = "\n".join(lines)
        path.write_text(
            f'{head}<platform version="4.1"><zone id="all" routing="Full">\n{body}\n</zone></platform>\n'
        )
        return path


def pairs(nodes: int) -> list[tuple[int, int]]:
    """All pairs in both directions."""
    return [(a, b) for a, b in product(range(nodes), repeat=2) if a != b]


def star(nodes: int, bad: Mapping[str, float]) -> Network:
    """One switch; the cable of node 3 is ``c3``."""
    return Network(nodes, {(a, b): [f"c{a}", f"c{b}"] for a, b in pairs(nodes)}, bad)


def direct(nodes: int, bad: Mapping[str, float]) -> Network:
    """A cable between every two nodes, ``d2-5`` between 2 and 5."""
    routes = {(a, b): [f"d{min(a, b)}-{max(a, b)}"] for a, b in pairs(nodes)}
    return Network(nodes, routes, bad)


def groups(nodes: int, each: int, bad: Mapping[str, float]) -> Network:
    """A dragonfly in small: a switch for a group of nodes, and a cable ``g1-2`` between any two groups."""
    routes = {}
    for a, b in pairs(nodes):
        first, last = sorted((a // each, b // each))
        between = [f"g{first}-{last}"] if first != last else []
        routes[a, b] = [f"c{a}", *between, f"c{b}"]
    return Network(nodes, routes, bad)


def write_site(directory: Path, machines: Mapping[str, Network]) -> Path:
    """Write the platforms and the site file that has a partition for each; the path of the site file."""
    return write_partitions(
        directory,
        {name: (network.nodes, network.write(directory / f"{name}.xml")) for name, network in machines.items()},
    )


def write_partitions(directory: Path, partitions: Mapping[str, tuple[int, Path]]) -> Path:
    """Write a site file whose partitions are so many nodes of a platform; its path."""
    machines = {name: (nodes, str(file)) for name, (nodes, file) in partitions.items()}
    path = directory / "drawn.py"
    path.write_text(SITE.format(machines=machines))
    return path
