"""The injections of the self-test: slowdowns of known kind and size, and the cases that each one slows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.model.case import Case
from postprocess.model.interposed import INJECTION_PREFIX, LIBRARY
from postprocess.model.routines.mpicost import PINGPONG, ROUTINES
from postprocess.stats.band import LARGE_BYTES

#: What each routine of mpicost calls while it is timed.
FUNCTIONS = {routine.name: routine.calls for routine in ROUTINES}
SPIKE = 4.0  #: a call in a spike takes five times as long
SPIKES = 0.2  #: of all calls
#: The filter of the papers takes out a tenth of the trials at most: 5 of 50, and 5 of 10 spikes stay.
SPIKES_LEFT = (SPIKES - 0.1) / 0.9
EVERYTHING = ""  #: in the place of a routine


@dataclass(frozen=True)
class InjectionKind:
    """A kind of slowdown. The fraction is by how much a delayed call is slower."""

    name: str
    words: str
    fraction: float
    everything: bool = False  #: all routines of all MPIs, else one routine of one MPI
    least: int = 0  #: bytes
    one_rank: bool = False
    launches: float = 1.0  #: share of the launches that are delayed
    calls: float = 1.0  #: share of the calls of such a launch
    effect: float | None = None  #: on the headline, where that is not the fraction

    @property
    def intended(self) -> float:
        """By how much the headline of a target is to be slower in a launch that is delayed, as a fraction."""
        return self.fraction if self.effect is None else self.effect

    @property
    def must_show(self) -> bool:
        """Whether every launch is slow: what comes and goes is rather cleared, and a night cannot do better."""
        return self.launches == 1.0


INJECTION_KINDS = {
    plant.name: plant
    for plant in (
        InjectionKind("slower-5", "one routine 5% slower", 0.05),
        InjectionKind("slower-10", "one routine 10% slower", 0.10),
        InjectionKind("slower-20", "one routine 20% slower", 0.20),
        InjectionKind("slower-50", "one routine 50% slower", 0.50),
        InjectionKind("slower-100", "one routine twice as slow", 1.0),
        InjectionKind("slower-400", "one routine five times as slow", 4.0),
        InjectionKind("large", f"one routine 20% slower from {LARGE_BYTES} bytes on", 0.20, least=LARGE_BYTES),
        InjectionKind("one-rank", "one routine 20% slower on one rank", 0.20, one_rank=True),
        InjectionKind("some-launches", "one routine 50% slower in one launch in four", 0.50, launches=0.25),
        InjectionKind(
            "spikes",
            "one routine five times as slow in a fifth of the trials",
            SPIKE,
            calls=SPIKES,
            effect=SPIKE * SPIKES_LEFT,
        ),
        InjectionKind("everything", "everything 7% slower", 0.07, everything=True),
    )
}
#: The library delays no launch. It costs two readings of the clock in each call: a tenth of a call of 0.7 us.
IDLE = InjectionKind("idle", "nothing", 1.0, everything=True, launches=0.0)


@dataclass(frozen=True, order=True)
class Injection:
    """A plant in one environment for one night."""

    environment: str
    plant: str  #: name, in INJECTION_KINDS
    routine: str  #: of mpicost, or EVERYTHING

    @property
    def kind(self) -> InjectionKind:
        return IDLE if self.plant == IDLE.name else INJECTION_KINDS[self.plant]

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.plant} of {self.routine}" if self.routine else self.plant

    def slows(self, case: Case) -> bool:
        """Return whether the injection delays a call of a case, at its message size."""
        if case.environment != self.environment or case.program != "mpicost":
            return False
        called = list_mpi_functions(case.routine)
        if self.routine:
            wanted = list_mpi_functions(self.routine)
            called = tuple(name for name in called if name in wanted)
        return bool(called) and case.bytes >= self.kind.least

    def variables(self, prefix: Path) -> dict[str, str]:
        """Return the environment variables of a launch with this injection.

        Of a ping-pong rank 0 alone is delayed: it waits for all that the other does, and what both add would
        add up to more than the fraction.

        :param prefix: where the environment's mpicost is installed
        """
        kind = self.kind
        order = {
            "FRACTION": repr(kind.fraction),
            "ROUTINES": ",".join(list_mpi_functions(self.routine)) if self.routine else "all",
            "LAUNCHES": repr(kind.launches),
            "CALLS": repr(kind.calls),
        }
        order |= {"LEAST": str(kind.least)} if kind.least else {}
        if self.routine == PINGPONG:
            order["RANK"] = "0"
        elif kind.one_rank:
            order["RANK"] = "1"
        named = {f"{INJECTION_PREFIX}{name}": value for name, value in order.items()}
        return load_library(prefix) | named


def load_library(prefix: Path) -> dict[str, str]:
    """Return the variable that loads the library of delays.

    :param prefix: where the environment's mpicost is installed
    """
    return {"LD_PRELOAD": str(prefix / LIBRARY)}


def list_mpi_functions(routine: str) -> tuple[str, ...]:
    """List the MPI functions that a routine of mpicost calls while it is timed; none of a control."""
    return FUNCTIONS.get(routine, ())


def list_injectable_routines(cases: Sequence[Case], least: int = 0) -> list[str]:
    """List the routines that can be delayed at some size of ``least`` bytes or more, in the cases' order."""
    fit = [case.routine for case in cases if list_mpi_functions(case.routine) and case.bytes >= least]
    return list(dict.fromkeys(fit))


def list_unknown_injections(names: Collection[str]) -> list[str]:
    return sorted(set(names) - INJECTION_KINDS.keys())
