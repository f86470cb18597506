"""PBS (PBS Professional, OpenPBS) and Torque: what they tell of a machine, and what Plumbline asks."""

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
    "PBS counts CPUs, which may be hardware threads, and does not tell sockets; `lscpu` on a compute node does"
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
    """Ask PBS.

    :raises ProbeError: if it does not answer.
    :raises ValueError: if nothing of its answer is understood.
    """
    vnodes = [stanza for stanza in parse_stanzas(ask(NODES)) if "state" in stanza[1]]
    if not vnodes:
        raise ValueError("pbsnodes -a tells of no node")
    torque = not any(NCPUS in told for _, told in vnodes)
    notes = [CPUS_NOTE]
    queues, odd = list_pbs_queues(
        parse_stanzas(ask(QUEUES)), merge_vnodes(vnodes, notes), read_default_queue(ask, notes)
    )
    if not queues:
        raise ValueError("qstat -Q -f tells of no queue that runs jobs")
    return Answer(torque, tuple(queues), (*notes, *odd))


def count_usable(ask: Ask, name: str) -> UsableNodes | None:
    """Count the nodes of a queue that are neither down nor taken out; None if PBS does not tell.

    :param name: of the queue; empty for all nodes.
    """
    try:
        vnodes = [stanza for stanza in parse_stanzas(ask(NODES)) if "state" in stanza[1]]
    except ProbeError:
        return None
    nodes = merge_vnodes(vnodes, [])
    own = nodes_of(name, nodes) if name else nodes
    sick = {host: told for host, told in own if is_unusable(told)}
    shown = [f"{host} ({describe_state(told)})" for host, told in sorted(sick.items())]
    count = len({host for host, _ in own}) - len(sick)
    return UsableNodes(count, describe_nodes(shown), len(sick)) if own else None


def describe_state(told: Mapping[str, str]) -> str:
    """Describe the state of a node, since when it is in it, and what an administrator wrote of it."""
    since = " ".join(told.get("last_state_change_time", "").split())
    reason = " ".join((told.get("comment") or told.get("note") or "").split())[:80]
    state = told.get("state", "unknown") + (f" since {since}" if since else "")
    return f"{state}: {reason}" if reason else state


def read_default_queue(ask: Ask, notes: list[str]) -> str:
    """Read the queue of jobs that name none; empty, with a note, if PBS does not tell."""
    try:
        server = parse_stanzas(ask(SERVER))
    except ProbeError as error:
        notes.append(f"which queue is the default one is not known: {error}")
        return ""
    return server[0][1].get("default_queue", "") if server else ""


def merge_vnodes(vnodes: Sequence[Stanza], notes: list[str]) -> list[Stanza]:
    """Merge the virtual nodes of each host into one node: the sum of their CPUs and memory.

    A host whose parts differ in size stays one node. It is unusable if one of its parts is.
    """
    hosts = group_pairs((told.get("resources_available.host", name), (name, told)) for name, told in vnodes)
    merged, parts = [], Counter[int]()
    for host, own in hosts.items():
        if len(own) == 1:
            merged.append(own[0])
            continue
        try:
            cpus = [int(told.get(NCPUS, "0")) for _, told in own]
            sizes = [memory(told) for _, told in own]
        except ValueError:  # its queue is told not to be understood
            merged += [(host, told) for _, told in own]
            continue
        states = (state for _, told in own for state in told["state"].split(","))
        queues = (queue for _, told in own for queue in queues_named(told))
        together = {
            "state": ",".join(dict.fromkeys(states)),
            NCPUS: str(sum(cpus)),
            MEMORY: f"{sum(sizes)}b",
            "queue": ",".join(dict.fromkeys(queues)),
        }
        parts[sum(map(bool, cpus))] += 1
        rest = {key: text for key, text in own[0][1].items() if key not in (QLIST, "pcpus")}
        merged.append((host, rest | together))
    for count, number in sorted(parts.items()):
        notes.append(
            f"PBS divides {number} hosts into {count} virtual nodes with CPUs each, perhaps one a socket "
            f"or NUMA domain; each host is one node here"
        )
    return merged


def parse_stanzas(text: str) -> list[Stanza]:
    """Parse stanzas: a name at the margin, ``key = value`` below, long values continued."""
    found: list[Stanza] = []
    key = ""
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.startswith("\t") and found and key:  # the rest of a long value
            found[-1][1][key] += line.strip()
        elif not line[0].isspace():
            name = line.strip().removeprefix("Queue: ").removeprefix("Server: ")
            found.append((name, {}))
            key = ""
        elif found and " = " in line:
            key, _, value = line.strip().partition(" = ")
            found[-1][1][key] = value.strip()
    return [(name, told) for name, told in found if told]


def list_pbs_queues(
    stanzas: Sequence[Stanza], nodes: Sequence[Stanza], default: str
) -> tuple[list[Queue], list[str]]:
    """Return the queues that run jobs (others only route them), each with its nodes, and notes for people."""
    found, notes = [], []
    for name, told in stanzas:
        running = [told.get(key, "True").lower() == "true" for key in ("enabled", "started")]
        if told.get("queue_type", "").lower().startswith("e") and all(running):
            limits = {key: told.get(f"resources_max.{key}", "") for key in ("walltime", "nodect")}
            own = nodes_of(name, nodes)
            try:
                seconds, most = clock(limits["walltime"]), int(limits["nodect"] or 0)
                kinds = tuple(kinds_of(own))
            except ValueError as error:
                notes.append(f"queue {name}: not understood in the output of PBS: {error}")
                continue
            found.append(Queue(name, kinds, name == default, seconds, most))
    return found, notes


