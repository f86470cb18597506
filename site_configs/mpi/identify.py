"""Ask a compiler wrapper for its MPI without starting an MPI program, which a login node may not allow.

MPI_Get_library_version may be called before MPI_Init (MPI 3.0, section 8.1.1): one process, started directly.
"""

from __future__ import annotations

import os
from pathlib import Path

from site_configs.mpi.allocation import strip_allocation
from site_configs.mpi.family import Mpi, Unusable, build_family_environment, join_lines, match_library
from site_configs.mpi.probe import Candidate, ProbeError, describe_candidate, run_step, runnable_scratch

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    printf("%s\n", library);
    return 0;
}
"""


def read_linked_version(candidate: Candidate) -> str:
    """Read what MPI_Get_library_version says in a program of this wrapper.

    :raises ProbeError: if none can be compiled, or it does not run on this node.
    """
    env = strip_allocation(os.environ) | dict(candidate.env)
    for family in ("intel-mpi", "openmpi"):
        env |= build_family_environment(family, candidate.root)
    with runnable_scratch("plumbline-identify-") as scratch:
        source, program = Path(scratch, "identify.c"), Path(scratch, "identify")
        source.write_text(PROGRAM)
        run_step([str(candidate.mpicc), str(source), "-o", str(program)], env, "compiling")
        return join_lines(run_step([str(program)], env, "running one process"))


def identify_wrapper(candidate: Candidate) -> Mpi | Unusable:
    """Identify the MPI of a compiler wrapper; or return why it is not usable."""
    try:
        library = read_linked_version(candidate)
    except ProbeError as error:
        return Unusable(candidate.title, candidate.origin, str(error))
    return describe_candidate(candidate, library, env={})  # a site file loads the module


def extract_identity(library: str) -> str:
    """Extract the part of a library version string that tells family and version, and no more.

    The rest (date, compiler, options of configure) changes with every build of the same version.
    """
    found = match_library(library)
    return found[1][0] if found else library
