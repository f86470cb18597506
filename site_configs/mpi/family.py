"""An MPI implementation, and what each family needs to compile and run."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

DEFAULT_FAMILIES = ("mpich", "openmpi", "intel-mpi")

#: Spack's package and variants for the external of each family. Only C is needed.
PACKAGES = {
    "mpich": ("mpich", "~fortran"),
    "openmpi": ("openmpi", "~fortran"),
    "intel-mpi": ("intel-oneapi-mpi", "+generic-names~classic-names~ilp64~external-libfabric~envmods"),
}


#: Families, with the beginning of their MPI_Get_library_version strings: the version is the one or two groups.
#: A library that names another one later wraps it or is derived from it, and does not belong to its family.
FAMILIES = (
    ("intel-mpi", re.compile(r"Intel\(R\) MPI Library (\d[\w.]*)(?: Update (\d+))?")),
    ("mvapich", re.compile(r"MVAPICH\S* Version\s*:\s*(\d[\w.]*)")),
    ("cray-mpich", re.compile(r"CRAY MPICH version (\d[\w.]*)")),
    ("openmpi", re.compile(r"Open MPI v(\d[\w.]*)(?!.*\bSpectrum MPI\b)", re.S)),
    ("mpich", re.compile(r"MPICH Version:\s*(\d[\w.]*)")),
)


HEAD = re.compile(r"\s*(?:MPI VERSION\s*:\s*)?")  #: what Cray's library prints before its name
BETWEEN_NODES = "OMPI_MCA_btl"  #: chooses the transports of Open MPI
#: Beginning of the string of SimGrid's MPI, whose times are simulated.
SIMULATED_LIBRARY = "SMPI Version"
PREFIX = "prefix"  #: origin of an MPI that was given by its installation prefix
DIGITS = 6  #: digits of a prefix's hash in a name
ABI_SUFFIX = "+abi"  #: suffix of a word for an MPI that is used through its standard ABI
ABI_ENDING = "-abi"  #: the same in the name of its environment
LAYERS = ("ucx", "libfabric")  #: libraries below an MPI of which another release may be chosen
#: A word for an MPI: family, release or prefix, its binary interface, and the library below it
WORD = re.compile(rf"(.*?)({re.escape(ABI_SUFFIX)})?(?:\+((?:{'|'.join(LAYERS)})(?:@.*)?))?", re.S)
ON = "-on-"  #: stands in the name of an environment before the library below the MPI


@dataclass(frozen=True)
class Mpi:
    """One MPI implementation that can compile and start programs."""

    name: str  #: the environment's name, such as ``mpich-5_0_2``
    family: str
    version: str
    library: str  #: MPI_Get_library_version of a program built and started with it
    origin: str  #: ``path``, ``debian``, ``module``, ``wheel`` or ``prefix``
    prefix: str
    mpicc: str
    mpiexec: str
    module: str = ""  #: with the modules that must be loaded before it, separated by blanks
    env: dict[str, str] = field(default_factory=dict, hash=False)  #: needed to compile and to run
    #: Folder of the library of the standard ABI if programs use that; empty for the MPI's own interface
    standard_abi: str = ""
    layer: str = ""  #: library below it, as ``ucx@1.19.0``, or ``ucx`` for its own; empty if none was asked for

    @property
    def modules(self) -> tuple[str, ...]:
        return tuple(self.module.split())

    @property
    def launcher(self) -> list[str]:
        """The beginning of a launch line; ``-n N program`` follows."""
        return [self.mpiexec]


@dataclass(frozen=True)
class Unusable:
    """A compiler wrapper that does not make running programs, and why."""

    mpicc: str
    origin: str
    problem: str


def identify_library(library: str) -> tuple[str, str]:
    """Return family and version from an MPI_Get_library_version string, or ``("unknown", "0")``."""
    if identity := match_library(library):
        family, match = identity
        return family, ".".join(filter(None, match.groups()))
    return "unknown", "0"


def match_library(library: str) -> tuple[str, re.Match[str]] | None:
    """Match the beginning of an MPI_Get_library_version string with the families; None without a match."""
    text = cut_head(library)
    matches = ((family, pattern.match(text)) for family, pattern in FAMILIES)
    return next(((family, match) for family, match in matches if match), None)


def cut_head(library: str) -> str:
    """Remove the text before the name of a library."""
    return HEAD.sub("", library, count=1)


def is_library(said: str, wanted: str) -> bool:
    """Return whether a library is the wanted one: 5.0.1 is not 5.0.11, and a wrapper is not what it wraps.

    A text that does not name a family may be anywhere in the library string.
    """
    said, wanted = (cut_head(join_lines(text)) for text in (said, wanted))
    pattern = re.compile(re.escape(wanted) + r"(?!\d)")
    match = pattern.match(said) if match_library(wanted) else pattern.search(said)
    return bool(wanted and match)


def environment_name(family: str, version: str) -> str:
    """Return the name of an MPI's environment: ``mpich-5_0_2``. ReFrame allows no dots."""
    return f"{family}-{re.sub(r'[^A-Za-z0-9]+', '_', version)}"


def split_release(word: str) -> tuple[str, str]:
    """Split ``mpich@4.3.2`` into family and version, which is empty for a family alone."""
    family, _, version = word.partition("@")
    return family, version


