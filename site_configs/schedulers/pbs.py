"""PBS (PBS Professional, OpenPBS) and Torque: what they report about a machine, and how they are asked."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from postprocess.base.grouping import group_pairs
from site_configs.mpi.probe import ProbeError, run_step
from site_configs.schedulers.base import PALS, Ask, NodeKind, Queue, Scheduler, UsableNodes, describe_nodes

NODES = ("pbsnodes", "-a")
QUEUES = ("qstat", "-Q", "-f")
SERVER = ("qstat", "-B", "-f")
UNUSABLE = ("down", "offline", "unknown", "stale", "state-unknown")
UNITS = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}
SIZE = re.compile(r"(\d+)([kmgt]?b)", re.I)
CPUS_NOTE = (
    "PBS counts CPUs, which may be hardware threads, and reports no sockets; `lscpu` on a compute node does"
)
Stanza = tuple[str, dict[str, str]]
NCPUS, MEMORY = "resources_available.ncpus", "resources_available.mem"
QLIST = "resources_available.Qlist"


@dataclass(frozen=True)
class Answer:
    torque: bool
    queues: tuple[Queue, ...]
    notes: tuple[str, ...]


def ask_pbs(ask: Ask) -> Answer:
    """Ask PBS for queues and nodes.

    :raises ProbeError: if it does not answer.
    :raises ValueError: if nothing of its answer is understood.
    """
    vnodes = [stanza for stanza in parse_stanzas(ask(NODES)) if "state" in stanza[1]]
    if not vnodes:
        raise ValueError("pbsnodes -a lists no node")
    torque = not any(NCPUS in attributes for _, attributes in vnodes)
    notes = [CPUS_NOTE]
    queues, odd = list_pbs_queues(
        parse_stanzas(ask(QUEUES)), merge_vnodes(vnodes, notes), read_default_queue(ask, notes)
    )
    if not queues:
        raise ValueError("qstat -Q -f lists no queue that runs jobs")
    return Answer(torque, tuple(queues), (*notes, *odd))


def count_usable(ask: Ask, name: str) -> UsableNodes | None:
    """Count the nodes of a queue that are neither down nor taken out; None if PBS does not answer.

    :param name: name of the queue; empty for all nodes.
    """
    try:
        vnodes = [stanza for stanza in parse_stanzas(ask(NODES)) if "state" in stanza[1]]
    except ProbeError:
        return None
    nodes = merge_vnodes(vnodes, [])
    members = nodes_of(name, nodes) if name else nodes
    sick = {host: attributes for host, attributes in members if is_unusable(attributes)}
    shown = [f"{host} ({describe_state(attributes)})" for host, attributes in sorted(sick.items())]
    count = len({host for host, _ in members}) - len(sick)
    return UsableNodes(count, describe_nodes(shown), len(sick)) if members else None


def describe_state(told: Mapping[str, str]) -> str:
    """Describe the state of a node, when it began, and the administrator's comment."""
    since = " ".join(told.get("last_state_change_time", "").split())
    reason = " ".join((told.get("comment") or told.get("note") or "").split())[:80]
    state = told.get("state", "unknown") + (f" since {since}" if since else "")
    return f"{state}: {reason}" if reason else state


def read_default_queue(ask: Ask, notes: list[str]) -> str:
    """Read the default queue; empty, with a note, if PBS does not answer."""
    try:
        server = parse_stanzas(ask(SERVER))
    except ProbeError as error:
        notes.append(f"which queue is the default one is not known: {error}")
        return ""
    return server[0][1].get("default_queue", "") if server else ""


