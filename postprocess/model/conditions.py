"""The conditions of a launch: the facts of its run record that may change a time.

Facts that change no time are left out: host names, paths, the kernel, who built an MPI, warnings, debug
symbols, and which cores are used.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.base.formats import plural
from postprocess.model.gpu import describe_gpus
from postprocess.model.interposed import BELOW, INTERPOSED, SEPARATOR, describe_below, describe_interposed
from postprocess.model.routines.benchmark import THREADS
from site_configs.schema.fields import PLATFORM_HASH
from site_configs.topology.machine import LIMITS

#: Facts that a launch must share with its reference to be comparable.
SHARED_METHOD = ("suite_version", "trials", "dropped", "relative_error")
ROUNDS = "rounds"  #: number of rounds of trials; not recorded for one round
METHOD = (*SHARED_METHOD, "settle", "cpu_model")
EXACT_METHOD = (*SHARED_METHOD, "mpi_library", "platform")  #: simulated, on any machine

PATH = re.compile(r"/[^\s'\"=:;,]*")
#: A build folder of Spack, wherever it is
HASHED = re.compile(r"[A-Za-z0-9_.+-]+-[a-z0-9]{32}")
#: Options of configure that only say where things are
PLACES = re.compile(r"--(prefix|exec-prefix|[a-z]*dir)=")
BUILDER = re.compile(r"\S+@\S+ ")  #: who built Open MPI, and on which host
#: Compiler options that change no timed instruction: debug symbols, warnings and paths of files. Options that
#: are passed on (``-Wa,``) or that choose code (``-gpu=``) begin like them but count.
COSMETIC = re.compile(
    r"-g([0-3]|(gdb|dwarf|split).*)?|-W(?![alp],).*|-Wl,-rpath.*|-(I|isystem|L).*"
    r"|-f(diagnostics|file-prefix|debug-prefix).*|/.*"
)
#: An object in run records; a circumstance if a program is built against the standard ABI.
STANDARD_ABI = "standard_abi"
GPUS = "gpus"  #: names of the GPUs that hold the buffers; a circumstance of a launch that has any
PROCESSORS = " + "  #: separates the processors of a job
UNKNOWN = "unknown"  #: begins the name of a processor that the kernel does not name


@dataclass(frozen=True)
class LaunchConditions:
    """How and on what a launch measured: the same for all of its cases."""

    exact: bool  #: whether its time is simulated
    method: Mapping[str, Any]
    circumstances: Mapping[str, Any]  #: empty for simulated time
    has_unidentified_processor: bool  #: whether nothing distinguishes its processor from others
    cpu_model: str | None


def conditions_of(run: Mapping[str, Any], exact: bool) -> LaunchConditions:
    """Return the conditions of a launch from its run record. ``exact`` means simulated time."""
    return LaunchConditions(
        exact,
        method_of(run, exact),
        {} if exact else circumstances_of(run),
        not exact and has_unidentified_processor(run),
        run.get("cpu_model"),
    )


def method_of(run: Mapping[str, Any], exact: bool) -> dict[str, Any]:
    """Return the facts that two comparable launches share. ``exact`` means simulated time."""
    if "method" in run:  # a reference benchmark
        return {**run["method"], "version": run["version"], "cpu_model": run.get("cpu_model")}
    facts = {**run, "platform": run.get("environment", {}).get(PLATFORM_HASH)}
    loop = {"loop_seconds": run["loop_seconds"]} if "loop_seconds" in run else {}
    rounds = {ROUNDS: run[ROUNDS]} if run.get(ROUNDS, 1) != 1 else {}
    return {key: facts.get(key) for key in (EXACT_METHOD if exact else METHOD)} | rounds | loop


def circumstances_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return machine, binding and build of a launch from its run record, with None for missing facts.

    Libraries in front of the MPI are included only if there are any, and the version of the standard ABI only
    if the program is built against it. OSU and IMB have version, compiler and flags in their method instead.
    The binding of processes with several threads (IMB-MT) counts as another layout.
    """
    by_mpicost, loaded = "method" not in run, describe_interposed(run.get(INTERPOSED, ()))
    layout = f"{run.get('processes')}x{run.get('per_node')}"
    layout += f" of {plural(run[THREADS], 'thread')}" if THREADS in run else ""
    return {
        "mpi_library": library_identity(run.get("mpi_library")),
        "caches": caches_of(run.get("caches")),
        "binding": {layout: binding_of(run)},
        **({"source_hash": run.get("source_hash")} if by_mpicost else {}),
        **({"compiler": run.get("compiler")} if by_mpicost else {}),
        **({"flags": flags_of(run.get("compiler_flags"))} if by_mpicost else {}),
        **({INTERPOSED: loaded} if loaded else {}),
        **({BELOW: below} if (below := describe_below(run)) else {}),
        **({STANDARD_ABI: run[STANDARD_ABI]["version"]} if STANDARD_ABI in run else {}),
        **({GPUS: gpus} if (gpus := describe_gpus(run)) else {}),
        **({LIMITS: run[LIMITS]} if LIMITS in run else {}),
    }


