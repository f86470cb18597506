"""The case: what is measured, where and how. Its key identifies values everywhere else."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from postprocess.base.formats import first_of

NAME = re.compile(r"[A-Za-z0-9_.+-]+")
KEY = re.compile(
    r"(?P<system>[^:]+):(?P<partition>[^:]+):(?P<environment>[^:]+):(?P<program>[^:]+)"
    r":(?P<routine>[^:@]+)(@(?P<peer>[0-9]+))?:(?P<cache>[^:-]+)-(?P<sync>[^:-]+)"
    r":(?P<processes>[0-9]+)x(?P<per_node>[0-9]+):(?P<bytes>[0-9]+)"
)
INTEGERS = ("peer", "processes", "per_node", "bytes")
is_name = lru_cache(maxsize=4096)(NAME.fullmatch)  #: 100,000 cases of a large cluster have few names
NAMED = 3  #: cases that a reason lists before it counts the rest


@dataclass(frozen=True, order=True)
class Case:
    """What has one reference value. Two measurements compare only if their cases are equal."""

    system: str
    partition: str
    environment: str
    program: str
    routine: str
    peer: int  #: rank that plays ping-pong with rank 0; 0 for all other routines
    cache: str  #: ``evict``, ``flush`` or ``warm``, or ``rotate`` of IMB
    sync: str  #: ``dissemination``, ``barrier``, ``window`` or ``loop`` (many calls after one synchronisation)
    processes: int
    per_node: int  #: processes per node
    bytes: int  #: size by the byte convention of the routine; 0 without a payload

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in INTEGERS:
                if value < 0:
                    raise ValueError(f"{name} {value} is negative")
            elif not is_name(value):
                raise ValueError(f"{name} {value!r} is not a name (letters, digits, _ . + -)")

    @classmethod
    def from_key(cls, key: str) -> "Case":
        match = KEY.fullmatch(key)
        if not match:
            raise ValueError(f"{key!r} is not the key of a case")
        words: dict[str, Any] = match.groupdict()
        numbers = {name: int(words.pop(name) or 0) for name in INTEGERS}
        return cls(**{**words, **numbers})

    @property
    def variant(self) -> str:
        """Cache state and synchroniser, as in ``evict-dissemination``."""
        return f"{self.cache}-{self.sync}"

    @property
    def layout(self) -> str:
        """Processes and processes per node, as in ``4x2``."""
        return f"{self.processes}x{self.per_node}"

    @property
    def label(self) -> str:
        """The routine as people read it: ``pingpong@3`` is the ping-pong of rank 0 with rank 3."""
        return f"{self.routine}@{self.peer}" if self.peer else self.routine

    @property
    def variable(self) -> str:
        """Name of the case inside its launch: the name of ReFrame's performance variable."""
        return f"{self.label}_{self.bytes}"

    @property
    def key(self) -> str:
        """Unique, readable and stable key: ``laptop:cpu:mpich-5.0.2:mpicost:bcast:evict-barrier:2x2:8``."""
        parts = (self.system, self.partition, self.environment, self.program, self.label)
        return ":".join((*parts, self.variant, self.layout, str(self.bytes)))


#: The fields of a case as a tuple, which sorts like the case and compares in C.
ORDER = attrgetter(*(field.name for field in fields(Case)))


def sort_cases(cases: Iterable[Case]) -> list[Case]:
    """Sort cases, in a fifth of the time that ``sorted`` takes without a key."""
    return sorted(cases, key=ORDER)


def matches_patterns(key: str, patterns: Sequence[str]) -> bool:
    """Return whether a case matches a key or pattern. Every case matches if there are no patterns."""
    return not patterns or any(fnmatchcase(key, pattern) for pattern in patterns)


def format_case_names(cases: Sequence[Case]) -> str:
    """Format the keys of the first few cases, and count the rest."""
    return first_of([case.key for case in cases], NAMED)


class ReferencePlace(NamedTuple):
    """Place that one reference file is about."""

    system: str
    partition: str
    environment: str

    @classmethod
    def of(cls, case: Case) -> "ReferencePlace":
        return cls(case.system, case.partition, case.environment)

    @classmethod
    def of_file(cls, path: Path) -> "ReferencePlace":
        """Return the place of a reference file, from its path."""
        return cls(path.parent.parent.name, path.parent.name, path.stem)


class AnyLaunch(Protocol):
    """A launch, planned or finished."""

    @property
    def partition(self) -> str: ...
    @property
    def environment(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def processes(self) -> int: ...
    @property
    def per_node(self) -> int: ...


class LaunchPlace(NamedTuple):
    """Place of a launch: what all of its cases have in common."""

    partition: str  #: ``system:partition``
    environment: str
    program: str
    processes: int
    per_node: int

    @classmethod
    def of(cls, case: Case) -> "LaunchPlace":
        partition = f"{case.system}:{case.partition}"
        return cls(partition, case.environment, case.program, case.processes, case.per_node)

    @classmethod
    def of_launch(cls, launch: AnyLaunch) -> "LaunchPlace":
        """Return the place of a launch, planned or finished."""
        layout = launch.processes, launch.per_node
        return cls(launch.partition, launch.environment, launch.program, *layout)
