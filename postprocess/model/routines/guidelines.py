"""Self-consistent performance guidelines: which call should not be slower than which, in one MPI and launch.

Träff, Gropp and Thakur, "Self-Consistent MPI Performance Guidelines", IEEE TPDS 21(5), 2010. The catalogue is
that of PGMPI (Hunold et al., EuroMPI 2016) and PGMPITuneLib, with single sends and receives and a barrier
added.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from postprocess.base.grouping import group_pairs
from postprocess.model.routines.mpicost import BARRIER, NUMBER, ROUTINES, find_routine


class Rule(str, Enum):
    """Why one measurement should not take longer than another."""

    COMPOSITION = "composition"  #: the other calls have the same result
    SPECIALISATION = "specialisation"  #: the other call does more
    MONOTONY = "monotony"  #: the same call with more bytes
    SPLITTING = "splitting"  #: the same call, repeated with a part of the bytes

    def __str__(self) -> str:
        return self.value


#: Pairs: the call that should not be slower, and one that does more with as many bytes.
SPECIALISATIONS = (
    ("gather", "allgather"),
    ("reduce_sum", "allreduce_sum"),
    ("reduce_scatter_block_sum", "reduce_scatter_sum"),
    ("reduce_scatter_block_sum", "reduce_scatter_sum_as_allreduce"),
)
#: A barrier holds each rank until all have come, and so does an allreduce of one number.
SYNCHRONISING = (BARRIER, "allreduce_sum", NUMBER)

#: Bytes of a vector: eight times the powers of four. Blocks, which each pair of ranks may exchange, are
#: smaller.
VECTORS = [NUMBER * 4**power for power in range(9)]
BLOCKS = VECTORS[:-1]
OF_VECTORS = ("bcast", "reduce_sum", "allreduce_sum", "scan_sum")


@dataclass(frozen=True, order=True)
class Measured:
    """A routine at a size in bytes."""

    routine: str
    bytes: int


@dataclass(frozen=True, order=True)
class Guideline:
    """``special`` should not take longer than ``times`` calls of ``general``."""

    rule: Rule
    special: Measured
    general: Measured
    times: int = 1


def list_compositions() -> Mapping[str, str]:
    """Return the routine that each composition replaces, by name."""
    return {routine.name: routine.replaces for routine in ROUTINES if routine.replaces}


def list_operations() -> list[str]:
    """List the routines that guidelines are about, without compositions."""
    names = [*list_compositions().values(), *(name for pair in SPECIALISATIONS for name in pair)]
    return sorted({name for name in names if not find_routine(name).replaces})


def list_sizes(routine: str) -> list[int]:
    """List the sizes in bytes at which a routine is measured; ``[0]`` for a barrier."""
    if routine == BARRIER:
        return [0]
    replaced = find_routine(routine).replaces or routine
    return VECTORS if replaced in OF_VECTORS else BLOCKS


def list_table() -> dict[str, list[int]]:
    """Return the sizes of every routine that guidelines need, by name."""
    names = [BARRIER, *list_operations(), *list_compositions()]
    return {name: list(list_sizes(name)) for name in names}


def list_guidelines(measured: Sequence[Measured]) -> list[Guideline]:
    there = set(measured)
    guidelines = (
        guideline for guideline in _all_guidelines(measured) if {guideline.special, guideline.general} <= there
    )
    return sorted(set(guidelines))


def _all_guidelines(measured: Sequence[Measured]) -> Iterator[Guideline]:
    compositions, operations = list_compositions(), {*list_operations()}
    pairs = [(special, general, Rule.COMPOSITION) for general, special in compositions.items()]
    pairs += [(special, general, Rule.SPECIALISATION) for special, general in SPECIALISATIONS]
    sizes = group_pairs((routine_size.routine, routine_size.bytes) for routine_size in measured)
    for special, general, rule in pairs:
        for size in sizes.get(special, ()):
            yield Guideline(rule, Measured(special, size), Measured(general, size))
    barrier, holding, number = SYNCHRONISING
    yield Guideline(Rule.SPECIALISATION, Measured(barrier, 0), Measured(holding, number))
    for routine in sorted(operations & sizes.keys()):
        ordered = sorted({size for size in sizes[routine] if size})
        for less, more in pairwise(ordered):
            small, large = Measured(routine, less), Measured(routine, more)
            yield Guideline(Rule.MONOTONY, small, large)
            yield Guideline(Rule.SPLITTING, large, small, -(-more // less))
