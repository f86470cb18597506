"""What no machine can be faster than: the wire, the memory, and light. A faster value is a reason to reject.

The bounds are low on purpose: of a message or block of b bytes, b bytes at least leave a node by its links, or
come from its memory where the caches were emptied. What the bidder tells of both is a part of its offer.
"""

from __future__ import annotations

from dataclasses import dataclass

from postprocess.base.units import SECONDS
from postprocess.extensions.procurement.check.data import ToldFacts
from postprocess.model.case import Case
from postprocess.model.routines.mpicost import EVICT, FLUSH

#: Seconds for a message between nodes: metres of fibre and two adapters; inside a node a line of the cache.
BETWEEN_NODES, INSIDE_NODE = 5e-8, 5e-9
#: Routines that send both ways at once.
BOTH_WAYS = ("bibw", "biband", "bidir_put", "bidir_get", "sendrecv", "exchange", "pingping")
#: Of which a process receives less than ``bytes``.
SCATTERED = ("reduce_scatter_sum",)


@dataclass(frozen=True)
class SpeedLimit:
    """A bound, in the unit of the value, and what it is of: ``wire``, ``memory`` or ``light``."""

    value: float
    what: str

    def is_broken(self, value: float, unit: str) -> bool:
        """Return whether a value in this unit (seconds or a rate) is faster."""
        return value < self.value if unit == SECONDS else value > self.value


def list_speed_limits(case: Case, unit: str, told: ToldFacts) -> list[SpeedLimit]:
    """List what a value of a case cannot be faster than."""
    several = case.processes > case.per_node
    cold = case.cache in (EVICT, FLUSH)
    wire, memory = told.link_gbit_per_s * 1e9 / 8, told.memory_gbyte_per_s * 1e9
    rate, what = (wire, "wire") if several else (memory if cold else 0.0, "memory")
    if unit != SECONDS:
        both = 2 if case.routine in BOTH_WAYS else 1
        return [SpeedLimit(both * rate / 1e6, what)] if rate else []
    found = [SpeedLimit(BETWEEN_NODES if several else INSIDE_NODE, "light")]
    if rate and case.routine not in SCATTERED:
        found.append(SpeedLimit(case.bytes / rate, what))
    return found