@dataclass(frozen=True)
class MpiWord:
    """The parts of a word for an MPI: ``mpich@5.0.2+abi``, ``/opt/mpich``, ``mpich+ucx@1.19.0``."""

    plain: str  #: family, release or prefix
    by_abi: bool  #: whether it is used through its standard ABI
    layer: str  #: library below it; empty if none is asked for


def parse_mpi_word(word: str) -> MpiWord:
    """Parse a word for an MPI; an unrecognised one becomes the plain part."""
    match = WORD.fullmatch(word)
    assert match  # any text is a plain part
    return MpiWord(match[1], match[2] is not None, match[3] or "")


def is_used_otherwise(word: str) -> bool:
    """Return whether a word asks for an MPI through its standard ABI, or on another library below it."""
    asked = parse_mpi_word(word)
    return asked.by_abi or bool(asked.layer)


def is_prefix(word: str) -> bool:
    """Return whether a word names an MPI by its installation prefix, as ``/opt/mpich``."""
    return "/" in word


def is_of_release(environment: str, word: str) -> bool:
    """Return whether an environment belongs to a family, or to a release such as ``mpich@4.3.2``.

    One with the standard ABI belongs to ``mpich+abi``, not to ``mpich``; likewise one on another library below
    it.
    """
    asked = parse_mpi_word(word)
    family, version = split_release(asked.plain)
    name = environment_name(family, version)
    environment, _, layer = environment.partition(ON)
    if layer != name_layer(asked.layer) or asked.by_abi != environment.endswith(ABI_ENDING):
        return False
    environment = environment.removesuffix(ABI_ENDING)
    return environment.startswith(f"{family}-") and (
        not version or environment == name or environment.startswith(f"{name}-")
    )


def name_layer(layer: str) -> str:
    """Return the name of a library below an MPI in an environment's name: ``ucx-1_19_0``."""
    name, _, version = layer.partition("@")
    if is_prefix(version):
        return f"{name}-{hash_prefix(version)}"
    return environment_name(name, version) if version else name


def hash_prefix(prefix: str) -> str:
    """Return a short hash of an installation prefix, for names."""
    return hashlib.sha256(prefix.encode()).hexdigest()[:DIGITS]


def join_lines(text: str) -> str:
    """Join a library version string (MPICH's has many lines) into one line."""
    return " ".join(text.split())


def build_family_environment(family: str, prefix: Path, oversubscribed: bool = False) -> dict[str, str]:
    """Build variables that a family needs to start here and to bind ranks to cores.

    Open MPI and Intel MPI bind by default; MPICH's launcher must be asked to. Two ranks on one core measure the
    scheduler.

    :param oversubscribed: whether there are more processes than cores, which some families refuse or run very
    slowly.
    """
    env = {}
    if family == "intel-mpi":
        env["I_MPI_ROOT"] = str(prefix)
        env |= find_own_libfabric(prefix)
    if family == "mpich":
        env["HYDRA_BINDING"] = "core"
    if family == "openmpi" and os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if oversubscribed:
        env |= OVERSUBSCRIBED.get(family, {})
    return env


def spare_network(family: str, shell: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that saves Open MPI a second per launch on a machine of one node.

    Open MPI opens its libfabric transport, which one node does not use, and sleeps for a second when it closes
    it. Transports that the user's shell chooses are left alone.

    :param shell: variables of the user's shell that influence an MPI
    """
    spared = family == "openmpi" and BETWEEN_NODES not in shell
    return {BETWEEN_NODES: "^ofi"} if spared else {}


def find_own_libfabric(prefix: Path) -> dict[str, str]:
    """Find the libfabric beside the library in wheels of Intel MPI up to 2021.15, which looks elsewhere."""
    library = prefix / "lib" / "libfabric.so.1"
    if not library.exists() or not any(library.parent.glob("lib*-fi.so")):
        return {}
    return {"I_MPI_OFI_LIBRARY": str(library), "FI_PROVIDER_PATH": str(library.parent)}


#: Open MPI 5 reads the PRTE variables and 4 the OMPI one. MPICH spins in its shared-memory collectives for
#: whole time slices unless they are switched off (slower with two ranks, so only here).
OVERSUBSCRIBED = {
    "openmpi": {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    },
    "mpich": {"MPIR_CVAR_COLL_SHM_LIMIT_PER_NODE": "0", "MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM": "mpir"},
}


def name_distinctly(mpis: list[Mpi]) -> list[Mpi]:
    """Name MPIs by family and version; a second one with the same name gets ``-2``, and so on.

    Names follow from the order alone, not from earlier names. An MPI given by its prefix has a hash of it in
    its name, so that its builds are never confused with another's. One used through its standard ABI, or on
    another library, has its own name and so its own references.
    """
    taken: set[str] = set()
    renamed = []
    for mpi in mpis:
        plain = environment_name(mpi.family, mpi.version)
        if mpi.origin == PREFIX:
            plain += f"-{hash_prefix(mpi.prefix)}"
        ending = ABI_ENDING if mpi.standard_abi else ""
        ending += f"{ON}{name_layer(mpi.layer)}" if mpi.layer else ""
        names = (f"{plain}{ending}" if number == 1 else f"{plain}-{number}{ending}" for number in count(1))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        renamed.append(replace(mpi, name=name))
    return renamed
