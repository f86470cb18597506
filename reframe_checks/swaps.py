"""Messages both ways at the same time, and ping-pong by send mode: measured on request.

``./plumbline run --family swaps`` or ``commtest``: the four experiments of COMMTEST, each with five protocols.
``./plumbline run --family sends``: the MPI's eager threshold is where a standard send becomes as slow as a
synchronous one.
"""

import reframe as rfm

from postprocess.model.routines.mpicost import FAMILIES, SENDS, SWAPS, WARM
from postprocess.model.routines.paper_families import COMMTEST
from reframe_checks.common.mpicost import MpicostCheck, RequestedCheck
from reframe_checks.common.user_options import read_choice

TO_TWO_MEBIBYTES = [2**power for power in range(22)]


@rfm.simple_test
class swaps(RequestedCheck):
    """Rank 0 with 1 while all others sleep, neighbours, halves and a ring."""

    descr = "Messages both ways between pairs and in a ring"
    table = dict.fromkeys(FAMILIES[SWAPS], TO_TWO_MEBIBYTES)
    cache = read_choice("cache", WARM)


@rfm.simple_test
class commtest(MpicostCheck):
    """The same as a family, which needs no routine named."""

    descr = "Swaps as COMMTEST has them"
    family = COMMTEST
    table = dict.fromkeys(FAMILIES[SWAPS], TO_TWO_MEBIBYTES)
    cache = read_choice("cache", WARM)


@rfm.simple_test
class sends(RequestedCheck):
    """Ping-pong of rank 0 with its neighbour and with the last rank."""

    descr = "Ping-pong by modes of sending"
    table = dict.fromkeys(FAMILIES[SENDS], TO_TWO_MEBIBYTES)
    cache = read_choice("cache", WARM)

    def chosen_peers(self) -> list[int]:
        """Return the chosen partners; the next and the last rank without a choice."""
        chosen = super().chosen_peers()
        return chosen if chosen or self.peers else sorted({1, self.processes - 1} - {0})

    def partners(self, routine: str) -> list[int]:
        return self.chosen_peers()
