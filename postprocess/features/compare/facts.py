"""Facts beside the figures: what the MPI library of each side is, what it loads and how it is set.

The library tells them itself, in one launch of each side whose times do not count: asking would disturb a
measurement. A control variable is what MPI_T of the MPI standard calls so; its value is that of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from postprocess.base import files
from postprocess.base.documents.records import parse_record
from postprocess.base.documents.strict_json import parse_json
from postprocess.base.errors import UsageError
from site_configs.mpi.family import identify_library

ABSENT = "none"  #: for what a side does not have, as people read it
UNREAD = "empty"  #: for a control variable without a value that can be read
PLACE = "PREFIX"  #: in a value, for where the library is installed
#: Objects that are the suite's own, and differ wherever they are built.
OWN_OBJECTS = ("mpicost", "libwitness.so")
#: Variables that say how an MPI is to behave. Those that launchers make for each launch are none of them.
SETTINGS = ("OMPI_MCA_", "UCX_", "FI_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "OMP_")
MADE_BY_LAUNCHERS = ("I_MPI_INFO_", "I_MPI_HYDRA_", "I_MPI_INTERNAL_", "I_MPI_ROOT", "OMPI_MCA_PREFIXES")
#: How each kind of difference is named, in the order of showing.
MPI, TRANSPORT, OBJECT = "MPI", "transport", "loaded library"
SETTING, VARIABLE = "environment variable", "control variable"
KINDS = (MPI, TRANSPORT, OBJECT, SETTING, VARIABLE)
SHOWN_WHOLE = (MPI, TRANSPORT)  #: in a summary; of the others their number
ID_SHOWN = 17  #: digits of a build ID
#: How an MPI is told the value of a control variable, where its name is not that of a variable itself
OF_FAMILY = {"openmpi": "OMPI_MCA_"}
MOST_LETTERS = 60  #: of a value: longer ones say how something was built
TELLS = "_version"  #: how the name of a variable ends that tells something and sets nothing


@dataclass(frozen=True)
class LoadedObject:
    """A program or library in memory."""

    path: str
    id: str  #: build ID, or a hash of the instructions


@dataclass(frozen=True)
class ControlVariable:
    """A control variable of MPI_T."""

    name: str
    verbosity: str  #: for whom it is, as ``user basic``
    value: str = ""  #: empty if it has none, or none that can be read


@dataclass(frozen=True)
class SideFacts:
    """What the MPI library of a side tells of itself, as the witness writes it."""

    mpi_library: str  #: text of MPI_Get_library_version
    mpi_standard: str
    linked_as: str  #: path of the MPI library, by the name that programs are linked to
    objects: tuple[LoadedObject, ...]
    variables: tuple[ControlVariable, ...]
    environment: Mapping[str, str]
    transports: Mapping[str, str] = field(default_factory=dict)  #: of a further launch, by name
    #: Of a program of the standard ABI: ``version``, ``program`` (hash of its file), ``library``
    standard_abi: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Where the library is installed."""
        return str(PurePosixPath(self.linked_as).parent.parent)

    @property
    def loaded(self) -> dict[str, str]:
        """Build ID of each loaded object by its file name, without the suite's own."""
        named = {PurePosixPath(each.path).name: each.id[:ID_SHOWN] for each in self.objects}
        return {name: id_ for name, id_ in named.items() if name not in OWN_OBJECTS}

    @property
    def settings(self) -> dict[str, str]:
        """Variables of the environment that say how an MPI is to behave."""
        return {
            name: value
            for name, value in sorted(self.environment.items())
            if name.startswith(SETTINGS) and not name.startswith(MADE_BY_LAUNCHERS)
        }

    @property
    def values(self) -> dict[str, str]:
        """Value of each control variable, without where the library is installed."""
        return {
            variable.name: variable.value.replace(self.prefix, PLACE) or UNREAD for variable in self.variables
        }


@dataclass(frozen=True)
class FactDifference:
    """A fact that differs between the sides."""

    kind: str  #: one of :data:`KINDS`
    name: str
    old: str | None  #: None if the side does not have it
    new: str | None
    verbosity: str = ""  #: of a control variable

    @property
    def texts(self) -> tuple[str, str]:
        """Return what the two sides have, as people read it."""
        return ABSENT if self.old is None else self.old, ABSENT if self.new is None else self.new


def read_facts(path: Path) -> SideFacts:
    """Read the facts that a launch has written: a line for each of its starts, of which the first is returned.

    :raises UsageError: if there are none, or they are damaged
    """
    try:
        lines = files.read_regular(path).decode().splitlines() or [""]
        first, *_ = [parse_record(parse_json(line), SideFacts) for line in lines]
        return first
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: the launch told nothing of its MPI") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}: is damaged") from None


