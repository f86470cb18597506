"""The local machine: cores, caches and memory, the limits of its shell, and those of a site.

Limits are inherited from whatever starts a night: cron, a login shell and systemd set different ones. Little
locked memory makes MPIs fail, or use slower ways on InfiniBand.
"""

import os
import platform
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any

from postprocess.base import files
from postprocess.base.sanitize import quote_word

CPUS = Path("/sys/devices/system/cpu")
#: Facts in /proc/cpuinfo that together name a processor without a model name: on POWER, ARM and RISC-V. The
#: first one must be present. ``suite/src/processor.c`` has the same rules.
NAMING = (
    ("cpu", "machine"),
    ("CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
    ("uarch", "isa"),
    ("isa",),
)
NAME_BYTES = 511  #: longest name of a processor
UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(frozen=True)
class Cache:
    """One cache of a core. Size in bytes; ``shared_by`` counts hardware threads."""

    level: int
    type: str
    bytes: int
    shared_by: int


@dataclass(frozen=True)
class Machine:
    """One node. Cores are physical cores that this process may use."""

    host: str
    cpu_model: str
    kernel: str
    cores: int
    hardware_threads: int
    sockets: int
    memory_bytes: int
    caches: tuple[Cache, ...]
    firmware: str = ""  #: version and date of the BIOS; empty if unknown

    def as_dict(self) -> dict[str, Any]:
        """Return the machine as plain data, for files."""
        return {**asdict(self), "caches": [asdict(cache) for cache in self.caches]}


def parse_cpu_list(text: str) -> set[int]:
    """Parse the CPUs of a kernel list such as ``0-3,8``."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def parse_cache_bytes(text: str) -> int:
    """Parse the bytes of a kernel cache size such as ``1024K``."""
    text = text.strip()
    return int(text[:-1]) * UNITS[text[-1]] if text[-1:] in UNITS else int(text)


def read_caches(cpu: Path) -> tuple[Cache, ...]:
    """Read the data and unified caches of one CPU; empty if the kernel shows none (some containers)."""
    caches = []
    for index in sorted((cpu / "cache").glob("index*")):
        try:
            caches.append(read_cache(index))
        except (OSError, ValueError):
            continue  # some ARM machines list caches without their sizes
    return tuple(cache for cache in caches if cache.type != "Instruction")


def read_cache(index: Path) -> Cache:
    """Read one cache from its directory. OSError or ValueError if the kernel's record is incomplete."""
    return Cache(
        level=int((index / "level").read_text()),
        type=(index / "type").read_text().strip(),
        bytes=parse_cache_bytes((index / "size").read_text()),
        shared_by=len(parse_cpu_list((index / "shared_cpu_list").read_text())),
    )


def read_quota_cpus(
    root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Read how many whole CPUs the quotas of control groups allow; None without a quota.

    The smallest quota of this process's group and all groups above it counts, in version 2 and version 1.
    """
    shares = [_read_quota(folder) for folder in _list_groups(root, groups)]
    least = min((share for share in shares if share is not None), default=None)
    return None if least is None else max(1, int(least))


def _list_groups(root: Path, groups: Path) -> Iterator[Path]:
    """List the folders of the control groups that may limit this process; some of them may not exist."""
    try:
        lines = [line.split(":", 2) for line in groups.read_text().splitlines()]
    except OSError:
        lines = []
    yield from (root, root / "cpu")  # in a container the root is its own group
    for _, controllers, path in (words for words in lines if len(words) == 3):
        group = PurePosixPath("/", path.strip()).relative_to("/")
        if not controllers:
            mounts = ["", "unified"]  # of version 2, alone or beside version 1
        elif "cpu" in controllers.split(","):
            mounts = ["cpu", controllers]
        else:
            continue
        for mount in mounts:
            yield from (root / mount / ancestor for ancestor in (group, *group.parents))


def _read_quota(group: Path) -> float | None:
    """Read the CPUs that one group allows; None if it sets no quota."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((group / name).read_text().strip() for name in names)
        except OSError:
            return None
    limited = quota.isdigit() and period.isdigit() and int(period) > 0  # otherwise "max" or -1
    return int(quota) / int(period) if limited else None


def count_cores_and_sockets(cpus: set[int], root: Path = CPUS) -> tuple[int, int]:
    """Count the physical cores and sockets of these CPUs; without kernel data, each CPU is a core."""
    cores, sockets = set(), set()
    for cpu in cpus:
        where = root / f"cpu{cpu}" / "topology"
        try:
            socket = int((where / "physical_package_id").read_text())
            siblings = (where / "thread_siblings_list").read_text()
        except OSError:
            socket, siblings = 0, str(cpu)
        sockets.add(socket)
        cores.add(min(parse_cpu_list(siblings)))
    return len(cores), len(sockets)


def count_threads_per_core(cpus: set[int], root: Path = CPUS) -> int:
    """Count the hardware threads per core of these CPUs, the least of all; one without kernel data."""
    counts = []
    for cpu in cpus:
        try:
            siblings = (root / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text()
        except OSError:
            siblings = str(cpu)
        counts.append(len(parse_cpu_list(siblings) & cpus))
    return min(counts, default=1)


def read_usable_threads() -> int:
    """Read how many hardware threads of each core this process may use; one if a quota allows no more."""
    cpus, quota = os.sched_getaffinity(0), read_quota_cpus()
    return 1 if quota and quota < len(cpus) else count_threads_per_core(cpus)


def read_cpu_model(path: Path = Path("/proc/cpuinfo")) -> str:
    """Read the processor's name from the kernel, as ``mpicost`` records it.

    It is the model name; else facts of the first processor on POWER, ARM or RISC-V; else ``unknown`` and the
    kind of machine.
    """
    try:
        lines = path.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    values: dict[str, str] = {}
    for name, _, value in (line.partition(":") for line in lines):
        if value.strip(" \t"):
            values.setdefault(name.rstrip(" \t"), value.strip(" \t"))
    facts = next((rule for rule in NAMING if rule[0] in values), ())
    joined = ", ".join(f"{fact} {values[fact]}" for fact in facts if fact in values)
    name = values.get("model name") or joined or f"unknown {platform.machine()}"
    return name.encode()[:NAME_BYTES].decode(errors="replace")


def read_firmware(folder: Path = Path("/sys/class/dmi/id")) -> str:
    """Read version and date of the BIOS, as far as every user may; empty on machines without DMI."""
    words = []
    for name in ("bios_version", "bios_date"):
        try:
            words.append((folder / name).read_text(errors="replace").strip())
        except OSError:
            continue
    return " ".join(filter(None, words))


def read_cpu_times(path: Path = Path("/proc/stat")) -> tuple[int, int]:
    """Read the idle and total clock ticks of all CPUs since the machine started; zeros if unknown."""
    try:
        ticks = [int(word) for word in path.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        ticks = [0] * 8
    return sum(ticks[3:5]), sum(ticks)


def read_machine() -> Machine:
    """Read the facts of the machine that this process runs on."""
    cpus = os.sched_getaffinity(0)
    cores, sockets = count_cores_and_sockets(cpus)
    quota = read_quota_cpus()
    return Machine(
        host=platform.node(),
        cpu_model=read_cpu_model(),
        kernel=platform.release(),
        cores=min(cores, quota) if quota else cores,
        hardware_threads=len(cpus),
        sockets=sockets,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        caches=read_caches(CPUS / f"cpu{min(cpus)}"),
        firmware=read_firmware(),
    )


WORDS_PER_LINE = 8  #: words of 8 bytes
UNKNOWN_SECONDS = 0.1  #: duration of a flush if the caches are unknown


def compute_flush_bytes(machine: Machine, ranks: int = 1) -> int:
    """Compute the bytes that each rank of a node walks through to flush its caches; 0 if unknown.

    It is the rank's share of twice the last-level cache, plus twice the second level, like ``flush_needed`` of
    the suite for ranks that are spread over the node.
    """
    last = max(machine.caches, key=lambda cache_: cache_.level, default=None)
    if last is None:
        return 0
    sharing = max(1, ranks * last.shared_by // machine.hardware_threads)
    second = sum(cache_.bytes for cache_ in machine.caches if cache_.level == 2 and last.level > 2)
    return -(-2 * last.bytes // sharing) + 2 * second


@cache
def measure_flush_seconds() -> float:
    """Time one flush as in a trial of mpicost, on this machine. Takes up to some tenths of a second."""
    import numpy as np  # imported here, so that readers of site files do not wait for it

    size = compute_flush_bytes(read_machine())
    if not size:
        return UNKNOWN_SECONDS
    words = np.ones(size // 8, dtype=np.uint64)  # ones, because pages of zeros would share one page
    begin = perf_counter()
    words[::WORDS_PER_LINE] += np.uint64(1)
    return perf_counter() - begin


LIMITS = "limits"  #: key in run records, and a circumstance, of launches that record them
UNLIMITED = "unlimited"
#: Letters of ``ulimit`` with their names, in the order of descriptions.
NAMES = {
    "l": "locked memory",
    "v": "address space",
    "n": "open files",
    "u": "processes",
    "c": "CPUs of a quota",
}
KIBIBYTES = "lv"
#: A launch does not come near a limit above this number. The kernel derives that of processes from the memory,
#: which differs a little between equal nodes.
AMPLE = {"n": 4096, "u": 4096}


def write_limits_command(path: Path, quota: int | None) -> str:
    """Return the bash command that writes the limits of its shell to a file, one letter and number per line.

    :param quota: CPUs that a quota allows; None without one, or if unknown.
    """
    letters = [letter for letter in NAMES if letter != "c"]
    lines = [f'echo "{letter} $(ulimit -S{letter})"' for letter in letters]
    lines += [f"echo c {quota}"] if quota else []
    return f"{{ {'; '.join(lines)}; }} > {quote_word(str(path))}"


def read_limits(path: Path) -> dict[str, str]:
    """Read the limits of a launch as an entry of its run record; empty if its job script wrote none."""
    try:
        limits = dict(line.split(" ", 1) for line in files.read_text(path).splitlines())
    except (OSError, ValueError):
        return {}
    description = describe_limits(limits)
    return {LIMITS: description} if description else {}


def describe_limits(told: Mapping[str, str]) -> str:
    """Describe limits by the letters of ``ulimit``; empty if one is not understood."""
    words = []
    for letter, text in told.items():
        if letter not in NAMES or not (text == UNLIMITED or (text.isascii() and text.isdigit())):
            return ""
        ample = AMPLE.get(letter, 0)
        if ample and (text == UNLIMITED or int(text) >= ample):
            value = f"{ample} or more"
        else:
            value = f"{text} KiB" if letter in KIBIBYTES and text != UNLIMITED else text
        words.append(f"{NAMES[letter]} {value}")
    return ", ".join(words)


def describe_own_limits(quota: int | None) -> str:
    """Describe the limits of this process, which a job on this machine inherits."""
    kinds = {
        "l": resource.RLIMIT_MEMLOCK,
        "v": resource.RLIMIT_AS,
        "n": resource.RLIMIT_NOFILE,
        "u": resource.RLIMIT_NPROC,
    }
    limits = {}
    for letter, kind in kinds.items():
        soft = resource.getrlimit(kind)[0]
        unit = 1024 if letter in KIBIBYTES else 1
        limits[letter] = UNLIMITED if soft == resource.RLIM_INFINITY else str(soft // unit)
    return describe_limits(limits | ({"c": str(quota)} if quota else {}))


def is_within_limits(limits: Mapping[str, int], routine: str, size: int, processes: int) -> bool:
    """Return whether the site's limits allow a routine with this number of processes.

    A limit is for a routine (``scan_min``), or for one at a size (``alltoall:1000``).
    """
    return all(processes <= limits.get(key, processes) for key in (routine, f"{routine}:{size}"))


def find_unknown_limits(
    limits: Mapping[str, int], tables: Sequence[Mapping[str, Sequence[int]]]
) -> Iterator[tuple[str, set[str]]]:
    """Find the keys of a site's limits that limit nothing, each with the possible keys.

    :param tables: for each check, the sizes in bytes of the routines that it measures.
    """
    routines = {name for table in tables for name in table}
    sized = {f"{name}:{size}" for table in tables for name, sizes in table.items() for size in sizes}
    for key in limits:
        if key not in routines | sized:
            siblings = {name for name in sized if name.startswith(f"{key.partition(':')[0]}:")}
            yield key, siblings or routines
