"""Differences from its references that a site may accept: ``accept={"compiler": "the reason"}``."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from site_configs.annotations import one_of, whole

#: Facts in which a launch and its reference may differ and still be compared if the site says why.
DIFFERENCES = {
    "mpi_library": "what the MPI says of its version, its devices and how it was built",
    "cpu_model": "the processor's name, and that it has none",
    "caches": "sizes of the caches and how many CPUs share them",
    "libraries_below": "UCX and libfabric that the MPI has loaded, by version and content",
    "binding": "how many CPUs each rank may use, and whether it shares them",
    "limits": "of the shell that starts the program: locked memory, addresses, files, processes, CPUs",
    "version": "of OSU or IMB",
    "suite_version": "of mpicost",
    "source_hash": "of mpicost's sources",
    "source": "where the sources of OSU or IMB are from",
    "compiler": "that built the program",
    "flags": "options of that compiler, but for warnings and debug symbols",
}
LEAST_REASON = 10  #: letters; fewer explain nothing
Reason = Annotated[
    str,
    Meta(
        pattern=whole(rf"[^\S\n]*\S.{{{LEAST_REASON - 2},}}\S[^\S\n]*"),
        description=f"the reason, which every session reports: one line of {LEAST_REASON} letters or more",
    ),
]
Waivers = Annotated[
    Mapping[Annotated[str, one_of(DIFFERENCES)], Reason],
    Meta(description="{'compiler': 'why a difference in it may be'}"),
]


def collect_waivers(partition: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Join the waivers of a partition and an environment, which takes precedence."""
    return {**partition, **environment}
