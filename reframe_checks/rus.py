"""What RUS Stuttgart measured on its T3E-512, with its buffers: measured on request.

``./plumbline run --family rus``. A trial is a loop of calls, of which the mean counts, with warm caches.
"""

import reframe as rfm

from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import BARRIER, FAMILIES, SENDS, SYNC
from postprocess.model.routines.rus import LATENCY, MESSAGES, ROUTINES, RUS, TRIALS, convert_buffers
from reframe_checks.common.mpicost import PartnerCheck
from reframe_checks.common.user_options import read_choice

SIMULATED_LOOP = 0.001  #: seconds per trial


@rfm.simple_test
class rus(PartnerCheck):
    """Sends by mode, six collective operations, the same composed of sends, and their arithmetic."""

    descr = "Sends and collective operations as RUS Stuttgart measured them"
    family = RUS
    table = {
        routine: [0] if routine == BARRIER else [*MESSAGES] if routine in FAMILIES[SENDS] else [LATENCY]
        for routine in ROUTINES
    }  # and the buffers, which depend on the processes

    trials = read_choice("trials", TRIALS)
    sync = read_choice("sync", SYNC)  # the command line chooses loops

    def options_of(self, launch: PlannedLaunch) -> list[str]:
        """Return the options of mpicost; a loop in simulated time, which repeats, is short."""
        short = [f"--loop-seconds={SIMULATED_LOOP}"] if launch.exact and self.sync == LOOP else []
        return [*super().options_of(launch), *short]

    def chosen_sizes(self, routine: str) -> list[int]:
        """Return the buffers of the report as mpicost counts them, or the user's sizes."""
        if self.sizes:
            return super().chosen_sizes(routine)
        return self.allowed_sizes(routine, convert_buffers(routine, self.processes), self.left_out_above)

    def partners(self, routine: str) -> list[int]:
        return self.chosen_peers() if routine in FAMILIES[SENDS] else super().partners(routine)
