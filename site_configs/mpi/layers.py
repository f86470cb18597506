"""What is below and above an MPI: libraries such as UCX and libfabric, and the standard ABI of MPI.

A release comes from a wheel of the package index, or from its prefix (``mpich+ucx@/opt/ucx``); ``mpich+ucx`` is
the one that the MPI brings. The library is found through ``LD_LIBRARY_PATH``. A trial shows whether an MPI uses
it: a world of two must come up and have loaded the library from exactly that place and version.

``mpich+abi`` selects the standard ABI. A trial shows whether an MPI has it: a program linked to the library of
this name must come up as a world of two, and report that it runs on this MPI.
"""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.sanitize import quote_word
from site_configs.families import FAMILIES, find_family
from site_configs.mpi import probe, wheels
from site_configs.mpi.family import Mpi, Unusable, is_prefix

#: A process that prints, after the output of :data:`PROGRAM`, the files with executable parts in its memory,
#: and the version that the layer's library reports.
LOADED = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <string.h>" + probe.PROGRAM.replace(
    "return MPI_Finalize();",
    r"""
    FILE *maps = rank == 0 ? fopen("/proc/self/maps", "r") : 0;
    char line[8192];
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, " r-xp ") && strchr(line, '/')) printf("loaded %s", strchr(line, '/'));
    if (maps) fclose(maps);
    void *there = rank == 0 ? dlopen("@LIBRARY@", RTLD_NOW | RTLD_NOLOAD) : 0;
    void *symbol = there ? dlsym(there, "@SYMBOL@") : 0;
    if (symbol) printf("version %s\n", @CALL@);
    return MPI_Finalize();""",
)
MARK, VERSION_MARK = "loaded ", "version "


@dataclass(frozen=True)
class KnownLayer:
    """Facts about a library below MPIs."""

    name: str
    library: str  #: its file
    folders: tuple[str, ...]  #: patterns of its folder below a prefix
    symbol: str  #: a function that returns its version
    call: str  #: how to call that in C
    shares_memory: bool = True  #: whether MPIs use shared memory through it within a node
    replaced: tuple[str, ...] = ()  #: the MPI's own variables that name another library
    plugins: str = ""  #: pattern of files that it opens: beside it, or below ``prov`` or its own name
    plugin_path: str = ""  #: variable that names their folder

    @property
    def env(self) -> dict[str, dict[str, str]]:
        """The families that run on it, the usual one first, with variables that make it carry all messages.

        One that names its file comes first, because it runs on any release.
        """
        usual = sorted(FAMILIES.values(), key=lambda family: self.name not in family.layer_files)
        return {family.name: family.layers[self.name] for family in usual if self.name in family.layers}


KNOWN = {
    layer.name: layer
    for layer in (
        KnownLayer(
            "ucx",
            "libucp.so.0",
            ("lib/python3*/site-packages/libucx/lib", "lib", "lib64", "lib/*-linux-gnu"),
            "ucp_get_version_string",
            "((const char *(*)(void))symbol)()",
        ),
        KnownLayer(
            "libfabric",
            "libfabric.so.1",
            ("lib", "lib64", "lib/*-linux-gnu", "lib/libfabric", "opt/mpi/libfabric/lib", "lib/mpich"),
            "fi_tostr",
            '((const char *(*)(const void *, int))symbol)("", 18)',  # FI_TYPE_VERSION
            shares_memory=False,
            replaced=("I_MPI_OFI_LIBRARY", "FI_PROVIDER_PATH"),
            plugins="*-fi.so",
            plugin_path="FI_PROVIDER_PATH",
        ),
    )
}


@dataclass(frozen=True)
class LoadedLayer:
    paths: tuple[str, ...]  #: paths of its library
    version: str  #: version that the library reports; empty if it does not


def find_layer_folder(layer: str, root: Path, wheel_folder: Path | None, say: Callable[[str], None]) -> str:
    """Return the folder of a library below an MPI, installed if need be; empty for the MPI's own.

    :param layer: such as ``ucx@1.19.0``, ``ucx@/opt/ucx`` or ``ucx``
    :param root: below which wheels are installed
    :raises WheelError: if there is none
    """
    name, _, version = layer.partition("@")
    if not version:
        return ""
    if is_prefix(version):
        prefix = Path(version).absolute()
    else:
        if not wheels.find_wheel_prefix(name, root, version).exists():
            say(f"installing {name} {version} from its wheel")
        prefix = wheels.install_prefix(name, root, wheel_folder, version)
    facts = KNOWN[name]
    below = (folder for pattern in facts.folders for folder in sorted(prefix.glob(pattern)))
    holder = next((folder for folder in (prefix, *below) if (folder / facts.library).exists()), None)
    if holder is None:
        raise wheels.WheelError(f"{layer}: no {facts.library} below {prefix}")
    return str(holder)


