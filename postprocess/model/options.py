"""What a user chooses to be measured, and how: each option once, with what the checks call it.

Parsing, "matches no case", the cases that a session misses and the command that measures a case again follow
from :data:`OPTIONS`. What the user calls ``--bytes``, checks call ``sizes`` and a case ``bytes``.
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
    variable: str  #: of the checks: its key in ``Selection.choice``
    part: str | None = None  #: of a case, by which it chooses cases; None if it chooses none
    several: bool = False  #: whether it takes several values
    kind: type = str  #: of a value
    programs: tuple[str, ...] = tuple(PROGRAMS)  #: that have it
    #: where not all of these do
    of_value: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Value without the option, by program. A case that has another one is only measured with the option.
    usual: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the parser of the command line calls it."""
        return self.flag.removeprefix("--").replace("-", "_")

    def programs_with(self, value: Any) -> tuple[str, ...]:
        """Return the programs that have the option, and can be told this value."""
        return self.programs if self.several else self.of_value.get(value, self.programs)

    def wanted(self, choice: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values that were chosen; empty if none was, which leaves all of them."""
        value = choice.get(self.variable)
        if self.several:
            return tuple(value or ())
        return () if value is None else (value,)

    def value_of(self, case: Case) -> Any:
        return getattr(case, self.part or "")


def _count(flag: str, variable: str) -> SelectionOption:
    """Return an option with a number, of the programs that have it."""
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

#: Those that choose cases: a night with one of them is a part of a night.
CHOOSING = tuple(option for option in OPTIONS if option.part)

#: Flags that choose cases, and say how and where they run, beside the site; and whether each takes a value.
SELECTING = {
    **{option.flag: option.kind is not bool for option in OPTIONS if option not in (BUDGET, STRICT)},
    **dict.fromkeys(("--mpis", "--environment", "--family", "--time-limit", "--set-env"), True),
    "--oversubscribe": False,
}
#: Flags by which a night says how many launches of each case it takes.
OF_LAUNCHES = {"--launches": True, BUDGET.flag: True}
#: Flags that make a session a trial by hand, which counts as no night.
OF_A_TRIAL = ("--references", "--set-env", "--oversubscribe")


def select_words(command: Sequence[str], flags: Mapping[str, bool]) -> list[str]:
    """Select the words of a command that are these flags and their values.

    :param flags: whether each takes a value
    """
    found: list[str] = []
    words = iter(command)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag in flags:
            value = [next(words, "")] if flags[flag] and not equals else []
            found += [word, *value]
    return found


# What else a choice may hold.

AGAIN = "again"  #: what a confirmation run measures
WANTED = "wanted"  #: exactly what rules ask for, in the place of routines, sizes and layouts
LAUNCHES = "launches"  #: of each place that gets several
RESTING = "resting"  #: what a night leaves to a later one
PLANTED = "planted"  #: environments whose launches are delayed
AS_REFERENCES = "as_references"  #: trials and rounds as the references of each environment have them
TIME_LIMIT = "time_limit"  #: of a launch, as ``60s``
ROUNDS = "rounds"  #: in which programs are compared, or an MPI with its own settings
FAMILY = "family"  #: whose sizes and trials are measured, of routines that others measure too
VALIDATION = "validation"  #: how data is verified, in launches whose times are of no use; empty: it is not
TOGETHER, APART = ("together", "apart")  #: benchmarks of one executable in a start, or each in its own
VARIANTS = "variants"  #: settings that each round tries: name, and variables of the environment

#: All that a choice may hold: the type of each value, and whether it is a list of such.
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
    """Check that a choice read from a file has known keys, and values of the right type.

    :raises ValueError: ``choice.KEY: what is wrong with it``.
    """
    for name, value in choice.items():
        if name not in KINDS:
            raise ValueError(f"choice.{name}: is no setting of a check")
        kind, several = KINDS[name]
        values = value if several and type(value) is list else [value]
        if (several and type(value) is not list) or any(type(each) is not kind for each in values):
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
    peers: tuple[int, ...] = ()  #: of rank 0, where ranks play in pairs; none for all


def merge_wanted(found: Iterable[WantedRoutine]) -> list[WantedRoutine]:
    """Merge what is wanted of a routine at one layout: a launch combines its sizes and partners."""
    merged: dict[tuple[str, ...], WantedRoutine] = {}
    for each in found:
        key = each.program, each.partition, each.layout, each.routine
        known = merged.get(key, each)
        sizes = tuple(sorted({*known.sizes, *each.sizes}))
        peers = tuple(sorted({*known.peers, *each.peers}))
        merged[key] = WantedRoutine(*key, sizes, peers)
    return sorted(merged.values())


def build_wanted_choice(found: Iterable[WantedRoutine]) -> dict[str, Any]:
    """Build the choice that makes checks measure just these."""
    return {WANTED: [asdict(routine) for routine in merge_wanted(found)]}


def select_wanted(choice: Sequence[Mapping[str, Any]] | None, **place: str) -> dict[str, WantedRoutine] | None:
    """Select what is wanted at a place, as far as it is known, by routine; None where nothing was said."""
    if choice is None:
        return None
    found = [
        WantedRoutine(**{**each} | {"sizes": tuple(each["sizes"]), "peers": tuple(each["peers"])})
        for each in choice
    ]
    here = [each for each in found if all(getattr(each, key) == place[key] for key in place)]
    return {each.routine: each for each in here}


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
    """Find why a program does not measure an MPI in this session; empty where it does."""
    resting = [RestingPlace(**each) for each in choice]
    place = (partition, environment, program)
    here = [each.reason for each in resting if (each.partition, each.environment, each.program) == place]
    return here[0] if here else ""
