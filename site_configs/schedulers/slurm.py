"""Slurm: what its commands report about a machine, and what Plumbline asks of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from site_configs.families import find_family
from site_configs.mpi.family import Mpi
from site_configs.mpi.probe import ProbeError
from site_configs.schedulers import base, slurm_jobs

#: One line per group of equal nodes in equal state: ``--exact`` keeps different ones apart.
SINFO = ("sinfo", "--noheader", "--noconvert", "--exact", "--format=%P|%a|%l|%s|%t|%X|%Y|%Z|%m|%N|%f")
CONFIG = ("scontrol", "show", "config")
TOPOLOGY = ("scontrol", "show", "topology")
MPI_TYPES = ("sh", "-c", "srun --mpi=list 2>&1")  # on standard error before Slurm 21.08
GPUS = re.compile(r"(?:^|,)gpu(?::([A-Za-z][\w.-]*))?:(\d{1,3})(?=,|$)")
DURATION = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
USABLE = ("alloc", "boot", "comp", "idle", "maint", "mix", "plnd", "pow_", "resv")
MIB = 1024**2
SHOWN = 60  #: characters of a line that is not understood
MOST_HOSTS = 1_000_000  #: most hosts in one list; more is a misunderstanding
HOST_PIECE = re.compile(r"[^\[\],\s]+|\[[^\[\]]*\]")
HOST_WORD = r"(?:[^\[\],\s]|\[[^\[\]]*\])+"
HOST_LIST = re.compile(rf"{HOST_WORD}(?:\s*,\s*{HOST_WORD})*")
HOST_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


@dataclass(frozen=True)
class Row:
    """One line of sinfo: equal nodes of one partition."""

    partition: str
    default: bool
    up: bool
    seconds: int
    most_nodes: int
    usable: bool
    shape: tuple[int, int, int]  #: sockets, cores per socket, threads per core
    memory: int
    hosts: tuple[str, ...]
    features: frozenset[str]


def ask_slurm(ask: base.Ask) -> dict[str, Any]:
    """Ask Slurm for the fields of a :class:`Scheduler`.

    :raises ProbeError: if it does not answer.
    :raises ValueError: if nothing of its answer is understood.
    """
    rows, notes = parse_sinfo(ask(SINFO))
    if not rows:
        raise ValueError(f"sinfo lists no partition: {notes[0] if notes else 'it prints nothing'}")
    config = read_config(ask, notes)
    accounting = config.get("AccountingStorageType", "")
    return dict(
        cluster=config.get("ClusterName", ""),
        queues=tuple(look_at_nodes(queue, ask, notes) for queue in list_slurm_queues(rows)),
        switches=read_switches(ask, notes),
        accounting=not config or (accounting not in ("", "(null)") and not accounting.endswith("/none")),
        mpi_types=read_mpi_types(ask, notes),
        notes=tuple(notes),
    )


def read_config(ask: base.Ask, notes: list[str]) -> dict[str, str]:
    """Read Slurm's configuration; empty, with a note, if that fails."""
    try:
        return parse_config(ask(CONFIG))
    except ProbeError as error:
        notes.append(f"the cluster's name, and whether it keeps accounts, are not known: {error}")
        return {}


def parse_sinfo(text: str) -> tuple[list[Row], list[str]]:
    """Parse the lines of sinfo; return their rows, and a note for each line that is not understood."""
    rows, notes = [], []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(slurm_jobs.HEADING):
            continue
        try:
            rows.append(parse_row(line))
        except ValueError as error:
            notes.append(f"not understood in the output of sinfo ({error}): {line[:SHOWN]!r}")
    return rows, notes


