"""Which files of an MPI a program is built with, by size and time of change: commands that print them.

An MPI may be replaced where it lies, by older files too. What merely compares times builds nothing anew then.

Environments may share a build, and each knows its MPI by files of its own. So each keeps its list in the folder
of the build, and compares with that alone. Who finds another MPI empties the folder, with all lists in it:
then others find none of theirs, and keep what was built since.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from postprocess.base.sanitize import quote_word, quote_words

FILES = "mpi_files"  #: in the stage directory, and with the name of who compares, in the folder of the build
PROBE = "mpi_files"  #: in the stage directory; a program of MPI's header alone
#: Of lines, those that are paths of files that are there: not those that a compiler makes and removes, nor what
#: is compiled to ask it, which some name by a path of this very session.
STATE = f"grep '^/' | grep -v '/{PROBE}[.][a-z]*$' | sort -u | xargs -r -d '\\n' stat -Lc '%n %s %Y'"


def print_state(paths: str) -> str:
    """Return a command that prints name, size and time of change of files. It never fails.

    :param paths: commands that print paths, and perhaps other lines
    """
    return f"{{ {{ {paths}; }} 2>/dev/null | {STATE} 2>/dev/null || true; }}"


def print_wrapped_files(wrapper: str) -> str:
    """Return commands that print a wrapper, the headers that it includes and the libraries that it links."""
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
    """Return commands that print the library of the standard ABI, and where its header may be."""
    above = " ".join(f'"$(dirname {library})/{up}include/mpi_abi.h"' for up in ("../", "../../", "../../../"))
    return f"printf '%s\\n' {library} {above}"


def print_container_files(words: Sequence[str]) -> str:
    """Return a command that prints the words that start a container: its image is among them."""
    return f"printf '%s\\n' {quote_words(words)}"


def compare_files(paths: str, folder: Path, user: str) -> Iterator[str]:
    """Yield commands that empty the folder of a build if the MPI of one who uses it is not the one of before.

    :param paths: commands that print paths, and perhaps other lines
    """
    place, before = quote_word(str(folder)), quote_word(str(folder / f"{FILES}.{user}"))
    yield f"{print_state(paths)} > {FILES}"
    yield f"test ! -e {before} || cmp -s {FILES} {before} || {{ rm -rf {place}; mkdir -p {place}; }}"


def keep_files(folder: Path, user: str) -> Iterator[str]:
    """Yield the command that keeps what :func:`compare_files` compares next time."""
    yield f"cp {FILES} {quote_word(str(folder / f'{FILES}.{user}'))}"
