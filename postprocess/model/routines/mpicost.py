"""Names and defaults of mpicost, Plumbline's own benchmark program, and facts about its routines."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from postprocess.model.case import Case
from postprocess.model.gpu import split_name
from postprocess.model.routines import kernels, requested
from postprocess.model.routines.benchmark import LOOP
from site_configs.programs.program import PROGRAMS

PAPERS = 51  #: trials of each case in the papers

#: What mpicost does to the caches before each trial: it evicts both buffers with the processor's own
#: instruction, walks through more memory than the caches hold as in the papers, or leaves them as they are.
EVICT, FLUSH = "evict", "flush"
CACHES = PROGRAMS["mpicost"].caches

#: How the processes start a trial together. In a loop, a trial is many calls in a row after one
#: synchronisation: successive calls overlap, and the time of one is not that of a call alone.
SYNCHRONISERS = ("dissemination", "barrier", "window", LOOP)

PINGPONG = "pingpong"  #: the routine that rank 0 plays with one other rank; one case per partner

BARRIER = "barrier"  #: the routine without a payload; mpicost gets no size for it

REDUCE_LOCAL = "reduce_local_sum"  #: the arithmetic of a reduction: MPI_Reduce_local on each process

NUMBER = 8  #: bytes of the numbers that reductions of mpicost use

TOURNAMENT = "tournament"  #: the routine in which all ranks play in pairs; one case per round

#: Plumbline's own program: its cases have trials and are those of the papers
OWN_PROGRAM = "mpicost"

#: Programs of the suite, whose records and trials have the same form
OWN_PROGRAMS = tuple(program.name for program in PROGRAMS.values() if program.own)

COMPARED = "compared"  #: key in the method of a start of OSU or IMB: its sizes that are not a mere warm-up

#: Launches of a calibration that a night makes by itself if each trial of mpicost flushes all caches, which may
#: take minutes.
AUTOMATIC_FLUSHED = 5


#: Families of routines that no night measures.
COMPOSITIONS, SWAPS, SENDS = "compositions", "swaps", "sends"

#: COMMTEST's experiments, by who swaps with whom: 0 with 1; i with i + 1; i with i + p/2; a ring.
EXPERIMENTS = ("first", "next", "half", "ring")
PROTOCOLS = ("sendrecv", "nonblocking", "ordered", "synchronous", "persistent")
MODES = ("standard", "synchronous", "buffered")  #: modes of sending


class Scaling(str, Enum):
    """How the time of a routine grows with the processes, by the models of Luecke et al. (2001)."""

    NONE = "none"  #: no model
    LOG2 = "log2"  #: log2(p)
    LINEAR = "linear"  #: p - 1


def count_two_each(processes: int) -> int:
    """Count one block to send and one to receive per process; at a root, one per process."""
    return 2 * processes


def count_all_received(processes: int) -> int:
    """Count one block to send per process, and one to receive from every process."""
    return processes * (1 + processes)


def count_all_exchanged(processes: int) -> int:
    """Count one block to send to and one to receive from every process, on each process."""
    return 2 * processes**2


def count_with_messages(processes: int) -> int:
    """Count as :func:`count_two_each`, plus a message from each process to all higher ones at the same time.

    SimGrid's scan does so: 2.1 GB were measured for 1 MB and 64 processes.
    """
    return 2 * processes + processes * (processes - 1) // 2


@dataclass(frozen=True)
class Routine:
    """A routine of mpicost, as far as other code must know it.

    ``suite/src/routines.c`` has an entry of the same name; a test compares the two tables.
    """

    name: str
    #: MPI functions that are timed, and that the self-test can delay
    calls: tuple[str, ...] = ()
    scaling: Scaling = Scaling.NONE
    test: str = ""  #: its test in the papers; empty if it is in neither
    rooted: bool = False  #: whether one rank has a different role from all others
    #: whether ranks play in pairs; then there is a case per partner or round
    in_pairs: bool = False
    #: blocks of ``bytes`` that all processes together hold, by number of processes
    count_blocks: Callable[[int], int] = count_two_each
    quick: bool = False  #: whether a self-test measures it by default
    control_bytes: int = 0  #: the only size of a control; 0 for all other routines
    computes: bool = False  #: whether its payload consists of numbers: a reduction or a control
    local: bool = False  #: whether a process computes alone, which takes no simulated time
    #: for a composition: the routine whose result it builds from other calls
    replaces: str = ""
    family: str = ""  #: for a routine that is measured only if it or its family is asked for by name

    @property
    def on_request(self) -> bool:
        """Whether it is measured only if it or its family is asked for by name."""
        return bool(self.family)

    def has_size(self, size: int) -> bool:
        """Return whether it can be measured at this size in bytes."""
        return not self.computes or size % NUMBER == 0


def _with_operators(test: str, quick: str = "", **facts: Any) -> tuple[Routine, ...]:
    """Return a reduction with each operator. The self-test measures the operator ``quick``."""
    return tuple(
        Routine(f"{test}_{operator}", test=test, quick=operator == quick, computes=True, **facts)
        for operator in ("sum", "min", "max")
    )


def _composition(name: str, **facts: Any) -> Routine:
    """Return the routine that builds the result of another one, which begins its name: ``bcast_as_sends``."""
    replaced = name.partition("_as_")[0]
    facts.setdefault("computes", replaced.endswith("_sum"))
    return Routine(name, replaces=replaced, family=COMPOSITIONS, **facts)


#: In the order of Luecke et al. (2001), followed by routines that are in neither paper.
ROUTINES = (
    Routine(PINGPONG, ("MPI_Recv", "MPI_Send"), test="pingpong", in_pairs=True, quick=True),
    Routine("rightshift", ("MPI_Sendrecv",), test="rightshift"),
    Routine(BARRIER, ("MPI_Barrier",), test=BARRIER, quick=True),
    Routine("bcast", ("MPI_Bcast",), Scaling.LOG2, "bcast", rooted=True, quick=True),
    Routine("scatter", ("MPI_Scatter",), Scaling.LINEAR, "scatter", rooted=True),
    Routine("gather", ("MPI_Gather",), Scaling.LINEAR, "gather", rooted=True),
    Routine("allgather", ("MPI_Allgather",), Scaling.LINEAR, "allgather", count_blocks=count_all_received),
    Routine(
        "alltoall", ("MPI_Alltoall",), Scaling.LINEAR, "alltoall", count_blocks=count_all_exchanged, quick=True
    ),
    *_with_operators("reduce", calls=("MPI_Reduce",), rooted=True),
    *_with_operators("allreduce", calls=("MPI_Allreduce",), quick="sum"),
    *_with_operators("scan", calls=("MPI_Scan",), count_blocks=count_with_messages),
    Routine(TOURNAMENT, in_pairs=True),  # in no self-test: its cases are pairs of nodes
    Routine("control_compute", control_bytes=8, computes=True),
    Routine("control_memory", control_bytes=1_000_000, computes=True),
    Routine("control_timer", control_bytes=8, computes=True),
    Routine("reduce_scatter_sum", count_blocks=count_all_received, computes=True, family=COMPOSITIONS),
    _composition("bcast_as_scatter_allgather", rooted=True),
    _composition("bcast_as_sends", rooted=True),
    _composition("scatter_as_bcast", rooted=True, count_blocks=count_all_received),
    _composition("scatter_as_sends", rooted=True),
    _composition("gather_as_sends", rooted=True),
    _composition("allgather_as_gather_bcast", count_blocks=count_all_received),
    _composition("allgather_as_alltoall", count_blocks=count_all_exchanged),
    _composition("alltoall_as_sendrecv", count_blocks=count_all_exchanged),
    _composition("reduce_sum_as_reduce_scatter_gather", rooted=True),
    _composition("allreduce_sum_as_reduce_bcast"),
    _composition("allreduce_sum_as_reduce_scatter_allgather"),
    _composition("reduce_scatter_sum_as_reduce_scatterv", rooted=True, count_blocks=count_all_exchanged),
    _composition("reduce_scatter_sum_as_allreduce", count_blocks=count_all_exchanged),
    _composition("scan_sum_as_exscan_reduce_local", count_blocks=count_with_messages),
    Routine("reduce_scatter_block_sum", count_blocks=count_all_received, computes=True, family=COMPOSITIONS),
    _composition("bcast_as_allgatherv", rooted=True),
    _composition("scatter_as_scatterv", rooted=True),
    _composition("gather_as_gatherv", rooted=True),
    _composition("gather_as_reduce", count_blocks=count_all_received, computes=True),
    _composition("allgather_as_allgatherv", count_blocks=count_all_received),
    _composition("allgather_as_allreduce", count_blocks=count_all_received, computes=True),
    _composition("alltoall_as_alltoallv", count_blocks=count_all_exchanged),
    _composition("reduce_sum_as_reduce_scatter_gatherv", rooted=True),
    _composition("allreduce_sum_as_reduce_scatter_allgatherv"),
    _composition("reduce_scatter_block_sum_as_reduce_scatter", rooted=True, count_blocks=count_all_exchanged),
    Routine(REDUCE_LOCAL, computes=True, local=True, family=COMPOSITIONS),
    *(Routine(f"swap_{who}_{how}", family=SWAPS) for who in EXPERIMENTS for how in PROTOCOLS),
    *(Routine(f"pingpong_{mode}", in_pairs=True, family=SENDS) for mode in MODES),
)

#: Routines that users ask for together by one name, as in ``mpicost --family``.
FAMILIES = {
    family: tuple(routine.name for routine in ROUTINES if routine.family == family)
    for family in (COMPOSITIONS, SWAPS, SENDS)
} | {kernels.KERNELS: kernels.FAMILY, **requested.FAMILIES}

#: The application kernels, which are measured separately.
KERNEL_ROUTINES = tuple(Routine(name, local=True, family=kernels.KERNELS) for name in kernels.BYTES)

#: Sizes in bytes of routines that involve no MPI, by name.
CONTROLS = {routine.name: [routine.control_bytes] for routine in ROUTINES if routine.control_bytes}


def find_routine(name: str) -> Routine:
    """Return the routine of this name. Raises ValueError if mpicost has none."""
    plain, _ = split_name(name)
    for routine in (*ROUTINES, *KERNEL_ROUTINES):
        if routine.name == plain:
            return routine if plain == name else replace(routine, name=name)
    raise ValueError(f"{name}: no routine of mpicost; enter it in {__name__}.ROUTINES")


def format_routines(cases: Iterable[Case]) -> str:
    """Format cases for mpicost's command line, with each size once: ``bcast:0:8,barrier``."""
    sizes: dict[str, dict[str, None]] = {}
    for case in cases:
        routine_sizes = sizes.setdefault(case.routine, {})
        if case.routine != BARRIER:
            routine_sizes[str(case.bytes)] = None
    return ",".join(":".join([routine, *routine_sizes]) for routine, routine_sizes in sizes.items())


def is_control(case: Case) -> bool:
    return case.program == "mpicost" and case.routine in CONTROLS


#: Controls that use nothing but the rank's own core, so that their time does not depend on its place
PLACELESS = ("control_compute", "control_timer")


def is_placeless(case: Case) -> bool:
    """Return whether the time of a case depends only on the speed of the cores, not on their places."""
    return case.program == OWN_PROGRAM and case.routine in PLACELESS


def is_on_request(case: Case) -> bool:
    """Return whether a case is measured only if its routine is asked for by name."""
    if case.program == OWN_PROGRAM:
        return any(case.routine in names for names in FAMILIES.values())
    return PROGRAMS[case.program].on_request or case.routine in requested.REQUESTED


USUAL = PROGRAMS[OWN_PROGRAM].options
TRIALS: int = USUAL["trials"]  #: trials of mpicost, per case
#: Visits of a launch to its cases, each of which takes a share of the trials
TRIAL_ROUNDS: int = USUAL["trial_rounds"]
VISIT = 2  #: trials of a visit, at least (``options.c``)
CACHE: str = USUAL["cache"]  #: what mpicost does with the caches before each trial
WARM = "warm"  #: state in which the loops of OSU and IMB leave the caches; also used by the comparison of nodes
#: Seconds that a night may take for all launches of a layout with an MPI
SECONDS_PER_LAYOUT = 30
SYNC: str = USUAL["sync"]  #: how mpicost starts the processes of a trial together


def program_sort_key(program: str) -> tuple[bool, str]:
    """Return a key that sorts Plumbline's own program first, then the others by name."""
    return program != OWN_PROGRAM, program
