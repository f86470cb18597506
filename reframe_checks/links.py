"""Ping-pong over all pairs of nodes: one at a time with the first node, then all nodes at once.

Luecke et al. 2001, test 1, sweeps rank 0 over the others; the tournament covers every pair.
"""

import reframe as rfm
from reframe.core.builtins import run_after
from reframe.core.runtime import runtime

from postprocess.model.routines.mpicost import PINGPONG, TOURNAMENT, WARM
from reframe_checks.common.mpicost import MpicostCheck
from reframe_checks.common.user_options import read_choice, resolve, select_layouts
from site_configs.schema.facts import PartitionFacts

LATENCY_AND_BANDWIDTH = [8, 1_000_000]
#: Trials that each node plays with all its partners together: at a tenth of a millisecond each they last about
#: a second, which reveals a node that is stopped occasionally. With many pairs each has few.
TRIALS_OF_A_NODE = 8000
FEWEST_TRIALS, MOST_TRIALS = 15, 1000


@rfm.simple_test
class links(MpicostCheck):
    """All pairs of nodes, one process on each node."""

    descr = "Ping-pong over all pairs of nodes"
    table = {PINGPONG: LATENCY_AND_BANDWIDTH, TOURNAMENT: LATENCY_AND_BANDWIDTH}
    tags = {"links"}

    cache = read_choice("cache", WARM)  # the check is about the network

    @run_after("init")
    def take_all_nodes(self):
        """Run one process on each requested node, or on as many as the site measures."""
        self.valid_systems = [
            part.fullname
            for part in runtime().system.partitions
            if part.fullname in self.valid_systems
            and self.num_tasks_per_node == 1
            and self.processes == find_most_nodes(part)
        ]

    @run_after("init")
    def choose_trials(self):
        """Choose enough trials per node for any number of partners; the site and the user have precedence."""
        trials = min(max(TRIALS_OF_A_NODE // self.processes, FEWEST_TRIALS), MOST_TRIALS)
        self.trials = resolve(trials, outside=self.value_from_setvar("trials"), user=read_choice("trials"))

    def chosen_peers(self) -> list[int]:
        """Return no choice: all peers are measured, whatever a site chooses for other checks."""
        return []

    def partners(self, routine: str) -> list[int]:
        """Return the partners of the first node, or the rounds of the tournament."""
        rounds = self.processes - 1 + self.processes % 2
        last = rounds if routine == TOURNAMENT else self.processes - 1
        return list(range(1, last + 1))


def find_most_nodes(part) -> int:
    """Return the most nodes that a layout with one process per node has on a partition."""
    layouts = select_layouts(part.name, PartitionFacts.of_partition(part))
    return max((layout.processes for layout in layouts if layout.per_node == 1), default=0)
