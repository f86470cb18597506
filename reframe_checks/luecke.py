"""The tests of Luecke et al. (eleven of 2001, seven of 2003) at the sizes of both papers; and the controls.

2001: Luecke et al., comparison of an NT, a Myrinet Linux and an Ethernet Linux cluster with the Cray T3E-600
and the SGI Origin 2000. 2003: Luecke, Kraeva and Ju, "Comparing the performance of MPICH with Cray's MPI and
with SGI's MPI".
"""

import reframe as rfm

from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import CONTROLS, FLUSH, PAPERS, WARM
from postprocess.model.routines.paper_families import LUECKE
from reframe_checks.common.mpicost import MpicostCheck
from reframe_checks.common.user_options import read_choice
from site_configs.schema.facts import PartitionFacts

POINT_TO_POINT = [8, 10_000, 1_000_000]
SCATTERED = [8, 1_000, 10_000, 100_000]  #: per rank pair, or per block
GATHERED_BY_ALL = [8, 10_000]
WHOLE_VECTOR = [8, 1_000_000]
TESTS = {
    "pingpong": POINT_TO_POINT,
    "rightshift": POINT_TO_POINT,
    "barrier": [0],
    "bcast": POINT_TO_POINT,
    "scatter": SCATTERED,
    "gather": SCATTERED,
    "allgather": GATHERED_BY_ALL,
    "alltoall": SCATTERED,
    **{f"reduce_{operation}": POINT_TO_POINT for operation in ("sum", "min", "max")},
    **{f"allreduce_{operation}": WHOLE_VECTOR for operation in ("sum", "min", "max")},
    **{f"scan_{operation}": WHOLE_VECTOR for operation in ("sum", "min", "max")},
}


@rfm.simple_test
class mpicost(MpicostCheck):
    """Every routine of both papers, and in the same launch controls without any MPI.

    A size is the bytes of one message or block, or of the vector.
    """

    descr = "mpicost: MPI routines as Luecke et al. measured them, all in one launch"
    tags = {"nightly", "mpicost"}
    table = TESTS | CONTROLS


class PaperFamily(MpicostCheck, family=True):
    """The tests of ``--family luecke`` as in the papers, which no night measures."""

    family = LUECKE
    trials = read_choice("trials", PAPERS)
    sync = read_choice("sync", "barrier")

    def chosen_sizes(self, routine: str) -> list[int]:
        """Return the sizes of the papers, without those that the site leaves out at this process count."""
        return self.allowed_sizes(routine, super().chosen_sizes(routine), self.left_out_above)

    def chosen_peers(self) -> list[int]:
        """Return the user's partners; else all, whatever a site chooses for nights."""
        return [peer for peer in read_choice("peers", []) if peer < self.processes]

    def partners(self, routine: str) -> list[int]:
        everyone = list(range(1, self.processes))
        return (self.chosen_peers() or everyone) if routine == "pingpong" else [0]


@rfm.simple_test
class luecke_flushed(PaperFamily):
    """The tests of both papers with flushed caches, ping-pong with every partner."""

    descr = "The tests of Luecke et al., caches flushed"
    table = TESTS
    cache = read_choice("cache", FLUSH)


@rfm.simple_test
class luecke_warm(PaperFamily):
    """What figure 1 of Luecke et al. (2001) compares with flushed caches, where they can be cold."""

    descr = "A broadcast with warm caches"
    table = {"bcast": POINT_TO_POINT}

    def measures_on(self, part) -> bool:
        """Return whether the other launch of the family has cold caches."""
        site = PartitionFacts.of_partition(part).defaults.get("cache")
        return read_choice("cache", site or FLUSH) != WARM and super().measures_on(part)

    def planned_launches(self) -> list[PlannedLaunch]:
        """Return the one start of this job, with warm caches whatever the other has."""
        self.cache = WARM
        return super().planned_launches()
