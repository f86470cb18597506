"""What must be the same for two values to be compared: the facts of a launch, without their cosmetics.

A difference that cannot change a time must not break a comparison, or people learn to accept everything:
host names, paths, the kernel (of which the age of a reference tells), who built an MPI, warnings and debug
symbols, and which very cores are used. Everything else counts, until the site accepts it: whoever upgrades a
compiler wants to see that first. Spack's hash of a program is none of the facts, since the paths of the
checkout and of what the site has installed are in it; what it stands for (sources, compiler, flags, the MPI's
own word of its build) is compared instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PATH = re.compile(r"/[^\s'\"=:;,]*")
#: A folder of Spack's: the build, wherever it is
HASHED = re.compile(r"[A-Za-z0-9_.+-]+-[a-z0-9]{32}")
#: Options of configure that only say where
PLACES = re.compile(r"--(prefix|exec-prefix|[a-z]*dir)=")
BUILDER = re.compile(r"\S+@\S+ ")  #: of Open MPI: who built it on which host
#: Options of a compiler that change no instruction that is timed: debug symbols, warnings, and where files are.
#: What begins like them and is passed on (``-Wa,``) or chooses code (``-gpu=``) is none of them.
COSMETIC = re.compile(
    r"-g([0-3]|(gdb|dwarf|split).*)?|-W(?![alp],).*|-Wl,-rpath.*|-(I|isystem|L).*"
    r"|-f(diagnostics|file-prefix|debug-prefix).*|/.*"
)
SEPARATOR = " | "  #: between the lines of what an MPI says of itself
PROCESSORS = " + "  #: between the names of the processors of a job
UNKNOWN = "unknown"  #: begins the name of a processor that the kernel does not name


@dataclass(frozen=True)
class Difference:
    """One fact in which a launch differs from the one behind a reference."""

    name: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        ours, theirs = differing_parts(self.ours, self.theirs)
        return f"{self.name} is {ours!r}, and {theirs!r}"

    @property
    def fix(self) -> str:
        """What to do about it."""
        return "calibrate again"


class Nameless(Difference):
    """A processor without a name that is called as in the reference, and may be another all the same."""

    def __str__(self) -> str:
        return (
            f"{self.name} is {self.ours!r} without caches, which may be any machine, and the same"
        )


def circumstances_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """What a launch ran on and how its program was built, from its run record; None for what that lacks.

    Of OSU and IMB, version, compiler and flags are in the method that their plan tells.
    """
    own = "method" not in run
    return {
        "mpi_library": library_identity(run.get("mpi_library")),
        "caches": caches_of(run.get("caches")),
        "binding": {layout_of(run): binding_of(run)},
        **({"source_hash": run.get("source_hash")} if own else {}),
        **({"compiler": run.get("compiler")} if own else {}),
        **({"flags": flags_of(run.get("compiler_flags"))} if own else {}),
    }


def joint(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions that hold for both; either may be empty.

    :raises ValueError: naming what differs.
    """
    if not one or not other:
        return {**one, **other}
    wrong = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    bindings = one.get("binding", {}), other.get("binding", {})
    both = bindings[0].keys() & bindings[1].keys()
    if all(bindings[0][layout] == bindings[1][layout] for layout in both):
        wrong -= {"binding"}
    if wrong:
        raise ValueError(", ".join(sorted(wrong)))
    return {**one, "binding": bindings[0] | bindings[1]}


