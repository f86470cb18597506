"""Find contradictions within a site file, and what ReFrame does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from postprocess.base.near_words import propose_or_list
from site_configs.mpi.family import FAMILIES, identify_library
from site_configs.schedulers.registry import find_scheduler
from site_configs.validation.reader import SiteFault, SiteReading

SIMULATED = "simgrid"  #: the family whose time is simulated


@dataclass(frozen=True)
class DeclaredEntry:
    """A partition or an environment as the file declares it."""

    kind: str
    data: Mapping[str, Any]
    line: int

    @property
    def name(self) -> str:
        """As in the file."""
        return self.data["name"]

    @property
    def extras(self) -> Mapping[str, Any]:
        """What checks are told of it."""
        return self.data["extras"]

    def fault(self, key: str, text: str) -> SiteFault:
        """Return a fault of one of its keys."""
        return SiteFault(self.line, f"{self.kind} {self.name!r}: {key}: {text}")


def list_entries(reading: SiteReading, kind: str) -> list[DeclaredEntry]:
    """List all partitions or environments that the file declares."""
    configuration = reading.configuration or {}
    if kind == "partition":
        found = [each for system in configuration["systems"] for each in system["partitions"]]
    else:
        found = configuration["environments"]
    return [DeclaredEntry(kind, each, reading.lines.get(f"{kind} {each['name']}", 0)) for each in found]


def select_sound(reading: SiteReading, found: Sequence[DeclaredEntry]) -> list[DeclaredEntry]:
    """Select those of the entries that were made without a fault."""
    return [entry for entry in found if f"{entry.kind} {entry.name}" not in reading.broken]


def find_site_faults(reading: SiteReading) -> list[SiteFault]:
    """Find everything that is wrong with a site file, as far as the file itself tells."""
    if reading.configuration is None:
        return sorted(reading.faults)
    partitions, environments = (list_entries(reading, kind) for kind in ("partition", "environment"))
    found = [*reading.faults, *check_unique_names(partitions), *check_unique_names(environments)]
    found += check_declared(partitions, environments)
    own, mpis = select_sound(reading, partitions), select_sound(reading, environments)
    for partition in own:
        found += check_registered(partition, "scheduler", partition.data["scheduler"], reading)
        found += check_topology(partition)
    for environment in mpis:
        launcher = environment.extras["launcher"]
        found += (
            check_registered(environment, "launcher", launcher, reading) if isinstance(launcher, str) else []
        )
        found += check_family(environment)
    for partition in own:
        found += check_simulated(partition, mpis)
    for one, two in combinations(mpis, 2):
        found += is_ambiguous(one, two)
    return sorted(set(found))


def check_unique_names(found: Sequence[DeclaredEntry]) -> Iterator[SiteFault]:
    """Check that no name is there twice: ReFrame would take one of the two and say nothing."""
    for number, entry in enumerate(found):
        if entry.name in {each.name for each in found[:number]}:
            yield entry.fault("name", "is there twice; give each its own")


def check_declared(
    partitions: Sequence[DeclaredEntry], environments: Sequence[DeclaredEntry]
) -> Iterator[SiteFault]:
    """Find environments that a partition names without a declaration, and the other way round."""
    known_names = {entry.name for entry in environments}
    used = {name for entry in partitions for name in entry.data["environs"]}
    if not partitions:
        yield SiteFault(0, "site: partitions: there is none; nothing could run")
    for partition in partitions:
        if not partition.data["environs"]:
            yield partition.fault("environments", "names none; nothing would run there")
        for name in partition.data["environs"]:
            if name not in known_names:
                fix = propose_or_list(name, known_names)
                yield partition.fault("environments", f"{name!r} is not declared; {fix}")
    for environment in environments:
        if environment.name not in used:
            yield environment.fault("name", "no partition names it in environments=, so it never runs")


def check_registered(entry: DeclaredEntry, key: str, name: str, reading: SiteReading) -> Iterator[SiteFault]:
    """Find a scheduler or launcher that is not registered with ReFrame, or not usable here."""
    choice = getattr(reading, f"{key}s")
    if name not in choice:
        words = "" if key == "scheduler" else ", or write the words that start a launch line as a list"
        yield entry.fault(key, f"ReFrame knows no {name!r}; {propose_or_list(name, choice)}{words}")
    elif problem := reading.unusable.get(f"{key} {name}"):
        yield entry.fault(key, f"{name!r} cannot be used here: {problem}")


def check_topology(partition: DeclaredEntry) -> Iterator[SiteFault]:
    """Find counts of a partition that contradict each other."""
    cores, sockets = partition.extras["cores_per_node"], partition.data["processor"]["num_sockets"]
    local = not find_scheduler(partition.data["scheduler"]).batch
    if cores % sockets and not local:  # of a machine of one's own a part may be lent
        fix = f"write a multiple of {sockets}, such as {cores - cores % sockets}"
        yield partition.fault("topology", f"cores_per_node={cores} is not divisible by sockets; {fix}")
    nodes = partition.extras["nodes"]
    if local and nodes > 1 and not partition.extras["exact"]:
        yield partition.fault("topology", f"nodes={nodes}: scheduler 'local' has one node; write 1")
    most = partition.extras["most_processes"]
    for processes, per_node in partition.extras["layouts"]:
        if processes > most or per_node > cores or -(-processes // per_node) > nodes:
            layout = f"[{processes}, {per_node}]"
            yield partition.fault("layouts", f"{layout} does not fit on {nodes} nodes of {cores} cores")


def check_simulated(partition: DeclaredEntry, environments: Sequence[DeclaredEntry]) -> Iterator[SiteFault]:
    """Find an ``exact`` partition that is not simulated: no other time repeats exactly."""
    if partition.extras["exact"]:
        for entry in environments:
            if entry.name in partition.data["environs"] and entry.extras["family"] != SIMULATED:
                why = f"times of {entry.name!r} ({entry.extras['family']}) do not repeat exactly"
                yield partition.fault("exact", f"{why}; write False")


def check_family(environment: DeclaredEntry) -> Iterator[SiteFault]:
    """Find a library text of another family, or a misspelt family."""
    named, library = environment.extras["family"], environment.extras["library"]
    known_families = [name for name, _ in FAMILIES]
    told, _ = identify_library(library)
    if told not in ("unknown", named):
        what = f"{named!r}, but library={library!r} is that of {told}"
        yield environment.fault("family", f"{what}; write {told!r}, or what that library says of itself")
    elif named not in known_families and "did you mean" in (fix := propose_or_list(named, known_families)):
        yield environment.fault("family", f"{named!r} is not known; {fix}")


def is_ambiguous(one: DeclaredEntry, two: DeclaredEntry) -> Iterator[SiteFault]:
    """Check whether two MPIs would pass as each other: then the proof of the right one proves nothing.

    Two environments of one installation (with other variables) are well, and two builds of one whole version
    (by two compilers) cannot be told apart by what they say. An absolute path of a wrapper is proof enough.
    """
    places = [(each.extras["mpicc"], tuple(each.data["modules"])) for each in (one, two)]
    absolute = all(Path(mpicc).is_absolute() for mpicc, _ in places)
    first, second = (" ".join(each.extras["library"].split()) for each in (one, two))
    same_version = first == second and is_whole_version(first)
    if places[0] == places[1] or absolute or same_version or not (first in second or second in first):
        return
    fix = "write the whole version as MPI_Get_library_version says it, or mpicc by absolute path"
    yield two.fault("library", f"{second!r} does not tell it from {one.name!r} ({first!r}); {fix}")


def is_whole_version(library: str) -> bool:
    """Return whether the text names one release: three numbers, or two of Intel MPI, which counts by years."""
    found, version = identify_library(library)
    return len(version.split(".")) >= (2 if found == "intel-mpi" else 3)