def parse_row(line: str) -> Row:
    """Parse one line of sinfo in the format of ``SINFO``. Raises ValueError if it is not one."""
    words = line.split("|", 10)
    if len(words) != 11 or not words[0]:
        raise ValueError(f"{len(words)} fields, not 11")
    partition, available, limit, size, state, sockets, cores, threads, memory, hosts, features = words
    return Row(
        partition=partition.removesuffix("*"),
        default=partition.endswith("*"),
        up=available == "up",
        seconds=seconds(limit),
        most_nodes=parse_whole(size.rpartition("-")[2], unlimited=("infinite", "UNLIMITED", "n/a")),
        usable=state.startswith(USABLE) and not state.endswith("*"),
        shape=(parse_whole(sockets), parse_whole(cores), parse_whole(threads)),
        memory=parse_whole(memory) * MIB,
        hosts=tuple(expand_hosts(hosts)),
        features=frozenset(features.split(",")) - {"", "(null)"},
    )


def parse_whole(text: str, unlimited: Sequence[str] = ()) -> int:
    """Parse a whole number; 0 for a word that means no limit. A suffix ``+`` means "or more"."""
    if text in unlimited:
        return 0
    try:
        return int(text.removesuffix("+"))
    except ValueError:
        raise ValueError(f"{text[:20]!r} is not a number") from None