def compare_facts(old: SideFacts, new: SideFacts) -> list[FactDifference]:
    """Compare the facts of two sides; nothing that is the same is in the list."""
    one, two = tell_libraries(old, new)
    kinds: tuple[tuple[str, Mapping[str, str], Mapping[str, str]], ...] = (
        (MPI, one, two),
        (TRANSPORT, old.transports, new.transports),
        (OBJECT, old.loaded, new.loaded),
        (SETTING, old.settings, new.settings),
        (VARIABLE, old.values, new.values),
    )
    verbosities = {variable.name: variable.verbosity for variable in (*old.variables, *new.variables)}
    return [
        FactDifference(kind, *each, verbosities.get(each[0], "") if kind == VARIABLE else "")
        for kind, one, two in kinds
        for each in compare_maps(one, two)
    ]


def describe_shared_program(old: SideFacts | None, new: SideFacts | None) -> str:
    """Describe in a sentence that both sides ran the same file; empty if they did not, or do not tell.

    Only programs that are built against the standard ABI tell: of others each MPI has its own.
    """
    one, two = (side.standard_abi if side else {} for side in (old, new))
    program, version = one.get("program"), one.get("version")
    if not program or not version or program != two.get("program"):
        return ""
    return f"Both sides ran the same file ({program}), built once against the standard ABI {version} of MPI"


def compare_maps(
    old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[tuple[str, str | None, str | None]]:
    """Compare what two sides say by name; None for what a side does not have."""
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def tell_libraries(old: SideFacts, new: SideFacts) -> Iterator[dict[str, str]]:
    """Tell what both libraries are: the lines of their versions by name if they have any, else the text."""
    named = [name_lines(side.mpi_library) for side in (old, new)]
    if not all(named):
        named = [{"MPI library": " ".join(side.mpi_library.split())} for side in (old, new)]
    for side, lines in zip((old, new), named, strict=True):
        abi = PurePosixPath(side.linked_as).name
        yield {**lines, "MPI standard": side.mpi_standard, "ABI (linked as)": abi}


def name_lines(library: str) -> dict[str, str]:
    """Name the lines of a version, as MPICH names its own; none if the first two have no name."""
    lines = [line.partition(":") for line in library.splitlines() if line.strip()]
    if len(lines) < 2 or not all(sign for _, sign, _ in lines[:2]):
        return {}
    return {name.strip(): " ".join(value.split()) for name, _, value in lines}


def rank_verbosity(verbosity: str) -> tuple[int, int]:
    """Rank a verbosity of MPI_T: users before tuners before developers, the basic first, other words last."""
    whom, _, how = verbosity.partition(" ")
    return ["user", "tuner", "developer", whom].index(whom), ["basic", "detail", "all", how].index(how)


def summarise_facts(differences: Sequence[FactDifference]) -> list[str]:
    """Summarise what differs in a line each; of libraries and variables their numbers."""
    told = [difference for difference in differences if difference.kind in SHOWN_WHOLE]
    lines = [f"{difference.name}: {' -> '.join(difference.texts)}" for difference in told]
    for kind in (each for each in KINDS if each not in SHOWN_WHOLE):
        own = [difference for difference in differences if difference.kind == kind]
        gone = sum(difference.new is None for difference in own)
        added = sum(difference.old is None for difference in own)
        other = len(own) - gone - added
        words = ((gone, "only old"), (added, "only new"), (other, "different"))
        if own:
            counts = ", ".join(f"{number} {word}" for number, word in words if number)
            lines.append(f"{kind}, by name: {counts}")
    return lines


def find_settings_to_try(differences: Sequence[FactDifference], new: SideFacts) -> dict[str, FactDifference]:
    """Find what both sides have with another value, by the variable that sets it; what is for users first.

    A value that names a place, or cannot be read, is left out.
    """
    ordered = sorted(differences, key=lambda each: (rank_verbosity(each.verbosity), each.name))
    return {variable: each for each in ordered if (variable := find_variable(each, new))}


def find_variable(each: FactDifference, new: SideFacts) -> str:
    """Find the variable that gives the new side the old value; empty if nothing can."""
    if not each.old or each.old == UNREAD or each.name.endswith(TELLS):
        return ""
    if PLACE in each.old or "/" in each.old or len(each.old) > MOST_LETTERS:
        return ""
    if each.kind == VARIABLE and each.new is not None:
        return name_variable(each.name, new)
    return each.name if each.kind == SETTING else ""


def name_variable(control: str, side: SideFacts) -> str:
    """Name the variable of the environment that sets a control variable; empty if none is known."""
    if control.startswith(SETTINGS):
        return control
    prefix = OF_FAMILY.get(identify_library(side.mpi_library)[0])
    return f"{prefix}{control}" if prefix else ""
