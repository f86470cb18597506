"""Differences from its references that a site may accept: ``accept={"compiler": "the reason"}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: What a launch and its reference may differ in, and what is compared anyway where the site says why.
DIFFERENCES = {
    "mpi_library": "what the MPI says of its version, its devices and how it was built",
    "cpu_model": "the processor's name, and that it has none",
    "caches": "sizes of the caches and how many CPUs share them",
    "binding": "how many CPUs each rank may use, and whether it shares them",
    "limits": "of the shell that starts the program: locked memory, addresses, files, processes, CPUs",
    "version": "of OSU or IMB",
    "suite_version": "of mpicost",
    "source_hash": "of mpicost's sources",
    "source": "where the sources of OSU or IMB are from",
    "compiler": "that built the program",
    "flags": "options of that compiler, but for warnings and debug symbols",
}
LEAST_REASON = 10  #: letters, below which it explains nothing


def find_waiver_faults(accept: Any) -> Iterator[str]:
    """Yield what is wrong with the differences that a site, partition or environment accepts."""
    if not isinstance(accept, Mapping):
        yield f"accept: {accept!r}: write {{'compiler': 'why a difference in it may be'}}"
        return
    for name, reason in accept.items():
        if name not in DIFFERENCES:
            yield f"accept: {name!r}: is none; choose from {', '.join(DIFFERENCES)}"
        elif not isinstance(reason, str) or len(reason.strip()) < LEAST_REASON:
            yield f"accept: {name}: {reason!r}: write the reason, which every session tells"
        elif "\n" in reason:
            yield f"accept: {name}: the reason has several lines; write one"


def collect_waivers(partition: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Join what is accepted on a partition and of an environment, which has the last word."""
    return {**partition, **environment}
