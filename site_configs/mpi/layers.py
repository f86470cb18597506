"""What lies below and above an MPI: libraries such as UCX, and the standard ABI of MPI.

A release is a wheel of the package index, or where it is installed (``mpich+ucx@/opt/ucx``); ``mpich+ucx`` is
the one that the MPI brings. The library is found by ``LD_LIBRARY_PATH``. Whether an MPI takes it is tried, not
believed: a world of two must come up, and have the library of just that place in its memory.

A user chooses it by a word, ``mpich+abi``. Whether an MPI has it is tried, not believed: a program that is
linked to the library of this name must come up as a world of two, and say that it runs on this MPI.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.sanitize import quote_word
from site_configs.mpi import probe, wheels
from site_configs.mpi.family import OVERSUBSCRIBED, Mpi, Unusable, is_prefix

#: A process that says, after what :data:`PROGRAM` says, which files with executable parts it has in its memory
LOADED = "#include <string.h>" + probe.PROGRAM.replace(
    "return MPI_Finalize();",
    r"""
    FILE *maps = rank == 0 ? fopen("/proc/self/maps", "r") : 0;
    char line[8192];
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, " r-xp ") && strchr(line, '/')) printf("loaded %s", strchr(line, '/'));
    if (maps) fclose(maps);
    return MPI_Finalize();""",
)
MARK = "loaded "


@dataclass(frozen=True)
class KnownLayer:
    """What is known of a library below MPIs."""

    family: str  #: of MPIs that can run on it
    library: str  #: its file
    folders: tuple[str, ...]  #: patterns of where the file is below a prefix
    #: Variables without which it carries nothing on a machine of one node, or says more than results
    env: dict[str, str]


#: In a node MPICH's own shared memory carries all messages, unless it is off. A UCX that is older than the one
#: that MPICH was built with says so in each launch, on standard output.
KNOWN = {
    "ucx": KnownLayer(
        "mpich",
        "libucp.so.0",
        ("lib/python3*/site-packages/libucx/lib", "lib", "lib64", "lib/*-linux-gnu"),
        {"MPIR_CVAR_NOLOCAL": "1", "UCX_LOG_LEVEL": "error"},
    )
}


class LayerError(Exception):
    """One line: why a library below an MPI cannot be had."""


def find_layer_folder(layer: str, root: Path, wheel_folder: Path | None, say: Callable[[str], None]) -> str:
    """Return the folder of a library below an MPI, installed if need be; empty for the MPI's own.

    :param layer: such as ``ucx@1.19.0``, ``ucx@/opt/ucx`` or ``ucx``
    :param root: below which wheels are installed
    :raises LayerError: if there is none
    """
    name, _, version = layer.partition("@")
    if not version:
        return ""
    if is_prefix(version):
        prefix = Path(version).absolute()
    else:
        if not wheels.find_wheel_prefix(name, root, version).exists():
            say(f"installing {name} {version} from its wheel")
        try:
            prefix = wheels.install_prefix(name, root, wheel_folder, version)
        except wheels.WheelError as error:
            raise LayerError(str(error)) from None
    known = KNOWN[name]
    below = (folder for pattern in known.folders for folder in sorted(prefix.glob(pattern)))
    found = next((folder for folder in (prefix, *below) if (folder / known.library).exists()), None)
    if found is None:
        raise LayerError(f"{layer}: no {known.library} below {prefix}")
    return str(found)


def adopt_layer(mpi: Mpi, layer: str, folder: str, word: str) -> Mpi | Unusable:
    """Return an MPI as it runs on a library below it; or why it does not.

    :param folder: of the library; empty for the MPI's own
    :param word: by which the user asked for it
    """
    name = layer.partition("@")[0]
    known = KNOWN[name]
    if mpi.family != known.family:
        return Unusable(word, mpi.origin, f"{name} is exchanged below {known.family} only, not {mpi.family}")
    if mpi.standard_abi:
        return Unusable(word, mpi.origin, "the standard ABI and another library below it are not for one MPI")
    own = replace(mpi, layer=layer, env=mpi.env | known.env | ({"LD_LIBRARY_PATH": folder} if folder else {}))
    try:
        loaded = [path for path in list_loaded(own) if Path(path).name.startswith(known.library)]
    except probe.ProbeError as error:
        return Unusable(word, mpi.origin, f"it does not run on {layer}: {error}")
    wanted = os.path.realpath(Path(folder, known.library)) if folder else ""
    if not loaded or (wanted and wanted not in map(os.path.realpath, loaded)):
        took = f"it takes {loaded[0]}" if loaded else f"it loads no {known.library}"
        return Unusable(word, mpi.origin, f"it does not run on {layer}: {took}")
    return own


def find_layer_library(mpi: Mpi) -> Path:
    """Return the library below an MPI that was asked for; of the MPI's own, the MPI's wrapper stands for it."""
    folder = mpi.env.get("LD_LIBRARY_PATH")
    return Path(folder, KNOWN[mpi.layer.partition("@")[0]].library) if folder else Path(mpi.mpicc)


def list_loaded(mpi: Mpi) -> list[str]:
    """List the files with executable parts in the memory of the first of two processes.

    :raises ProbeError: if no world of two comes up
    """
    env = probe.strip_allocation(os.environ) | OVERSUBSCRIBED.get(mpi.family, {}) | mpi.env
    output = probe.run_two(mpi.mpicc, mpi.mpiexec, LOADED, env)
    probe.find_world_library(mpi.mpiexec, output, mpi.mpicc)
    return [line.removeprefix(MARK) for line in output.splitlines() if line.startswith(f"{MARK}/")]


LIBRARY = "libmpi_abi.so.1"  #: the number is the version of the ABI, which the standard fixes
HEADER = "mpi_abi.h"
FOLDERS = ("lib", "lib64", "lib/release", "lib/*-linux-gnu")


def find_abi_folder(prefix: Path) -> Path | None:
    """Find the folder with the library of the standard ABI; None if an MPI has none."""
    folders = (folder for pattern in FOLDERS for folder in sorted(prefix.glob(pattern)))
    return next((folder for folder in folders if (folder / LIBRARY).exists()), None)


def find_header_folder(folder: Path) -> Path | None:
    """Find the folder with the header of the standard ABI, from that with the library."""
    above = list(folder.parents)[:3]
    return next((each / "include" for each in above if (each / "include" / HEADER).exists()), None)


def adopt_standard_abi(mpi: Mpi, word: str) -> Mpi | Unusable:
    """Return an MPI as it is used by its standard ABI; or why it cannot be.

    :param word: by which the user asked for it
    """
    folder = find_abi_folder(Path(mpi.prefix))
    if folder is None:
        return Unusable(word, mpi.origin, f"it has no standard ABI of MPI: no {LIBRARY} below {mpi.prefix}/lib")
    if problem := explain_abi_unfit(mpi, folder):
        return Unusable(word, mpi.origin, problem)
    return replace(mpi, standard_abi=str(folder))


def explain_abi_unfit(mpi: Mpi, folder: Path) -> str:
    """Explain why a library of the standard ABI is not that of an MPI; empty if it is."""
    try:
        library = run_abi_for_library(mpi, folder)
    except probe.ProbeError as error:
        return f"no program of the standard ABI runs on it: {error}"
    if library != mpi.library:
        return f"{folder / LIBRARY} is of another MPI: {library[:80]}"
    return ""


def run_abi_for_library(mpi: Mpi, folder: Path) -> str:
    """Run two processes of a program of the standard ABI, and return their MPI_Get_library_version.

    :raises ProbeError: if no such world comes up.
    """
    header = find_header_folder(folder)
    if header is None:
        raise probe.ProbeError(f"there is no {HEADER} for {folder / LIBRARY}")
    env = probe.strip_allocation(os.environ) | OVERSUBSCRIBED.get(mpi.family, {}) | mpi.env
    before = env.get("LD_LIBRARY_PATH", "")
    search = f"{folder}:{before}" if before else str(folder)
    with probe.runnable_scratch("plumbline-abi-") as scratch:
        source, program = scratch / "probe.c", scratch / "probe"
        source.write_text(probe.PROGRAM)
        link = [str(folder / LIBRARY), "-Wl,--allow-shlib-undefined", "-o", str(program)]
        probe.run_step(["cc", "-DMPI_ABI", f"-I{header}", str(source), *link], env, "compiling")
        start = [*mpi.launcher, "-n", "2", "env", f"LD_LIBRARY_PATH={search}", str(program)]
        return probe.find_world_library(mpi.mpiexec, probe.run_step(start, env, "starting"), LIBRARY)


def build_launch_variables(folder: str) -> dict[str, str]:
    """Build the variable by which a program finds the library of one MPI, as a shell reads it.

    No path is in the program: where the variable is lost, it does not start, and takes no other MPI.

    :param folder: with the library; empty where programs find their own
    """
    value = f'{quote_word(folder)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    return {"LD_LIBRARY_PATH": value} if folder else {}
