"""The pieces of a site file: their fields, with type, limits and default, and consistency rules.

A wrong value must not get further, or a launch would fail at night, or less would be measured than the site
file says. ``docs/site_file.schema.json`` is made from these classes.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from site_configs.annotations import from_least, one_of, whole
from site_configs.programs.installed import Programs
from site_configs.schema.transports import Transports
from site_configs.schema.waivers import Waivers
from site_configs.topology.gpus import VENDORS, Gpus, find_gpu_faults
from site_configs.topology.layouts import Topology

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")  #: what ReFrame accepts as a name
#: As ReFrame reads it, which accepts digits of every script; and not zero, which it takes for no limit.
DURATION = re.compile(r"(?=.*[1-9])([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?")
MODULES_SYSTEMS = ("envmod", "lmod", "nomod", "spack")  #: known to ReFrame
CACHES = ("evict", "flush", "warm")
SYNCS = ("dissemination", "barrier", "window", "loop")
SESSION_GAP_MINUTES = 20  #: between launches of two sessions, by default
REFERENCE_DAYS = 180  #: half a year: most machines have had an update by then
#: Identifies the platform of a launch in simulated time; times on another platform are not comparable.
PLATFORM_HASH = "SMPI_PLATFORM_HASH"
MOST_TRIALS = 1_000_000  #: the limit of mpicost
MOST_ROUNDS = 1000  #: the limit of mpicost
#: Keys of a partition and of its extras that ``partition`` sets itself, and the arguments that they follow
#: from.
FOLLOW_FROM = {
    "environs": "environments",
    "processor": "topology",
    "most_processes": "topology",
    "cores_per_node": "topology",
    "nodes": "topology",
    "threads_per_core": "topology",
    "gpus": "gpus",
    "layouts": "layouts",
    "defaults": "defaults",
    "exact": "exact",
    "shared_memory_bytes": "shared_memory_bytes",
    "accept": "accept",
    "reference_days": "reference_days",
    "session_gap_minutes": "session_gap_minutes",
}

NAME_RULE = "letters, digits, _ and - only, a letter first"
Name = Annotated[str, Meta(pattern=whole(NAME.pattern), description=NAME_RULE)]
Text = Annotated[str, Meta(pattern=r"^[^\x00]*\S[^\x00]*$")]  #: not empty
ONE_LINE = r"^(?=.*\S)[^\x00\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+$"
Line = Annotated[str, Meta(pattern=ONE_LINE, description="a text of one line, in quotes")]
#: A module name: ReFrame writes it into a script as it is.
Module = Annotated[
    str, Meta(pattern=whole("[A-Za-z0-9_@%+=:,./-]+"), description="letters, digits and _@%+=:,./- only")
]
Variable = Annotated[
    str, Meta(pattern=whole("[A-Za-z_][A-Za-z0-9_]*"), description="letters, digits and _ only, a letter first")
]
Variables = Annotated[Mapping[Variable, str], Meta(description="{'NAME': 'value'}")]
Prefix = Annotated[str, Meta(pattern=r"^(/|(?!\n)$)", description="an absolute path, as in '/opt/openmpi-5.0'")]
LAUNCHER_RULE = "a launcher of ReFrame's, as in 'srun', or a list of words, as in ['mpiexec']"
#: No pattern for the name alone: msgspec 0.22 frees a pattern wrongly that is in a union with a list.
Launcher = Annotated[
    Annotated[str, Meta(min_length=1)] | Annotated[Sequence[Text], Meta(min_length=1)],
    Meta(description=LAUNCHER_RULE),
]
MeasuredLayout = Annotated[
    tuple[Annotated[int, Meta(ge=2)], Annotated[int, Meta(ge=1)]],
    Meta(description="[processes, processes_per_node], 2 and 1 or more"),
]
MeasuredLayouts = Annotated[
    Sequence[MeasuredLayout],
    Meta(min_length=1, description="a list, as in [[8, 4], [8, 8]]; None for the topology's"),
]
Trials = Annotated[
    int,
    Meta(
        ge=2,
        le=MOST_TRIALS,
        description=f"a whole number from 2 to {MOST_TRIALS:,}; the first trial is dropped",
    ),
]
Rounds = Annotated[int, Meta(ge=1, le=MOST_ROUNDS, description=f"a whole number from 1 to {MOST_ROUNDS:,}")]
Rank = Annotated[int, Meta(ge=1, description="a rank, 1 or more")]
Peers = Annotated[Sequence[Rank], Meta(description="a list of ranks, 1 or more each; [] for all")]
Limits = Annotated[
    Mapping[Text, Annotated[int, from_least(1)]],
    Meta(description="{'scan_min': 32}, the most processes, 1 or more, by routine"),
]
Duration = Annotated[
    Annotated[int, Meta(gt=0)]
    | Annotated[float, Meta(gt=0, le=sys.float_info.max)]
    | Annotated[str, Meta(pattern=whole(DURATION.pattern))],
    Meta(description="more than nothing, as in '1h30m' or '600s'"),
]


class Environment(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One MPI implementation."""

    name: Name
    #: ``mpich``, ``openmpi``, ``intel-mpi``, ...
    family: Annotated[Text, Meta(description="its name, as in 'mpich'")]
    #: Text that MPI_Get_library_version must contain in every program this environment runs.
    library: Annotated[
        Text, Meta(description="name and version as MPI_Get_library_version says them, in quotes")
    ]
    #: Name of one of ReFrame's launchers (``srun``), or the words that start a launch line
    #: (``["/opt/mpich/bin/mpiexec"]``), to which ``-n N`` and the program are added.
    launcher: Launcher
    #: Words that start a program in the container that holds this MPI (``["apptainer", "exec", "/mpi.sif"]``).
    #: They stand before the compiler wrapper and before each process, unless the launcher is in the container
    #: too and begins with them. In there, Plumbline and its work directory have the same paths as outside.
    container: Sequence[Line] = ()
    #: Compiler wrapper, found after the modules are loaded or given by absolute path.
    mpicc: Annotated[Text, Meta(description="the name or path of the compiler wrapper")] = "mpicc"
    modules: Sequence[Module] = ()
    #: Needed to compile and to run; the values as a shell reads them.
    env_vars: Variables | None = None
    #: Where this MPI is installed, so that Spack builds the programs on it; it follows from an ``mpicc`` with a
    #: path. Without it ``mpicost`` is built by CMake, and OSU and IMB are skipped.
    prefix: Prefix = ""
    #: Benchmarks that are installed for this MPI: the folder of ``IMB-MPI1`` for ``imb``, and for ``osu`` the
    #: one that holds ``pt2pt`` and ``collective``. What is not given is built by Spack.
    programs: Programs | None = None
    #: Why a program that is not given cannot be had without Spack.
    lacking: Mapping[str, str] | None = None
    #: Those of ``lacking`` that were tried with this MPI and failed: ``compare`` never leaves them out.
    unfit: Sequence[str] = ()
    #: Differences from the references in spite of which values are compared, each with its reason
    #: (``{"compiler": "gcc 13.1 was measured against 12.2 in May"}``).
    accept: Waivers | None = None
    #: By which pairs of ranks must talk, in a node and between nodes
    #: (``{"node": "ucx:posix|sysv|cma", "network": "ucx:rc|dc x2"}``, the latter on two rails at least).
    transports: Transports | None = None
    #: GPUs whose memory this MPI takes: ``cuda`` or ``rocm``. Without it, cases of GPUs are skipped.
    gpu: Annotated[
        str, Meta(pattern=whole("|".join(("", *VENDORS))), description=f"one of {', '.join(VENDORS)}")
    ] = ""
    #: Folder of this MPI's ``libmpi_abi.so.1``: it runs the one ``mpicost`` that is built against the standard
    #: ABI of MPI for all such environments, and nothing else.
    standard_abi: Annotated[
        str, Meta(pattern=r"^(/|(?!\n)$)", description="the absolute path of the folder of libmpi_abi.so.1")
    ] = ""