def nodes_of(queue: str, nodes: Sequence[Stanza]) -> list[Stanza]:
    """Return the nodes of a queue: those that name it, or those that name none."""
    named = [(name, set(queues_named(told))) for name, told in nodes]
    own = {name for name, queues in named if queue in queues}
    free = {name for name, queues in named if not queues}
    return [(name, told) for name, told in nodes if name in (own or free)]


def queues_named(told: Mapping[str, str]) -> list[str]:
    """Return the queues to which a node is bound, by its attribute or by the common custom resource."""
    text = f"{told.get('queue', '')},{told.get(QLIST, '')}"
    return [word.strip() for word in text.split(",") if word.strip()]


def kinds_of(nodes: Sequence[Stanza]) -> list[NodeKind]:
    """Return the nodes by the number of their cores. Raises ValueError if a number cannot be read."""
    shapes = [(*shape_of(told), name, told) for name, told in nodes]
    kinds = []
    for cores, sockets in dict.fromkeys(shape[:2] for shape in shapes):
        own = [(name, told) for *shape, name, told in shapes if shape == [cores, sockets]]
        kinds.append(
            NodeKind(
                hosts=tuple(name for name, _ in own),
                sockets=sockets,
                cores=cores,
                hardware_threads=int(own[0][1].get("pcpus", cores)),
                memory_bytes=min(memory(told) for _, told in own),
                unusable=sum(is_unusable(told) for _, told in own),
            )
        )
    return kinds


def shape_of(told: Mapping[str, str]) -> tuple[int, int]:
    """Return the cores and sockets of a node; 0 if unknown."""
    cores = told.get("total_cores") or told.get(NCPUS) or told.get("np", "0")
    return int(cores), int(told.get("total_sockets", "0"))


def memory(told: Mapping[str, str]) -> int:
    """Return the bytes of memory of a node; 0 if unknown. Torque tells them in its status line."""
    status = re.search(r"\bphysmem=(\d+[kmgt]?b)", told.get("status", ""), re.I)
    text = told.get(MEMORY) or (status[1] if status else "0b")
    match = SIZE.fullmatch(text)
    if not match:
        raise ValueError(f"{text[:20]!r} is no size")
    return int(match[1]) * UNITS[match[2].lower()]


def is_unusable(told: Mapping[str, str]) -> bool:
    """Return whether a node is down or taken out."""
    return any(word.strip() in UNUSABLE for word in told.get("state", "unknown").split(","))


def clock(text: str) -> int:
    """Return the seconds of ``24:00:00``, ``30:00`` or ``90``; 0 for nothing.

    :raises ValueError: if it is none of these.
    """
    seconds = 0
    for word in text.split(":") if text else ():
        seconds = seconds * 60 + int(word)
    return seconds


SCHEDULER = "pbs-blocks"  #: PBS Professional and OpenPBS
TORQUE = "torque-blocks"
ASK_SECONDS = 30  #: for the command that tells of nodes
SERVER_VARIABLE = "PBS_DEFAULT"  #: the variable that chooses the server


def ask_command(words: Sequence[str]) -> str:
    """Run a command of PBS, and return its standard output."""
    return run_step(list(words), os.environ, " ".join(words), ASK_SECONDS)


@dataclass(frozen=True)
class PbsFamily(Scheduler):
    """What PBS and Torque have in common: queues of servers, and pbsnodes."""

    query_commands: str = "pbsnodes, qstat"

    def find_choice(self, access: Sequence[str]) -> dict[str, str]:
        found = [re.match(r"-q\s*[^\s@]*@(\S+)", option) for option in access]
        servers = [match[1] for match in found if match]
        return {SERVER_VARIABLE: servers[-1]} if servers else {}

    def count_usable_nodes(self, access: Sequence[str]) -> UsableNodes | None:
        return count_usable(ask_command, self.find_queue_name(access))

    def find_shell_faults(self, environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
        """Find the server that a shell chooses where the options of a site file name none."""
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
        """Return this scheduler, or Torque, with the facts that this machine's commands tell."""
        answer = ask_pbs(ask)
        kind = TORQUE_PBS if answer.torque else self
        server = dict(self.asking).get(SERVER_VARIABLE)
        own = tuple(each.replace("{}", f"{{}}@{server}") if server else each for each in kind.exclusive)
        notes = (*self.notes, *answer.notes)
        return replace(kind, queues=answer.queues, notes=notes, exclusive=own, asking=self.asking)


PBS = Pbs()
#: It is found where PBS is looked for.
TORQUE_PBS = PbsFamily(
    title="Torque",
    backend=TORQUE,
    backends=(TORQUE, "torque"),
    site_names=((TORQUE, "pbs.TORQUE"),),
    exclusive=("-q {}", "-n"),
)
