"""What a verbose MPI says of its transports, by class of pairs: in a node, and between nodes.

The lines are the libraries' own. What no line tells is unknown, and is never taken for fine.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from site_configs.schema.transports import KERNEL, ExpectedTransport

#: Variables that let a library tell it; to all others they are nothing.
VERBOSE: Mapping[str, str] = {
    "UCX_LOG_LEVEL": "info",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "I_MPI_DEBUG": "5",
    "OMPI_MCA_pml_base_verbose": "10",
    "OMPI_MCA_btl_base_verbose": "10",
    "OMPI_MCA_mtl_base_verbose": "10",
}
#: What is told, by name: the library's words for it. Where one name is told several times, all values count.
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
#: Each names the provider that is used, not one that was found.
PROVIDER = re.compile(r"(?:^|MPI startup\(\): )libfabric provider: ([\w;]+)")
OPEN_MPI_PROVIDER = re.compile(r"mtl:ofi:prov: ([\w;]+)")
INTEL_FABRIC = re.compile(r"MPI startup\(\): Load tuning file: \".*_(shm-ofi|shm|ofi)\.dat\"")
#: What MPICH on UCX prints. Its messages in a node go through memory of its own, of which it tells nothing;
#: UCX's line on such pairs is of endpoints that carry none of them.
OWN_MEMORY = "==== UCX netmod Capability ===="
MOST_LETTERS = 200  #: of a line that is quoted
STAMP = re.compile(r"^\[[\d.]+\] \[\S+\] +\S+ +")  #: of UCX, which differs from process to process
CLASSES = {"intra": "node", "inter": "network"}
TCP = re.compile(r"tcp\b.*|sockets")  #: also below another protocol, as ``tcp;ofi_rxm``
COPYING = ("cma", "knem")  #: of UCX: large messages alone
WORDS = {"node": "in a node", "network": "between nodes"}  #: of the classes of pairs


@dataclass(frozen=True)
class TransportPath:
    """By what a class of pairs talks, as one line of a library has it."""

    pairs: str  #: ``node`` or ``network``
    layer: str  #: ``ucx``, ``libfabric``, ``openmpi``, ``intel-mpi`` or ``kernel``
    transports: tuple[str, ...]  #: that carry messages
    rails: int  #: devices that UCX names; 1 where none are named
    line: str  #: of the library

    @property
    def is_tcp(self) -> bool:
        """Whether messages go by TCP: all of them, or all but large ones, which are copied."""
        carrying = [name for name in self.transports if name not in COPYING]
        return bool(carrying) and all(TCP.fullmatch(name) for name in carrying)

    def __str__(self) -> str:
        rails = f" on {self.rails} rails" if self.rails > 1 else ""
        return f"{self.layer}:{'+'.join(self.transports)}{rails}"


def read_transports(output: str) -> dict[str, str]:
    """Read what a verbose launch printed of its transports, by name; empty if its library tells nothing.

    :param output: all that its processes printed; each of them may tell the same
    """
    found = {}
    for name, pattern in TOLD.items():
        if values := sorted(set(re.findall(pattern, output, re.MULTILINE))):
            found[name] = ", ".join(values)
    return found


def read_paths(output: str) -> list[TransportPath]:
    """Read by what each class of pairs of a verbose launch talks; each way once, with its first line."""
    lines = output.splitlines()
    fabrics = {match[1] for line in lines if (match := INTEL_FABRIC.search(line))}
    found = [path for line in lines for path in read_line(line, fabrics)]
    if OWN_MEMORY in lines:
        found = [path for path in found if (path.pairs, path.layer) != ("node", "ucx")]
    return list({(path.pairs, str(path)): path for path in reversed(found)}.values())[::-1]


#: Packets of rank 0 over TCP, from which on its messages went there. The cheapest launch of two ranks
#: sends 60 at least; on other ways none, and 12 to the launcher.
LEAST_PACKETS = 30


def judge_packets(pairs: str, packets: int) -> list[TransportPath]:
    """Judge by the kernel's own count whether a class of pairs talks by TCP, where no library tells.

    MPICH does not tell that it leaves its own memory out.
    """
    if packets < LEAST_PACKETS:
        return []
    line = f"rank 0 sent {packets} packets over TCP connections of its own"
    return [TransportPath(pairs, KERNEL, ("tcp",), 1, line)]


def read_line(line: str, fabrics: set[str]) -> Iterator[TransportPath]:
    """Yield what one line tells.

    :param fabrics: of Intel MPI, as the names of its tuning files have them
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
        if "ofi" in fabrics:  # it has no memory of its own in between
            yield TransportPath("node", "libfabric", (match[1],), 1, quoted)
    elif match := OPEN_MPI_PROVIDER.search(line):
        for pairs in WORDS:
            yield TransportPath(pairs, "libfabric", (match[1],), 1, quoted)
    elif (match := INTEL_FABRIC.search(line)) and match[1] != "ofi":
        yield TransportPath("node", "intel-mpi", ("shm",), 1, quoted)


def is_same_host(one: str, other: str) -> bool:
    """Return whether two names are of one host: a library prints it short here and with its domain there."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def find_wrong_path(paths: Sequence[TransportPath], pairs: str, expected: ExpectedTransport) -> str:
    """Find the first way of a class of pairs that is not expected, in words with its line; empty if none."""
    for path in paths:
        if path.pairs == pairs and not expected.allows(path.layer, path.transports, path.rails):
            return f"{WORDS[pairs]} its MPI uses {path}, and the site expects {expected.text!r}: {path.line}"
    return ""