def seconds(text: str) -> int:
    """Return the seconds of a limit such as ``1-00:00:00`` or ``30:00``; 0 for no limit."""
    if text in ("infinite", "UNLIMITED", "n/a"):
        return 0
    match = DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"{text[:20]!r} is not a duration")
    days, *clock = match.groups()
    numbers = [int(number) for number in clock if number is not None]
    if days is None:  # minutes come first unless there are hours too
        numbers = [0, *numbers] if len(numbers) < 3 else numbers
    hours, minutes, rest = (*numbers, 0, 0, 0)[:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + rest


def list_slurm_queues(rows: Sequence[Row]) -> list[base.Queue]:
    """Return the partitions that are up, in Slurm's order."""
    queues = []
    for name in dict.fromkeys(row.partition for row in rows if row.up):
        members = [row for row in rows if row.partition == name and row.hosts]
        kinds = [kind_of(shape, members) for shape in dict.fromkeys(row.shape for row in members)]
        first = next(row for row in rows if row.partition == name)
        queue = base.Queue(name, tuple(kinds), first.default, first.seconds, first.most_nodes)
        queues.append(queue)
    return queues


def kind_of(shape: tuple[int, int, int], rows: Sequence[Row]) -> base.NodeKind:
    """Return the nodes with one shape in a partition."""
    members = [row for row in rows if row.shape == shape]
    others = [row for row in rows if row.shape != shape]
    common = frozenset.intersection(*(row.features for row in members))
    telling = sorted(common - frozenset().union(*(row.features for row in others)))
    sockets, cores, threads = shape
    return base.NodeKind(
        hosts=tuple(host for row in members for host in row.hosts),
        sockets=sockets,
        cores=sockets * cores,
        hardware_threads=sockets * cores * threads,
        # otherwise Slurm was configured with CPUs alone
        threads_per_core=threads if cores * threads > 1 else 0,
        memory_bytes=min(row.memory for row in members),
        unusable=sum(len(row.hosts) for row in members if not row.usable),
        option=f"--constraint={telling[0]}" if others and telling else "",
    )


def look_at_nodes(queue: base.Queue, ask: base.Ask, notes: list[str]) -> base.Queue:
    """Return the queue with its GPUs, and without the cores that nodes reserve for the operating system.

    A cloud node is unknown before it runs: then a note says so, and no core is subtracted.
    """
    kinds = []
    for kind in queue.kinds:
        try:
            shown = ask(("scontrol", "--oneliner", "show", "node", kind.hosts[0]))
        except ProbeError as error:
            shown = ""
            notes.append(
                f"cores that nodes such as {kind.hosts[0]} of partition {queue.name} keep for the system are "
                f"not known, and none are taken away: {error}"
            )
        match = re.search(r"\bCoreSpecCount=(\d+)", shown)
        reserved = int(match[1]) if match else 0
        cores = max(kind.cores - reserved, 0)
        kinds.append(replace(kind, cores=cores, reserved_cores=reserved, gpus=parse_gpus(shown)))
    return replace(queue, kinds=tuple(kinds))


def parse_gpus(node: str) -> tuple[str, ...]:
    """Parse the names of a node's GPUs, ``Gres=gpu:a100:4(S:0-1)``; names are empty if only counted."""
    match = re.search(r"\bGres=(\S+)", node)
    gpus = GPUS.findall(re.sub(r"\([^)]*\)", "", match[1])) if match else []
    return tuple(name.lower() for name, count in gpus for _ in range(int(count)))


def parse_config(text: str) -> dict[str, str]:
    """Parse Slurm's configuration as ``scontrol show config`` prints it: ``Key = value``."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_switches(ask: base.Ask, notes: list[str]) -> tuple[frozenset[str], ...]:
    """Read the nodes under each leaf switch or block; empty, with a note, if that cannot be read.

    Without a configured topology Slurm refuses to show one. That is no fault: the site file says for each
    partition that switches are unknown.
    """
    try:
        return parse_topology(ask(TOPOLOGY))
    except ProbeError:
        return ()
    except ValueError as error:
        notes.append(f"not understood in the output of scontrol show topology: {error}")
        return ()


def parse_topology(text: str) -> tuple[frozenset[str], ...]:
    """Parse the nodes of each leaf in the output of ``scontrol show topology``.

    :raises ValueError: if a line's host list cannot be read.
    """
    leaves = []
    for line in text.splitlines():
        pairs = dict(word.partition("=")[::2] for word in line.split())
        leaf = pairs.get("Level") == "0" if "SwitchName" in pairs else "BlockName" in pairs
        if leaf and pairs.get("Nodes"):
            leaves.append(frozenset(expand_hosts(pairs["Nodes"])))
    return tuple(leaves)


def read_mpi_types(ask: base.Ask, notes: list[str]) -> tuple[str, ...]:
    """Read the kinds of MPI that srun can start; empty, with a note, if that fails."""
    try:
        return parse_mpi_types(ask(MPI_TYPES))
    except ProbeError as error:
        notes.append(f"the kinds of MPI that srun can start are not known: {error}")
        return ()


def parse_mpi_types(text: str) -> tuple[str, ...]:
    """Parse the words of ``srun --mpi=list``: one per line below a heading, or all on the heading's line."""
    listed = text.partition("MPI plugin types are...")[2] or text.partition("MPI types are...")[2]
    types, _, versions = listed.partition("specific pmix plugin versions available:")
    names = (word for word in re.split(r"[\s,]+", f"{types} {versions}") if word != "srun:")
    return tuple(dict.fromkeys(filter(None, names)))


def expand_hosts(text: str) -> list[str]:
    """Expand a host list into its names, in order. Raises ValueError if it cannot be read."""
    text = text.strip()
    if text and not HOST_LIST.fullmatch(text):
        raise ValueError(f"cannot read the host list {text[:80]!r}")
    hosts: list[str] = []
    for word in re.findall(HOST_WORD, text):
        pieces = HOST_PIECE.findall(word)
        choices = [expand_numbers(piece) if piece[0] == "[" else [piece] for piece in pieces]
        for names in product(*choices):
            hosts.append("".join(names))
            if len(hosts) > MOST_HOSTS:
                raise ValueError(f"more than {MOST_HOSTS} hosts in {text[:80]!r}")
    return hosts


def expand_numbers(brackets: str) -> list[str]:
    """Return the numbers in brackets with their leading zeros: ``[08-10]`` is 08, 09, 10."""
    numbers: list[str] = []
    for part in brackets[1:-1].split(","):
        match = HOST_RANGE.fullmatch(part)
        if not match:
            raise ValueError(f"cannot read {brackets[:80]!r} in a host list")
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) >= MOST_HOSTS:
            raise ValueError(f"more than {MOST_HOSTS} hosts in {brackets[:80]!r}")
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return numbers


