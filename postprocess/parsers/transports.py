"""Read the transports of a verbose MPI by class of pairs: within a node, and between nodes.

The lines are the libraries' own. What no line states is unknown, and never taken to be fine.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from site_configs.schema.transports import KERNEL, ExpectedTransport

#: Variables that make a library print its transports; other libraries ignore them.
VERBOSE: Mapping[str, str] = {
    "UCX_LOG_LEVEL": "info",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "I_MPI_DEBUG": "5",
    "OMPI_MCA_pml_base_verbose": "10",
    "OMPI_MCA_btl_base_verbose": "10",
    "OMPI_MCA_mtl_base_verbose": "10",
}
#: Facts by name, with the pattern of the library's line. If a fact occurs several times, all values count.
TOLD: Mapping[str, str] = {
    "UCX version": r"UCX  (?:INFO +Version|WARN +UCP API version is incompatible: .*?, actual) (\S+)",
    "UCX inside a node": r"UCX  INFO .*\bintra-node cfg#\d+ (tag\(.*?\))",
    "UCX between nodes": r"UCX  INFO .*\binter-node cfg#\d+ (tag\(.*?\))",
    "Open MPI's layer of messages (pml)": r"select: component (\w+) selected",
    "Open MPI's transports (btl)": r"mca: bml: Using (\w+) btl for send to",
    "libfabric version": r"MPI startup\(\): libfabric version: (\S+)",
    "libfabric provider": r"(?:MPI startup\(\): libfabric |^)provider: ([\w;]+)",
    "Intel MPI's tuning": r"MPI startup\(\): Load tuning file: \".*/([^/]+)\"",
}
UCX = re.compile(r"UCX  INFO .*\b(intra|inter)-node cfg#\d+ tag\((.*?)\)")
OPEN_MPI = re.compile(r"\[([^\s:]+):\d+\] mca: bml: Using (\w+) btl for send to \S+ on node (\S+)")
#: Lines that name the provider in use, not one that was merely found.
PROVIDER = re.compile(r"(?:^|MPI startup\(\): )libfabric provider: ([\w;]+)")
OPEN_MPI_PROVIDER = re.compile(r"mtl:ofi:prov: ([\w;]+)")
INTEL_FABRIC = re.compile(r"MPI startup\(\): Load tuning file: \".*_(shm-ofi|shm|ofi)\.dat\"")
#: What MPICH on UCX prints. Its messages within a node use its own shared memory, which it does not report;
#: UCX's line on such pairs is about endpoints that carry none of them.
OWN_MEMORY = "==== UCX netmod Capability ===="
MOST_LETTERS = 200  #: longest quotation of a line
STAMP = re.compile(r"^\[[\d.]+\] \[\S+\] +\S+ +")  #: time stamp of UCX; it differs between processes
CLASSES = {"intra": "node", "inter": "network"}
TCP = re.compile(r"tcp\b.*|sockets")  #: also below another protocol, as ``tcp;ofi_rxm``
COPYING = ("cma", "knem")  #: transports of UCX for large messages only
WORDS = {"node": "in a node", "network": "between nodes"}  #: names of the classes of pairs


@dataclass(frozen=True)
class TransportPath:
    """The transports of a class of pairs, as one line of a library states them."""

    pairs: str  #: ``node`` or ``network``
    layer: str  #: ``ucx``, ``libfabric``, ``openmpi``, ``intel-mpi`` or ``kernel``
    transports: tuple[str, ...]  #: those that carry messages
    rails: int  #: devices that UCX names; 1 if none are named
    line: str  #: the library's line

    @property
    def is_tcp(self) -> bool:
        """Whether messages use TCP: all of them, or all but large ones, which are copied."""
        carrying = [name for name in self.transports if name not in COPYING]
        return bool(carrying) and all(TCP.fullmatch(name) for name in carrying)

    def __str__(self) -> str:
        rails = f" on {self.rails} rails" if self.rails > 1 else ""
        return f"{self.layer}:{'+'.join(self.transports)}{rails}"


def read_transports(output: str) -> dict[str, str]:
    """Read the transports that a verbose launch printed, by name; empty if its library prints none.

    :param output: output of all processes, which may repeat each other
    """
    facts = {}
    for name, pattern in TOLD.items():
        if values := sorted(set(re.findall(pattern, output, re.MULTILINE))):
            facts[name] = ", ".join(values)
    return facts


def read_paths(output: str) -> list[TransportPath]:
    """Read the transports of each class of pairs; distinct ones only, with their first lines."""
    lines = output.splitlines()
    fabrics = {match[1] for line in lines if (match := INTEL_FABRIC.search(line))}
    paths = [path for line in lines for path in read_line(line, fabrics)]
    if OWN_MEMORY in lines:
        paths = [path for path in paths if (path.pairs, path.layer) != ("node", "ucx")]
    return list({(path.pairs, str(path)): path for path in reversed(paths)}.values())[::-1]


#: Packets of rank 0 over TCP from which on its messages went there. The cheapest launch of two ranks sends at
#: least 60; on other transports there are none, and 12 to the launcher.
LEAST_PACKETS = 30


def judge_packets(pairs: str, packets: int) -> list[TransportPath]:
    """Infer from the kernel's count that a class of pairs uses TCP, for libraries that do not say so.

    MPICH does not report that it bypasses its own shared memory.
    """
    if packets < LEAST_PACKETS:
        return []
    line = f"rank 0 sent {packets} packets over TCP connections of its own"
    return [TransportPath(pairs, KERNEL, ("tcp",), 1, line)]


def read_line(line: str, fabrics: set[str]) -> Iterator[TransportPath]:
    """Yield the transports in one line.

    :param fabrics: fabrics of Intel MPI, from the names of its tuning files
    """
    quoted = STAMP.sub("", line.strip())[:MOST_LETTERS]
    if match := UCX.search(line):
        lanes = [lane.partition("/")[::2] for lane in match[2].split()]
        names = tuple(dict.fromkeys(name for name, _ in lanes))
        yield TransportPath(CLASSES[match[1]], "ucx", names, len({device for _, device in lanes}), quoted)
    elif (match := OPEN_MPI.search(line)) and match[2] != "self":
        pairs = "node" if is_same_host(match[1], match[3]) else "network"
        yield TransportPath(pairs, "openmpi", (match[2],), 1, quoted)
    elif match := PROVIDER.search(line):
        yield TransportPath("network", "libfabric", (match[1],), 1, quoted)
        if "ofi" in fabrics:  # it has no shared memory of its own in between
            yield TransportPath("node", "libfabric", (match[1],), 1, quoted)
    elif match := OPEN_MPI_PROVIDER.search(line):
        for pairs in WORDS:
            yield TransportPath(pairs, "libfabric", (match[1],), 1, quoted)
    elif (match := INTEL_FABRIC.search(line)) and match[1] != "ofi":
        yield TransportPath("node", "intel-mpi", ("shm",), 1, quoted)


def is_same_host(one: str, other: str) -> bool:
    """Return whether two names belong to one host: a library may print it with or without its domain."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def find_wrong_path(paths: Sequence[TransportPath], pairs: str, expected: ExpectedTransport) -> str:
    """Find the first way of a class of pairs that is not expected, in words with its line; empty if none."""
    for path in paths:
        if path.pairs == pairs and not expected.allows(path.layer, path.transports, path.rails):
            return f"{WORDS[pairs]} its MPI uses {path}, and the site expects {expected.text!r}: {path.line}"
    return ""