def untold(ours: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """The first fact of a launch that a reference does not tell; empty if it tells all."""
    if lacking := next((name for name in ours if name not in known), ""):
        return lacking
    layouts = ours.get("binding", {}).keys() - known.get("binding", {}).keys()
    return f"binding of {min(layouts)}" if layouts else ""


def differences(ours: Mapping[str, Any], known: Mapping[str, Any]) -> list[Difference]:
    """In what the circumstances of a launch differ from those of a reference, which tells all of them."""
    pairs = {name: (value, known[name]) for name, value in ours.items() if name != "binding"}
    for layout, shape in ours.get("binding", {}).items():
        pairs["binding"] = (shape, known["binding"][layout])
    return [Difference(name, *pair) for name, pair in pairs.items() if pair[0] != pair[1]]


def nameless(run: Mapping[str, Any]) -> bool:
    """Whether nothing tells a processor of a launch from others: neither a name nor the sizes of caches."""
    names = (run.get("cpu_model") or UNKNOWN).split(PROCESSORS)
    return not run.get("caches") and any(name.startswith(UNKNOWN) for name in names)


def layout_of(run: Mapping[str, Any]) -> str:
    """Processes and processes per node, as in ``4x2``."""
    return f"{run.get('processes')}x{run.get('per_node')}"


def library_identity(said: str | None) -> str | None:
    """What MPI_Get_library_version says, without what differs between two copies of the same build.

    Paths become the folder's name where that names a build of Spack's, else the last part; of where it was
    installed, nothing is left. Of Open MPI's package, user and host of its builder go.
    """
    if said is None:
        return None
    lines = (
        " ".join(map(_without_place, BUILDER.sub("", line).split())) for line in said.split("\n")
    )
    return SEPARATOR.join(line for line in lines if line)


def _without_place(word: str) -> str:
    if found := HASHED.search(word):
        return word[: word.find("/")] + found[0] if "/" in word else word
    if "://" in word:
        return word
    plain = word.strip("'\"")
    if PLACES.match(plain):
        return ""
    return PATH.sub(lambda path: path[0].rstrip("/").rpartition("/")[2], word)


def flags_of(said: str | None) -> str | None:
    """The options of a compiler that may change a time, in their order: the last one holds."""
    if said is None:
        return None
    return " ".join(word for word in said.split() if not COSMETIC.fullmatch(word))


def caches_of(caches: Sequence[Mapping[str, Any]] | None) -> str | None:
    """Sizes of the caches and how many CPUs share each: what tells node types of one CPU name apart."""
    if caches is None:
        return None
    return ", ".join(
        sorted(f"L{c['level']} {c['type']} {c['bytes']} of {c['shared_by']}" for c in caches)
    )


def binding_of(run: Mapping[str, Any]) -> str | None:
    """The shape of the ranks' CPU sets on all hosts, such as ``4 ranks of 1 CPU``.

    How many CPUs each rank may use and with how many other ranks it shares them; not which.
    """
    if "ranks" not in run:
        return None
    shapes: Counter[tuple[int, int]] = Counter()
    sets = [(each["host"], each.get("cpus", "")) for each in run["ranks"]]
    cpus = [frozenset((host, cpu) for cpu in cpus_of(said)) for host, said in sets]
    users = Counter(cpu for each in cpus for cpu in each)
    for each in cpus:
        shapes[len(each), max((users[cpu] for cpu in each), default=1)] += 1
    return ", ".join(_shape(*shape, ranks) for shape, ranks in sorted(shapes.items()))


def _shape(cpus: int, users: int, ranks: int) -> str:
    shared = f" shared by {users}" if users > 1 else ""
    number = f"{cpus} CPU{'s' if cpus != 1 else ''}" if cpus else "unknown CPUs"
    return f"{ranks} rank{'s' if ranks != 1 else ''} of {number}{shared}"


def cpus_of(said: str) -> set[int]:
    """The CPUs of a list as Linux writes it, ``0-3,8``; empty for what is none."""
    found: set[int] = set()
    for part in said.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return set()
        found |= set(range(int(first), int(last or first) + 1))
    return found


def differing_parts(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Of two long texts only the lines that differ, so that a person sees what it is."""
    if not isinstance(ours, str) or not isinstance(theirs, str):
        return ours, theirs
    lines = [text.split(SEPARATOR) for text in (ours, theirs)]
    if max(map(len, lines)) == 1:
        return ours, theirs
    own = [line for line in lines[0] if line not in lines[1]]
    other = [line for line in lines[1] if line not in lines[0]]
    return SEPARATOR.join(own), SEPARATOR.join(other)