SCHEDULER = "slurm-blocks"
SRUN = "srun-blocks"  #: with the site's default kind of MPI (MpiDefault)
#: For MPICH and its derivatives; for Intel MPI if I_MPI_PMI_LIBRARY names libpmi2.so
SRUN_PMI2 = "srun-pmi2"
SRUN_PMIX = "srun-pmix"  #: for Open MPI, whose own mpirun was found to be safer
SRUN_CRAY = "srun-cray_shasta"  #: for Cray MPICH
WITH_ACCOUNTING = "slurm"  #: ReFrame's own backend, which asks sacct
#: By kind of ``srun --mpi``: the launcher, and why.
SRUN_KINDS = {
    "pmi2": (SRUN_PMI2, "srun with Slurm's PMI-2; without it srun starts many worlds of one process"),
    "cray_shasta": (SRUN_CRAY, "Slurm is what starts processes on a Cray with Slurm"),
}


CLUSTER_CHOICES = ("SBATCH_CLUSTERS", slurm_jobs.CLUSTERS)  #: the one that sbatch prefers comes first
#: Variables of sbatch on accounts and messages, which do not change where a job runs.
HONOURED = ("SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_WCKEY", "SBATCH_DEBUG", "SBATCH_IGNORE_PBS")


def find_chosen_cluster(environment: Mapping[str, str]) -> tuple[str, str]:
    """Find the cluster that a shell chooses: the variable and its value; empty texts without one."""
    choices = ((name, environment[name]) for name in CLUSTER_CHOICES if environment.get(name))
    return next(choices, ("", ""))


def find_named_cluster(options: Iterable[str]) -> str:
    """Find the cluster in the options of a job, where the last one counts; empty if there is none."""
    matches = [re.match(r"(?:--clusters(?:=|\s+)|-M\s*)(\S+)", option) for option in options]
    return ([""] + [match[1] for match in matches if match])[-1]