def has_unidentified_processor(run: Mapping[str, Any]) -> bool:
    """Return whether a launch recorded neither a processor name nor the sizes of the caches."""
    names = (run.get("cpu_model") or UNKNOWN).split(PROCESSORS)
    return not run.get("caches") and any(name.startswith(UNKNOWN) for name in names)


def library_identity(said: str | None) -> str | None:
    """Return the text of MPI_Get_library_version without what differs between two copies of the same build.

    A path becomes the folder's name if that names a build of Spack, else its last part. Installation paths are
    removed, and from Open MPI's package the user and host of its builder.
    """
    if said is None:
        return None
    lines = (" ".join(map(_without_place, BUILDER.sub("", line).split())) for line in said.split("\n"))
    return SEPARATOR.join(line for line in lines if line)


def _without_place(word: str) -> str:
    if build := HASHED.search(word):
        return word[: word.find("/")] + build[0] if "/" in word else word
    if "://" in word:
        return word
    plain = word.strip("'\"")
    if PLACES.match(plain):
        return ""
    return PATH.sub(lambda path: path[0].rstrip("/").rpartition("/")[2], word)


def flags_of(said: str | None) -> str | None:
    """Return the compiler options that may change a time, in their order, because the last one holds."""
    if said is None:
        return None
    return " ".join(word for word in said.split() if not COSMETIC.fullmatch(word))


def caches_of(caches: Sequence[Mapping[str, Any]] | None) -> str | None:
    """Return the sizes of the caches and how many CPUs share them; they distinguish nodes of one CPU name."""
    if caches is None:
        return None
    return ", ".join(sorted(f"L{c['level']} {c['type']} {c['bytes']} of {c['shared_by']}" for c in caches))


def is_bound(run: Mapping[str, Any]) -> bool:
    """Return whether each rank is bound to one CPU that no other rank has."""
    sets = [(rank["host"], cpus_of(rank.get("cpus", ""))) for rank in run.get("ranks", ())]
    bound = {(host, *sorted(cpus)) for host, cpus in sets if len(cpus) == 1}
    return bool(sets) and len(bound) == len(sets)


def binding_of(run: Mapping[str, Any]) -> str | None:
    """Return the shape of the ranks' CPU sets on all hosts, such as ``4 ranks of 1 CPU``.

    The shape counts the CPUs of each rank and the ranks that share them, or that share its core through other
    hardware threads. It does not say which CPUs they are.
    """
    if "ranks" not in run:
        return None
    shapes: Counter[tuple[int, int, int]] = Counter()
    sets = [(rank["host"], rank.get("cpus", "")) for rank in run["ranks"]]
    cpus = [frozenset((host, cpu) for cpu in cpus_of(text)) for host, text in sets]
    users = Counter(cpu for rank_cpus in cpus for cpu in rank_cpus)
    on_core = _count_on_cores(run)
    for rank_cpus, others in zip(cpus, on_core, strict=True):
        sharing = max((users[cpu] for cpu in rank_cpus), default=1)
        shapes[len(rank_cpus), sharing, others if others > sharing else 0] += 1
    return ", ".join(_shape(*shape, ranks) for shape, ranks in sorted(shapes.items()))


def _count_on_cores(run: Mapping[str, Any]) -> list[int]:
    """Count the ranks on the core of each rank; 0 for a rank that is not bound or whose core is unknown."""
    cores = [
        (rank["host"], frozenset(core)) if core and cpus_of(rank.get("cpus", "")) <= core else None
        for rank in run["ranks"]
        for core in [cpus_of(rank.get("core", ""))]
    ]
    ranks = Counter(core for core in cores if core)
    return [ranks[core] if core else 0 for core in cores]


def explain_other_cores(run: Mapping[str, Any], ranks_per_core: int) -> str:
    """Explain why cores do not have so many ranks, each on its own hardware thread; empty if they have."""
    fix = "see the launcher in the site file"
    taken: set[tuple[str, int]] = set()
    for rank, others in zip(run["ranks"], _count_on_cores(run), strict=True):
        where = f"rank {rank['rank']} on {rank['host']}"
        cpus = cpus_of(rank.get("cpus", ""))
        if len(cpus) != 1:
            return f"{where} is not bound to one hardware thread, but to CPUs {rank.get('cpus', '')!r}; {fix}"
        if not rank.get("core"):
            return f"{where}: its core has no second hardware thread; see threads_per_core in the site file"
        if others != ranks_per_core:
            return f"{where}: {others} ranks are bound to its core, not {ranks_per_core}; {fix}"
        thread = (rank["host"], *cpus)
        if thread in taken:
            return f"{where} shares its hardware thread with another rank; {fix}"
        taken.add(thread)
    return ""


def _shape(cpus: int, users: int, on_core: int, ranks: int) -> str:
    shared = f" shared by {users}" if users > 1 else ""
    shared += f" with {on_core} on a core" if on_core else ""
    number = f"{cpus} CPU{'s' if cpus != 1 else ''}" if cpus else "unknown CPUs"
    return f"{ranks} rank{'s' if ranks != 1 else ''} of {number}{shared}"


def cpus_of(said: str) -> set[int]:
    """Return the CPUs of a list such as ``0-3,8``, as Linux writes it; empty if it is malformed."""
    cpus: set[int] = set()
    for part in said.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return set()
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus
