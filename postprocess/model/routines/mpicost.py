"""Names and defaults of mpicost, Plumbline's own benchmark program, and what is known of its routines."""

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

#: What mpicost does to the caches before each trial: it takes both buffers out of them by the processor's own
#: instruction, walks more memory than they hold as in the papers, or leaves them as they are.
EVICT, FLUSH = "evict", "flush"
CACHES = PROGRAMS["mpicost"].caches

#: What brings the processes together before a trial. In a loop a trial is many calls one right after the
#: other, after one synchronisation: successive calls overlap, and the time of one is not that of a call alone.
SYNCHRONISERS = ("dissemination", "barrier", "window", LOOP)

PINGPONG = "pingpong"  #: the routine that rank 0 plays with one other rank, a partner a case

BARRIER = "barrier"  #: the routine without a payload, whose size mpicost is not told

REDUCE_LOCAL = "reduce_local_sum"  #: the arithmetic of a reduction: MPI_Reduce_local on each process

NUMBER = 8  #: bytes of the numbers that mpicost computes with, where it reduces

TOURNAMENT = "tournament"  #: the routine whose ranks all play in pairs, a round a case

#: Plumbline's own program: its cases have trials, and are those of the papers
OWN_PROGRAM = "mpicost"

#: Those of the suite, whose records and trials are alike
OWN_PROGRAMS = tuple(program.name for program in PROGRAMS.values() if program.own)

COMPARED = "compared"  #: in the method of a start of OSU or IMB: its sizes that are no mere warm-up

#: Launches of a calibration that a night makes by itself where each trial of mpicost flushes all caches, which
#: may take minutes.
AUTOMATIC_FLUSHED = 5


#: Families of routines that no night measures.
COMPOSITIONS, SWAPS, SENDS = "compositions", "swaps", "sends"

#: COMMTEST's experiments, by who swaps with whom: 0 with 1; i with i + 1; i with i + p/2; a ring.
EXPERIMENTS = ("first", "next", "half", "ring")
PROTOCOLS = ("sendrecv", "nonblocking", "ordered", "synchronous", "persistent")
MODES = ("standard", "synchronous", "buffered")  #: of sending


class Scaling(str, Enum):
    """How the time of a routine grows with the processes, by the models of Luecke et al. (2001)."""

    NONE = "none"  #: no model
    LOG2 = "log2"  #: log2(p)
    LINEAR = "linear"  #: p - 1


def count_two_each(processes: int) -> int:
    """Count a block to send and one to receive on each process; one for each process at a root."""
    return 2 * processes


def count_all_received(processes: int) -> int:
    """Count a block to send on each process, and one from everybody to receive."""
    return processes * (1 + processes)


def count_all_exchanged(processes: int) -> int:
    """Count a block for everybody and one from everybody on each process."""
    return 2 * processes**2


def count_with_messages(processes: int) -> int:
    """Count as :func:`count_two_each`, and a message from each process to all higher ones at the same time.

    SimGrid's scan does so: 2.1 GB were measured for 1 MB and 64 processes.
    """
    return 2 * processes + processes * (processes - 1) // 2


@dataclass(frozen=True)
class Routine:
    """A routine of mpicost, as far as somebody outside the program must know it.

    ``suite/src/routines.c`` has an entry of the same name; a test holds the two tables against each other.
    """

    name: str
    #: MPI functions that are timed, and can be delayed by the self-test
    calls: tuple[str, ...] = ()
    scaling: Scaling = Scaling.NONE
    test: str = ""  #: its test in the papers; empty if it is in neither
    rooted: bool = False  #: whether one rank has another part than all the others
    #: whether ranks play in pairs; then there is a case for each partner or round
    in_pairs: bool = False
    #: blocks of ``bytes`` that all processes together hold, of the number of processes
    count_blocks: Callable[[int], int] = count_two_each
    quick: bool = False  #: whether a self-test measures it unless it is told otherwise
    control_bytes: int = 0  #: of a control, the only size at which it is measured; 0 for all others
    computes: bool = False  #: whether its payload is made of numbers: a reduction, a control
    local: bool = False  #: whether a process computes alone, which takes no simulated time
    #: of a composition: the routine whose result it puts together from other calls
    replaces: str = ""
    family: str = ""  #: of one that is measured only where it or its family is asked for by name

    @property
    def on_request(self) -> bool:
        """Whether it is measured only where it or its family is asked for by name."""
        return bool(self.family)

    def has_size(self, size: int) -> bool:
        """Return whether it can be measured at so many bytes."""
        return not self.computes or size % NUMBER == 0


def _with_operators(test: str, quick: str = "", **facts: Any) -> tuple[Routine, ...]:
    """Return a reduction with each of its operators; the self-test measures ``quick``."""
    return tuple(
        Routine(f"{test}_{operator}", test=test, quick=operator == quick, computes=True, **facts)
        for operator in ("sum", "min", "max")
    )


def _composition(name: str, **facts: Any) -> Routine:
    """Return the routine that puts together the result of another, named first: ``bcast_as_sends``."""
    replaced = name.partition("_as_")[0]
    facts.setdefault("computes", replaced.endswith("_sum"))
    return Routine(name, replaces=replaced, family=COMPOSITIONS, **facts)


#: In the order of Luecke et al. (2001), and then what is in neither paper.
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
    Routine(TOURNAMENT, in_pairs=True),  # of no self-test: its cases are pairs of nodes
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

#: Routines that are measured together where a user asks for them by one name, as ``mpicost --family`` has them.
FAMILIES = {
    family: tuple(routine.name for routine in ROUTINES if routine.family == family)
    for family in (COMPOSITIONS, SWAPS, SENDS)
} | {kernels.KERNELS: kernels.FAMILY, **requested.FAMILIES}

#: The application kernels, which are measured by themselves.
KERNEL_ROUTINES = tuple(Routine(name, local=True, family=kernels.KERNELS) for name in kernels.BYTES)

#: Sizes in bytes of what no MPI has a part in, by routine.
CONTROLS = {routine.name: [routine.control_bytes] for routine in ROUTINES if routine.control_bytes}


def find_routine(name: str) -> Routine:
    """Find the routine of this name. Raises ValueError if mpicost has none."""
    plain, _ = split_name(name)
    for routine in (*ROUTINES, *KERNEL_ROUTINES):
        if routine.name == plain:
            return routine if plain == name else replace(routine, name=name)
    raise ValueError(f"{name}: no routine of mpicost; enter it in {__name__}.ROUTINES")


def format_routines(cases: Iterable[Case]) -> str:
    """Format cases as mpicost is told them: ``bcast:0:8,barrier``, each size once."""
    sizes: dict[str, dict[str, None]] = {}
    for case in cases:
        own = sizes.setdefault(case.routine, {})
        if case.routine != BARRIER:
            own[str(case.bytes)] = None
    return ",".join(":".join([routine, *own]) for routine, own in sizes.items())


def is_control(case: Case) -> bool:
    return case.program == "mpicost" and case.routine in CONTROLS


#: Controls that touch nothing but the rank's own core: wherever it lies, they take as long
PLACELESS = ("control_compute", "control_timer")


def is_placeless(case: Case) -> bool:
    """Return whether a case takes as long wherever the ranks lie, so that only its speed changes it."""
    return case.program == OWN_PROGRAM and case.routine in PLACELESS


def is_on_request(case: Case) -> bool:
    """Return whether a case is measured only where its routine is asked for by name."""
    if case.program == OWN_PROGRAM:
        return any(case.routine in names for names in FAMILIES.values())
    return PROGRAMS[case.program].on_request or case.routine in requested.REQUESTED


USUAL = PROGRAMS[OWN_PROGRAM].options
TRIALS: int = USUAL["trials"]  #: of mpicost, per case
#: In which a launch visits its cases, each time for a share of their trials
TRIAL_ROUNDS: int = USUAL["trial_rounds"]
VISIT = 2  #: trials of a visit at least (``options.c``)
CACHE: str = USUAL["cache"]  #: of mpicost, before each trial
WARM = "warm"  #: of OSU and IMB, whose loops leave the caches so, and of the comparison of nodes
#: Seconds that a night may take for all launches of a layout with an MPI
SECONDS_PER_LAYOUT = 30
SYNC: str = USUAL["sync"]  #: what starts the processes of a trial of mpicost together


def program_sort_key(program: str) -> tuple[bool, str]:
    """Return the key that sorts Plumbline's own program first, then the others by name."""
    return program != OWN_PROGRAM, program
