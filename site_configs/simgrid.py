"""SimGrid's SMPI: a real MPI program on a modelled machine, in simulated time that repeats exactly.

SMPI has no collectives of its own but those of other MPIs, and a *selector* chooses a set of them: each
selector is an environment here. A platform file (``platforms/README.md``) is a machine, and a partition.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

from postprocess.base import files
from postprocess.base.formats import parse_decimal
from postprocess.base.sanitize import quote_word
from site_configs.common import SIMULATED, NotInstalledError, SiteError, environment, partition
from site_configs.mpi.family import SIMULATED_LIBRARY
from site_configs.schema.fields import PLATFORM_HASH
from site_configs.schema.reframe_request import current_request
from site_configs.topology.layouts import Layout, Topology

PLATFORMS = Path(__file__).parent / "platforms"
SELECTORS = ("mpich", "ompi", "mvapich2", "impi")  #: those that stand for an MPI implementation
#: Routines for which Open MPI's algorithms replace a selector's own, which are wrong in SimGrid 3.32.
#: MVAPICH2's: the time of gather depends on what ran before; reduce of 1 MB writes where only the root may be
#: written to (64 processes), and allreduce fails without that reduce. Intel MPI's: bcast delivers wrong data (8
#: processes on 8 nodes), allreduce aborts (32 on 8), reduce is as MVAPICH2's, and gather crashes (65 on 17).
REPLACED = {"mvapich2": ("gather", "reduce", "allreduce"), "impi": ("bcast", "allreduce", "reduce", "gather")}


class Dying(NamedTuple):
    """An algorithm that kills the whole launch, by SIGFPE or SIGABRT, if a message has no bytes."""

    algorithm: str
    of: str  #: the selector that it belongs to
    routines: tuple[str, ...]  #: routines of mpicost that call it
    counts: tuple[int, ...] = ()  #: process counts at which it does so; empty for all


DYING = (
    Dying(
        "reduce",
        "ompi",
        (
            *("reduce_sum", "reduce_min", "reduce_max", "gather_as_reduce"),
            *("allreduce_sum_as_reduce_bcast", "reduce_scatter_sum_as_reduce_scatterv"),
            "reduce_scatter_block_sum_as_reduce_scatter",
        ),
    ),
    Dying(
        "allreduce",
        "ompi",
        (
            *("allreduce_sum", "allreduce_min", "allreduce_max"),
            *("allgather_as_allreduce", "reduce_scatter_sum_as_allreduce"),
        ),
    ),
    Dying("bcast", "ompi", ("bcast", "scatter_as_bcast", "allgather_as_gather_bcast"), (2, 3)),
    Dying(
        "allgatherv",
        "ompi",
        (*("bcast_as_allgatherv", "allgather_as_allgatherv"), "allreduce_sum_as_reduce_scatter_allgatherv"),
        (3,),
    ),
    Dying("alltoallv", "ompi", ("alltoall_as_alltoallv",), (3,)),
    Dying(
        "allgather",
        "impi",
        (*("allgather", "bcast_as_scatter_allgather"), "allreduce_sum_as_reduce_scatter_allgather"),
        (2, 3),
    ),
)
NAMED = {"ompi": "Open MPI", "impi": "Intel MPI"}
NEEDED = ("smpicc", "smpirun", "setpriv")  #: setpriv is in util-linux
FIX = "install SimGrid with SMPI (Debian and Ubuntu: apt-get install libsimgrid-dev)"

#: Environment variables of a launch, so that its records contain them too.
PLATFORM, SELECTOR, STAND_INS = "SMPI_PLATFORM", "SMPI_SELECTOR", "SMPI_STAND_INS"
#: A host file instead of the launcher's own, to try another placement.
HOST_FILE = "SMPI_HOST_FILE"
#: Bytes that the processes of one launch may need together, as in ``8e9``.
MEMORY = "PLUMBLINE_SIMULATED_MEMORY"

MEMORY_DEFAULT = 500_000_000
TRIALS = 2  #: one trial is enough; the first is dropped as everywhere
#: Partners in ping-pong: near, increasingly far, and the last of the papers' 128.
PEERS = [1, 4, 16, 64, 127]
TIME_LIMIT = "1800s"  #: limit of a launch; simulating 1,024 processes takes minutes


@register_launcher("smpirun")
class SmpirunLauncher(JobLauncher):
    """Start a program on the platform and with the selector that the job's variables name.

    The simulator writes its selector to standard error (see :func:`selector`), and dies with ``smpirun``: on
    its own it would go on computing.
    """

    def command(self, job: Any) -> list[str]:
        """Return the launch line up to the program; write the host file into the job's directory."""
        hosts = host_list(job.num_tasks, job.num_tasks_per_node)
        Path(job.workdir, "hosts").write_text("".join(f"{host}\n" for host in hosts))
        return [
            "smpirun",
            *("-wrapper", quote_word("setpriv --pdeathsig KILL")),
            *("-np", str(job.num_tasks)),
            *("-platform", f'"${PLATFORM}"'),
            *("-hostfile", f'"${{{HOST_FILE}:-hosts}}"'),
            f'--cfg=smpi/coll-selector:"${SELECTOR}"',
            f"${STAND_INS}",  # several words, or none
            "--cfg=smpi/simulate-computation:no",
            "--log=root.thres:error",
            "--log=smpi_coll.thres:info",
        ]


