"""The options that choose what is measured and how, each defined once, with their names in the checks.

Parsing, the message "matches no case", the cases that a session misses and the command that measures a case
again are derived from :data:`OPTIONS`. What the user calls ``--bytes`` is ``sizes`` in checks and ``bytes`` in
a case.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from postprocess.base.strict_json import format_external
from postprocess.model.case import Case
from site_configs.programs.program import PROGRAMS, find_programs, find_programs_by_cache, find_usual_values


@dataclass(frozen=True, eq=False)
class SelectionOption:
    """An option of the commands that measure. No command has all of them."""

    flag: str
    variable: str  #: name in the checks, and key in ``Selection.choice``
    part: str | None = None  #: field of a case by which it chooses cases; None if it chooses none
    several: bool = False  #: whether it takes several values
    kind: type = str  #: type of a value
    programs: tuple[str, ...] = tuple(PROGRAMS)  #: programs that have it
    #: programs by value, if not all of these accept every value
    of_value: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Value without the option, by program. A case with another value is only measured with the option.
    usual: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the option in the parser of the command line."""
        return self.flag.removeprefix("--").replace("-", "_")

    def programs_with(self, value: Any) -> tuple[str, ...]:
        """Return the programs that have the option and accept this value."""
        return self.programs if self.several else self.of_value.get(value, self.programs)

    def wanted(self, choice: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the chosen values; empty if the option was not given, which means all values."""
        value = choice.get(self.variable)
        if self.several:
            return tuple(value or ())
        return () if value is None else (value,)

    def value_of(self, case: Case) -> Any:
        return getattr(case, self.part or "")


def _count(flag: str, variable: str) -> SelectionOption:
    """Return an option with a number, for the programs that have it."""
    programs, usual = find_programs(variable), find_usual_values(variable)
    return SelectionOption(flag, variable, kind=int, programs=programs, usual=usual)


PROGRAM = SelectionOption("--program", "programs", "program", several=True)
ROUTINE = SelectionOption("--routine", "routines", "routine", several=True)
PARTITION = SelectionOption("--partition", "partitions", "partition", several=True)
PROCESSES = SelectionOption("--processes", "processes", "processes", several=True, kind=int)
BOUNDARIES = SelectionOption("--boundaries", "boundaries", kind=bool)
PER_NODE = SelectionOption("--per-node", "per_node", "per_node", several=True, kind=int)
PEERS = SelectionOption("--peers", "peers", "peer", several=True, kind=int)
BYTES = SelectionOption("--bytes", "sizes", "bytes", several=True, kind=int)
CACHE_STATE = SelectionOption(
    "--cache", "cache", "cache", of_value=find_programs_by_cache(), usual=find_usual_values("cache")
)
SYNCHRONISER = SelectionOption("--sync", "sync", "sync", usual=find_usual_values("sync"))
TRIAL_COUNT = _count("--trials", "trials")
ROUND_COUNT = _count("--rounds", "trial_rounds")
ITERATION_COUNT = _count("--iterations", "iterations")
BUDGET = _count("--seconds-per-layout", "seconds_per_layout")
STRICT = SelectionOption("--strict", "strict", kind=bool)

OPTIONS = (
    *(PROGRAM, ROUTINE, PARTITION, PROCESSES, BOUNDARIES, PER_NODE, PEERS, BYTES),
    *(CACHE_STATE, SYNCHRONISER, TRIAL_COUNT, ROUND_COUNT, ITERATION_COUNT, BUDGET, STRICT),
)

#: Options that choose cases: a night with one of them is a partial night.
CHOOSING = tuple(option for option in OPTIONS if option.part)

#: Flags that choose cases, or say how and where they run, except the site; and whether they take a value.
SELECTING = {
    **{option.flag: option.kind is not bool for option in OPTIONS if option not in (BUDGET, STRICT)},
    **dict.fromkeys(("--mpis", "--environment", "--family", "--time-limit", "--set-env"), True),
    "--oversubscribe": False,
}
#: Flags that decide how many launches of each case a night takes.
OF_LAUNCHES = {"--launches": True, BUDGET.flag: True}
#: Flags that make a session a manual trial, which does not count as a night.
OF_A_TRIAL = ("--references", "--set-env", "--oversubscribe")


def select_words(command: Sequence[str], flags: Mapping[str, bool]) -> list[str]:
    """Select these flags and their values from the words of a command.

    :param flags: whether each flag takes a value
    """
    selected: list[str] = []
    words = iter(command)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag in flags:
            value = [next(words, "")] if flags[flag] and not equals else []
            selected += [word, *value]
    return selected


# Other keys of a choice.

AGAIN = "again"  #: the cases of a confirmation run
WANTED = "wanted"  #: exactly the routines of rules, in place of routines, sizes and layouts
LAUNCHES = "launches"  #: places that get several launches
RESTING = "resting"  #: what a night leaves to a later one
PLANTED = "planted"  #: environments whose launches are delayed
AS_REFERENCES = "as_references"  #: whether to use the trials and rounds of the references of each environment
TIME_LIMIT = "time_limit"  #: limit of a launch, as ``60s``
ROUNDS = "rounds"  #: rounds of a comparison of programs, or of an MPI with its own settings
FAMILY = "family"  #: family whose sizes and trials are used, also for routines that others measure too
#: how data is verified, in launches whose times are not used; empty without verification
VALIDATION = "validation"
TOGETHER, APART = ("together", "apart")  #: benchmarks of one executable in one start, or each in its own
VARIANTS = "variants"  #: settings that each round tries: name, and environment variables

#: All keys of a choice, with the type of a value and whether it is a list of such values.
KINDS: dict[str, tuple[type, bool]] = {
    **{option.variable: (option.kind, option.several) for option in OPTIONS},
    AGAIN: (dict, True),
    WANTED: (dict, True),
    LAUNCHES: (dict, True),
    RESTING: (dict, True),
    PLANTED: (str, True),
    AS_REFERENCES: (bool, False),
    TIME_LIMIT: (str, False),
    ROUNDS: (int, False),
    VALIDATION: (str, False),
    VARIANTS: (dict, True),
    FAMILY: (str, False),
}


def check_choice(choice: Mapping[str, Any]) -> None:
    """Check that a choice read from a file has known keys and values of the right types.

    :raises ValueError: ``choice.KEY: what is wrong with it``.
    """
    for name, value in choice.items():
        if name not in KINDS:
            raise ValueError(f"choice.{name}: is not a setting of a check")
        kind, several = KINDS[name]
        values = value if several and type(value) is list else [value]
        if (several and type(value) is not list) or any(type(entry) is not kind for entry in values):
            what = f"a list of {kind.__name__}" if several else kind.__name__
            raise ValueError(f"choice.{name}: {format_external(value)} is not {what}")


@dataclass(frozen=True, order=True)
class WantedRoutine:
    """A routine at one layout, at these sizes and with these partners."""

    program: str
    partition: str
    layout: str  #: processes and processes per node, as ``4x2``
    routine: str
    sizes: tuple[int, ...]
    peers: tuple[int, ...] = ()  #: partners of rank 0, if ranks play in pairs; empty for all


def merge_wanted(found: Iterable[WantedRoutine]) -> list[WantedRoutine]:
    """Merge the sizes and partners of a routine at one layout, because a launch combines them."""
    merged: dict[tuple[str, ...], WantedRoutine] = {}
    for routine in found:
        key = routine.program, routine.partition, routine.layout, routine.routine
        earlier = merged.get(key, routine)
        sizes = tuple(sorted({*earlier.sizes, *routine.sizes}))
        peers = tuple(sorted({*earlier.peers, *routine.peers}))
        merged[key] = WantedRoutine(*key, sizes, peers)
    return sorted(merged.values())


def build_wanted_choice(found: Iterable[WantedRoutine]) -> dict[str, Any]:
    """Build the choice that makes checks measure exactly these routines."""
    return {WANTED: [asdict(routine) for routine in merge_wanted(found)]}


def select_wanted(choice: Sequence[Mapping[str, Any]] | None, **place: str) -> dict[str, WantedRoutine] | None:
    """Select the wanted routines at a place, by name; None without a choice. ``place`` may be partial."""
    if choice is None:
        return None
    routines = [
        WantedRoutine(**{**entry} | {"sizes": tuple(entry["sizes"]), "peers": tuple(entry["peers"])})
        for entry in choice
    ]
    here = [routine for routine in routines if all(getattr(routine, key) == place[key] for key in place)]
    return {routine.routine: routine for routine in here}


@dataclass(frozen=True)
class RestingPlace:
    """A program that does not measure an MPI on a partition in this session."""

    partition: str  #: ``system:partition``
    environment: str
    program: str
    reason: str


def find_resting_reason(
    choice: Iterable[Mapping[str, str]], partition: str, environment: str, program: str
) -> str:
    """Find why a program does not measure an MPI in this session; empty if it does."""
    resting = [RestingPlace(**entry) for entry in choice]
    place = (partition, environment, program)
    here = [entry.reason for entry in resting if (entry.partition, entry.environment, entry.program) == place]
    return here[0] if here else ""
