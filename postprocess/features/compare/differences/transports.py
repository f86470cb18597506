"""How messages travel, as MPI libraries tell it of themselves where they are asked to be verbose."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Variables that let a library tell it; to all others they are nothing.
VERBOSE: Mapping[str, str] = {
    "UCX_LOG_LEVEL": "info",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "I_MPI_DEBUG": "5",
    "OMPI_MCA_pml_base_verbose": "10",
    "OMPI_MCA_btl_base_verbose": "10",
}
#: What is told, by name: the library's words for it. Where one name is told several times, all values count.
TOLD: Mapping[str, str] = {
    "UCX version": r"UCX  INFO +Version (\S+)",
    "UCX inside a node": r"UCX  INFO .*\bintra-node cfg#\d+ (tag\(.*?\))",
    "UCX between nodes": r"UCX  INFO .*\binter-node cfg#\d+ (tag\(.*?\))",
    "Open MPI's layer of messages (pml)": r"select: component (\w+) selected",
    "Open MPI's transports (btl)": r"mca: bml: Using (\w+) btl for send to",
    "libfabric version": r"MPI startup\(\): libfabric version: (\S+)",
    "libfabric provider": r"(?:MPI startup\(\): libfabric |^)provider: ([\w;]+)",
    "Intel MPI's tuning": r"MPI startup\(\): Load tuning file: \".*/([^/]+)\"",
}


def read_transports(output: str) -> dict[str, str]:
    """Read what a verbose launch printed of its transports, by name; empty if its library tells nothing.

    :param output: all that its processes printed; each of them may tell the same
    """
    found = {}
    for name, pattern in TOLD.items():
        if values := sorted(set(re.findall(pattern, output, re.MULTILINE))):
            found[name] = ", ".join(values)
    return found