def host_list(processes: int, per_node: int) -> list[str]:
    """Return the host of each process in turn: node after node is filled."""
    return [f"n{rank // per_node}" for rank in range(processes)]


def hosts_of(platform: Path) -> list[str]:
    """Return the hosts of a platform file that consists of one cluster, in the order of the file."""
    cluster = ElementTree.fromstring(files.read_text(platform)).find("zone/cluster")
    if cluster is None:
        raise SiteError(f"{platform}: has no cluster in its zone")
    first, last = map(int, cluster.attrib["radical"].split("-"))
    prefix, suffix = cluster.attrib["prefix"], cluster.attrib["suffix"]
    return [f"{prefix}{number}{suffix}" for number in range(first, last + 1)]


def version() -> str:
    """Return the version of the SimGrid on PATH, as in ``3.32``; empty if the site is only looked at.

    :raises NotInstalledError: if a part of it is missing.
    :raises ValueError: if ``smpirun`` is another program.
    """
    if current_request().only_looking:
        return ""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise NotInstalledError(f"simulated machines: {missing[0]} is not on the PATH: {FIX}")
    done = subprocess.run(["smpirun", "-version"], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    if words[:2] != ["SimGrid", "version"] or len(words) != 3:
        raise SiteError(f"simulated machines: smpirun -version said {done.stdout!r}: {FIX}")
    return words[2]


def selector(name: str) -> dict[str, Any]:
    """Return the environment of a selector. All share one build, because the program is the same.

    ``proof`` is a line of the running simulator: without it a launch counts as incorrect.
    """
    stand_ins = " ".join(f"--cfg=smpi/{routine}:ompi" for routine in REPLACED.get(name, ()))
    entry = environment(
        f"simgrid-{name}",
        family=SIMULATED,
        library=f"{SIMULATED_LIBRARY} {version()}",
        launcher="smpirun",
        mpicc="smpicc",
        env_vars={SELECTOR: name, STAND_INS: quote_word(stand_ins)},
    )
    entry["extras"] |= {
        "proof": f"Switch to algorithm {name} for collective barrier",
        "build": "simgrid",
        "compiler_variable": "CMAKE_C_COMPILER",
        "impossible": list_impossible(name),
    }
    return entry


def list_impossible(name: str) -> dict[str, str]:
    """List what no launch with a selector can do, and why: ``ROUTINE:BYTES`` or ``ROUTINE:BYTES:PROCESSES``."""
    impossible: dict[str, str] = {}
    for dying in DYING:
        if name == dying.of or (dying.of == "ompi" and dying.algorithm in REPLACED.get(name, ())):
            ends = [f":{count}" for count in dying.counts] or [""]
            why = f"SimGrid 3.32's {dying.algorithm} of {NAMED[dying.of]} ends the launch for 0 bytes"
            impossible |= {f"{routine}:0{end}": why for routine in dying.routines for end in ends}
    return impossible


def machine(
    name: str,
    *,
    per_node: int,
    counts: Sequence[int],
    selectors: Sequence[str] = ("mpich",),
    sparse: Sequence[Layout] = (),
    left_out_above: Mapping[str, int] | None = None,
    nodes_per_switch: int = 0,
    platform: Path | None = None,
) -> dict[str, Any]:
    """Return the partition of a simulated machine.

    :param per_node: processes on a full node.
    :param counts: process counts that a night measures, on full nodes.
    :param sparse: layouts on partly filled nodes.
    :param left_out_above: process counts above which a night leaves out a routine.
    :param platform: its file, if that does not have this name.
    """
    file = platform or PLATFORMS / f"{name}.xml"
    full = [Layout(count, min(count, per_node)) for count in counts]
    return partition(
        name,
        topology=Topology(per_node, nodes=len(hosts_of(file)), nodes_per_switch=nodes_per_switch),
        environments=[f"simgrid-{word}" for word in selectors],
        layouts=sorted([*full, *sparse]),
        defaults={
            "trials": TRIALS,
            "cache": "warm",
            "peers": PEERS,
            "time_limit": TIME_LIMIT,
            "left_out_above": dict(left_out_above or {}),
        },
        exact=True,
        shared_memory_bytes=memory_bytes(),
        env_vars=[[PLATFORM, quote_word(str(file))], [PLATFORM_HASH, hash_of(file)]],
    )


def hash_of(file: Path) -> str:
    """Return the first digits of the SHA-256 of a platform file, which references record."""
    return hashlib.sha256(files.read_regular(file)).hexdigest()[:16]


def memory_bytes() -> int:
    """Return the bytes that the processes of one launch may need together.

    :raises ValueError: if the user's choice is not a number.
    """
    text = os.environ.get(MEMORY, str(MEMORY_DEFAULT))
    try:
        number = int(parse_decimal(text))
    except (ValueError, OverflowError):
        number = 0
    if number < 1:
        raise SiteError(f"{MEMORY}: {text!r}: write a number of bytes, as in 8e9")
    return number