def adopt_layer(mpi: Mpi, layer: str, folder: str, word: str) -> Mpi | Unusable:
    """Return an MPI set up for a library below it; or why it does not run on that.

    :param folder: folder of the library; empty for the MPI's own
    """
    name, _, version = layer.partition("@")
    facts = KNOWN[name]
    if mpi.family not in facts.env:
        families = ", ".join(facts.env)
        return Unusable(word, mpi.origin, f"{name} is exchanged below {families} only, not {mpi.family}")
    if mpi.standard_abi:
        return Unusable(word, mpi.origin, "the standard ABI and another library below it are not for one MPI")
    layered = replace(mpi, layer=layer, env=build_layer_environment(mpi, facts, folder))
    if problem := explain_shell_override(layered):
        return Unusable(word, mpi.origin, problem)
    try:
        loaded = read_loaded_layer(layered, name)
    except probe.ProbeError as error:
        return Unusable(word, mpi.origin, f"it does not run on {layer}: {error}")
    problem = explain_other_layer(loaded, facts, folder, "" if is_prefix(version) else version)
    if problem := problem or ("" if folder else explain_other_than_own(loaded, facts, mpi)):
        return Unusable(word, mpi.origin, f"it does not run on {layer}: {problem}")
    return layered


def build_layer_environment(mpi: Mpi, known: KnownLayer, folder: str) -> dict[str, str]:
    """Build the variables that make an MPI use a library in a folder, or its own if that is empty.

    Every variable that could name another library or its plugins is set, because the user's shell may set it.
    """
    if not folder:
        return mpi.env | known.env[mpi.family]
    kept = {name: value for name, value in mpi.env.items() if name not in known.replaced}
    env = kept | known.env[mpi.family] | {"LD_LIBRARY_PATH": folder}
    if variable := find_family(mpi.family).layer_files.get(known.name):
        env[variable] = str(Path(folder, known.library))
    if known.plugins:
        usual = Path(folder, known.library.partition(".")[0])
        places = (Path(folder), Path(folder, "prov"))
        env[known.plugin_path] = str(next((place for place in places if any(place.glob(known.plugins))), usual))
    return env


PRELOADED = "LD_PRELOAD"


def explain_override(mpi: Mpi, names: Collection[str]) -> str:
    """Explain why no variable of these names may be set for an MPI on a library below it; empty if they may.

    It could make the MPI use another library, or bypass it, under the name of this one.
    """
    if not mpi.layer:
        return ""
    facts = KNOWN[mpi.layer.partition("@")[0]]
    fixed = {*facts.env[mpi.family], *facts.replaced, "LD_LIBRARY_PATH", PRELOADED}
    forbidden = sorted(fixed & {*names})
    return f"{forbidden[0]} decides whether it runs on {mpi.layer}; leave it out" if forbidden else ""


def explain_shell_override(mpi: Mpi) -> str:
    """Explain why the user's shell selects another library than the one below an MPI; empty if it does not.

    Variables that the MPI's own environment sets override the shell.
    """
    if not mpi.layer:
        return ""
    facts = KNOWN[mpi.layer.partition("@")[0]]
    preloaded = os.environ.get(PRELOADED, "").replace(":", " ").split()
    if any(Path(path).name.startswith(facts.library.partition(".")[0]) for path in preloaded):
        return f"{PRELOADED} of this shell has a {facts.library}; unset it"
    named = find_family(mpi.family).layer_files.get(facts.name, "")
    if named in os.environ and named not in mpi.env:
        return f"{named} of this shell names a {facts.library}; unset it"
    return ""


def is_as_tried(tried: Mpi, mpi: Mpi, folder: str) -> bool:
    """Return whether an MPI on a library in a folder would still run as it did when it was tried.

    The library that it takes for its own may depend on the shell.
    """
    facts = KNOWN[tried.layer.partition("@")[0]]
    same = tried.env == build_layer_environment(mpi, facts, folder)
    led = not folder and "LD_LIBRARY_PATH" in os.environ
    return same and not led and not explain_shell_override(tried)


def explain_other_layer(loaded: LoadedLayer, known: KnownLayer, folder: str, version: str) -> str:
    """Explain why a loaded library is not the requested one; empty if it is.

    :param folder: folder that it must be in; empty for any
    :param version: version that it must report, as in the wheel's name; empty for any
    """
    if not loaded.paths:
        return f"it loads no {known.library}"
    if folder and (other := find_other_library(loaded.paths, Path(folder, known.library))):
        return f"it takes {other}"
    wanted = version.partition(".post")[0]  # of a wheel that was rebuilt
    if wanted and loaded.version != wanted:
        return f"{loaded.paths[0]} says that it is {loaded.version or 'nothing'}"
    return ""