def merge_vnodes(vnodes: Sequence[Stanza], notes: list[str]) -> list[Stanza]:
    """Merge the virtual nodes of each host into one node, adding their CPUs and memory.

    A host whose parts differ in size stays one node. It is unusable if one of its parts is.
    """
    hosts = group_pairs(
        (attributes.get("resources_available.host", name), (name, attributes)) for name, attributes in vnodes
    )
    merged, parts = [], Counter[int]()
    for host, pieces in hosts.items():
        if len(pieces) == 1:
            merged.append(pieces[0])
            continue
        try:
            cpus = [int(attributes.get(NCPUS, "0")) for _, attributes in pieces]
            sizes = [memory(attributes) for _, attributes in pieces]
        except ValueError:  # its queue is reported as not understood
            merged += [(host, attributes) for _, attributes in pieces]
            continue
        states = (state for _, attributes in pieces for state in attributes["state"].split(","))
        queues = (queue for _, attributes in pieces for queue in queues_named(attributes))
        together = {
            "state": ",".join(dict.fromkeys(states)),
            NCPUS: str(sum(cpus)),
            MEMORY: f"{sum(sizes)}b",
            "queue": ",".join(dict.fromkeys(queues)),
        }
        parts[sum(map(bool, cpus))] += 1
        rest = {key: text for key, text in pieces[0][1].items() if key not in (QLIST, "pcpus")}
        merged.append((host, rest | together))
    for count, number in sorted(parts.items()):
        notes.append(
            f"PBS divides {number} hosts into {count} virtual nodes with CPUs each, perhaps one a socket "
            f"or NUMA domain; each host is one node here"
        )
    return merged


def parse_stanzas(text: str) -> list[Stanza]:
    """Parse stanzas: a name at the margin, ``key = value`` below, long values continued."""
    stanzas: list[Stanza] = []
    key = ""
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.startswith("\t") and stanzas and key:  # the rest of a long value
            stanzas[-1][1][key] += line.strip()
        elif not line[0].isspace():
            name = line.strip().removeprefix("Queue: ").removeprefix("Server: ")
            stanzas.append((name, {}))
            key = ""
        elif stanzas and " = " in line:
            key, _, value = line.strip().partition(" = ")
            stanzas[-1][1][key] = value.strip()
    return [(name, attributes) for name, attributes in stanzas if attributes]


def list_pbs_queues(
    stanzas: Sequence[Stanza], nodes: Sequence[Stanza], default: str
) -> tuple[list[Queue], list[str]]:
    """Return the queues that run jobs (others only route them) with their nodes, and notes for people."""
    running_queues, notes = [], []
    for name, attributes in stanzas:
        running = [attributes.get(key, "True").lower() == "true" for key in ("enabled", "started")]
        if attributes.get("queue_type", "").lower().startswith("e") and all(running):
            limits = {key: attributes.get(f"resources_max.{key}", "") for key in ("walltime", "nodect")}
            members = nodes_of(name, nodes)
            try:
                seconds, most = clock(limits["walltime"]), int(limits["nodect"] or 0)
                kinds = tuple(kinds_of(members))
            except ValueError as error:
                notes.append(f"queue {name}: not understood in the output of PBS: {error}")
                continue
            running_queues.append(Queue(name, kinds, name == default, seconds, most))
    return running_queues, notes


def nodes_of(queue: str, nodes: Sequence[Stanza]) -> list[Stanza]:
    """Return the nodes of a queue: those bound to it, or those bound to none."""
    named = [(name, set(queues_named(attributes))) for name, attributes in nodes]
    bound = {name for name, queues in named if queue in queues}
    free = {name for name, queues in named if not queues}
    return [(name, attributes) for name, attributes in nodes if name in (bound or free)]


def queues_named(told: Mapping[str, str]) -> list[str]:
    """Return the queues that a node is bound to, by its attribute or by the common custom resource."""
    text = f"{told.get('queue', '')},{told.get(QLIST, '')}"
    return [word.strip() for word in text.split(",") if word.strip()]


def kinds_of(nodes: Sequence[Stanza]) -> list[NodeKind]:
    """Group nodes by cores and sockets. Raises ValueError if a number cannot be read."""
    shapes = [(*shape_of(attributes), name, attributes) for name, attributes in nodes]
    kinds = []
    for cores, sockets in dict.fromkeys(shape[:2] for shape in shapes):
        members = [(name, attributes) for *shape, name, attributes in shapes if shape == [cores, sockets]]
        kinds.append(
            NodeKind(
                hosts=tuple(name for name, _ in members),
                sockets=sockets,
                cores=cores,
                hardware_threads=int(members[0][1].get("pcpus", cores)),
                memory_bytes=min(memory(attributes) for _, attributes in members),
                unusable=sum(is_unusable(attributes) for _, attributes in members),
            )
        )
    return kinds


def shape_of(told: Mapping[str, str]) -> tuple[int, int]:
    """Return the cores and sockets of a node; 0 if unknown."""
    cores = told.get("total_cores") or told.get(NCPUS) or told.get("np", "0")
    return int(cores), int(told.get("total_sockets", "0"))