class Defaults(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Values of variables of the checks on a partition, as far as it sets them."""

    trials: Trials | UnsetType = UNSET
    trial_rounds: Rounds | UnsetType = UNSET
    cache: Annotated[str, one_of(CACHES)] | UnsetType = UNSET
    sync: Annotated[str, one_of(SYNCS)] | UnsetType = UNSET
    #: Partners of rank 0 in ping-pong; none for all.
    peers: Peers | UnsetType = UNSET
    #: Most processes, by routine. The checks know which routines there are.
    left_out_above: Limits | UnsetType = UNSET
    seconds_per_layout: Annotated[int, from_least(1, "seconds")] | UnsetType = UNSET
    time_limit: Duration | UnsetType = UNSET
    max_pending_time: Duration | UnsetType = UNSET


class Partition(msgspec.Struct, kw_only=True):
    """One kind of nodes."""

    name: Name
    #: From which the layouts follow.
    topology: Topology
    environments: Sequence[Line]
    scheduler: Annotated[Text, Meta(description="the name of one of ReFrame's, as in 'local'")] = "local"
    #: Options that every job needs (``["--partition=cpu", "--exclusive"]``).
    access: Sequence[Line] = ()
    #: Jobs at once; more than one only where jobs cannot disturb each other.
    max_jobs: Annotated[int, from_least(1)] = 1
    #: What is measured, where that does not follow from the topology.
    layouts: MeasuredLayouts | None = None
    #: GPUs of each node (``{"kind": "cuda", "per_node": 4}``).
    gpus: Annotated[Gpus, Meta(description="{'kind': 'cuda', 'per_node': 4}")] | None = None
    #: Values of variables of the checks on this partition (``{"trials": 21}``).
    defaults: Annotated[Defaults, Meta(description="{'trials': 21}")] | None = None
    #: Whether time is simulated and repeats to the last digit.
    exact: bool = False
    #: Bytes of memory that all processes of a launch share, where simulated nodes have none of their own; cases
    #: that need more are skipped. 0: nodes have their own.
    shared_memory_bytes: Annotated[int, from_least(0)] = 0
    #: As of an environment.
    accept: Waivers | None = None
    #: After which ``references age`` calls a reference of this partition old.
    reference_days: Annotated[int, from_least(1, "days")] = REFERENCE_DAYS
    #: Between the ends of two launches, beyond which they are of two sessions.
    session_gap_minutes: Annotated[int, from_least(1, "minutes")] = SESSION_GAP_MINUTES
    #: Further facts of the user's own.
    extras: Mapping[str, Any] | None = None
    #: Any further key of a ReFrame partition.
    more: Mapping[str, Any] = {}


class Site(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole ReFrame configuration of one system."""

    name: Name
    description: str
    #: What ``partition()`` returned.
    partitions: Sequence[Mapping[str, Any]]
    #: What ``environment()`` returned.
    environments: Sequence[Mapping[str, Any]]
    #: Patterns of the hosts it is for, where ReFrame is started by hand.
    hostnames: Sequence[Line] = (".*",)
    modules_system: Annotated[str, one_of(MODULES_SYSTEMS)] = "nomod"
    #: Differences from the references in spite of which values are compared, everywhere; what a partition or an
    #: environment says of the same difference counts before it.
    accept: Waivers | None = None


def build_json_schema() -> dict[str, Any]:
    """Build the JSON schema of a site file: a site with its partitions and environments."""
    kinds, place = (Site, Partition, Environment), "#/$defs/{name}"
    (whole_site, *parts), pieces = msgspec.json.schema_components(kinds, ref_template=place)
    del pieces["Partition"]["properties"]["more"]  # it is not a key, but stands for all other keys
    for key, part in zip(("partitions", "environments"), parts, strict=True):
        pieces["Site"]["properties"][key]["items"] = part
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What a site file of Plumbline says",
        **whole_site,
        "$defs": pieces,
    }


