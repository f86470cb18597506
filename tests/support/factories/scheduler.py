"""What the commands of schedulers print on large machines, written after their manuals and public examples."""

from collections.abc import Callable, Mapping, Sequence

from site_configs.mpi.probe import ProbeError

#: A Cray EX with one large partition, a part of it with more memory, and short queues on the same nodes.
CRAY_SINFO = """\
standard*|up|4-00:00:00|1-1024|alloc|2|64|2|227328|nid[001008-004847]|COMPUTE
standard*|up|4-00:00:00|1-1024|idle|2|64|2|227328|nid[001000-001007,004848-006275]|COMPUTE
standard*|up|4-00:00:00|1-1024|drain*|2|64|2|227328|nid[006860-006863]|COMPUTE
standard*|up|4-00:00:00|1-1024|mix|2|64|2|486400|nid[006276-006859]|COMPUTE,HIGHMEM
highmem|up|2-00:00:00|1-256|mix|2|64|2|486400|nid[006276-006859]|COMPUTE,HIGHMEM
short|up|20:00|1-32|idle|2|64|2|227328|nid[001000-001007]|COMPUTE
serial|down|1-00:00:00|1|idle|2|64|2|512000|dvn[01-02]|SERIAL
"""
CRAY_CONFIG = """\
Configuration data as of 2026-11-20T10:11:12
AccountingStorageBackupHost = (null)
AccountingStorageEnforce = associations,limits,qos,safe
AccountingStorageType   = accounting_storage/slurmdbd
ClusterName             = big-cray
MpiDefault              = cray_shasta
SLURM_VERSION           = 23.02.6

Slurmctld(primary) at sdb is UP
"""
#: A leaf for every 256 nodes, under one switch.
CRAY_TOPOLOGY = (
    "\n".join(
        f"SwitchName=leaf{leaf} Level=0 LinkSpeed=1 Nodes=nid[{1000 + leaf * 256:06d}-{1255 + leaf * 256:06d}]"
        for leaf in range(22)
    )
    + "\nSwitchName=top Level=1 LinkSpeed=1 Nodes=nid[001000-006631] Switches=leaf[0-21]\n"
)
CRAY_MPI = """\
MPI plugin types are...
\tnone
\tcray_shasta
\tpmi2
\tpmix
specific pmix plugin versions available: pmix_v3,pmix_v4
"""
#: As scontrol prints a node on one line; eight cores of each are the operating system's.
NODE = (
    "NodeName={host} Arch=x86_64 CoresPerSocket=64 CPUAlloc=0 CPUEfctv=112 CPUTot=128 CPULoad=0.10 "
    "AvailableFeatures=COMPUTE Gres=(null) OS=Linux 5.14.21 CoreSpecCount=8 CPUSpecList=0-7 State=IDLE "
    "ThreadsPerCore=2 Partitions=batch"
)

#: A cluster that grew: one queue for all, one more for each kind, and a short one.
GROWN_SINFO = """\
all*|up|infinite|1-infinite|idle|2|24|1|192000|old[01-40]|skylake,ib
all*|up|infinite|1-infinite|mix|2|48|2|384000|new[001-120]|icelake,ib
all*|up|infinite|1-infinite|down*|2|48|2|384000|new[121-124]|icelake,ib
all*|up|infinite|1-infinite|idle|1|8|1|64000|tiny1|(null)
new|up|1-12:00:00|1-64|mix|2|48|2|384000|new[001-120]|icelake,ib
new|up|1-12:00:00|1-64|down*|2|48|2|384000|new[121-124]|icelake,ib
debug|up|30:00|1-2|idle|2|24|1|192000|old[01-02]|skylake,ib
"""
NO_ACCOUNTING = "AccountingStorageType   = (null)\nClusterName             = grown\n"

PBS_NODE = """\
{name}
     Mom = {name}.example.org
     ntype = PBS
     state = {state}
     pcpus = {cpus}
     resources_available.arch = linux
     resources_available.host = {name}
     resources_available.mem = {memory}kb
     resources_available.ncpus = {cpus}
     resources_available.Qlist = {queues}
     resources_available.vnode = {name}
     resources_assigned.ncpus = 0
     resv_enable = True
     sharing = default_shared

"""
PBS_QUEUES = """\
Queue: entry
    queue_type = Route
    total_jobs = 3
    route_destinations = standard,large
    enabled = True
    started = True

Queue: standard
    queue_type = Execution
    Priority = 100
    total_jobs = 308
    state_count = Transit:0 Queued:100 Held:2 Waiting:0 Running:206 Exiting:0 B
\tegun:0
    resources_max.nodect = 64
    resources_max.walltime = 24:00:00
    resources_default.place = scatter:excl
    enabled = True
    started = True

Queue: large
    queue_type = Execution
    resources_max.walltime = 120:00:00
    enabled = True
    started = True

Queue: closed
    queue_type = Execution
    enabled = True
    started = False

"""
PBS_SERVER = """\
Server: pbs01
    server_state = Active
    default_queue = standard
    total_jobs = 1234

"""
TORQUE_NODE = """\
{name}
     state = {state}
     power_state = Running
     np = 32
     ntype = cluster
     status = rectime=1700000000,opsys=linux,physmem=131072000kb,ncpus=32,loadave=0.00,state=free
     total_sockets = 2
     total_cores = 16
     total_threads = 32

"""


def pbs_nodes() -> str:
    """pbsnodes of a machine with two kinds of nodes, some of them out."""
    lines = []
    for number in range(1, 97):
        state = "offline" if number in (7, 8) else "job-busy" if number > 40 else "free"
        shape = {"cpus": 96, "memory": 394829824, "queues": "standard,entry"}
        lines.append(PBS_NODE.format(name=f"cn{number:03d}", state=state, **shape))
    for number in range(1, 5):
        shape = {"cpus": 192, "memory": 3158638592, "queues": "large"}
        lines.append(PBS_NODE.format(name=f"fat{number}", state="free", **shape))
    return "".join(lines)


def torque_nodes() -> str:
    """pbsnodes of a small machine with Torque."""
    states = ("free", "job-exclusive", "down,offline")
    return "".join(TORQUE_NODE.format(name=f"t{i}", state=each) for i, each in enumerate(states))


CRAY = {
    "sinfo": CRAY_SINFO,
    "config": CRAY_CONFIG,
    "topology": CRAY_TOPOLOGY,
    "mpi": CRAY_MPI,
    "node": "NodeName=nid001000 State=IDLE",
}
GROWN = {
    "sinfo": GROWN_SINFO,
    "config": NO_ACCOUNTING,
    "mpi": "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: openmpi\n",
    "node": "NodeName=new001 State=IDLE",
}
PBS = {"pbsnodes": pbs_nodes(), "queues": PBS_QUEUES, "server": PBS_SERVER}
TORQUE = {"pbsnodes": torque_nodes(), "queues": PBS_QUEUES.replace("started = False", ""), "server": ""}


def answering(outputs: Mapping[str, str]) -> Callable[[Sequence[str]], str]:
    """A machine on which these commands print this, and every other command fails."""

    def ask(words: Sequence[str]) -> str:
        line = " ".join(words)
        keys = {"sinfo": "sinfo", "show config": "config", "show topology": "topology"}
        keys |= {"--mpi=list": "mpi", "show node": "node", "pbsnodes": "pbsnodes"}
        keys |= {"qstat -Q": "queues", "qstat -B": "server"}
        key = next(key for part, key in keys.items() if part in line)
        if key not in outputs:
            raise ProbeError(f"{line} failed with exit code 1: no such thing here")
        return outputs[key]

    return ask