def memory(told: Mapping[str, str]) -> int:
    """Return the bytes of memory of a node; 0 if unknown. Torque has them in its status line."""
    status = re.search(r"\bphysmem=(\d+[kmgt]?b)", told.get("status", ""), re.I)
    text = told.get(MEMORY) or (status[1] if status else "0b")
    match = SIZE.fullmatch(text)
    if not match:
        raise ValueError(f"{text[:20]!r} is not a size")
    return int(match[1]) * UNITS[match[2].lower()]


def is_unusable(told: Mapping[str, str]) -> bool:
    """Return whether a node is down or taken out."""
    return any(word.strip() in UNUSABLE for word in told.get("state", "unknown").split(","))


def clock(text: str) -> int:
    """Return the seconds of ``24:00:00``, ``30:00`` or ``90``; 0 for an empty text.

    :raises ValueError: if it is none of these.
    """
    seconds = 0
    for word in text.split(":") if text else ():
        seconds = seconds * 60 + int(word)
    return seconds


SCHEDULER = "pbs-blocks"  #: PBS Professional and OpenPBS
TORQUE = "torque-blocks"
ASK_SECONDS = 30  #: for the command that lists nodes
SERVER_VARIABLE = "PBS_DEFAULT"  #: chooses the server


def ask_command(words: Sequence[str]) -> str:
    """Run a command of PBS, and return its standard output."""
    return run_step(list(words), os.environ, " ".join(words), ASK_SECONDS)


@dataclass(frozen=True)
class PbsFamily(Scheduler):
    """What PBS and Torque have in common: queues of servers, and pbsnodes."""

    query_commands: str = "pbsnodes, qstat"

    def find_choice(self, access: Sequence[str]) -> dict[str, str]:
        matches = [re.match(r"-q\s*[^\s@]*@(\S+)", option) for option in access]
        servers = [match[1] for match in matches if match]
        return {SERVER_VARIABLE: servers[-1]} if servers else {}

    def count_usable_nodes(self, access: Sequence[str]) -> UsableNodes | None:
        return count_usable(ask_command, self.find_queue_name(access))

    def find_shell_faults(self, environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
        """Find the server that a shell chooses if the options of a site file name none."""
        server = environment.get(SERVER_VARIABLE, "")
        if server and not any(re.match(r"-q\s*\S*@", option) for option in access):
            fix = f"write -q QUEUE@{server} in access if it is meant, or unset {SERVER_VARIABLE}"
            yield f"{SERVER_VARIABLE}={server} chooses a server, and the site file names none; {fix}"


@dataclass(frozen=True)
class Pbs(PbsFamily):
    """PBS Professional or OpenPBS."""

    title: str = "PBS"
    backend: str = SCHEDULER
    backends: tuple[str, ...] = (SCHEDULER, "pbs", "pbspro")
    site_names: tuple[tuple[str, str], ...] = ((SCHEDULER, "pbs.SCHEDULER"), (PALS, "pbs.PALS"))
    command: str = "pbsnodes"
    asked: int = 2
    exclusive: tuple[str, ...] = ("-q {}", "-l place=scatter:excl")

    def choose_machine(self, environment: Mapping[str, str]) -> Scheduler:
        if not (server := environment.get(SERVER_VARIABLE, "")):
            return self
        return replace(
            self,
            asking=((SERVER_VARIABLE, server),),
            notes=(
                f"{SERVER_VARIABLE}={server} of the shell: this file is of that server, by -q QUEUE@{server}",
            ),
        )

    def read(self, ask: Ask) -> Scheduler:
        """Return this scheduler, or Torque, with the facts from this machine's commands."""
        answer = ask_pbs(ask)
        kind = TORQUE_PBS if answer.torque else self
        server = dict(self.asking).get(SERVER_VARIABLE)
        exclusive = tuple(
            option.replace("{}", f"{{}}@{server}") if server else option for option in kind.exclusive
        )
        notes = (*self.notes, *answer.notes)
        return replace(kind, queues=answer.queues, notes=notes, exclusive=exclusive, asking=self.asking)


PBS = Pbs()
#: It is detected together with PBS.
TORQUE_PBS = PbsFamily(
    title="Torque",
    backend=TORQUE,
    backends=(TORQUE, "torque"),
    site_names=((TORQUE, "pbs.TORQUE"),),
    exclusive=("-q {}", "-n"),
    asked=2,
)
SCHEDULERS = (PBS, TORQUE_PBS)
