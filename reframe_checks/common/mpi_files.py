"""Which files of an MPI a program is built with, by size and time of change: commands that print them.

An MPI may be replaced where it lies, by older files too. What merely compares times builds nothing anew then.
"""

from __future__ import annotations

from collections.abc import Sequence

from postprocess.base.sanitize import quote_words

PROBE = "mpi_files"  #: in the stage directory; a program of MPI's header alone
#: Of lines, those that are paths of files that are there: not those that a compiler makes and removes.
STATE = "grep '^/' | sort -u | xargs -r -d '\\n' stat -Lc '%n %s %Y'"


def print_state(paths: str) -> str:
    """Return a command that prints name, size and time of change of files. It never fails.

    :param paths: commands that print paths, and perhaps other lines
    """
    return f"{{ {{ {paths}; }} 2>/dev/null | {STATE} 2>/dev/null || true; }}"


def print_wrapped_files(wrapper: str) -> str:
    """Return commands that print a wrapper, the headers that it includes and the libraries that it links.

    :param wrapper: as words of a shell
    """
    source, library = f"{PROBE}.c", f"{PROBE}.so"
    return "; ".join(
        [
            f"printf '#include <mpi.h>\\n' > {source}",
            f"printf '%s\\n' {wrapper}",
            f"{wrapper} -M {source} | tr -s ' \\\\' '\\n\\n'",
            f"{wrapper} -shared -fPIC {source} -o {library} -Wl,-t",
        ]
    )


def print_abi_files(library: str) -> str:
    """Return commands that print the library of the standard ABI, and where its header may be.

    :param library: as words of a shell
    """
    above = " ".join(f'"$(dirname {library})/{up}include/mpi_abi.h"' for up in ("../", "../../", "../../../"))
    return f"printf '%s\\n' {library} {above}"


def print_container_files(words: Sequence[str]) -> str:
    """Return a command that prints the words that start a container: its image is among them."""
    return f"printf '%s\\n' {quote_words(words)}"
