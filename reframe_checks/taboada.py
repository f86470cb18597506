"""The primitives of Taboada et al. at their sizes, for their models: measured on request.

``./plumbline run --family taboada --processes 2,4,8``. The minimum of the trials is the paper's value; it is
beside the headline in every record and in the store.
"""

import reframe as rfm

from postprocess.model.routines.mpicost import BARRIER, WARM
from postprocess.model.routines.taboada import HELD_OUT, MEASURED, TABOADA, TOTALS, TRIALS, convert_totals
from reframe_checks.common.mpicost import PartnerCheck
from reframe_checks.common.user_options import read_choice


@rfm.simple_test
class taboada(PartnerCheck):
    """Eleven primitives and replacements of some, 150 trials each, with the paper's definition of size n."""

    descr = "Primitives as Taboada et al. measured them"
    family = TABOADA
    table = {routine: [0] if routine == BARRIER else [*TOTALS, *HELD_OUT] for routine in MEASURED}

    trials = read_choice("trials", TRIALS)  # the first is dropped
    sync = read_choice("sync", "barrier")  # as in the paper, and as the command line chooses
    cache = read_choice("cache", WARM)  # buffers are used again and again

    def chosen_sizes(self, routine: str) -> list[int]:
        """Return the sizes of the paper as mpicost counts them, or the user's sizes."""
        if self.sizes:
            return super().chosen_sizes(routine)
        sizes = convert_totals(routine, self.table[routine], self.processes)
        limits = {} if self.routines else self.left_out_above
        return self.allowed_sizes(routine, sizes, limits)

    def partners(self, routine: str) -> list[int]:
        return self.chosen_peers() if "pingpong" in routine else super().partners(routine)