def explain_other_than_own(loaded: LoadedLayer, known: KnownLayer, mpi: Mpi) -> str:
    """Explain why a loaded library is not the MPI's own; empty if it is, or if none is below its prefix."""
    prefix = os.path.realpath(mpi.prefix)
    folders = (folder for pattern in (*known.folders, "lib/*") for folder in Path(prefix).glob(pattern))
    others = [path for path in loaded.paths if not Path(os.path.realpath(path)).is_relative_to(prefix)]
    if not others or not any((folder / known.library).exists() for folder in folders):
        return ""
    return f"it takes {others[0]}, which is not below {mpi.prefix}; see LD_LIBRARY_PATH, or ask for that one"


def find_other_library(paths: Iterable[str], wanted: Path) -> str:
    """Find a library of the same kind beside the wanted one; empty if there is none.

    If two are loaded, it is unknown which of them carries the messages.

    :param paths: files in the memory of a process
    """
    alike = [path for path in paths if Path(path).name.startswith(wanted.name)]
    real = os.path.realpath(wanted)
    return next(
        (path for path in alike if os.path.realpath(path) != real), "" if alike else f"no {wanted.name}"
    )


def shares_memory(mpi: Mpi) -> bool:
    """Return whether an MPI uses shared memory within a node, not a library that its user asked for."""
    return not mpi.layer or KNOWN[mpi.layer.partition("@")[0]].shares_memory


def find_layer_library(mpi: Mpi) -> Path:
    """Return the requested library below an MPI; for the MPI's own, its wrapper stands for it."""
    folder = mpi.env.get("LD_LIBRARY_PATH")
    return Path(folder, KNOWN[mpi.layer.partition("@")[0]].library) if folder else Path(mpi.mpicc)


def read_loaded_layer(mpi: Mpi, name: str) -> LoadedLayer:
    """Read what the first of two processes of an MPI has loaded of a layer.

    :raises ProbeError: if no world of two comes up.
    """
    facts = KNOWN[name]
    source = LOADED.replace("@LIBRARY@", facts.library).replace("@SYMBOL@", facts.symbol)
    env = probe.strip_allocation(os.environ) | find_family(mpi.family).oversubscribed | mpi.env
    output = probe.run_two(mpi.mpicc, mpi.mpiexec, source.replace("@CALL@", facts.call), env, "-ldl")
    probe.find_world_library(mpi.mpiexec, output, mpi.mpicc)
    lines = output.splitlines()
    paths = [line.removeprefix(MARK) for line in lines if line.startswith(f"{MARK}/")]
    versions = [line.removeprefix(VERSION_MARK) for line in lines if line.startswith(VERSION_MARK)]
    fit = tuple(path for path in paths if Path(path).name.startswith(facts.library))
    return LoadedLayer(fit, versions[0] if versions else "")


LIBRARY = "libmpi_abi.so.1"  #: the number is the version of the ABI, which the standard fixes
HEADER = "mpi_abi.h"
FOLDERS = ("lib", "lib64", "lib/release", "lib/*-linux-gnu")


def find_abi_folder(prefix: Path) -> Path | None:
    """Find the folder with the library of the standard ABI; None if an MPI has none."""
    folders = (folder for pattern in FOLDERS for folder in sorted(prefix.glob(pattern)))
    return next((folder for folder in folders if (folder / LIBRARY).exists()), None)


def find_header_folder(folder: Path) -> Path | None:
    """Find the folder with the header of the standard ABI, starting from that of the library."""
    above = list(folder.parents)[:3]
    return next((parent / "include" for parent in above if (parent / "include" / HEADER).exists()), None)


def adopt_standard_abi(mpi: Mpi, word: str) -> Mpi | Unusable:
    """Return an MPI set up for its standard ABI; or why that is not possible."""
    folder = find_abi_folder(Path(mpi.prefix))
    if folder is None:
        return Unusable(word, mpi.origin, f"it has no standard ABI of MPI: no {LIBRARY} below {mpi.prefix}/lib")
    if problem := explain_abi_unfit(mpi, folder):
        return Unusable(word, mpi.origin, problem)
    return replace(mpi, standard_abi=str(folder))


def explain_abi_unfit(mpi: Mpi, folder: Path) -> str:
    """Explain why a library of the standard ABI does not belong to an MPI; empty if it does."""
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
    env = probe.strip_allocation(os.environ) | find_family(mpi.family).oversubscribed | mpi.env
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

    The program contains no path: without the variable it does not start, rather than use another MPI.

    :param folder: with the library; empty if programs find their own
    """
    value = f'{quote_word(folder)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    return {"LD_LIBRARY_PATH": value} if folder else {}