@dataclass(frozen=True)
class Slurm(base.Scheduler):
    """Slurm, with or without accounting."""

    title: str = "Slurm"
    backend: str = SCHEDULER
    backends: tuple[str, ...] = (SCHEDULER, WITH_ACCOUNTING, "squeue")
    site_names: tuple[tuple[str, str], ...] = (
        (SCHEDULER, "slurm.SCHEDULER"),
        (SRUN, "slurm.SRUN"),
        (SRUN_CRAY, "slurm.SRUN_CRAY"),
        (SRUN_PMI2, "slurm.SRUN_PMI2"),
    )
    command: str = "sinfo"
    asked: int = 1
    query_commands: str = "sinfo, scontrol"
    switch_command: str = "scontrol show topology"
    exclusive: tuple[str, ...] = ("--partition={}", "--exclusive")
    queue_option: str = r"--partition(?:=|\s+)|-p\s*"
    exclude_option: str = "--exclude={}"
    include_option: str = "--nodelist={}"
    reports_physical_cores: bool = True
    user_choices: tuple[str, ...] = slurm_jobs.CHOICES
    limits_of_jobs: str = (
        "jobs have the limits (ulimit) of Slurm on the nodes, not those of the shell that submits them "
        "(--propagate=NONE; write another --propagate in access to change that)"
    )
    #: from slurmstepd: ``*** JOB 7 ON n1 CANCELLED AT ... DUE TO TIME LIMIT ***``
    limit_words: str = "DUE TO TIME LIMIT"
    mark: str = slurm_jobs.MARK
    list_jobs_command: str = "squeue --me"

    def read(self, ask: base.Ask) -> Slurm:
        answered = ask_slurm(ask)
        return replace(self, **answered | {"notes": (*self.notes, *answered["notes"])})

    def choose_machine(self, environment: Mapping[str, str]) -> Slurm:
        """Return this scheduler for the cluster that the user's shell chooses.

        :raises ValueError: if it chooses several.
        """
        name, cluster = find_chosen_cluster(environment)
        if not cluster:
            return self
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", cluster) or cluster == "all":
            raise ValueError(f"{name}={cluster}: a site file is of one cluster; set one")
        chosen = f"{name}={cluster} of the shell: this file is of that cluster, by --clusters in access"
        return replace(
            self,
            exclusive=(f"--clusters={cluster}", *self.exclusive),
            asking=((slurm_jobs.CLUSTERS, cluster),),
            notes=(chosen,),
        )

    def find_choice(self, access: Sequence[str]) -> dict[str, str]:
        cluster = find_named_cluster(access)
        return {slurm_jobs.CLUSTERS: cluster} if cluster else {}

    def find_shell_faults(self, environment: Mapping[str, str], access: Sequence[str]) -> Iterator[str]:
        name, cluster = find_chosen_cluster(environment)
        if cluster and cluster != find_named_cluster(access):
            fix = f"write --clusters={cluster} in access if it is meant, or unset {name}"
            yield f"{name}={cluster} chooses another cluster than the site file; {fix}"
        for name, value in environment.items():
            if name.startswith("SBATCH_") and name not in (*HONOURED, *CLUSTER_CHOICES):
                fix = f"unset {name}, and write its option in access if it is meant"
                yield f"{name}={value} would override what the site file asks sbatch for; {fix}"

    def choose_launcher(self, mpi: Mpi) -> base.Pairing:
        family = find_family(mpi.family)
        if family.srun and family.srun in self.mpi_types:
            return base.Pairing(*SRUN_KINDS[family.srun])
        launcher, why = family.slurm
        return base.Pairing((base.program(mpi, launcher),) if launcher else SRUN, why)

    def find_backend_fault(self, backend: str) -> str:
        if backend == WITH_ACCOUNTING and not self.accounting:
            fix = f"write {SCHEDULER!r} (slurm.SCHEDULER of site_configs), which does without"
            return f"{backend!r} asks sacct, and accounting is off on this machine; {fix}"
        return super().find_backend_fault(backend)

    def count_usable_nodes(self, access: Sequence[str]) -> base.UsableNodes | None:
        name = self.find_queue_name(access)
        try:
            nodes = slurm_jobs.list_nodes(("--partition", name) if name else (), find_named_cluster(access))
        except slurm_jobs.SlurmError:
            return None
        sick = {state.name: state.shown for state in nodes if state.unhealthy}
        count = len({state.name for state in nodes}) - len(sick)
        reasons = base.describe_nodes(sorted(sick.values()))
        return base.UsableNodes(count, reasons, len(sick)) if nodes else None

    def find_refused_options(self, access: Sequence[str]) -> Iterator[base.RefusedOption]:
        """Find the options of a job that sbatch refuses, by asking it without sending a job.

        An option is at fault if the job is accepted without it, or if a job with it alone is refused for
        another reason than a job without options, which has no node if all are drained.
        """
        cluster = find_named_cluster(access)
        place = [option for option in access if self.find_queue_name([option]) or find_named_cluster([option])]
        options = [option for option in access if option not in place]
        try:
            refusal = slurm_jobs.explain_refused_job(access, cluster)
            bare = slurm_jobs.explain_refused_job(place, cluster) if refusal else ""
            refused = []
            for option in options if refusal else ():
                alone = slurm_jobs.explain_refused_job([*place, option], cluster)
                if alone and alone != bare:
                    refused.append(base.RefusedOption(option, alone))
                elif not slurm_jobs.explain_refused_job(
                    [other for other in access if other != option], cluster
                ):
                    refused.append(base.RefusedOption(option, refusal))
        except slurm_jobs.NoAnswer:
            return
        yield from refused or ([base.RefusedOption("", refusal)] if refusal else ())

    def list_own_jobs(self, marks: Iterable[str] = ()) -> Sequence[base.OwnJob]:
        """Return all jobs of this user in the queue, and those that left it shortly before.

        :param marks: clusters that sessions recorded when they sent jobs
        """
        clusters = dict.fromkeys(name for mark in marks for name in mark.split())
        return slurm_jobs.list_own_jobs(["", *clusters])

    def cancel(self, numbers: Iterable[str]) -> None:
        slurm_jobs.cancel(numbers)


SLURM = Slurm()
SCHEDULERS = (SLURM,)