def find_environment_faults(environment: Environment, only_looking: bool) -> Iterator[str]:
    """Find values of an environment that have the right type but cannot work.

    :param only_looking: whether nothing will run; then an absent MPI need not have a version
    """
    launcher, library = environment.launcher, environment.library
    if isinstance(launcher, str) and not launcher.strip():
        yield f"launcher: {launcher!r}: write {LAUNCHER_RULE}"
    named = re.search(r"[A-Za-z]{2}", library) and re.search(r"\d", library)
    if not named and not only_looking:  # it would match nearly every MPI
        fix = "write name and version as MPI_Get_library_version says them"
        yield f"library: {library!r} would accept other MPIs; {fix}"
    if environment.standard_abi and environment.programs:
        fix = "declare a second environment for them"
        names = ", ".join(sorted(environment.programs))
        yield f"standard_abi: {names} cannot run, only mpicost is built for it; {fix}"
    if environment.standard_abi and environment.container:
        yield "standard_abi: no program is built for it in a container; leave one of the two out"
    if environment.prefix and environment.container:
        yield "prefix: Spack builds nothing in a container; leave one of the two out"


def find_partition_faults(partition: Partition, layouts: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Find fields of a partition that contradict each other.

    :param layouts: declared ones, or those that follow from its topology
    """
    derived = {f"extras: {key!r}": FOLLOW_FROM[key] for key in partition.extras or {} if key in FOLLOW_FROM}
    derived |= {key: FOLLOW_FROM[key] for key in partition.more if key in FOLLOW_FROM}
    yield from (f"{key}: follows from {word}=; write that" for key, word in derived.items())
    for number, (processes, per_node) in enumerate(layouts):
        shown = [processes, per_node]
        if per_node > processes:
            fix = f"write [{processes}, {processes}] at most"
            yield f"layouts: {shown}: has more processes per node than processes; {fix}"
        elif (processes, per_node) in layouts[:number]:
            yield f"layouts: {shown}: is there twice; write it once"
    if partition.gpus:
        yield from find_gpu_faults(partition.gpus)
    most = max((processes for processes, _ in layouts), default=0)
    peers = partition.defaults.peers if partition.defaults else UNSET
    if most and peers and min(peers) >= most:
        fix = f"write ranks below {most}, the most processes of a layout"
        yield f"defaults: peers: {list(peers)}: are in no layout; {fix}"


def find_pattern_faults(hostnames: Sequence[str]) -> Iterator[str]:
    """Find patterns of host names that are not regular expressions."""
    for pattern in hostnames:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            fix = r"write a regular expression, as in r'login\d+'"
            yield f"hostnames: {pattern!r} is not a pattern ({error}); {fix}"
