"""An MPI implementation: its names, its releases, and what it needs to compile and run."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from site_configs.families import FAMILIES, find_family

HEAD = re.compile(r"\s*(?:MPI VERSION\s*:\s*)?")  #: what Cray's library prints before its name
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
    matches = ((family.name, re.match(family.library, text)) for family in FAMILIES.values())
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

    :param oversubscribed: whether there are more processes than cores, which some families refuse or run very
    slowly.
    """
    facts = find_family(family)
    return {**facts.environment(prefix), **(facts.oversubscribed if oversubscribed else {})}


def build_unknown_environment(prefix: Path, oversubscribed: bool = False) -> dict[str, str]:
    """Build the variables for an MPI whose family is not known yet; the parameters are those of a family's."""
    env: dict[str, str] = {}
    for family in FAMILIES.values():
        if family.needs_environment:
            env |= build_family_environment(family.name, prefix, oversubscribed)
    return env


def spare_network(family: str, shell: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that save an MPI time in each launch on a machine of one node.

    Transports that the user's shell chooses are left alone.

    :param shell: variables of the user's shell that influence an MPI
    """
    return {name: value for name, value in find_family(family).one_node.items() if name not in shell}


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
